use std::io::{BufReader, Cursor, Read};

use super::*;

/// Reads a text in pieces: what each has, whether it is the last, and how it ended.
fn cut(text: Vec<u8>, fails: bool) -> (Vec<(Vec<u8>, bool)>, &'static str) {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the file ends too early"))
        }
    }
    let text = Cursor::new(text);
    let reader: Box<dyn BufRead> = match fails {
        true => Box::new(BufReader::new(text.chain(Failing))),
        false => Box::new(BufReader::new(text)),
    };
    let mut pieces = Pieces::of(Rest { text: Vec::new(), reader, tape: Tape::new(), lines: 0 });
    let mut found = Vec::new();
    loop {
        match pieces.next() {
            Ok(Cut::Piece(piece)) => {
                assert_eq!(piece.number, found.len() as u64);
                found.push((piece.text, piece.is_last));
            }
            Ok(Cut::End) => return (found, "end"),
            Ok(Cut::NoLine) => return (found, "no line"),
            Err(_) => return (found, "failed"),
        }
    }
}

fn lines(bytes: usize) -> Vec<u8> {
    (0..).flat_map(|n| format!("{n},some text\n").into_bytes()).take(bytes).collect()
}

#[test]
fn pieces_are_all_of_the_text_and_end_with_a_line() {
    for bytes in [0, 1, 100, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES + 77] {
        let text = lines(bytes);
        let (pieces, ended) = cut(text.clone(), false);
        assert_eq!(ended, "end");
        assert_eq!(pieces.concat_texts(), text);
        let last = pieces.len() - 1;
        for (at, (piece, is_last)) in pieces.iter().enumerate() {
            assert_eq!(*is_last, at == last);
            assert!(at == last || piece.ends_with(b"\n") && piece.len() < 2 * PIECE_BYTES);
        }
    }
}

#[test]
fn what_is_before_an_error_is_a_piece() {
    let text = lines(3 * PIECE_BYTES + 5);
    let (pieces, ended) = cut(text.clone(), true);
    assert_eq!(ended, "failed");
    assert!(pieces.iter().all(|(piece, is_last)| piece.ends_with(b"\n") && !is_last));
    let read = pieces.concat_texts();
    assert!(text.starts_with(&read) && text.len() - read.len() < 100, "all but the last line");
}

#[test]
fn a_text_without_lines_is_not_cut() {
    let mut text = lines(PIECE_BYTES);
    text.extend(vec![b'x'; PIECE_BYTES_MAX + 2 * PIECE_BYTES]);
    assert_eq!(cut(text, false).1, "no line");
}

trait Texts {
    fn concat_texts(&self) -> Vec<u8>;
}

impl Texts for Vec<(Vec<u8>, bool)> {
    fn concat_texts(&self) -> Vec<u8> {
        self.iter().flat_map(|(piece, _)| piece.clone()).collect()
    }
}
