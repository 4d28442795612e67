//! Sorted tables: checks their parts, and, if deep, every record in them.

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Record, Rope};
use folddb_layout::file_name::FileName;
use folddb_manifest::{PartState, RunState, State, TableState};
use folddb_rules::table_rules::BoundRules;
use folddb_run::{Depth, Fault, Inspect, KeySpan, Part, other_part};

use crate::maintenance::finding::{Finding, Loss, Misfits};
use crate::maintenance::summaries::Refolded;
use crate::maintenance::survey::{bind, in_words};
use crate::maintenance::unfit::Unfit;
use crate::maintenance::verify::record::Wrong;
use crate::maintenance::verify::verifier::Verifier;
use crate::maintenance::verify::{record, value_files};

pub(crate) fn check_tables(verifier: &mut Verifier<'_>, state: &State) {
    for table in state.tables.values() {
        verifier.report.checked.tables += 1;
        match bind(table, verifier.options) {
            Ok(rules) => check_table(verifier, state, table, &rules),
            Err(error) => note_unreadable(verifier, table, &error),
        }
    }
}

/// Without its order nothing of a table can be checked. That is damage only if the rules are not
/// valid.
fn note_unreadable(verifier: &mut Verifier<'_>, table: &TableState, error: &folddb_base::Error) {
    let file = verifier.manifest_name();
    let what = format!("{}: its parts are not checked", error.message());
    let finding = match error.kind() {
        crate::ErrorKind::Corruption => {
            Finding::damage(file, None, what).costs(Loss::whole_table(&table.name))
        }
        _ => Finding::note(file, what),
    };
    verifier.report.findings.push(finding);
}

fn check_table(verifier: &mut Verifier<'_>, state: &State, table: &TableState, rules: &BoundRules) {
    if let Some(missing) = &rules.missing {
        let what = format!("table `{}`: {missing}, so its values are not checked", table.name);
        verifier.report.findings.push(Finding::note(verifier.manifest_name(), what));
    }
    for range in table.range_deletes.values() {
        let is_upright = rules.order.compare(&range.from, &range.to).is_lt();
        if !is_upright || range.seq > table.flushed_seq {
            let (name, seq) = (&table.name, range.seq);
            let what = format!("table `{name}`: the range delete at seq {seq} makes no sense");
            let finding = Finding::damage(verifier.manifest_name(), None, what);
            verifier.report.findings.push(finding.costs(Loss::whole_table(name)));
        }
    }
    for run in &table.runs {
        verifier.report.checked.runs += 1;
        check_run(verifier, state, (table, rules), run);
    }
}

/// Checks that the parts of a run are disjoint and in order, so no key is in two of them.
fn check_run(
    verifier: &mut Verifier<'_>,
    state: &State,
    (table, rules): (&TableState, &BoundRules),
    run: &RunState,
) {
    let compare = |a: &[u8], b: &[u8]| rules.order.compare(a, b);
    let mut before: Option<&PartState> = None;
    for part in &run.parts {
        let overlaps = before.is_some_and(|before| compare(&before.high, &part.low).is_ge());
        if overlaps || compare(&part.low, &part.high).is_gt() {
            let name = FileName::Part(part.file).to_string();
            let what =
                format!("by the manifest, its keys overlap with those of another part of run {}", run.id);
            let loss = whole_part(table, rules, part);
            verifier.report.findings.push(Finding::damage(name, None, what).costs(loss));
        }
        before = Some(part);
        if let Some(opened) = check_part(verifier, table, rules, part) {
            inspect(verifier, state, (table, rules), part, &opened);
        }
    }
}

/// Checks that a part is the one that the manifest lists. Returns it if its frame is intact.
fn check_part(
    verifier: &mut Verifier<'_>,
    table: &TableState,
    rules: &BoundRules,
    state: &PartState,
) -> Option<Arc<Part>> {
    let file = FileName::Part(state.file);
    let (name, path) = (file.to_string(), verifier.survey.path(file));
    verifier.report.checked.parts += 1;
    let lost = |offset: Option<u64>, what: String| {
        Finding::damage(&name, offset, what).costs(whole_part(table, rules, state))
    };
    if !verifier.seen.insert(state.file) {
        verifier.report.findings.push(lost(None, "the manifest lists it twice".to_owned()));
        return None;
    }
    match verifier.options.host.files.len_bytes(&path) {
        Ok(len) if len == state.file_bytes => {}
        Ok(len) => {
            let what = format!("it has {len} bytes instead of {}", state.file_bytes);
            verifier.report.findings.push(lost(Some(len.min(state.file_bytes)), what));
            verifier.advance(state.file_bytes);
            return None;
        }
        Err(error) => {
            verifier.is_missing_parts |= error.kind() == std::io::ErrorKind::NotFound;
            let what = match error.kind() {
                std::io::ErrorKind::NotFound => "missing: the manifest lists it".to_owned(),
                _ => format!("cannot be read: {error}"),
            };
            verifier.report.findings.push(lost(None, what));
            verifier.advance(state.file_bytes);
            return None;
        }
    }
    let opened = Part::open(&verifier.options.host.files, &path, state.file, &rules.order, &verifier.shared);
    let part = match opened {
        Ok(part) => part,
        Err(error) if error.kind() == ErrorKind::NewerFormat => {
            note_unread(verifier, &name, &error);
            verifier.advance(state.file_bytes);
            return None;
        }
        Err(error) => {
            verifier
                .report
                .findings
                .push(lost(error.damage().and_then(|damage| damage.offset), in_words(&error)));
            verifier.advance(state.file_bytes);
            return None;
        }
    };
    if let Some(difference) = part.difference(state) {
        verifier.report.findings.push(lost(None, other_part(&difference)));
    }
    Some(part)
}

/// Checks the contents of a part whose frame is intact.
fn inspect(
    verifier: &mut Verifier<'_>,
    store: &State,
    (table, rules): (&TableState, &BoundRules),
    state: &PartState,
    part: &Arc<Part>,
) {
    let name = FileName::Part(state.file).to_string();
    let before = verifier.report.checked.bytes;
    let mut inspector = Inspector {
        verifier,
        table,
        rules,
        name: &name,
        records: 0,
        misfits: Misfits::default(),
        unfit: Unfit::default(),
        has_faults: false,
        has_unread: false,
        // Not as the rules say: they may have been altered since it was written.
        refolded: part.has_summaries().then(Refolded::default),
    };
    folddb_run::examine(part, inspector.verifier.depth, &mut inspector);
    inspector.report_refolded(part);
    inspector.report_misfits();
    let records = inspector.records;
    verifier.report.checked.records += if verifier.depth == Depth::Records { records } else { state.records };
    let read = verifier.report.checked.bytes - before;
    verifier.advance(state.file_bytes.saturating_sub(read));
    if verifier.depth == Depth::Index {
        let loss = whole_part(table, rules, state);
        value_files::check_those_of_part(verifier, store, part, (&name, loss));
    }
    part.forget();
}

/// Notes that this build of the library cannot read a part, or some of it.
fn note_unread(verifier: &mut Verifier<'_>, name: &str, error: &Error) {
    verifier.report.checked.parts_unread += 1;
    let what = format!("{}: it is not checked", error.message());
    verifier.report.findings.push(Finding::note(name, what));
}

fn whole_part(table: &TableState, rules: &BoundRules, part: &PartState) -> Loss {
    let codec = rules.rules.key_codec();
    Loss::of_range(&table.name, codec, &part.low, &part.high, Some(part.records))
}

/// Takes the contents of a part.
struct Inspector<'a, 'l> {
    verifier: &'a mut Verifier<'l>,
    table: &'a TableState,
    rules: &'a BoundRules,
    name: &'a str,
    records: u64,
    /// Records that do not fit the table, or whose values are lost.
    misfits: Misfits,
    /// Records whose values the table does not take.
    unfit: Unfit,
    has_faults: bool,
    /// This build of the library cannot read some blocks.
    has_unread: bool,
    /// The folds of the blocks, in tables with summaries.
    refolded: Option<Refolded>,
}

impl Inspect for Inspector<'_, '_> {
    fn record(&mut self, offset: u64, record: Record<'_>) {
        self.records += 1;
        if let Some(refolded) = &mut self.refolded {
            refolded.push(&self.rules.fold, offset, &record);
        }
        let values = &self.verifier.at_rest;
        let load = |rope: &Rope<'_>| values.value((self.table.id, record.key), rope);
        let checked = record::check_record(self.rules, &record, self.table.flushed_seq, &load);
        let Err(wrong) = checked else { return };
        let key = self.rules.rules.key_codec().show_line(record.key);
        match wrong {
            Wrong::Record(what) => {
                let what = format!("the record of key {key}: {what}");
                self.misfits.add(self.name, Some(offset), Some(record.key), what);
            }
            Wrong::Unfit(why) => self.unfit.add(self.name, Some(offset), (&self.table.name, key), why),
            Wrong::Value(error) => {
                let (dir, said) = (&self.verifier.survey.dir, format!("the value of key {key}"));
                self.misfits.add_value(dir, self.name, record.key, &error, &said);
            }
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.has_faults = true;
        let loss = Loss::of_span(&self.table.name, self.rules.rules.key_codec(), &fault.keys);
        let finding = Finding::damage(self.name, Some(fault.offset), fault.what).costs(loss);
        self.verifier.report.findings.push(finding);
    }

    fn unread(&mut self, error: Error) {
        if !std::mem::replace(&mut self.has_unread, true) {
            note_unread(self.verifier, self.name, &error);
        }
    }

    fn progress(&mut self, bytes: u64) {
        self.verifier.advance(bytes);
    }
}

impl Inspector<'_, '_> {
    /// Blocks that do not match their summaries. Unreadable blocks, and values that do not fit, are
    /// reported separately.
    fn report_refolded(&mut self, part: &Part) {
        let Some(refolded) = self.refolded.take().filter(|_| !self.has_faults && self.unfit.is_empty())
        else {
            return;
        };
        if let Ok(Some(offset)) = refolded.fault(part) {
            let what =
                "the values of a block do not fold to what its summary says; no record is lost with it";
            self.verifier.report.findings.push(Finding::damage(self.name, Some(offset), what));
        }
    }

    fn report_misfits(&mut self) {
        self.verifier.report.findings.extend(std::mem::take(&mut self.unfit).findings());
        for (finding, misfit) in std::mem::take(&mut self.misfits).findings() {
            let span = KeySpan { through: misfit.last_key, ..KeySpan::default() };
            let mut loss = Loss::of_span(&self.table.name, self.rules.rules.key_codec(), &span);
            loss.records = Some(misfit.records);
            self.verifier.report.findings.push(finding.costs(loss));
        }
    }
}
