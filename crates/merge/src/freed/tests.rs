use super::*;

#[test]
fn what_merges_free_is_known_after_a_few() {
    let of_sums = (0..5).fold(0.0, |freed, _| freed_after(freed, 0.5, 1000, 500));
    assert!(of_sums > 0.95, "half of the bytes were repeated, and all of these went: {of_sums}");
    let of_lists = (0..5).fold(1.0, |freed, _| freed_after(freed, 0.5, 1000, 950));
    assert!((0.1..0.15).contains(&of_lists), "a tenth of what was repeated went: {of_lists}");
}

#[test]
fn merges_that_repeat_nothing_or_grow_say_nothing_wrong() {
    assert_eq!(freed_after(0.7, 0.01, 1000, 990), 0.7);
    assert_eq!(freed_after(0.7, 0.5, 0, 0), 0.7);
    assert_eq!(freed_after(1.0, 0.5, 1000, 1200), 0.5, "what grows frees nothing");
    assert_eq!(freed_after(1.0, 0.5, 1000, 0), 1.0, "range deletes free more than repeats");
}
