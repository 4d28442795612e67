//! What reading a row gives: the row, or what is wrong with it.

use std::borrow::Cow;
use std::io::{self, ErrorKind};

use crate::failure::Failure;

/// Longest row of a file, in bytes.
pub(crate) const ROW_BYTES_MAX: usize = 128 << 20;

/// What some programs write at the beginning of a UTF-8 file.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The same text without the mark that it may begin with.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The error of a file whose first rows cannot be read.
pub(crate) fn failed_to_read(name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::Interrupted => Failure::Interrupted,
        _ => Failure::Refused(format!("cannot read {name}: {error}")),
    }
}

/// The number of a requested column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) usize);

/// What is wrong with a row, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    /// The column, or the expression, if one is the cause.
    pub(crate) column: Option<String>,
    /// That is an expression.
    pub(crate) is_computed: bool,
    /// What was expected.
    pub(crate) reason: String,
    /// How many lines later it ends, if a quoted field has taken it there, or the end of the file.
    pub(crate) lines_later: u64,
    /// How many lines later the quote of it closes that was taken for a stray one, since the lines
    /// between are rows.
    pub(crate) rows_later: u64,
    /// The file, which may grow, ends inside a quote of it.
    pub(crate) is_left_open: bool,
    /// The row as it is in the file, where its fields do not say that.
    pub(crate) text: Option<Vec<u8>>,
}

impl BadRow {
    /// A row that is bad as a whole.
    pub(crate) fn whole(reason: impl Into<String>) -> BadRow {
        BadRow {
            column: None,
            is_computed: false,
            reason: reason.into(),
            lines_later: 0,
            rows_later: 0,
            is_left_open: false,
            text: None,
        }
    }

    /// A row with a bad column.
    pub(crate) fn column(column: &str, reason: impl Into<String>) -> BadRow {
        BadRow { column: Some(column.to_owned()), ..BadRow::whole(reason) }
    }

    /// A row of which an expression gives something bad.
    pub(crate) fn computed(text: &str, reason: impl Into<String>) -> BadRow {
        BadRow { is_computed: true, ..BadRow::column(text, reason) }
    }

    /// The same, with which a file ends that may grow: its last line has no end, or a quote of it.
    pub(crate) fn at_open_end(mut self) -> BadRow {
        self.reason.push_str(match self.is_left_open {
            true => {
                " (the file ends inside it: nothing from here on is in, and all of that is read again when the file \
                 has grown; if it is whole: --complete)"
            }
            false => " (its line has no end: it is read again when the file has grown)",
        });
        self
    }

    /// The same, where the line is known on which it begins.
    pub(crate) fn on_line(mut self, line: u64) -> BadRow {
        if self.lines_later > 0 && !self.is_left_open {
            let last = line + self.lines_later;
            self.reason.push_str(&format!("; a quoted field takes it to line {last}"));
        }
        if self.rows_later > 0 {
            let last = line + self.rows_later;
            self.reason.push_str(&format!(
                "a quote opens here and does not close before line {last}, and the lines between are rows: it is \
                 taken for a stray one (if they are text: --multiline)"
            ));
        }
        self
    }
}

impl std::fmt::Display for BadRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.column {
            Some(text) if self.is_computed => write!(f, "`{text}`: {}", self.reason),
            Some(column) => write!(f, "column `{column}`: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// The fields of a row, as expressions read them.
pub(crate) trait Fields {
    /// The text of a column, which may be empty; none if the value is missing.
    ///
    /// # Errors
    /// It is no text.
    fn field(&self, slot: Slot) -> Result<Option<Cow<'_, str>>, BadRow>;

    /// The text of a column of JSON that has it in quotes.
    fn quoted(&self, slot: Slot) -> Option<&str>;

    /// The texts of the elements of a column that is a list of JSON; none if it is no list.
    fn elements(&self, slot: Slot) -> Option<impl Iterator<Item = Option<Cow<'_, str>>>>;

    /// True if fields are text, which may be JSON.
    fn is_delimited(&self) -> bool;
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
