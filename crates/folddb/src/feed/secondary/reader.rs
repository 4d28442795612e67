//! A feed that is read while another process writes: what it has given, and what it has seen.

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

/// A feed that is read while another process writes: see
/// [`Store::secondary_feed`](crate::Store::secondary_feed).
///
/// It gives each batch once that process has passed it to the kernel, as durability `Process`
/// promises, complete and in the order of commits; nothing is left out, and one reader gives
/// nothing twice. It does not acknowledge: batches are given again after a restart, until a process
/// that has the store open for writing acknowledges them, by
/// [`Feed::skip_to`](crate::Feed::skip_to) and [`Feed::acknowledge`](crate::Feed::acknowledge). A
/// batch that is not synced yet may be given and then lost in a power cut: a consumer that must
/// never see such a batch reads the feed in the writing process, by
/// [`Store::feed`](crate::Store::feed).
pub struct SecondaryFeed {
    pub(crate) host: Host,
    pub(crate) dir: PathBuf,
    pub(crate) name: String,
    pub(crate) options: FeedOptions,
    pub(crate) value_files_max: usize,
    pub(crate) manifest: SeenManifest,
    /// The files of history, at the last look.
    pub(crate) files: Vec<HistoryFile>,
    /// Where values are, by the last read manifest.
    pub(crate) values: Option<ValueFiles>,
    pub(crate) value_reads: Counter,
    pub(crate) follower: Follower,
    /// The seq of the last batch that the follower has passed.
    pub(crate) followed_seq: Seq,
    /// Everything up to here was given, or is not covered.
    pub(crate) place: FeedPosition,
    /// The batches up to `place` that were met here and are not acknowledged: the last seq and the
    /// mark of each.
    pub(crate) given: VecDeque<(Seq, u64)>,
    /// All batches after this seq, up to `place`, are among those; earlier ones were met by another
    /// reader, or are acknowledged.
    pub(crate) given_after: Seq,
    pub(crate) unacknowledged_bytes: u64,
    /// A batch that was read and not given yet, and where it ends.
    pub(crate) next: Option<(FeedBatch, End)>,
    pub(crate) tables: BTreeMap<TableId, Option<Met>>,
    /// The events of tables after `place`.
    pub(crate) notes: VecDeque<TableNote>,
    /// Something was inconsistent the last time: everything must be checked again.
    pub(crate) is_in_doubt: bool,
    /// Where it waits for a frame, and how often it has looked there.
    pub(crate) wait: (Lsn, u32),
}

impl std::fmt::Debug for SecondaryFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "feed `{}`, read up to seq {}", self.name, self.place.seq)
    }
}

/// Where a batch ends, and its mark.
pub(crate) struct End {
    pub(crate) lsn: Lsn,
    pub(crate) bytes: u64,
    pub(crate) mark: u64,
}

/// What to do with a feed that is lost.
pub(crate) const BEGIN_AGAIN: &str = "begin the feed again, with the present rows, by Feed::begin_again or folddb watch with \
                          --again; if its consumer can be away for long, with a larger budget: FeedOptions::bytes_max \
                          or --hold-max";

/// Memory for pages of files of relocated values.
pub(crate) const CACHE_BYTES: u64 = 1 << 20;
