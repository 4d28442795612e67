//! Sorted tables: intact parts are copied; the intact blocks of others are rewritten.

use std::path::Path;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Record, RecordSink, Result, Seq, error};
use folddb_layout::file_name::FileName;
use folddb_manifest::{PartState, RunState, TableState};
use folddb_rules::KeyOrder;
use folddb_rules::table_rules::BoundRules;
use folddb_run::{Depth, Fault, Inspect, Part, PartWriter, Search, examine, other_part, search_blocks};

use crate::maintenance::copying;
use crate::maintenance::finding::{Finding, Loss, Severity};
use crate::maintenance::repair::lost_values::LostValues;
use crate::maintenance::repair::repairer::Repairer;
use crate::maintenance::survey::in_words;
use folddb_engine::background::output::write_options;
use folddb_engine::edit::install::part_state;
use folddb_engine::values::at_rest::ValuesAtRest;

pub(crate) fn salvage_table(
    repairer: &mut Repairer<'_>,
    table: &mut TableState,
    rules: &BoundRules,
    values: &ValuesAtRest<'_>,
) -> Result<()> {
    let mut runs = Vec::new();
    for run in std::mem::take(&mut table.runs) {
        let mut parts = Vec::new();
        for part in &run.parts {
            parts.extend(salvage_part(repairer, table, rules, part, values)?);
            repairer.counter.add(part.file_bytes);
            repairer.counter.check()?;
        }
        if !parts.is_empty() {
            runs.push(RunState { parts, ..run });
        }
    }
    table.runs = runs;
    Ok(())
}

/// Copies a part, or rewrites its readable records. None if there are none.
fn salvage_part(
    repairer: &mut Repairer<'_>,
    table: &TableState,
    rules: &BoundRules,
    part: &PartState,
    values: &ValuesAtRest<'_>,
) -> Result<Option<PartState>> {
    let files = &repairer.options.host.files;
    let name = FileName::Part(part.file);
    let path = repairer.survey.path(name);
    let file = match files.open(&path).and_then(|file| Ok((file.len_bytes()?, file))) {
        Ok(file) => file,
        Err(error) => {
            let what = format!("it cannot be read, and all of it is lost: {error}");
            return lose_part(repairer, table, rules, part, what);
        }
    };
    let opened = Part::open(files, &path, part.file, &rules.order, &repairer.shared);
    let opened = opened.and_then(|opened| match opened.facts().file_bytes == part.file_bytes {
        true => Ok(opened),
        false => Err(error::corrupt(&path, 0, "its length is not what the manifest says")),
    });
    // What is whole would be left out.
    let opened = match opened {
        Err(error) if error.kind() == ErrorKind::NewerFormat => return Err(error),
        opened => opened,
    };
    if let Ok(opened) = &opened {
        // What another part holds was never in this store.
        if let Some(difference) = opened.difference(part) {
            let what = format!(
                "{}. It is left out, with what the right one held: put that in its place, and repair again",
                other_part(&difference)
            );
            return lose_part(repairer, table, rules, part, what);
        }
        let lost = LostValues::new(values, table.id, repairer.draft);
        let mut look = Faults { any: false, unread: None, lost };
        examine(opened, Depth::Records, &mut look);
        if let Some(error) = look.unread {
            return Err(error);
        }
        if !look.any && look.lost.is_empty() {
            return copy_part(repairer, part, &path, &*file.1, file.0).map(Some);
        }
    }
    salvage_records(repairer, (table, rules, values), part, (&path, file), opened)
}

/// Reports that all of a part is lost.
fn lose_part(
    repairer: &mut Repairer<'_>,
    table: &TableState,
    rules: &BoundRules,
    part: &PartState,
    what: String,
) -> Result<Option<PartState>> {
    repairer.report.parts_lost += 1;
    repairer.report.records_lost += part.records;
    let (name, loss) = (FileName::Part(part.file).to_string(), whole_part(table, rules, part));
    repairer.report.findings.push(Finding::damage(name, None, what).costs(loss));
    Ok(None)
}

fn copy_part(
    repairer: &mut Repairer<'_>,
    part: &PartState,
    path: &Path,
    file: &dyn folddb_host::ReadFile,
    len_bytes: u64,
) -> Result<PartState> {
    let to = repairer.draft.join(FileName::Part(part.file).to_string());
    let files = &*repairer.options.host.files;
    copying::copy(files, (&[], file, 0..len_bytes), (path, &to), &mut |_| {})?;
    repairer.report.parts_whole += 1;
    repairer.report.records += part.records;
    Ok(part.clone())
}

/// Writes the readable records of a damaged part to a new one.
fn salvage_records(
    repairer: &mut Repairer<'_>,
    (table, rules, values): (&TableState, &BoundRules, &ValuesAtRest<'_>),
    part: &PartState,
    (path, (len_bytes, file)): (&Path, (u64, Arc<dyn folddb_host::ReadFile>)),
    opened: Result<Arc<Part>>,
) -> Result<Option<PartState>> {
    let number = repairer.numbers.take();
    let to = repairer.draft.join(FileName::Part(number).to_string());
    let new_file =
        repairer.options.host.files.create(&to).map_err(|error| Error::io("create", &to, error))?;
    // Up to where its past was folded; if unknown, all of it may be.
    let since = opened.as_ref().map_or(part.max_seq, |opened| opened.facts().kept_since);
    let times = folddb_merge::Times { since, ..folddb_merge::Times::default() };
    let writer = PartWriter::new(new_file, &to, number, write_options(rules, (true, false, times)));
    let mut salvager = Salvager {
        writer,
        order: &rules.order,
        low: part.trimmed.then_some(&part.low),
        last: None,
        out_of_order: 0,
        lost: LostValues::new(values, table.id, repairer.draft),
        faults: Vec::new(),
        error: None,
        file: &*file,
        search: Search { path, number: part.file, range: 0..len_bytes, implied_seq: part.max_seq },
    };
    match &opened {
        Ok(opened) => examine(opened, Depth::Records, &mut salvager),
        Err(error) => {
            let (offset, what) = (0, in_words(error));
            let search = salvager.search.clone();
            search_blocks(&*file, &search, &mut salvager);
            salvager.faults.push(Fault { offset, what, keys: Default::default(), unreached: None });
        }
    }
    let Salvager { writer, faults, error, lost, .. } = salvager;
    if let Some(error) = error {
        return Err(error);
    }
    let kept = writer.records();
    report_lost(repairer, table, rules, part, (&faults, lost), kept, opened.is_ok());
    if kept == 0 {
        drop(writer);
        let _ = repairer.options.host.files.remove(&to);
        repairer.report.parts_lost += 1;
        return Ok(None);
    }
    repairer.report.parts_salvaged += 1;
    repairer.report.records += kept;
    Ok(Some(part_state(number, &writer.finish()?)))
}

/// Reports what a part has lost.
fn report_lost(
    repairer: &mut Repairer<'_>,
    table: &TableState,
    rules: &BoundRules,
    part: &PartState,
    (faults, lost_values): (&[Fault], LostValues<'_>),
    kept: u64,
    by_index: bool,
) {
    let name = FileName::Part(part.file).to_string();
    let lost = if part.trimmed { None } else { Some(part.records.saturating_sub(kept)) };
    repairer.report.records_lost += lost.unwrap_or(lost_values.records());
    let lost = lost.map(|lost| lost.saturating_sub(lost_values.records()));
    repairer.report.findings.extend(lost_values.findings(&table.name, rules.rules.key_codec()));
    let of = if part.trimmed { String::new() } else { format!(" of {}", part.records) };
    for (index, fault) in faults.iter().enumerate() {
        let what = match index {
            0 => format!("{}; records that were saved: {kept}{of}", fault.what),
            _ => fault.what.clone(),
        };
        let mut finding = Finding::damage(&name, Some(fault.offset), what);
        if lost == Some(0) {
            finding.severity = Severity::Note;
        } else if by_index {
            let mut loss = Loss::of_span(&table.name, rules.rules.key_codec(), &fault.keys);
            loss.records = lost.filter(|_| faults.len() == 1);
            finding = finding.costs(loss);
        } else {
            finding = finding.costs(Loss { records: lost, ..whole_part(table, rules, part) });
        }
        repairer.report.findings.push(finding);
    }
}

fn whole_part(table: &TableState, rules: &BoundRules, part: &PartState) -> Loss {
    Loss::of_range(&table.name, rules.rules.key_codec(), &part.low, &part.high, Some(part.records))
}

/// Whether a part is intact, and the values that its records point to.
struct Faults<'a> {
    any: bool,
    /// This build of the library cannot read all of it.
    unread: Option<Error>,
    lost: LostValues<'a>,
}

impl Inspect for Faults<'_> {
    fn record(&mut self, _: u64, record: Record<'_>) {
        self.lost.is_lost(&record);
    }

    fn fault(&mut self, _: Fault) {
        self.any = true;
    }

    fn unread(&mut self, error: Error) {
        self.unread.get_or_insert(error);
    }
}

/// Writes the records of a part that are in order, and searches for blocks if its index is lost.
struct Salvager<'a> {
    writer: PartWriter,
    order: &'a KeyOrder,
    /// Keys below this one are in another part.
    low: Option<&'a Vec<u8>>,
    last: Option<(Vec<u8>, Seq)>,
    out_of_order: u64,
    /// Records whose values are lost are left out.
    lost: LostValues<'a>,
    faults: Vec<Fault>,
    error: Option<Error>,
    file: &'a dyn folddb_host::ReadFile,
    search: Search<'a>,
}

impl Salvager<'_> {
    fn is_next(&self, record: &Record<'_>) -> bool {
        let Some((key, seq)) = &self.last else { return true };
        match self.order.compare(key, record.key) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => record.seq < *seq,
            std::cmp::Ordering::Greater => false,
        }
    }
}

impl Inspect for Salvager<'_> {
    fn record(&mut self, _: u64, record: Record<'_>) {
        if self.error.is_some() || self.low.is_some_and(|low| self.order.compare(record.key, low).is_lt()) {
            return;
        }
        if !self.is_next(&record) || record.op().is_err() {
            self.out_of_order += 1;
            return;
        }
        if !self.lost.is_lost(&record) {
            self.error = self.writer.push(record).err();
        }
        let (key, seq) = self.last.get_or_insert_default();
        key.clear();
        key.extend_from_slice(record.key);
        *seq = record.seq;
    }

    fn unread(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    fn fault(&mut self, fault: Fault) {
        let unreached = fault.unreached.clone();
        self.faults.push(fault);
        if let Some(range) = unreached {
            let (file, search) = (self.file, Search { range, ..self.search.clone() });
            search_blocks(file, &search, self);
        }
    }
}
