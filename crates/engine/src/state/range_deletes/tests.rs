use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use folddb_rules::order::CustomOrder;
use proptest::prelude::*;

use super::*;

const KEYS: u8 = 30;

fn range(from: &[u8], to: &[u8], seq: Seq) -> Arc<RangeDelete> {
    Arc::new(RangeDelete { from: from.to_vec(), to: to.to_vec(), seq })
}

#[test]
fn the_newest_visible_range_delete_covers_a_key() {
    let of = |order: &KeyOrder, ranges: &[Arc<RangeDelete>]| RangeDeletes::of(order, ranges.iter().cloned());
    let ranges = of(&KeyOrder::Bytewise, &[range(b"a", b"z", 2), range(b"b", b"d", 5), range(b"c", b"f", 9)]);
    let cover = |key: &[u8], limit| ranges.newest_over(&KeyOrder::Bytewise, key, limit);
    assert_eq!(cover(b"c", 100), 9);
    assert_eq!(cover(b"c", 8), 5, "a reader does not see what came later");
    assert_eq!(cover(b"d", 8), 2, "the end is excluded");
    assert_eq!(cover(b"b", 100), 5, "the beginning is included");
    assert_eq!(cover(b"zz", 100), 0);
    let reversed = of(&KeyOrder::Reversed, &[range(b"d", b"b", 5)]);
    let cover = |key: &[u8]| reversed.newest_over(&KeyOrder::Reversed, key, 100);
    assert_eq!((cover(b"d"), cover(b"c"), cover(b"b")), (5, 5, 0));
}

proptest! {
    #[test]
    fn it_answers_as_asking_every_range_does_and_older_versions_stay(
        ranges in prop::collection::vec((0..KEYS, 0..=KEYS), 0..400),
        reversed in any::<bool>(),
        asked in prop::collection::vec((0..KEYS, 0..KEYS, 0u64..900), 20),
    ) {
        let order = if reversed { KeyOrder::Reversed } else { KeyOrder::Bytewise };
        let upright = ranges.iter().filter(|(from, to)| order.compare(&[*from], &[*to]).is_lt());
        let ranges: Vec<_> =
            (1..).zip(upright).map(|(n, &(from, to))| range(&[from], &[to], 2 * n)).collect();
        let half = RangeDeletes::of(&order, ranges[..ranges.len() / 2].iter().cloned());
        let mut all = half.clone();
        ranges[ranges.len() / 2..].iter().for_each(|range| all.add(&order, Arc::clone(range)));
        for (ranges, set) in [(&ranges[..ranges.len() / 2], &half), (&ranges[..], &all)] {
            prop_assert_eq!((set.len(), set.is_empty()), (ranges.len(), ranges.is_empty()));
            prop_assert!(set.iter().eq(ranges));
            for &(key, other, seq) in &asked {
                let over: Vec<Seq> =
                    ranges.iter().rev().filter(|range| covers(range, &order, &[key])).map(|range| range.seq).collect();
                let newest = over.iter().copied().find(|&at| at <= seq).unwrap_or(0);
                prop_assert_eq!(set.newest_over(&order, &[key], seq), newest);
                prop_assert_eq!(set.newest_over(&order, &[key], Seq::MAX), over.first().copied().unwrap_or(0));
                prop_assert_eq!(set.all_over(&order, &[key]), over);
                prop_assert!(set.newer_than(seq).eq(ranges.iter().filter(|range| range.seq > seq)));
                let (low, high) = if order.compare(&[key], &[other]).is_le() { (key, other) } else { (other, key) };
                let among = |range: &Arc<RangeDelete>| range.seq > seq
                    && order.compare(&range.from, &[high]).is_le() && order.compare(&[low], &range.to).is_lt();
                prop_assert_eq!(set.is_any_among(&order, (&[low], &[high]), seq), ranges.iter().any(among));
            }
        }
    }
}

/// Bytewise, counting the calls.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl CustomOrder for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.fetch_add(1, Relaxed);
        a.cmp(b)
    }
}

#[test]
fn a_read_and_an_added_range_delete_cost_a_logarithm_of_comparisons() {
    const COUNT: u32 = 50_000;
    let key = |n: u32| n.to_be_bytes();
    type Ends = fn(u32) -> (u32, u32);
    let shapes: [(&str, Ends); 5] = [
        ("side by side", |n| (n, n + 1)),
        ("backward", |n| (COUNT - n, COUNT - n + 1)),
        ("the same", |_| (7, COUNT)),
        ("inside of one another", |n| (n, 2 * COUNT - n)),
        ("around one another", |n| (COUNT - n, COUNT + n + 1)),
    ];
    for (shape, ends) in shapes {
        let counting = Counting::default();
        let order = KeyOrder::Custom(Arc::new(counting.clone()));
        let mut ranges = RangeDeletes::default();
        for n in 0..COUNT {
            let (from, to) = ends(n);
            ranges.add(&order, range(&key(from), &key(to), u64::from(n) + 1));
        }
        let to_add = counting.0.swap(0, Relaxed) / COUNT as usize;
        assert!(to_add < 100, "{shape}: {to_add} comparisons to add one");
        for limit in [Seq::MAX, u64::from(COUNT) / 2] {
            for asked in 0..100 {
                ranges.newest_over(&order, &key(asked * 997), limit);
            }
            let to_read = counting.0.swap(0, Relaxed) / 100;
            assert!(to_read < 500, "{shape}: {to_read} comparisons to read at {limit}");
        }
    }
}
