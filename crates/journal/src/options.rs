//! How the journal uses its files.

use std::time::Duration;

use folddb_base::limits::SEGMENT_BYTES;
use folddb_host::AppendMode;

/// Shortest segment, in bytes: what the log of a small store takes from the disk.
const SEGMENT_BYTES_MIN: u64 = 128 << 10;

/// How the journal uses its files.
#[derive(Clone, Debug)]
pub struct JournalOptions {
    /// Longest file of a segment, in bytes. No batch can be larger.
    pub segment_bytes: u64,
    /// Length of the first and the shortest segments, in bytes, if that is less.
    pub segment_bytes_min: u64,
    /// How frames get into the file.
    pub append_mode: AppendMode,
    /// The most bytes of `Buffered` frames that wait.
    pub buffer_bytes_max: usize,
    /// After this long without a batch, a mark vouches for what was synced last.
    pub mark_after: Duration,
    /// After this long without a batch, an edit of the manifest should vouch for it.
    pub vouch_after: Duration,
}

impl Default for JournalOptions {
    fn default() -> Self {
        JournalOptions {
            segment_bytes: SEGMENT_BYTES,
            segment_bytes_min: SEGMENT_BYTES_MIN,
            append_mode: AppendMode::default(),
            buffer_bytes_max: 256 << 10,
            mark_after: Duration::from_millis(20),
            vouch_after: Duration::from_secs(1),
        }
    }
}
