use super::*;

#[test]
fn what_is_spread_evenly_is_counted_so() {
    assert_eq!(between(100, (1, 100), (1, 50)), 50);
    assert_eq!(between(100, (1, 100), (51, 500)), 50);
    assert_eq!(between(100, (1, 100), (0, 0)), 0);
    assert_eq!(between(100, (1, 100), (101, 200)), 0);
    assert_eq!(between(7, (5, 5), (5, 5)), 7);
    assert_eq!(between(0, (u64::MAX, 0), (1, 5)), 0);
}

#[test]
fn what_was_swept_is_not_counted_again() {
    let stamps =
        StampFacts { expiring: 100, min_deadline_ms: 1, max_deadline_ms: 100, ..StampFacts::default() };
    assert_eq!(expired(&stamps, 60), 60);
    assert_eq!(expired(&StampFacts { swept_ms: 60, ..stamps }, 60), 0);
    assert_eq!(expired(&StampFacts { swept_ms: 60, ..stamps }, 80), 20);
    let facts = PartFacts { records: 100, keys: 20, min_seq: 1, max_seq: 100, ..PartFacts::default() };
    assert_eq!(past_beyond(&facts, 50), 40);
    assert_eq!(past_beyond(&PartFacts { kept_since: 50, ..facts }, 50), 0);
}
