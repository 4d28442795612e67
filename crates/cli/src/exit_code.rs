//! Exit codes: 0 done, 1 not found, 2 usage, 3 damaged or refused, 4 checked and found something
//! wrong, 5 imported, but not everything, 130 stopped by Ctrl-C.
//!
//! The one place that maps a kind of error to a code.

use folddb::ErrorKind;

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// It is done.
    Done = 0,
    /// The store, the table, the key, or a named file does not exist.
    NotFound = 1,
    /// The command line, or what it names, is wrong.
    Usage = 2,
    /// The store is damaged, or the store or the operating system refuses.
    Refused = 3,
    /// The command has done its work, and what it checked is damaged, was not saved completely, or
    /// differs.
    Damaged = 4,
    /// The command has finished, and some rows, or all, were not imported as intended.
    NotAllIn = 5,
    /// Ctrl-C stopped it: 128 and the number of the signal, as shells have it.
    Interrupted = 130,
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
            _ => ExitCode::Refused,
        }
    }
}
