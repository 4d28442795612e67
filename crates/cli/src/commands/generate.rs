//! `folddb completions SHELL` and `folddb man`: generated from the definition of the arguments.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::session::Session;

/// The completions for a shell.
pub(crate) fn completions(args: &CompletionsArgs, session: &mut Session) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "folddb", &mut text);
    Ok(session.out.write_all(&text)?)
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
