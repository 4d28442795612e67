//! A feed that is read beside the writer: what it has handed out, and what it has seen.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use folddb_base::{Lsn, Seq, TableId};
use folddb_host::Host;
use folddb_journal::follow::{Follower, HistoryFile};
use folddb_manifest::TableNote;

use crate::feed::batch::Met;
use crate::feed::event::{FeedBatch, FeedOptions, FeedPosition};
use crate::feed::secondary::manifest::SeenManifest;
use folddb_engine::state::counters::Counter;
use folddb_value_log::ValueFiles;

/// A feed that is read beside the process that writes: see
/// [`Store::secondary_feed`](crate::Store::secondary_feed).
///
/// It gives each batch once that process has handed it to the kernel, which is what durability
/// `Process` promises, whole and in the order of commits; nothing is left out, and nothing given
/// twice by one reader. It acknowledges nothing: what it has given it gives again after a restart,
/// until a process that has the store open for writing acknowledges it, by
/// [`Feed::skip_to`](crate::Feed::skip_to) and [`Feed::acknowledge`](crate::Feed::acknowledge). A
/// batch that is not synced yet may be given and then lost to a power cut: a consumer elsewhere
/// that must never see such a one reads the feed in the process that writes, by
/// [`Store::feed`](crate::Store::feed).
pub struct SecondaryFeed {
    pub(crate) host: Host,
    pub(crate) dir: PathBuf,
    pub(crate) name: String,
    pub(crate) options: FeedOptions,
    pub(crate) value_files_max: usize,
    pub(crate) manifest: SeenManifest,
    /// The files of history, as they were looked for last.
    pub(crate) files: Vec<HistoryFile>,
    /// Where values lie, as the manifest was seen last.
    pub(crate) values: Option<ValueFiles>,
    pub(crate) value_reads: Counter,
    pub(crate) follower: Follower,
    /// The seq of the last batch that the follower has gone past.
    pub(crate) followed_seq: Seq,
    /// All up to here was handed out, or is not told of.
    pub(crate) place: FeedPosition,
    /// The batches up to `place` that were met here and are not acknowledged: of each its last seq,
    /// and what tells it from any other.
    pub(crate) given: VecDeque<(Seq, u64)>,
    /// All batches after this seq, up to `place`, are among those; another reader has met what was
    /// before, or it is acknowledged.
    pub(crate) given_after: Seq,
    pub(crate) unacknowledged_bytes: u64,
    /// A batch that was read and not handed out, and where it ends.
    pub(crate) next: Option<(FeedBatch, End)>,
    pub(crate) tables: BTreeMap<TableId, Option<Met>>,
    /// What has happened to tables after `place`.
    pub(crate) notes: VecDeque<TableNote>,
    /// Something did not fit the last time: look at everything again.
    pub(crate) is_in_doubt: bool,
    /// Where it waits for a frame, and how often it has looked there.
    pub(crate) wait: (Lsn, u32),
}

/// Where a batch ends, and what tells it from others.
pub(crate) struct End {
    pub(crate) lsn: Lsn,
    pub(crate) bytes: u64,
    pub(crate) mark: u64,
}

/// What to do with a feed that is lost.
pub(crate) const BEGIN_ANEW: &str = "begin the feed again, with the present rows, by Feed::begin_again or folddb watch with \
                          --again; if its consumer can be away for long, with a larger budget: FeedOptions::bytes_max \
                          or --hold-max";

/// Memory for pages of files of relocated values.
pub(crate) const CACHE_BYTES: u64 = 1 << 20;
