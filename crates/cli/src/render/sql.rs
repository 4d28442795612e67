//! Rows as statements of SQL, as SQLite, DuckDB and PostgreSQL read them, bytes as SQLite does.
//! Numbers keep all their digits here. A backslash is itself, as the standard says. SQLite ends a
//! statement at a zero byte: a text that has one is written as its bytes.

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
        Datum::Text(text) if text.contains('\0') => format!("cast({} as text)", in_hex(text.as_bytes())),
        Datum::Text(text) => quoted(text, '\''),
        Datum::Bytes(bytes) => in_hex(bytes),
        other => quoted(&datum::json::text_of(other), '\''),
    }
}

fn in_hex(bytes: &[u8]) -> String {
    format!("X'{}'", &datum::hex(bytes)["0x".len()..])
}

/// A text between quotes, which are doubled in it.
fn quoted(text: &str, quote: char) -> String {
    let twice: String = [quote, quote].iter().collect();
    format!("{quote}{}{quote}", text.replace(quote, &twice))
}

#[cfg(test)]
#[path = "sql/tests.rs"]
mod tests;
