use super::*;

fn key(byte: u8) -> &'static [u8] {
    const KEYS: [u8; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    std::slice::from_ref(&KEYS[usize::from(byte)])
}

fn spans_of(ends: &[(u8, u8)]) -> Vec<Span<'static>> {
    joined(&KeyOrder::Bytewise, ends.iter().map(|&(from, to)| (key(from), key(to))).collect())
}

#[test]
fn ranges_that_touch_are_one_and_others_are_not() {
    assert_eq!(spans_of(&[]), []);
    assert_eq!(spans_of(&[(4, 6), (0, 2), (2, 4)]), [(key(0), key(6))]);
    assert_eq!(spans_of(&[(0, 8), (1, 2), (3, 9)]), [(key(0), key(9))]);
    assert_eq!(spans_of(&[(0, 2), (3, 4)]), [(key(0), key(2)), (key(3), key(4))]);
}

#[test]
fn keys_are_covered_by_one_span_and_never_by_a_gap() {
    let spans = spans_of(&[(0, 2), (2, 4), (5, 9)]);
    let covers =
        |first, last, is_behind| covers(&KeyOrder::Bytewise, &spans, (key(first), key(last)), is_behind);
    assert!(covers(0, 3, false) && covers(1, 3, false) && covers(5, 8, false));
    assert!(!covers(0, 4, false) && covers(0, 4, true), "the end of a range is not in it");
    assert!(!covers(3, 5, false) && !covers(4, 4, false), "between two of them");
    assert!(!covers(5, 9, false) && !covers(3, 6, true));
}
