use std::time::Duration;

use super::next_segment_bytes;
use crate::options::JournalOptions;

#[test]
fn segments_grow_to_the_set_length_at_full_speed_and_become_short_again() {
    let options = JournalOptions::default();
    let after = |took: Duration| {
        let options = options.clone();
        move |len: &u64| Some(next_segment_bytes(*len, took, &options))
    };
    let kib = |segments: Vec<u64>| segments.into_iter().map(|bytes| bytes >> 10).collect::<Vec<_>>();
    let fast = std::iter::successors(Some(options.segment_bytes_min), after(Duration::from_millis(9)));
    assert_eq!(kib(fast.take(7).collect()), [128, 512, 2048, 8192, 32768, 65536, 65536]);
    let steady = std::iter::successors(Some(8 << 20), after(Duration::from_secs(9)));
    assert_eq!(kib(steady.take(3).collect()), [8192; 3]);
    let slow = std::iter::successors(Some(options.segment_bytes), after(Duration::from_secs(90)));
    assert_eq!(kib(slow.take(7).collect()), [65536, 16384, 4096, 1024, 256, 128, 128]);
}

#[test]
fn segments_grow_no_longer_than_suits_the_memory() {
    let options = JournalOptions { segment_bytes_grown: 16 << 20, ..JournalOptions::default() };
    let after = |bytes| next_segment_bytes(bytes, Duration::ZERO, &options) >> 10;
    assert_eq!([128 << 10, 2 << 20, 8 << 20, 16 << 20].map(after), [512, 8192, 16384, 16384]);
    assert_eq!(after(64 << 20), 16384, "also after a long batch");
}

#[test]
fn no_segment_is_longer_than_was_set() {
    let options = JournalOptions { segment_bytes: 8192, ..JournalOptions::default() };
    for took in [0, 9, 90].map(Duration::from_secs) {
        assert_eq!(next_segment_bytes(8192, took, &options), 8192);
        assert_eq!(next_segment_bytes(u64::MAX, took, &options), 8192);
    }
}
