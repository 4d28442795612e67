//! What a player holds next to its store: scans that were left, open transactions and loads, the
//! consumer of the feed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use folddb::{BytesBulkLoad, Feed, FeedPosition, SecondaryFeed, Snapshot, Store, Transaction};
use folddb_base::Seq;

use crate::compare::Dumped;
use crate::known::Contents;
use crate::model::Model;
use crate::program::{ScanShape, TableOp};
use crate::replica::Replica;
use crate::tables::{Mark, Shape};

/// A scan that was left.
pub(super) struct Left {
    pub(super) token: Vec<u8>,
    pub(super) table: String,
    /// Which of the tables of that name.
    pub(super) born: u64,
    pub(super) shape: Shape,
    pub(super) scan: ScanShape,
    /// The seq that it saw.
    pub(super) seq: Seq,
    /// The time that it read at.
    pub(super) time_ms: u64,
    /// It has reached its end.
    pub(super) has_ended: bool,
    /// The rows that it has shown, and those that it would have shown.
    pub(super) shown: Vec<Dumped>,
    pub(super) rest: Vec<Dumped>,
}

/// A transaction, and its expected meaning.
pub(super) struct Running {
    pub(super) transaction: Transaction,
    /// What it has read.
    pub(super) reads: BTreeSet<(String, Vec<u8>)>,
    /// The tables that it has scanned: a range delete may be a conflict even if it deletes no key
    /// that the scan saw.
    pub(super) scanned: BTreeSet<String>,
    /// The tables whose indexes it has asked.
    pub(super) found: BTreeMap<String, Found>,
    /// What it has written, in order.
    pub(super) ops: Vec<(TableOp, Shape)>,
    /// The numbers of the tables that it has used, by their names.
    pub(super) met: BTreeMap<String, u64>,
}

/// What a transaction has found in an index.
pub(super) struct Found {
    pub(super) shape: Shape,
    /// The first seq that the index can be asked for, and whether a find may have been refused.
    pub(super) since: Seq,
    pub(super) may_be_refused: bool,
    /// All hits at the snapshot.
    pub(super) at_snapshot: Vec<(Mark, Vec<u8>)>,
}

/// An open load, and the result of its table.
pub(super) struct Loading {
    pub(super) load: BytesBulkLoad,
    pub(super) slot: u8,
    pub(super) shape: Shape,
    /// The seq that its rows will have.
    pub(super) seq: Seq,
    /// When it began.
    pub(super) begun_ms: u64,
    /// A store with the rows so far.
    pub(super) so_far: Model,
    pub(super) last: Option<Vec<u8>>,
}

/// A store that was opened next to its writer.
pub(super) struct Secondary {
    pub(super) store: Store,
    /// Its contents then.
    pub(super) contents: Contents,
    /// Its tables by their names, as they were then: the writer may make others of the same name.
    pub(super) shapes: BTreeMap<String, Shape>,
}

impl Secondary {
    /// The part of some contents in tables of such shapes.
    pub(super) fn of(&self, contents: &Contents, is_such: impl Fn(&Shape) -> bool) -> Contents {
        let is_in = |name: &String| self.shapes.get(name).is_some_and(&is_such);
        contents.iter().filter(|(name, _)| is_in(name)).cloned().collect()
    }
}

/// A snapshot of a moment in the past.
pub(super) struct Past {
    pub(super) snapshot: Snapshot,
    /// The tables that kept that moment then, as the number of each.
    pub(super) kept: Vec<u64>,
}

impl Past {
    pub(super) fn has_ended(&self) -> bool {
        self.snapshot.has_ended()
    }
}

/// See the top of this file.
#[derive(Default)]
pub(super) struct Consumer {
    /// Open while the store is.
    pub(super) feed: Option<Feed>,
    pub(super) replica: Replica,
    /// The reader of the feed next to the store, in this world, and its replica.
    pub(super) secondary: Option<(SecondaryFeed, Replica)>,
    /// The replica at each position that may be acknowledged, oldest first: one, and a second where
    /// the outcome is not known.
    pub(super) kept: Vec<(FeedPosition, Replica)>,
    /// The feed in the store was read since the secondary one was opened.
    pub(super) has_raced: bool,
    /// Its rows are acknowledged: a secondary can read the feed.
    pub(super) has_acknowledged: bool,
    /// A drop of the feed failed, so the next process may find that there is none.
    pub(super) may_be_dropped: bool,
    /// The store was asked for a feed, which may exist from then on.
    pub(super) has_met_feed: bool,
    /// What rules as text mean.
    pub(super) shapes: BTreeMap<String, Shape>,
    /// The disk was full once, so the store may have dropped the feed; this outlives the process.
    pub(super) may_be_lost: bool,
}

impl Clone for Consumer {
    fn clone(&self) -> Consumer {
        Consumer {
            feed: None,
            secondary: None,
            has_raced: false,
            has_acknowledged: self.has_acknowledged,
            may_be_dropped: self.may_be_dropped,
            has_met_feed: self.has_met_feed,
            kept: self.kept.clone(),
            shapes: self.shapes.clone(),
            may_be_lost: self.may_be_lost,
            replica: Replica::default(),
        }
    }
}

impl Consumer {
    /// A number that only consumers with the same future in the next process share.
    pub(super) fn print(&self) -> u64 {
        let mut print = DefaultHasher::new();
        for (place, replica) in &self.kept {
            (format!("{place:?}"), replica.print()).hash(&mut print);
        }
        (self.has_met_feed, self.has_acknowledged, self.may_be_lost, self.may_be_dropped).hash(&mut print);
        format!("{:?}", self.shapes).hash(&mut print);
        print.finish()
    }

    /// A table may get these rules.
    pub(super) fn know(&mut self, shape: &Shape) {
        self.shapes.insert(shape.rules().to_string(), *shape);
    }
}
