//! The length of the next segment of the log. Segments begin small, so that a store with few writes
//! takes little of the disk, and grow to the configured length within a few segments if much is
//! written.

use std::time::Duration;

use crate::options::JournalOptions;

/// How many times longer or shorter a segment may be than the previous one. Creating one takes some
/// milliseconds; at full speed the third segment is long enough to cover that.
const TIMES: u64 = 4;

/// If half a segment was filled sooner, it was too short: the next would soon have to be made.
const SOON: Duration = Duration::from_secs(1);

/// If half a segment took longer, it was too long: most of it stayed empty.
const LATE: Duration = Duration::from_secs(60);

/// The length of the segment after one of `len_bytes`, half of which was filled in `half_took`,
/// within what `options` allow.
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
