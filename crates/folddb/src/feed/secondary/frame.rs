//! A batch in the log.

use folddb_base::checksum::GrowingHash;
use folddb_base::{Lsn, Seq};
use folddb_journal::follow::Followed;
use folddb_layout::frame::{self, LogOp};

/// A batch in the log.
pub(crate) struct ReadFrame {
    pub(crate) lsn: Lsn,
    pub(crate) end_lsn: Lsn,
    pub(crate) first_seq: Seq,
    count: u32,
    time_ms: Option<u64>,
    pub(crate) payload: Vec<u8>,
}

impl ReadFrame {
    pub(crate) fn of(batch: &Followed<'_>) -> ReadFrame {
        let Followed { lsn, end_lsn, first_seq, count, time_ms, payload } = *batch;
        ReadFrame { lsn, end_lsn, first_seq, count, time_ms, payload: payload.to_vec() }
    }

    pub(crate) fn followed(&self) -> Followed<'_> {
        let ReadFrame { lsn, end_lsn, first_seq, count, time_ms, ref payload } = *self;
        Followed { lsn, end_lsn, first_seq, count, time_ms, payload }
    }

    pub(crate) fn last_seq(&self) -> Seq {
        self.first_seq + u64::from(self.count).saturating_sub(1)
    }

    /// A hash of the batch, independent of the places of its values, which recovery may change.
    pub(crate) fn mark(&self) -> u64 {
        let mut hash = GrowingHash::new(self.first_seq);
        for record in frame::records(&self.payload).flatten() {
            hash.push(&record.table.0.to_le_bytes());
            hash.push(&[record.op.code()]);
            hash.push(&(record.key.len() as u64).to_le_bytes());
            hash.push(record.key);
            if matches!(record.op, LogOp::Op(_) | LogOp::RangeDelete) && record.pointer().is_none() {
                hash.push(record.payload);
            }
        }
        hash.hash64()
    }
}
