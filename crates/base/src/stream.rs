//! The one interface of a sequence of records, and of what consumes one.
//!
//! Records come in the *total order*: keys in the order of the table, and the records of one key
//! newest first. A reversed stream is the exact mirror: keys backward, the records of one key
//! oldest first. Memtables and runs provide streams; merging turns many into one; run writers are
//! sinks.

use crate::error::Result;
use crate::ids::Seq;
use crate::op::OpBuf;
use crate::record::Record;

/// A sequence of records with a current one.
pub trait RecordStream {
    /// The current record, or none at the end. The borrow ends with the next `advance`.
    fn record(&self) -> Option<Record<'_>>;

    /// Advances to the next record. At the end it stays there.
    ///
    /// # Errors
    /// A read error or damage below. The stream is then of no further use.
    fn advance(&mut self) -> Result<()>;
}

impl<S: RecordStream + ?Sized> RecordStream for Box<S> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        (**self).record()
    }
    #[inline]
    fn advance(&mut self) -> Result<()> {
        (**self).advance()
    }
}

/// Which way a stream runs through the total order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Keys in the order of the table, the records of one key newest first.
    Forward,
    /// The exact mirror: keys backward, the records of one key oldest first.
    Reversed,
}

/// Takes records in the total order.
pub trait RecordSink {
    /// Takes the next record.
    ///
    /// # Errors
    /// A write error below; the sink is then of no further use.
    fn push(&mut self, record: Record<'_>) -> Result<()>;
}

/// A record that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRecord {
    /// The key.
    pub key: Vec<u8>,
    /// Its place in the history.
    pub seq: Seq,
    /// What it does.
    pub op: OpBuf,
}

impl OwnedRecord {
    /// An owned copy.
    pub fn from_record(record: Record<'_>) -> OwnedRecord {
        OwnedRecord {
            key: record.key.to_vec(),
            seq: record.seq,
            op: OpBuf { kind: record.kind, payload: record.payload.to_vec() },
        }
    }

    /// Borrows it.
    #[inline]
    pub fn record(&self) -> Record<'_> {
        Record { key: &self.key, seq: self.seq, kind: self.op.kind, payload: &self.op.payload }
    }
}

/// A stream over records in memory; also a sink. For small sets and for tests.
#[derive(Clone, Debug, Default)]
pub struct VecStream {
    /// The records, in the order of the stream.
    pub records: Vec<OwnedRecord>,
    at: usize,
}

impl VecStream {
    /// A stream over `records`, which must be in the total order (or its mirror).
    pub fn new(records: Vec<OwnedRecord>) -> VecStream {
        VecStream { records, at: 0 }
    }
}

impl RecordStream for VecStream {
    fn record(&self) -> Option<Record<'_>> {
        self.records.get(self.at).map(OwnedRecord::record)
    }
    fn advance(&mut self) -> Result<()> {
        self.at = (self.at + 1).min(self.records.len());
        Ok(())
    }
}

impl RecordSink for VecStream {
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        self.records.push(OwnedRecord::from_record(record));
        Ok(())
    }
}
