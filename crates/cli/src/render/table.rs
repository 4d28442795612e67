//! Tables and lists of figures in reports.

use std::borrow::Borrow;
use std::io::{self, Write};

use folddb::Datum;

use crate::render::look::Look;
use crate::render::sheet::{Sheet, cell};

/// Writes rows under a header.
pub(crate) fn write<D: Borrow<Datum>>(
    out: &mut dyn Write,
    header: &[String],
    rows: &[Vec<D>],
) -> io::Result<()> {
    Sheet::new(header.to_vec(), Look::of_terminal()).page(out, rows)
}

/// Writes names and values below each other.
pub(crate) fn write_pairs(out: &mut dyn Write, pairs: &[(String, Datum)], is_full: bool) -> io::Result<()> {
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in pairs {
        writeln!(out, "{name:width$}  {}", cell(value, is_full))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "table/tests.rs"]
mod tests;
