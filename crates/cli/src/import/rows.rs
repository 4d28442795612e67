//! Rows of a file, one at a time: their fields by column, their line, and what is wrong with bad
//! ones.
//!
//! A column is looked up by name once ([`Rows::slot`]) and then read by its slot. A row that cannot
//! be read is a *bad row*; only a failing file ends the reading.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{BufRead, Cursor, ErrorKind};

use folddb::Datum;

use crate::args::InputFormat;
use crate::failure::Failure;
use crate::human;
use crate::import::delimited::{Records, Span};
use crate::import::delimited_rows::{Delimited, dialect_of, names_in, numbered, slot_of};
use crate::import::dialect::{Dialect, Escape};
use crate::import::header;
use crate::import::json_rows::{Ndjson, Unseen, json_of, text_of};
use crate::import::lines::{Lines, Pattern};
use crate::import::row::{BadRow, Fields, Next, ROW_BYTES_MAX, Slot, failed_to_read};
use crate::import::source::Source;
use crate::import::spaced::{Begin, Words};
use crate::import::tape::{Content, Mark, Tape};

/// The rows of a file.
pub(crate) struct Rows {
    source_name: String,
    /// Texts that mean a missing value.
    nulls: Vec<String>,
    /// It is a file that may grow, and that is not followed.
    may_grow: bool,
    /// The line on which the present row begins, from 1.
    line: u64,
    /// The first line names the columns; and if that was found out, how.
    header: Header,
    /// What was found out, in words.
    notes: Vec<String>,
    form: Form,
}

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    Yes,
    No,
    /// It is like the second one.
    FoundNone,
}

/// What makes rows of a piece of a file.
#[derive(Clone)]
pub(crate) struct Template {
    source_name: String,
    nulls: Vec<String>,
    may_grow: bool,
    comment: Option<u8>,
    form: TemplateForm,
}

#[derive(Clone)]
enum TemplateForm {
    Delimited { dialect: Dialect, columns: Vec<String> },
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
    /// What is around fields that have delimiters, if anything is.
    pub(crate) quote: Option<u8>,
    /// What escapes it there.
    pub(crate) escape: Escape,
    /// Lines that begin with it are passed over.
    pub(crate) comment: Option<u8>,
    /// The lines of a quoted field are text, also where they look like rows.
    pub(crate) is_multiline: bool,
    /// Whether the first line names the columns, if that is stated.
    pub(crate) header: Option<bool>,
    /// The columns of words between spaces, if they are known.
    pub(crate) words: Option<&'a [String]>,
    /// Whether a column of this name is asked for.
    pub(crate) is_asked_for: &'a dyn Fn(&str) -> bool,
    /// Texts that mean a missing value.
    pub(crate) nulls: &'a [String],
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

impl Header {
    /// What is stated, or else what the first two lines say.
    fn of(
        how: &How<'_>,
        source: &mut Source,
        dialect: Dialect,
        notes: &mut Vec<String>,
    ) -> Result<Header, Failure> {
        let is_row = match (how.pattern, how.format, how.header) {
            (None, InputFormat::Spaces, _) if how.words.is_some() => return Ok(Header::No),
            (_, _, Some(true)) => return Ok(Header::Yes),
            (_, _, Some(false)) => return Ok(Header::No),
            (None, InputFormat::Csv | InputFormat::Tsv, None) => {
                let two = header::first_two(&source.head()?, dialect);
                two.is_some_and(|(first, second)| header::is_row(&first, &second, how.is_asked_for))
            }
            (None, InputFormat::Spaces, None) => Begin::of(&source.head()?).is_row(how.is_asked_for),
            _ => return Ok(Header::Yes),
        };
        if !is_row {
            return Ok(Header::Yes);
        }
        let note = "the first line is a row like the second one; columns are called c1, c2, ... (if it names them: --header)";
        notes.push(note.to_owned());
        Ok(Header::FoundNone)
    }
}

impl Rows {
    /// Begins to read; takes the header, if there is one.
    pub(crate) fn open(mut source: Source, how: &How<'_>) -> Result<Rows, Failure> {
        let mut notes = Vec::new();
        let mut line = 0;
        let (delimiter, escape) = match (how.pattern, how.format) {
            (None, InputFormat::Csv) => (how.delimiter, how.escape),
            (None, InputFormat::Tsv) => (how.delimiter.or(Some(b'\t')), how.escape),
            _ => (how.delimiter.or(Some(b',')), Escape::Is(None)),
        };
        let (around, head) = ((how.quote, how.comment), source.head()?);
        let dialect = dialect_of(&head, (delimiter, escape), around, &mut notes);
        let dialect = Dialect { is_multiline: how.is_multiline, ..dialect };
        let header = Header::of(how, &mut source, dialect, &mut notes)?;
        let begin = Begin::of(&source.head()?);
        let Source { reader, name, may_grow, .. } = source;
        let lines = |reader, pattern| {
            Form::Lines(Lines::new(reader, pattern, ROW_BYTES_MAX).without_comments(how.comment))
        };
        let words_with = |reader, words| {
            Lines::new(reader, Pattern::words(words), ROW_BYTES_MAX).without_comments(how.comment)
        };
        let form = match (how.pattern, how.format) {
            (Some(text), _) => lines(reader, Pattern::given(text)?),
            (None, InputFormat::Csv | InputFormat::Tsv) => {
                let mut form = Delimited::open(reader, dialect, header == Header::Yes, (&name, may_grow))?;
                notes.splice(0..0, std::mem::take(&mut form.notes));
                Form::Delimited(form)
            }
            (None, InputFormat::Common) => lines(reader, Pattern::common()),
            (None, InputFormat::Combined) => lines(reader, Pattern::combined()),
            (None, InputFormat::Vhost) => lines(reader, Pattern::vhost()),
            (None, InputFormat::Syslog) => lines(reader, Pattern::syslog()),
            (None, InputFormat::Spaces) => {
                let words = Words { names: Vec::new(), passes_totals: begin.is_listing };
                Form::Lines(match (how.words, header) {
                    (Some(names), _) => words_with(reader, Words { names: names.to_vec(), ..words }),
                    (None, Header::Yes) => {
                        let failed = |error| failed_to_read(&name, &error);
                        let mut lines = words_with(reader, words).behind_line(&mut line).map_err(failed)?;
                        let names = begin.names(&String::from_utf8_lossy(lines.text()));
                        lines.name(names_in(names.iter().map(String::as_bytes), &mut notes));
                        lines
                    }
                    _ => words_with(reader, Words { names: numbered(begin.columns()), ..words }),
                })
            }
            (None, format @ (InputFormat::Ndjson | InputFormat::Logfmt)) => {
                let mut form = Ndjson::new(reader, Vec::new(), format == InputFormat::Logfmt);
                form.lines.comment = how.comment;
                Form::Ndjson(form)
            }
        };
        let nulls = how.nulls.to_vec();
        Ok(Rows { source_name: name, nulls, may_grow, line, header, notes, form })
    }

    /// The columns of words between spaces.
    pub(crate) fn words(&self) -> Option<&[String]> {
        match &self.form {
            Form::Lines(form) => form.pattern.names_of_words(),
            _ => None,
        }
    }

    /// Whether the first line named the columns.
    pub(crate) fn has_header(&self) -> bool {
        self.header == Header::Yes
    }

    /// What makes rows of its pieces.
    pub(crate) fn template(&self) -> Template {
        let comment = match &self.form {
            Form::Delimited(form) => form.records.dialect().comment,
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => lines.comment,
        };
        let form = match &self.form {
            Form::Delimited(form) => {
                TemplateForm::Delimited { dialect: form.records.dialect(), columns: form.columns.clone() }
            }
            Form::Ndjson(form) => {
                TemplateForm::Ndjson { columns: form.columns.clone(), is_logfmt: form.is_logfmt }
            }
            Form::Lines(form) => TemplateForm::Lines(form.pattern.clone()),
        };
        let (source_name, nulls) = (self.source_name.clone(), self.nulls.clone());
        Template { source_name, nulls, may_grow: self.may_grow, comment, form }
    }

    /// Whether the next row is in what is left of the file, and nowhere else.
    pub(crate) fn has_rest(&self) -> bool {
        match &self.form {
            Form::Delimited(form) => form.pending.is_empty() && !form.records.is_inside_line(),
            Form::Ndjson(form) => !form.lines.is_partial,
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
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => Rest {
                text: Vec::new(),
                reader: std::mem::replace(&mut lines.reader, none()),
                tape: lines.tape.clone(),
                lines: self.line,
            },
        }
    }

    /// A piece of a file: how many of its bytes are rows, and how many lines these are.
    pub(crate) fn passed(&self) -> (usize, u64) {
        match &self.form {
            Form::Delimited(form) => (form.records.begin(), form.records.processed_lines()),
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => {
                (lines.tape.bytes() as usize, self.line)
            }
        }
    }

    /// The text of a piece of a file of delimited text.
    pub(crate) fn into_text(self) -> Vec<u8> {
        match self.form {
            Form::Delimited(form) => form.records.into_text(),
            Form::Ndjson(_) | Form::Lines(_) => Vec::new(),
        }
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
        let slot = match &mut self.form {
            Form::Delimited(form) => form.slot(column, &self.source_name),
            Form::Ndjson(form) => Ok(form.slot(column)),
            Form::Lines(form) => slot_of(&form.columns, column, &self.source_name),
        };
        slot.map_err(|failure| match failure {
            Failure::Usage(wrong) if self.header == Header::FoundNone => Failure::Usage(format!(
                "{wrong}; its first line is like the second one, and is taken for a row: if it names the columns, \
                 --header"
            )),
            other => other,
        })
    }

    /// Whether the header has a column of this name. Of NDJSON that is not known.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        match &self.form {
            Form::Delimited(form) => form.columns.iter().any(|known| known == name),
            Form::Ndjson(_) => false,
            Form::Lines(form) => form.columns.iter().any(|known| known == name),
        }
    }

    /// The name of the file, for messages.
    pub(crate) fn source_name(&self) -> &str {
        &self.source_name
    }

    /// What was found out about the file, in words.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
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
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => {
                Some(Mark { content: lines.tape.content(), line: self.line })
            }
        }
    }

    /// The place before the present row, if a file that may grow ends within the line of the row,
    /// or inside a quote of it.
    pub(crate) fn before_open(&self) -> Option<Mark> {
        match &self.form {
            _ if !self.may_grow => None,
            Form::Delimited(form) if form.is_pending && !form.pending.is_empty() => None,
            Form::Delimited(form) => form.records.before_open().map(|(content, line)| Mark { content, line }),
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => {
                lines.before_open.map(|content| Mark { content, line: self.line - 1 })
            }
        }
    }

    /// At the end, the place before a last line that is no row, if a file that may grow ends within
    /// it.
    pub(crate) fn passed_open(&self) -> Option<Mark> {
        match &self.form {
            _ if !self.may_grow => None,
            Form::Delimited(form) => form.records.passed_open().map(|(content, line)| Mark { content, line }),
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => {
                lines.passed_open.map(|content| Mark { content, line: self.line - 1 })
            }
        }
    }

    /// The file, and the line of a quote in it behind which lines have come, and not its end yet.
    pub(crate) fn open_quote(&self) -> Option<(&str, u64)> {
        match &self.form {
            Form::Delimited(form) => form.records.open_quote.map(|line| (self.source_name.as_str(), line)),
            Form::Ndjson(_) | Form::Lines(_) => None,
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
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => {
                lines.pass_to(mark.content.bytes)
            }
        };
        let name = &self.source_name;
        let passed = passed.map_err(|error| Failure::Refused(format!("cannot read {name}: {error}")))?;
        self.line = match &self.form {
            Form::Delimited(_) => mark.line.saturating_sub(1), // that is the line of the next row
            Form::Ndjson(_) | Form::Lines(_) => mark.line,
        };
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
        self.missing_with(&[], but)
    }

    /// The same, with what is noted about pieces.
    pub(crate) fn missing_with(&self, pieces: &[Seen], but: &[String]) -> Option<String> {
        let Form::Ndjson(form) = &self.form else { return None };
        let mut unseen = form.unseen.clone();
        pieces.iter().for_each(|piece| unseen.add(&piece.unseen));
        let missing = unseen.slots.iter().map(|&slot| &form.columns[slot]).filter(|name| !but.contains(name));
        let names: Vec<&str> = unseen.names.iter().map(String::as_str).collect();
        let told: Vec<String> =
            missing.map(|name| format!("`{name}` ({})", hint_of_field(name, &names))).collect();
        if told.is_empty() || unseen.rows == 0 {
            return None;
        }
        let rows = human::plural(unseen.rows, "row");
        let advice = match (&unseen.list, unseen.rows) {
            (Some(list), 1) => {
                format!(
                    "; if the list `{list}` has the rows: jq -c '.{list}[]' {} | folddb import … -",
                    self.source_name
                )
            }
            _ => String::new(),
        };
        Some(format!("none of the {rows} of {} has a field {}{advice}", self.source_name, told.join(", ")))
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

    /// The character between fields, if there is one.
    pub(crate) fn delimiter(&self) -> Option<u8> {
        match &self.form {
            Form::Delimited(form) => Some(form.records.dialect().delimiter),
            Form::Ndjson(_) | Form::Lines(_) => None,
        }
    }

    /// What escapes quotes in fields, besides a second one.
    pub(crate) fn escape(&self) -> Option<u8> {
        match &self.form {
            Form::Delimited(form) => form.records.dialect().escape,
            Form::Ndjson(_) | Form::Lines(_) => None,
        }
    }

    /// The columns of rows that are kept.
    pub(crate) fn header(&self) -> Vec<String> {
        match &self.form {
            Form::Delimited(form) => form.columns.clone(),
            Form::Lines(form) if form.pattern.names_of_words().is_some() => form.columns.clone(),
            Form::Ndjson(_) | Form::Lines(_) => vec!["row".to_owned()],
        }
    }

    /// The names of its columns, as far as they are known before the rows are read.
    pub(crate) fn names(&self) -> &[String] {
        match &self.form {
            Form::Delimited(form) => &form.columns,
            Form::Ndjson(form) => &form.columns,
            Form::Lines(form) => &form.columns,
        }
    }

    /// The present row as it was in the file.
    pub(crate) fn raw(&self) -> Vec<Vec<u8>> {
        match &self.form {
            Form::Delimited(form) => form.records.fields().map(<[u8]>::to_vec).collect(),
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => vec![lines.text.clone()],
        }
    }
}

/// What is said of a field of JSON that no row has: which one may be meant.
fn hint_of_field(name: &str, known: &[&str]) -> String {
    let steps: Vec<&str> = name.trim_start_matches('.').split('.').collect();
    match &steps[..] {
        [first, _, ..] if known.contains(first) => {
            format!("a field inside of another is named by its path: /{}", steps.join("/"))
        }
        [first] if name.starts_with('.') && known.contains(first) => format!("did you mean `{first}`?"),
        _ => human::suggestion(name, known),
    }
}

impl Fields for Rows {
    fn field(&self, slot: Slot) -> Result<Option<Cow<'_, str>>, BadRow> {
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

    fn elements(&self, slot: Slot) -> Option<impl Iterator<Item = Option<Cow<'_, str>>>> {
        let Datum::List(items) = self.json(slot)? else { return None };
        Some(items.iter().map(|item| match item {
            Datum::Null => None,
            item => Some(text_of(item)),
        }))
    }

    fn quoted(&self, slot: Slot) -> Option<&str> {
        match &self.form {
            Form::Ndjson(form) if !form.is_logfmt => match form.get(slot) {
                Some(Datum::Text(text)) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_delimited(&self) -> bool {
        matches!(self.form, Form::Delimited(_) | Form::Lines(_))
    }
}

impl Template {
    /// Whether columns have the same slots in files like this and like another one, and fields mean
    /// the same.
    pub(crate) fn is_like(&self, other: &Template) -> bool {
        self.nulls == other.nulls && self.form.is_like(&other.form)
    }

    /// The rows of what is left of a pipe, after so many lines.
    pub(crate) fn rows_after(&self, lines: u64, reader: Box<dyn BufRead>) -> Rows {
        let mut rows = self.rows(Vec::new(), lines == 0, false);
        rows.line = lines;
        match &mut rows.form {
            Form::Delimited(form) => form.records = form.records.after(lines, reader),
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => lines.reader = reader,
        }
        rows
    }

    /// The rows of a piece of the file, which begins and ends with a line. If it is not the last
    /// one, the row that follows has not arrived yet.
    pub(crate) fn rows(&self, text: Vec<u8>, begins: bool, is_last: bool) -> Rows {
        let mut form = match &self.form {
            TemplateForm::Delimited { dialect, columns } => Form::Delimited(Delimited {
                records: Records::of_text(text, is_last, *dialect, ROW_BYTES_MAX)
                    .that_may_grow(self.may_grow)
                    .with_width(columns.len()),
                columns: columns.clone(),
                pending: VecDeque::new(),
                is_pending: false,
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
        if let Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) = &mut form {
            (lines.begins, lines.comment) = (begins, self.comment);
        }
        let (source_name, nulls) = (self.source_name.clone(), self.nulls.clone());
        let (may_grow, line, header, notes) = (self.may_grow, 0, Header::Yes, Vec::new());
        Rows { source_name, nulls, may_grow, line, header, notes, form }
    }

    /// The error of a file that cannot be read on.
    pub(crate) fn failed(&self, lines: u64, error: &std::io::Error) -> Failure {
        Failure::Refused(format!("cannot read {} after line {lines}: {error}", self.source_name))
    }

    /// Whether rows are lines, whose text is not kept while they are read.
    pub(crate) fn is_of_lines(&self) -> bool {
        !matches!(self.form, TemplateForm::Delimited { .. })
    }

    /// How many lines are before a place.
    pub(crate) fn lines_before(&self, mark: &Mark) -> u64 {
        if self.is_of_lines() { mark.line } else { mark.line - 1 }
    }

    /// The place behind so many lines, with this content.
    pub(crate) fn mark(&self, content: Content, lines: u64) -> Mark {
        match self.form {
            TemplateForm::Delimited { .. } => Mark { content, line: lines + 1 },
            TemplateForm::Ndjson { .. } | TemplateForm::Lines(_) => Mark { content, line: lines },
        }
    }
}

impl TemplateForm {
    fn is_like(&self, other: &TemplateForm) -> bool {
        match (self, other) {
            (
                TemplateForm::Delimited { dialect, columns },
                TemplateForm::Delimited { dialect: other, columns: of_other },
            ) => dialect == other && columns == of_other,
            (
                TemplateForm::Ndjson { columns, is_logfmt },
                TemplateForm::Ndjson { columns: of_other, is_logfmt: other },
            ) => is_logfmt == other && columns == of_other,
            (TemplateForm::Lines(pattern), TemplateForm::Lines(other)) => pattern.is(other),
            _ => false,
        }
    }
}

#[cfg(test)]
#[path = "rows/tests.rs"]
mod tests;
