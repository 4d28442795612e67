//! Marks are found where a plain search finds them.

use super::*;

/// All marks of a text, each found from the place behind the last one.
fn all(marks: &mut Marks, text: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    while let Some(at) = marks.next(text, found.last().map_or(0, |last| last + 1)) {
        found.push(at);
    }
    found
}

fn searched(text: &[u8], delimiter: u8) -> Vec<usize> {
    let is_mark = |byte: u8| [delimiter, b'\n', b'\r', b'"'].contains(&byte);
    (0..text.len()).filter(|&at| is_mark(text[at])).collect()
}

#[test]
fn marks_are_where_a_search_finds_them_at_each_length() {
    // Bytes of all kinds, among them those that differ from a mark in one bit, and zeros.
    let bytes = (0..4_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8);
    let kinds = [b',', b'\n', b'\r', b'"', b'-', b'\x0b', b'\x8c', 0, b'a', b'#'];
    let text: Vec<u8> = bytes.map(|byte| if byte < 128 { kinds[byte as usize % 10] } else { byte }).collect();
    for delimiter in [b',', b'\t', 0xff, 0] {
        for len in (0..200).chain([1_000, 4_000]) {
            let mut marks = Marks::of(Dialect::of(delimiter));
            assert_eq!(all(&mut marks, &text[..len]), searched(&text[..len], delimiter), "{len} bytes");
        }
    }
}

#[test]
fn a_place_may_be_before_the_last_one() {
    let (text, mut marks) = ([b','; 200], Marks::of(Dialect::of(b',')));
    for at in [0, 199, 3, 64, 63, 128, 127] {
        assert_eq!(marks.next(&text, at), Some(at));
    }
    assert_eq!(marks.next(&text, 200), None);
    assert_eq!(marks.next(&text, 500), None);
}

#[test]
fn what_is_known_of_another_text_is_forgotten() {
    let mut marks = Marks::of(Dialect::of(b','));
    assert_eq!(marks.next(b"a,b", 0), Some(1));
    marks.forget();
    assert_eq!(marks.next(b"ab,", 0), Some(2));
}
