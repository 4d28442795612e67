//! `folddb stats STORE [TABLE]`: figures of a store and of its tables.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use folddb::{Datum, StoreStats, TableStats};

use crate::args::StatsArgs;
use crate::commands::alter::outdated_words;
use crate::commands::runs::chosen;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::render::json::{Json, object};
use crate::render::table;
use crate::session::Session;

/// How often figures are printed if nothing else is said.
const WATCH_USUAL: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &StatsArgs, session: &mut Session) -> Result<(), Failure> {
    let Some(every) = args.watch else { return print(args, session) };
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let clears = std::io::stdout().is_terminal() && !session.globals.json;
    for time in 0..args.limit.unwrap_or(u64::MAX) {
        if time > 0 {
            interrupt::sleep(every.unwrap_or(WATCH_USUAL))?;
        }
        match (clears, time) {
            (true, _) => write!(session.out, "\x1b[H\x1b[2J")?, // the cursor at the top of an empty screen
            (false, 1..) if !session.globals.json => writeln!(session.out)?,
            _ => {}
        }
        print(args, session)?;
        session.flush()?;
    }
    Ok(())
}

/// Prints the figures as they are now.
fn print(args: &StatsArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    if args.prometheus && session.globals.json {
        return Err(Failure::Usage("--prometheus is a form of its own: leave out --json".to_owned()));
    }
    if args.prometheus {
        return Ok(write!(session.out, "{}", store.metrics().prometheus())?);
    }
    let names = chosen(&store, args.table.as_deref())?;
    let tables: Vec<TableStats> = names
        .iter()
        .map(|name| store.bytes_table(name).and_then(|table| table.stats()))
        .collect::<Result<_, _>>()?;
    let figures = if args.table.is_none() { figures(&store.stats()) } else { Vec::new() };
    let report = object! {
        "store": as_json(&figures),
        "tables": tables.iter().map(table_json).collect::<Vec<_>>(),
    };
    session.report(&report, |out| {
        let pairs: Vec<_> = figures.iter().filter(|figure| is_shown(figure)).map(readable).collect();
        table::write_pairs(out, &pairs, false)?;
        if !pairs.is_empty() && !tables.is_empty() {
            writeln!(out)?;
        }
        if tables.is_empty() {
            return Ok(());
        }
        let header = ["table", "records", "keys (about)", "runs", "on disk", "in memory", "range deletes"];
        table::write(out, &header.map(str::to_owned), &tables.iter().map(table_row).collect::<Vec<_>>())?;
        tables.iter().filter_map(outdated_words).try_for_each(|words| writeln!(out, "{words}"))
    })
}

/// A figure of a store: its group, its name in that, its value.
type Figure = (&'static str, &'static str, Datum);

/// The figures of a store. Counters begin at the opening.
fn figures(stats: &StoreStats) -> Vec<Figure> {
    let text = |value: &Option<String>| value.clone().map_or(Datum::Null, Datum::Text);
    let mut figures = vec![("", "last_seq", Datum::Int(u64::from(stats.last_seq).into()))];
    figures.extend(stats.metrics().into_iter().map(|metric| {
        let value = match metric.name.ends_with("_s") {
            true => Datum::Float(metric.value),
            false => Datum::Int(metric.value as i128), // a count, which doubles have to 2^53
        };
        (metric.group, metric.name, value)
    }));
    figures.extend([
        ("", "short_of_space", text(&stats.short_of_space)),
        ("", "poisoned_by", text(&stats.poisoned_by)),
        ("", "frozen", Datum::Bool(stats.is_frozen)),
    ]);
    figures
}

/// The figures by group and name.
fn as_json(figures: &[Figure]) -> Json {
    let mut groups: Vec<(String, Datum)> = Vec::new();
    for (group, name, value) in figures {
        let figure = ((*name).to_owned(), value.clone());
        match groups.last_mut() {
            _ if group.is_empty() => groups.push(figure),
            Some((last, Datum::Map(figures))) if last == group => figures.push(figure),
            _ => groups.push(((*group).to_owned(), Datum::Map(vec![figure]))),
        }
    }
    Json(Datum::Map(groups))
}

/// Figures that are shown to people even if they are zero.
const ALWAYS_SHOWN: [(&str, &str); 3] = [("", "last_seq"), ("disk", "bytes"), ("memory", "memtable_bytes")];

fn is_shown((group, name, value): &Figure) -> bool {
    let is_nothing = match value {
        Datum::Int(0) | Datum::Null | Datum::Bool(false) => true,
        Datum::Float(value) => *value == 0.0,
        _ => false,
    };
    ALWAYS_SHOWN.contains(&(*group, *name)) || !is_nothing
}

fn readable((group, name, value): &Figure) -> (String, Datum) {
    let label = format!("{group} {name}").trim().replace('_', " ");
    let readable = match value {
        Datum::Int(value) => {
            let value = u64::try_from(*value).unwrap_or(u64::MAX);
            let is_size = name.split('_').any(|word| word == "bytes");
            Datum::Text(if is_size { human::bytes(value) } else { human::count(value) })
        }
        other => other.clone(),
    };
    (label, readable)
}

fn table_json(stats: &TableStats) -> Json {
    object! {
        "table": stats.name.as_str(),
        "records": stats.records,
        "keys_estimate": stats.keys_estimate,
        "runs": stats.runs.len(),
        "disk_bytes": stats.disk_bytes,
        "memtable_bytes": stats.memtable_bytes,
        "outdated_parts": stats.outdated_parts,
        "outdated_bytes": stats.outdated_bytes,
        "range_deletes": stats.range_deletes,
        "index_bytes": stats.index_bytes,
    }
}

fn table_row(stats: &TableStats) -> Vec<Datum> {
    vec![
        Datum::Text(stats.name.clone()),
        Datum::Text(human::count(stats.records)),
        Datum::Text(human::count(stats.keys_estimate)),
        Datum::Int(stats.runs.len() as i128),
        Datum::Text(human::bytes(stats.disk_bytes)),
        Datum::Text(human::bytes(stats.memtable_bytes + stats.index_bytes.unwrap_or(0))),
        Datum::Int(stats.range_deletes as i128),
    ]
}
