//! Prints the rows of a scan: for `scan`, `export` and `import --show`.

use std::io::Write;

use folddb::{BytesScan, BytesTable, Datum, ErrorKind, Resume};

use crate::args::{OutputFormat, RowsArgs};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::keys;
use crate::messages;
use crate::ranges;
use crate::render::columns::{Columns, Row};
use crate::render::head;
use crate::render::look::Form;
use crate::render::quantiles::Quantiles;
use crate::render::rows::RowWriter;
use crate::render::sorted::Sorted;
use crate::session::Begun;

/// Prints rows, as the open transaction sees them if there is one. Returns for how many values the
/// deadline was left out. If the fold of a key fails, that is reported on the error output, and the
/// others continue.
pub(crate) fn print(
    out: &mut dyn Write,
    table: &BytesTable,
    args: &RowsArgs,
    form: impl Into<Form>,
    begun: Option<&Begun>,
) -> Result<u64, Failure> {
    let form = form.into();
    let columns = match args.heads {
        true => Columns::of_heads(table.rules(), args.range.hex),
        false => Columns::of(table.rules(), args.keys, args.range.hex),
    };
    let columns = match form.format {
        OutputFormat::Csv | OutputFormat::Tsv if !args.heads => columns.for_import(),
        _ => columns,
    };
    let quantiles = Quantiles::of(table.rules(), &args.quantiles.quantile)?;
    let columns = columns.with_quantiles(&quantiles).pick(&args.columns)?;
    let mut scan = begin(table, args, begun)?;
    if args.reverse {
        scan = scan.reverse();
    }
    let by = |name: &String| Sorted::by(&columns, name, args.desc, args.limit);
    let mut sorted = args.sort.as_ref().map(by).transpose()?;
    if let (Some(rows), None) = (args.limit, &sorted) {
        scan = scan.limit(rows);
    }
    if args.keys {
        scan = scan.keys_only();
    }
    if args.heads {
        return print_heads(out, table, scan, form, &columns).map(|()| 0); // the heads show it
    }
    let mut rows = scan.rows()?;
    let mut writer = RowWriter::new(out, form, &columns)?.of_table(table.name());
    let (mut failed_keys, mut deadlines) = (0u64, 0u64);
    loop {
        match rows.next_row() {
            Ok(None) => break,
            Ok(Some((key, value))) => {
                let (key, value) =
                    (columns.key(table.rules(), key), shown(table, &columns, &quantiles, value));
                match &mut sorted {
                    Some(sorted) => sorted.push(&columns, Row { term: Datum::Null, key, value }),
                    None => writer.row(key, value)?,
                }
                deadlines += u64::from(rows.deadline().is_some());
            }
            Err(error) => failed_keys += report_failed(error)?,
        }
    }
    for row in sorted.map(|sorted| sorted.rows(&columns)).unwrap_or_default() {
        writer.row(row.key, row.value)?;
    }
    writer.finish_without(failed_keys)?;
    if args.cursor {
        messages::print_whole(&format!("cursor: {}", rows.cursor()));
    }
    check_failed(failed_keys).map(|()| if columns.has_values() { deadlines } else { 0 })
}

/// The scan of the range, or the rest of one.
fn begin(table: &BytesTable, args: &RowsArgs, begun: Option<&Begun>) -> Result<BytesScan, Failure> {
    let Some(cursor) = &args.resume else { return ranges::narrow_inside(table, &args.range, begun) };
    if begun.is_some() {
        let why = "a cursor does not continue in a transaction: commit or abort it first";
        return Err(Failure::Usage(why.to_owned()));
    }
    let how = if args.strict { Resume::Strict } else { Resume::Relaxed };
    Ok(table.resume(&cursor.parse().map_err(folddb::Error::from)?, how)?)
}

fn print_heads(
    out: &mut dyn Write,
    table: &BytesTable,
    scan: BytesScan,
    form: Form,
    columns: &Columns,
) -> Result<(), Failure> {
    let shown = if form.format == OutputFormat::Table { head::shown } else { head::exact };
    let mut writer = RowWriter::new(out, form, columns)?.of_table(table.name());
    let mut failed_keys = 0;
    for row in scan.heads() {
        match row {
            Ok((key, head)) => writer.row(columns.key(table.rules(), &key), shown(&head))?,
            Err(error) => failed_keys += report_failed(error)?,
        }
    }
    writer.finish_without(failed_keys)?;
    check_failed(failed_keys)
}

/// Reports a key if its fold fails; other errors end the scan.
pub(crate) fn report_failed(error: folddb::Error) -> Result<u64, Failure> {
    if error.kind() != ErrorKind::FoldFailed {
        return Err(error.into());
    }
    messages::print(&format!("folddb: {error}"));
    Ok(1)
}

/// What the exit code says about keys with folds that failed.
pub(crate) fn check_failed(failed_keys: u64) -> Result<(), Failure> {
    if failed_keys > 0 { Err(Failure::Reported(ExitCode::Refused)) } else { Ok(()) }
}

fn shown(table: &BytesTable, columns: &Columns, quantiles: &Quantiles, value: &[u8]) -> Datum {
    if !columns.has_values() {
        return Datum::Null;
    }
    let mut shown = keys::shown_value(table.rules(), value);
    quantiles.put(value, &mut shown);
    shown
}
