//! Reads the manifests of a directory as far as they can be read, and lists the damage.
//!
//! [`crate::load`] fails at the first fault. This continues: it returns the state before the first
//! fault, and the state with the whole edits after it. It is for examining and repairing stores
//! that do not open.

use std::path::Path;

use folddb_base::{Error, FileNumber, Result, error};
use folddb_host::Host;
use folddb_layout::manifest_edit::{Change, EditFrame, EditKind, claimed_changes, decode_edit};

use crate::log::{later_edit, list, manifest_path, read_all};
use crate::state::State;

/// A manifest, read as far as it can be read.
#[derive(Clone, Debug)]
pub struct Examined {
    /// Its number.
    pub number: FileNumber,
    /// Its length in bytes.
    pub len_bytes: u64,
    /// Whole edits in it, the snapshot included.
    pub edits: u64,
    /// Its state before the first fault, if it has one. None if no snapshot could be read.
    pub state: Option<State>,
    /// If it has faults: the state with the edits after them as well, as far as they fit.
    pub patched: Option<State>,
    /// The tables that its whole edits create: number, name and rules, the latest last.
    pub created: Vec<Change>,
    /// If its snapshot is not whole: the tables that are named in its bytes. No checksum protects
    /// them.
    pub claimed: Vec<Change>,
    /// Bytes of an edit at the end that was cut short.
    pub cut_bytes: u64,
    /// What is wrong with it.
    pub faults: Vec<EditFault>,
}

/// A faulty place in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditFault {
    /// The offset in the file.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// True if a newer version may have written it.
    pub is_newer: bool,
}

impl Examined {
    /// True when it begins with a whole snapshot and nothing is wrong with it.
    pub fn is_whole(&self) -> bool {
        self.state.is_some() && self.faults.is_empty()
    }
}

/// Reads all manifests of a directory, the newest first.
///
/// # Errors
/// The directory cannot be listed. If a manifest cannot be read, that is one of its faults.
pub fn examine(host: &Host, dir: &Path) -> Result<Vec<Examined>> {
    let (numbers, _) = list(host, dir)?;
    Ok(numbers.iter().rev().map(|&number| examine_one(host, dir, number)).collect())
}

fn examine_one(host: &Host, dir: &Path, number: FileNumber) -> Examined {
    let mut examined = Examined {
        number,
        len_bytes: 0,
        edits: 0,
        state: None,
        patched: None,
        created: Vec::new(),
        claimed: Vec::new(),
        cut_bytes: 0,
        faults: Vec::new(),
    };
    match read_all(host, &manifest_path(dir, number)) {
        Ok(bytes) => examined.read(&bytes),
        Err(error) => examined.fault(0, error.message(), false),
    }
    examined
}

impl Examined {
    fn fault(&mut self, offset: usize, what: impl ToString, is_newer: bool) {
        let offset = offset as u64;
        self.faults.push(EditFault { offset, what: what.to_string(), is_newer });
    }

    fn read(&mut self, bytes: &[u8]) {
        self.len_bytes = bytes.len() as u64;
        let (mut state, mut at) = (State::default(), 0);
        while at < bytes.len() {
            let decoded = decode_edit(&bytes[at..], self.number, at as u64);
            if let Ok(Some(frame)) = decoded {
                self.edit(&mut state, at, &frame);
                at += frame.len_bytes;
                continue;
            }
            match later_edit(bytes, self.number, at) {
                Some(later) => {
                    self.fault(
                        at,
                        format!("no whole edit, but there is one at offset {later}"),
                        decoded.is_err(),
                    );
                    at = later;
                }
                None if decoded.is_err() => {
                    self.fault(at, "an edit of a kind that this version does not know", true);
                    break;
                }
                None => {
                    self.cut_bytes = (bytes.len() - at) as u64;
                    break;
                }
            }
        }
        match self.faults.first() {
            None => self.state = (self.edits > 0).then_some(state),
            Some(first) => {
                self.state = state_before(bytes, self.number, first.offset as usize);
                self.patched = (self.edits > 0).then_some(state);
            }
        }
        if self.state.is_none() {
            self.claimed = claimed_changes(bytes);
            self.claimed.retain(|change| matches!(change, Change::CreateTable { .. }));
        }
    }

    /// Applies an edit, as far as it fits; what does not fit is a fault, unless an earlier fault
    /// may be the reason.
    fn edit(&mut self, state: &mut State, at: usize, frame: &EditFrame<'_>) {
        let expected = if at == 0 { EditKind::Snapshot } else { EditKind::Edit };
        if frame.kind != expected {
            self.fault(at, "a snapshot not at the beginning, or an edit there", false);
        }
        self.edits += 1;
        let changes = match frame.changes() {
            Ok(changes) => changes,
            Err(cause) => {
                return self.fault(
                    at,
                    format!("it has something that this version does not know: {cause}"),
                    true,
                );
            }
        };
        let is_first = self.faults.is_empty();
        for change in changes {
            let applied = state.apply(&change);
            if let (true, Err(cause)) = (is_first, applied) {
                self.fault(at, format!("{change:?}: {cause}"), false);
            }
            if matches!(change, Change::CreateTable { .. }) {
                self.created.push(change);
            }
        }
    }
}

/// The state after the edits before `end`, which are all whole; none if there are none.
fn state_before(bytes: &[u8], number: FileNumber, end: usize) -> Option<State> {
    let (mut state, mut at) = (State::default(), 0);
    while at < end
        && let Ok(Some(frame)) = decode_edit(&bytes[at..], number, at as u64)
        && let Ok(changes) = frame.changes()
    {
        changes.iter().try_for_each(|change| state.apply(change)).ok()?;
        at += frame.len_bytes;
    }
    (at > 0).then_some(state)
}

impl EditFault {
    /// The error for it. `path` is the manifest.
    pub fn to_error(&self, path: &Path) -> Error {
        error::corrupt(path, self.offset, &self.what)
    }
}

#[cfg(test)]
#[path = "examine/tests.rs"]
mod tests;
