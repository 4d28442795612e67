//! Rows of a file, one at a time: their fields by column, their line, and what is wrong with bad ones.
//!
//! A column is asked for by name once ([`Rows::slot`]) and read by its slot from then on. A row that cannot be
//! read is a *bad row*; only a failing file ends the reading.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{BufRead, Read};
use std::rc::Rc;

use csv::ByteRecord;
use serde_json::{Map, Value};

use crate::args::InputFormat;
use crate::failure::Failure;
use crate::human;
use crate::import::source::Source;

/// Longest row of a file, in bytes. A quote that is not closed would otherwise take in all the rest.
const ROW_BYTES_MAX: u64 = 64 << 20;

/// A number for a column that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// What is wrong with a row, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    /// The column, where one is to blame.
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

/// What reading the next row gave.
pub(crate) enum Next {
    /// A row; its fields can be read.
    Row,
    /// A row that cannot be read.
    Bad(BadRow),
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
    reader: csv::Reader<Bounded>,
    /// Bytes that [`Bounded`] has handed out since the last row.
    taken: Rc<Cell<u64>>,
    columns: Vec<String>,
    record: ByteRecord,
    /// The first row, where it had to be read to count the columns.
    pending: bool,
}

struct Ndjson {
    reader: Box<dyn BufRead>,
    columns: Vec<String>,
    text: Vec<u8>,
    object: Map<String, Value>,
}

impl Rows {
    /// Begins to read; takes the header, where there is one.
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
                Form::Ndjson(Ndjson { reader, columns: Vec::new(), text: Vec::new(), object: Map::new() })
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

    /// Goes on to the next row.
    pub(crate) fn advance(&mut self) -> Result<Next, Failure> {
        let line_before = self.line;
        let next = match &mut self.form {
            Form::Delimited(form) => form.advance(&mut self.line),
            Form::Ndjson(form) => form.advance(&mut self.line),
        };
        next.map_err(|error| {
            Failure::Refused(format!("cannot read {} after line {line_before}: {error}", self.source_name))
        })
    }

    /// The text of a column in the present row, which may be empty; none where the value is missing.
    pub(crate) fn field(&self, slot: Slot) -> Result<Option<Cow<'_, str>>, BadRow> {
        let text = match &self.form {
            Form::Delimited(form) => {
                let bytes = form.record.get(slot.0).unwrap_or_default();
                match std::str::from_utf8(bytes) {
                    Ok(text) => Cow::Borrowed(text),
                    Err(_) => return Err(BadRow::column(&form.columns[slot.0], "it is not UTF-8 text")),
                }
            }
            Form::Ndjson(form) => match form.object.get(&form.columns[slot.0]) {
                None | Some(Value::Null) => return Ok(None),
                Some(value) => text_of(value),
            },
        };
        let is_missing = self.nulls.iter().any(|null| *null == text);
        Ok((!is_missing).then_some(text))
    }

    /// The name of a column.
    pub(crate) fn column(&self, slot: Slot) -> &str {
        match &self.form {
            Form::Delimited(form) => &form.columns[slot.0],
            Form::Ndjson(form) => &form.columns[slot.0],
        }
    }

    /// All columns of the present row but these, as a JSON object.
    pub(crate) fn object_without(&self, slots: &[Slot]) -> Result<Value, BadRow> {
        let mut object = Map::new();
        match &self.form {
            Form::Delimited(form) => {
                for (index, name) in form.columns.iter().enumerate() {
                    if !slots.contains(&Slot(index)) {
                        let text = self.field(Slot(index))?;
                        object.insert(name.clone(), text.map_or(Value::Null, |text| json_of(&text)));
                    }
                }
            }
            Form::Ndjson(form) => {
                object.clone_from(&form.object);
                for slot in slots {
                    object.shift_remove(&form.columns[slot.0]);
                }
            }
        }
        Ok(Value::Object(object))
    }

    /// The header that bad rows are written aside under.
    pub(crate) fn header(&self) -> Vec<String> {
        match &self.form {
            Form::Delimited(form) => form.columns.clone(),
            Form::Ndjson(_) => vec!["row".to_owned()],
        }
    }

    /// The present row as it stood in the file.
    pub(crate) fn raw(&self) -> Vec<Vec<u8>> {
        match &self.form {
            Form::Delimited(form) => form.record.iter().map(<[u8]>::to_vec).collect(),
            Form::Ndjson(form) => vec![form.text.clone()],
        }
    }
}

impl Delimited {
    fn open(reader: Box<dyn BufRead>, delimiter: u8, header: bool, name: &str) -> Result<Delimited, Failure> {
        let taken = Rc::new(Cell::new(0));
        let reader = Bounded { reader, taken: Rc::clone(&taken) };
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(1 << 16)
            .from_reader(reader);
        let mut record = ByteRecord::new();
        reader
            .read_byte_record(&mut record)
            .map_err(|error| Failure::Refused(format!("cannot read {name}: {error}")))?;
        let columns = if header { names_in(&record, name)? } else { numbered(record.len()) };
        Ok(Delimited { reader, taken, columns, record, pending: !header })
    }

    fn slot(&self, column: &str, source_name: &str) -> Result<Slot, Failure> {
        self.columns.iter().position(|known| known == column).map(Slot).ok_or_else(|| {
            let known: Vec<&str> = self.columns.iter().map(String::as_str).collect();
            let hint = human::suggestion(column, &known);
            Failure::Usage(format!("{source_name} has no column `{column}` ({hint})"))
        })
    }

    fn advance(&mut self, line: &mut u64) -> std::io::Result<Next> {
        if !std::mem::take(&mut self.pending) {
            self.taken.set(0);
            let read = self.reader.read_byte_record(&mut self.record);
            // Without UTF-8 checks and with any number of fields, only the file itself can fail.
            if !read.map_err(std::io::Error::from)? {
                return Ok(Next::End);
            }
        } else if self.record.is_empty() {
            return Ok(Next::End);
        }
        *line = self.record.position().map_or(*line + 1, csv::Position::line);
        let (found, wanted) = (self.record.len(), self.columns.len());
        if found == wanted {
            return Ok(Next::Row);
        }
        Ok(Next::Bad(BadRow::whole(format!("expected {wanted} fields, found {found}"))))
    }
}

/// Hands out at most [`ROW_BYTES_MAX`] until the count is set back.
struct Bounded {
    reader: Box<dyn BufRead>,
    taken: Rc<Cell<u64>>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.taken.get() > ROW_BYTES_MAX {
            return Err(too_long());
        }
        let len = self.reader.read(buffer)?;
        self.taken.set(self.taken.get() + len as u64);
        Ok(len)
    }
}

fn too_long() -> std::io::Error {
    std::io::Error::other(format!("a row is longer than {ROW_BYTES_MAX} bytes; is a quote not closed?"))
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
    fn slot(&mut self, column: &str) -> Slot {
        let known = self.columns.iter().position(|known| known == column);
        Slot(known.unwrap_or_else(|| {
            self.columns.push(column.to_owned());
            self.columns.len() - 1
        }))
    }

    fn advance(&mut self, line: &mut u64) -> std::io::Result<Next> {
        loop {
            self.text.clear();
            let len = self.reader.by_ref().take(ROW_BYTES_MAX).read_until(b'\n', &mut self.text)?;
            if len == 0 {
                return Ok(Next::End);
            }
            *line += 1;
            if len as u64 == ROW_BYTES_MAX {
                return Err(too_long());
            }
            self.text.truncate(self.text.trim_ascii_end().len());
            if !self.text.is_empty() {
                break;
            }
        }
        Ok(match serde_json::from_slice(&self.text) {
            Ok(Value::Object(object)) => {
                self.object = object;
                Next::Row
            }
            Ok(_) => Next::Bad(BadRow::whole("expected a JSON object")),
            Err(error) => Next::Bad(BadRow::whole(format!("not JSON: {error}"))),
        })
    }
}

/// A value of JSON as the text of a field.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// The text of a field as a value of JSON: numbers that are written the way JSON writes them, null where empty.
fn json_of(text: &str) -> Value {
    if text.is_empty() {
        return Value::Null;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Number(number)) if number.to_string() == text => Value::Number(number),
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
#[path = "rows/tests.rs"]
mod tests;
