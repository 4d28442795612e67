//! How a call fails: a text where C asked for it, that begins with the kind of the error.
//!
//! ```text
//!   TableNotFound: the store has no table `visit`; it has `visits` (list the tables, or create this one)
//!   kind           what failed, and where                           what the caller can do
//! ```
//!
//! So a program shows it unchanged, and [`folddb_error_kind`] gives its kind. The library keeps no
//! last error: an error that C does not ask for is dropped.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use folddb::{ErrorKind, Result};

use crate::memory::{ErrPtr, Text};

/// The kind of an error, by what the caller can do about it. Numbers are never reused.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no error.
    Ok = 0,
    /// The call itself is wrong: a handle that is NULL or was destroyed, a key too long, a rule
    /// that does not parse. Fix the call.
    InvalidInput = 1,
    /// There is no store at this path.
    StoreNotFound = 2,
    /// There is something of this name already.
    AlreadyExists = 3,
    /// The store has no table of this name.
    TableNotFound = 4,
    /// The table has different rules.
    RulesMismatch = 5,
    /// Another process, or another handle of this one, has the store open.
    Locked = 6,
    /// The store was written by a newer version of FoldDB.
    NewerFormat = 7,
    /// The operating system refuses access to a file.
    Permission = 8,
    /// The disk, or the store's own budget, is full. Writes resume when there is space again.
    NoSpace = 9,
    /// A synced commit is written and visible, but the disk has not confirmed it.
    NotDurable = 10,
    /// Bytes on disk are not what was written.
    Corruption = 11,
    /// An earlier write failed, so nothing more is written. Reads go on; reopen the store to write.
    Poisoned = 12,
    /// The fold of the table failed on this key. Other keys are untouched.
    FoldFailed = 13,
    /// What a transaction read has changed since. Nothing of it is written: begin again.
    Conflict = 14,
    /// What a snapshot saw is no longer kept.
    SnapshotTooOld = 15,
    /// A feed has lost its place. Begin it again.
    FeedLost = 16,
    /// The store or the table is for reading only.
    ReadOnly = 17,
    /// The store is closed, the table is dropped, or the process was forked since.
    Closed = 18,
    /// A callback has asked to stop this work. What was done before stays done.
    Stopped = 19,
    /// Any other failure of the operating system.
    Io = 20,
    /// A mistake in FoldDB itself. The handles of the call may be in any state: destroy them.
    Panic = 21,
    /// A kind that this version of the library does not know.
    Unknown = 22,
}

/// Every kind by the word that its texts begin with.
const WORDS: [(&str, Kind); 21] = [
    ("InvalidInput", Kind::InvalidInput),
    ("StoreNotFound", Kind::StoreNotFound),
    ("AlreadyExists", Kind::AlreadyExists),
    ("TableNotFound", Kind::TableNotFound),
    ("RulesMismatch", Kind::RulesMismatch),
    ("Locked", Kind::Locked),
    ("NewerFormat", Kind::NewerFormat),
    ("Permission", Kind::Permission),
    ("NoSpace", Kind::NoSpace),
    ("NotDurable", Kind::NotDurable),
    ("Corruption", Kind::Corruption),
    ("Poisoned", Kind::Poisoned),
    ("FoldFailed", Kind::FoldFailed),
    ("Conflict", Kind::Conflict),
    ("SnapshotTooOld", Kind::SnapshotTooOld),
    ("FeedLost", Kind::FeedLost),
    ("ReadOnly", Kind::ReadOnly),
    ("Closed", Kind::Closed),
    ("Stopped", Kind::Stopped),
    ("Io", Kind::Io),
    ("Panic", Kind::Panic),
];

/// Runs a call of C. Returns its result, or the fallback where it fails, with the error where C
/// asks for it. A panic ends here, too.
pub(crate) fn guard<T>(errptr: ErrPtr<'_>, fallback: T, call: impl FnOnce() -> Result<T>) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => errptr.set(&format!("{:?}: {error}", error.kind())),
        Err(payload) => {
            errptr.set(&format!("Panic: {}", said(&*payload)));
            std::mem::forget(payload); // dropping it may panic
        }
    }
    fallback
}

/// The same for a call that reports no error.
pub(crate) fn guard_silently(call: impl FnOnce() -> Result<()>) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
        std::mem::forget(payload);
    }
}

fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}

/// The kind of C for this kind of the library.
pub(crate) fn kind_of(kind: ErrorKind) -> Kind {
    kind_of_text(&format!("{kind:?}:"))
}

fn kind_of_text(text: &str) -> Kind {
    let word = text.split_once(':').map_or("", |(word, _)| word);
    WORDS.iter().find(|(known, _)| *known == word).map_or(Kind::Unknown, |(_, kind)| *kind)
}

/// The kind of the error whose text a function of this header has put into `errptr`.
///
/// NULL is FOLDDB_OK. The text stays the caller's. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_error_kind(error: Text) -> Kind {
    match error.get_optional("the error") {
        Ok(None) => Kind::Ok,
        Ok(Some(text)) => kind_of_text(text),
        Err(_) => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests;
