//! Rows of lines of JSON, or of name=value: the fields of each by name or by pointer, and what is
//! noted about fields that are missing.

use std::borrow::Cow;
use std::io::BufRead;

use folddb::{Datum, datum};

use crate::import::line_reader::LineReader;
use crate::import::row::{BadRow, Next, ROW_BYTES_MAX, Slot};

/// How many names of fields are remembered for suggestions.
const UNSEEN_NAMES_MAX: usize = 64;

/// Lines of JSON objects, or of name=value.
pub(crate) struct Ndjson {
    pub(crate) lines: LineReader,
    pub(crate) columns: Vec<String>,
    /// Which columns no row has had so far, and which fields the rows had instead.
    pub(crate) unseen: Unseen,
    /// The fields of the present row, each name once.
    pub(crate) object: Vec<(String, Datum)>,
    /// Lines are name=value.
    pub(crate) is_logfmt: bool,
}

/// Which requested columns no row has had.
#[derive(Clone, Default)]
pub(crate) struct Unseen {
    pub(crate) slots: Vec<usize>,
    /// Some names of fields that rows had instead.
    pub(crate) names: Vec<String>,
    /// How many rows lacked each column, even if others had it.
    pub(crate) lacking: Vec<u64>,
    pub(crate) rows: u64,
    /// A field that was a list of objects.
    pub(crate) list: Option<String>,
}

impl Unseen {
    /// Adds what is noted about other rows.
    pub(crate) fn add(&mut self, other: &Unseen) {
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
        self.list = self.list.take().or_else(|| other.list.clone());
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
        for (name, value) in object {
            if self.list.is_none() && has_objects(value) {
                self.list = Some(name.clone());
            }
            if self.names.len() < UNSEEN_NAMES_MAX && !self.names.contains(name) {
                self.names.push(name.clone());
            }
        }
    }
}

/// Whether a value is a list of objects.
fn has_objects(value: &Datum) -> bool {
    matches!(value, Datum::List(items) if matches!(items.first(), Some(Datum::Map(_))))
}

impl Ndjson {
    pub(crate) fn new(reader: Box<dyn BufRead>, columns: Vec<String>, is_logfmt: bool) -> Ndjson {
        Ndjson {
            lines: LineReader::new(reader, ROW_BYTES_MAX),
            columns,
            unseen: Unseen::default(),
            object: Vec::new(),
            is_logfmt,
        }
    }

    /// The contents of a column in the present row.
    pub(crate) fn get(&self, slot: Slot) -> Option<&Datum> {
        found(&self.object, &self.columns[slot.0])
    }

    /// The slot of a column, which any line may have.
    pub(crate) fn slot(&mut self, column: &str) -> Slot {
        let known = self.columns.iter().position(|known| known == column);
        Slot(known.unwrap_or_else(|| {
            self.columns.push(column.to_owned());
            self.unseen.slots.push(self.columns.len() - 1);
            self.columns.len() - 1
        }))
    }

    /// Moves to the next row; counts the lines.
    pub(crate) fn advance(&mut self, line: &mut u64) -> std::io::Result<Next> {
        if !self.lines.advance(line)? {
            return Ok(Next::End);
        }
        let Ok(text) = std::str::from_utf8(&self.lines.text) else {
            return Ok(Next::Bad(BadRow::whole("not JSON: it is not UTF-8 text")));
        };
        if self.is_logfmt {
            let Some(object) = logfmt(text) else {
                return Ok(Next::Bad(BadRow::whole(
                    "expected name=value, without blanks around =, and with quotes that close",
                )));
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

/// The object of a line of name=value; none if it is no such line.
fn logfmt(text: &str) -> Option<Vec<(String, Datum)>> {
    let mut object: Vec<(String, Datum)> = Vec::new();
    let (mut rest, mut has_value) = (text.trim_start(), false);
    while !rest.is_empty() {
        let end = rest.find(|letter: char| letter == '=' || letter.is_whitespace()).unwrap_or(rest.len());
        if end == 0 {
            return None; // a blank is before the sign
        }
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

/// A value of JSON as the text of a field: a number as it is written, lists and objects as their
/// JSON.
pub(crate) fn text_of(value: &Datum) -> Cow<'_, str> {
    match value {
        Datum::Null => Cow::Borrowed(""),
        Datum::Text(text) | Datum::Number(text) => Cow::Borrowed(text),
        other => Cow::Owned(datum::json::text_of(other)),
    }
}

/// The text of a field as a value of JSON: numbers in JSON's own form that all readers can read,
/// null if empty.
pub(crate) fn json_of(text: &str) -> Datum {
    let is_wide = |value: i128| i64::try_from(value).is_err() && u64::try_from(value).is_err();
    match datum::json::parse(text) {
        _ if text.is_empty() => Datum::Null,
        Ok(Datum::Int(value)) if !is_wide(value) && value.to_string() == text => Datum::Int(value),
        Ok(Datum::Float(value)) if datum::json::text_of(&Datum::Float(value)) == text => Datum::Float(value),
        _ => Datum::Text(text.to_owned()),
    }
}
