//! Batches: ops on any tables of a store that take effect together or not at all.

pub(crate) mod verbs;
pub(crate) mod long_values;

use std::sync::Arc;

use folddb_base::limits::BATCH_BYTES_MAX;
use folddb_base::{Error, OpKind, Result};
use folddb_rules::codec::{AsKey, AsValue, KeyPrefix};

use crate::batch::verbs::{Gather, Written, gather, gather_prefix, gather_range, gathering_verbs};
use crate::reader::AnyTable;
use crate::table::bytes::BytesTable;
use folddb_engine::options::Durability;
use folddb_engine::seq::Seq;
use folddb_engine::state::engine::Engine;
use folddb_engine::write::commit;
use folddb_engine::write::encoded_batch::{Encoded, WriteOp};
use folddb_engine::write::read_set::ReadSet;

/// Ops that are committed together: after a crash all of them are there or none, and no reader ever
/// sees only some. A batch that is dropped without [`Batch::commit`] does nothing.
///
/// Mistakes (a key too long, a table of another store) are remembered and returned by `commit`, so
/// that calls can be chained.
#[must_use = "a batch writes nothing until it is committed"]
pub struct Batch {
    engine: Arc<Engine>,
    encoded: Encoded,
    buffers: (Vec<u8>, Vec<u8>),
    mistake: Option<Error>,
}

impl Batch {
    pub(crate) fn new(engine: Arc<Engine>) -> Batch {
        let mut encoded = Encoded::default();
        encoded.clear();
        Batch { engine, encoded, buffers: Default::default(), mistake: None }
    }

    fn accepts(&mut self, engine: &Arc<Engine>) -> bool {
        if !Arc::ptr_eq(engine, &self.engine) {
            self.remember(Err(Error::invalid("a batch takes tables of its own store only")));
        } else if self.encoded.len_bytes() > BATCH_BYTES_MAX {
            let message = format!("a batch holds at most {BATCH_BYTES_MAX} bytes; commit it in several");
            self.remember(Err(Error::invalid(message)));
        }
        self.mistake.is_none()
    }

    fn remember(&mut self, pushed: Result<()>) {
        if let (Err(error), None) = (pushed, &self.mistake) {
            self.mistake = Some(error);
        }
    }

    /// How many ops are in the batch.
    pub fn len(&self) -> usize {
        self.encoded.count as usize
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.encoded.count == 0
    }

    /// Bytes of the batch in the log.
    pub fn len_bytes(&self) -> usize {
        self.encoded.len_bytes()
    }

    /// Commits the batch and empties it, so that it can be used again. Returns the sequence number
    /// of its last record.
    ///
    /// # Errors
    /// The first mistake made while filling it (then nothing is written);
    /// [`crate::ErrorKind::NoSpace`] if the disk is full; [`crate::ErrorKind::Poisoned`] after an
    /// earlier failed write; any failure of the operating system. The batch is emptied even on
    /// failure.
    pub fn commit(&mut self, durability: Durability) -> Result<Seq> {
        self.commit_if(None, durability)
    }

    /// The same, if what was read still holds.
    pub(crate) fn commit_if(&mut self, reads: Option<&ReadSet>, durability: Durability) -> Result<Seq> {
        let result = match self.mistake.take() {
            Some(mistake) => Err(mistake),
            None if self.encoded.len_bytes() > BATCH_BYTES_MAX => Err(Error::invalid(format!(
                "a batch holds at most {BATCH_BYTES_MAX} bytes; commit it in several"
            ))),
            None => commit::commit_if(&self.engine, &mut self.encoded, reads, durability).map(Seq::from),
        };
        self.encoded.clear();
        result
    }
}

impl Gather for Batch {
    #[inline]
    fn buffers(&mut self) -> &mut (Vec<u8>, Vec<u8>) {
        &mut self.buffers
    }

    #[inline]
    fn take(&mut self, table: &BytesTable, op: Written<'_>, checked: Result<()>) {
        if checked.is_err() {
            return self.remember(checked);
        }
        if self.accepts(table.engine()) {
            let core = table.core();
            let pushed = self.encoded.push_lasting(core, op.kind, op.key, op.value, table.lifetime);
            self.remember(pushed);
        }
    }

    fn take_range(&mut self, table: &BytesTable, from: &[u8], to: &[u8]) {
        if self.accepts(table.engine()) {
            let pushed = self.encoded.push_range_delete(table.core(), from, to);
            self.remember(pushed);
        }
    }
}

gathering_verbs!(Batch);

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({} ops)", self.len())
    }
}
