//! How long the next segment of the log is to be. Segments begin small, so that a store that is
//! written to little takes little of the disk, and grow to the set length within a few of them
//! where much is written.

use std::time::Duration;

use crate::options::JournalOptions;

/// How much longer, or shorter, a segment may be than the one before it. Making one takes some
/// milliseconds; at full speed the third is long enough for that.
const TIMES: u64 = 4;

/// Half a segment that was filled sooner was too short: the next would soon have to be made.
const SOON: Duration = Duration::from_secs(1);

/// Half a segment that took longer was too long: most of it has lain empty.
const LATE: Duration = Duration::from_secs(60);

/// How long the segment is to be that follows one of `len_bytes`, of which half was filled in
/// `half_took`: as many bytes as `options` allow.
pub(crate) fn next_segment_bytes(len_bytes: u64, half_took: Duration, options: &JournalOptions) -> u64 {
    let wanted = if half_took < SOON {
        len_bytes.saturating_mul(TIMES)
    } else if half_took > LATE {
        len_bytes / TIMES
    } else {
        len_bytes
    };
    wanted.max(options.segment_bytes_min).min(options.segment_bytes)
}

#[cfg(test)]
mod tests;
