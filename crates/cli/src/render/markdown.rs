//! Rows as a table of Markdown.

use std::io::{self, Write};

use folddb::Datum;

use crate::human;
use crate::render::figures;

/// Writes the names of the columns.
pub(crate) fn write_header(out: &mut dyn Write, header: &[String]) -> io::Result<()> {
    let names = header.iter().map(|name| text(name.clone()));
    writeln!(out, "{}", line(names))?;
    writeln!(out, "{}", line(header.iter().map(|_| "---".to_owned())))
}

/// Writes a row. Texts are never cut, and figures have all their digits.
pub(crate) fn write_row(out: &mut dyn Write, fields: &[&Datum]) -> io::Result<()> {
    let cell = |field: &&Datum| match field {
        Datum::Null => String::new(),
        Datum::Float(value) => figures::in_full(*value),
        other => text(other.to_string()),
    };
    writeln!(out, "{}", line(fields.iter().map(cell)))
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

/// A text that ends no cell, and is shown as it is.
fn text(text: String) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in human::one_line(text).chars() {
        if matches!(letter, '\\' | '|' | '<' | '&' | '*' | '_' | '`' | '~' | '[') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
#[path = "markdown/tests.rs"]
mod tests;
