//! `folddb aggregate STORE TABLE`: how many rows a range has, what their values fold to, and how
//! much was read.

use folddb::{AggregateCost, Datum};

use crate::args::CountArgs;
use crate::failure::Failure;
use crate::human;
use crate::ranges;
use crate::render::json::{self, Json, object};
use crate::render::value;
use crate::session::Session;

pub(crate) fn run(args: &CountArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let sum = ranges::narrow_inside(&table, &args.range, session.transaction.as_ref())?.aggregate()?;
    let show = |value: Vec<u8>| table.rules().show_value(&value).unwrap_or(Datum::Bytes(value));
    let found = sum.value.map(show);
    let shown = found.as_ref().map(json::from_datum);
    let report = object! { "rows": sum.rows, "value": shown, "cost": cost_json(sum.cost) };
    session.report(&report, |out| {
        if let Some(found) = &found {
            value::write(out, table.rules(), found)?;
        }
        writeln!(out, "({}; {})", human::plural(sum.rows, "row"), cost_words(sum.cost))
    })
}

fn cost_json(cost: AggregateCost) -> Json {
    object! {
        "part_summaries": cost.part_summaries,
        "block_summaries": cost.block_summaries,
        "ranges_scanned": cost.ranges_scanned,
        "rows_scanned": cost.rows_scanned,
    }
}

/// How much was read, and how much summaries saved.
fn cost_words(cost: AggregateCost) -> String {
    let read = match cost.rows_scanned {
        0 => "none was read".to_owned(),
        rows => format!("{} read", human::plural(rows, "row")),
    };
    let unread = [(cost.part_summaries, "part"), (cost.block_summaries, "block")];
    let words: Vec<String> = unread
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| human::plural(*count, what))
        .collect();
    if words.is_empty() {
        read
    } else {
        format!("{read}, the rest from the summaries of {}", words.join(" and "))
    }
}
