//! `folddb find STORE TABLE INDEX [TERM]`: the rows that an index finds by a term, or by a range of
//! terms, in their order. Unless it is a query for one term, each row has its term.

use std::num::NonZero;
use std::ops::{Bound, ControlFlow};

use folddb::{BytesFind, Datum};

use crate::args::{FindArgs, OutputFormat};
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::columns::{Columns, Row};
use crate::render::head;
use crate::render::look::Form;
use crate::render::print_rows::{check_failed, report_failed};
use crate::render::quantiles::Quantiles;
use crate::render::rows::RowWriter;
use crate::render::sorted::Sorted;
use crate::session::Session;

pub(crate) fn run(args: &FindArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    human::check_over(args.at, store.now())?;
    let find = match (args.at, &session.transaction) {
        (None, None) => table.find(&args.index)?,
        (None, Some(begun)) => begun.transaction.table(&table).find(&args.index)?,
        (Some(as_of), _) => store.snapshot_at(as_of)?.table(&table).find(&args.index)?,
    };
    let find = narrow(find, args);
    if args.count {
        let count = if args.limit.is_some() { find.count()? } else { count_spread(find)? };
        return session.report(&serde_json::json!({ "count": count }), |out| writeln!(out, "{count}"));
    }
    let quantiles = Quantiles::of(table.rules(), &args.quantiles.quantile)?;
    let columns = match args.heads {
        true => Columns::of_heads(table.rules(), args.hex),
        false => Columns::of(table.rules(), args.keys, args.hex).with_quantiles(&quantiles),
    };
    let columns = columns.behind_terms(args.term.is_none()).pick(&args.columns)?;
    let by = |name: &String| Sorted::by(&columns, name, args.desc, args.limit);
    let mut sorted = args.sort.as_ref().map(by).transpose()?;
    let form = Form::of(args.format, session.globals.json, &args.look);
    let shown_head = if form.format == OutputFormat::Table { head::shown } else { head::exact };
    let mut writer = RowWriter::new(&mut session.out, form, &columns)?.of_table(table.name());
    let mut failed_keys = 0;
    let shown = |value: &[u8]| {
        let mut shown = keys::shown_value(table.rules(), value);
        quantiles.put(value, &mut shown);
        shown
    };
    let hits = match args.heads {
        true => find.hits_with_heads(),
        false => find.hits(!args.keys),
    };
    for hit in hits {
        match hit {
            Ok(hit) if args.heads && hit.head.is_none() => {}
            Ok(hit) => {
                let value = match &hit.head {
                    Some(head) => shown_head(head),
                    None if args.keys => Datum::Null,
                    None => shown(&hit.value),
                };
                let (term, key) = (hit.shown_term(), columns.key(table.rules(), &hit.key));
                match &mut sorted {
                    Some(sorted) => sorted.push(&columns, Row { term, key, value }),
                    None => writer.found(term, key, value)?,
                }
            }
            Err(error) => failed_keys += report_failed(error)?,
        }
    }
    for Row { term, key, value } in sorted.map(|sorted| sorted.rows(&columns)).unwrap_or_default() {
        writer.found(term, key, value)?;
    }
    writer.finish_without(failed_keys)?;
    check_failed(failed_keys)
}

/// Counts on all processors.
fn count_spread(find: BytesFind) -> folddb::Result<u64> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let step = |count: &mut u64, _| {
        *count += 1;
        ControlFlow::Continue(())
    };
    find.fold_hits(threads, false, || 0, step, |a, b| a + b)
}

/// The query of the index.
fn narrow(find: BytesFind, args: &FindArgs) -> BytesFind {
    let bound = |included: &Option<String>, excluded: &Option<String>| match (included, excluded) {
        (Some(term), _) => Bound::Included(term.clone()),
        (None, Some(term)) => Bound::Excluded(term.clone()),
        (None, None) => Bound::Unbounded,
    };
    let find = match (&args.term, &args.prefix) {
        (Some(term), _) => find.typed((Bound::Included(term.clone()), Bound::Included(term.clone()))),
        (None, Some(prefix)) => find.typed_prefix(prefix),
        (None, None) => find.typed((bound(&args.from, &args.after), bound(&args.through, &args.before))),
    };
    let find = if args.reverse { find.reverse() } else { find };
    // Of rows in another order the first ones are known at the end.
    let limit = args.limit.filter(|_| args.sort.is_none());
    find.limit(limit.unwrap_or(usize::MAX))
}
