//! Rows on their way out: gathered into pages of a table, or written one by one as CSV or NDJSON.
//!
//! Memory is bounded by a page, whatever the number of rows.

use std::fmt::Write as _;
use std::io::Write;

use folddb::{Datum, datum};
use serde_json::{Map, Value};

use crate::args::OutputFormat;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::render::columns::{Columns, Row};
use crate::render::{json, table};

/// Rows of a table that are aligned together.
const PAGE_ROWS: usize = 500;

/// Takes rows and writes them.
pub(crate) struct RowWriter<'a> {
    out: Target<'a>,
    columns: &'a Columns,
    header: Vec<String>,
    by_codec: Vec<bool>,
    rows: u64,
}

enum Target<'a> {
    Table { out: &'a mut dyn Write, page: Vec<Row> },
    Csv { writer: Box<csv::Writer<&'a mut dyn Write>>, text: String },
    Ndjson(&'a mut dyn Write),
}

impl<'a> RowWriter<'a> {
    /// A writer of rows with these columns.
    pub(crate) fn new(
        out: &'a mut dyn Write,
        format: OutputFormat,
        columns: &'a Columns,
    ) -> Result<RowWriter<'a>, Failure> {
        let header = columns.names();
        let out = match format {
            OutputFormat::Table => Target::Table { out, page: Vec::new() },
            OutputFormat::Csv | OutputFormat::Tsv => {
                let delimiter = if format == OutputFormat::Tsv { b'\t' } else { b',' };
                let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
                writer.write_record(&header)?;
                Target::Csv { writer: Box::new(writer), text: String::new() }
            }
            OutputFormat::Ndjson => Target::Ndjson(out),
        };
        Ok(RowWriter { out, columns, header, by_codec: columns.by_codec(), rows: 0 })
    }

    /// Writes a row.
    pub(crate) fn row(&mut self, key: Datum, value: Datum) -> Result<(), Failure> {
        self.write(Row { term: Datum::Null, key, value })
    }

    /// Writes a row that an index found.
    pub(crate) fn found(&mut self, term: Datum, key: Datum, value: Datum) -> Result<(), Failure> {
        self.write(Row { term, key, value })
    }

    fn write(&mut self, row: Row) -> Result<(), Failure> {
        interrupt::check()?;
        self.rows += 1;
        match &mut self.out {
            Target::Table { out, page } => {
                let value = self.columns.for_people(row.value);
                page.push(Row { value, ..row });
                if page.len() == PAGE_ROWS {
                    write_page(*out, self.columns, &self.header, page)?;
                    page.clear();
                }
            }
            Target::Csv { writer, text } => {
                if let Some(column) = self.columns.unclear_null(&row.key) {
                    return Err(Failure::Refused(format!(
                        "the key {} has no `{column}`, which CSV cannot tell from an empty one: export to NDJSON",
                        row.key
                    )));
                }
                for (field, by_codec) in self.columns.fields(&row).into_iter().zip(&self.by_codec) {
                    text.clear();
                    put_csv_field(field, *by_codec, text);
                    writer.write_field(&*text)?;
                }
                writer.write_record(None::<&[u8]>)?;
            }
            Target::Ndjson(out) => writeln!(out, "{}", object(self.columns, &self.header, &row))?,
        }
        Ok(())
    }

    /// Writes what is left, and under a table how many rows there were.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.out {
            Target::Table { out, page } => {
                if !page.is_empty() || self.rows == 0 {
                    write_page(out, self.columns, &self.header, &page)?;
                }
                writeln!(out, "({})", human::plural(self.rows, "row"))?;
            }
            Target::Csv { mut writer, .. } => writer.flush()?,
            Target::Ndjson(_) => {}
        }
        Ok(())
    }
}

fn write_page(
    out: &mut dyn Write,
    columns: &Columns,
    header: &[String],
    page: &[Row],
) -> std::io::Result<()> {
    let rows: Vec<Vec<&Datum>> = page.iter().map(|row| columns.fields(row)).collect();
    table::write(out, header, &rows)
}

/// Appends a value as a field of CSV: null empty, numbers in full, lists and maps as JSON, and as
/// such bytes that a fold shows. An empty text that a fold shows is no empty field, which an import
/// takes for nothing.
fn put_csv_field(datum: &Datum, by_codec: bool, text: &mut String) {
    let put = match datum {
        Datum::Null => Ok(()),
        Datum::Text(shown) if !by_codec && shown.is_empty() => {
            write!(text, "{}", json::from_datum(&datum::wrapped(b"")))
        }
        Datum::Bytes(_) if !by_codec => write!(text, "{}", json::from_datum(datum)),
        Datum::List(_) | Datum::Map(_) => write!(text, "{}", json::from_datum(datum)),
        other => write!(text, "{other}"),
    };
    debug_assert!(put.is_ok(), "writing to memory does not fail");
}

/// A row as JSON: key and value with all that is in them, or the columns that were picked.
fn object(columns: &Columns, header: &[String], row: &Row) -> Value {
    let mut object = Map::new();
    if columns.are_picked() {
        let fields = columns.fields(row);
        object.extend(header.iter().cloned().zip(fields.into_iter().map(json::from_datum)));
    } else {
        if columns.has_term() {
            object.insert("term".to_owned(), json::from_datum(&row.term));
        }
        object.insert("key".to_owned(), json::from_datum(&row.key));
        if columns.has_values() {
            object.insert("value".to_owned(), json::from_datum(&row.value));
        }
    }
    Value::Object(object)
}
