//! Rows of delimited text: the names of columns, and the fields of each row by column.

use std::collections::VecDeque;
use std::io::{BufRead, ErrorKind};

use csv::ByteRecord;

use crate::failure::Failure;
use crate::human;
use crate::import::delimited::{Found, Records, Span};
use crate::import::dialect::{Dialect, is_line_end};
use crate::import::row::{BadRow, Next, ROW_BYTES_MAX, Slot, failed_to_read, without_mark};
use crate::interrupt;

/// Delimited text: rows of as many fields as there are columns.
pub(crate) struct Delimited {
    pub(crate) records: Records,
    pub(crate) columns: Vec<String>,
    /// Rows that had to be read to count the columns: all of them bad except the last.
    pub(crate) pending: VecDeque<(u64, Found, ByteRecord)>,
    /// The present row is one of those.
    pub(crate) is_pending: bool,
    /// Rows with a field of many lines: how many, and the first such field.
    pub(crate) spans: Option<(u64, Span)>,
    /// What was found out, in words.
    pub(crate) notes: Vec<String>,
}

impl Delimited {
    /// Begins to read; takes the header, if there is one, or counts the columns.
    pub(crate) fn open(
        reader: Box<dyn BufRead>,
        dialect: Dialect,
        header: bool,
        (name, may_grow): (&str, bool),
    ) -> Result<Delimited, Failure> {
        let records = Records::new(reader, dialect, ROW_BYTES_MAX).that_may_grow(may_grow);
        let (columns, pending, notes) = (Vec::new(), VecDeque::new(), Vec::new());
        let mut form = Delimited { records, columns, pending, is_pending: false, spans: None, notes };
        let failed = |error| failed_to_read(name, &error);
        let mut found = form.read_first().map_err(failed)?;
        if header {
            form.columns = match found {
                Found::End => {
                    return Err(Failure::Empty(format!(
                        "{name} is empty: it has no line that names its columns"
                    )));
                }
                Found::OpenQuote | Found::LeftOpen | Found::TooLong => {
                    let line = form.records.record_line;
                    let wrong = wrong_record(found, 0, &[]);
                    return Err(Failure::Refused(format!(
                        "cannot read the header of {name}: line {line}: {wrong}"
                    )));
                }
                Found::Record => names_in(form.records.fields(), &mut form.notes),
            };
            return Ok(form);
        }
        if found == Found::End {
            return Err(Failure::Empty(format!("{name} is empty: it has no row")));
        }
        while found != Found::End {
            let record = form.records.to_record();
            form.columns = numbered(record.len());
            form.pending.push_back((form.records.record_line, found, record));
            if found == Found::Record {
                break;
            }
            found = form.read_first().map_err(failed)?;
        }
        Ok(form)
    }

    /// Reads a record, waiting while the reader has nothing yet.
    fn read_first(&mut self) -> std::io::Result<Found> {
        loop {
            match self.records.advance() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    interrupt::check().map_err(|_| ErrorKind::Interrupted)?;
                }
                other => return other,
            }
        }
    }

    /// The slot of a column.
    pub(crate) fn slot(&self, column: &str, source_name: &str) -> Result<Slot, Failure> {
        slot_of(&self.columns, column, source_name)
    }

    /// Moves to the next row; sets the line on which it begins.
    pub(crate) fn advance(&mut self, line: &mut u64) -> std::io::Result<Next> {
        let (found, lines) = match self.pending.pop_front() {
            Some((pending_line, found, record)) => {
                *line = pending_line;
                self.is_pending = true;
                self.records.set_record(record);
                (found, 0)
            }
            None => {
                self.is_pending = false;
                let found = self.records.advance()?;
                *line = self.records.record_line;
                (found, self.records.record_lines)
            }
        };
        let (has, wanted) = (self.records.len(), self.columns.len());
        Ok(match found {
            Found::End => Next::End,
            Found::Record if has == wanted => {
                if let Some(span) = self.records.span {
                    self.spans.get_or_insert((0, span)).0 += 1;
                }
                Next::Row
            }
            Found::Record => {
                let reason = format!("expected {}, found {has}", human::plural(wanted as u64, "field"));
                Next::Bad(BadRow { lines_later: lines, ..BadRow::whole(reason) })
            }
            wrong => Next::Bad(wrong_record(wrong, has, &self.columns)),
        })
    }
}

/// What is wrong with a record that ended before its end.
fn wrong_record(found: Found, has: usize, columns: &[String]) -> BadRow {
    if found == Found::TooLong {
        return BadRow::whole(format!("a row is longer than {ROW_BYTES_MAX} bytes"));
    }
    let reason = "a quote opens here and does not close";
    let bad = match columns.get(has.saturating_sub(1)) {
        Some(column) => BadRow::column(column, reason),
        None => BadRow::whole(reason),
    };
    BadRow { is_left_open: found == Found::LeftOpen, ..bad }
}

/// The names of columns. One that stands twice is numbered.
pub(crate) fn names_in<'a>(fields: impl Iterator<Item = &'a [u8]>, notes: &mut Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for field in fields {
        let name = String::from_utf8_lossy(field).trim_start_matches('\u{feff}').trim().to_owned();
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut choices = std::iter::once(name.clone()).chain(numbered);
        let free = choices.find(|choice| !names.contains(choice)).unwrap_or_default();
        if free != name {
            notes.push(format!("a second column `{name}` is called `{free}`"));
        }
        names.push(free);
    }
    names
}

/// What is said of a delimiter that was found out, if it is no comma, or if another one makes as
/// many fields.
pub(crate) fn note_of_delimiter(found: u8, rival: Option<u8>) -> Option<String> {
    let shown = |delimiter| match delimiter {
        b'\t' => "tabs".to_owned(),
        other => format!("`{}`", char::from(other)),
    };
    let typed =
        |delimiter| if delimiter == b'\t' { "\\t".to_owned() } else { char::from(delimiter).to_string() };
    match rival {
        Some(rival) => Some(format!(
            "fields are separated by {}; {} would make as many (if it is that: --delimiter '{}')",
            shown(found),
            shown(rival),
            typed(rival)
        )),
        None => (found != DELIMITERS[0]).then(|| format!("fields are separated by {}", shown(found))),
    }
}

/// The slot of a column that a file must have.
pub(crate) fn slot_of(columns: &[String], column: &str, source_name: &str) -> Result<Slot, Failure> {
    columns.iter().position(|known| known == column).map(Slot).ok_or_else(|| {
        let known: Vec<&str> = columns.iter().map(String::as_str).collect();
        let hint = human::suggestion(column, &known);
        Failure::Usage(format!("{source_name} has no column `{column}` ({hint})"))
    })
}

/// What may be between fields; the first one is what nothing speaks against.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// How many of the first lines tell what is between fields.
const LINES_FIRST: usize = 10;

/// The character between fields, by the first lines of a text: the one that makes the most fields
/// of each, and of all the same number. Where none does, it is a comma, if the first line has one,
/// or else the most frequent one there. Also another one that makes as many fields, if there is
/// one.
pub(crate) fn delimiter_in(head: &[u8], quote: Option<u8>) -> (u8, Option<u8>) {
    let lines = delimiters_of_lines(head, quote);
    let Some(&first) = lines.first() else { return (DELIMITERS[0], None) };
    let is_alike = |at: &usize| first[*at] > 0 && lines.iter().all(|line| line[*at] == first[*at]);
    let most = |places: &mut dyn Iterator<Item = usize>| {
        places.fold(None, |best: Option<usize>, at| match best {
            Some(best) if first[best] >= first[at] => Some(best),
            _ => Some(at),
        })
    };
    let all = || 0..DELIMITERS.len();
    let rival = |found: usize, among: &dyn Fn(&usize) -> bool| {
        let rival = all().filter(among).find(|&at| at != found && first[at] == first[found]);
        (DELIMITERS[found], rival.map(|at| DELIMITERS[at]))
    };
    let is_there = |at: &usize| first[*at] > 0;
    match (most(&mut all().filter(is_alike)), most(&mut all().filter(is_there))) {
        (Some(found), _) => rival(found, &is_alike),
        (None, Some(found)) if first[0] == 0 => rival(found, &is_there),
        _ => (DELIMITERS[0], None),
    }
}

/// How many of each delimiter are on the first lines that have anything, outside of quotes. A line
/// that has not come wholly says nothing, unless it is the only one.
fn delimiters_of_lines(head: &[u8], quote: Option<u8>) -> Vec<[usize; DELIMITERS.len()]> {
    let (mut lines, mut counts) = (Vec::new(), [0; DELIMITERS.len()]);
    let (mut is_quoted, mut is_blank, mut of_first) = (false, true, None);
    for &byte in without_mark(head) {
        is_quoted ^= Some(byte) == quote;
        if is_line_end(byte) && !is_quoted {
            if !std::mem::replace(&mut is_blank, true) {
                lines.push(counts);
            }
            counts = [0; DELIMITERS.len()];
            of_first = None;
            if lines.len() == LINES_FIRST {
                return lines;
            }
            continue;
        }
        if is_line_end(byte) {
            of_first.get_or_insert(counts);
        }
        is_blank = is_blank && byte == b' ';
        if let (false, Some(at)) = (is_quoted, DELIMITERS.iter().position(|&known| known == byte)) {
            counts[at] += 1;
        }
    }
    if lines.is_empty() && !is_blank {
        lines.push(of_first.unwrap_or(counts)); // its quote may be a stray one
    }
    lines
}

pub(crate) fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("c{number}")).collect()
}
