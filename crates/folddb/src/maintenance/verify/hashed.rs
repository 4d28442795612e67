//! Hashed tables: checks that their index points to the records of its keys.

use std::collections::BTreeMap;

use folddb_base::Result;
use folddb_journal::ReplayFrame;
use folddb_layout::frame;
use folddb_manifest::{State, TableState};
use folddb_rules::table_rules::BoundRules;
use folddb_run::Depth;

use crate::maintenance::closed_index::{AtRest, ValueLogFiles, index_name};
use crate::maintenance::finding::{Finding, Loss, Misfits};
use crate::maintenance::survey::{bind, in_words};
use crate::maintenance::unfit::Unfit;
use crate::maintenance::verify::verifier::Verifier;
use crate::maintenance::verify::{record, value_files};

/// Checks the index of a hashed table: its checkpoint, and, if deep, that each of its keys points
/// to a record of that key.
pub(crate) fn check_index(verifier: &mut Verifier<'_>, state: &State, index: &AtRest) {
    let Some(table) = state.tables.get(&index.table) else { return };
    let name = table.index.as_ref().map_or_else(|| "the log".to_owned(), |saved| index_name(saved.file));
    for fault in &index.faults {
        let offset = fault.damage().and_then(|damage| damage.offset);
        verifier.report.findings.push(Finding::damage(&name, offset, in_words(fault)).costs(loss_of(table)));
    }
    let Ok(rules) = bind(table, verifier.options) else { return };
    if verifier.depth != Depth::Records {
        verifier.report.checked.records += table.index.as_ref().map_or(0, |saved| saved.keys);
        if index.faults.is_empty() && value_files::has_value_files(state, table) {
            value_files::check_those_of_index(verifier, state, index, (&name, loss_of(table)));
        }
        return;
    }
    let counted = check_keys(verifier, state, (index, &name), (table, &rules));
    if index.faults.is_empty() {
        check_sums(verifier, (index, &name), table, &counted);
    }
}

/// What is lost with the index of a table, or with some of its keys.
fn loss_of(table: &TableState) -> Loss {
    Loss { records: None, keys: "keys that are in no order".to_owned(), ..Loss::whole_table(&table.name) }
}

/// Checks the record of each key. Returns how many keys point into each segment.
fn check_keys(
    verifier: &mut Verifier<'_>,
    state: &State,
    (index, name): (&AtRest, &str),
    (table, rules): (&TableState, &BoundRules),
) -> BTreeMap<u32, u64> {
    let mut value_log = ValueLogFiles::new(&verifier.options.host.files, &verifier.survey.dir, state);
    let (mut records, mut misfits, mut unfit) = (0, Misfits::default(), Unfit::default());
    let mut counted: BTreeMap<u32, u64> = BTreeMap::new();
    let walked = index.each(&mut value_log, &mut |point, slot, found| {
        records += 1;
        *counted.entry(slot.segment()).or_default() += 1;
        match found {
            Err(error) => {
                misfits.add_value(&verifier.survey.dir, name, &[], &error, "the value of a key");
            }
            Ok((found, record)) => {
                let value = found.is_alive(0).then(|| found.value(record));
                let key = found.key(record);
                let shown = || rules.rules.key_codec().show_line(key);
                if let Some(wrong) = wrong_key(rules, (index, point), key) {
                    misfits.add(name, None, None, format!("the record of key {}: {wrong}", shown()));
                } else if let Some(Err(why)) = value.map(|value| record::check_value(rules, value)) {
                    unfit.add(name, None, (&table.name, shown()), why);
                }
            }
        }
        Ok(())
    });
    verifier.report.checked.records += records;
    if let Err(unread) = walked {
        misfits.add(name, None, None, unread.to_string());
    }
    verifier.report.findings.extend(unfit.findings());
    for (finding, misfit) in misfits.findings() {
        let loss = Loss { records: Some(misfit.records), ..loss_of(table) };
        verifier.report.findings.push(finding.costs(loss));
    }
    counted
}

/// Compares the sums of an intact index with those of the manifest, and with the log.
fn check_sums(
    verifier: &mut Verifier<'_>,
    (index, name): (&AtRest, &str),
    table: &TableState,
    counted: &BTreeMap<u32, u64>,
) {
    if *counted != index.quota() {
        let what = format!(
            "the values that its keys lead to are not those that the manifest has counted: {counted:?}"
        );
        verifier.report.findings.push(Finding::damage(name, None, what));
    }
    if index.misfits() > 0 {
        let what =
            format!("the log and the index disagree on {}", folddb_base::counted(index.misfits(), "key"));
        verifier.report.findings.push(Finding::damage(name, None, what).costs(loss_of(table)));
    }
}

/// Checks the key of a record that the index of a hashed table points to.
fn wrong_key(
    rules: &BoundRules,
    (index, point): (&AtRest, folddb_hash::Point),
    key: &[u8],
) -> Option<String> {
    if index.point(key) != point {
        return Some("the index has it in the place of another key".to_owned());
    }
    let checked = rules.rules.key_codec().check(key);
    checked.err().map(|cause| format!("it is not a key of the table: {cause}"))
}

/// Applies a batch to the indexes of hashed tables.
pub(crate) fn take_hashed(frame: &ReplayFrame<'_>, hashed: &[AtRest]) -> Result<(), String> {
    for (seq, record) in (frame.first_seq..).zip(frame::records(frame.payload).flatten()) {
        let index = hashed.iter().find(|index| index.table == record.table);
        // An unreadable shard was reported when its piece was checked.
        let taken = index.filter(|index| index.faults.is_empty()).map(|index| index.take(&record, seq));
        taken.transpose().map_err(|error| format!("seq {seq}: {}", error.message()))?;
    }
    Ok(())
}
