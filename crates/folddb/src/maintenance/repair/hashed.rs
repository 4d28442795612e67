//! Hashed tables: their index is saved again, with the keys whose records are intact.

use std::collections::BTreeMap;

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, Result, TableId};
use folddb_hash::{Change, CheckpointWriter, HashIndex, IndexOptions, Past};
use folddb_layout::frame;
use folddb_manifest::{IndexSegment, IndexState, State, TableState};

use crate::maintenance::closed_index::{AtRest, ValueLogFiles, index_name};
use crate::maintenance::finding::{Finding, Loss, Misfits};
use crate::maintenance::repair::repairer::Repairer;
use crate::maintenance::repair::source;
use crate::maintenance::survey::in_words;
use folddb_engine::values::at_rest::ValuesAtRest;

/// Saves the index of a hashed table again, with all keys whose records are intact. `placed` is
/// where the values are in the new store.
pub(crate) fn save_whole(
    repairer: &mut Repairer<'_>,
    (state, placed): (&State, &State),
    id: TableId,
    next: &mut State,
    past_holes: bool,
) -> Result<()> {
    let (Some(table), Some(new)) = (state.tables.get(&id), next.tables.get_mut(&id)) else {
        return Ok(());
    };
    let name = table.index.as_ref().map_or_else(|| "the log".to_owned(), |saved| index_name(saved.file));
    let mut value_log = ValueLogFiles::new(&repairer.options.host.files, repairer.draft, placed);
    let (index, is_rebuilt) = read_index(repairer, (state, table), &name, &mut value_log)?;
    let taken = take_log(repairer, state, (&index, is_rebuilt), &mut value_log, past_holes)?;
    taken.map_err(|error| error.context(format!("the index of table `{}`", table.name)))?;
    let (saved, misfits) = save_index(repairer, &name, &index, &mut value_log)?;
    repairer.report.records += saved.keys;
    for (finding, misfit) in misfits.findings() {
        repairer.report.records_lost += misfit.records;
        let loss = Loss { records: Some(misfit.records), ..loss_of(table) };
        repairer.report.findings.push(finding.costs(loss));
    }
    (new.index, new.changes) = (Some(saved), None);
    Ok(())
}

/// What is lost with the index of a table, or with some of its keys.
fn loss_of(table: &TableState) -> Loss {
    Loss { keys: "keys that are in no order".to_owned(), ..Loss::whole_table(&table.name) }
}

/// Reads the saved index of a table. If it is damaged, or the log that follows it is lost, it is
/// rebuilt from the value segments; returns whether it was.
fn read_index(
    repairer: &mut Repairer<'_>,
    (state, table): (&State, &TableState),
    name: &str,
    value_log: &mut ValueLogFiles<'_>,
) -> Result<(AtRest, bool)> {
    let index = AtRest::open(&repairer.options.host.files, &repairer.survey.dir, state.store_id, table, true);
    let why = match index.faults.first() {
        Some(fault) => in_words(fault),
        None if source::is_log_lost(repairer.survey, repairer.options, state)? => {
            "the log that follows this index is lost".to_owned()
        }
        None => return Ok((index, false)),
    };
    let what = format!(
        "{why}; the index was rebuilt from the value segments: keys that were deleted, and values whose batch failed, may be \
         back"
    );
    repairer.report.findings.push(Finding::damage(name, None, what).costs(loss_of(table)));
    let index = AtRest::empty(state.store_id, table);
    index.rebuild(value_log)?;
    Ok((index, true))
}

/// Applies the log to the index, as far as batches are whole. The inner result is the index's own:
/// its first record that could not be applied.
fn take_log(
    repairer: &Repairer<'_>,
    state: &State,
    (index, is_rebuilt): (&AtRest, bool),
    value_log: &mut ValueLogFiles<'_>,
    past_holes: bool,
) -> Result<Result<()>> {
    let values = ValuesAtRest::new(&repairer.options.host.files, &repairer.survey.dir, state);
    let (mut ended, mut failed) = (false, None);
    let from = repairer.survey.vouched_start(repairer.options, state)?;
    repairer.survey.read_log(repairer.options, &from, &mut |frame, is_beyond| {
        let is_lost = !frame.is_durable && !values.has(&frame).unwrap_or(false);
        ended |= is_lost;
        // A batch that has lost a value is left out completely, as in sorted tables; later records
        // no longer match the slots.
        if is_lost || (ended || is_beyond) && !past_holes {
            return Ok(());
        }
        for (seq, record) in (frame.first_seq..).zip(frame::records(frame.payload).flatten()) {
            if record.table == index.table {
                let taken = match is_rebuilt || ended {
                    false => index.take(&record, seq),
                    true => index.take_by_key(value_log, &record),
                };
                failed = failed.take().or(taken.err());
            }
        }
        Ok(())
    })?;
    Ok(failed.map_or(Ok(()), Err))
}

/// Writes a checkpoint of the keys of an index whose records are intact. Returns which are not.
fn save_index(
    repairer: &mut Repairer<'_>,
    name: &str,
    index: &AtRest,
    value_log: &mut ValueLogFiles<'_>,
) -> Result<(IndexState, Misfits)> {
    let whole = HashIndex::new(IndexOptions::default());
    let mut misfits = Misfits::default();
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    index.each(value_log, &mut |point, slot, found| {
        match found {
            Ok((found, record)) if index.point(found.key(record)) == point => {
                whole.change(point, Change::Insert(slot), 1, Past::Forgotten)?;
                let end = ends.entry(slot.segment()).or_default();
                *end = (*end).max(u64::from(slot.unit()) * VALUE_ALIGN + found.record_bytes());
            }
            Ok(_) => misfits.add(name, None, None, "a record is of another key".to_owned()),
            Err(error) => {
                misfits.add_value(repairer.draft, name, &[], &error, "the value of a key is lost");
            }
        }
        Ok(())
    })?;
    let number = repairer.numbers.take();
    let to = repairer.draft.join(index_name(number));
    let file = repairer.options.host.files.create(&to).map_err(|error| Error::io("create", &to, error))?;
    let mut writer = CheckpointWriter::new(file, &to, number, index.salt());
    while whole.save_step(&mut writer, 1)? {}
    let facts = writer.finish()?;
    let segment = |(low, tally): (&u32, &folddb_hash::SegmentTally)| IndexSegment {
        segment: (*low).into(),
        records: tally.records,
        bytes: tally.bytes,
        end: ends.get(low).copied().unwrap_or_default(),
    };
    let segments = facts.segments.iter().map(segment).collect();
    let (file_bytes, keys, max_seq) = (facts.file_bytes, facts.keys, facts.max_seq);
    Ok((IndexState { file: number, file_bytes, keys, max_seq, segments }, misfits))
}
