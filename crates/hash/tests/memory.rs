//! What an index takes of the heap, key by key, while it grows: a test that is alone in its
//! process, so that nothing else is counted.

use folddb_hash::{Change, HashIndex, IndexOptions, Past, Point, SizeClass, Slot};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[test]
fn a_key_takes_at_most_seventeen_bytes_at_any_moment() {
    const KEYS: u64 = 1_500_000;
    let before = HEAP.current_usage();
    let index = HashIndex::new(IndexOptions::default());
    for key in 1..=KEYS {
        let slot = Slot::new(key, SizeClass::of(4_500)).expect("an address");
        let inserted = index.change(Point::of_hash(mix(key)), Change::Insert(slot), key, Past::Forgotten);
        assert!(inserted.expect("no file is read"));
        // From 64 shards of some thousand keys each, through all their growth, to 128 and beyond.
        if key >= 300_000 && key % 256 == 0 {
            let bytes = (HEAP.peak_usage() - before) as f64 / key as f64;
            assert!(bytes <= 17.0, "{bytes:.2} bytes a key at {key} keys");
            HEAP.reset_peak_usage();
        }
    }
    let counted = index.facts().memory_bytes as f64;
    let held = (HEAP.current_usage() - before) as f64;
    assert!((0.99..1.01).contains(&(counted / held)), "{counted} bytes are counted, {held} are held");
}
