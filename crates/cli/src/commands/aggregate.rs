//! `folddb aggregate STORE TABLE`: how many rows a range has, what their values fold to, and how
//! much was read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use folddb::{AggregateCost, BytesTable, Datum, Fold, Outcome, datum};

use crate::args::AggregateArgs;
use crate::column_names;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::keys;
use crate::ranges;
use crate::render::columns::{Columns, Row};
use crate::render::json::{self, Json, object};
use crate::render::look::Form;
use crate::render::quantiles::Quantiles;
use crate::render::rows::RowWriter;
use crate::render::sorted::{self, Sorted};
use crate::render::{spread, value};
use crate::session::Session;

pub(crate) fn run(args: &AggregateArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    if !args.by.is_empty() {
        check_plot(args, &table)?;
        return by(args, &table, session);
    }
    let sum = ranges::narrow_inside(&table, &args.range, session.transaction.as_ref())?.aggregate()?;
    if args.plot.as_ref().is_some_and(|column| !column.is_empty()) {
        let why = "without --by there is one row: --plot draws its numbers, and takes no column";
        return Err(Failure::Usage(why.to_owned()));
    }
    if let (Some(_), Some(value)) = (&args.plot, &sum.value) {
        return spread::write(&mut session.out, table.rules(), value);
    }
    let quantiles = Quantiles::of(table.rules(), &args.quantiles.quantile)?;
    let found = sum.value.map(|value| shown(&table, &quantiles, &value));
    let shown = found.as_ref().map(json::from_datum);
    let report = object! { "rows": sum.rows, "value": shown, "cost": cost_json(sum.cost) };
    session.report(&report, |out| {
        if let Some(found) = &found {
            value::write(out, table.rules(), found, Some(&quantiles), args.look.full)?;
        }
        writeln!(out, "({}; {})", human::plural(sum.rows, "row"), cost_words(sum.cost))
    })
}

/// A bar for each row needs a column.
fn check_plot(args: &AggregateArgs, table: &BytesTable) -> Result<(), Failure> {
    if args.plot.as_deref() != Some("") {
        return Ok(());
    }
    let names = Columns::of(table.rules(), false, args.range.hex).names();
    let by = column_names::split(&args.by);
    let values: Vec<String> =
        names.iter().filter(|name| !by.contains(name)).map(|name| format!("`{name}`")).collect();
    Err(Failure::Usage(format!(
        "with --by there is a bar for each row: name the column that says how long it is, --plot COLUMN (there are {})",
        values.join(", ")
    )))
}

/// What the keys with the same elements fold to.
struct Group {
    elements: Datum,
    value: Vec<u8>,
}

/// Folds over the elements of the key that are not named.
fn by(args: &AggregateArgs, table: &BytesTable, session: &mut Session) -> Result<(), Failure> {
    let quantiles = Quantiles::of(table.rules(), &args.quantiles.quantile)?;
    let columns = Columns::of(table.rules(), false, args.range.hex).with_quantiles(&quantiles);
    let elements = elements(&columns, &column_names::split(&args.by))?;
    let spec = table.rules().as_table_rules().fold.spec().to_owned();
    let fold = table.rules().fold().filter(|_| !matches!(spec.as_str(), "replace" | "first")).cloned();
    let Some(fold) = fold else {
        let message =
            format!("the values of table `{}` replace one another: there is nothing to fold", table.name());
        return Err(Failure::Usage(message));
    };
    let mut groups: HashMap<String, Group> = HashMap::new();
    let mut folded = Vec::new();
    let mut rows = ranges::narrow_inside(table, &args.range, session.transaction.as_ref())?.rows()?;
    while let Some((key, value)) = rows.next_row()? {
        interrupt::check()?;
        let elements = only(&columns, columns.key(table.rules(), key), &elements);
        match groups.entry(datum::json::text_of(&elements)) {
            Entry::Vacant(free) => drop(free.insert(Group { elements, value: value.to_vec() })),
            Entry::Occupied(mut group) => push(&*fold, group.get_mut(), value, &mut folded)?,
        }
    }
    print(args, table, columns.by(&elements).pick(&args.columns)?, groups.into_values().collect(), session)
}

/// The numbers of these elements of the key, each once.
fn elements(columns: &Columns, names: &[String]) -> Result<Vec<usize>, Failure> {
    let mut elements = Vec::new();
    for name in names {
        let element = element(columns, name)?;
        if !elements.contains(&element) {
            elements.push(element);
        }
    }
    Ok(elements)
}

/// The number of an element of the key.
fn element(columns: &Columns, name: &str) -> Result<usize, Failure> {
    columns.keys().iter().position(|known| known == name).ok_or_else(|| {
        let known: Vec<&str> = columns.keys().iter().map(String::as_str).collect();
        Failure::Usage(format!("the key has no element `{name}` ({})", human::suggestion(name, &known)))
    })
}

/// A key of which the other elements are null. One that is a single column is that element, also
/// where it is a list.
fn only(columns: &Columns, key: Datum, elements: &[usize]) -> Datum {
    let keep = |(index, item)| if elements.contains(&index) { item } else { Datum::Null };
    match columns.elements_of(key) {
        Ok(items) => Datum::List(items.into_iter().enumerate().map(keep).collect()),
        Err(whole) => whole,
    }
}

fn push(fold: &dyn Fold, group: &mut Group, value: &[u8], folded: &mut Vec<u8>) -> Result<(), Failure> {
    folded.clear();
    let done = fold.fold(&[], &group.value, value, folded);
    match done
        .map_err(|failure| Failure::Refused(format!("the values of two keys do not fold: {failure}")))?
    {
        Outcome::Value => std::mem::swap(&mut group.value, folded),
        Outcome::KeepEarlier => {}
        Outcome::KeepLater => group.value = value.to_vec(),
        Outcome::Delete => {
            return Err(Failure::Refused("the values of two keys fold to a deletion".to_owned()));
        }
    }
    Ok(())
}

fn print(
    args: &AggregateArgs,
    table: &BytesTable,
    columns: Columns,
    mut groups: Vec<Group>,
    session: &mut Session,
) -> Result<(), Failure> {
    let quantiles = Quantiles::of(table.rules(), &args.quantiles.quantile)?;
    groups.sort_by(|one, two| sorted::compare(&one.elements, &two.elements));
    let row = |group: Group| Row {
        term: Datum::Null,
        value: shown(table, &quantiles, &group.value),
        key: group.elements,
    };
    let mut rows: Vec<Row> = groups.into_iter().map(row).collect();
    match &args.sort {
        Some(name) => {
            let mut sorted = Sorted::by(&columns, name, args.desc, args.limit)?;
            rows.into_iter().for_each(|row| sorted.push(&columns, row));
            rows = sorted.rows(&columns);
        }
        None => rows.truncate(args.limit.unwrap_or(usize::MAX)),
    }
    let form = Form::of(args.format, session.globals.json, &args.look);
    let form = form.drawn(args.plot.as_ref(), args.spark.as_ref());
    let mut writer = RowWriter::new(&mut session.out, form, &columns)?.of_table(table.name());
    rows.into_iter().try_for_each(|row| writer.row(row.key, row.value))?;
    writer.finish()
}

/// A value for people and programs.
fn shown(table: &BytesTable, quantiles: &Quantiles, value: &[u8]) -> Datum {
    let mut shown = keys::shown_value(table.rules(), value);
    quantiles.put(value, &mut shown);
    shown
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
