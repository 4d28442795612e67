//! `folddb stats STORE [TABLE]`: figures of a store and of its tables.

use folddb::{Datum, StoreStats, TableStats};

use crate::args::StoreTableArgs;
use crate::commands::runs::chosen;
use crate::failure::Failure;
use crate::human;
use crate::render::json::{Json, object};
use crate::render::table;
use crate::session::Session;

pub(crate) fn run(args: &StoreTableArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let names = chosen(&store, args.table.as_deref())?;
    let tables: Vec<TableStats> =
        names.iter().map(|name| store.table_stats(name)).collect::<Result<_, _>>()?;
    let figures = if args.table.is_none() { figures(&store.stats()) } else { Vec::new() };
    let of_store = figures.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let report = object! {
        "store": Json(Datum::Map(of_store)),
        "tables": tables.iter().map(table_json).collect::<Vec<_>>(),
    };
    session.report(&report, |out| {
        let told = figures.iter().filter(|(name, value)| ALWAYS_TOLD.contains(name) || !is_nothing(value));
        let pairs: Vec<_> =
            told.map(|(name, value)| (name.replace('_', " "), readable(name, value))).collect();
        table::write_pairs(out, &pairs)?;
        if !pairs.is_empty() && !tables.is_empty() {
            writeln!(out)?;
        }
        if tables.is_empty() {
            return Ok(());
        }
        let header = ["table", "records", "keys (about)", "runs", "on disk", "in memory", "range deletes"];
        table::write(out, &header.map(str::to_owned), &tables.iter().map(table_row).collect::<Vec<_>>())
    })
}

/// The figures of a store by name. Counters begin at the opening.
fn figures(stats: &StoreStats) -> Vec<(&'static str, Datum)> {
    let number = |value: u64| Datum::Int(value.into());
    let text = |value: &Option<String>| value.clone().map_or(Datum::Null, Datum::Text);
    vec![
        ("last_seq", number(stats.last_seq)),
        ("disk_bytes", number(stats.disk_bytes)),
        ("segments", number(stats.segments)),
        ("value_segments", number(stats.value_segments)),
        ("value_bytes", number(stats.value_bytes)),
        ("value_live_bytes", number(stats.value_live_bytes)),
        ("value_reads", number(stats.value_reads)),
        ("value_bytes_written", number(stats.value_bytes_written)),
        ("value_segments_reclaimed", number(stats.value_segments_reclaimed)),
        ("reclaims", number(stats.reclaims)),
        ("value_bytes_copied", number(stats.value_bytes_copied)),
        ("value_bytes_given_back", number(stats.value_bytes_given_back)),
        ("value_head_reads", number(stats.value_head_reads)),
        ("index_bytes", number(stats.index_bytes)),
        ("index_locked_bytes", number(stats.index_locked_bytes)),
        ("index_loads", number(stats.index_loads)),
        ("indexes_saved", number(stats.indexes_saved)),
        ("index_bytes_written", number(stats.index_bytes_written)),
        ("memtable_bytes", number(stats.memtable_bytes)),
        ("cache_bytes", number(stats.cache_bytes)),
        ("commits", number(stats.commits)),
        ("records_written", number(stats.records_written)),
        ("user_bytes", number(stats.user_bytes)),
        ("journal_bytes", number(stats.journal_bytes)),
        ("part_bytes_written", number(stats.part_bytes_written)),
        ("flushes", number(stats.flushes)),
        ("merges", number(stats.merges)),
        ("records_merged", number(stats.records_merged)),
        ("gets", number(stats.gets)),
        ("operands_visited_max", number(stats.operands_visited_max)),
        ("fold_failures", number(stats.fold_failures)),
        ("writer_delay_us", number(stats.writer_delay_us)),
        ("stalls", number(stats.stalls)),
        ("background_retries", number(stats.background_retries)),
        ("pieces_read", number(stats.pieces_read)),
        ("bytes_read", number(stats.bytes_read)),
        ("snapshots", number(stats.snapshots)),
        ("snapshots_in_files", number(stats.snapshots_in_files)),
        ("snapshot_file_bytes", number(stats.snapshot_file_bytes)),
        ("oldest_snapshot_s", stats.oldest_snapshot_s.map_or(Datum::Null, Datum::Float)),
        ("short_of_space", text(&stats.short_of_space)),
        ("poisoned_by", text(&stats.poisoned_by)),
        ("frozen", Datum::Bool(stats.is_frozen)),
    ]
}

/// Figures that people are told even when they are zero.
const ALWAYS_TOLD: [&str; 3] = ["last_seq", "disk_bytes", "memtable_bytes"];

fn is_nothing(value: &Datum) -> bool {
    matches!(value, Datum::Int(0) | Datum::Null | Datum::Bool(false))
}

fn readable(name: &str, value: &Datum) -> Datum {
    match value {
        Datum::Int(value) => {
            let value = u64::try_from(*value).unwrap_or(u64::MAX);
            let is_size = name.split('_').any(|word| word == "bytes");
            Datum::Text(if is_size { human::bytes(value) } else { human::count(value) })
        }
        other => other.clone(),
    }
}

fn table_json(stats: &TableStats) -> Json {
    object! {
        "table": stats.name.as_str(),
        "records": stats.records,
        "keys_estimate": stats.keys_estimate,
        "runs": stats.runs.len(),
        "disk_bytes": stats.disk_bytes,
        "memtable_bytes": stats.memtable_bytes,
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
