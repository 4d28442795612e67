//! A file in pieces, each of which ends with a line, so that they can be read at the same time.
//!
//! Whether a row ends there too is known once the piece before has been read: a quoted field may go
//! on in the next line.
//!
//! A pipe may have nothing for a while. Then the whole lines that have arrived are a piece.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::time::{Duration, Instant};

use crate::import::rows::Rest;
use crate::import::tape::{Content, Tape};

/// How long a piece is, if its last line does not make it longer.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// Where so much comes at once, much follows: room for a piece is taken, with as much more.
const FAST_BYTES: usize = 64 << 10;
/// Whole lines that have waited this long are a piece, however short.
const PIECE_TIME: Duration = Duration::from_millis(200);
/// A piece is not longer than this: a text without line ends is not read in pieces. Nor is one of a
/// pipe whose lines seem to end otherwise, if none ends in this time.
const PIECE_BYTES_MAX: usize = 16 << 20;
const LINE_TIME: Duration = Duration::from_millis(500);

/// A piece of a file.
pub(crate) struct Piece {
    pub(crate) text: Vec<u8>,
    /// Nothing is before it.
    pub(crate) begins: bool,
    /// Nothing follows.
    pub(crate) is_last: bool,
    /// All before it, and all up to its end.
    pub(crate) before: Box<Tape>,
    pub(crate) content: Content,
}

/// What comes next.
pub(crate) enum Cut {
    Piece(Piece),
    /// Nothing has arrived for a moment.
    Wait,
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
    /// When the first byte of that came.
    since: Instant,
    tape: Tape,
    is_ended: bool,
    /// The error that the reader gave, after a piece of what came before it.
    failed: Option<io::Error>,
}

impl Pieces {
    pub(crate) fn of(rest: Rest) -> Pieces {
        let Rest { text, reader, tape, .. } = rest;
        Pieces { reader, rest: text, since: Instant::now(), tape, is_ended: false, failed: None }
    }

    /// What is in no piece: what was read, what follows, and the error that comes first.
    pub(crate) fn into_rest(self) -> Box<dyn BufRead> {
        let failed = Failing(self.failed);
        Box::new(BufReader::new(Cursor::new(self.rest).chain(failed).chain(self.reader)))
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
                self.rest = text;
                return Ok(Cut::NoLine);
            }
            let begun = text.len();
            match self.read_into(&mut text) {
                Ok(()) if self.is_ended => return Ok(Cut::Piece(self.piece(text))),
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && line_end.is_none() => {
                    let is_long = text.contains(&b'\r') && self.since.elapsed() > LINE_TIME;
                    self.rest = text;
                    return Ok(if is_long { Cut::NoLine } else { Cut::Wait });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if line_end.is_none() => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
            line_end = last_line_end(&text[begun..]).map(|end| begun + end).or(line_end);
            if line_end.is_some() && self.since.elapsed() > PIECE_TIME {
                break;
            }
        }
        self.rest = text.split_off(line_end.unwrap_or(text.len()));
        self.since = Instant::now();
        Ok(Cut::Piece(self.piece(text)))
    }

    fn piece(&mut self, text: Vec<u8>) -> Piece {
        let (begins, before) = (self.tape.bytes() == 0, Box::new(self.tape.clone()));
        self.tape.feed(&text);
        Piece { text, begins, is_last: self.is_ended, before, content: self.tape.content() }
    }

    fn read_into(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        let read = loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        let len = read.len();
        if text.is_empty() {
            self.since = Instant::now();
        }
        if len >= FAST_BYTES {
            text.reserve_exact(len.max((PIECE_BYTES + len).saturating_sub(text.len())));
        }
        text.extend_from_slice(read);
        self.reader.consume(len);
        self.is_ended = len == 0;
        Ok(())
    }
}

/// Gives an error, if there is one, and then nothing.
pub(crate) struct Failing(pub(crate) Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The place behind the last line end.
fn last_line_end(text: &[u8]) -> Option<usize> {
    text.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1)
}

#[cfg(test)]
#[path = "pieces/tests.rs"]
mod tests;
