use super::*;

#[test]
fn groups_grow_while_reads_come_from_memory_and_are_asked_for_once_they_do_not() {
    let (quick, slow) = (Duration::from_micros(2), Duration::from_micros(90));
    let mut pace = Pace::first();
    let mut sizes = Vec::new();
    for _ in 0..4 {
        assert!(!pace.waits);
        sizes.push(pace.keys);
        pace = pace.after(pace.keys, quick * pace.keys as u32);
    }
    assert_eq!(sizes, [1, 8, 64, 64]);
    assert_eq!(Pace::first().after(1, slow), Pace { keys: GROUP_KEYS, waits: true });
    let waited = pace.after(64, slow * 64);
    assert!(waited.waits);
    assert_eq!(waited.after(64, quick), waited, "a quick group was asked for");
}
