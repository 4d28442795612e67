//! The changes in the frames of a manifest: plain data. Their encoding is in `manifest_edit.rs`.

use folddb_base::ids::RunId;
use folddb_base::{FileNumber, Lsn, Seq, TableId};

use crate::feed_state::{FeedState, TableNote};

/// A part of a run, in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartState {
    /// Its file.
    pub file: FileNumber,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// Records in the file.
    pub records: u64,
    /// The first key that it shows. Past the first key of the file if it is trimmed.
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
    /// True if it shows only keys from `low` on, and the file holds earlier ones.
    pub trimmed: bool,
    /// What only this part has, so that another with the same number is not taken for it, such as
    /// that of another store. Older versions did not note it.
    pub fingerprint: Option<u64>,
}

/// The checkpoint of the index of a hashed table, in the manifest; or the changes after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexState {
    /// Its file.
    pub file: FileNumber,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// Keys in it, or changes.
    pub keys: u64,
    /// It has no change after this seq.
    pub max_seq: Seq,
    /// What it points to in the value log; for changes, what the index with them points to.
    pub segments: Vec<IndexSegment>,
}

/// What an index points to in one value segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSegment {
    /// The low bits of its number, as many as an address has.
    pub segment: u64,
    /// Records in it.
    pub records: u64,
    /// Their approximate bytes.
    pub bytes: u64,
    /// Where the last record ends that the table has ever had in it, in bytes, or a later place.
    pub end: u64,
}

/// The progress of an index with records that are older than itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexBuild {
    /// A reader at this seq or a later one finds everything; meaningless while it is being built.
    pub since: Seq,
    /// While it is being built: the last key of the table whose terms are in it, empty if there are
    /// none yet.
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
        /// The first number that has certainly not been used.
        next_number: u64,
    },
    /// The position of the journal.
    Horizon {
        /// The newest seq that was known to be written.
        last_seq: Seq,
        /// Replay begins here: all records before it are in runs.
        log_start_lsn: Lsn,
        /// The log before this is durable, so a bad frame there is damage.
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
    /// Gives a table other rules, under which its stored data mean the same.
    AlterTable {
        /// The table.
        table: TableId,
        /// Its rules from now on, as text.
        rules_text: String,
        /// Parts with lower numbers were written before a rule about parts was altered.
        outdated_before: FileNumber,
        /// States before this seq may have been folded, whatever the rules say that is kept; 0 if
        /// nothing was.
        kept_since: Seq,
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
        /// The run's tier; used only if the run is new.
        tier: u8,
        /// The run's age; used only if the run is new.
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
    /// Removes a range delete that no longer covers anything.
    RetireRangeDelete {
        /// The table.
        table: TableId,
        /// The seq of the range delete.
        seq: Seq,
    },
    /// Whether a segment holds the log's start: from the first segment of an opening until an
    /// orderly close.
    LogOpen {
        /// True while one does; if it is missing then, the log, or the end of the manifest, is
        /// lost.
        open: bool,
    },
    /// Whether the log is a copy, up to where it is durable, in a backup or restored from one.
    /// Every snapshot says it; in older versions, a snapshot with nothing after it meant a copy.
    LogCopied {
        /// True until the first opening for writing has finished.
        copied: bool,
    },
    /// A segment of the value log: pointers may lead to it from now on.
    AddValues {
        /// The segment.
        segment: FileNumber,
    },
    /// A value segment is complete.
    SealValues {
        /// The segment.
        segment: FileNumber,
        /// Its valid bytes.
        end: u64,
    },
    /// A segment of the value log that is a directory, in which each record is a file.
    AddDirectory {
        /// The segment.
        segment: FileNumber,
    },
    /// Such a segment is complete.
    SealDirectory {
        /// The segment.
        segment: FileNumber,
        /// Bytes of its files.
        bytes: u64,
        /// How many files it has.
        value_files: u64,
    },
    /// When records were written: each entry is a seq, and the time in milliseconds since 1970 of
    /// the records from it up to the next entry. Both ascend.
    Times {
        /// The entries.
        entries: Vec<(Seq, u64)>,
    },
    /// Removes a value segment that nothing points to.
    RemoveValues {
        /// The segment.
        segment: FileNumber,
    },
    /// From now on, versions that do not know these features must not open the store. A reader
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
    /// Gives a hashed table changes that its index takes after its checkpoint, in place of earlier
    /// ones. The next checkpoint includes them.
    SaveChanges {
        /// The table.
        table: TableId,
        /// The changes.
        changes: IndexState,
    },
    /// The progress of an index.
    BuildIndex {
        /// The table that is the index.
        table: TableId,
        /// The progress.
        build: IndexBuild,
    },
    /// The live values of these segments are in another file now.
    MoveValues {
        /// The file that holds them, and no others.
        file: FileNumber,
        /// Its length.
        file_bytes: u64,
        /// The segments.
        segments: Vec<FileNumber>,
    },
    /// Adds a feed, or updates the feed of this name.
    SetFeed {
        /// The feed.
        feed: FeedState,
    },
    /// Removes a feed.
    DropFeed {
        /// Its name.
        name: String,
    },
    /// A file has the history between two LSNs, for feeds, in place of the segments of the log that
    /// had it: the end of a log after a crash.
    ArchiveLog {
        /// The file.
        file: FileNumber,
        /// Where it begins.
        first_lsn: Lsn,
        /// Where the history continues after it.
        next_lsn: Lsn,
    },
    /// A table was created or dropped while there were feeds that will report it.
    NoteTable {
        /// What happened.
        note: TableNote,
    },
}

/// The value log may hold values in several pieces, and operands.
pub const FEATURE_ROPES: u64 = 1;

/// Hashed tables may hold values longer than a single write.
pub const FEATURE_LONG_VALUES: u64 = 2;

/// Values in pieces may have deadlines, and values of more than 16 MiB in hashed tables may have
/// fronts, which follow them.
pub const FEATURE_LASTING_PIECES: u64 = 4;

/// All features that this version knows.
pub(super) const FEATURES_KNOWN: u64 = FEATURE_ROPES | FEATURE_LONG_VALUES | FEATURE_LASTING_PIECES;
