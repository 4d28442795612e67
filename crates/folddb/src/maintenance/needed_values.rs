//! Which values of given segments a closed store points to: what a copy of it needs.
//!
//! | pointers of | are in |
//! |---|---|
//! | records of sorted tables | the liveness of their parts; for unflushed records, the log |
//! | hashed tables | their saved indexes, and the log after these |
//!
//! It reads only files, as a recovery would find them, not an open engine: so the result is the
//! same for a backup in progress, a finished one, and one to be restored. Without segments it reads
//! nothing.
//!
//! Called by `backup` and `generation`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use folddb_base::{Error, FileNumber, Pointer, Result, Seq, TableId};
use folddb_host::Host;
use folddb_journal::{LogEnd, ReplayFrame, ReplayFrom};
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{FrameRecord, records};
use folddb_manifest::{PartState, State};
use folddb_rules::KeyOrder;
use folddb_rules::table_rules::{Custom, StoredRules, TableRules};
use folddb_run::{Part, Shared};

use crate::maintenance::closed_index::{AtRest, is_hashed};
use folddb_engine::state::hash_index::low_bits;
use folddb_engine::values::load::rope_of;

/// Files that are kept open.
const OPEN_FILES: usize = 8;

/// What is needed of each segment or directory: units, ascending, each once.
pub(crate) type NeededUnits = BTreeMap<FileNumber, Vec<u32>>;

/// What the store in `dir` needs of these segments; its log is in `log_dir`, a copy up to where
/// `state` records it as durable.
///
/// # Errors
/// Damage of a source of pointers, naming the file; a failed read.
pub(crate) fn needed_units(
    host: &Host,
    (dir, log_dir): (&Path, &Path),
    state: &State,
    custom: &Custom,
    segments: impl Iterator<Item = FileNumber>,
) -> Result<NeededUnits> {
    let mut needed: NeededUnits = segments.map(|segment| (segment, Vec::new())).collect();
    if needed.is_empty() {
        return Ok(needed);
    }
    add_of_parts(host, dir, state, custom, &mut needed)?;
    let hashed = saved_indexes(host, dir, state)?;
    add_of_log(host, log_dir, state, &hashed, &mut needed)?;
    let by_low: BTreeMap<u32, FileNumber> =
        needed.keys().map(|&segment| (low_bits(segment.0), segment)).collect();
    for index in hashed.values() {
        index.each_place(&mut |low, unit| {
            let segment = by_low.get(&low).and_then(|segment| needed.get_mut(segment));
            segment.into_iter().for_each(|units| units.push(unit));
        })?;
    }
    for units in needed.values_mut() {
        units.sort_unstable();
        units.dedup();
    }
    Ok(needed)
}

fn add_of_parts(
    host: &Host,
    dir: &Path,
    state: &State,
    custom: &Custom,
    needed: &mut NeededUnits,
) -> Result<()> {
    let shared = no_cache();
    for (listed, order) in parts_of(state, custom)? {
        let path = dir.join(FileName::Part(listed.file).to_string());
        let part = Part::open(&host.files, &path, listed.file, &order, &shared)?;
        part.check_listed(listed)?;
        let is_asked_for = |segment: u32| needed.contains_key(&FileNumber(u64::from(segment)));
        if part.facts().values.iter().any(|used| is_asked_for(used.segment)) {
            let liveness = part.liveness()?;
            for (&segment, units) in needed.iter_mut() {
                units.extend(liveness.units(segment.0 as u32));
            }
        }
        part.forget();
    }
    Ok(())
}

/// The indexes of hashed tables, as they were saved.
fn saved_indexes(host: &Host, dir: &Path, state: &State) -> Result<BTreeMap<TableId, AtRest>> {
    let mut indexes = BTreeMap::new();
    for table in state.tables.values().filter(|table| is_hashed(table)) {
        let index = AtRest::open(&host.files, dir, state.store_id, table, false);
        if let Some(fault) = index.faults.first() {
            return Err(fault.clone());
        }
        indexes.insert(table.id, index);
    }
    Ok(indexes)
}

/// Applies the log's records of hashed tables to their indexes; values that those of sorted tables
/// point to are needed.
fn add_of_log(
    host: &Host,
    dir: &Path,
    state: &State,
    hashed: &BTreeMap<TableId, AtRest>,
    needed: &mut NeededUnits,
) -> Result<()> {
    let mut take = |record: &FrameRecord<'_>, seq: Seq| {
        if let Some(index) = hashed.get(&record.table) {
            return index.take(record, seq);
        }
        let is_to_be_flushed = state.tables.get(&record.table).is_some_and(|table| seq > table.flushed_seq);
        let rope = rope_of(record).filter(|_| is_to_be_flushed);
        let mut note = |pointer: Pointer<'_>| {
            let segment = needed.get_mut(&FileNumber(u64::from(pointer.place.segment)));
            segment.into_iter().for_each(|units| units.push(pointer.place.unit));
        };
        rope.iter().flat_map(|rope| rope.pointers()).for_each(&mut note);
        Ok(())
    };
    let visit = &mut |frame: ReplayFrame<'_>| {
        let mut records = (frame.first_seq..).zip(records(frame.payload).flatten());
        records.try_for_each(|(seq, record)| take(&record, seq))
    };
    folddb_journal::replay(host, dir, &from_of_copy(state), visit).map(drop)
}

/// The part files of a state with the order of their keys and their lengths.
pub(crate) fn parts_of<'s>(state: &'s State, custom: &Custom) -> Result<Vec<(&'s PartState, KeyOrder)>> {
    let mut parts = Vec::new();
    for table in state.tables.values() {
        let in_table = |error: Error| error.context(format!("table `{}`", table.name));
        let rules = TableRules::from_stored(&table.rules_text).map_err(in_table)?;
        let order = rules.bind(custom).map_err(in_table)?.order;
        let own = table.runs.iter().flat_map(|run| &run.parts);
        parts.extend(own.map(|part| (part, order.clone())));
    }
    Ok(parts)
}

/// Where the log of a copy begins, and what is known about it.
pub(crate) fn from_of_copy(state: &State) -> ReplayFrom {
    ReplayFrom {
        store_id: state.store_id,
        log_start_lsn: state.log_start_lsn,
        durable_lsn: state.durable_lsn,
        is_open: state.log_open,
        end: LogEnd::Copied, // or of a read-only store, whose opening has checked it
    }
}

/// An empty cache, for parts that are read once.
pub(crate) fn no_cache() -> Arc<Shared> {
    Shared::new(0, OPEN_FILES)
}
