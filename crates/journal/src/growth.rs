//! The length of the next segment of the log. Segments begin small, so that a store with few writes
//! takes little of the disk, and grow within a few segments if much is written: to a length that
//! suits the memory of the store, since memtables keep about as much of the log as they hold.

use std::time::Duration;

use crate::options::JournalOptions;

/// How many times longer or shorter than the previous one a segment may be. Creating a segment
/// takes a few milliseconds; at full speed, filling the third segment takes longer than that.
const TIMES: u64 = 4;

/// If half a segment was filled in less time, it was too short: the next one would be needed soon.
const SOON: Duration = Duration::from_secs(1);

/// If half a segment took more time, it was too long.
const LATE: Duration = Duration::from_secs(60);

/// The length of the segment after one of `len_bytes`, within the bounds of `options`. Filling half
/// of the previous one took `half_took`.
pub(crate) fn next_segment_bytes(len_bytes: u64, half_took: Duration, options: &JournalOptions) -> u64 {
    let wanted = if half_took < SOON {
        len_bytes.saturating_mul(TIMES)
    } else if half_took > LATE {
        len_bytes / TIMES
    } else {
        len_bytes
    };
    wanted.min(options.segment_bytes_grown).max(options.segment_bytes_min).min(options.segment_bytes)
}

#[cfg(test)]
mod tests;
