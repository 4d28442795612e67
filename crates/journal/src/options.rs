//! How the journal uses its files.

use std::time::Duration;

use folddb_base::limits::SEGMENT_BYTES;
use folddb_host::AppendMode;

/// The length of the shortest segment, in bytes: the disk space that the log of a small store
/// takes.
const SEGMENT_BYTES_MIN: u64 = 128 << 10;

/// How the journal uses its files.
#[derive(Clone, Debug)]
pub struct JournalOptions {
    /// The longest file of a segment, in bytes. A batch must fit into one. Default 64 MiB.
    pub segment_bytes: u64,
    /// The length up to which segments grow by themselves, unless `segment_bytes` is less; one with
    /// a long batch is longer. Default 64 MiB.
    pub segment_bytes_grown: u64,
    /// Length of the first and the shortest segments, in bytes, unless `segment_bytes` is less.
    /// Default 128 KiB.
    pub segment_bytes_min: u64,
    /// How frames are written to the file.
    pub append_mode: AppendMode,
    /// The most bytes of `Buffered` frames that wait. Default 256 KiB.
    pub buffer_bytes_max: usize,
    /// After this time without a batch, a mark says what is durable. Default 20 ms.
    pub mark_after: Duration,
    /// After this time without a batch, an edit of the manifest should say what is durable. Default
    /// 1 s.
    pub vouch_after: Duration,
}

impl Default for JournalOptions {
    fn default() -> Self {
        JournalOptions {
            segment_bytes: SEGMENT_BYTES,
            segment_bytes_grown: SEGMENT_BYTES,
            segment_bytes_min: SEGMENT_BYTES_MIN,
            append_mode: AppendMode::default(),
            buffer_bytes_max: 256 << 10,
            mark_after: Duration::from_millis(20),
            vouch_after: Duration::from_secs(1),
        }
    }
}
