//! The changes of an index after its checkpoint, in a short file: opening saves them if the log
//! that held them is about to be removed, and the next opening applies them before what the log
//! then holds. So an opening after a crash writes only what came since, and not the whole index.
//!
//! The file is read as a whole, and refused if any of it is damaged. Used by the engine, and to
//! verify a store.

use std::path::Path;

use folddb_base::{Error, ErrorKind, FileNumber, Result, Seq, error};
use folddb_host::WriteFile;
use folddb_host::files::Files;
use folddb_layout::hash_changes::{CHANGES_FOOTER_BYTES, Changed, ChangesFooter, put_changes, read_changes};
use folddb_layout::part::FooterFault;

use crate::checkpoint::{Checkpoint, read_at, read_error};
use crate::shard::Change;
use crate::slot::{Point, Slot};

/// A change, and the record that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Of which point.
    pub point: Point,
    /// What happened.
    pub change: Change,
    /// The seq of the record.
    pub seq: Seq,
}

impl Made {
    fn stored(&self) -> Changed {
        let (old, new) = match self.change {
            Change::Insert(new) => (0, new.bits()),
            Change::Replace { old, new } => (old.bits(), new.bits()),
            Change::Remove(old) => (old.bits(), 0),
        };
        Changed { seq: self.seq, point: self.point.bits(), old, new }
    }

    /// None if it is not a change: what was read has been checked.
    fn of(stored: &Changed) -> Option<Made> {
        let change = match (Slot::from_number(stored.old), Slot::from_number(stored.new)) {
            (None, Some(new)) => Change::Insert(new),
            (Some(old), Some(new)) => Change::Replace { old, new },
            (Some(old), None) => Change::Remove(old),
            (None, None) => return None,
        };
        Some(Made { point: Point::from_bits(stored.point), change, seq: stored.seq })
    }
}

/// The approximate number of bytes that this many changes take in a file.
pub fn changes_bytes(count: u64) -> u64 {
    count * (folddb_layout::hash_changes::CHANGE_BYTES_MIN as u64 + 1)
}

/// Writes changes that came after this checkpoint, with ascending seqs, to a new file. Returns its
/// length. What was written is durable on return; the caller syncs the name of the file.
///
/// # Errors
/// An error of the system. Then the file is useless.
pub fn write_changes(
    mut file: Box<dyn WriteFile>,
    path: &Path,
    number: FileNumber,
    (checkpoint, salt): (FileNumber, u64),
    changes: &[Made],
) -> Result<u64> {
    let stored: Vec<Changed> = changes.iter().map(Made::stored).collect();
    let mut bytes = Vec::new();
    put_changes(&mut bytes, &stored, number.0);
    let file_bytes = (bytes.len() + CHANGES_FOOTER_BYTES) as u64;
    let count = changes.len() as u64;
    ChangesFooter { number: number.0, file_bytes, count, checkpoint: checkpoint.0, salt }.put(&mut bytes);
    file.append(&bytes).map_err(|error| Error::io("write", path, error))?;
    file.sync().map_err(|error| Error::io("sync", path, error))?;
    Ok(file_bytes)
}

/// Reads the changes that came after a checkpoint.
///
/// # Errors
/// `Corruption` with file and offset, also if they belong to another checkpoint; `NewerFormat`; an
/// error of the system.
pub fn load_changes(
    files: &dyn Files,
    path: &Path,
    number: FileNumber,
    checkpoint: &Checkpoint,
) -> Result<Vec<Made>> {
    let file = files.open(path).map_err(|error| Error::io("open", path, error))?;
    let file_bytes = file.len_bytes().map_err(|error| Error::io("read the length of", path, error))?;
    let footer_at = file_bytes.checked_sub(CHANGES_FOOTER_BYTES as u64).ok_or_else(|| {
        error::corrupt(path, 0, format_args!("{file_bytes} bytes are too short for changes of an index"))
    })?;
    let mut bytes = [0; CHANGES_FOOTER_BYTES];
    file.read_exact_at(footer_at, &mut bytes).map_err(|error| read_error(path, footer_at, error))?;
    let footer = ChangesFooter::read(&bytes, number.0, file_bytes).map_err(|fault| match fault {
        FooterFault::Malformed(fault) => error::corrupt(path, footer_at, format_args!("the footer: {fault}")),
        FooterFault::Newer(version) => Error::new(
            ErrorKind::NewerFormat,
            format!("{} holds changes of format version {version}", path.display()),
        ),
    })?;
    if footer.checkpoint != checkpoint.number().0 || footer.salt != checkpoint.salt() {
        let what = format_args!("it holds what came after checkpoint {}", footer.checkpoint);
        return Err(error::corrupt(path, footer_at, what));
    }
    let stored = read_at(&*file, path, 0, footer_at)?;
    let changes = read_changes(&stored, footer.count, number.0);
    let changes = changes.map_err(|fault| error::corrupt(path, 0, fault))?;
    Ok(changes.iter().filter_map(Made::of).collect())
}

#[cfg(test)]
#[path = "changes/tests.rs"]
mod tests;
