//! `folddb completions SHELL` and `folddb man`: generated from the definition of the arguments.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueHint};

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::session::Session;

/// The completions for a shell.
pub(crate) fn completions(args: &CompletionsArgs, session: &mut Session) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut hinted(Cli::command()), "folddb", &mut text);
    Ok(session.out.write_all(&text)?)
}

/// Values of options that are words, for completion. What else they take is checked by what reads
/// them.
const WORDS: [(&str, &[&str]); 6] = [
    ("kind", &["sorted", "hashed"]),
    ("compression", COMPRESSIONS),
    ("bottom_compression", COMPRESSIONS),
    ("value_placement", &["segments", "files"]),
    ("keep", &["latest", "versions:2", "window:1d", "forever"]),
    ("expire", &["never", "by-write", "30d"]),
];

/// What this build can write.
const COMPRESSIONS: &[&str] =
    if cfg!(feature = "zstd") { &["none", "lz4", "zstd"] } else { &["none", "lz4"] };

/// The same command; files are offered only where one is meant.
fn hinted(command: Command) -> Command {
    let hint = |arg: Arg| {
        let words = WORDS.iter().find(|(id, _)| arg.get_id() == id);
        match (words, arg.get_value_hint()) {
            (Some((_, words)), _) => arg.value_parser(PossibleValuesParser::new(*words)),
            (None, ValueHint::Unknown) if takes_a_word(&arg) => arg.value_hint(ValueHint::Other),
            _ => arg,
        }
    };
    command.mut_args(hint).mut_subcommands(hinted)
}

/// Whether an argument has a value that is no file, which may also be that of stdin.
fn takes_a_word(arg: &Arg) -> bool {
    let is_file = |name: &str| ["file", "files", "dir"].contains(&name.to_lowercase().as_str());
    let named = arg.get_value_names().unwrap_or_default();
    let names_a_file = is_file(arg.get_id().as_str()) || named.iter().any(|name| is_file(name));
    arg.get_action().takes_values() && !names_a_file
}

/// The man pages: of the program, then of every verb; printed, or each in its own file.
pub(crate) fn man(args: &ManArgs, session: &mut Session) -> Result<(), Failure> {
    if let Some(dir) = &args.dir {
        let failed = |error| Failure::file("write", &dir.to_string_lossy(), &error);
        std::fs::create_dir_all(dir).map_err(failed)?;
        return clap_mangen::generate_to(Cli::command(), dir).map_err(failed);
    }
    let mut command = Cli::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut session.out)?;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let man = clap_mangen::Man::new(verb.clone());
        man.render_name_section(&mut session.out)?;
        man.render_synopsis_section(&mut session.out)?;
        man.render_options_section(&mut session.out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
