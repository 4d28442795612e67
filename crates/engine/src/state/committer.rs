//! What the commit lock guards: the end of the log, the next seq, the active memtables.

use std::collections::BTreeSet;
use std::sync::Arc;

use folddb_base::{Seq, TableId};
use folddb_journal::Journal;
use folddb_memtable::Memtable;

/// What the commit lock guards.
pub struct Committer {
    /// Absent in a store that is opened for reading.
    pub journal: Option<Journal>,
    pub next_seq: Seq,
    /// The active memtable of each table, by number.
    pub active: Vec<Option<Active>>,
    /// The tables whose active memtables may have been written to.
    pub written: BTreeSet<TableId>,
    /// Stripe boundaries, ascending: live snapshots, pending range deletes, and last the published
    /// seq.
    pub stripes: Vec<Seq>,
    pub stripes_version: u64,
    /// Bytes of all active memtables.
    pub active_bytes: usize,
    /// Memtables with a full tail, which is sealed once the lock is free, and their tables.
    pub full: Vec<(TableId, Arc<Memtable>)>,
}

impl Committer {
    /// The committer of a store that is being opened.
    pub(crate) fn empty() -> Committer {
        Committer {
            journal: None,
            next_seq: 1,
            active: Vec::new(),
            written: BTreeSet::new(),
            stripes: Vec::new(),
            stripes_version: u64::MAX,
            active_bytes: 0,
            full: Vec::new(),
        }
    }

    /// Bytes of all active memtables, counted anew.
    pub(crate) fn active_memtable_bytes(&self) -> usize {
        self.written().map(|active| active.bytes).sum()
    }

    pub(crate) fn active_mut(&mut self, id: TableId) -> Option<&mut Active> {
        self.active.get_mut(id.0 as usize)?.as_mut()
    }

    pub fn install_active(&mut self, active: Active) {
        let index = active.table.id.0 as usize;
        if self.active.len() <= index {
            self.active.resize_with(index + 1, || None);
        }
        self.active[index] = Some(active);
    }

    /// The active memtables that have been written to.
    pub fn written(&self) -> impl Iterator<Item = &Active> {
        let active = self.written.iter().filter_map(|id| self.active.get(id.0 as usize)?.as_ref());
        active.filter(|active| active.first_lsn.is_some())
    }

    /// Counts what sealing tails has made of memtables: a chunk with its filter, and scratch.
    pub(crate) fn recount(&mut self, sealed: &[(TableId, Arc<Memtable>)]) {
        for (id, memtable) in sealed {
            match self.active_mut(*id) {
                Some(active) if Arc::ptr_eq(&active.memtable, memtable) => active.bytes = memtable.bytes(),
                _ => continue, // it is sealed itself by now, and counted by who did that
            }
            self.count_bytes(*id);
        }
    }

    /// Updates the total with the present bytes of a table's active memtable. It may decrease:
    /// merged chunks take less.
    pub(crate) fn count_bytes(&mut self, id: TableId) {
        let Some(active) = self.active.get_mut(id.0 as usize).and_then(Option::as_mut) else { return };
        let counted = std::mem::replace(&mut active.bytes_counted, active.bytes);
        self.active_bytes = self.active_bytes - counted + active.bytes;
    }
}

/// An active memtable, in the committer.
pub struct Active {
    pub table: Arc<crate::state::catalog::TableCore>,
    pub memtable: Arc<Memtable>,
    /// Bytes of the memtable after the last record.
    pub bytes: usize,
    /// How much of that is counted in [`Committer::active_bytes`].
    pub bytes_counted: usize,
    /// The first LSN that holds a record of the memtable.
    pub first_lsn: Option<u64>,
    /// Seqs of range deletes that are in the log and not yet in the manifest.
    pub range_delete_seqs: Vec<Seq>,
    /// Records up to here are in runs already; only replay meets any.
    pub flushed_seq: Seq,
}
