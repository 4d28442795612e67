//! The contents of a batch: ops on hashed tables, separated values, stamps to be set, index
//! entries; and lifetimes of values.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use folddb_base::OpKind;
use folddb_base::stamp::NEVER;
use folddb_rules::time::{self, unix_ms};
use folddb_rules::value_placement::ValuePlacement;
use folddb_rules::{Expire, Terms};

/// The index entries derived from a batch.
#[derive(Default)]
pub struct Derived {
    /// The epoch of the indexes: see [`crate::state::engine::Engine::index_epoch`].
    pub epoch: u64,
    /// Where the batch's own records end.
    pub own: Option<Own>,
    /// Buffers, kept from one batch to the next.
    pub terms: Terms,
    pub entry: Vec<u8>,
    pub value: Vec<u8>,
    /// The records of each index.
    pub frames: Vec<Vec<u8>>,
}

impl Derived {
    pub fn clear(&mut self) {
        self.epoch = 0;
        self.own = None;
    }
}

#[derive(Clone, Copy)]
pub struct Own {
    pub payload_bytes: usize,
    pub count: u32,
    pub tables: usize,
}

/// An op on a hashed table, before it is resolved.
#[derive(Clone, Debug)]
pub struct HashedOp {
    /// Its place among the tables of the batch.
    pub table: usize,
    pub kind: OpKind,
    /// Where its key is: among the records of values if it has one, otherwise among the loose
    /// bytes.
    pub key: Range<usize>,
    pub value: Range<usize>,
    /// Its value's record, if it has a value and that has no front, which is not known yet.
    pub record: Option<ValueRecord>,
    pub lifetime: Lifetime,
}

/// The record of a value, as in the value log.
#[derive(Clone, Debug)]
pub struct ValueRecord {
    pub range: Range<usize>,
    pub hash: u32,
}

/// How long a value lasts, in a table whose values may expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lifetime {
    /// As the rules of the table say.
    #[default]
    Default,
    /// This long after it is written; to the millisecond.
    For(Duration),
    /// Until this time; to the millisecond.
    Until(SystemTime),
    /// Forever.
    Forever,
}

impl Lifetime {
    /// The deadline of a value written at this time.
    pub(crate) fn deadline_ms(self, write_ms: u64, expire: Expire) -> u64 {
        let deadline_ms = match self {
            Lifetime::Default => {
                return time::default_ms(expire)
                    .map_or(NEVER, |ms| write_ms.saturating_add(ms).min(NEVER - 1));
            }
            Lifetime::Forever => return NEVER,
            Lifetime::For(time) => write_ms.saturating_add(u64::try_from(time.as_millis()).unwrap_or(NEVER)),
            Lifetime::Until(deadline) => unix_ms(deadline),
        };
        deadline_ms.min(NEVER - 1)
    }
}

/// A stamp that is not set yet.
pub struct Stamped {
    /// Its place in the payload of the batch: of the stamp, or of the pointer that has its times.
    pub at: usize,
    /// The place of a pointer's deadline; none if it is in the stamp.
    pub deadline_at: Option<usize>,
    pub lifetime: Lifetime,
    pub expire: Expire,
}

/// An op whose value is separated.
pub struct Separated {
    /// The place of its pointer in the payload.
    pub pointer_at: usize,
    /// The place of its value's record among the values.
    pub record: Range<usize>,
    /// Whether its time is that of the commit.
    pub is_timed: bool,
    /// The placement by the rules of its table.
    pub value_placement: ValuePlacement,
}
