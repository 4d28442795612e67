//! The help of the whole program: its verbs in groups. Each verb is in one group, by a test; the
//! arguments and texts are those of `args.rs`.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches};

use crate::args::Cli;

/// The groups, and the verbs of each in the order in which they are listed.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Data",
        &[
            "put",
            "fold",
            "delete",
            "get",
            "scan",
            "find",
            "count",
            "aggregate",
            "import",
            "imports",
            "export",
            "import-dir",
            "export-dir",
        ],
    ),
    ("A closer look", &["head", "history", "explain", "stats", "runs", "values"]),
    ("Stores, tables and indexes", &["create", "alter", "tables", "drop", "index"]),
    ("Change feeds", &["watch", "feed"]),
    (
        "Maintenance",
        &[
            "compact", "reclaim", "doctor", "verify", "repair", "backup", "restore", "dump", "load",
            "digest", "diff", "sync", "freeze", "thaw",
        ],
    ),
    ("Tools", &["shell", "check-fold", "bench", "completions", "man", "help"]),
];

/// The program for clap, with its verbs in groups.
pub(crate) fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    let verbs = listing(&command);
    Cli::command().help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// Reads a command line.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let words: Vec<OsString> = words.into_iter().collect();
    let matches = command.try_get_matches_from_mut(&words).map_err(|error| match error.kind() {
        ErrorKind::InvalidUtf8 => not_text(&words, &mut command),
        _ => error,
    })?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Says which word is no text.
fn not_text(words: &[OsString], command: &mut Command) -> clap::Error {
    let word = words.iter().find(|word| word.to_str().is_none()).map(OsString::as_os_str).unwrap_or_default();
    let message = format!(
        "{word:?} is not UTF-8 text, as keys, values and names of files of rows are \
         (rename the file, or give it on stdin, as `-`)"
    );
    command.error(ErrorKind::InvalidUtf8, message)
}

fn listing(command: &Command) -> String {
    let group = |(name, verbs): &(&str, &[&str])| {
        let lines: String = verbs.iter().map(|verb| line(command, verb)).collect();
        format!("{name}:\n{lines}")
    };
    GROUPS.iter().map(group).collect::<Vec<_>>().join("\n")
}

fn line(command: &Command, verb: &str) -> String {
    let about = command.find_subcommand(verb).and_then(Command::get_about);
    format!("  {verb:11}  {}\n", about.map(ToString::to_string).unwrap_or_default())
}

#[cfg(test)]
mod tests;
