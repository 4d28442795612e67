//! Random programs over the whole public interface of a store, as values that print and shrink.
//!
//! Every action makes sense in every state, or does nothing: a missing table is skipped, an index
//! wraps around. So any subsequence of a program is a program, and a failing one shrinks by leaving
//! out (`program/shrink.rs`). `program/random.rs` draws them.

mod draws;
mod strewn;
mod random;
mod shrink;

use std::fmt;

use folddb::{BackgroundJob, BackgroundWork, Durability, Resume};
use folddb_host::AppendMode;

use crate::tables::Shape;

pub use shrink::shrink;

/// How many tables a program may have at once.
pub const TABLES: u8 = 3;

/// The most further tables that it may have for a while ([`Action::Many`]).
pub const MANY_TABLES: u8 = 250;

/// The length from which values are separated in the tables that separate: few of the short
/// lengths, and all of the long ones.
pub const SEPARATE_FROM: u32 = 32;

/// A program: how the store is opened, and the actions on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// How the store is opened.
    pub settings: Settings,
    /// The actions, in order.
    pub actions: Vec<Action>,
}

/// How the store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who does the background work.
    pub background: BackgroundWork,
    /// How the journal appends.
    pub append_mode: AppendMode,
    /// Runs of a tier.
    pub merge_factor: usize,
    /// The scope of the change feed, where one is followed.
    pub feed: FeedShape,
}

/// The scope of a change feed, and how much it may hold. By default everything, with the default
/// budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedShape {
    /// The only table.
    pub table: Option<u8>,
    /// The beginning of the keys.
    pub prefix: &'static [u8],
    /// Its budget.
    pub bytes_max: Option<u64>,
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Creates a table, unless it exists.
    Create(u8, Shape),
    /// Drops a table.
    Drop(u8),
    /// Alters rules of a table, chosen by this number, under which its data mean the same.
    Alter(u8, u8),
    /// From now on there are this many small tables, too: missing ones are created, each seventh
    /// with a row, or surplus ones are dropped.
    Many(u8),
    /// Writes one op.
    Write(TableOp),
    /// Commits a batch.
    Commit(Vec<TableOp>, Durability),
    /// Takes a snapshot.
    Snapshot,
    /// Drops a snapshot.
    Release(u8),
    /// Flushes.
    Flush,
    /// Takes this many steps of background work.
    Step(u8),
    /// Waits until background work has nothing to do.
    Settle,
    /// Merges a table into one run, or breaks off after this many reports of progress.
    Compact(u8, Option<u8>),
    /// Merges a range of a table, or breaks off after this many reports of progress, and estimates
    /// what the range holds.
    CompactRange(u8, ScanShape, Option<u8>),
    /// Reclaims the space of dead values.
    Reclaim,
    /// Adds an index to a table or continues that, or breaks off after this many reports of
    /// progress.
    AddIndex(u8, Option<u8>),
    /// Drops it.
    DropIndex(u8),
    /// Takes a snapshot of a past moment: before one of the writes to a table, this many 255ths of
    /// them ago.
    Past(u8, u8),
    /// Scans a table, at the present or at a snapshot, and compares.
    Scan(u8, Option<u8>, ScanShape),
    /// Makes everything durable.
    Sync,
    /// Asks for a sync, and waits for it, or takes a step of the log instead.
    SyncLater(bool),
    /// Closes the store and opens it again.
    Close,
    /// Closes the store without a flush, and opens it again.
    CloseWithoutFlush,
    /// Drops the store without closing it, and opens it again.
    Abandon,
    /// Opens the store for reading only, compares, and opens it for writing again.
    LookOnly,
    /// Takes one step of one kind of background work.
    Background(BackgroundJob),
    /// A consumer follows the change feed of the store.
    Follow(Follow),
    /// A consumer follows it next to the process that writes.
    FollowSecondary(FollowSecondary),
    /// A step of a transaction.
    Transact(Transact),
    /// A step of a bulk load.
    Load(Load),
    /// A scan is left, or resumed.
    Cursor(CursorStep),
    /// Another store next to this one, or another reader.
    Other(Other),
    /// Lets this many milliseconds pass, and the wall clock jump by this many further seconds. From
    /// here on: in a simulated world only.
    Clock(u16, i32),
    /// Lets the process die, with or without the power.
    Crash(Crash),
    /// Breaks something.
    Break(Breakage),
    /// Ends all faults, and reopens a poisoned store.
    Heal,
    /// Flips bits of a byte of a file, in another world that is a copy of this one.
    Rot(u8, u16, u8),
}

/// How far a consumer follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follow {
    /// It takes at most this many events; all of them by default.
    pub events: Option<u8>,
    /// And then acknowledges.
    pub acknowledges: bool,
    /// Before that the feed, where it is open, is dropped and made again under its name.
    pub renews: bool,
}

/// How far a consumer follows that reads the feed next to the process that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowSecondary {
    /// It takes at most this many events; all of them by default.
    pub events: Option<u8>,
    /// The writer syncs before: then all writes are readable.
    pub synced: bool,
}

/// A step of a transaction: the number of an open one, which wraps around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transact {
    /// Begins another one, unless enough are open.
    Begin,
    /// Reads a key of a table.
    Get(u8, u8, u8),
    /// Scans a table.
    Scan(u8, u8, ScanShape),
    /// Asks the index of a table, for everything and in one other way.
    Find(u8, u8),
    /// Writes.
    Write(u8, TableOp),
    /// Folds, and reads the result.
    FoldAndGet(u8, TableOp),
    /// Reads the key of this op, and deletes it if it is there.
    Take(u8, TableOp),
    /// Commits.
    Commit(u8, Durability),
    /// Abandons it.
    Forget(u8),
}

/// A step of a bulk load; without an open load, all but the first do nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// Begins one, of a table by these rules.
    Begin(u8, Shape),
    /// Hands it rows, in the order of their keys, without those that come too late. The table that
    /// they name does not count.
    Rows(Vec<TableOp>),
    /// Creates the table.
    Finish,
    /// Abandons it.
    GiveUp,
}

/// What is done with cursors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorStep {
    /// A scan of a table, at the present or at a snapshot, is left after this many rows.
    Leave {
        /// The table.
        slot: u8,
        /// The snapshot.
        at: Option<u8>,
        /// Its ranges and its direction.
        scan: ScanShape,
        /// How many rows it has shown.
        rows: u8,
    },
    /// One of the scans that were left is resumed, if it can be.
    GoOn(u8, Resume),
}

/// Another store, or another reader of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// Compares a table with another that has its contents of this many 255ths of all seqs ago, and
    /// brings that one up to date.
    Compare(u8, u8),
    /// Makes a table equal to such another: back to its contents then.
    BringUp(u8, u8),
    /// Reads the store next to its writer, and the earlier secondary.
    Secondary,
    /// Freezes the store, reads it, and thaws it.
    Freeze,
    /// Rebuilds the tables that archive their logs, in another store.
    Rebuild,
    /// Dumps the store as text, and loads that into another store.
    Dump,
    /// Backs the store up as the last secondary sees it, and restores that.
    BackUp,
}

/// How a process ends, and what happens while the next one opens the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// It dies after this many changes, before the next; at once where there are none.
    pub after: u8,
    /// Whether the power goes too.
    pub power: bool,
    /// Decides what survives.
    pub seed: u8,
    /// Openings that die after this many changes, one after the other, and whether the power goes.
    pub openings: Vec<(u8, bool)>,
}

/// Something that breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakage {
    /// What.
    pub what: Broken,
    /// How many such calls go through first.
    pub skip: u8,
    /// How many fail then.
    pub times: u8,
}

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Any call.
    AnyCall,
    /// Writes and appends.
    Write,
    /// Writes and appends, and half of their bytes gets there.
    TornWrite,
    /// Syncs of files, whose pages are marked clean and lost.
    Sync,
    /// Making, removing and syncing names.
    Name,
    /// Reads.
    Read,
    /// Any call that takes space finds none.
    NoSpace,
    /// The disk has `skip` times 16 KiB left.
    FullDisk,
    /// One call in four takes `times` times 10 ms.
    Slow,
}

/// One op on a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOp {
    /// The table.
    pub table: u8,
    /// What it does.
    pub what: What,
    /// The key.
    pub key: u8,
    /// The value or operand.
    pub value: u8,
    /// Its length, where that is free.
    pub len_bytes: u16,
}

/// What an op does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Makes the value this one.
    Put,
    /// Gives an absent key this value.
    PutIfAbsent,
    /// Folds this operand on.
    Fold,
    /// Makes the key absent.
    Delete,
    /// Makes the keys from this one to the one with the number `value` absent.
    DeleteRange,
    /// Makes the keys absent that share the first `value` bytes of this one.
    DeletePrefix,
}

/// The part of a table that a scan reads, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanShape {
    /// Where it begins.
    pub low: Edge,
    /// Where it ends.
    pub high: Edge,
    /// Only keys that share this many first bytes of this one; the edges do not count then.
    pub prefix: Option<(u8, u8)>,
    /// From the highest key down.
    pub reverse: bool,
    /// At most this many rows.
    pub limit: Option<u8>,
    /// In pieces of this many rows, each beginning after the one before.
    pub chunk: Option<u8>,
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Open.
    Open,
    /// This key, included.
    At(u8),
    /// This key, excluded.
    Beyond(u8),
}

impl Action {
    /// Whether the store is the same afterwards.
    pub fn is_look(&self) -> bool {
        match self {
            Action::Transact(step) => !matches!(step, Transact::Commit(..)),
            Action::Load(step) => *step != Load::Finish,
            Action::Cursor(_) => true,
            Action::Other(Other::Compare(..) | Other::Secondary | Other::Dump | Other::BackUp) => true,
            Action::Scan(..) | Action::Past(..) | Action::FollowSecondary(_) => true,
            _ => false,
        }
    }
}

/// One action a line.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.settings)?;
        self.actions.iter().enumerate().try_for_each(|(at, action)| writeln!(f, "{at:3}  {action:?}"))
    }
}

#[cfg(test)]
#[path = "program/tests.rs"]
mod tests;
