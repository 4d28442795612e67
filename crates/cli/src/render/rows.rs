//! Rows on their way out: gathered into pages of a table, or written one by one as CSV, NDJSON,
//! Markdown or SQL.
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
use crate::render::figures;
use crate::render::look::Form;
use crate::render::markdown;
use crate::render::picture::Drawing;
use crate::render::sheet::Sheet;
use crate::render::sql;

/// Rows of a table that are aligned together.
const PAGE_ROWS: usize = 500;

/// Takes rows and writes them.
pub(crate) struct RowWriter<'a> {
    out: Target<'a>,
    columns: &'a Columns,
    header: Vec<String>,
    kinds: Vec<Shown>,
    /// What the rows are of.
    table: String,
    rows: u64,
}

enum Target<'a> {
    Table { out: &'a mut dyn Write, page: Vec<Row>, sheet: Sheet },
    Csv { writer: Box<csv::Writer<&'a mut dyn Write>>, text: String },
    Ndjson { out: &'a mut dyn Write, text: String },
    Markdown { out: &'a mut dyn Write },
    Sql { out: &'a mut dyn Write },
    Picture { out: &'a mut dyn Write, drawing: Drawing },
}

impl<'a> RowWriter<'a> {
    /// A writer of rows with these columns.
    pub(crate) fn new(
        out: &'a mut dyn Write,
        form: impl Into<Form>,
        columns: &'a Columns,
    ) -> Result<RowWriter<'a>, Failure> {
        let (header, Form { format, look, picture }) = (columns.names(), form.into());
        let drawing = picture.map(|picture| Drawing::of(&picture, columns, look.width)).transpose()?;
        let out = match (drawing, format) {
            (Some(drawing), _) => Target::Picture { out, drawing },
            (None, OutputFormat::Table) => {
                Target::Table { out, page: Vec::new(), sheet: Sheet::new(header.clone(), look) }
            }
            (None, OutputFormat::Csv | OutputFormat::Tsv) => {
                let delimiter = if format == OutputFormat::Tsv { b'\t' } else { b',' };
                let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
                writer.write_record(&header)?;
                Target::Csv { writer: Box::new(writer), text: String::new() }
            }
            (None, OutputFormat::Ndjson) => Target::Ndjson { out, text: String::new() },
            (None, OutputFormat::Markdown) => {
                markdown::write_header(out, &header)?;
                Target::Markdown { out }
            }
            (None, OutputFormat::Sql) => {
                writeln!(out, "begin;")?;
                Target::Sql { out }
            }
        };
        let table = String::from("rows");
        Ok(RowWriter { out, columns, header, kinds: columns.kinds(), table, rows: 0 })
    }

    /// The same for rows of a table of this name.
    pub(crate) fn of_table(self, name: &str) -> RowWriter<'a> {
        RowWriter { table: name.to_owned(), ..self }
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
            Target::Table { out, page, sheet } => {
                let value = self.columns.for_people(row.value);
                page.push(Row { value, ..row });
                if page.len() == PAGE_ROWS {
                    write_page(*out, self.columns, sheet, page)?;
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
                let value = self.columns.for_files(row.value);
                put_value_file(self.columns, &self.header, &Row { value, ..row }, text);
                writeln!(out, "{text}")?;
            }
            Target::Markdown { out } => {
                let row = Row { value: self.columns.for_people(row.value), ..row };
                markdown::write_row(*out, &self.columns.fields(&row))?;
            }
            Target::Picture { out, drawing } => drawing.row(*out, self.columns, &row)?,
            Target::Sql { out } => {
                sql::write_insert(*out, &self.table, &self.header, &self.columns.fields(&row))?
            }
        }
        Ok(())
    }

    /// Writes the rest, and under a table the number of rows.
    /// As `finish`, where so many rows are missing since their folds failed: statements of SQL are
    /// not committed then.
    pub(crate) fn finish_without(self, failed_keys: u64) -> Result<(), Failure> {
        match &self.out {
            Target::Sql { .. } if failed_keys > 0 => Ok(()),
            _ => self.finish(),
        }
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.out {
            Target::Table { out, page, mut sheet } => {
                if !page.is_empty() || self.rows == 0 {
                    write_page(out, self.columns, &mut sheet, &page)?;
                }
                writeln!(out, "({})", human::plural(self.rows, "row"))?;
            }
            Target::Csv { mut writer, .. } => writer.flush()?,
            Target::Picture { out, drawing } => drawing.finish(out)?,
            Target::Sql { out } => writeln!(out, "commit;")?,
            Target::Ndjson { .. } | Target::Markdown { .. } => {}
        }
        Ok(())
    }
}

fn write_page(
    out: &mut dyn Write,
    columns: &Columns,
    sheet: &mut Sheet,
    page: &[Row],
) -> std::io::Result<()> {
    let rows: Vec<Vec<&Datum>> = page.iter().map(|row| columns.fields(row)).collect();
    sheet.page(out, &rows)
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
        (Datum::Float(value), _) => text.push_str(&figures::in_full(*value)),
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
