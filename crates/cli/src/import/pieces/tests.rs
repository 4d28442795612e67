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
                assert_eq!(piece.begins, found.is_empty());
                found.push((piece.text, piece.is_last));
            }
            Ok(Cut::End) => return (found, "end"),
            Ok(Cut::NoLine) => return (found, "no line"),
            Ok(Cut::Wait) => return (found, "wait"),
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

/// A pipe that has had nothing for a moment: whole lines are a piece, and the rest waits.
#[test]
fn whole_lines_of_a_pipe_are_a_piece_when_nothing_follows() {
    struct Slow(Vec<&'static [u8]>);
    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let chunk = self.0.pop().unwrap_or_default();
            if chunk == b"-" {
                return Err(std::io::ErrorKind::WouldBlock.into());
            }
            buffer[..chunk.len()].copy_from_slice(chunk);
            Ok(chunk.len())
        }
    }
    let reader = Box::new(BufReader::new(Slow(vec![b"c\n", b"-", b"-", b"c,", b"-", b"a\nb\nc", b"-"])));
    let mut pieces = Pieces::of(Rest { text: Vec::new(), reader, tape: Tape::new(), lines: 0 });
    let mut told = Vec::new();
    for _ in 0..7 {
        told.push(match pieces.next() {
            Ok(Cut::Piece(piece)) => String::from_utf8(piece.text).expect("text"),
            Ok(Cut::Wait) => "wait".to_owned(),
            Ok(Cut::NoLine) => "no line".to_owned(),
            Ok(Cut::End) => "end".to_owned(),
            Err(error) => panic!("{error}"),
        });
    }
    assert_eq!(told, ["wait", "a\nb\n", "wait", "wait", "cc,c\n", "end", "end"]);
}

trait Texts {
    fn concat_texts(&self) -> Vec<u8>;
}

impl Texts for Vec<(Vec<u8>, bool)> {
    fn concat_texts(&self) -> Vec<u8> {
        self.iter().flat_map(|(piece, _)| piece.clone()).collect()
    }
}
