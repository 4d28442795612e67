//! `folddb completions SHELL` and `folddb man`: generated from the definition of the arguments.
//!
//! Names in a store are no part of that: the script for bash asks the program for them, which knows
//! them by the same rules as the prompt of `folddb shell`.

use std::path::Path;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::commands::shell::words::{self, Wanted};
use crate::failure::Failure;
use crate::session::Session;
use crate::store_word;

/// The completions for a shell.
pub(crate) fn completions(args: &CompletionsArgs, session: &mut Session) -> Result<(), Failure> {
    if let Some((typed, words)) = args.words.split_last() {
        return names(words, typed, session);
    }
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut hinted(Cli::command()), "folddb", &mut text);
    if args.shell == Shell::Bash {
        text.extend_from_slice(NAMES_IN_BASH.as_bytes());
    }
    Ok(session.out.write_all(&text)?)
}

/// What is generated completes verbs, options and files. At a place for something else it offers
/// all options, so that files are never offered: options are left to words that begin as one.
const NAMES_IN_BASH: &str = r#"
_folddb_names() {
    _folddb "$@"
    local typed="${COMP_WORDS[COMP_CWORD]}" word words=() names=()
    [[ $typed == -* ]] && return 0
    for word in "${COMPREPLY[@]}"; do
        [[ $word == [-\<\[]* ]] || words+=("$word")
    done
    COMPREPLY=("${words[@]}")
    words=("${COMP_WORDS[@]:0:COMP_CWORD+1}")
    words=("${words[@]/#\~\//$HOME/}")
    while IFS= read -r word; do
        names+=("$(printf '%q' "$word")")
    done < <("${words[0]}" completions bash -- "${words[@]:1}" 2>/dev/null)
    [[ ${#names[@]} -eq 0 ]] || COMPREPLY=("${names[@]}")
    return 0
}

complete -F _folddb_names -o bashdefault -o default folddb
"#;

/// Prints what completes a word of a line, if that names something in a store that is there.
fn names(words: &[String], typed: &str, session: &mut Session) -> Result<(), Failure> {
    let Some((path, line)) = store_word::taken_from(words) else { return Ok(()) };
    let command = Cli::command();
    let Some(verb) = line.first().and_then(|verb| command.find_subcommand(verb)) else { return Ok(()) };
    let last = line.last().map_or("", String::as_str);
    let takes_value = |option: &Arg| {
        let is_it = last.strip_prefix("--").is_some_and(|name| option.get_long() == Some(name));
        is_it && option.get_action().takes_values()
    };
    let names_in_store =
        last == "--table" || words::OF_COLUMNS.contains(&last) || words::OF_KEYS.contains(&last);
    let takes_other = !names_in_store && verb.get_arguments().any(takes_value);
    let is_of_table =
        |verb: &Command| verb.get_arguments().any(|arg| ["table", "tables"].contains(&arg.get_id().as_str()));
    if takes_other || !is_of_table(verb) && !verb.get_subcommands().any(is_of_table) {
        return Ok(());
    }
    let store = session.read(Path::new(&path))?;
    let wanted = match last {
        "--table" => Wanted::Table,
        _ => words::wanted_in(&store, &line, typed),
    };
    for name in words::names(&store, wanted, typed).iter().filter(|name| words::is_shown(name, typed)) {
        writeln!(session.out, "{name}")?;
    }
    Ok(())
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
