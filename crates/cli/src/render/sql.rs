//! Rows as statements of SQL, as SQLite, DuckDB and PostgreSQL read them, bytes as SQLite does.
//! Numbers keep all their digits here. A backslash is itself, as the standard says.

use std::fmt::Write as _;
use std::io::{self, Write};

use folddb::{Datum, datum};

use crate::render::figures;

/// Writes the insert of a row.
pub(crate) fn write_insert(
    out: &mut dyn Write,
    table: &str,
    header: &[String],
    fields: &[&Datum],
) -> io::Result<()> {
    let names: Vec<String> = header.iter().map(|name| quoted(name, '"')).collect();
    let values: Vec<String> = fields.iter().map(|field| literal(field)).collect();
    writeln!(out, "insert into {} ({}) values ({});", quoted(table, '"'), names.join(", "), values.join(", "))
}

fn literal(datum: &Datum) -> String {
    match datum {
        Datum::Null => "null".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Float(value) if value.is_finite() => figures::in_full(*value),
        Datum::Float(value) if value.is_nan() => "'NaN'".to_owned(),
        Datum::Float(value) => if *value > 0.0 { "'Infinity'" } else { "'-Infinity'" }.to_owned(),
        Datum::Int(_) | Datum::Number(_) => datum.to_string(),
        Datum::Text(text) => quoted(text, '\''),
        Datum::Bytes(bytes) => {
            bytes.iter().fold(String::from("X'"), |mut hex, byte| {
                let put = write!(hex, "{byte:02x}");
                debug_assert!(put.is_ok(), "writing to memory does not fail");
                hex
            }) + "'"
        }
        other => quoted(&datum::json::text_of(other), '\''),
    }
}

/// A text between quotes, which are doubled in it.
fn quoted(text: &str, quote: char) -> String {
    let twice: String = [quote, quote].iter().collect();
    format!("{quote}{}{quote}", text.replace(quote, &twice))
}

#[cfg(test)]
#[path = "sql/tests.rs"]
mod tests;
