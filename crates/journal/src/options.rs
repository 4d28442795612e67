//! How the journal uses its files.

use std::time::Duration;

use folddb_base::limits::SEGMENT_BYTES;
use folddb_host::AppendMode;

/// How the journal uses its files.
#[derive(Clone, Debug)]
pub struct JournalOptions {
    /// Length of a segment's file, in bytes. No batch can be larger.
    pub segment_bytes: u64,
    /// How frames get into the file.
    pub append_mode: AppendMode,
    /// Most bytes that `Buffered` frames wait in.
    pub buffer_bytes_max: usize,
    /// After this long without a batch, a mark vouches for what was synced last.
    pub mark_after: Duration,
    /// After this long without a batch, an edit of the manifest is to vouch for it.
    pub vouch_after: Duration,
}

impl Default for JournalOptions {
    fn default() -> Self {
        JournalOptions {
            segment_bytes: SEGMENT_BYTES,
            append_mode: AppendMode::default(),
            buffer_bytes_max: 256 << 10,
            mark_after: Duration::from_millis(20),
            vouch_after: Duration::from_secs(1),
        }
    }
}
