use std::io::Cursor;

use super::LineReader;
use crate::import::tape::Tape;

const MARKED: &str = "\u{feff}a b  \r\n\n\u{feff}c\nd";

fn reader(text: &str) -> LineReader {
    LineReader::new(Box::new(Cursor::new(text.to_owned())), 64)
}

/// The lines that follow, each with its number.
fn rest(lines: &mut LineReader, mut line: u64) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    while lines.advance(&mut line).unwrap() {
        found.push((line, String::from_utf8(lines.text.clone()).unwrap()));
    }
    found
}

fn content(text: &str) -> Tape {
    let mut tape = Tape::new();
    tape.feed(text.as_bytes());
    tape
}

#[test]
fn the_mark_of_a_file_is_no_part_of_its_first_line_and_counts_as_content() {
    let mut lines = reader(MARKED);
    let wanted = [(1, "a b"), (3, "\u{feff}c"), (4, "d")].map(|(line, text)| (line, text.to_owned()));
    assert_eq!(rest(&mut lines, 0), wanted);
    assert_eq!(lines.tape.content(), content(MARKED).content());
    let mut only = reader("\u{feff}\nx\n");
    assert_eq!(rest(&mut only, 0), [(2, "x".to_owned())]);
}

#[test]
fn reading_goes_on_behind_a_line_of_a_marked_file() {
    let mut lines = reader(MARKED);
    let passed = "\u{feff}a b  \r\n\n";
    assert!(lines.pass_to(passed.len() as u64).unwrap());
    assert_eq!(lines.tape.content(), content(passed).content());
    assert_eq!(rest(&mut lines, 2)[0], (3, "\u{feff}c".to_owned()));
    assert!(!reader(MARKED).pass_to(1000).unwrap());
}

#[test]
fn lines_that_begin_with_a_sign_are_passed_over() {
    let mut lines = reader("\u{feff}# a\nb # c\n#\n #d\n");
    lines.comment = Some(b'#');
    assert_eq!(rest(&mut lines, 0), [(2, "b # c".to_owned()), (4, " #d".to_owned())]);
}

#[test]
fn a_line_that_is_too_long_ends_the_reading() {
    let error = reader(&"x".repeat(65)).advance(&mut 0).unwrap_err();
    assert_eq!(error.to_string(), "a row is longer than 64 bytes");
}

#[test]
fn what_is_before_a_line_without_an_end_is_known() {
    let mut reader = LineReader::new(Box::new(Cursor::new("a\n\nb\nc")), 100);
    let (mut line, mut before) = (0, Vec::new());
    while reader.advance(&mut line).unwrap() {
        before.push(reader.before_open.map(|content| content.bytes));
    }
    assert_eq!(before, [None, None, Some(5)]);
}
