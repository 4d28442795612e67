//! Salvages what is whole of a damaged store into a new one, and says what is lost. The old store is only read.
//!
//! ```text
//!   manifest   the newest, as far as it is whole, and the whole edits beyond; or the list of a backup
//!   parts      copied when every record can be read; else their whole blocks are written anew
//!   indexes    of hashed tables, as the checkpoint and the log have them, else as the value segments tell; saved anew
//!   values     copied as they are, with headers and maps written anew where these are damaged; what leads to a value that is lost is
//!              left out
//!   log        whole batches up to the first hole, or with `past_holes` all that can be found
//!   new store  built under another name, verified in every record, then given its own
//! ```
//!
//! The new store has an identity of its own, and batches of the log get new seqs. A key whose newest records are lost shows
//! what the older ones say: which keys that may be is told by the report.

mod unlisted;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, ErrorKind, Pointer, Record, RecordSink, Result, Seq, SharedMap, TableId};
use folddb_hash::{Change, CheckpointWriter, HashIndex, IndexOptions, Past};
use folddb_journal::{LogFault, LogReport, ReplayFrame};
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{self, LogOp};
use folddb_layout::version::Version;
use folddb_manifest::{IndexSegment, IndexStand, IndexState, PartState, RunState, State, TableState};
use folddb_rules::KeyOrder;
use folddb_rules::table_rules::BoundRules;
use folddb_run::{Depth, Fault, Inspect, Part, PartWriter, Search, Shared, examine, search_blocks};

use crate::indexing;
use crate::maintenance::at_rest::{AtRest, ValueLogFiles, index_name, is_hashed};
use crate::maintenance::backup::write_manifest;
use crate::maintenance::copying;
use crate::maintenance::finding::{Finding, Loss, Misfits, Severity};
use crate::maintenance::keep_out::refuse_inside_store;
use crate::maintenance::rebuilt::{LostBatches, Rebuilt};
use crate::maintenance::repair::unlisted::enter_unlisted;
use crate::maintenance::repair::values::{LostValues, find_values};
use crate::maintenance::survey::{Few, Survey, Told, bind, in_words, log_findings};
use crate::maintenance::verify::VerifyReport;
use crate::store::Store;
use folddb_engine::background::output::write_options;
use folddb_engine::edit::indexes::extractor;
use folddb_engine::edit::install::part_state;
use folddb_engine::options::{Durability, Options};
use folddb_engine::recovery::format;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::numbers::Numbers;
use folddb_engine::values::at_rest::ValuesAtRest;
use folddb_engine::values::load::rope_of;
use folddb_engine::write::commit;
use folddb_engine::write::encoded_batch::Encoded;

/// How a store is salvaged.
#[derive(Clone, Debug, Default)]
pub struct RepairOptions {
    past_holes: bool,
    list_from: Option<PathBuf>,
    rebuilt: Vec<String>,
}

impl RepairOptions {
    /// Takes batches beyond a hole in the log too. Default false: what is there is then a prefix of the log, and no batch is
    /// there whose predecessor is missing.
    pub fn past_holes(mut self, past_holes: bool) -> RepairOptions {
        self.past_holes = past_holes;
        self
    }

    /// Makes the runs of this table anew from its log, which the rules of the table keep for ever (`archive_log`), instead of taking
    /// over what can be read of them. May be said of several. Of the past of such a table there is then what was written, and not
    /// when.
    pub fn rebuild_index(mut self, table: &str) -> RepairOptions {
        self.rebuilt.push(table.to_owned());
        self
    }

    /// Takes the list of what lives from a backup of the same store, for one whose manifest is lost. Parts that were written
    /// since are not on it.
    pub fn list_from(mut self, backup: Option<PathBuf>) -> RepairOptions {
        self.list_from = backup;
        self
    }
}

/// What was salvaged, and what is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// The identity of the new store.
    pub store_id: u128,
    /// Parts that were copied whole.
    pub parts_whole: u64,
    /// Parts of which only some blocks could be read, or whose index was lost.
    pub parts_salvaged: u64,
    /// Parts of which nothing could be read.
    pub parts_lost: u64,
    /// Records in the parts of the new store.
    pub records: u64,
    /// Records that parts are known to have held, and that are lost.
    pub records_lost: u64,
    /// Batches taken from the log.
    pub batches: u64,
    /// Batches that stand beyond a hole of the log and were left.
    pub batches_left: u64,
    /// What was wrong: as damage what is lost with it, as a note where nothing is.
    pub findings: Vec<Finding>,
    /// The new store, verified in every record.
    pub verified: VerifyReport,
}

impl RepairReport {
    /// True when nothing is known to be lost.
    pub fn is_complete(&self) -> bool {
        self.lost().next().is_none()
    }

    /// What is lost.
    pub fn lost(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Damage)
    }
}

impl Store {
    /// Salvages what is whole of the store at `path` into a new one at `to`, which must not be there yet or be empty. The old
    /// store is only read, and need not open. `progress` is told the bytes of parts that are done, and all of them.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotFound`], [`ErrorKind::Locked`], [`ErrorKind::AlreadyExists`]; [`ErrorKind::Corruption`] where no manifest
    /// tells what lives; [`ErrorKind::RulesMismatch`] where the custom order of a table is not at hand; a failed write. What was
    /// made by then is removed.
    pub fn repair(
        path: impl AsRef<Path>,
        to: impl AsRef<Path>,
        how: &RepairOptions,
        options: &Options,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<RepairReport> {
        repair(path.as_ref(), to.as_ref(), how, options, &mut progress)
    }
}

fn repair(
    path: &Path,
    to: &Path,
    how: &RepairOptions,
    options: &Options,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<RepairReport> {
    let files = &*options.host.files;
    let survey = Survey::take(path, options)?;
    let mut told = list(&survey, how, options)?;
    let mut findings = without_loss(survey.findings(), &told);
    find_values(&survey, files, &mut told.state);
    note_flushed(&mut told.state);
    if !told.is_whole || is_log_lost(&survey, options, &told.state)? {
        findings.extend(enter_unlisted(&survey, files, &mut told.state));
    }
    let rebuilt = Rebuilt::prepare(&mut told.state, &how.rebuilt)?;
    let rules = rules_of(&told.state, options)?;
    refuse_inside_store(files, to, "the new store")?;
    check_free(options, to)?;
    let draft = draft_of(to)?;
    copying::remove_all(files, &draft); // of a repair that was cut short
    format::make_empty_dir(files, &draft)?;
    let mut mender = Mender {
        survey: &survey,
        options,
        draft: &draft,
        numbers: Numbers::starting_at(next_number(&survey, &told.state)),
        shared: Shared::new(1 << 20, 8),
        report: RepairReport { findings, ..RepairReport::default() },
        bytes_done: 0,
        bytes_total: told.state.tables.values().flat_map(parts_of).map(|part| part.file_bytes).sum(),
        progress,
    };
    let mended = mender.build(&told.state, &rules, &rebuilt, how.past_holes);
    let mut report = mender.report;
    let named = mended.and_then(|()| {
        files.rename(&draft, to).map_err(|error| Error::io("rename", &draft, error))?;
        format::sync_parent(files, to)
    });
    named.inspect_err(|_| copying::remove_all(files, &draft))?;
    report.verified = Store::verify(to, options, true, |_, _| {})?;
    report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(report)
}

/// What a part holds has been flushed, also where the edit that said so is lost and the merge that wrote
/// the part is not: the log must not be folded onto it once more.
fn note_flushed(state: &mut State) {
    let ids: Vec<TableId> = state.tables.iter().map(|(id, _)| id).collect();
    for id in ids {
        let Some(table) = state.tables.get_mut(&id) else { continue };
        let newest = parts_of(table).map(|part| part.max_seq).max().unwrap_or(0);
        table.flushed_seq = table.flushed_seq.max(newest);
    }
}

// ---- what there is to salvage ------------------------------------------------------------------------------

fn parts_of(table: &TableState) -> impl Iterator<Item = &PartState> {
    table.runs.iter().flat_map(|run| &run.parts)
}

/// What lives, by the store's own manifest or the one that was named.
fn list(survey: &Survey, how: &RepairOptions, options: &Options) -> Result<Told> {
    let Some(from) = &how.list_from else {
        return survey.told.clone().ok_or_else(|| {
            let message = format!(
                "no manifest in {} can be read, and parts do not say which table they belong to: name a backup of the store \
                 that lists them (--list-from)",
                survey.dir.display()
            );
            Error::new(ErrorKind::Corruption, message).advise("")
        });
    };
    let other = Survey::take(from, options)?;
    let told = other.told.clone().ok_or_else(|| {
        let message = format!("no manifest in {} can be read either", from.display());
        Error::new(ErrorKind::Corruption, message).advise("name another backup")
    })?;
    let own_id = survey.version.as_ref().ok().map(|version| version.store_id);
    if own_id.is_some_and(|store_id| store_id != told.state.store_id) {
        let message = format!("{} is not a backup of {}", from.display(), survey.dir.display());
        return Err(Error::invalid(message));
    }
    Ok(Told { is_whole: false, ..told })
}

fn rules_of(state: &State, options: &Options) -> Result<BTreeMap<TableId, BoundRules>> {
    state.tables.values().map(|table| Ok((table.id, bind(table, options)?))).collect()
}

/// What is wrong with FORMAT and the manifests is written anew; what it loses shows elsewhere.
fn without_loss(findings: Vec<Finding>, told: &Told) -> Vec<Finding> {
    let manifest = FileName::Manifest(told.number).to_string();
    let weigh = |mut finding: Finding| {
        if finding.file == manifest && finding.severity == Severity::Damage {
            if finding.losses.is_empty() {
                let tables = told.state.tables.values();
                let named = tables.map(|table| Loss::whole_table(&table.name));
                finding.losses = named.chain([Loss::unnamed_tables()]).collect();
            }
        } else {
            finding.severity = Severity::Note;
        }
        finding
    };
    findings.into_iter().map(weigh).collect()
}

/// Whether files of the log are missing that were needed when the list was written, from the first on: it is older than the store.
/// Values that an index of then leads to may be dead and gone since; of what took their place only segments tell.
fn is_log_lost(survey: &Survey, options: &Options, state: &State) -> Result<bool> {
    let log = survey.read_log(options, &survey.log_start(state), &mut |_, _| Ok(()))?;
    let is_gone = |fault: &LogFault| fault.file.is_none() && fault.lsn <= log.start_lsn;
    Ok(log.batches == 0 && log.faults.iter().any(is_gone))
}

fn next_number(survey: &Survey, state: &State) -> u64 {
    let largest =
        survey.files.iter().filter_map(|file| file.number()).map(|number| number.0).max().unwrap_or(0);
    state.next_number.max(largest.saturating_add(1))
}

fn check_free(options: &Options, to: &Path) -> Result<()> {
    match options.host.files.list(to) {
        Ok(names) if names.is_empty() => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(format::is_file(to)),
        _ => {
            let message = format!("{} exists already and is not empty", to.display());
            Err(Error::new(ErrorKind::AlreadyExists, message))
        }
    }
}

/// Where the new store is built, beside where it will stand.
fn draft_of(to: &Path) -> Result<PathBuf> {
    let Some(name) = to.file_name() else {
        return Err(Error::invalid(format!("{} is no name for a new store", to.display())));
    };
    let mut name = name.to_owned();
    name.push(".repairing");
    Ok(to.with_file_name(name))
}

// ---- building the new store --------------------------------------------------------------------------------

struct Mender<'a> {
    survey: &'a Survey,
    options: &'a Options,
    draft: &'a Path,
    numbers: Numbers,
    shared: Arc<Shared>,
    report: RepairReport,
    bytes_done: u64,
    bytes_total: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Mender<'_> {
    fn build(
        &mut self,
        state: &State,
        rules: &BTreeMap<TableId, BoundRules>,
        rebuilt: &Rebuilt,
        past_holes: bool,
    ) -> Result<()> {
        let host = &self.options.host;
        let mut next = State {
            store_id: format::new_store_id(self.options),
            log_open: false,
            feeds: Arc::default(), // what they would give is not what was salvaged
            ..state.clone()
        };
        self.drop_indexes_not_at_hand(&mut next, rules);
        self.values(&mut next)?;
        let (placed, options, draft) = (next.clone(), self.options, self.draft);
        let values = ValuesAtRest::new(&options.host.files, draft, &placed);
        let ids: Vec<TableId> = next.tables.iter().map(|(id, _)| id).collect();
        for id in ids {
            let Some(table) = next.tables.get_mut(&id) else { continue };
            let is_kept = rebuilt.logs.iter().any(|log| log.table == table.name);
            if rules.get(&table.id).is_some_and(|rules| rules.rules.archives_log) && !is_kept {
                let what =
                    "the log that it kept for ever ends here, and what is written from now on is not kept";
                self.report.findings.push(Finding::note(table.name.as_str(), what));
            }
            match rules.get(&table.id) {
                rules if index_of(rules).is_some() => to_be_built(table),
                Some(rules) => self.table(table, rules, &values)?,
                None => {}
            }
            let flushed_seq = table.flushed_seq;
            next.last_seq = next.last_seq.max(flushed_seq);
        }
        let hashed: Vec<TableId> =
            state.tables.values().filter(|table| is_hashed(table)).map(|table| table.id).collect();
        for &table in &hashed {
            self.index((state, &placed), table, &mut next, past_holes)?;
        }
        next.log_start_lsn = next.log_start_lsn.max(next.durable_lsn);
        next.durable_lsn = next.log_start_lsn;
        next.log_copied = Some(false); // it has no log at all
        next.next_number = self.numbers.peek();
        self.report.store_id = next.store_id;
        let version = Version::current(next.store_id);
        write_manifest(host, self.draft, next)?;
        format::write_format(&*host.files, self.draft, &version)?;
        let store = Store::open(self.draft, self.options.clone())?;
        self.rebuild(&store, state, rebuilt)?;
        self.log(&store, state, past_holes)?;
        self.build_indexes(&store)?;
        store.close()
    }

    /// Leaves out indexes whose table is gone, or whose terms cannot be taken here.
    fn drop_indexes_not_at_hand(&mut self, next: &mut State, rules: &BTreeMap<TableId, BoundRules>) {
        let names: BTreeSet<String> = next.tables.values().map(|table| table.name.clone()).collect();
        let findings = &mut self.report.findings;
        let mut is_at_hand = |table: &TableState| {
            let Some((rules, of)) =
                rules.get(&table.id).and_then(|rules| Some((rules, index_of(Some(rules))?)))
            else {
                return true;
            };
            let taken = rules.rules.indexes.first().map(|rule| &rule.terms);
            let taken = taken.map_or(Ok(()), |rule| extractor(rule, rules, &self.options.custom).map(drop));
            if let Err(why) = &taken {
                let what = format!("the index is left out, to be added again: {why}");
                findings.push(Finding::note(table.name.as_str(), what));
            }
            taken.is_ok() && names.contains(of)
        };
        let gone: Vec<TableId> =
            next.tables.values().filter(|table| !is_at_hand(table)).map(|table| table.id).collect();
        gone.iter().for_each(|id| _ = next.tables.remove(id));
    }

    /// Builds the indexes anew, of what is left of their tables.
    fn build_indexes(&self, store: &Store) -> Result<()> {
        let engine = store.engine();
        for table in engine.catalog().own() {
            for index in table.indexes().iter() {
                indexing::build_index(engine, table, index, &mut |_| ControlFlow::Continue(()))?;
            }
        }
        Ok(())
    }

    /// Saves the index of a hashed table anew, with all keys whose records are whole. `placed` is where the values lie in the new store.
    fn index(
        &mut self,
        (state, placed): (&State, &State),
        id: TableId,
        next: &mut State,
        past_holes: bool,
    ) -> Result<()> {
        let (Some(table), Some(new)) = (state.tables.get(&id), next.tables.get_mut(&id)) else {
            return Ok(());
        };
        let (files, dir) = (&self.options.host.files, &self.survey.dir);
        let name = table.index.as_ref().map_or_else(|| "the log".to_owned(), |saved| index_name(saved.file));
        let mut value_log = ValueLogFiles::new(files, self.draft, placed);
        let mut index = AtRest::open(files, dir, state.store_id, table, true);
        let whole_loss =
            || Loss { keys: "keys that are in no order".to_owned(), ..Loss::whole_table(&table.name) };
        let why = match index.faults.first() {
            Some(fault) => Some(in_words(fault)),
            None if is_log_lost(self.survey, self.options, state)? => {
                Some("the log is lost from where it goes on behind this index".to_owned())
            }
            None => None,
        };
        let is_rebuilt = why.is_some();
        if let Some(why) = why {
            let what = format!(
                "{why}; the index was made anew from the value segments: keys that were deleted, and values whose batch failed, may be \
                 back"
            );
            self.report.findings.push(Finding::damage(&name, None, what).costs(whole_loss()));
            index = AtRest::empty(state.store_id, table);
            index.rebuild(&mut value_log)?;
        }
        let values = ValuesAtRest::new(files, dir, state);
        let (mut ended, mut failed) = (false, None);
        let from = self.survey.vouched_start(self.options, state)?;
        self.survey.read_log(self.options, &from, &mut |frame, is_beyond| {
            let is_lost = !frame.is_durable && !values.has(&frame).unwrap_or(false);
            ended |= is_lost;
            // A batch that has lost a value is left out whole, as of sorted tables; what comes behind it no longer fits the slots.
            if is_lost || (ended || is_beyond) && !past_holes {
                return Ok(());
            }
            for (seq, record) in (frame.first_seq..).zip(frame::records(frame.payload).flatten()) {
                if record.table == id {
                    let taken = match is_rebuilt || ended {
                        false => index.take(&record, seq),
                        true => index.take_by_key(&mut value_log, &record),
                    };
                    failed = failed.take().or(taken.err());
                }
            }
            Ok(())
        })?;
        if let Some(error) = failed {
            return Err(error.context(format!("the index of table `{}`", table.name)));
        }
        let saved = self.save_index(&name, &index, &mut value_log)?;
        let (state, misfits) = saved;
        self.report.records += state.keys;
        for (finding, misfit) in misfits.findings() {
            self.report.records_lost += misfit.records;
            let loss = Loss { records: Some(misfit.records), ..whole_loss() };
            self.report.findings.push(finding.costs(loss));
        }
        (new.index, new.changes) = (Some(state), None);
        Ok(())
    }

    /// Writes a checkpoint of the keys of an index whose records are whole. Says which are not.
    fn save_index(
        &mut self,
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
                    misfits.add_value(self.draft, name, &[], &error, "the value of a key is lost");
                }
            }
            Ok(())
        })?;
        let number = self.numbers.take();
        let to = self.draft.join(index_name(number));
        let file = self.options.host.files.create(&to).map_err(|error| Error::io("create", &to, error))?;
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

    fn table(&mut self, table: &mut TableState, rules: &BoundRules, values: &ValuesAtRest<'_>) -> Result<()> {
        let mut runs = Vec::new();
        for run in std::mem::take(&mut table.runs) {
            let mut parts = Vec::new();
            for part in &run.parts {
                parts.extend(self.part(table, rules, part, values)?);
                self.bytes_done += part.file_bytes;
                (self.progress)(self.bytes_done, self.bytes_total);
            }
            if !parts.is_empty() {
                runs.push(RunState { parts, ..run });
            }
        }
        table.runs = runs;
        Ok(())
    }

    /// Copies a part, or writes anew what can be read of it. None where that is nothing.
    fn part(
        &mut self,
        table: &TableState,
        rules: &BoundRules,
        part: &PartState,
        values: &ValuesAtRest<'_>,
    ) -> Result<Option<PartState>> {
        let files = &self.options.host.files;
        let name = FileName::Part(part.file);
        let path = self.survey.path(name);
        let file = match files.open(&path).and_then(|file| Ok((file.len_bytes()?, file))) {
            Ok(file) => file,
            Err(error) => {
                self.report.parts_lost += 1;
                self.report.records_lost += part.records;
                let what = format!("it cannot be read, and all of it is lost: {error}");
                let loss = whole_part(table, rules, part);
                self.report.findings.push(Finding::damage(name.to_string(), None, what).costs(loss));
                return Ok(None);
            }
        };
        let opened = Part::open(files, &path, part.file, &rules.order, &self.shared);
        let opened = opened.and_then(|opened| match opened.facts().file_bytes == part.file_bytes {
            true => Ok(opened),
            false => Err(Error::corrupt(&path, 0, "it is of another length than the manifest says")),
        });
        if let Ok(opened) = &opened {
            let mut look = Faults { any: false, lost: LostValues::new(values, table.id, self.draft) };
            examine(opened, Depth::Records, &mut look);
            if !look.any && look.lost.is_empty() {
                return self.copy(part, &path, &*file.1, file.0).map(Some);
            }
        }
        self.salvage((table, rules, values), part, (&path, file), opened)
    }

    fn copy(
        &mut self,
        part: &PartState,
        path: &Path,
        file: &dyn folddb_host::ReadFile,
        len_bytes: u64,
    ) -> Result<PartState> {
        let to = self.draft.join(FileName::Part(part.file).to_string());
        let files = &*self.options.host.files;
        copying::copy(files, (&[], file, 0..len_bytes), (path, &to), &mut |_| {})?;
        self.report.parts_whole += 1;
        self.report.records += part.records;
        Ok(part.clone())
    }

    /// Writes the records of a damaged part that can be read to a new one.
    fn salvage(
        &mut self,
        (table, rules, values): (&TableState, &BoundRules, &ValuesAtRest<'_>),
        part: &PartState,
        (path, (len_bytes, file)): (&Path, (u64, Arc<dyn folddb_host::ReadFile>)),
        opened: Result<Arc<Part>>,
    ) -> Result<Option<PartState>> {
        let number = self.numbers.take();
        let to = self.draft.join(FileName::Part(number).to_string());
        let new_file =
            self.options.host.files.create(&to).map_err(|error| Error::io("create", &to, error))?;
        // Up to where its past was folded; all of it may be, where nothing tells.
        let since = opened.as_ref().map_or(part.max_seq, |opened| opened.facts().kept_since);
        let times = folddb_merge::Times { since, ..folddb_merge::Times::default() };
        let writer = PartWriter::new(new_file, &to, number, write_options(rules, true, false, times));
        let mut salvager = Salvager {
            writer,
            order: &rules.order,
            low: part.trimmed.then_some(&part.low),
            last: None,
            out_of_order: 0,
            lost: LostValues::new(values, table.id, self.draft),
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
        self.tell(table, rules, part, (&faults, lost), kept, opened.is_ok());
        if kept == 0 {
            drop(writer);
            let _ = self.options.host.files.remove(&to);
            self.report.parts_lost += 1;
            return Ok(None);
        }
        self.report.parts_salvaged += 1;
        self.report.records += kept;
        Ok(Some(part_state(number, &writer.finish()?)))
    }

    /// Says what a part has lost.
    fn tell(
        &mut self,
        table: &TableState,
        rules: &BoundRules,
        part: &PartState,
        (faults, lost_values): (&[Fault], LostValues<'_>),
        kept: u64,
        by_index: bool,
    ) {
        let name = FileName::Part(part.file).to_string();
        let lost = if part.trimmed { None } else { Some(part.records.saturating_sub(kept)) };
        self.report.records_lost += lost.unwrap_or(lost_values.records());
        let lost = lost.map(|lost| lost.saturating_sub(lost_values.records()));
        self.report.findings.extend(lost_values.findings(&table.name, rules.rules.key_codec()));
        let of = if part.trimmed { String::new() } else { format!(" of {}", part.records) };
        for (index, fault) in faults.iter().enumerate() {
            let what = match index {
                0 => format!("{}; {kept}{of} records were saved", fault.what),
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
            self.report.findings.push(finding);
        }
    }

    // ---- the log -------------------------------------------------------------------------------------------

    /// Commits what the logs hold that tables keep for ever, up to where the log of all begins.
    fn rebuild(&mut self, store: &Store, state: &State, rebuilt: &Rebuilt) -> Result<()> {
        let engine = store.engine();
        rebuilt.archive_logs(engine)?;
        let values = ValuesAtRest::new(&self.options.host.files, &self.survey.dir, state);
        let mut encoded = Encoded::default();
        for log in &rebuilt.logs {
            let core = Arc::clone(store.bytes_table(&log.table)?.core());
            let cores = BTreeMap::from([(core.id, core)]);
            let (mut batches, mut lost) = (0_u64, LostBatches::default());
            log.each(&self.options.host, &self.survey.dir, state, &mut |frame| {
                if let Err(why) = encode(frame, state, &cores, &values, &mut encoded) {
                    lost.add(frame, why);
                } else if encoded.count > 0 {
                    batches += 1;
                    commit_again(engine, frame, &mut encoded)?;
                }
                Ok(())
            })?;
            let what = format!("table `{}` was made anew from the {batches} batches of its log", log.table);
            self.report.findings.push(Finding::note("the log", what));
            self.report.findings.extend(lost.finding(&log.table));
        }
        Ok(())
    }

    /// Commits the batches of the old log to the new store, in their order.
    fn log(&mut self, store: &Store, state: &State, past_holes: bool) -> Result<()> {
        let engine = store.engine();
        let cores: BTreeMap<TableId, Arc<TableCore>> =
            engine.catalog().all().map(|core| (core.id, Arc::clone(core))).collect();
        let (mut encoded, mut failed) = (Encoded::default(), None);
        let (mut taken, mut left, mut few) = (0, 0, Few::default());
        let values = ValuesAtRest::new(&self.options.host.files, &self.survey.dir, state);
        let mut ended = false;
        let from = self.survey.vouched_start(self.options, state)?;
        let mut log = self.survey.read_log(self.options, &from, &mut |frame, is_beyond| {
            // Values of what was never promised may not have got to the disk: the log ends there.
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
        few.tell(&mut log);
        if let Some(error) = failed {
            return Err(error.context("the batches of the log"));
        }
        (self.report.batches, self.report.batches_left) = (taken, left);
        self.tell_log(&log, state, left);
        Ok(())
    }

    fn tell_log(&mut self, log: &LogReport, state: &State, left: u64) {
        self.report.findings.extend(log_findings(log, state));
        if left == 0 {
            return;
        }
        // What stands beyond a torn end was promised to survive the death of the process, and not a power cut. Nothing
        // tells which of the two it was.
        let what = match log.faults.is_empty() {
            true => format!(
                "{left} whole batches stand beyond a torn end, or a value that is not whole, and were left: a power cut leaves such an \
                 end, and then nobody was promised them; where only the process died they were acknowledged, and --past-holes takes \
                 them, as far as they are whole"
            ),
            false => {
                format!(
                    "{left} whole batches stand beyond the first hole and were left; --past-holes takes them"
                )
            }
        };
        let losses = state.tables.values().map(|table| Loss::whole_table(&table.name)).collect();
        self.report.findings.push(Finding { losses, ..Finding::damage("the log", None, what) });
    }
}

/// Commits a batch of an old log. What time it was when that was written is known from now on, as after a recovery: what had
/// expired by then does not come to life.
fn commit_again(engine: &Arc<Engine>, frame: &ReplayFrame<'_>, encoded: &mut Encoded) -> Result<()> {
    if let Some(time_ms) = frame.time_ms {
        engine.times.note(engine.published() + 1, time_ms);
    }
    commit::commit(engine, encoded, Durability::Process).map(drop)
}

/// The table that this is an index of, where it is one.
fn index_of(rules: Option<&BoundRules>) -> Option<&String> {
    rules?.rules.index_of.as_ref()
}

/// An index is not salvaged, but built anew.
fn to_be_built(index: &mut TableState) {
    index.runs.clear();
    index.range_deletes = SharedMap::default();
    index.stand = IndexStand { since: 0, building: Some(Vec::new()) };
}

fn whole_part(table: &TableState, rules: &BoundRules, part: &PartState) -> Loss {
    Loss::of_range(&table.name, rules.rules.key_codec(), &part.low, &part.high, Some(part.records))
}

/// A batch of the old log as the new store takes it: without tables that are gone, and without what is in runs.
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
            continue; // it is in the index that was saved, or comes with the record that it is of
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

/// Whether a part is whole, and the values that its records lead to.
struct Faults<'a> {
    any: bool,
    lost: LostValues<'a>,
}

impl Inspect for Faults<'_> {
    fn record(&mut self, _: u64, record: Record<'_>) {
        self.lost.is_lost(&record);
    }

    fn fault(&mut self, _: Fault) {
        self.any = true;
    }
}

/// Writes the records of a part that come in order, and searches where its index is lost.
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

    fn fault(&mut self, fault: Fault) {
        let unreached = fault.unreached.clone();
        self.faults.push(fault);
        if let Some(range) = unreached {
            let (file, search) = (self.file, Search { range, ..self.search.clone() });
            search_blocks(file, &search, self);
        }
    }
}
