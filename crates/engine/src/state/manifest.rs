//! The manifest of an open store. Each edit also records how far the log is durable.

use std::borrow::Cow;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Lsn, Result};
use folddb_journal::JournalSync;
use folddb_manifest::{Change, ManifestLog, State};

/// The list of what lives; without a log in a store that is opened for reading.
pub enum Manifest {
    /// Each edit records how far this log is durable, once it has begun.
    Log(Box<ManifestLog>, Option<Arc<JournalSync>>),
    ReadOnly(Arc<State>),
}

impl Manifest {
    /// What lives.
    pub fn state(&self) -> &Arc<State> {
        match self {
            Manifest::Log(log, _) => log.state(),
            Manifest::ReadOnly(state) => state,
        }
    }

    /// Closes the file.
    pub fn let_go(&mut self) {
        *self = Manifest::ReadOnly(Arc::clone(self.state()));
    }

    /// Makes changes in a new file, whose snapshot includes them.
    pub(crate) fn append_in_snapshot(&mut self, changes: &[Change]) -> Result<()> {
        match self {
            Manifest::Log(log, _) => log.append_in_snapshot(changes),
            Manifest::ReadOnly(_) => Err(read_only()),
        }
    }

    /// Makes every edit from now on record how far this log is durable.
    pub(crate) fn vouch_for(&mut self, journal: Arc<JournalSync>) {
        if let Manifest::Log(_, vouched) = self {
            *vouched = Some(journal);
        }
    }

    /// Makes changes, all or none; durable when it returns.
    pub fn append(&mut self, changes: &[Change]) -> Result<()> {
        match self {
            Manifest::Log(log, None) => log.append(changes),
            Manifest::Log(log, Some(journal)) => {
                let durable_lsn = journal.durable_lsn();
                log.append(&vouching(log.state(), changes, durable_lsn))?;
                journal.note_vouched(durable_lsn);
                Ok(())
            }
            Manifest::ReadOnly(_) => Err(read_only()),
        }
    }
}

/// The changes, and that the log is durable up to here, so that a missing part of it is noticed.
pub(crate) fn vouching<'a>(state: &State, changes: &'a [Change], durable_lsn: Lsn) -> Cow<'a, [Change]> {
    if durable_lsn <= state.durable_lsn {
        return Cow::Borrowed(changes);
    }
    let (last_seq, log_start_lsn) = (state.last_seq, state.log_start_lsn);
    let vouched = Change::Horizon { last_seq, log_start_lsn, durable_lsn };
    Cow::Owned([changes, &[vouched]].concat())
}

pub fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "the store is opened for reading only")
}
