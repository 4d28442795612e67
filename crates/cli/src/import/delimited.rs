//! Records of delimited text (CSV, TSV), one after the other, by RFC 4180, and in variants of other
//! programs.
//!
//! ```text
//!   a,b\n             fields between delimiters; a record ends with \n, \r\n or \r; empty lines are skipped
//!   "a ""b"", c\nd"   a quote opens at the beginning of a field only; inside it is doubled, and lines may end
//!   "a" ,b            blanks behind a closing quote belong to the field
//!   "a"b              any other text there makes a bad record: its quotes are not what they seem
//!   "a\"b\\"          with an escape, that is `a"b\`; before any other byte it stands for itself
//! ```
//!
//! **An unclosed quote** would include unrelated rows. It is detected when the text ends inside it,
//! when the record is too long, or when the next quote, on a later line, is followed by text: that
//! one was meant to open a field. Then the record is bad, and reading continues at the line after
//! the one on which the quote opened: nothing after that line is taken for a part of the row.
//!
//! Where a file that may grow ends inside a quote, nothing is decided: what follows may be lines of
//! a field that closes later, or rows behind a stray quote. So the record has all that is left
//! ([`Found::LeftOpen`]), and reading goes on at its beginning when there is more. A longer file
//! decides it, once at the latest where the record is too long.
//!
//! Two stray quotes make a valid field of the lines between them. If nearly all of these, and those
//! with the quotes, have as many fields as a row, they are rows, and the quote is taken for one
//! that does not close; unless it is said that they are text. Any other field of many lines is
//! taken, and noted, as is one of few lines that are all like rows.
//!
//! **Two ways.** A record that is wholly in the buffer, on one line, and whose quotes are around
//! whole fields, or doubled in one, is found at once: its fields are places in the buffer
//! ([`Records::take_at_once`]). Any other is read field by field.

mod marks;

use std::io::{self, BufRead, Read};

use csv::ByteRecord;

use crate::import::dialect::{Dialect, USUAL_ESCAPE, is_line_end};
use crate::import::row::BYTE_ORDER_MARK;
use crate::import::tape::{Content, Tape};

use marks::Marks;

/// A field of more lines than this is noted, and one of fewer if they are like rows.
pub(crate) const FIELD_LINES_MAX: u64 = 4;

/// So many lines in a quote are rows where a row has two fields only.
const ROWS_OF_TWO_FIELDS_MIN: usize = 50;
/// What follows a quoted field of many lines on its last line is looked at up to so many bytes.
const LAST_LINE_MAX: usize = 1 << 16;

/// The result of reading the next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A record.
    Record,
    /// The last field of the record begins with a quote that does not close. The field is the rest
    /// of that line.
    OpenQuote,
    /// The same of one that does, so many lines later, and the lines between are rows.
    StrayQuote { lines: u64 },
    /// The text, which may grow, ends inside the quote with which the last field of the record
    /// begins. The field is the rest of its line, and what follows is left, so many lines behind
    /// that one: there are no more.
    LeftOpen { lines: u64 },
    /// The record is too long; its line is skipped.
    TooLong,
    /// A record with a field that has text behind its closing quote: which one, and whether a
    /// backslash is before that quote. The field is as it is in the text.
    Torn { field: usize, is_escaped: bool },
    /// There are no more.
    End,
}

/// The result of reading more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    Read,
    TooLong,
    End,
}

/// Where a field is: in the text, or among those that had doubled quotes.
struct Place {
    begin: usize,
    end: usize,
    is_unquoted: bool,
}

/// How a field ended.
enum FieldEnd {
    Delimiter,
    /// The end of the record, which is there, or the end of the text.
    Record,
    /// Its quote does not close: its place, its line relative to that of the record, and whether
    /// the text ended before that was known; or how many lines later it does, behind rows.
    OpenQuote {
        at: usize,
        lines: u64,
        is_undecided: bool,
        closes: Option<u64>,
    },
    TooLong,
}

/// Lines of a quoted field that are like rows.
#[derive(Clone, Copy)]
struct InField {
    /// The text ends within the last one.
    is_undecided: bool,
    /// They have so many fields, or are so many, that they are no text.
    are_surely: bool,
}

/// Where a field of many lines is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Its first line, from 1.
    pub(crate) line: u64,
    /// How many lines it is on.
    pub(crate) lines: u64,
    /// They are few, and like rows.
    pub(crate) is_of_rows: bool,
}

/// The records of a text. An error of the reader leaves the state before the record: the call may
/// be repeated.
pub(crate) struct Records {
    reader: Box<dyn BufRead>,
    dialect: Dialect,
    /// How many fields a row has, if that is known, and if it tells rows from text in a field.
    width: Option<usize>,
    /// Longest record, in bytes.
    bytes_max: usize,
    /// More may follow the end of the text later.
    may_grow: bool,
    /// The text read so far; everything before `begin` is processed.
    text: Vec<u8>,
    /// Where the next record begins, or the text between it and the last.
    begin: usize,
    /// Where fields may end in the text.
    marks: Marks,
    /// The content before `begin`, and how much of the text it has taken.
    tape: Tape,
    taped: usize,
    /// The line of `begin`, from 1.
    line: u64,
    /// The byte before `begin` is a `\r`; its `\n` may follow.
    after_return: bool,
    /// The rest of a line that is too long comes first.
    passes_line: bool,
    is_begun: bool,
    /// All of the text has been read.
    is_ended: bool,
    field: Vec<u8>,
    /// The fields of the present record, unless they are places.
    record: ByteRecord,
    /// Where the fields of the present record are, if it was found at once.
    places: Vec<Place>,
    has_places: bool,
    /// Its fields that had doubled quotes, one after the other, with single ones.
    unquoted: Vec<u8>,
    /// The line under which the present record is reported: where it begins, or where its quote
    /// opens.
    pub(crate) record_line: u64,
    /// How many lines after that its end is.
    pub(crate) record_lines: u64,
    /// How long the present record is, which ends at `begin`, and the line on which it begins.
    record_bytes: usize,
    begin_line: u64,
    /// The text ends inside a quote of the present record.
    is_left_open: bool,
    /// The first field of the present record with text behind its closing quote: which one, and
    /// whether a backslash is before that quote.
    torn: Option<(usize, bool)>,
    /// The line of a quote behind which lines have come, and not its end yet.
    pub(crate) open_quote: Option<u64>,
    /// What is before the last line, and its number, if it is a comment without an end.
    passed_open: Option<(Content, u64)>,
    /// The first field of the present record with more than [`FIELD_LINES_MAX`] lines, or with
    /// fewer that are like rows.
    pub(crate) span: Option<Span>,
}

impl Records {
    /// The records of a text, each of at most `bytes_max` bytes.
    pub(crate) fn new(reader: Box<dyn BufRead>, dialect: Dialect, bytes_max: usize) -> Records {
        Records {
            reader,
            dialect,
            width: None,
            bytes_max,
            may_grow: false,
            text: Vec::new(),
            begin: 0,
            marks: Marks::of(dialect),
            tape: Tape::new(),
            taped: 0,
            line: 1,
            after_return: false,
            passes_line: false,
            is_begun: false,
            is_ended: false,
            field: Vec::new(),
            record: ByteRecord::new(),
            places: Vec::new(),
            has_places: false,
            unquoted: Vec::new(),
            record_line: 0,
            record_lines: 0,
            record_bytes: 0,
            begin_line: 1,
            is_left_open: false,
            torn: None,
            open_quote: None,
            passed_open: None,
            span: None,
        }
    }

    /// The records of a text that is here, on whose first line a record begins. It is all that
    /// there is, or more follows: then reading ends with an error of kind `WouldBlock`.
    pub(crate) fn of_text(text: Vec<u8>, is_last: bool, dialect: Dialect, bytes_max: usize) -> Records {
        let reader: Box<dyn BufRead> = if is_last { Box::new(io::empty()) } else { Box::new(NoneYet) };
        let records = Records::new(reader, dialect, bytes_max);
        Records { text, is_begun: true, is_ended: is_last, ..records }
    }

    /// The same, of a text that may grow after its end.
    pub(crate) fn that_may_grow(self, may_grow: bool) -> Records {
        Records { may_grow, ..self }
    }

    /// The same, with rows of so many fields.
    pub(crate) fn with_width(mut self, fields: usize) -> Records {
        self.set_width(fields);
        self
    }

    /// Says how many fields a row has. One field tells nothing: each line of text has it.
    pub(crate) fn set_width(&mut self, fields: usize) {
        self.width = (fields > 1 && !self.dialect.is_multiline).then_some(fields);
    }

    /// The records of what follows so many lines, by the same delimiter.
    pub(crate) fn after(&self, lines: u64, reader: Box<dyn BufRead>) -> Records {
        let records = Records { width: self.width, ..Records::new(reader, self.dialect, self.bytes_max) };
        Records { is_begun: true, line: lines + 1, ..records }
    }

    /// What is between fields, and around them.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// How many lines are before the next record.
    pub(crate) fn processed_lines(&self) -> u64 {
        self.line - 1
    }

    /// The text that is here.
    pub(crate) fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// Takes what is here and not processed, and the reader of what follows.
    pub(crate) fn take_rest(&mut self) -> (Vec<u8>, Box<dyn BufRead>) {
        self.processed();
        let rest = self.text.split_off(self.begin);
        self.marks.forget();
        (rest, std::mem::replace(&mut self.reader, Box::new(io::empty())))
    }

    /// Where the next record begins in the text.
    pub(crate) fn begin(&self) -> usize {
        self.begin
    }

    /// How many fields the present record has.
    pub(crate) fn len(&self) -> usize {
        if self.has_places { self.places.len() } else { self.record.len() }
    }

    /// A field of the present record; empty if there is none.
    #[inline]
    pub(crate) fn field(&self, index: usize) -> &[u8] {
        match self.has_places {
            true => self.places.get(index).map_or(&[], |place| match place.is_unquoted {
                false => &self.text[place.begin..place.end],
                true => &self.unquoted[place.begin..place.end],
            }),
            false => self.record.get(index).unwrap_or_default(),
        }
    }

    /// The fields of the present record.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.field(index))
    }

    /// The present record, by itself.
    pub(crate) fn to_record(&self) -> ByteRecord {
        self.fields().collect()
    }

    /// Makes this the present record.
    pub(crate) fn set_record(&mut self, record: ByteRecord) {
        (self.record, self.has_places) = (record, false);
    }

    /// The text of the present record, without the end of its line, unless it was set.
    pub(crate) fn text_of_record(&self) -> &[u8] {
        let start = self.begin.saturating_sub(self.record_bytes);
        &self.text[start..self.begin]
    }

    /// Whether the place behind the present record is inside a line that is passed over.
    pub(crate) fn is_inside_line(&self) -> bool {
        self.passes_line
    }

    /// The content that is processed, and the line there.
    pub(crate) fn processed(&mut self) -> (&Tape, u64) {
        self.tape.feed(&self.text[self.taped..self.begin]);
        self.taped = self.begin;
        (&self.tape, self.line)
    }

    /// What is before the present record, and the line there, if all ends within the last line of
    /// the record, or inside a quote of it.
    pub(crate) fn before_open(&self) -> Option<(Content, u64)> {
        let ends_open = self.is_left_open || self.text.last().is_some_and(|&byte| !is_line_end(byte));
        let start = self.begin.checked_sub(self.record_bytes)?;
        let is_last = self.is_ended && self.begin == self.text.len();
        if !is_last || !ends_open || start < self.taped {
            return None;
        }
        let mut tape = self.tape.clone();
        tape.feed(&self.text[self.taped..start]);
        Some((tape.content(), self.begin_line))
    }

    /// At the end, what is before the last line, and its number, if it is a comment without an end.
    pub(crate) fn passed_open(&self) -> Option<(Content, u64)> {
        self.passed_open
    }

    /// Passes what is before a place behind a record, which is on this line. False if the text ends
    /// before.
    ///
    /// # Errors
    /// Those of the reader.
    pub(crate) fn pass_to(&mut self, bytes: u64, line: u64) -> io::Result<bool> {
        loop {
            let passed = self.processed().0.bytes();
            let wanted = usize::try_from(bytes.saturating_sub(passed)).unwrap_or(usize::MAX);
            let there = self.text.len() - self.begin;
            self.begin += wanted.min(there);
            if wanted <= there {
                (self.line, self.after_return, self.passes_line) = (line, false, false);
                return Ok(true);
            }
            if self.read_on()? == More::End {
                return Ok(false);
            }
        }
    }

    /// Reads the next record.
    ///
    /// # Errors
    /// Those of the reader.
    pub(crate) fn advance(&mut self) -> io::Result<Found> {
        self.has_places = false;
        self.begin_text()?;
        self.pass_line()?;
        loop {
            if !self.pass_line_ends()? {
                return Ok(Found::End);
            }
            if self.dialect.comment.is_none() || self.byte(0)? != self.dialect.comment {
                break;
            }
            self.pass_comment()?;
        }
        (self.span, self.torn) = (None, None);
        if let Some(end) = self.take_at_once() {
            self.has_places = true;
            return Ok(self.end_record(end - self.begin, 0, Found::Record));
        }
        self.record.clear();
        let (mut at, mut lines) = (0, 0);
        loop {
            let end = self.take_field(&mut at, &mut lines)?;
            if !matches!(end, FieldEnd::TooLong) {
                self.record.push_field(&self.field);
            }
            match end {
                FieldEnd::Delimiter => at += 1,
                FieldEnd::Record => {
                    let torn = self.torn.map(|(field, is_escaped)| Found::Torn { field, is_escaped });
                    return Ok(self.end_record(at, lines, torn.unwrap_or(Found::Record)));
                }
                FieldEnd::TooLong => {
                    self.passes_line = true;
                    return Ok(self.end_record(at, lines, Found::TooLong));
                }
                FieldEnd::OpenQuote { at, lines, is_undecided, closes } => {
                    let (end, found) = match (is_undecided && self.may_grow, closes) {
                        (true, _) => {
                            let lines = lines_in(&self.text[self.begin + at + self.field.len()..]);
                            (self.text.len() - self.begin, Found::LeftOpen { lines })
                        }
                        (false, None) => (at + self.field.len(), Found::OpenQuote),
                        (false, Some(lines)) => (at + self.field.len(), Found::StrayQuote { lines }),
                    };
                    let found = self.end_record(end, lines, found);
                    (self.record_line, self.record_lines) = (self.line, 0);
                    self.passes_line = self.begin == self.text.len();
                    return Ok(found);
                }
            }
        }
    }

    /// The next record begins after `at`, this many lines later.
    fn end_record(&mut self, at: usize, lines: u64, found: Found) -> Found {
        (self.record_line, self.record_lines) = (self.line, lines);
        (self.record_bytes, self.begin_line) = (at, self.line);
        self.is_left_open = matches!(found, Found::LeftOpen { .. });
        self.begin += at;
        self.line += lines;
        self.after_return = false;
        found
    }

    /// Finds the fields of the next record, and its end; none if it is not on one line that is
    /// here, or has other quotes than around whole fields and doubled ones inside.
    fn take_at_once(&mut self) -> Option<usize> {
        self.places.clear();
        self.unquoted.clear();
        let mut at = self.begin;
        loop {
            let next = match (*self.text.get(at)?, self.dialect.quote) {
                (byte, Some(quote)) if byte == quote => self.take_quoted_at_once(at + 1, quote)? + 1,
                _ => self.take_bare_at_once(at)?,
            };
            match *self.text.get(next)? {
                byte if byte == self.dialect.delimiter => at = next + 1,
                byte if is_line_end(byte) => return Some(next),
                _ => return None,
            }
        }
    }

    /// Finds the field that begins here; the place of the delimiter or line end behind it.
    #[inline]
    fn take_bare_at_once(&mut self, begin: usize) -> Option<usize> {
        let mut end = self.marks.next(&self.text, begin)?;
        while Some(self.text[end]) == self.dialect.quote {
            end = self.marks.next(&self.text, end + 1)?;
        }
        self.places.push(Place { begin, end, is_unquoted: false });
        Some(end)
    }

    /// Finds the field that begins here, behind its quote; the place of the closing one.
    #[inline]
    fn take_quoted_at_once(&mut self, begin: usize, quote: u8) -> Option<usize> {
        let (mut end, mut has_doubled) = (begin, false);
        let escape = self.dialect.escape;
        loop {
            end = self.marks.next(&self.text, end)?;
            match self.text[end] {
                byte if byte == quote
                    && escape.is_some_and(|sign| is_escaped(&self.text[begin..end], sign)) =>
                {
                    end += 1;
                }
                byte if byte == quote && *self.text.get(end + 1)? == quote => {
                    has_doubled = true;
                    end += 2;
                }
                byte if byte == quote => break,
                b'\n' => return None,
                _ => end += 1,
            }
        }
        let place = match (escape, has_doubled) {
            (Some(sign), _) if memchr::memchr(sign, &self.text[begin..end]).is_some() => {
                self.unescape(begin, end, (quote, sign))
            }
            (_, false) => Place { begin, end, is_unquoted: false },
            (_, true) => self.unquote(begin, end, quote),
        };
        self.places.push(place);
        Some(end)
    }

    /// Copies a field with single quotes for doubled ones.
    fn unquote(&mut self, begin: usize, end: usize, quote: u8) -> Place {
        let start = self.unquoted.len();
        let mut rest = &self.text[begin..end];
        while let Some(at) = memchr::memchr(quote, rest) {
            self.unquoted.extend_from_slice(&rest[..=at]);
            rest = &rest[at + 2..];
        }
        self.unquoted.extend_from_slice(rest);
        Place { begin: start, end: self.unquoted.len(), is_unquoted: true }
    }

    /// The same, of a field in which a sign escapes quotes and itself.
    fn unescape(&mut self, begin: usize, end: usize, (quote, sign): (u8, u8)) -> Place {
        let start = self.unquoted.len();
        let mut rest = &self.text[begin..end];
        while let Some(at) = memchr::memchr2(quote, sign, rest) {
            self.unquoted.extend_from_slice(&rest[..at]);
            let is_pair = rest.get(at + 1).is_some_and(|&next| next == quote || next == sign);
            let at = at + usize::from(is_pair);
            self.unquoted.push(rest[at]);
            rest = &rest[at + 1..];
        }
        self.unquoted.extend_from_slice(rest);
        Place { begin: start, end: self.unquoted.len(), is_unquoted: true }
    }

    /// Takes the field at `at`, which moves to its end.
    fn take_field(&mut self, at: &mut usize, lines: &mut u64) -> io::Result<FieldEnd> {
        self.field.clear();
        let first = self.byte(*at)?;
        let Some(quote) = self.dialect.quote.filter(|quote| first == Some(*quote)) else {
            return self.take_bare(at);
        };
        let (opened_at, opened_lines) = (*at, *lines);
        *at += 1;
        let taken = self.take_quoted(at, lines, quote);
        let waits = taken.is_err() && *lines > opened_lines;
        self.open_quote = waits.then_some(self.line + opened_lines);
        let is_closed = taken?;
        if !is_closed || (*lines > opened_lines && !self.ends_field(*at)?) {
            self.put_line(opened_at);
            let is_undecided = !is_closed && self.is_ended;
            return Ok(FieldEnd::OpenQuote {
                at: opened_at,
                lines: opened_lines,
                is_undecided,
                closes: None,
            });
        }
        let (line, of_field) = (self.line + opened_lines, *lines - opened_lines + 1);
        let is_long = of_field > FIELD_LINES_MAX;
        let rows = if of_field > 1 { self.rows_in_field(*at)? } else { None };
        if let Some(InField { is_undecided, .. }) = rows.filter(|rows| is_long && rows.are_surely) {
            self.put_line(opened_at);
            let closes = Some(of_field - 1);
            return Ok(FieldEnd::OpenQuote { at: opened_at, lines: opened_lines, is_undecided, closes });
        }
        let is_of_rows = !is_long && rows.is_some() && !self.has_blanks_as_in_text();
        if is_long && !self.dialect.is_multiline || is_of_rows {
            self.span.get_or_insert(Span { line, lines: of_field, is_of_rows });
        }
        if !self.ends_field(*at)? {
            self.tear(opened_at, *at);
        }
        self.take_bare(at)
    }

    /// Whether the lines of the field that has been read, and that closes before `at`, are rows
    /// between two stray quotes: the first and the last one, with what is around the field, have as
    /// many fields as a row, and so have nine of ten between them. A text that was quoted seldom
    /// has, nor has a table in a field, which comes beside the other fields.
    fn rows_in_field(&mut self, at: usize) -> io::Result<Option<InField>> {
        let Some(width) = self.width else { return Ok(None) };
        let mut end = at;
        while self.byte(end)?.is_some_and(|byte| !is_line_end(byte)) && end < at + LAST_LINE_MAX {
            end += 1;
        }
        let is_undecided = self.byte(end)?.is_none();
        let delimiter = self.dialect.delimiter;
        let fields = |text: &[u8]| memchr::memchr_iter(delimiter, text).count() + 1;
        let mut lines = self.field.split(|&byte| byte == b'\n');
        let (Some(first), Some(last)) = (lines.next(), lines.next_back()) else { return Ok(None) };
        let behind = &self.text[self.begin + at..self.begin + end];
        if self.record.len() + fields(first) != width || fields(last) + fields(behind) - 1 != width {
            return Ok(None);
        }
        // Two fields, and one delimiter, many a line of text has.
        let has_both =
            |line: &[u8]| width > 2 || !line.starts_with(&[delimiter]) && !line.ends_with(&[delimiter]);
        let is_row = |line: &[u8]| fields(line) == width && has_both(line);
        let (rows, lines) =
            lines.fold((0, 0), |(rows, lines), line| (rows + usize::from(is_row(line)), lines + 1));
        let are_surely = width > 2 || rows >= ROWS_OF_TWO_FIELDS_MIN;
        Ok((rows * 10 >= lines * 9).then_some(InField { is_undecided, are_surely }))
    }

    /// Whether a delimiter in the field that has been read has a blank behind it, as a comma in a
    /// text has.
    fn has_blanks_as_in_text(&self) -> bool {
        memchr::memmem::find(&self.field, &[self.dialect.delimiter, b' ']).is_some()
    }

    /// The field that opens at one place, and closes before another, is as it is in the text.
    fn tear(&mut self, opened_at: usize, at: usize) {
        let (opened_at, at) = (self.begin + opened_at, self.begin + at);
        let is_escaped = at - opened_at > 2 && self.text[at - 2] == USUAL_ESCAPE;
        self.torn.get_or_insert((self.record.len(), is_escaped));
        self.field.clear();
        self.field.extend_from_slice(&self.text[opened_at..at]);
    }

    /// Takes the text up to the next delimiter or the end of the line.
    fn take_bare(&mut self, at: &mut usize) -> io::Result<FieldEnd> {
        loop {
            let rest = &self.text[self.begin + *at..];
            let len = rest.iter().position(|&byte| self.dialect.is_end(byte));
            self.field.extend_from_slice(&rest[..len.unwrap_or(rest.len())]);
            *at += len.unwrap_or(rest.len());
            if len.is_some() {
                let is_delimiter = self.text[self.begin + *at] == self.dialect.delimiter;
                return Ok(if is_delimiter { FieldEnd::Delimiter } else { FieldEnd::Record });
            }
            match self.read_on()? {
                More::Read => {}
                More::TooLong => return Ok(FieldEnd::TooLong),
                More::End => return Ok(FieldEnd::Record),
            }
        }
    }

    /// Takes the text after an opening quote, and the closing one; false if there is none.
    fn take_quoted(&mut self, at: &mut usize, lines: &mut u64, quote: u8) -> io::Result<bool> {
        let escape = self.dialect.escape;
        loop {
            let rest = &self.text[self.begin + *at..];
            let len = rest.iter().position(|&byte| byte == quote || Some(byte) == escape);
            let taken = &rest[..len.unwrap_or(rest.len())];
            self.field.extend_from_slice(taken);
            *lines += taken.iter().filter(|&&byte| byte == b'\n').count() as u64;
            *at += taken.len();
            if len.is_none() {
                match self.read_on()? {
                    More::Read => continue,
                    More::TooLong | More::End => return Ok(false),
                }
            }
            let sign = self.text[self.begin + *at];
            *at += 1;
            if Some(sign) == escape {
                let next = self.byte(*at)?.filter(|&next| next == quote || next == sign);
                self.field.push(next.unwrap_or(sign));
                *at += usize::from(next.is_some());
                continue;
            }
            if self.byte(*at)? != Some(quote) {
                return Ok(true);
            }
            self.field.push(quote);
            *at += 1;
        }
    }

    /// Whether a field ends at `at`, or after the blanks there.
    fn ends_field(&mut self, mut at: usize) -> io::Result<bool> {
        loop {
            match self.byte(at)? {
                None => return Ok(true),
                Some(byte) if self.dialect.is_end(byte) => return Ok(true),
                Some(b' ' | b'\t') => at += 1,
                Some(_) => return Ok(false),
            }
        }
    }

    /// The field becomes the rest of the line from `at` on, which has been read.
    fn put_line(&mut self, at: usize) {
        let rest = &self.text[self.begin + at..];
        let len = rest.iter().position(|&byte| is_line_end(byte)).unwrap_or(rest.len());
        self.field.clear();
        self.field.extend_from_slice(&rest[..len]);
    }

    fn begin_text(&mut self) -> io::Result<()> {
        if self.is_begun {
            return Ok(());
        }
        let mut has_mark = true;
        for (at, &byte) in BYTE_ORDER_MARK.iter().enumerate() {
            has_mark = has_mark && self.byte(at)? == Some(byte);
        }
        self.begin += if has_mark { BYTE_ORDER_MARK.len() } else { 0 };
        self.is_begun = true;
        Ok(())
    }

    /// Skips the rest of a line that was too long.
    fn pass_line(&mut self) -> io::Result<()> {
        while self.passes_line {
            let rest = &self.text[self.begin..];
            let len = rest.iter().position(|&byte| is_line_end(byte));
            self.begin += len.unwrap_or(rest.len());
            self.passes_line = len.is_none() && self.read_on()? != More::End;
        }
        Ok(())
    }

    /// Skips a comment, and notes what is before it if the text ends within its line.
    fn pass_comment(&mut self) -> io::Result<()> {
        let ends_here = self.text[self.begin..].iter().any(|&byte| is_line_end(byte));
        let before = (!ends_here).then(|| (self.processed().0.content(), self.line));
        self.passes_line = true;
        self.pass_line()?;
        let is_last = self.is_ended && self.begin == self.text.len();
        self.passed_open = before.filter(|_| is_last);
        Ok(())
    }

    /// Skips line ends; false at the end of the text.
    fn pass_line_ends(&mut self) -> io::Result<bool> {
        while let Some(byte) = self.byte(0)? {
            if !is_line_end(byte) {
                return Ok(true);
            }
            let is_second = byte == b'\n' && self.after_return;
            self.line += u64::from(!is_second);
            self.after_return = byte == b'\r';
            self.begin += 1;
        }
        Ok(false)
    }

    /// The byte at this distance from `begin`; none at the end of the text.
    fn byte(&mut self, at: usize) -> io::Result<Option<u8>> {
        while self.begin + at >= self.text.len() {
            if self.read_on()? == More::End {
                return Ok(None);
            }
        }
        Ok(Some(self.text[self.begin + at]))
    }

    /// Reads more of the text.
    fn read_on(&mut self) -> io::Result<More> {
        let is_too_long = self.text.len() - self.begin > self.bytes_max;
        if self.is_ended {
            return Ok(More::End);
        }
        let read = loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        let len = read.len();
        if len == 0 {
            self.is_ended = true;
            return Ok(More::End);
        }
        self.tape.feed(&self.text[self.taped..self.begin]);
        self.taped = 0;
        self.text.drain(..std::mem::take(&mut self.begin));
        self.marks.forget();
        self.text.extend_from_slice(read);
        self.reader.consume(len);
        Ok(if is_too_long { More::TooLong } else { More::Read })
    }
}

/// How many lines begin in a text that is behind another line.
fn lines_in(text: &[u8]) -> u64 {
    let whole = text.strip_suffix(b"\n").unwrap_or(text);
    memchr::memchr_iter(b'\n', whole).count() as u64
}

/// Whether what comes behind this text is escaped by a sign, which also escapes itself.
fn is_escaped(text: &[u8], sign: u8) -> bool {
    text.iter().rev().take_while(|&&byte| byte == sign).count() % 2 == 1
}

/// A reader that has nothing yet.
struct NoneYet;

impl Read for NoneYet {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl BufRead for NoneYet {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn consume(&mut self, _: usize) {}
}

#[cfg(test)]
#[path = "delimited/tests.rs"]
mod tests;
