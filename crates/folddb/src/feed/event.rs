//! What a feed covers, its events, and positions in it.

use std::sync::Arc;
use std::time::SystemTime;

use folddb_base::{Lsn, Seq as RawSeq};

use folddb_engine::seq::Seq;
use folddb_engine::values::head::Head;

/// What a feed covers, and how much it may retain. Default all tables, beginning with their rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct FeedOptions {
    pub(crate) table: Option<String>,
    pub(crate) prefix: Vec<u8>,
    pub(crate) bytes_max: Option<u64>,
    pub(crate) from_now: bool,
}

impl FeedOptions {
    /// The only table that it covers; all if none. It need not exist yet, and may be dropped and
    /// created again.
    pub fn table(mut self, name: Option<&str>) -> FeedOptions {
        self.table = name.map(str::to_owned);
        self
    }

    /// It covers keys whose bytes have this prefix. Default empty: all keys.
    pub fn prefix(mut self, prefix: &[u8]) -> FeedOptions {
        self.prefix = prefix.to_vec();
        self
    }

    /// The budget: how many bytes of log and values may be kept only for this feed. If they exceed
    /// it, the feed is lost, and begins again. None keeps the budget of an existing feed, and gives
    /// a new one 1 GiB; a given budget applies from the opening on. Raise it if the consumer may be
    /// away for long. With `u64::MAX` the feed is never lost for lack of space: if the disk is full
    /// or the store at its bound, writes wait for its consumer.
    pub fn bytes_max(mut self, bytes: Option<u64>) -> FeedOptions {
        self.bytes_max = bytes;
        self
    }

    /// Whether it begins with the next changes, and gives no rows. Default no.
    pub fn from_now(mut self, from_now: bool) -> FeedOptions {
        self.from_now = from_now;
        self
    }
}

/// A table, in feeds.
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

/// An event of a feed. A consumer that meets one it does not know stops with an error: without it,
/// what follows would be applied to something else.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FeedEvent {
    /// Forget everything that this feed has given before: a complete copy follows.
    Begin {
        /// The rows are as of this seq.
        seq: Seq,
        /// And as of this time.
        time: SystemTime,
    },
    /// A table exists.
    TableCreated(Arc<FeedTable>),
    /// A table was dropped, with everything in it.
    TableDropped(Arc<FeedTable>),
    /// The value of a key.
    Row(FeedRow),
    /// There are no more rows. Acknowledging this, or anything after it, acknowledges all of them.
    RowsEnd,
    /// A complete batch, without ops that the feed does not cover.
    Batch(FeedBatch),
}

/// The value of a key when the feed began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedRow {
    /// The table.
    pub table: Arc<FeedTable>,
    /// The key.
    pub key: Vec<u8>,
    /// Its value; none if it is long, or if the fold fails on the key.
    pub value: Option<Vec<u8>>,
    /// The head of a value of more than 16 MiB, with its length: such a value must be read from the
    /// store.
    pub long: Option<Head>,
    /// Its deadline; none if it lasts forever.
    pub deadline: Option<SystemTime>,
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedBatch {
    /// The seq of its first op, covered or not.
    pub first_seq: Seq,
    /// The seq of its last.
    pub last_seq: Seq,
    /// When it was written, if one of its tables or an age for deletes needs that.
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
    /// The deadline of its value; none if it lasts forever.
    pub deadline: Option<SystemTime>,
}

/// What an op does to its key. A consumer that meets one it does not know stops with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeedChange {
    /// Sets the value.
    Put(Vec<u8>),
    /// Gives an absent key this value.
    PutIfAbsent(Vec<u8>),
    /// Folds this operand onto the value.
    Fold(Vec<u8>),
    /// Makes the key absent.
    Delete,
    /// Deletes all keys from the key up to, but not including, this one, in the order of the table.
    DeleteRange(Vec<u8>),
    /// Sets a value that is too long for an event (more than 16 MiB), of this many bytes: read it
    /// from the store.
    PutLong(u64),
    /// Gives an absent key such a value.
    PutIfAbsentLong(u64),
    /// Folds an operand of this many bytes onto the value: read the value from the store.
    FoldLong(u64),
}

/// A position in a feed: everything up to an event. Later ones are greater.
#[derive(Clone, Copy, Debug)]
pub struct FeedPosition {
    pub(crate) seq: RawSeq,
    pub(crate) lsn: Lsn,
    pub(crate) note: u64,
    /// Not among the rows.
    pub(crate) is_settled: bool,
    /// How often the feed had begun by then, in this process. It is not part of the position.
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
