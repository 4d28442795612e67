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
    assert_eq!(spans_of(&[(5, 2), (6, 6), (3, 4)]), [(key(3), key(4))], "some have no key");
}

#[test]
fn keys_are_within_one_span_or_beside_all_or_astride() {
    let spans = spans_of(&[(1, 2), (2, 4), (5, 8)]);
    let place = |first, last| place(&KeyOrder::Bytewise, &spans, (key(first), key(last)));
    for (first, last) in [(1, 3), (2, 3), (5, 7), (6, 6)] {
        assert_eq!(place(first, last), Place::Within, "{first} to {last}");
    }
    for (first, last) in [(0, 0), (4, 4), (8, 9), (9, 9)] {
        assert_eq!(place(first, last), Place::Beside, "{first} to {last}");
    }
    // The end of a span is not in it; its beginning is.
    for (first, last) in [(0, 1), (1, 4), (3, 5), (4, 5), (4, 9), (0, 9), (6, 8)] {
        assert_eq!(place(first, last), Place::Astride, "{first} to {last}");
    }
}

#[test]
fn blocks_reach_from_one_separator_to_the_next() {
    use Place::{Astride, Beside, Within};
    let spans = spans_of(&[(0, 3), (6, 9)]);
    let separators: Vec<Vec<u8>> = [1, 2, 4, 5, 7, 8].map(|end| vec![end]).to_vec();
    let places = |first| places_of_blocks(&KeyOrder::Bytewise, &spans, key(first), &separators);
    assert_eq!(places(0), [Within, Within, Astride, Beside, Astride, Within]);
    // Blocks that end before the first key are no longer shown.
    assert_eq!(places(3), [Beside, Beside, Astride, Within]);
    assert_eq!(places(5), [Beside, Astride, Within]);
}

#[test]
fn what_was_found_out_holds_for_the_same_range_deletes() {
    let range = |seq| RangeDelete { from: key(1).to_vec(), to: key(2).to_vec(), seq };
    let (one, two) = (range(7), range(9));
    let known = Coverage { ranges: [7, 9].into(), ..Coverage::default() };
    assert!(is_of(&known, &[&one, &two]));
    assert!(!is_of(&known, &[&one]) && !is_of(&known, &[]) && !is_of(&known, &[&two, &two]));
    assert!(is_of(&Coverage::default(), &[]));
    assert_eq!(known.to_string(), "at least 0 of its records by 2 range deletes");
    let known = Coverage { is_whole: true, bytes_in_vain: 8_192, ..known };
    assert_eq!(known.to_string(), "all of its records by 2 range deletes, 8192 bytes read in vain");
}
