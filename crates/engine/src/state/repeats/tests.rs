use super::*;

#[test]
fn gets_pay_for_one_merge_and_say_so_once() {
    let repeats = Repeats::default();
    assert!(!repeats.note_get(9), "nothing has a price yet");
    assert_eq!(repeats.joined_bytes(), 0);
    repeats.set_price(Some(3 * JOIN_BYTES));
    assert!(!repeats.note_get(1), "a key of one run is joined with nothing");
    assert!(!repeats.note_get(3));
    assert!(repeats.note_get(2));
    assert!(!repeats.note_get(2), "it was said before");
    assert_eq!(repeats.joined_bytes(), 3 * JOIN_BYTES);
    repeats.set_price(Some(JOIN_BYTES));
    assert!(repeats.note_get(2), "a price that has fallen below what was paid is not missed");
    repeats.spend();
    repeats.set_price(Some(4 * JOIN_BYTES));
    assert!(repeats.note_get(5), "and for the next");
}

#[test]
fn merges_say_what_they_free() {
    let repeats = Repeats::default();
    assert_eq!(repeats.freed(), 1.0);
    repeats.note_merge(0.5, 1000, 1000);
    assert_eq!(repeats.freed(), 0.5);
}
