//! The changes that the frames of a manifest tell: plain data. How they look as bytes stands in
//! `manifest_edit.rs`.

use folddb_base::ids::RunId;
use folddb_base::{FileNumber, Lsn, Seq, TableId};

use crate::feed_state::{FeedState, TableNote};

/// A part of a run, as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartState {
    /// Its file.
    pub file: FileNumber,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// Records in the file.
    pub records: u64,
    /// The first key that it shows. Past the first key of the file where it is trimmed.
    pub low: Vec<u8>,
    /// The last key in it.
    pub high: Vec<u8>,
    /// The oldest seq in it.
    pub min_seq: Seq,
    /// The newest seq in it.
    pub max_seq: Seq,
    /// Records in it that are deletes.
    pub deletes: u64,
    /// An estimate of the bytes in it that a complete merge would keep.
    pub live_bytes: u64,
    /// True when it shows only keys from `low` on, and the file holds others before.
    pub trimmed: bool,
}

/// The checkpoint of the index of a hashed table, as the manifest knows it; or the changes that
/// came after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexState {
    /// Its file.
    pub file: FileNumber,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// Keys in it, or changes.
    pub keys: u64,
    /// No change after this seq is in it.
    pub max_seq: Seq,
    /// What it leads to in the value log; of changes, what the index does with them.
    pub segments: Vec<IndexSegment>,
}

/// What an index leads to of one value segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSegment {
    /// The low bits of its number, as many as stand in an address.
    pub segment: u64,
    /// Records in it.
    pub records: u64,
    /// About their bytes.
    pub bytes: u64,
    /// Where the last record ends that the table has ever had in it, in bytes; at least.
    pub end: u64,
}

/// How far an index has come with what was in its table before it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStand {
    /// Who reads at this seq or a later one finds all; of no meaning while it is being built.
    pub since: Seq,
    /// While it is being built: the last key of the table whose terms are in it, empty where none
    /// are yet.
    pub building: Option<Vec<u8>>,
}

/// A change to what lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Names the store. Only in a snapshot.
    SetStore {
        /// The identity of the store.
        store_id: u128,
        /// The number of the next table to be created.
        next_table_id: u32,
    },
    /// File numbers below this one may have been used.
    ReserveNumbers {
        /// The first number that surely has not been used.
        next_number: u64,
    },
    /// Where the journal stands.
    Horizon {
        /// The newest seq that was known to be written.
        last_seq: Seq,
        /// Replay begins here: all records before it are in runs.
        log_start_lsn: Lsn,
        /// All of the log before this is durable, so damage there is damage.
        durable_lsn: Lsn,
    },
    /// Adds a table.
    CreateTable {
        /// Its id, never used before.
        table: TableId,
        /// Its name, used by no other.
        name: String,
        /// Its rules, as text.
        rules_text: String,
    },
    /// Removes a table with its runs and range deletes.
    DropTable {
        /// The table.
        table: TableId,
    },
    /// All records of the table up to this seq are in runs.
    Flushed {
        /// The table.
        table: TableId,
        /// The newest seq that needs no replay.
        seq: Seq,
    },
    /// Adds a part at the end of a run, and the run with its first part.
    AddPart {
        /// The table.
        table: TableId,
        /// The run.
        run: RunId,
        /// The run's tier; tells only where the run is new.
        tier: u8,
        /// The run's age; tells only where the run is new.
        age: Seq,
        /// The part.
        part: PartState,
    },
    /// Removes a part, and the run with its last part.
    RemovePart {
        /// The table.
        table: TableId,
        /// The run.
        run: RunId,
        /// The part's file.
        file: FileNumber,
    },
    /// Makes a part show only keys from `low` on.
    TrimPart {
        /// The table.
        table: TableId,
        /// The run.
        run: RunId,
        /// The part's file.
        file: FileNumber,
        /// The first key that it still shows.
        low: Vec<u8>,
    },
    /// Gives a run another place among the runs.
    MoveRun {
        /// The table.
        table: TableId,
        /// The run.
        run: RunId,
        /// Its new tier.
        tier: u8,
        /// Its new age.
        age: Seq,
    },
    /// Deletes all keys of a range as of a seq.
    AddRangeDelete {
        /// The table.
        table: TableId,
        /// The first key deleted.
        from: Vec<u8>,
        /// The first key after it that is not.
        to: Vec<u8>,
        /// Its place in the history.
        seq: Seq,
    },
    /// Forgets a range delete that nothing is under any more.
    RetireRangeDelete {
        /// The table.
        table: TableId,
        /// The seq of the range delete.
        seq: Seq,
    },
    /// Whether a segment holds the log's start: from the first segment of an opening until a close
    /// in order.
    LogOpen {
        /// True while one does; without it the log, or the end of the manifest, is lost.
        open: bool,
    },
    /// Whether the log is a copy that was made up to where it is durable, of a backup or restored
    /// from one. Every snapshot says it; in those of older versions one with nothing after it was
    /// taken for that of a copy.
    LogCopied {
        /// True until the first opening for writing has come to its end.
        copied: bool,
    },
    /// A segment of the value log: pointers may lead to it from now on.
    AddValues {
        /// The segment.
        segment: FileNumber,
    },
    /// Nothing is added to a value segment any more.
    SealValues {
        /// The segment.
        segment: FileNumber,
        /// Bytes of it that count.
        end: u64,
    },
    /// A segment of the value log that is a directory, in which each record is a file.
    AddDirectory {
        /// The segment.
        segment: FileNumber,
    },
    /// Nothing is added to such a segment any more.
    SealDirectory {
        /// The segment.
        segment: FileNumber,
        /// Bytes of its files.
        bytes: u64,
        /// How many they are.
        value_files: u64,
    },
    /// When records were written: of each entry a seq, and a time in milliseconds since 1970 that
    /// records from it on have, up to the next entry. Both rise.
    Times {
        /// The entries.
        entries: Vec<(Seq, u64)>,
    },
    /// Removes a value segment that nothing points to.
    RemoveValues {
        /// The segment.
        segment: FileNumber,
    },
    /// From now on whoever does not know these features must leave the store alone. A reader
    /// refuses bits that it does not know.
    Require {
        /// One bit each.
        features: u64,
    },
    /// Gives a hashed table a checkpoint of its index, in place of the one that it had.
    SaveIndex {
        /// The table.
        table: TableId,
        /// The checkpoint.
        index: IndexState,
    },
    /// Gives a hashed table changes that its index is to take after its checkpoint, in place of
    /// those that it had. The next checkpoint has them.
    SaveChanges {
        /// The table.
        table: TableId,
        /// The changes.
        changes: IndexState,
    },
    /// How far an index has come.
    BuildIndex {
        /// The table that is the index.
        table: TableId,
        /// How far.
        stand: IndexStand,
    },
    /// The values of these segments that anything points to lie in another file now.
    MoveValues {
        /// The file that carries them, and no others.
        file: FileNumber,
        /// Its length.
        file_bytes: u64,
        /// The segments.
        segments: Vec<FileNumber>,
    },
    /// Adds a feed, or says where one of this name stands now.
    SetFeed {
        /// The feed.
        feed: FeedState,
    },
    /// Removes a feed.
    DropFeed {
        /// Its name.
        name: String,
    },
    /// A file has the history between two LSNs, for feeds, in place of segments of the log that had
    /// it: the end of a log that a crash left.
    ArchiveLog {
        /// The file.
        file: FileNumber,
        /// Where it begins.
        first_lsn: Lsn,
        /// Where the history goes on after it.
        next_lsn: Lsn,
    },
    /// A table was created or dropped while feeds were there that will tell of it.
    NoteTable {
        /// What happened.
        note: TableNote,
    },
}

/// The value log may hold values in several pieces, and operands.
pub const FEATURE_ROPES: u64 = 1;

/// Hashed tables may hold values that are longer than what is written at once.
pub const FEATURE_LONG_VALUES: u64 = 2;

/// Values in pieces may have deadlines, and values of more than 16 MiB of hashed tables fronts,
/// which stand behind them.
pub const FEATURE_LASTING_PIECES: u64 = 4;

/// All features that this version knows.
pub(super) const FEATURES_KNOWN: u64 = FEATURE_ROPES | FEATURE_LONG_VALUES | FEATURE_LASTING_PIECES;
