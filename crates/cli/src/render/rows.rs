//! Rows on their way out: gathered into pages of a table, or written one by one as CSV or NDJSON.
//!
//! Memory is bounded by a page, for any number of rows.

use std::fmt::Write as _;
use std::io::Write;

use folddb::{Datum, datum};

use crate::args::OutputFormat;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::render::columns::{Columns, Row, Shown};
use crate::render::table;

/// Rows of a table that are aligned together.
const PAGE_ROWS: usize = 500;

/// Takes rows and writes them.
pub(crate) struct RowWriter<'a> {
    out: Target<'a>,
    columns: &'a Columns,
    header: Vec<String>,
    kinds: Vec<Shown>,
    rows: u64,
}

enum Target<'a> {
    Table { out: &'a mut dyn Write, page: Vec<Row> },
    Csv { writer: Box<csv::Writer<&'a mut dyn Write>>, text: String },
    Ndjson { out: &'a mut dyn Write, text: String },
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
            OutputFormat::Ndjson => Target::Ndjson { out, text: String::new() },
        };
        Ok(RowWriter { out, columns, header, kinds: columns.kinds(), rows: 0 })
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
                for (field, kind) in self.columns.fields(&row).into_iter().zip(&self.kinds) {
                    text.clear();
                    put_csv_field(field, *kind, text);
                    writer.write_field(&*text)?;
                }
                writer.write_record(None::<&[u8]>)?;
            }
            Target::Ndjson { out, text } => {
                text.clear();
                put_value_file(self.columns, &self.header, &row, text);
                writeln!(out, "{text}")?;
            }
        }
        Ok(())
    }

    /// Writes the rest, and under a table the number of rows.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.out {
            Target::Table { out, page } => {
                if !page.is_empty() || self.rows == 0 {
                    write_page(out, self.columns, &self.header, &page)?;
                }
                writeln!(out, "({})", human::plural(self.rows, "row"))?;
            }
            Target::Csv { mut writer, .. } => writer.flush()?,
            Target::Ndjson { .. } => {}
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

/// Appends a value as a field of CSV: null empty, numbers in full, lists and maps as JSON, and
/// bytes that a fold shows as JSON, too. An empty text that a fold shows is not an empty field,
/// since an import reads that as nothing. Where values are JSON, so is the field.
fn put_csv_field(datum: &Datum, kind: Shown, text: &mut String) {
    match (datum, kind) {
        (_, Shown::Json) => datum::json::put(datum, text),
        (Datum::Null, _) => {}
        (Datum::Text(shown), Shown::ByFold) if shown.is_empty() => {
            datum::json::put(&datum::wrapped(b""), text)
        }
        (Datum::Bytes(_), Shown::ByFold) => datum::json::put(datum, text),
        (Datum::List(_) | Datum::Map(_), _) => datum::json::put(datum, text),
        (other, _) => {
            let put = write!(text, "{other}");
            debug_assert!(put.is_ok(), "writing to memory does not fail");
        }
    }
}

/// Appends a row as JSON: the whole key and value, or the columns that were picked.
fn put_value_file(columns: &Columns, header: &[String], row: &Row, text: &mut String) {
    if columns.are_picked() {
        let fields = columns.fields(row);
        return datum::json::put_object(header.iter().map(String::as_str).zip(fields), text);
    }
    let term = columns.has_term().then_some(("term", &row.term));
    let value = columns.has_values().then_some(("value", &row.value));
    datum::json::put_object(term.into_iter().chain([("key", &row.key)]).chain(value), text);
}
