//! The lines of a text, one after the other: those of JSON, of logs, and of words between spaces.
//!
//! A byte order mark at the beginning is no part of the first line. It is content of the file, by
//! which that is known, and so are empty lines, which are passed over.

use std::io::{self, BufRead, Read};

use crate::import::row::without_mark;
use crate::import::tape::{Content, Tape};

/// Reads lines.
pub(crate) struct LineReader {
    pub(crate) reader: Box<dyn BufRead>,
    /// Longest line, in bytes.
    bytes_max: usize,
    /// The present line, without its end.
    pub(crate) text: Vec<u8>,
    /// What was read.
    pub(crate) tape: Tape,
    /// What is before the present line, if all ends within it.
    pub(crate) before_open: Option<Content>,
    /// The same of a last line that was passed over.
    pub(crate) passed_open: Option<Content>,
    /// The text is the beginning of a line; the reader had no more yet.
    pub(crate) is_partial: bool,
    /// The next line is the first of the file, and may begin with a byte order mark.
    pub(crate) begins: bool,
    /// Lines that begin with it are passed over.
    pub(crate) comment: Option<u8>,
}

impl LineReader {
    /// The lines of a text, each of less than `bytes_max` bytes.
    pub(crate) fn new(reader: Box<dyn BufRead>, bytes_max: usize) -> LineReader {
        LineReader {
            reader,
            bytes_max,
            text: Vec::new(),
            tape: Tape::new(),
            before_open: None,
            passed_open: None,
            is_partial: false,
            begins: true,
            comment: None,
        }
    }

    /// Moves to the next line that is not empty, and no comment; false at the end. Counts the
    /// lines. An error of the reader leaves what came before it: the call may be repeated.
    pub(crate) fn advance(&mut self, line: &mut u64) -> io::Result<bool> {
        loop {
            if !std::mem::take(&mut self.is_partial) {
                self.text.clear();
            }
            let left = (self.bytes_max - self.text.len()) as u64;
            let read = self.reader.by_ref().take(left).read_until(b'\n', &mut self.text);
            self.is_partial = read.is_err();
            read?;
            self.before_open = match self.text.last() {
                Some(b'\n') | None => None,
                Some(_) => Some(self.tape.content()),
            };
            // A line that has arrived in part is not behind the place where reading may go on.
            self.tape.feed(&self.text);
            if self.text.is_empty() {
                return Ok(false);
            }
            *line += 1;
            if self.text.len() == self.bytes_max {
                return Err(io::Error::other(format!("a row is longer than {} bytes", self.bytes_max)));
            }
            self.text.truncate(self.text.trim_ascii_end().len());
            if std::mem::take(&mut self.begins) {
                let mark = self.text.len() - without_mark(&self.text).len();
                self.text.drain(..mark);
            }
            let is_comment = self.comment.is_some() && self.text.first() == self.comment.as_ref();
            if !self.text.is_empty() && !is_comment {
                return Ok(true);
            }
            self.passed_open = self.before_open;
        }
    }

    /// Passes what is before a place; false if the text ends before.
    pub(crate) fn pass_to(&mut self, bytes: u64) -> io::Result<bool> {
        self.begins = false;
        self.tape.feed_from(&mut self.reader, bytes)
    }
}

#[cfg(test)]
#[path = "line_reader/tests.rs"]
mod tests;
