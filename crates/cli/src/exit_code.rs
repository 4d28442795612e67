//! Exit codes: 0 done, 1 the key is absent, 2 usage, 3 refused, 4 damaged, or checked and found
//! something wrong, 5 imported, but not everything, 6 no such store or table, 7 no such file, 8
//! busy, 130 stopped by Ctrl-C.
//!
//! The one place that maps a kind of error to a code. What a script does about a code is the same
//! for all errors that have it.

use folddb::ErrorKind;

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// It is done.
    Done = 0,
    /// The key has no value: an answer, and no failure.
    Absent = 1,
    /// The command line, or what it names, is wrong.
    Usage = 2,
    /// The store, a rule of the command, or the operating system refuses.
    Refused = 3,
    /// A read has met damage. Or the command has done its work, and what it checked is damaged, was
    /// not saved completely, or differs.
    Damaged = 4,
    /// The command has finished, and some rows, or all, were not imported as intended.
    NotAllIn = 5,
    /// There is no such store, or in it no such table or feed.
    NotFound = 6,
    /// There is no such file.
    NoFile = 7,
    /// Another process has the store, or was first: the same command may succeed later.
    Busy = 8,
    /// Ctrl-C stopped it: 128 and the number of the signal, as shells have it.
    Interrupted = 130,
}

impl ExitCode {
    /// That of several commands, one after the other: of the first that failed; an absent key is no
    /// failure, and so it counts only where none has.
    pub(crate) fn and_then(self, next: ExitCode) -> ExitCode {
        match (self, next) {
            (ExitCode::Done, next) => next,
            (ExitCode::Absent, next) if next != ExitCode::Done => next,
            (first, _) => first,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> std::process::ExitCode {
        std::process::ExitCode::from(code as u8)
    }
}

impl From<ErrorKind> for ExitCode {
    fn from(kind: ErrorKind) -> ExitCode {
        match kind {
            ErrorKind::StoreNotFound | ErrorKind::TableNotFound => ExitCode::NotFound,
            ErrorKind::InvalidInput => ExitCode::Usage,
            ErrorKind::Corruption => ExitCode::Damaged,
            ErrorKind::Locked | ErrorKind::Conflict => ExitCode::Busy,
            _ => ExitCode::Refused,
        }
    }
}

#[cfg(test)]
#[path = "exit_code/tests.rs"]
mod tests;
