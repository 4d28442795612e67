//! Rows of a file, one at a time: their fields by column, their line, and what is wrong with bad
//! ones.
//!
//! A column is looked up by name once ([`Rows::slot`]) and then read by its slot. A row that cannot
//! be read is a *bad row*; only a failing file ends the reading.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{BufRead, Cursor, ErrorKind, Read};

use csv::ByteRecord;
use folddb::{Datum, datum};

use crate::args::InputFormat;
use crate::failure::Failure;
use crate::human;
use crate::import::delimited::{Found, Records, Span};
use crate::import::lines::{self, Lines, Pattern};
use crate::import::source::Source;
use crate::import::tape::{Content, Mark, Tape};
use crate::interrupt;

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
    /// How many lines later it ends, if a quoted field has taken it there.
    lines_later: u64,
}

impl BadRow {
    /// A row that is bad as a whole.
    pub(crate) fn whole(reason: impl Into<String>) -> BadRow {
        BadRow { column: None, reason: reason.into(), lines_later: 0 }
    }

    /// A row with a bad column.
    pub(crate) fn column(column: &str, reason: impl Into<String>) -> BadRow {
        BadRow { column: Some(column.to_owned()), reason: reason.into(), lines_later: 0 }
    }

    /// The same, where the line is known on which it begins.
    pub(crate) fn on_line(mut self, line: u64) -> BadRow {
        if self.lines_later > 0 {
            let last = line + std::mem::take(&mut self.lines_later);
            self.reason.push_str(&format!("; a quoted field takes it to line {last}"));
        }
        self
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
    /// The place up to which others have read it, if they have.
    settled: Option<Option<Mark>>,
}

/// What makes rows of a piece of a file.
#[derive(Clone)]
pub(crate) struct Template {
    source_name: String,
    nulls: Vec<String>,
    form: TemplateForm,
}

#[derive(Clone)]
enum TemplateForm {
    Delimited { delimiter: u8, columns: Vec<String> },
    Ndjson { columns: Vec<String>, is_logfmt: bool },
    Lines(Pattern),
}

/// What is left of a file.
pub(crate) struct Rest {
    /// What was read, and is no row yet.
    pub(crate) text: Vec<u8>,
    /// What follows.
    pub(crate) reader: Box<dyn BufRead>,
    /// What is before it.
    pub(crate) tape: Tape,
    /// How many lines that are.
    pub(crate) lines: u64,
}

enum Form {
    Delimited(Delimited),
    Ndjson(Ndjson),
    Lines(Lines),
}

/// How the rows of a file are read.
pub(crate) struct How<'a> {
    pub(crate) format: InputFormat,
    /// The pattern of its lines, if one is given.
    pub(crate) pattern: Option<&'a str>,
    pub(crate) delimiter: Option<u8>,
    pub(crate) header: bool,
    /// Texts that mean a missing value.
    pub(crate) nulls: &'a [String],
}

struct Delimited {
    records: Records,
    columns: Vec<String>,
    /// Rows that had to be read to count the columns: all of them bad except the last.
    pending: VecDeque<(u64, Found, ByteRecord)>,
    /// Rows with a field of many lines: how many, and the first such field.
    spans: Option<(u64, Span)>,
    /// What was found out, in words.
    notes: Vec<String>,
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
    /// Lines are name=value.
    is_logfmt: bool,
}

/// What is noted about the fields of a piece of a file.
#[derive(Default)]
pub(crate) struct Seen {
    spans: Option<(u64, Span)>,
    unseen: Unseen,
}

impl Seen {
    /// The same, of a piece after so many lines.
    pub(crate) fn after(mut self, lines: u64) -> Seen {
        self.spans.iter_mut().for_each(|(_, first)| first.line += lines);
        self
    }
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
    /// Adds what is noted about other rows.
    fn add(&mut self, other: &Unseen) {
        if other.rows == 0 {
            return;
        }
        self.rows += other.rows;
        self.lacking.resize(self.lacking.len().max(other.lacking.len()), 0);
        self.lacking.iter_mut().zip(&other.lacking).for_each(|(all, some)| *all += some);
        self.slots.retain(|slot| other.slots.contains(slot));
        if self.slots.is_empty() {
            return self.names.clear();
        }
        for name in &other.names {
            if self.names.len() < UNSEEN_NAMES_MAX && !self.names.contains(name) {
                self.names.push(name.clone());
            }
        }
    }

    /// Notes a row.
    fn see(&mut self, columns: &[String], object: &[(String, Datum)]) {
        self.rows += 1;
        self.lacking.resize(columns.len(), 0);
        for (column, lacking) in columns.iter().zip(&mut self.lacking) {
            *lacking += u64::from(found(object, column).is_none());
        }
        if self.slots.is_empty() {
            return;
        }
        self.slots.retain(|&slot| found(object, &columns[slot]).is_none());
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
    pub(crate) fn open(mut source: Source, how: &How<'_>) -> Result<Rows, Failure> {
        let mut note = None;
        let delimiter = match (how.delimiter, how.format) {
            (Some(stated), _) => stated,
            (None, InputFormat::Tsv) => b'\t',
            (None, InputFormat::Csv) => other_delimiter(&source.first_line()?).map_or(b',', |found| {
                note = Some(format!("fields are separated by {}", shown(found)));
                found
            }),
            (None, _) => b',',
        };
        let Source { reader, name, .. } = source;
        let form = match (how.pattern, how.format) {
            (Some(text), _) => {
                let pattern = Pattern::given(text);
                let pattern = pattern.map_err(|wrong| Failure::Usage(format!("in --regex: {wrong}")))?;
                Form::Lines(Lines::new(reader, pattern, ROW_BYTES_MAX))
            }
            (None, InputFormat::Csv | InputFormat::Tsv) => {
                let mut form = Delimited::open(reader, delimiter, how.header, &name)?;
                form.notes.extend(note);
                Form::Delimited(form)
            }
            (None, InputFormat::Common) => Form::Lines(Lines::new(reader, Pattern::common(), ROW_BYTES_MAX)),
            (None, InputFormat::Combined) => {
                Form::Lines(Lines::new(reader, Pattern::combined(), ROW_BYTES_MAX))
            }
            (None, InputFormat::Syslog) => Form::Lines(Lines::new(reader, Pattern::syslog(), ROW_BYTES_MAX)),
            (None, format @ (InputFormat::Ndjson | InputFormat::Logfmt)) => {
                Form::Ndjson(Ndjson::new(reader, Vec::new(), format == InputFormat::Logfmt))
            }
        };
        Ok(Rows { source_name: name, nulls: how.nulls.to_vec(), line: 0, form, settled: None })
    }

    /// What makes rows of its pieces.
    pub(crate) fn template(&self) -> Template {
        let form = match &self.form {
            Form::Delimited(form) => {
                TemplateForm::Delimited { delimiter: form.records.delimiter(), columns: form.columns.clone() }
            }
            Form::Ndjson(form) => {
                TemplateForm::Ndjson { columns: form.columns.clone(), is_logfmt: form.is_logfmt }
            }
            Form::Lines(form) => TemplateForm::Lines(form.pattern.clone()),
        };
        Template { source_name: self.source_name.clone(), nulls: self.nulls.clone(), form }
    }

    /// Whether the next row is in what is left of the file, and nowhere else.
    pub(crate) fn has_rest(&self) -> bool {
        match &self.form {
            Form::Delimited(form) => form.pending.is_empty() && !form.records.is_inside_line(),
            Form::Ndjson(form) => !form.is_partial,
            Form::Lines(_) => true,
        }
    }

    /// Takes what is left of the file.
    pub(crate) fn take_rest(&mut self) -> Rest {
        let none = || -> Box<dyn BufRead> { Box::new(std::io::empty()) };
        match &mut self.form {
            Form::Delimited(form) => {
                let (text, reader) = form.records.take_rest();
                let (tape, line) = form.records.processed();
                Rest { text, reader, tape: tape.clone(), lines: line - 1 }
            }
            Form::Ndjson(form) => Rest {
                text: Vec::new(),
                reader: std::mem::replace(&mut form.reader, none()),
                tape: form.tape.clone(),
                lines: self.line,
            },
            Form::Lines(form) => Rest {
                text: Vec::new(),
                reader: std::mem::replace(&mut form.reader, none()),
                tape: form.tape.clone(),
                lines: self.line,
            },
        }
    }

    /// A piece of a file: how many of its bytes are rows, and how many lines these are.
    pub(crate) fn passed(&self) -> (usize, u64) {
        match &self.form {
            Form::Delimited(form) => (form.records.begin(), form.records.processed_lines()),
            Form::Ndjson(form) => (form.tape.bytes() as usize, self.line),
            Form::Lines(form) => (form.tape.bytes() as usize, self.line),
        }
    }

    /// The text of a piece of a file of delimited text.
    pub(crate) fn into_text(self) -> Vec<u8> {
        match self.form {
            Form::Delimited(form) => form.records.into_text(),
            Form::Ndjson(_) | Form::Lines(_) => Vec::new(),
        }
    }

    /// Others have read it up to this place; reading cannot go on there, if none is known.
    pub(crate) fn settle(&mut self, mark: Option<Mark>) {
        self.settled = Some(mark);
    }

    /// Adds what was noted about the fields of a piece.
    pub(crate) fn add_seen(&mut self, piece: &Seen) {
        match &mut self.form {
            Form::Delimited(form) => {
                if let Some((rows, first)) = piece.spans {
                    form.spans.get_or_insert((0, first)).0 += rows;
                }
            }
            Form::Ndjson(form) => form.unseen.add(&piece.unseen),
            Form::Lines(_) => {}
        }
    }

    /// What is noted about the fields of a piece.
    pub(crate) fn take_seen(&mut self) -> Seen {
        match &mut self.form {
            Form::Delimited(form) => Seen { spans: form.spans.take(), unseen: Unseen::default() },
            Form::Ndjson(form) => Seen { spans: None, unseen: std::mem::take(&mut form.unseen) },
            Form::Lines(_) => Seen::default(),
        }
    }

    /// The slot of a column. NDJSON may have any column.
    pub(crate) fn slot(&mut self, column: &str) -> Result<Slot, Failure> {
        match &mut self.form {
            Form::Delimited(form) => form.slot(column, &self.source_name),
            Form::Ndjson(form) => Ok(form.slot(column)),
            Form::Lines(form) => slot_of(&form.columns, column, &self.source_name),
        }
    }

    /// Whether the header has a column of this name. Of NDJSON that is not known.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        match &self.form {
            Form::Delimited(form) => form.columns.iter().any(|known| known == name),
            Form::Ndjson(_) => false,
            Form::Lines(form) => form.columns.iter().any(|known| known == name),
        }
    }

    /// What was found out about the file, in words.
    pub(crate) fn notes(&self) -> &[String] {
        if let Form::Delimited(form) = &self.form { &form.notes } else { &[] }
    }

    /// The line on which the present row begins.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The place behind the present row; none if reading cannot go on there.
    pub(crate) fn mark(&mut self) -> Option<Mark> {
        if let Some(settled) = self.settled {
            return settled;
        }
        match &mut self.form {
            Form::Delimited(form) if !form.pending.is_empty() || form.records.is_inside_line() => None,
            Form::Delimited(form) => {
                let (tape, line) = form.records.processed();
                Some(Mark { content: tape.content(), line })
            }
            Form::Ndjson(form) => Some(Mark { content: form.tape.content(), line: self.line }),
            Form::Lines(form) => Some(Mark { content: form.tape.content(), line: self.line }),
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
            Form::Ndjson(form) => lines::pass(&mut form.reader, &mut form.tape, mark.content.bytes),
            Form::Lines(form) => form.pass_to(mark.content.bytes),
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
            Form::Lines(form) => form.advance(&mut self.line).map(|taken| match taken {
                None => Next::End,
                Some(Ok(())) => Next::Row,
                Some(Err(wrong)) => Next::Bad(BadRow::whole(wrong)),
            }),
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
                let bytes = form.records.field(slot.0);
                match std::str::from_utf8(bytes) {
                    Ok(text) => Cow::Borrowed(text),
                    Err(_) => return Err(BadRow::column(&form.columns[slot.0], "it is not UTF-8 text")),
                }
            }
            Form::Ndjson(form) => match form.get(slot) {
                None | Some(Datum::Null) => return Ok(None),
                Some(value) => text_of(value),
            },
            Form::Lines(form) => match form.field(slot.0) {
                None => return Ok(None),
                Some(text) => Cow::Borrowed(text),
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
            Form::Delimited(_) | Form::Lines(_) => None,
            Form::Ndjson(form) => form.get(slot),
        }
    }

    /// True if fields are text, which may be JSON.
    pub(crate) fn is_delimited(&self) -> bool {
        matches!(self.form, Form::Delimited(_) | Form::Lines(_))
    }

    /// The name of a column.
    pub(crate) fn column(&self, slot: Slot) -> &str {
        match &self.form {
            Form::Delimited(form) => &form.columns[slot.0],
            Form::Ndjson(form) => &form.columns[slot.0],
            Form::Lines(form) => &form.columns[slot.0],
        }
    }

    /// All columns of the present row except these, as a JSON object.
    pub(crate) fn object_without(&self, slots: &[Slot]) -> Result<Datum, BadRow> {
        let mut object = Vec::new();
        match &self.form {
            Form::Delimited(Delimited { columns, .. }) | Form::Lines(Lines { columns, .. }) => {
                for (index, name) in columns.iter().enumerate() {
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
            Form::Ndjson(_) | Form::Lines(_) => None,
        }
    }

    /// The header of the file of bad rows.
    pub(crate) fn header(&self) -> Vec<String> {
        match &self.form {
            Form::Delimited(form) => form.columns.clone(),
            Form::Ndjson(_) | Form::Lines(_) => vec!["row".to_owned()],
        }
    }

    /// The present row as it was in the file.
    pub(crate) fn raw(&self) -> Vec<Vec<u8>> {
        match &self.form {
            Form::Delimited(form) => form.records.fields().map(<[u8]>::to_vec).collect(),
            Form::Ndjson(form) => vec![form.text.clone()],
            Form::Lines(form) => vec![form.text.clone()],
        }
    }
}

impl Template {
    /// The rows of a piece of the file, which begins and ends with a line. If it is not the last
    /// one, the row that follows has not arrived yet.
    pub(crate) fn rows(&self, text: Vec<u8>, is_last: bool) -> Rows {
        let form = match &self.form {
            TemplateForm::Delimited { delimiter, columns } => Form::Delimited(Delimited {
                records: Records::of_text(text, is_last, *delimiter, ROW_BYTES_MAX),
                columns: columns.clone(),
                pending: VecDeque::new(),
                spans: None,
                notes: Vec::new(),
            }),
            TemplateForm::Ndjson { columns, is_logfmt } => Form::Ndjson(Ndjson {
                unseen: Unseen { slots: (0..columns.len()).collect(), ..Unseen::default() },
                ..Ndjson::new(Box::new(Cursor::new(text)), columns.clone(), *is_logfmt)
            }),
            TemplateForm::Lines(pattern) => {
                Form::Lines(Lines::new(Box::new(Cursor::new(text)), pattern.clone(), ROW_BYTES_MAX))
            }
        };
        let (source_name, nulls) = (self.source_name.clone(), self.nulls.clone());
        Rows { source_name, nulls, line: 0, form, settled: None }
    }

    /// The error of a file that cannot be read on.
    pub(crate) fn failed(&self, lines: u64, error: &std::io::Error) -> Failure {
        Failure::Refused(format!("cannot read {} after line {lines}: {error}", self.source_name))
    }

    /// The place behind so many lines, with this content.
    pub(crate) fn mark(&self, content: Content, lines: u64) -> Mark {
        match self.form {
            TemplateForm::Delimited { .. } => Mark { content, line: lines + 1 },
            TemplateForm::Ndjson { .. } | TemplateForm::Lines(_) => Mark { content, line: lines },
        }
    }
}

impl Delimited {
    fn open(reader: Box<dyn BufRead>, delimiter: u8, header: bool, name: &str) -> Result<Delimited, Failure> {
        let records = Records::new(reader, delimiter, ROW_BYTES_MAX);
        let (columns, pending, notes) = (Vec::new(), VecDeque::new(), Vec::new());
        let mut form = Delimited { records, columns, pending, spans: None, notes };
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::Interrupted => Failure::Interrupted,
            _ => Failure::Refused(format!("cannot read {name}: {error}")),
        };
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
                    let wrong = wrong_record(found, 0, &[]);
                    return Err(Failure::Refused(format!(
                        "cannot read the header of {name}: line {line}: {wrong}"
                    )));
                }
                Found::Record => names_in(form.records.fields(), &mut form.notes),
            };
            return Ok(form);
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

    fn slot(&self, column: &str, source_name: &str) -> Result<Slot, Failure> {
        slot_of(&self.columns, column, source_name)
    }

    fn advance(&mut self, line: &mut u64) -> std::io::Result<Next> {
        let (found, lines) = match self.pending.pop_front() {
            Some((pending_line, found, record)) => {
                *line = pending_line;
                self.records.set_record(record);
                (found, 0)
            }
            None => {
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
    match columns.get(has.saturating_sub(1)) {
        Some(column) => BadRow::column(column, reason),
        None => BadRow::whole(reason),
    }
}

/// The names of columns. One that stands twice is numbered.
fn names_in<'a>(fields: impl Iterator<Item = &'a [u8]>, notes: &mut Vec<String>) -> Vec<String> {
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

/// A delimiter, in words.
fn shown(delimiter: u8) -> String {
    if delimiter == b'\t' { "tabs".to_owned() } else { format!("`{}`", char::from(delimiter)) }
}

fn slot_of(columns: &[String], column: &str, source_name: &str) -> Result<Slot, Failure> {
    columns.iter().position(|known| known == column).map(Slot).ok_or_else(|| {
        let known: Vec<&str> = columns.iter().map(String::as_str).collect();
        let hint = human::suggestion(column, &known);
        Failure::Usage(format!("{source_name} has no column `{column}` ({hint})"))
    })
}

/// The character between fields, if the first line has another one than a comma.
fn other_delimiter(line: &str) -> Option<u8> {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    let mut is_quoted = false;
    for byte in line.bytes() {
        is_quoted ^= byte == b'"';
        if let (false, Some((_, count))) = (is_quoted, counts.iter_mut().find(|(known, _)| *known == byte)) {
            *count += 1;
        }
    }
    let (found, count) = counts.into_iter().rev().max_by_key(|(_, count)| *count)?;
    (count > 0 && counts[0].1 == 0).then_some(found)
}

/// The object of a line of name=value; none if it is no such line.
fn logfmt(text: &str) -> Option<Vec<(String, Datum)>> {
    let mut object: Vec<(String, Datum)> = Vec::new();
    let (mut rest, mut has_value) = (text.trim_start(), false);
    while !rest.is_empty() {
        let end = rest.find(|letter: char| letter == '=' || letter.is_whitespace()).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        rest = &rest[end..];
        let mut value = "true".to_owned();
        if let Some(after) = rest.strip_prefix('=') {
            has_value = true;
            (value, rest) = logfmt_value(after)?;
        }
        object.retain(|(known, _)| *known != name);
        object.push((name, Datum::Text(value)));
        rest = rest.trim_start();
    }
    has_value.then_some(object)
}

/// A value, and what follows it; none if its quote does not close.
fn logfmt_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let (mut value, mut letters) = (String::new(), quoted.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// A field of an object by its name, or by a JSON pointer: `/user/id`.
fn found<'o>(object: &'o [(String, Datum)], name: &str) -> Option<&'o Datum> {
    if let Some((_, datum)) = object.iter().find(|(of, _)| of == name) {
        return Some(datum);
    }
    let mut steps = name.strip_prefix('/')?.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
    let first = steps.next()?;
    let mut at = &object.iter().find(|(of, _)| *of == first)?.1;
    for step in steps {
        at = match at {
            Datum::List(items) => items.get(step.parse::<usize>().ok()?)?,
            other => other.field(&step)?,
        };
    }
    Some(at)
}

fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("c{number}")).collect()
}

impl Ndjson {
    fn new(reader: Box<dyn BufRead>, columns: Vec<String>, is_logfmt: bool) -> Ndjson {
        Ndjson {
            reader,
            columns,
            text: Vec::new(),
            tape: Tape::new(),
            unseen: Unseen::default(),
            is_partial: false,
            object: Vec::new(),
            is_logfmt,
        }
    }

    fn get(&self, slot: Slot) -> Option<&Datum> {
        found(&self.object, &self.columns[slot.0])
    }

    fn slot(&mut self, column: &str) -> Slot {
        let known = self.columns.iter().position(|known| known == column);
        Slot(known.unwrap_or_else(|| {
            self.columns.push(column.to_owned());
            self.unseen.slots.push(self.columns.len() - 1);
            self.columns.len() - 1
        }))
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
        if self.is_logfmt {
            let Some(object) = logfmt(text) else {
                return Ok(Next::Bad(BadRow::whole("expected name=value, with quotes that close")));
            };
            self.unseen.see(&self.columns, &object);
            self.object = object;
            return Ok(Next::Row);
        }
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
