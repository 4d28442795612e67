//! The one error of FoldDB: what failed, where, and what the caller can do.
//!
//! Every crate returns it, so a message is written once, where the facts are known, and only gets
//! more context on its way up. Cloning is cheap: a poisoned store answers with the same error
//! again.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of nearly every call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of error, by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call itself is wrong: a key that is too long, reversed bounds, text that does not parse.
    /// Correct the call.
    InvalidInput,
    /// There is no store at this path. Check the path, or create the store.
    StoreNotFound,
    /// There is something at this path already. Choose another path, or open what is there.
    AlreadyExists,
    /// The store has no table of this name.
    TableNotFound,
    /// The table has different rules: another fold, key type or order. Open it with its own
    /// rules.
    RulesMismatch,
    /// Another process, or another handle of this one, has the store open.
    Locked,
    /// The store was written by a newer version of FoldDB, or by one that was built with a feature
    /// that this one lacks. Use that one.
    NewerFormat,
    /// The operating system refuses access to a file.
    Permission,
    /// The disk, or the disk quota of the store, is full. Writes resume on their own when there is
    /// space again.
    NoSpace,
    /// A `Sync` commit is written and visible, but the disk has not confirmed it. Do not write it
    /// again: reopen the store and read whether it is there.
    NotDurable,
    /// Bytes on disk are not what was written. The message names file and offset.
    Corruption,
    /// An earlier write or sync failed, so nothing more is written. Reads still work; reopen the
    /// store to write.
    Poisoned,
    /// The table's fold function failed on this key. Other keys are untouched.
    FoldFailed,
    /// Others wrote to what a transaction had read before it was committed. Nothing of it is
    /// written: start again.
    Conflict,
    /// What a snapshot saw is no longer kept.
    SnapshotTooOld,
    /// A feed has lost its place: what it had yet to give is no longer kept. Start it again.
    FeedLost,
    /// The store or the table is opened for reading only.
    ReadOnly,
    /// The store is closed, or the table is dropped.
    Closed,
    /// The caller has stopped this work, by a flag or from a callback. Each call says what stays of
    /// it.
    Stopped,
    /// Any other failure of the operating system.
    Io,
}

impl ErrorKind {
    /// What the caller can do, as an imperative sentence; empty if the message says it all.
    pub fn advice(self) -> &'static str {
        match self {
            ErrorKind::InvalidInput | ErrorKind::FoldFailed | ErrorKind::Stopped => "",
            ErrorKind::StoreNotFound => "check the path, or create the store first",
            ErrorKind::AlreadyExists => "choose another name, or open what is there",
            ErrorKind::TableNotFound => "list the tables, or create this one",
            ErrorKind::RulesMismatch => "open the table with the rules that it has",
            ErrorKind::Locked => "close the other one first",
            ErrorKind::NewerFormat => "open it with the version of FoldDB that wrote it",
            ErrorKind::Permission => "check the owner and the mode of the file",
            ErrorKind::NoSpace => "free some space; writing resumes by itself",
            ErrorKind::NotDurable => {
                "do not write it again: it is committed and visible; reopen the store and read whether it is still there"
            }
            ErrorKind::Corruption => "restore a backup, or salvage what is whole into a new store",
            ErrorKind::Poisoned => "reopen the store to write again; reads go on",
            ErrorKind::Conflict => "begin the transaction again",
            ErrorKind::SnapshotTooOld => {
                "read what is there now, or hold snapshots for as long as they are needed"
            }
            ErrorKind::FeedLost => "begin the feed again, with the present rows",
            ErrorKind::ReadOnly => "open the store for writing",
            ErrorKind::Closed => "open it again",
            ErrorKind::Io => "see the cause that the operating system names",
        }
    }
}

/// What failed, where, and why. See [`ErrorKind`] for what to do about it.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    message: String,
    os_error: Option<io::Error>,
    damage: Option<Damage>,
    /// Replaces the advice of the kind.
    advice: Option<&'static str>,
    is_lacking: bool,
}

/// Where the damaged bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The offset in it; none if the whole file is missing.
    pub offset: Option<u64>,
    /// What is wrong there.
    pub what: String,
}

impl Error {
    /// An error of a kind, with a message that names the thing and the place.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::of(kind, Inner { message: message.into(), ..Inner::default() })
    }

    fn of(kind: ErrorKind, inner: Inner) -> Error {
        Error { kind, inner: Arc::new(inner) }
    }

    /// An error of the most common kind.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidInput, message)
    }

    /// A failed call of the operating system: `doing` is a phrase such as "sync" or "open".
    pub fn io(doing: &str, file: &Path, os_error: io::Error) -> Error {
        let kind = kind_of(&os_error);
        let message = format!("cannot {doing} {}: {os_error}", file.display());
        let advice = advice_of(&os_error);
        Error::of(kind, Inner { message, os_error: Some(os_error), advice, ..Inner::default() })
    }

    /// The same error with context in front: `context: message`.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Error {
        let message = format!("{context}: {}", self.inner.message);
        Error::of(self.kind, Inner { message, ..self.inner.copy() })
    }

    /// The same error with advice of its own, from code that knows more than the kind: an
    /// imperative sentence, empty if the message says it all.
    #[must_use]
    pub fn advise(self, advice: &'static str) -> Error {
        Error::of(self.kind, Inner { advice: Some(advice), ..self.inner.copy() })
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What the caller can do; empty if the message says it all.
    pub fn advice(&self) -> &'static str {
        self.inner.advice.unwrap_or_else(|| self.kind.advice())
    }

    /// Where the damage is; none for other errors, and for damage that is in no single file.
    pub fn damage(&self) -> Option<&Damage> {
        self.inner.damage.as_ref()
    }

    /// True if something is missing that must be there; the data that refers to it may be what is
    /// wrong instead.
    pub fn is_lacking(&self) -> bool {
        self.inner.is_lacking
    }

    /// The message without the advice.
    pub fn message(&self) -> &str {
        &self.inner.message
    }
}

/// Damage at `offset` of `file`: for the store, which alone knows what is damaged.
pub fn corrupt(file: &Path, offset: u64, what: impl fmt::Display) -> Error {
    let (file, what) = (file.to_owned(), what.to_string());
    let message = format!("{} is damaged at offset {offset}: {what}", file.display());
    let damage = Some(Damage { file, offset: Some(offset), what });
    Error::of(ErrorKind::Corruption, Inner { message, damage, ..Inner::default() })
}

/// Damage: a file that must be there is missing.
pub fn missing(file: &Path, why: impl fmt::Display) -> Error {
    let (file, what) = (file.to_owned(), format!("missing: {why}"));
    let message = format!("{} is {what}", file.display());
    let damage = Some(Damage { file, offset: None, what });
    Error::of(ErrorKind::Corruption, Inner { message, damage, is_lacking: true, ..Inner::default() })
}

/// Damage: something is missing that existing data refers to.
pub fn lacking(message: impl Into<String>) -> Error {
    let inner = Inner { message: message.into(), is_lacking: true, ..Inner::default() };
    Error::of(ErrorKind::Corruption, inner)
}

/// The error of the operating system, or the store's own if it was passed through [`io::Read`] or
/// [`io::Write`].
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        let os_error = match error.downcast::<Error>() {
            Ok(own) => return own,
            Err(other) => other,
        };
        let (kind, message) = (kind_of(&os_error), os_error.to_string());
        let advice = advice_of(&os_error);
        Error::of(kind, Inner { message, os_error: Some(os_error), advice, ..Inner::default() })
    }
}

/// Has this error as its cause, and can be converted back to it.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match error.kind {
            ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
            ErrorKind::StoreNotFound | ErrorKind::TableNotFound => io::ErrorKind::NotFound,
            ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
            ErrorKind::Permission => io::ErrorKind::PermissionDenied,
            ErrorKind::NoSpace => io::ErrorKind::StorageFull,
            ErrorKind::Corruption => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// The kind of an error of the operating system.
fn kind_of(os_error: &io::Error) -> ErrorKind {
    match os_error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Permission,
        _ => ErrorKind::Io,
    }
}

/// What the caller can do about an error of the operating system, where its kind says too little.
fn advice_of(os_error: &io::Error) -> Option<&'static str> {
    match os_error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("mount the file system for writing, or name a place on another one")
        }
        _ => None,
    }
}

impl Inner {
    fn copy(&self) -> Inner {
        Inner {
            message: self.message.clone(),
            os_error: self.os_error.as_ref().map(copy_os_error),
            damage: self.damage.clone(),
            ..*self
        }
    }
}

/// `io::Error` is not `Clone`; the code, or otherwise the kind and the text, is all that a caller
/// needs.
fn copy_os_error(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)?;
        match self.advice() {
            "" => Ok(()),
            advice => write!(f, " ({advice})"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.inner.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner.os_error.as_ref().map(|error| error as _)
    }
}

#[cfg(test)]
#[path = "error/tests.rs"]
mod tests;
