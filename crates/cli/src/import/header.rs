//! Whether the first line of a file names its columns, or is a row like the second one.

use crate::import::delimited::{Found, Records};
use crate::import::dialect::Dialect;
use crate::import::row::{ROW_BYTES_MAX, without_mark};

/// What a field looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Time,
    Text,
}

impl Kind {
    fn of(field: &str) -> Kind {
        let field = field.trim();
        let is_date = field.len() >= 10
            && field.bytes().take(10).enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        match field.parse::<f64>() {
            Ok(number) if number.is_finite() => Kind::Number,
            _ if is_date => Kind::Time,
            _ => Kind::Text,
        }
    }
}

/// Whether the first of two lines is a row: each field is like the one below it, and one at least
/// is a number or a time, which names seldom are. A line with a name that is asked for has names.
pub(crate) fn is_row(first: &[String], second: &[String], is_asked_for: impl Fn(&str) -> bool) -> bool {
    let pairs = || {
        let known = first.iter().zip(second).filter(|(one, two)| !one.is_empty() && !two.is_empty());
        known.map(|(one, two)| (Kind::of(one), Kind::of(two)))
    };
    first.len() == second.len()
        && pairs().all(|(one, two)| one == two)
        && pairs().any(|(kind, _)| kind != Kind::Text)
        && !first.iter().any(|field| is_asked_for(field.trim()))
}

/// Whether a line may be a row, as far as it tells that alone: it has a number or a time.
pub(crate) fn may_be_row(line: &str) -> bool {
    let mut fields = line.split([',', ';', '\t', '|', ' ']).map(|field| field.trim_matches('"'));
    fields.any(|field| Kind::of(field) != Kind::Text)
}

/// The fields of the first records of a text, good or bad.
pub(crate) fn first_records(text: &[u8], dialect: Dialect) -> impl Iterator<Item = Vec<String>> {
    let mut records = Records::of_text(text.to_vec(), true, dialect, ROW_BYTES_MAX);
    std::iter::from_fn(move || match records.advance() {
        Err(_) | Ok(Found::End) => None,
        Ok(_) => Some(records.fields().map(|field| String::from_utf8_lossy(field).into_owned()).collect()),
    })
}

/// The fields of the first two lines of delimited text that have any.
pub(crate) fn first_two(head: &[u8], dialect: Dialect) -> Option<(Vec<String>, Vec<String>)> {
    let head = without_mark(head);
    let whole = &head[..head.iter().rposition(|&byte| byte == b'\n')?];
    let mut records = first_records(whole, dialect);
    records.next().zip(records.next())
}

#[cfg(test)]
#[path = "header/tests.rs"]
mod tests;
