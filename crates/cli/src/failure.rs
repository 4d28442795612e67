//! Why a command ends early, and with which exit code.

use std::fmt;
use std::io;

use folddb::ErrorKind;

use crate::exit_code::ExitCode;

/// What can be done while another process writes to a store, which need not be closed for it.
const WHILE_BUSY: &str =
    "--wait-lock 5s waits until it ends; get, scan, export, dump and backup work meanwhile";

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the store.
    Store(folddb::Error),
    /// The key has no value.
    Absent(String),
    /// The store, or what it is to have (a table, a feed), does not exist.
    NotFound(String),
    /// A file that was named does not exist.
    NoFile(String),
    /// A file has no row, nor a line that names its columns.
    Empty(String),
    /// The command line is wrong.
    Usage(String),
    /// A file, or a rule of the command, refuses.
    Refused(String),
    /// The reader of the output wants no more: a pipe is closed. Ends silently.
    OutputClosed,
    /// The user has stopped it.
    Interrupted,
    /// The error has been printed already.
    Reported(ExitCode),
}

impl Failure {
    /// How the process ends.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Store(error) => error.kind().into(),
            Failure::Absent(_) => ExitCode::Absent,
            Failure::NotFound(_) => ExitCode::NotFound,
            Failure::NoFile(_) => ExitCode::NoFile,
            Failure::Empty(_) | Failure::Usage(_) => ExitCode::Usage,
            Failure::Refused(_) => ExitCode::Refused,
            Failure::OutputClosed => ExitCode::Done,
            Failure::Interrupted => ExitCode::Interrupted,
            Failure::Reported(code) => *code,
        }
    }

    /// Why a table is left out, in words, if this concerns it alone, so that a command can continue
    /// with the others.
    pub(crate) fn of_table(self) -> Result<String, Failure> {
        let is_of_table = match &self {
            Failure::Usage(_) => true,
            Failure::Store(error) => {
                matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::RulesMismatch)
            }
            _ => false,
        };
        if is_of_table { Ok(self.to_string()) } else { Err(self) }
    }

    /// Whether this may concern one of several files alone, so that a command can continue with the
    /// others.
    pub(crate) fn is_of_file(&self) -> bool {
        matches!(self, Failure::Empty(_) | Failure::Usage(_) | Failure::NoFile(_) | Failure::Refused(_))
    }

    /// The same if something may have been done before. Then it does not count as a mistake of the
    /// command line: that exit code promises that nothing was done.
    pub(crate) fn after(self, is_changed: bool) -> Failure {
        match self.exit_code() {
            ExitCode::Usage if is_changed => Failure::Refused(self.to_string()),
            _ => self,
        }
    }

    /// The same, once the answer is known: a user who has closed the output still learns it by the
    /// exit code.
    pub(crate) fn with_answer(self, answer: ExitCode) -> Failure {
        match self {
            Failure::OutputClosed => Failure::Reported(answer),
            other => other,
        }
    }

    /// The same, for input that is damaged: that is no mistake of the command line.
    pub(crate) fn of_input(self) -> Failure {
        match &self {
            Failure::Store(error) if error.kind() == ErrorKind::InvalidInput => {
                Failure::Refused(self.to_string())
            }
            _ => self,
        }
    }

    /// The same, for a line of input if it concerns that.
    pub(crate) fn at_line(self, line: u64) -> Failure {
        match self {
            Failure::Store(error) if error.kind() == ErrorKind::InvalidInput => {
                Failure::Store(error.context(format!("line {line}")))
            }
            other => other,
        }
    }

    /// A failed system call on a file that does not belong to a store.
    pub(crate) fn file(doing: &str, file: &str, error: &io::Error) -> Failure {
        let message = format!("cannot {doing} {file}: {error}");
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::Refused(format!("{file} exists already (name another file, or remove that one)"))
            }
            io::ErrorKind::NotFound => Failure::NoFile(message),
            _ => Failure::Refused(message),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Store(error) => error.fmt(f),
            Failure::Absent(message)
            | Failure::NotFound(message)
            | Failure::NoFile(message)
            | Failure::Empty(message)
            | Failure::Usage(message)
            | Failure::Refused(message) => f.write_str(message),
            Failure::Interrupted => f.write_str("stopped by Ctrl-C"),
            Failure::OutputClosed | Failure::Reported(_) => Ok(()),
        }
    }
}

impl From<folddb::Error> for Failure {
    fn from(error: folddb::Error) -> Failure {
        match error.kind() {
            ErrorKind::Stopped => Failure::Interrupted, // nothing else sets the flag
            ErrorKind::Locked if error.advice() == ErrorKind::Locked.advice() => {
                Failure::Store(error.advise(WHILE_BUSY))
            }
            _ => Failure::Store(error),
        }
    }
}

/// Only the output of the command is written without a context of its own.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Refused(format!("cannot write the output: {error}")),
        }
    }
}

impl From<csv::Error> for Failure {
    fn from(error: csv::Error) -> Failure {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => error.into(),
            other => Failure::Refused(format!("cannot write the output: {other:?}")),
        }
    }
}
