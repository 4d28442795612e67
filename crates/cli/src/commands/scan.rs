//! `folddb scan STORE TABLE`: the rows of a table, or of a range of it. `export` and `import --show` print
//! theirs by the same means.

use std::io::Write;
use std::ops::Bound;

use folddb::{AsOf, BytesScan, BytesTable, Datum, ErrorKind, Resume};

use crate::args::{OutputFormat, RangeArgs, RowsArgs, ScanArgs};
use crate::commands::head;
use crate::exit_code::{self, ExitCode};
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::keys;
use crate::render::columns::Columns;
use crate::render::rows::RowWriter;
use crate::session::Session;

pub(crate) fn run(args: &ScanArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let usual = if session.globals.json { OutputFormat::Ndjson } else { OutputFormat::Table };
    print(&mut session.out, &table, &args.rows, args.format.unwrap_or(usual)).map(drop)
}

/// Prints rows, and says of how many values of them it has left out until when they last. A key whose fold fails is told on the error
/// output, and the others go on.
pub(crate) fn print(
    out: &mut dyn Write,
    table: &BytesTable,
    args: &RowsArgs,
    format: OutputFormat,
) -> Result<u64, Failure> {
    let columns = match args.heads {
        true => Columns::of_heads(table.rules(), args.range.hex),
        false => Columns::of(table.rules(), args.keys, args.range.hex),
    };
    let columns = match format {
        OutputFormat::Csv | OutputFormat::Tsv if !args.heads => columns.for_import(),
        _ => columns,
    };
    let columns = columns.pick(&args.columns)?;
    let mut scan = begin(table, args)?;
    if args.reverse {
        scan = scan.reverse();
    }
    if let Some(rows) = args.limit {
        scan = scan.limit(rows);
    }
    if args.keys {
        scan = scan.keys_only();
    }
    if args.heads {
        return print_heads(out, table, scan, format, &columns).map(|()| 0); // which show it
    }
    let mut rows = scan.rows()?;
    let mut writer = RowWriter::new(out, format, &columns)?;
    let (mut failed_keys, mut deadlines) = (0u64, 0u64);
    loop {
        match rows.next_row() {
            Ok(None) => break,
            Ok(Some((key, value))) => {
                writer.row(columns.key(table.rules(), key), shown(table, &columns, value))?;
                deadlines += u64::from(rows.deadline_ms().is_some());
            }
            Err(error) => failed_keys += tell_failed(error)?,
        }
    }
    writer.finish()?;
    if args.cursor {
        exit_code::tell_whole(&format!("cursor: {}", rows.cursor()));
    }
    told(failed_keys).map(|()| if columns.has_values() { deadlines } else { 0 })
}

/// The scan of the range, or what is left of one.
fn begin(table: &BytesTable, args: &RowsArgs) -> Result<BytesScan, Failure> {
    let Some(cursor) = &args.resume else { return narrow(table, &args.range) };
    let how = if args.strict { Resume::Strict } else { Resume::Relaxed };
    Ok(table.resume(&cursor.parse()?, how)?)
}

fn print_heads(
    out: &mut dyn Write,
    table: &BytesTable,
    scan: BytesScan,
    format: OutputFormat,
    columns: &Columns,
) -> Result<(), Failure> {
    let mut writer = RowWriter::new(out, format, columns)?;
    let mut failed_keys = 0;
    let shown = if format == OutputFormat::Table { head::shown } else { head::exact };
    for row in scan.heads() {
        match row {
            Ok((key, head)) => writer.row(columns.key(table.rules(), &key), shown(&head))?,
            Err(error) => failed_keys += tell_failed(error)?,
        }
    }
    writer.finish()?;
    told(failed_keys)
}

/// Tells of a key whose fold fails; other errors end the scan.
pub(crate) fn tell_failed(error: folddb::Error) -> Result<u64, Failure> {
    if error.kind() != ErrorKind::FoldFailed {
        return Err(error.into());
    }
    exit_code::tell(&format!("folddb: {error}"));
    Ok(1)
}

/// What the exit code says of keys whose folds failed.
pub(crate) fn told(failed_keys: u64) -> Result<(), Failure> {
    if failed_keys > 0 { Err(Failure::Told(ExitCode::Refused)) } else { Ok(()) }
}

fn shown(table: &BytesTable, columns: &Columns, value: &[u8]) -> Datum {
    if !columns.has_values() {
        return Datum::Null;
    }
    table.rules().show_value(value).unwrap_or_else(|_| Datum::Bytes(value.to_vec()))
}

/// The scan of a range, at the moment that is asked for.
pub(crate) fn narrow(table: &BytesTable, range: &RangeArgs) -> Result<BytesScan, Failure> {
    narrow_at(table, range, range.at)
}

/// The scan of the keys of a range at another moment; none is now.
pub(crate) fn narrow_at(
    table: &BytesTable,
    range: &RangeArgs,
    at: Option<AsOf>,
) -> Result<BytesScan, Failure> {
    human::check_over(at, table.unix_millis())?;
    let bound = |words: &Vec<String>| keys::bound(table, words, range.hex);
    let (mut low, mut high) = (Bound::Unbounded, Bound::Unbounded);
    if !range.prefix.is_empty() {
        let keys = keys::prefix(table, &range.prefix, range.hex)?;
        (low, high) = (keys.low, keys.high);
    }
    let order = &table.rules().order;
    if !range.from.is_empty() {
        low = keys::higher(order, low, bound(&range.from)?.from());
    }
    if !range.after.is_empty() {
        low = keys::higher(order, low, bound(&range.after)?.after());
    }
    if !range.before.is_empty() {
        high = keys::lower(order, high, bound(&range.before)?.before());
    }
    if !range.through.is_empty() {
        high = keys::lower(order, high, bound(&range.through)?.through());
    }
    let all = at.map_or_else(|| table.scan(), |as_of| table.scan_at(as_of));
    let all = match interrupt::flag() {
        Some(flag) => all.stopped_by(&flag),
        None => all,
    };
    let scan = match low {
        Bound::Included(key) => all.from(&key),
        Bound::Excluded(key) => all.after(&key),
        Bound::Unbounded => all,
    };
    Ok(match high {
        Bound::Included(key) => scan.through(&key),
        Bound::Excluded(key) => scan.before(&key),
        Bound::Unbounded => scan,
    })
}
