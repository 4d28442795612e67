//! Tables for people: a header, a rule, columns side by side, numbers to the right.

use std::borrow::Borrow;
use std::io::{self, Write};

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use folddb::Datum;

use crate::human;

/// Longest text that a cell shows, in characters.
const CELL_CHARS_MAX: usize = 120;

const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Writes rows under a header.
pub(crate) fn write<D: Borrow<Datum>>(
    out: &mut dyn Write,
    header: &[String],
    rows: &[Vec<D>],
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(header.iter().map(String::as_str));
    for row in rows {
        table.add_row(row.iter().map(|datum| cell(datum.borrow())));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        let numbers = rows.iter().filter_map(|row| row.get(index)).all(|datum| is_number(datum.borrow()));
        if numbers && !rows.is_empty() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes names and values below each other.
pub(crate) fn write_pairs(out: &mut dyn Write, pairs: &[(String, Datum)]) -> io::Result<()> {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in pairs {
        writeln!(out, "{name:width$}  {}", cell(value))?;
    }
    Ok(())
}

fn is_number(datum: &Datum) -> bool {
    matches!(datum, Datum::Int(_) | Datum::Float(_) | Datum::Number(_) | Datum::Null)
}

/// A value as a cell: one line, null empty, numbers rounded to what people read.
pub(crate) fn cell(datum: &Datum) -> String {
    let text = match datum {
        Datum::Null => return String::new(),
        Datum::Float(value) => return rounded(*value),
        other => other.to_string(),
    };
    cut(text).0
}

/// A text as one line that is not too long, and whether it was cut.
pub(crate) fn cut(text: String) -> (String, bool) {
    let printable = human::one_line(text);
    match printable.char_indices().nth(CELL_CHARS_MAX) {
        Some((end, _)) => (format!("{}…", &printable[..end]), true),
        None => (printable, false),
    }
}

/// Three digits after the point, without the zeros at the end; very large and very small numbers
/// in full.
fn rounded(value: f64) -> String {
    if !(0.001..1e15).contains(&value.abs()) {
        return value.to_string();
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
#[path = "table/tests.rs"]
mod tests;
