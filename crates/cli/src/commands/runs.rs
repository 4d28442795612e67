//! `folddb runs STORE [TABLE]`: a picture of the tiers.

use folddb::{PartInfo, RunInfo, TableStats};
use serde_json::{Value, json};

use crate::args::StoreTableArgs;
use crate::failure::Failure;
use crate::render::tiers;
use crate::session::{Opened, Session};

pub(crate) fn run(args: &StoreTableArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let mut tables = Vec::new();
    for name in chosen(&store, args.table.as_deref())? {
        let table = store.known_table(&name)?;
        tables.push((table.stats()?, table.rules().as_table_rules().key_codec().clone()));
    }
    let part = |part: &PartInfo, codec: &folddb::codec::KeyCodec| {
        json!({
            "file": u64::from(part.file),
            "bytes": part.bytes,
            "records": part.records,
            "deletes": part.deletes,
            "low": codec.show_line(&part.low),
            "high": codec.show_line(&part.high),
            "min_seq": u64::from(part.min_seq),
            "max_seq": u64::from(part.max_seq),
            "trimmed": part.trimmed,
        })
    };
    let run = |run: &RunInfo, codec: &folddb::codec::KeyCodec| {
        let parts: Vec<Value> = run.parts.iter().map(|info| part(info, codec)).collect();
        json!({ "run": u64::from(run.id), "tier": run.tier, "bytes": run.bytes(), "records": run.records(), "parts": parts })
    };
    let table = |(stats, codec): &(TableStats, _)| {
        let runs: Vec<Value> = stats.runs.iter().map(|info| run(info, codec)).collect();
        json!({ "table": stats.name, "runs": runs })
    };
    let report = Value::Array(tables.iter().map(table).collect());
    session.report(&report, |out| tables.iter().try_for_each(|(stats, _)| tiers::write(out, stats)))
}

/// The named table, or all.
pub(crate) fn chosen(store: &Opened, table: Option<&str>) -> Result<Vec<String>, Failure> {
    match table {
        Some(name) => Ok(vec![store.known_table(name)?.name().to_owned()]),
        None => Ok(store.tables()),
    }
}
