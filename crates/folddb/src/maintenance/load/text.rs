//! The text of a dump, line by line, with the hash of what was read.

use std::io::BufRead;
use std::path::Path;

use folddb_base::{Error, ErrorKind, Result, counted};

use crate::maintenance::dump_lines::{self, LINE_BYTES_MAX, Line, Totals, VERSION, WITHOUT_DEADLINES};
const NO_DUMP: &str = "it does not begin as a dump does, with {\"folddb\":\"dump\",...}";

/// The lines of a dump, one after the other, with their numbers and the hash so far.
pub(crate) struct Text<'a> {
    pub(crate) dump: &'a mut dyn BufRead,
    pub(crate) line: Vec<u8>,
    number: u64,
    /// The hash of all lines before the last one that was read.
    hash_before: u64,
    pub(crate) hash: u64,
    ends_in_half_a_line: bool,
}

impl<'a> Text<'a> {
    pub(crate) fn new(dump: &'a mut dyn BufRead) -> Text<'a> {
        Text { dump, line: Vec::new(), number: 0, hash_before: 0, hash: 0, ends_in_half_a_line: false }
    }

    /// The next line; none at the end of a truncated dump, if that is accepted.
    pub(crate) fn next_of(&mut self, is_partial: bool) -> Result<Option<Line>> {
        match self.next() {
            // A file that is cut in its first line may be anything.
            Err(error) if self.number < 2 && error.kind() == ErrorKind::InvalidInput => {
                Err(self.wrong(NO_DUMP))
            }
            Ok(None) if self.number == 0 => Err(Error::invalid(format!("the dump is empty: {NO_DUMP}"))),
            Ok(None) if is_partial => Ok(None),
            Ok(None) => Err(self.cut()),
            Err(_) if is_partial && self.ends_in_half_a_line => Ok(None),
            line => line,
        }
    }

    /// The pieces of a value must follow it directly.
    pub(crate) fn check_place(&self, wants_piece: bool, line: &Line) -> Result<()> {
        match wants_piece == matches!(line, Line::Piece(_)) {
            true => Ok(()),
            false => Err(self.wrong("the pieces of a value do not follow it")),
        }
    }

    /// The next line; none at the end of the text. The first must be the start of a dump, and only
    /// that.
    fn next(&mut self) -> Result<Option<Line>> {
        if !self.read_line()? {
            return Ok(None);
        }
        let Some((b'\n', said)) = self.line.split_last() else {
            self.ends_in_half_a_line = true;
            return Err(self.wrong("it ends in the middle: the dump was cut short"));
        };
        let said = std::str::from_utf8(said).map_err(|_| self.wrong("it is not text"))?;
        let line = dump_lines::parse(said).map_err(|what| self.wrong(&what))?;
        match (&line, self.number) {
            (Line::Start { version }, 1) if (WITHOUT_DEADLINES..=VERSION).contains(version) => {}
            (Line::Start { version }, 1) => {
                let message =
                    format!("the dump is of version {version}, and this program reads up to {VERSION}");
                return Err(Error::new(ErrorKind::NewerFormat, message));
            }
            (_, 1) => return Err(self.wrong(NO_DUMP)),
            (Line::Start { .. }, _) => return Err(self.wrong("a second dump begins")),
            _ => {}
        }
        Ok(Some(line))
    }

    /// Reads up to the next newline, or the end. False when there is nothing more.
    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        loop {
            let failed = |error| Error::io("read", Path::new("the dump"), error);
            let buffer = match self.dump.fill_buf() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => &[], // compressed and truncated
                buffer => buffer.map_err(failed)?,
            };
            let newline = buffer.iter().position(|&byte| byte == b'\n');
            let taken = newline.map_or(buffer.len(), |at| at + 1);
            if self.line.len() + taken > LINE_BYTES_MAX {
                self.number += 1;
                return Err(self.wrong("it is longer than any record"));
            }
            self.line.extend_from_slice(&buffer[..taken]);
            self.dump.consume(taken);
            if newline.is_some() || taken == 0 {
                break;
            }
        }
        if self.line.is_empty() {
            return Ok(false);
        }
        self.number += 1;
        self.hash_before = self.hash;
        self.hash = dump_lines::chain(self.hash, &self.line);
        Ok(true)
    }

    /// The last line must be the last, and match what came before it.
    pub(crate) fn check_end(&mut self, totals: &Totals, tables: u64, records: u64) -> Result<()> {
        let found = Totals { tables, records, hash: self.hash_before };
        if *totals != found {
            return Err(self.wrong(&format!(
                "it counts {}, {} and hash {:016x}, but the dump has {tables}, {records} and {:016x}: it was changed",
                counted(totals.tables, "table"),
                counted(totals.records, "record"),
                totals.hash,
                self.hash_before
            )));
        }
        if self.read_line()? {
            return Err(self.wrong("there is more after the end of the dump"));
        }
        Ok(())
    }

    pub(crate) fn cut(&self) -> Error {
        Error::invalid(format!(
            "the dump was cut short: it has {}, and its last line is missing",
            counted(self.number, "line")
        ))
    }

    pub(crate) fn wrong(&self, what: &str) -> Error {
        Error::invalid(format!("line {} of the dump: {what}", self.number))
    }

    pub(crate) fn at(&self, error: &Error) -> Error {
        error.clone().context(format!("line {} of the dump", self.number))
    }
}
