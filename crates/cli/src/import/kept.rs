//! The form of a file of bad rows: the same command imports it once they are mended.
//!
//! ```text
//!   # bad rows, kept by `folddb import`: … {"store":…,"format":"csv","delimiter":",","header":true}
//!   k,n                                                              the header, if the rows had one
//!   # bad row: rows.csv line 3: column `n`: expected a whole number, found `x`
//!   b,x                                                              the row, as it was
//! ```
//!
//! Lines of JSON and of logs are kept as they were, and so are words between spaces, whose columns
//! the first line has (`"words"`); fields of delimited text between the same delimiters, in the
//! same quotes. The lines that begin with `#` are read as empty ones, which all formats pass over,
//! so that lines are counted as an editor counts them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::args::InputFormat;
use crate::import::dialect::{Dialect, USUAL_QUOTE, is_line_end};
use crate::import::header;
use crate::import::row::without_mark;

/// How the first line begins, and the line before each row.
const FIRST: &str =
    "# bad rows, kept by `folddb import`: mend them, and import this file by the same command. ";
const REASON: &str = "# bad row: ";

/// No first line is longer.
const FIRST_BYTES_MAX: u64 = 1 << 20;

/// The same before a row with lines that begin so, too: how many lines are the row.
const REASON_OF_LINES: &str = "# bad row (";
const LINES: [&str; 2] = [" line): ", " lines): "];

/// How rows are kept, and read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Form {
    pub(crate) format: InputFormat,
    /// Between the fields of delimited text.
    pub(crate) delimiter: Option<u8>,
    /// Around them, where they need it, if anything is.
    pub(crate) quote: Option<u8>,
    /// What escapes it there, besides a second one.
    pub(crate) escape: Option<u8>,
    /// The names of the columns come first.
    pub(crate) header: bool,
    /// The columns of words between spaces, which no line names.
    pub(crate) words: Option<Vec<String>>,
}

impl Form {
    /// The lines that a file begins with: what made it, and the names of the columns.
    pub(crate) fn begin(&self, of: Value, columns: &[String]) -> Vec<u8> {
        let mut of = of;
        of["format"] = self.format.to_possible_value().map(|value| value.get_name().to_owned()).into();
        of["delimiter"] = self.delimiter.map(|delimiter| char::from(delimiter).to_string()).into();
        of["header"] = self.header.into();
        if self.quote != Some(USUAL_QUOTE) {
            of["quote"] = self.quote.map(|quote| char::from(quote).to_string()).into();
        }
        if let Some(escape) = self.escape {
            of["escape"] = char::from(escape).to_string().into();
        }
        if let Some(words) = &self.words {
            of["words"] = words.as_slice().into();
        }
        let mut text = format!("{FIRST}{of}\n").into_bytes();
        if self.header && self.delimiter.is_some() {
            let fields: Vec<&[u8]> = columns.iter().map(String::as_bytes).collect();
            self.put_row(&mut text, &fields);
        }
        text
    }

    /// Whether a text has the same fields in both forms.
    pub(crate) fn is_alike(&self, other: &Form) -> bool {
        let around = |form: &Form| (form.delimiter, form.quote, form.escape);
        around(self) == around(other)
    }

    /// A row, with where it was and what is wrong with it.
    pub(crate) fn put(&self, out: &mut Vec<u8>, place: &str, reason: &str, fields: &[&[u8]]) {
        let mut row = Vec::new();
        self.put_row(&mut row, fields);
        put_text(out, place, reason, &row);
    }

    fn put_row(&self, out: &mut Vec<u8>, fields: &[&[u8]]) {
        let Some(delimiter) = self.delimiter else {
            fields.iter().for_each(|field| out.extend_from_slice(field));
            return out.push(b'\n');
        };
        if let (Some(quote), Some(sign)) = (self.quote, self.escape) {
            return put_escaped(out, fields, delimiter, (quote, sign));
        }
        let mut form = csv::WriterBuilder::new();
        form.flexible(true).delimiter(delimiter);
        match self.quote {
            Some(quote) => form.quote(quote),
            None => form.quote_style(csv::QuoteStyle::Never),
        };
        let mut writer = form.from_writer(Vec::new());
        let written = match fields {
            [] => writer.write_record([""]),
            fields => writer.write_record(fields),
        };
        // Memory takes all.
        if let (Ok(()), Ok(row)) = (written, writer.into_inner()) {
            out.extend_from_slice(&row);
        }
    }

    /// The form of a file that begins like this, if it is one of bad rows.
    pub(crate) fn of_head(head: &[u8]) -> Option<Form> {
        let line = without_mark(head).strip_prefix(FIRST.as_bytes())?.split(|&byte| byte == b'\n').next()?;
        let of: Value = serde_json::from_slice(line.trim_ascii_end()).ok()?;
        let letter = |text: &str| u8::try_from(text.chars().next()?).ok();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Form {
            format: InputFormat::from_str(of["format"].as_str()?, false).ok()?,
            delimiter: of["delimiter"].as_str().and_then(letter),
            quote: match of.get("quote") {
                Some(quote) => quote.as_str().and_then(letter),
                None => Some(USUAL_QUOTE),
            },
            escape: of["escape"].as_str().and_then(letter),
            header: of["header"].as_bool()?,
            words: of["words"].as_array().and_then(|words| words.iter().map(text).collect()),
        })
    }
}

/// A row as it is in its file, whose last line may have no end.
pub(crate) fn put_text(out: &mut Vec<u8>, place: &str, reason: &str, row: &[u8]) {
    let of_one_line = |letter: char| if letter.is_control() { ' ' } else { letter };
    let line: String = format!("{place}: {reason}").chars().map(of_one_line).collect();
    let lines = || row.split_inclusive(|&byte| byte == b'\n');
    let begin = match lines().any(is_about_rows) {
        true => {
            let count = lines().count();
            format!("{REASON_OF_LINES}{count}{}", LINES[usize::from(count > 1)])
        }
        false => REASON.to_owned(),
    };
    out.extend_from_slice(begin.as_bytes());
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(row);
    if !row.ends_with(b"\n") {
        out.push(b'\n');
    }
}

/// Fields between delimiters, of which a sign escapes the quotes, and itself.
fn put_escaped(out: &mut Vec<u8>, fields: &[&[u8]], delimiter: u8, (quote, sign): (u8, u8)) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(delimiter);
        }
        let is_of_form = |&byte: &u8| byte == quote || is_line_end(byte) || byte == delimiter;
        let is_an_empty_line = field.is_empty() && fields.len() == 1;
        if !is_an_empty_line && !field.iter().any(is_of_form) {
            out.extend_from_slice(field);
            continue;
        }
        out.push(quote);
        for &byte in *field {
            if byte == quote || byte == sign {
                out.push(sign);
            }
            out.push(byte);
        }
        out.push(quote);
    }
    out.push(b'\n');
}

/// The form and the columns of a file of bad rows that begins like this, if it is one.
pub(crate) fn begin_of(head: &[u8]) -> Option<(Form, Vec<String>)> {
    let form = Form::of_head(head)?;
    let (true, Some(delimiter)) = (form.header, form.delimiter) else { return Some((form, Vec::new())) };
    let rest = &head[head.iter().position(|&byte| byte == b'\n')? + 1..];
    let dialect =
        Dialect { delimiter, quote: form.quote, escape: form.escape, comment: None, is_multiline: false };
    let columns = header::first_records(rest, dialect).next()?;
    Some((form, columns))
}

/// Whether a line is no row, but about rows.
fn is_about_rows(line: &[u8]) -> bool {
    [FIRST, REASON].iter().any(|begin| line.starts_with(begin.as_bytes())) || lines_of_row(line).is_some()
}

/// How many lines follow that are a row, whatever they begin with, if a line says so.
fn lines_of_row(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(REASON_OF_LINES.as_bytes())?;
    let rest = std::str::from_utf8(rest.get(..rest.iter().position(|&byte| byte == b':')? + 2)?).ok()?;
    LINES.iter().find_map(|end| rest.strip_suffix(end)?.parse().ok())
}

/// What an import is told by, in the first line of its file of bad rows. One that counts files
/// again has the number of its first record besides, so that no two of them are taken for the same.
pub(crate) fn import_of(store: &str, table: &str, options: &str, again: Option<u64>) -> Value {
    let mut of = json!({ "store": store, "table": table, "options": options });
    if let Some(number) = again {
        of["again"] = number.into();
    }
    of
}

/// The number in the first line of a file of bad rows, if an import that counts files again made
/// it.
pub(crate) fn again_of(path: &Path) -> Option<u64> {
    let file = if path.is_file() { File::open(path).ok()? } else { return None }; // a pipe is left alone
    let mut line = String::new();
    BufReader::new(file.take(FIRST_BYTES_MAX)).read_line(&mut line).ok()?;
    serde_json::from_str::<Value>(line.strip_prefix(FIRST)?).ok()?["again"].as_u64()
}

/// The rows of such a file.
pub(crate) fn rows(content: Box<dyn BufRead>) -> Box<dyn BufRead> {
    let passing = Passing {
        content,
        line: Vec::new(),
        at: 0,
        is_whole: true,
        lines_of_row: 0,
        names: None,
        names_come: false,
    };
    Box::new(BufReader::new(passing))
}

/// Lines, of which those that are about rows are empty.
struct Passing {
    content: Box<dyn BufRead>,
    line: Vec<u8>,
    /// How much of the line was given.
    at: usize,
    /// All of the line has come.
    is_whole: bool,
    /// So many lines that follow are a row.
    lines_of_row: u64,
    /// The line that names the columns, if one does, and whether one comes next.
    names: Option<Vec<u8>>,
    names_come: bool,
}

impl Passing {
    /// Passes over a line, if it is none of a row. Where another file of bad rows was put behind
    /// the first, it names its columns again.
    ///
    /// # Errors
    /// These are other columns.
    fn pass_over(&mut self) -> io::Result<()> {
        let line = without_mark(&self.line);
        let is_names = std::mem::take(&mut self.names_come);
        if self.lines_of_row > 0 {
            self.lines_of_row -= 1;
            return Ok(());
        }
        if is_names {
            match &self.names {
                None => self.names = Some(self.line.clone()),
                Some(names) if *names == self.line => self.blank(),
                Some(_) => {
                    return Err(io::Error::other(
                        "bad rows with other columns follow: cut the file there, and import the two",
                    ));
                }
            }
            return Ok(());
        }
        if is_about_rows(line) {
            let form = Form::of_head(line);
            self.names_come = form.is_some_and(|form| form.header && form.delimiter.is_some());
            self.lines_of_row = lines_of_row(line).unwrap_or(0);
            self.blank();
        }
        Ok(())
    }

    /// Makes the line an empty one.
    fn blank(&mut self) {
        self.line.drain(..self.line.len() - usize::from(self.line.ends_with(b"\n")));
    }
}

impl Read for Passing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_whole && self.at == self.line.len() {
            self.line.clear();
            (self.at, self.is_whole) = (0, false);
        }
        if !self.is_whole {
            // What came before an error stays, and the rest of the line is read later.
            self.content.read_until(b'\n', &mut self.line)?;
            self.is_whole = true;
            self.pass_over()?;
        }
        let len = (self.line.len() - self.at).min(buffer.len());
        buffer[..len].copy_from_slice(&self.line[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

#[cfg(test)]
#[path = "kept/tests.rs"]
mod tests;
