//! Rows of a file, one at a time: their fields by column, their line, and what is wrong with bad
//! ones.
//!
//! A column is looked up by name once ([`Rows::slot`]) and then read by its slot. A row that cannot
//! be read is a *bad row*; only a failing file ends the reading.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{BufRead, ErrorKind, Read};

use csv::ByteRecord;
use folddb::{Datum, datum};

use crate::args::InputFormat;
use crate::failure::Failure;
use crate::human;
use crate::import::delimited::{Found, Records, Span};
use crate::import::source::Source;
use crate::import::tape::{Mark, Tape};

/// Longest row of a file, in bytes.
const ROW_BYTES_MAX: usize = 128 << 20;

/// What some programs write at the beginning of a UTF-8 file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How many names of fields are remembered for suggestions.
const UNSEEN_NAMES_MAX: usize = 64;

/// The number of a requested column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// What is wrong with a row, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    /// The column, if one is the cause.
    pub(crate) column: Option<String>,
    /// What was expected.
    pub(crate) reason: String,
}

impl BadRow {
    /// A row that is bad as a whole.
    pub(crate) fn whole(reason: impl Into<String>) -> BadRow {
        BadRow { column: None, reason: reason.into() }
    }

    /// A row with a bad column.
    pub(crate) fn column(column: &str, reason: impl Into<String>) -> BadRow {
        BadRow { column: Some(column.to_owned()), reason: reason.into() }
    }
}

impl std::fmt::Display for BadRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.column {
            Some(column) => write!(f, "column `{column}`: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// The result of reading the next row.
pub(crate) enum Next {
    /// A row; its fields can be read.
    Row,
    /// A row that cannot be read.
    Bad(BadRow),
    /// Nothing has arrived for a moment; more may.
    Wait,
    /// There are no more.
    End,
}

/// The rows of a file.
pub(crate) struct Rows {
    source_name: String,
    /// Texts that mean a missing value.
    nulls: Vec<String>,
    /// The line on which the present row begins, from 1.
    line: u64,
    form: Form,
}

enum Form {
    Delimited(Delimited),
    Ndjson(Ndjson),
}

struct Delimited {
    records: Records,
    columns: Vec<String>,
    /// Rows that had to be read to count the columns: all of them bad except the last.
    pending: VecDeque<(u64, Found, ByteRecord)>,
    /// Rows with a field of many lines: how many, and the first such field.
    spans: Option<(u64, Span)>,
}

struct Ndjson {
    reader: Box<dyn BufRead>,
    columns: Vec<String>,
    text: Vec<u8>,
    /// What was read.
    tape: Tape,
    /// Which columns no row has had so far, and which fields the rows had instead.
    unseen: Unseen,
    /// The text is the beginning of a line; the reader had no more yet.
    is_partial: bool,
    /// The fields of the present row, each name once.
    object: Vec<(String, Datum)>,
}

/// Which requested columns no row has had.
#[derive(Default)]
struct Unseen {
    slots: Vec<usize>,
    /// Some names of fields that rows had instead.
    names: Vec<String>,
    /// How many rows lacked each column, even if others had it.
    lacking: Vec<u64>,
    rows: u64,
}

impl Unseen {
    /// Notes a row.
    fn see(&mut self, columns: &[String], object: &[(String, Datum)]) {
        self.rows += 1;
        self.lacking.resize(columns.len(), 0);
        for (column, lacking) in columns.iter().zip(&mut self.lacking) {
            *lacking += u64::from(!object.iter().any(|(name, _)| name == column));
        }
        if self.slots.is_empty() {
            return;
        }
        self.slots.retain(|&slot| !object.iter().any(|(name, _)| *name == columns[slot]));
        if self.slots.is_empty() {
            return self.names.clear();
        }
        for (name, _) in object {
            if self.names.len() < UNSEEN_NAMES_MAX && !self.names.contains(name) {
                self.names.push(name.clone());
            }
        }
    }
}

impl Rows {
    /// Begins to read; takes the header, if there is one.
    pub(crate) fn open(
        source: Source,
        format: InputFormat,
        delimiter: Option<u8>,
        header: bool,
        nulls: &[String],
    ) -> Result<Rows, Failure> {
        let Source { reader, name, .. } = source;
        let form = match format {
            InputFormat::Csv => {
                Form::Delimited(Delimited::open(reader, delimiter.unwrap_or(b','), header, &name)?)
            }
            InputFormat::Tsv => {
                Form::Delimited(Delimited::open(reader, delimiter.unwrap_or(b'\t'), header, &name)?)
            }
            InputFormat::Ndjson => {
                let (columns, text, object) = (Vec::new(), Vec::new(), Vec::new());
                let unseen = Unseen::default();
                let tape = Tape::new();
                Form::Ndjson(Ndjson { reader, columns, text, tape, unseen, is_partial: false, object })
            }
        };
        Ok(Rows { source_name: name, nulls: nulls.to_vec(), line: 0, form })
    }

    /// The slot of a column. NDJSON may have any column.
    pub(crate) fn slot(&mut self, column: &str) -> Result<Slot, Failure> {
        match &mut self.form {
            Form::Delimited(form) => form.slot(column, &self.source_name),
            Form::Ndjson(form) => Ok(form.slot(column)),
        }
    }

    /// The line on which the present row begins.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The place behind the present row; none if reading cannot go on there.
    pub(crate) fn mark(&mut self) -> Option<Mark> {
        match &mut self.form {
            Form::Delimited(form) if !form.pending.is_empty() || form.records.is_inside_line() => None,
            Form::Delimited(form) => {
                let (tape, line) = form.records.processed();
                Some(Mark { content: tape.content(), line })
            }
            Form::Ndjson(form) => Some(Mark { content: form.tape.content(), line: self.line }),
        }
    }

    /// Goes on at a place, which is the same one if all before it is the same; false if it is not.
    pub(crate) fn go_on_at(&mut self, mark: &Mark) -> Result<bool, Failure> {
        let passed = match &mut self.form {
            _ if mark.content.bytes == 0 => return Ok(true),
            Form::Delimited(form) => {
                form.pending.clear();
                form.records.pass_to(mark.content.bytes, mark.line)
            }
            Form::Ndjson(form) => form.pass_to(mark.content.bytes),
        };
        let name = &self.source_name;
        let passed = passed.map_err(|error| Failure::Refused(format!("cannot read {name}: {error}")))?;
        self.line = mark.line;
        Ok(passed && self.mark().is_some_and(|here| here.content == mark.content))
    }

    /// Moves to the next row.
    pub(crate) fn advance(&mut self) -> Result<Next, Failure> {
        let line_before = self.line;
        let next = match &mut self.form {
            Form::Delimited(form) => form.advance(&mut self.line),
            Form::Ndjson(form) => form.advance(&mut self.line),
        };
        if next.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            return Ok(Next::Wait);
        }
        next.map_err(|error| {
            Failure::Refused(format!("cannot read {} after line {line_before}: {error}", self.source_name))
        })
    }

    /// The text of a column in the present row, which may be empty; none if the value is missing.
    pub(crate) fn field(&self, slot: Slot) -> Result<Option<Cow<'_, str>>, BadRow> {
        let text = match &self.form {
            Form::Delimited(form) => {
                let bytes = form.records.record.get(slot.0).unwrap_or_default();
                match std::str::from_utf8(bytes) {
                    Ok(text) => Cow::Borrowed(text),
                    Err(_) => return Err(BadRow::column(&form.columns[slot.0], "it is not UTF-8 text")),
                }
            }
            Form::Ndjson(form) => match form.get(slot) {
                None | Some(Datum::Null) => return Ok(None),
                Some(value) => text_of(value),
            },
        };
        let is_missing = self.nulls.iter().any(|null| *null == text);
        Ok((!is_missing).then_some(text))
    }

    /// The array or object that a column of NDJSON holds in the present row, which may be the form
    /// of bytes; none if it is something else.
    pub(crate) fn nested(&self, slot: Slot) -> Option<&Datum> {
        let is_nested = |datum: &&Datum| matches!(datum, Datum::List(_) | Datum::Map(_) | Datum::Bytes(_));
        self.json(slot).filter(is_nested)
    }

    /// The contents of a column of NDJSON in the present row; none if it is missing.
    pub(crate) fn json(&self, slot: Slot) -> Option<&Datum> {
        match &self.form {
            Form::Delimited(_) => None,
            Form::Ndjson(form) => form.get(slot),
        }
    }

    /// True if fields are text, which may be JSON.
    pub(crate) fn is_delimited(&self) -> bool {
        matches!(self.form, Form::Delimited(_))
    }

    /// The name of a column.
    pub(crate) fn column(&self, slot: Slot) -> &str {
        match &self.form {
            Form::Delimited(form) => &form.columns[slot.0],
            Form::Ndjson(form) => &form.columns[slot.0],
        }
    }

    /// All columns of the present row except these, as a JSON object.
    pub(crate) fn object_without(&self, slots: &[Slot]) -> Result<Datum, BadRow> {
        let mut object = Vec::new();
        match &self.form {
            Form::Delimited(form) => {
                for (index, name) in form.columns.iter().enumerate() {
                    if !slots.contains(&Slot(index)) {
                        let text = self.field(Slot(index))?;
                        object.push((name.clone(), text.map_or(Datum::Null, |text| json_of(&text))));
                    }
                }
            }
            Form::Ndjson(form) => {
                let is_of_key =
                    |(name, _): &&(String, Datum)| slots.iter().any(|slot| form.columns[slot.0] == *name);
                object.extend(form.object.iter().filter(|field| !is_of_key(field)).cloned());
            }
        }
        Ok(Datum::Map(object))
    }

    /// A sentence about requested fields, except some, that no line of JSON has had, if there are
    /// any.
    pub(crate) fn missing_fields(&self, but: &[String]) -> Option<String> {
        let Form::Ndjson(form) = &self.form else { return None };
        let missing =
            form.unseen.slots.iter().map(|&slot| &form.columns[slot]).filter(|name| !but.contains(name));
        let names: Vec<&str> = form.unseen.names.iter().map(String::as_str).collect();
        let told: Vec<String> =
            missing.map(|name| format!("`{name}` ({})", human::suggestion(name, &names))).collect();
        if told.is_empty() || form.unseen.rows == 0 {
            return None;
        }
        let rows = human::plural(form.unseen.rows, "row");
        Some(format!("none of the {rows} of {} has a field {}", self.source_name, told.join(", ")))
    }

    /// How many lines of JSON lacked each requested field, except some, that others had.
    pub(crate) fn lacking_fields(&self, but: &[String]) -> Vec<(&str, u64)> {
        let Form::Ndjson(form) = &self.form else { return Vec::new() };
        let fields = form.columns.iter().zip(form.unseen.lacking.iter().copied());
        let some = fields.filter(|&(_, lacking)| 0 < lacking && lacking < form.unseen.rows);
        some.filter(|(name, _)| !but.contains(name)).map(|(name, lacking)| (name.as_str(), lacking)).collect()
    }

    /// How many rows had a field of many lines, and where the first of them is: two stray quotes
    /// make one of the lines between them.
    pub(crate) fn spans(&self) -> Option<(u64, Span)> {
        match &self.form {
            Form::Delimited(form) => form.spans,
            Form::Ndjson(_) => None,
        }
    }

    /// The header of the file of bad rows.
    pub(crate) fn header(&self) -> Vec<String> {
        match &self.form {
            Form::Delimited(form) => form.columns.clone(),
            Form::Ndjson(_) => vec!["row".to_owned()],
        }
    }

    /// The present row as it was in the file.
    pub(crate) fn raw(&self) -> Vec<Vec<u8>> {
        match &self.form {
            Form::Delimited(form) => form.records.record.iter().map(<[u8]>::to_vec).collect(),
            Form::Ndjson(form) => vec![form.text.clone()],
        }
    }
}

impl Delimited {
    fn open(reader: Box<dyn BufRead>, delimiter: u8, header: bool, name: &str) -> Result<Delimited, Failure> {
        let records = Records::new(reader, delimiter, ROW_BYTES_MAX);
        let mut form = Delimited { records, columns: Vec::new(), pending: VecDeque::new(), spans: None };
        let failed = |error: std::io::Error| Failure::Refused(format!("cannot read {name}: {error}"));
        let mut found = form.read_first().map_err(failed)?;
        if header {
            form.columns = match found {
                Found::End => {
                    return Err(Failure::Usage(format!(
                        "{name} is empty: it has no line that names its columns (if it has no header: --no-header)"
                    )));
                }
                Found::OpenQuote | Found::TooLong => {
                    let line = form.records.record_line;
                    let wrong = wrong_record(found, &form.records.record, &[]);
                    return Err(Failure::Refused(format!(
                        "cannot read the header of {name}: line {line}: {wrong}"
                    )));
                }
                Found::Record => names_in(&form.records.record, name)?,
            };
            return Ok(form);
        }
        while found != Found::End {
            let record = std::mem::take(&mut form.records.record);
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
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    fn slot(&self, column: &str, source_name: &str) -> Result<Slot, Failure> {
        self.columns.iter().position(|known| known == column).map(Slot).ok_or_else(|| {
            let known: Vec<&str> = self.columns.iter().map(String::as_str).collect();
            let hint = human::suggestion(column, &known);
            Failure::Usage(format!("{source_name} has no column `{column}` ({hint})"))
        })
    }

    fn advance(&mut self, line: &mut u64) -> std::io::Result<Next> {
        let (found, lines) = match self.pending.pop_front() {
            Some((pending_line, found, record)) => {
                *line = pending_line;
                self.records.record = record;
                (found, 0)
            }
            None => {
                let found = self.records.advance()?;
                *line = self.records.record_line;
                (found, self.records.record_lines)
            }
        };
        let (has, wanted) = (self.records.record.len(), self.columns.len());
        Ok(match found {
            Found::End => Next::End,
            Found::Record if has == wanted => {
                if let Some(span) = self.records.span {
                    self.spans.get_or_insert((0, span)).0 += 1;
                }
                Next::Row
            }
            Found::Record => {
                let mut reason = format!("expected {}, found {has}", human::plural(wanted as u64, "field"));
                if lines > 0 {
                    reason.push_str(&format!("; a quoted field takes it to line {}", *line + lines));
                }
                Next::Bad(BadRow::whole(reason))
            }
            wrong => Next::Bad(wrong_record(wrong, &self.records.record, &self.columns)),
        })
    }
}

/// What is wrong with a record that ended before its end.
fn wrong_record(found: Found, record: &ByteRecord, columns: &[String]) -> BadRow {
    if found == Found::TooLong {
        return BadRow::whole(format!("a row is longer than {ROW_BYTES_MAX} bytes"));
    }
    let reason = "a quote opens here and does not close";
    match columns.get(record.len().saturating_sub(1)) {
        Some(column) => BadRow::column(column, reason),
        None => BadRow::whole(reason),
    }
}

fn names_in(record: &ByteRecord, file: &str) -> Result<Vec<String>, Failure> {
    let mut names = Vec::with_capacity(record.len());
    for field in record {
        let name = String::from_utf8_lossy(field).trim_start_matches('\u{feff}').trim().to_owned();
        if names.contains(&name) {
            return Err(Failure::Usage(format!(
                "{file} has two columns `{name}`; give them names of their own"
            )));
        }
        names.push(name);
    }
    Ok(names)
}

fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("c{number}")).collect()
}

impl Ndjson {
    fn get(&self, slot: Slot) -> Option<&Datum> {
        let name = &self.columns[slot.0];
        self.object.iter().find(|(of, _)| of == name).map(|(_, datum)| datum)
    }

    fn slot(&mut self, column: &str) -> Slot {
        let known = self.columns.iter().position(|known| known == column);
        Slot(known.unwrap_or_else(|| {
            self.columns.push(column.to_owned());
            self.unseen.slots.push(self.columns.len() - 1);
            self.columns.len() - 1
        }))
    }

    /// Passes what is before a place; false if the text ends before.
    fn pass_to(&mut self, bytes: u64) -> std::io::Result<bool> {
        while self.tape.bytes() < bytes {
            let read = self.reader.fill_buf()?;
            if read.is_empty() {
                return Ok(false);
            }
            let wanted = usize::try_from(bytes - self.tape.bytes()).unwrap_or(usize::MAX).min(read.len());
            self.tape.feed(&read[..wanted]);
            self.reader.consume(wanted);
        }
        Ok(true)
    }

    fn advance(&mut self, line: &mut u64) -> std::io::Result<Next> {
        loop {
            if !std::mem::take(&mut self.is_partial) {
                self.text.clear();
            }
            let left = (ROW_BYTES_MAX - self.text.len()) as u64;
            let begun = self.text.len();
            let read = self.reader.by_ref().take(left).read_until(b'\n', &mut self.text);
            self.tape.feed(&self.text[begun..]);
            self.is_partial = read.is_err();
            read?;
            if self.text.is_empty() {
                return Ok(Next::End);
            }
            *line += 1;
            if self.text.len() == ROW_BYTES_MAX {
                return Err(std::io::Error::other(format!("a row is longer than {ROW_BYTES_MAX} bytes")));
            }
            self.text.truncate(self.text.trim_ascii_end().len());
            if *line == 1 && self.text.starts_with(BYTE_ORDER_MARK) {
                self.text.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.text.is_empty() {
                break;
            }
        }
        let Ok(text) = std::str::from_utf8(&self.text) else {
            return Ok(Next::Bad(BadRow::whole("not JSON: it is not UTF-8 text")));
        };
        Ok(match datum::json::parse(text) {
            Ok(Datum::Map(object)) => {
                self.unseen.see(&self.columns, &object);
                self.object = object;
                Next::Row
            }
            Ok(_) => Next::Bad(BadRow::whole("expected a JSON object")),
            Err(error) => Next::Bad(BadRow::whole(format!("not JSON: {error}"))),
        })
    }
}

/// A value of JSON as the text of a field: a number as it is written, lists and objects as their
/// JSON.
fn text_of(value: &Datum) -> Cow<'_, str> {
    match value {
        Datum::Null => Cow::Borrowed(""),
        Datum::Text(text) | Datum::Number(text) => Cow::Borrowed(text),
        other => Cow::Owned(datum::json::text_of(other)),
    }
}

/// The text of a field as a value of JSON: numbers in JSON's own form that all readers can read,
/// null if empty.
fn json_of(text: &str) -> Datum {
    let is_wide = |value: i128| i64::try_from(value).is_err() && u64::try_from(value).is_err();
    match datum::json::parse(text) {
        _ if text.is_empty() => Datum::Null,
        Ok(Datum::Int(value)) if !is_wide(value) && value.to_string() == text => Datum::Int(value),
        Ok(Datum::Float(value)) if datum::json::text_of(&Datum::Float(value)) == text => Datum::Float(value),
        _ => Datum::Text(text.to_owned()),
    }
}

#[cfg(test)]
#[path = "rows/tests.rs"]
mod tests;
