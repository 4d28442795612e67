//! The log: its batches are committed to the new store, in their order; so are those of archived
//! logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::{Pointer, Result, TableId};
use folddb_journal::{LogReport, ReplayFrame};
use folddb_layout::frame::{self, LogOp};
use folddb_manifest::State;

use crate::maintenance::finding::{Finding, Loss, Severity};
use crate::maintenance::rebuilt::{LostBatches, Rebuilt};
use crate::maintenance::repair::repairer::Repairer;
use crate::maintenance::survey::{Few, log_findings};
use crate::store::Store;
use folddb_engine::options::Durability;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::values::at_rest::ValuesAtRest;
use folddb_engine::values::load::rope_of;
use folddb_engine::write::commit;
use folddb_engine::write::encoded_batch::Encoded;

/// Commits the archived logs of tables, up to the start of the common log.
pub(crate) fn rebuild_from_archives(
    repairer: &mut Repairer<'_>,
    store: &Store,
    state: &State,
    rebuilt: &Rebuilt,
) -> Result<()> {
    let engine = store.engine();
    rebuilt.archive_logs(engine)?;
    let values = ValuesAtRest::new(&repairer.options.host.files, &repairer.survey.dir, state);
    let mut encoded = Encoded::default();
    for log in &rebuilt.logs {
        let core = Arc::clone(store.bytes_table(&log.table)?.core());
        let cores = BTreeMap::from([(core.id, core)]);
        let (mut batches, mut lost) = (0_u64, LostBatches::default());
        log.each(&repairer.options.host, &repairer.survey.dir, state, &mut |frame| {
            if let Err(why) = encode(frame, state, &cores, &values, &mut encoded) {
                lost.add(frame, why);
            } else if encoded.count > 0 {
                batches += 1;
                commit_again(engine, frame, &mut encoded)?;
            }
            Ok(())
        })?;
        let what = format!("table `{}` was rebuilt from the {batches} batches of its log", log.table);
        repairer.report.batches += batches;
        repairer.report.findings.push(Finding::note("the log", what));
        repairer.report.findings.extend(lost.finding(&log.table));
    }
    Ok(())
}

/// Commits the batches of the old log to the new store, in their order.
pub(crate) fn commit_log(
    repairer: &mut Repairer<'_>,
    store: &Store,
    state: &State,
    past_holes: bool,
) -> Result<()> {
    let engine = store.engine();
    let cores: BTreeMap<TableId, Arc<TableCore>> =
        engine.catalog().all().map(|core| (core.id, Arc::clone(core))).collect();
    let (mut encoded, mut failed) = (Encoded::default(), None);
    let (mut taken, mut left, mut few) = (0, 0, Few::default());
    let values = ValuesAtRest::new(&repairer.options.host.files, &repairer.survey.dir, state);
    let mut ended = false;
    let from = repairer.survey.vouched_start(repairer.options, state)?;
    let mut log = repairer.survey.read_log(repairer.options, &from, &mut |frame, is_beyond| {
        // Values of batches that were never promised may not have reached the disk: the log ends
        // there.
        ended |= !frame.is_durable && !values.has(&frame).unwrap_or(false);
        if (ended || is_beyond) && !past_holes {
            left += 1;
            return Ok(());
        }
        let encoded_whole = encode(&frame, state, &cores, &values, &mut encoded);
        if encoded_whole.is_ok() {
            taken += 1;
            if failed.is_none() {
                failed = commit_again(engine, &frame, &mut encoded).err();
            }
        }
        few.pass(encoded_whole)
    })?;
    few.add_to(&mut log);
    if let Some(error) = failed {
        return Err(error.context("the batches of the log"));
    }
    (repairer.report.batches, repairer.report.batches_left) = (taken, left);
    report_log(repairer, &log, state, left);
    Ok(())
}

fn report_log(repairer: &mut Repairer<'_>, log: &LogReport, state: &State, left: u64) {
    let findings = log_findings(log, state).into_iter().zip(&log.faults);
    repairer.report.findings.extend(findings.map(|(finding, fault)| match fault.costs_nothing {
        true => Finding { severity: Severity::Note, ..finding },
        false => finding,
    }));
    if left == 0 {
        return;
    }
    // Frames beyond a torn end were promised to survive the death of the process, but not a power
    // cut. It is not known which of the two happened.
    let what = match log.faults.iter().all(|fault| fault.costs_nothing) {
        true => format!(
            "{left} whole batches after a torn end, or after a value that is not whole, were left out: after a power cut they were \
             never acknowledged as durable; if only the process died they were acknowledged, and --past-holes saves those that are whole"
        ),
        false => {
            format!("{left} whole batches after the first hole were left out; --past-holes saves them")
        }
    };
    let losses = state.tables.values().map(|table| Loss::whole_table(&table.name)).collect();
    repairer.report.findings.push(Finding { losses, ..Finding::damage("the log", None, what) });
}

/// Commits a batch of an old log. The time of its write is known from now on, as after a recovery:
/// values that had expired by then do not reappear.
fn commit_again(engine: &Arc<Engine>, frame: &ReplayFrame<'_>, encoded: &mut Encoded) -> Result<()> {
    if let Some(time_ms) = frame.time_ms {
        engine.times.note(engine.published() + 1, time_ms);
    }
    commit::commit(engine, encoded, Durability::Process).map(drop)
}

/// A batch of the old log for the new store: without dropped tables, and without records that are
/// in runs.
fn encode(
    frame: &ReplayFrame<'_>,
    state: &State,
    cores: &BTreeMap<TableId, Arc<TableCore>>,
    values: &ValuesAtRest<'_>,
    encoded: &mut Encoded,
) -> Result<(), String> {
    encoded.clear();
    for (seq, record) in (frame.first_seq..).zip(frame::records(frame.payload)) {
        let record =
            record.map_err(|cause| format!("a record of the batch, which is lost with it: {cause}"))?;
        let (Some(core), Some(table)) = (cores.get(&record.table), state.tables.get(&record.table)) else {
            continue;
        };
        if seq <= table.flushed_seq {
            continue;
        }
        if core.hashed.is_some() || core.is_index() {
            continue; // it is in the saved index, or derived from its record
        }
        let is_range = record.op == LogOp::RangeDelete;
        if is_range && core.rules.order.compare(record.key, record.payload).is_ge() {
            return Err("a range delete ends before it begins; its batch is lost".to_owned());
        }
        match (rope_of(&record), record.op) {
            (Some(rope), LogOp::Op(kind)) => {
                let load = |pointer: &Pointer<'_>| values.piece((record.table, record.key), pointer);
                let pushed = encoded.push_rope(core, kind, record.key, &rope, &load);
                pushed.map_err(|error| format!("{}; its batch is lost", error.message()))?;
            }
            _ => frame::put_record(&mut encoded.payload, record.table, record.op, record.key, record.payload),
        }
        encoded.has_range_delete |= is_range;
        encoded.frees_only = false;
        encoded.count += 1;
        if !encoded.tables.iter().any(|known| Arc::ptr_eq(known, core)) {
            encoded.tables.push(Arc::clone(core));
        }
    }
    Ok(())
}
