//! `folddb get STORE TABLE KEY...`: the value of a key.

use std::io::Write;
use std::path::Path;

use folddb::{AsOf, BytesTable, Datum};
use indicatif::ProgressBar;

use crate::args::GetArgs;
use crate::failure::Failure;
use crate::render::columns::{Columns, Row};
use crate::render::json::{self, object};
use crate::render::quantiles::Quantiles;
use crate::render::{spread, table, value};
use crate::session::Session;
use crate::{blobs, human, keys, progress};

pub(crate) fn run(args: &GetArgs, session: &mut Session) -> Result<(), Failure> {
    let of = &args.of;
    let store = session.read(&of.store)?;
    let table = store.known_table(&of.table)?;
    let rules = table.rules();
    let key = keys::key(&table, &of.key, of.hex)?;
    let none = || Failure::Absent(format!("table `{}` has no value for {}", table.name(), of.key.join(" ")));
    human::check_over(args.at, store.now())?;
    let to = args.to.as_deref().or(args.raw.then_some(Path::new("-")));
    if session.transaction.is_some() && (to.is_some() || args.at.is_some()) {
        let why = "a transaction only prints values, as of its snapshot: leave out --to, --raw and --at";
        return Err(Failure::Usage(why.to_owned()));
    }
    if let Some(file) = to {
        return write_to((&table, args.at), &key, file, session)?.then_some(()).ok_or_else(none);
    }
    let found = match (args.at, &mut session.transaction) {
        (None, None) => table.get(&key)?,
        (None, Some(begun)) => begun.transaction.get(&table, &key)?,
        (Some(as_of), _) => table.get_at(&key, as_of)?,
    };
    let Some(value) = found else { return Err(none()) };
    if args.plot {
        return spread::write(&mut session.out, rules, &value);
    }
    let quantiles = Quantiles::of(rules, &args.quantiles.quantile)?;
    let mut shown = keys::shown_value(rules, &value);
    quantiles.put(&value, &mut shown);
    let key = keys::shown(rules, &key);
    if !args.columns.is_empty() {
        return print_columns(
            args,
            &table,
            &quantiles,
            Row { term: Datum::Null, key, value: shown },
            session,
        );
    }
    let report = object! { "key": json::from_datum(&key), "value": json::from_datum(&shown) };
    session.report(&report, |out| value::write(out, rules, &shown, Some(&quantiles), args.full))
}

/// Prints the columns that are asked for.
fn print_columns(
    args: &GetArgs,
    of: &BytesTable,
    quantiles: &Quantiles,
    row: Row,
    session: &mut Session,
) -> Result<(), Failure> {
    let columns = Columns::of(of.rules(), false, false).with_quantiles(quantiles).pick(&args.columns)?;
    let pairs = |row: &Row| -> Vec<(String, Datum)> {
        columns.names().into_iter().zip(columns.fields(row).into_iter().cloned()).collect()
    };
    let report = json::from_datum(&Datum::Map(pairs(&row)));
    let for_people = Row { value: columns.for_people(row.value), ..row };
    session.report(&report, |out| table::write_pairs(out, &pairs(&for_people), args.full))
}

/// Writes the value of a key to a new file, or to the output; false if there is none. An incomplete
/// file is removed.
fn write_to(
    of: (&BytesTable, Option<AsOf>),
    key: &[u8],
    file: &Path,
    session: &mut Session,
) -> Result<bool, Failure> {
    if file == Path::new("-") {
        let bar = ProgressBar::hidden(); // the output may be the terminal
        return Ok(get(of, key, || Ok(&mut session.out), "the output", &bar)?.is_some());
    }
    let (name, bar) = (file.display().to_string(), progress::bytes_bar(Some(0), "reading"));
    let mut is_made = false;
    let make = || blobs::create(file).inspect(|_| is_made = true);
    let got = get(of, key, make, &name, &bar);
    bar.finish_and_clear();
    if got.is_err() && is_made {
        let _ = std::fs::remove_file(file);
    }
    Ok(got?.is_some())
}

fn get<W: Write>(
    (table, at): (&BytesTable, Option<AsOf>),
    key: &[u8],
    to: impl FnOnce() -> Result<W, Failure>,
    name: &str,
    bar: &ProgressBar,
) -> Result<Option<u64>, Failure> {
    match at {
        None => blobs::get(table, key, to, name, bar),
        Some(as_of) => blobs::get_at((table, as_of), key, to, name, bar),
    }
}
