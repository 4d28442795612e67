//! What a feed reports, what it gives, and where in it somebody is.

use std::sync::Arc;
use std::time::SystemTime;

use folddb_base::{Lsn, Seq as RawSeq};

use folddb_engine::seq::Seq;
use folddb_engine::values::head::Head;

/// What a feed reports, and how much it may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedOptions {
    /// The only table that it reports; all where there is none. It need not be there yet, and may
    /// come and go.
    pub table: Option<String>,
    /// It reports keys whose bytes begin so.
    pub prefix: Vec<u8>,
    /// Bytes of log and values that are kept only for this feed: its budget. With more than that
    /// the feed is lost, and begins again. None leaves a feed that is there the one that it has,
    /// and gives a new one 1 GiB; one that is given counts from the opening on. Raise it where the
    /// consumer may be away for long. With `u64::MAX` the feed is never lost for space: where the
    /// disk is full or the store at its bound, writes wait for its consumer.
    pub bytes_max: Option<u64>,
    /// Whether it begins with what comes now, and gives no rows.
    pub from_now: bool,
}

/// A table, as feeds report it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedTable {
    /// Its number, which no other table of the store ever has.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its rules, as text.
    pub rules_text: String,
}

/// What a feed gives.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedEvent {
    /// Forget all that this feed has given before: what comes now is everything.
    Begin {
        /// The rows are as of this seq.
        seq: Seq,
        /// And as of this time.
        time: SystemTime,
    },
    /// There is a table.
    TableCreated(Arc<FeedTable>),
    /// A table is gone, with all that is in it.
    TableDropped(Arc<FeedTable>),
    /// What a key has.
    Row(FeedRow),
    /// There are no more rows. To acknowledge this, or anything after it, is to have them all.
    RowsEnd,
    /// A batch, whole, but for ops on what the feed does not report.
    Batch(FeedBatch),
}

/// What a key had when the feed began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedRow {
    /// The table.
    pub table: Arc<FeedTable>,
    /// The key.
    pub key: Vec<u8>,
    /// Its value; none where it is long, and where the fold fails on the key.
    pub value: Option<Vec<u8>>,
    /// The head of a value of more than 16 MiB, with its length: such a one is not handed out
    /// whole, read it from the store.
    pub long: Option<Head>,
    /// Until when it lasts; none where it does forever.
    pub deadline: Option<SystemTime>,
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedBatch {
    /// The seq of its first op, told or not.
    pub first_seq: Seq,
    /// The seq of its last.
    pub last_seq: Seq,
    /// When it was written, where a table of it or an age for deletes asks for that.
    pub written: Option<SystemTime>,
    /// Its ops, in order.
    pub ops: Vec<FeedOp>,
}

/// An op of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedOp {
    /// The table.
    pub table: Arc<FeedTable>,
    /// Its seq.
    pub seq: Seq,
    /// The key; of a range delete, the first that is deleted.
    pub key: Vec<u8>,
    /// What it does.
    pub change: FeedChange,
    /// Until when the value that it brings lasts; none where it does forever.
    pub deadline: Option<SystemTime>,
}

/// What an op does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedChange {
    /// Makes the value this one.
    Put(Vec<u8>),
    /// Gives an absent key this value.
    PutIfAbsent(Vec<u8>),
    /// Folds this operand on.
    Fold(Vec<u8>),
    /// Makes the key absent.
    Delete,
    /// Makes all keys from the key on and below this one, in the order of the table, absent.
    DeleteRange(Vec<u8>),
    /// Makes the value one that is too long to be handed out whole (more than 16 MiB), of this many
    /// bytes: read it from the store.
    PutLong(u64),
    /// Gives an absent key such a value.
    PutIfAbsentLong(u64),
    /// Folds an operand of this many bytes on: read its value from the store.
    FoldLong(u64),
}

/// A place in a feed: all up to an event. Later ones are greater.
#[derive(Clone, Copy, Debug)]
pub struct FeedPosition {
    pub(crate) seq: RawSeq,
    pub(crate) lsn: Lsn,
    pub(crate) note: u64,
    /// Not among the rows.
    pub(crate) is_settled: bool,
    /// How often the feed had begun by then, in this process. It says nothing of where the place
    /// is.
    pub(crate) begun: u64,
}

impl FeedPosition {
    /// The seq of the last op before it.
    pub fn seq(&self) -> Seq {
        self.seq.into()
    }

    fn place(&self) -> (RawSeq, Lsn, u64, bool) {
        (self.seq, self.lsn, self.note, self.is_settled)
    }
}

impl PartialEq for FeedPosition {
    fn eq(&self, other: &FeedPosition) -> bool {
        self.place() == other.place()
    }
}

impl Eq for FeedPosition {}

impl PartialOrd for FeedPosition {
    fn partial_cmp(&self, other: &FeedPosition) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FeedPosition {
    fn cmp(&self, other: &FeedPosition) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}
