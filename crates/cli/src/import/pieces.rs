//! A file in pieces, each of which ends with a line, so that they can be read at the same time.
//!
//! Whether a row ends there too is known once the piece before has been read: a quoted field may go
//! on in the next line.

use std::io::{self, BufRead};

use crate::import::rows::Rest;
use crate::import::tape::{Content, Tape};

/// How long a piece is, if its last line does not make it longer.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// A piece is not longer than this: a text without line ends is not read in pieces.
const PIECE_BYTES_MAX: usize = 16 << 20;

/// A piece of a file.
pub(crate) struct Piece {
    /// The first one is 0.
    pub(crate) number: u64,
    pub(crate) text: Vec<u8>,
    /// Nothing is before it.
    pub(crate) begins: bool,
    /// Nothing follows.
    pub(crate) is_last: bool,
    /// All up to its end.
    pub(crate) content: Content,
}

/// What comes next.
pub(crate) enum Cut {
    Piece(Piece),
    /// There is no line end for long: the rest cannot be read in pieces.
    NoLine,
    /// There are no more.
    End,
}

/// The pieces of what is left of a file.
pub(crate) struct Pieces {
    reader: Box<dyn BufRead>,
    /// What was read, and belongs to the next piece.
    rest: Vec<u8>,
    tape: Tape,
    number: u64,
    is_ended: bool,
    /// The error that the reader gave, after a piece of what came before it.
    failed: Option<io::Error>,
}

impl Pieces {
    pub(crate) fn of(rest: Rest) -> Pieces {
        let Rest { text, reader, tape, .. } = rest;
        Pieces { reader, rest: text, tape, number: 0, is_ended: false, failed: None }
    }

    /// Cuts the next piece.
    ///
    /// # Errors
    /// Those of the reader, once what came before is in pieces.
    pub(crate) fn next(&mut self) -> io::Result<Cut> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        if self.is_ended {
            return Ok(Cut::End);
        }
        let mut text = std::mem::take(&mut self.rest);
        let mut line_end = last_line_end(&text);
        while text.len() < PIECE_BYTES || line_end.is_none() {
            if text.len() > PIECE_BYTES_MAX {
                return Ok(Cut::NoLine);
            }
            let begun = text.len();
            match self.read_into(&mut text) {
                Ok(()) if self.is_ended => return Ok(Cut::Piece(self.piece(text))),
                Ok(()) => {}
                Err(error) if line_end.is_none() => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
            line_end = last_line_end(&text[begun..]).map(|end| begun + end).or(line_end);
        }
        self.rest = text.split_off(line_end.unwrap_or(text.len()));
        Ok(Cut::Piece(self.piece(text)))
    }

    fn piece(&mut self, text: Vec<u8>) -> Piece {
        let begins = self.tape.bytes() == 0;
        self.tape.feed(&text);
        let (number, is_last, content) = (self.number, self.is_ended, self.tape.content());
        self.number += 1;
        Piece { number, text, begins, is_last, content }
    }

    fn read_into(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        let read = loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        let len = read.len();
        text.extend_from_slice(read);
        self.reader.consume(len);
        self.is_ended = len == 0;
        Ok(())
    }
}

/// The place behind the last line end.
fn last_line_end(text: &[u8]) -> Option<usize> {
    text.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1)
}

#[cfg(test)]
#[path = "pieces/tests.rs"]
mod tests;
