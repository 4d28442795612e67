//! Where the output of a line of the shell goes: `| COMMAND`, `> FILE`, `>> FILE`, as in other
//! shells, except that they begin a word: `--delimiter '|'` and `--fold append:|` are none.

use std::fs::File;
use std::io::{BufWriter, Write};

use super::line::{self, Letter, Letters};
use crate::failure::Failure;
use crate::pipe::{Ended, Reader};

/// Where the output of a line goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To where that of the shell goes.
    Usual,
    /// To a line of the system's shell.
    Command(String),
    /// To a file, from its beginning or to its end.
    File { name: String, appends: bool },
}

/// A line without its target.
pub(crate) fn of(line: &str) -> Result<(&str, Target), Failure> {
    let Some(at) = place(line) else { return Ok((line, Target::Usual)) };
    let (line, rest) = line.split_at(at);
    if let Some(command) = rest.strip_prefix('|') {
        return match command.trim() {
            "" => {
                Err(Failure::Usage("a command is missing behind | (in quotes it is a character)".to_owned()))
            }
            command => Ok((line, Target::Command(command.to_owned()))),
        };
    }
    let (name, appends) = match rest.strip_prefix(">>") {
        Some(name) => (name, true),
        None => (&rest[1..], false),
    };
    match line::split(name).map_err(Failure::Usage)?.as_slice() {
        [name] => Ok((line, Target::File { name: name.clone(), appends })),
        _ => Err(Failure::Usage("behind > is the name of one file (in quotes > is a character)".to_owned())),
    }
}

/// Where a word begins with `|` or `>`, outside of quotes.
fn place(line: &str) -> Option<usize> {
    let mut begins = Letters::of(line).filter(|&(at, begins_word, _)| begins_word && at > 0);
    begins.find(|(.., letter)| matches!(letter, Letter::Bare('|' | '>'))).map(|(at, ..)| at)
}

impl Target {
    /// What is to be written to; none for the usual one. A command tells `ended` how it ended, once
    /// that is dropped.
    pub(crate) fn open(&self, ended: &Ended) -> Result<Option<Box<dyn Write>>, Failure> {
        match self {
            Target::Usual => Ok(None),
            Target::Command(line) => {
                let reader =
                    Reader::start(line, ended).map_err(|error| Failure::file("start", line, &error))?;
                Ok(Some(Box::new(BufWriter::with_capacity(1 << 16, reader))))
            }
            Target::File { name, appends } => {
                let file =
                    File::options().create(true).write(true).truncate(!appends).append(*appends).open(name);
                let file = file.map_err(|error| Failure::file("write", name, &error))?;
                Ok(Some(Box::new(BufWriter::with_capacity(1 << 16, file))))
            }
        }
    }
}

#[cfg(test)]
#[path = "target/tests.rs"]
mod tests;
