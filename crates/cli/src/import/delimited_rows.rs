//! Rows of delimited text: the names of columns, and the fields of each row by column.

use std::collections::VecDeque;
use std::io::{BufRead, ErrorKind};

use csv::ByteRecord;

use crate::failure::Failure;
use crate::human;
use crate::import::delimited::{Found, Records, Span};
use crate::import::dialect::{Dialect, Escape, USUAL_ESCAPE, is_line_end};
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
                Found::OpenQuote
                | Found::StrayQuote { .. }
                | Found::LeftOpen { .. }
                | Found::TooLong
                | Found::Torn { .. } => {
                    let line = form.records.record_line;
                    let wrong = form.wrong_record(found);
                    return Err(Failure::Refused(format!(
                        "cannot read the header of {name}: line {line}: {wrong}"
                    )));
                }
                Found::Record => names_in(form.records.fields(), &mut form.notes),
            };
            form.records.set_width(form.columns.len());
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
        form.records.set_width(form.columns.len());
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
                let wanted = human::plural(wanted as u64, "field");
                let hint = match self.hint_of_escape() {
                    hint if hint.is_empty() => self.hint_of_quote().to_owned(),
                    hint => hint,
                };
                let reason = format!("expected {wanted}, found {has}{hint}");
                Next::Bad(BadRow { lines_later: lines, ..BadRow::whole(reason) })
            }
            wrong @ Found::Torn { .. } => {
                Next::Bad(BadRow { lines_later: lines, ..self.wrong_record(wrong) })
            }
            wrong => Next::Bad(self.wrong_record(wrong)),
        })
    }

    /// The text of the present record; none of one that was read ahead.
    fn text_of_record(&self) -> Option<&[u8]> {
        (!self.is_pending).then(|| self.records.text_of_record())
    }

    /// Where a backslash is before a quote, and nothing says that it escapes quotes: what to do if
    /// it does.
    fn hint_of_escape(&self) -> String {
        let Dialect { quote: Some(quote), escape: None, .. } = self.records.dialect() else {
            return String::new();
        };
        let has = |text: &[u8]| has_escaped(text, quote);
        let is_there = match self.text_of_record() {
            Some(text) => has(text),
            None => self.records.fields().any(has),
        };
        if is_there { hint_to_escape() } else { String::new() }
    }

    /// Where a field begins with a single quote, and one ends so: what to do if these are quotes.
    fn hint_of_quote(&self) -> &'static str {
        let sign = [SINGLE_QUOTE];
        let fields = || self.records.fields().map(<[u8]>::trim_ascii);
        let has =
            fields().any(|field| field.starts_with(&sign)) && fields().any(|field| field.ends_with(&sign));
        let is_none = self.records.dialect().quote.is_some_and(|quote| quote != SINGLE_QUOTE);
        if has && is_none { " (if ' is around fields: --quote \"'\")" } else { "" }
    }

    /// What is wrong with a record that ended before its end, or has text behind a quote.
    fn wrong_record(&self, found: Found) -> BadRow {
        if found == Found::TooLong {
            return BadRow::whole(format!("a row is longer than {ROW_BYTES_MAX} bytes"));
        }
        let (field, reason) = match found {
            Found::Torn { field, is_escaped } => (field, self.reason_of_torn(is_escaped)),
            Found::StrayQuote { .. } => (self.records.len().saturating_sub(1), String::new()),
            _ => {
                let reason = format!("a quote opens here and does not close{}", self.hint_of_escape());
                (self.records.len().saturating_sub(1), reason)
            }
        };
        let bad = match self.columns.get(field) {
            Some(column) => BadRow::column(column, reason),
            None => BadRow::whole(reason),
        };
        // What an escape reads otherwise is kept as it is: the same command may be told of one.
        let is_read_otherwise = match found {
            Found::Torn { .. } => true,
            _ => found == Found::OpenQuote && !self.hint_of_escape().is_empty(),
        };
        let text = self.text_of_record().filter(|_| is_read_otherwise);
        let text = text.map(<[u8]>::to_vec);
        match found {
            Found::StrayQuote { lines } => BadRow { rows_later: lines, text, ..bad },
            Found::LeftOpen { lines } => BadRow { lines_later: lines, is_left_open: true, text, ..bad },
            _ => BadRow { text, ..bad },
        }
    }

    /// Why a field is bad that has text behind its closing quote.
    fn reason_of_torn(&self, is_escaped: bool) -> String {
        let Dialect { quote, escape, .. } = self.records.dialect();
        let hint = match (quote, escape) {
            (Some(quote), Some(sign)) => format!(
                " ({} escapes quotes; if they are only doubled: --escape {})",
                quoted(sign),
                typed(quote)
            ),
            (_, None) if is_escaped => hint_to_escape(),
            _ => " (a quote in a field is doubled; if a sign escapes it: --escape SIGN)".to_owned(),
        };
        format!("text follows the quote that closes the field{hint}")
    }
}

/// What some programs have around fields; it is text unless that is said.
const SINGLE_QUOTE: u8 = b'\'';

/// What is said where a column has single quotes around each field in the first rows.
fn note_of_single_quotes(head: &[u8], dialect: Dialect) -> Option<String> {
    if dialect.quote.is_none_or(|quote| quote == SINGLE_QUOTE) {
        return None;
    }
    let whole = &head[..memchr::memrchr(b'\n', head)?];
    let lines = whole.split(|&byte| byte == b'\n').skip(1).take(LINES_FIRST).collect::<Vec<_>>();
    let is_quoted = |field: &[u8]| {
        let field = field.trim_ascii();
        field.len() > 1 && field.first() == Some(&SINGLE_QUOTE) && field.last() == Some(&SINGLE_QUOTE)
    };
    let has_quoted = |line: &&[u8]| line.split(|&byte| byte == dialect.delimiter).any(is_quoted);
    let is_so = !lines.is_empty() && lines.iter().all(has_quoted);
    is_so.then(|| "' around fields is taken for text (if it is a quote: --quote \"'\")".to_owned())
}

/// A sign, in a message.
fn quoted(sign: u8) -> String {
    format!("`{}`", char::from(sign))
}

/// A sign as it is typed.
fn typed(sign: u8) -> String {
    match sign {
        b'\'' => "\"'\"".to_owned(),
        _ => format!("'{}'", char::from(sign)),
    }
}

fn hint_to_escape() -> String {
    format!(" (if {} escapes quotes: --escape {})", quoted(USUAL_ESCAPE), typed(USUAL_ESCAPE))
}

fn has_escaped(text: &[u8], quote: u8) -> bool {
    memchr::memmem::find(text, &[USUAL_ESCAPE, quote]).is_some()
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

/// Whether the first field of a header is no name, but how a line of a log begins: with a bracket,
/// or a time, or it is all of a line that has several words.
fn is_no_name(first: &str, columns: usize) -> bool {
    let is_date = first.len() > 10 && first.as_bytes()[..4].iter().all(u8::is_ascii_digit);
    first.starts_with('[') || is_date || columns == 1 && first.split_whitespace().count() > 2
}

/// What is said of a delimiter that was found out, if it is no comma, or if another one makes as
/// many fields.
fn note_of_delimiter(found: u8, rival: Option<u8>) -> Option<String> {
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
        let advice = match columns {
            [first, ..] if first.starts_with("sep=") && first.len() <= 5 => {
                format!("its first line is none of its rows: tail -n +2 {source_name} | folddb import … -")
            }
            [first, ..] if is_no_name(first, columns.len()) => {
                "if it is a log of another form: --regex PATTERN, whose named groups are the columns"
                    .to_owned()
            }
            _ => return Failure::Usage(format!("{source_name} has no column `{column}` ({hint})")),
        };
        Failure::Usage(format!("{source_name} has no column `{column}` ({hint}); {advice}"))
    })
}

/// What is between fields of a text that begins like this, and what escapes the quotes in them;
/// what is found out is said.
pub(crate) fn dialect_of(
    head: &[u8],
    (delimiter, escape): (Option<u8>, Escape),
    (quote, comment): (Option<u8>, Option<u8>),
    notes: &mut Vec<String>,
) -> Dialect {
    let with = |escape| {
        let (delimiter, rival) =
            delimiter.map_or_else(|| delimiter_in(head, quote, escape), |stated| (stated, None));
        (Dialect { delimiter, quote, escape, comment, is_multiline: false }, rival)
    };
    let (dialect, rival) = match escape {
        Escape::Is(escape) => with(escape),
        Escape::Find if quote.is_some_and(|quote| has_escaped(head, quote)) => {
            let (doubled, escaped) = (with(None), with(Some(USUAL_ESCAPE)));
            if is_escaped(head, doubled.0, escaped.0) { escaped } else { doubled }
        }
        Escape::Find => with(None),
    };
    notes.extend(note_of_single_quotes(without_mark(head), dialect));
    if delimiter.is_none() {
        notes.extend(note_of_delimiter(dialect.delimiter, rival));
    }
    if let (Escape::Find, Some(sign), Some(quote)) = (escape, dialect.escape, quote) {
        notes.push(format!(
            "quotes in fields are escaped by {} (if they are only doubled: --escape {})",
            quoted(sign),
            typed(quote)
        ));
    }
    dialect
}

/// Whether a sign escapes quotes in a text that begins like this: by its rows, some of which are
/// bad where quotes are only doubled, and fewer where it does. A path that ends with a backslash
/// makes good rows where quotes are doubled, so both readings have to be tried.
fn is_escaped(head: &[u8], doubled: Dialect, escaped: Dialect) -> bool {
    let (doubled, escaped) = (Tally::of(head, doubled), Tally::of(head, escaped));
    let is_better = doubled.bad > escaped.bad && escaped.good >= doubled.good;
    // A quote that does not close may take all rows that follow.
    let is_longer = doubled.is_left_open && escaped.good > doubled.good && escaped.bad <= doubled.bad;
    is_better || is_longer
}

/// What the rows of the beginning of a text are by a dialect.
struct Tally {
    good: u64,
    bad: u64,
    is_left_open: bool,
}

impl Tally {
    fn of(head: &[u8], dialect: Dialect) -> Tally {
        let head = without_mark(head);
        let end = head.iter().rposition(|&byte| is_line_end(byte)).map_or(head.len(), |at| at + 1);
        let records = Records::of_text(head[..end].to_vec(), true, dialect, ROW_BYTES_MAX);
        let (mut records, mut first) = (records.that_may_grow(true), None);
        let mut tally = Tally { good: 0, bad: 0, is_left_open: false };
        loop {
            match records.advance() {
                Err(_) | Ok(Found::End) => return tally,
                Ok(Found::LeftOpen { .. }) => tally.is_left_open = true, // it may close behind what is here
                Ok(Found::Record) if *first.get_or_insert(records.len()) == records.len() => tally.good += 1,
                Ok(_) => tally.bad += 1,
            }
        }
    }
}

/// What may be between fields; the first one is what nothing speaks against.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// How many of the first lines tell what is between fields.
const LINES_FIRST: usize = 10;

/// The character between fields, by the first lines of a text: the one that makes the most fields
/// of each, and of all the same number. Where none does, it is a comma, if the first line has one,
/// or else the most frequent one there. Also another one that makes as many fields, if there is
/// one.
pub(crate) fn delimiter_in(head: &[u8], quote: Option<u8>, escape: Option<u8>) -> (u8, Option<u8>) {
    let lines = delimiters_of_lines(head, quote, escape);
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
fn delimiters_of_lines(head: &[u8], quote: Option<u8>, escape: Option<u8>) -> Vec<[usize; DELIMITERS.len()]> {
    let (mut lines, mut counts) = (Vec::new(), [0; DELIMITERS.len()]);
    let (mut is_quoted, mut is_blank, mut of_first) = (false, true, None);
    let mut bytes = without_mark(head).iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if is_quoted && Some(byte) == escape {
            bytes.next_if(|&next| Some(next) == quote || Some(next) == escape);
            continue;
        }
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
