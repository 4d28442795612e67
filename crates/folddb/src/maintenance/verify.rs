//! Is a store whole? Reads all of it, past whatever is wrong, and lists that.
//!
//! ```text
//!   always    FORMAT, every edit of the manifests, the log's frames and chain; of each part that is listed: that it is there,
//!             its length, footer, facts, index; that parts of a run are disjoint; files that nobody lists; the values of
//!             batches for whose durability nothing vouches, as an opening reads them, since it cuts the log at the first
//!             that is not whole
//!   deep      every block, the order of keys and seqs, filters, and that each key and value is one of its table; the logs that
//!             tables keep for ever, with the values that these lead to
//! ```
//!
//! It takes the lock as readers do, changes nothing, and works on stores that do not open.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use folddb_base::{Error, FileNumber, Lsn, Op, Record, Result, Rope, Seq, Stamp};
use folddb_journal::ReplayFrame;
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{self, LogOp};
use folddb_layout::values::{VALUES_HEADER_BYTES, check_header};
use folddb_manifest::{PartState, RunState, State, TableState};
use folddb_rules::table_rules::BoundRules;
use folddb_run::{Depth, Fault, Inspect, KeySpan, Part, Shared};
use folddb_value_log::relocated::RelocatedFile;

use crate::maintenance::at_rest::{AtRest, ValueLogFiles, index_name, is_hashed};
use crate::maintenance::finding::{Finding, Loss, Misfits, Severity};
use crate::maintenance::indexes;
use crate::maintenance::rebuilt::damage_of_archived_logs;
use crate::maintenance::refolded::Refolded;
use crate::maintenance::survey::{Few, Survey, bind, in_words, log_findings};
use crate::store::Store;
use folddb_engine::options::Options;
use folddb_engine::recovery::listed::check_relocated;
use folddb_engine::values::at_rest::ValuesAtRest;
use folddb_engine::values::hashed_record::is_long;
use folddb_engine::values::load::rope_of;

/// Memory for the index of one part and some blocks.
const CACHE_BYTES: u64 = 1 << 20;

const OPEN_FILES: usize = 8;

/// What a verification looked at, and what it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// True when every record was read, and not only what frames them.
    pub deep: bool,
    /// The identity of the store, where it can be told.
    pub store_id: Option<u128>,
    /// What was looked at.
    pub checked: Checked,
    /// What is not as it should be: the heaviest first, else in the order of the look.
    pub findings: Vec<Finding>,
}

/// What was looked at, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Edits of the manifest that counts.
    pub edits: u64,
    /// Tables.
    pub tables: u64,
    /// Runs.
    pub runs: u64,
    /// Parts.
    pub parts: u64,
    /// Records in parts: read where it was deep, else by the facts.
    pub records: u64,
    /// Segments of the log that are needed.
    pub segments: u64,
    /// Batches in them.
    pub batches: u64,
    /// Of these, the whole ones at the end that the next opening cuts: something before them is not whole, and nothing vouches
    /// for any of it. A power cut leaves such an end, and then nobody was promised them.
    pub batches_cut: u64,
    /// The log is needed from this LSN on.
    pub log_start_lsn: Lsn,
    /// Where its frames end before the first place that is not whole.
    pub log_end_lsn: Lsn,
    /// Bytes of parts that were read or are framed by what was.
    pub bytes: u64,
}

impl VerifyReport {
    /// True when nothing is damaged.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity < Severity::Damage)
    }

    /// What is damaged.
    pub fn damage(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Damage)
    }
}

impl Store {
    /// Checks the files of a store that nobody is writing to; `deep` reads every record. The store need not open.
    /// `progress` is told the bytes read so far, and those of all files that will be.
    ///
    /// # Errors
    /// [`crate::ErrorKind::StoreNotFound`], [`crate::ErrorKind::Locked`]; a directory that cannot be listed. Whatever else is
    /// wrong is a finding of the report.
    pub fn verify(
        path: impl AsRef<Path>,
        options: &Options,
        deep: bool,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<VerifyReport> {
        let survey = Survey::take(path.as_ref(), options)?;
        verify(&survey, options, deep, &mut progress)
    }
}

/// Checks what a survey has found.
pub(crate) fn verify(
    survey: &Survey,
    options: &Options,
    deep: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<VerifyReport> {
    let mut report = VerifyReport { deep, findings: survey.findings(), ..VerifyReport::default() };
    if let Some(told) = &survey.told {
        report.store_id = Some(told.state.store_id);
        report.checked.edits = told.edits;
        let mut look = Look {
            survey,
            options,
            at_rest: ValuesAtRest::new(&options.host.files, &survey.dir, &told.state),
            depth: if deep { Depth::Records } else { Depth::Index },
            shared: Shared::new(CACHE_BYTES, OPEN_FILES),
            report: &mut report,
            seen: BTreeSet::new(),
            is_missing_parts: false,
            bytes_total: told.state.tables.values().flat_map(parts_of).map(|part| part.file_bytes).sum(),
            progress,
        };
        look.values(&told.state);
        look.tables(&told.state);
        look.log(&told.state)?;
        let damage_of_kept = match deep {
            true => damage_of_archived_logs(&options.host, &survey.dir, &told.state, &look.at_rest)?,
            false => Vec::new(),
        };
        let has_indexes = told.state.tables.values().any(|table| is_index(table, options));
        if deep && has_indexes && report.is_clean() {
            report.findings.extend(indexes::findings(&survey.dir, options, &manifest_name(survey)));
        }
        report.findings.extend(damage_of_kept);
    }
    report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(report)
}

fn manifest_name(survey: &Survey) -> String {
    let told = survey.told.as_ref();
    told.map_or_else(|| "MANIFEST".to_owned(), |told| FileName::Manifest(told.number).to_string())
}

/// Whether a table is an index of another.
fn is_index(table: &TableState, options: &Options) -> bool {
    bind(table, options).is_ok_and(|rules| rules.rules.index_of.is_some())
}

fn parts_of(table: &TableState) -> impl Iterator<Item = &PartState> {
    table.runs.iter().flat_map(|run| &run.parts)
}

struct Look<'a> {
    survey: &'a Survey,
    options: &'a Options,
    at_rest: ValuesAtRest<'a>,
    depth: Depth,
    shared: Arc<Shared>,
    report: &'a mut VerifyReport,
    /// The files that tables have claimed.
    seen: BTreeSet<FileNumber>,
    /// Some part that is listed is not there.
    is_missing_parts: bool,
    bytes_total: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Look<'_> {
    fn tables(&mut self, state: &State) {
        for table in state.tables.values() {
            self.report.checked.tables += 1;
            match bind(table, self.options) {
                Ok(rules) => self.table(table, &rules),
                Err(error) => self.unreadable_table(table, &error),
            }
        }
    }

    /// Each value segment that is listed is there, and as long as it says. What it holds is checked from where pointers lead.
    fn values(&mut self, state: &State) {
        for (&number, end) in &state.values {
            let name = state.values_name(number);
            let what = match self.options.host.files.len_bytes(&self.survey.path(name)) {
                Err(error)
                    if state.is_directory(number) && error.kind() == std::io::ErrorKind::IsADirectory =>
                {
                    continue;
                }
                Ok(_) if state.is_directory(number) => continue,
                Ok(len) if end.is_none_or(|end| len >= end) => match self.values_header(number) {
                    Ok(()) => continue,
                    Err(error) => in_words(&error),
                },
                Ok(len) => format!("it has {len} bytes, and its values need {}", end.unwrap_or(0)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    "the manifest lists it, and it is not there".to_owned()
                }
                Err(error) => format!("cannot be read: {error}"),
            };
            self.lost_values(state, Finding::damage(name.to_string(), None, what));
        }
        self.relocated_values(state);
    }

    /// The header of a value segment is that of this segment.
    fn values_header(&self, number: FileNumber) -> Result<()> {
        let path = self.survey.path(FileName::Values(number));
        let mut header = vec![0; VALUES_HEADER_BYTES];
        let read = self.options.host.files.open(&path).and_then(|file| file.read_exact_at(0, &mut header));
        read.map_err(|error| Error::io("read", &path, error))?;
        check_header(&header, number).map_err(|cause| Error::corrupt(&path, 0, cause))
    }

    /// Each file of relocated values that is listed is whole in what leads to its records; every page of its map is read where all is.
    fn relocated_values(&mut self, state: &State) {
        let files = &*self.options.host.files;
        for (&number, &file_bytes) in &state.relocated_files {
            let looked = RelocatedFile::open(files, &self.survey.dir, number).and_then(|file| {
                check_relocated(&file, file_bytes, state.moved_in(number))?;
                let carried = file.carried().iter().filter(|_| self.depth == Depth::Records);
                carried.map(|one| one.segment).try_for_each(|segment| file.moves(segment, &mut |_| Ok(())))
            });
            if let Err(error) = looked {
                let offset = error.damage().and_then(|damage| damage.offset);
                let name = FileName::Relocated(number).to_string();
                self.lost_values(state, Finding::damage(name, offset, in_words(&error)));
            }
        }
    }

    fn lost_values(&mut self, state: &State, finding: Finding) {
        let losses = state.tables.values().map(|table| Loss {
            records: None,
            keys: "keys whose values lie in it".to_owned(),
            ..Loss::whole_table(&table.name)
        });
        self.report.findings.push(Finding { losses: losses.collect(), ..finding });
    }

    /// Without its order nothing of a table can be checked. That is damage only where the rules are no rules.
    fn unreadable_table(&mut self, table: &TableState, error: &folddb_base::Error) {
        let file = self.manifest_name();
        let what = format!("{}: its parts are not checked", error.message());
        let finding = match error.kind() {
            crate::ErrorKind::Corruption => {
                Finding::damage(file, None, what).costs(Loss::whole_table(&table.name))
            }
            _ => Finding::note(file, what),
        };
        self.report.findings.push(finding);
    }

    fn manifest_name(&self) -> String {
        manifest_name(self.survey)
    }

    fn table(&mut self, table: &TableState, rules: &BoundRules) {
        if let Some(missing) = &rules.missing {
            let what = format!("table `{}`: {missing}, so its values are not checked", table.name);
            self.report.findings.push(Finding::note(self.manifest_name(), what));
        }
        for range in table.range_deletes.values() {
            let is_upright = rules.order.compare(&range.from, &range.to).is_lt();
            if !is_upright || range.seq > table.flushed_seq {
                let (name, seq) = (&table.name, range.seq);
                let what = format!("table `{name}`: the range delete at seq {seq} makes no sense");
                let finding = Finding::damage(self.manifest_name(), None, what);
                self.report.findings.push(finding.costs(Loss::whole_table(name)));
            }
        }
        for run in &table.runs {
            self.report.checked.runs += 1;
            self.run(table, rules, run);
        }
    }

    /// The parts of a run are disjoint and in order, so no key is in two of them.
    fn run(&mut self, table: &TableState, rules: &BoundRules, run: &RunState) {
        let compare = |a: &[u8], b: &[u8]| rules.order.compare(a, b);
        let mut before: Option<&PartState> = None;
        for part in &run.parts {
            let overlaps = before.is_some_and(|before| compare(&before.high, &part.low).is_ge());
            if overlaps || compare(&part.low, &part.high).is_gt() {
                let name = FileName::Part(part.file).to_string();
                let what = format!("the manifest has its keys overlap with others of run {}", run.id);
                let loss = whole_part(table, rules, part);
                self.report.findings.push(Finding::damage(name, None, what).costs(loss));
            }
            before = Some(part);
            self.part(table, rules, part);
        }
    }

    fn part(&mut self, table: &TableState, rules: &BoundRules, state: &PartState) {
        let file = FileName::Part(state.file);
        let (name, path) = (file.to_string(), self.survey.path(file));
        self.report.checked.parts += 1;
        let lost = |offset: Option<u64>, what: String| {
            Finding::damage(&name, offset, what).costs(whole_part(table, rules, state))
        };
        if !self.seen.insert(state.file) {
            self.report.findings.push(lost(None, "the manifest lists it twice".to_owned()));
            return;
        }
        match self.options.host.files.len_bytes(&path) {
            Ok(len) if len == state.file_bytes => {}
            Ok(len) => {
                let what = format!("it has {len} bytes and not {}", state.file_bytes);
                self.report.findings.push(lost(Some(len.min(state.file_bytes)), what));
                return self.advance(state.file_bytes);
            }
            Err(error) => {
                self.is_missing_parts |= error.kind() == std::io::ErrorKind::NotFound;
                let what = match error.kind() {
                    std::io::ErrorKind::NotFound => "missing: the manifest lists it".to_owned(),
                    _ => format!("cannot be read: {error}"),
                };
                self.report.findings.push(lost(None, what));
                return self.advance(state.file_bytes);
            }
        }
        let opened = Part::open(&self.options.host.files, &path, state.file, &rules.order, &self.shared);
        let part = match opened {
            Ok(part) => part,
            Err(error) => {
                self.report
                    .findings
                    .push(lost(error.damage().and_then(|damage| damage.offset), in_words(&error)));
                return self.advance(state.file_bytes);
            }
        };
        if let Some(difference) = difference(state, &part, rules) {
            let what = format!("it is not the part that the manifest lists: {difference}");
            self.report.findings.push(lost(None, what));
        }
        self.inside(table, rules, state, &part);
    }

    /// Looks into a part whose frame is whole.
    fn inside(&mut self, table: &TableState, rules: &BoundRules, state: &PartState, part: &Arc<Part>) {
        let name = FileName::Part(state.file).to_string();
        let before = self.report.checked.bytes;
        let mut inspector = Inspector {
            look: self,
            table,
            rules,
            name: &name,
            records: 0,
            misfits: Misfits::default(),
            has_faults: false,
            refolded: rules.rules.summaries.then(Refolded::default),
        };
        folddb_run::examine(part, inspector.look.depth, &mut inspector);
        inspector.tell_misfits();
        inspector.tell_refolded(part);
        let records = inspector.records;
        self.report.checked.records += if self.depth == Depth::Records { records } else { state.records };
        let read = self.report.checked.bytes - before;
        self.advance(state.file_bytes.saturating_sub(read));
        part.forget();
    }

    fn advance(&mut self, bytes: u64) {
        self.report.checked.bytes += bytes;
        (self.progress)(self.report.checked.bytes, self.bytes_total);
    }

    fn log(&mut self, state: &State) -> Result<()> {
        let (survey, options, depth) = (self.survey, self.options, self.depth);
        let rules: Vec<(&TableState, BoundRules)> =
            state.tables.values().filter_map(|table| Some((table, bind(table, options).ok()?))).collect();
        let values = &self.at_rest;
        let from = survey.vouched_start(options, state)?;
        let (mut lost, mut cut, mut few) = (None, 0, Few::default());
        let tables = state.tables.values().filter(|table| is_hashed(table));
        let at_rest = |table| {
            AtRest::open(&options.host.files, &survey.dir, state.store_id, table, depth == Depth::Records)
        };
        let hashed: Vec<AtRest> = tables.map(at_rest).collect();
        let mut log = survey.read_log(options, &from, &mut |frame, _| {
            if !frame.is_durable && lost.is_none() {
                lost = lost_value(&frame, values);
            }
            cut += u64::from(lost.is_some());
            let taken = match depth == Depth::Records && lost.is_none() {
                true => take_hashed(&frame, &hashed),
                false => Ok(()),
            };
            few.pass(taken.and_then(|()| check_frame(&frame, &rules, depth, values)))
        })?;
        few.tell(&mut log);
        for one in &hashed {
            self.hashed(state, one);
        }
        if let Some(torn) = &log.torn
            && lost.as_ref().is_none_or(|lost| torn.lsn < lost.lsn)
        {
            cut = log.batches_beyond;
        }
        self.report.findings.extend(lost.map(|lost| lost.finding(cut)));
        self.report.checked.batches_cut = cut;
        self.report.checked.segments = log.needed;
        self.report.checked.batches = log.batches + log.batches_beyond;
        (self.report.checked.log_start_lsn, self.report.checked.log_end_lsn) = (log.start_lsn, log.end_lsn);
        if let Some(torn) = log.torn {
            let what = format!(
                "a torn end: {} bytes from LSN {} on were being written and nobody was promised them; they are cut at \
                 the next opening",
                torn.bytes, torn.lsn
            );
            self.report.findings.push(Finding::note(FileName::Log(torn.file).to_string(), what));
        }
        self.report.findings.extend(log_findings(&log, state));
        if !log.faults.is_empty() || self.is_missing_parts {
            self.suspect_manifest();
        }
        Ok(())
    }

    /// The index of a hashed table: its checkpoint, and where it was deep, that each of its keys leads to a record of that key.
    fn hashed(&mut self, state: &State, index: &AtRest) {
        let Some(table) = state.tables.get(&index.table) else { return };
        let name = table.index.as_ref().map_or_else(|| "the log".to_owned(), |saved| index_name(saved.file));
        let loss = || Loss {
            records: None,
            keys: "keys that are in no order".to_owned(),
            ..Loss::whole_table(&table.name)
        };
        for fault in &index.faults {
            let offset = fault.damage().and_then(|damage| damage.offset);
            self.report.findings.push(Finding::damage(&name, offset, in_words(fault)).costs(loss()));
        }
        let Ok(rules) = bind(table, self.options) else { return };
        if self.depth != Depth::Records {
            self.report.checked.records += table.index.as_ref().map_or(0, |saved| saved.keys);
            return;
        }
        let mut value_log = ValueLogFiles::new(&self.options.host.files, &self.survey.dir, state);
        let (mut records, mut misfits) = (0, Misfits::default());
        let mut counted: BTreeMap<u32, u64> = BTreeMap::new();
        let walked = index.each(&mut value_log, &mut |point, slot, found| {
            records += 1;
            *counted.entry(slot.segment()).or_default() += 1;
            match found {
                Err(error) => {
                    misfits.add_value(&self.survey.dir, &name, &[], &error, "the value of a key");
                }
                Ok((found, record)) => {
                    let value = found.is_alive(0).then(|| found.value(record));
                    let wrong = check_hashed(&rules, (index, point), (found.key(record), value));
                    wrong.into_iter().for_each(|wrong| misfits.add(&name, None, None, wrong));
                }
            }
            Ok(())
        });
        self.report.checked.records += records;
        if let Err(unread) = walked {
            misfits.add(&name, None, None, unread.to_string());
        }
        for (finding, misfit) in misfits.findings() {
            let loss = Loss { records: Some(misfit.records), ..loss() };
            self.report.findings.push(finding.costs(loss));
        }
        if index.faults.is_empty() && counted != index.quota() {
            let what = format!(
                "its keys lead to value segments otherwise than the manifest has counted: {counted:?}"
            );
            self.report.findings.push(Finding::damage(&name, None, what));
        }
        if index.misfits() > 0 && index.faults.is_empty() {
            let what = format!("the log speaks of {} keys otherwise than it does", index.misfits());
            self.report.findings.push(Finding::damage(&name, None, what).costs(loss()));
        }
    }

    /// Where something is lacking, an edit that is not whole may be what is wrong: it may have said that nothing of that
    /// is needed.
    fn suspect_manifest(&mut self) {
        let name = self.manifest_name();
        let is_cut = self.survey.told.as_ref().is_some_and(|told| told.cut_bytes > 0);
        let cut = self.report.findings.iter_mut().find(|finding| is_cut && finding.file == name);
        if let Some(finding) = cut {
            finding.severity = Severity::Damage;
            finding
                .what
                .push_str("; and since something is lacking that the edits before it speak of, rotten");
        }
    }
}

/// What is wrong with a record that the index of a hashed table leads to.
fn check_hashed(
    rules: &BoundRules,
    (index, point): (&AtRest, folddb_hash::Point),
    (key, value): (&[u8], Option<&[u8]>),
) -> Option<String> {
    let wrong =
        |what: String| Some(format!("the record of key {}: {what}", rules.rules.key_codec().show_line(key)));
    if index.point(key) != point {
        return wrong("the index has it in the place of another key".to_owned());
    }
    if let Err(cause) = rules.rules.key_codec().check(key) {
        return wrong(format!("it is no key of the table: {cause}"));
    }
    value.and_then(|value| check_value(rules, value).err()).and_then(wrong)
}

/// Lets the indexes of hashed tables take what a batch says.
fn take_hashed(frame: &ReplayFrame<'_>, hashed: &[AtRest]) -> Result<(), String> {
    for (seq, record) in (frame.first_seq..).zip(frame::records(frame.payload).flatten()) {
        let index = hashed.iter().find(|index| index.table == record.table);
        // A shard that cannot be read was told of when its piece was looked at.
        let taken = index.filter(|index| index.faults.is_empty()).map(|index| index.take(&record, seq));
        taken.transpose().map_err(|error| format!("seq {seq}: {}", error.message()))?;
    }
    Ok(())
}

/// A batch of the log that nothing vouches for, and that points to a value which is not whole.
struct LostValue {
    file: FileName,
    offset: u64,
    /// Where the batch begins.
    lsn: Lsn,
}

impl LostValue {
    fn finding(&self, cut: u64) -> Finding {
        let (offset, lsn) = (self.offset, self.lsn);
        let what = format!(
            "the value at offset {offset}, which the log points to at LSN {lsn}, is not whole, and nobody was promised that it outlives \
             the machine: it and the batches behind it, {cut} in all, are cut at the next opening"
        );
        Finding::note(self.file.to_string(), what)
    }
}

/// The first value that a batch points to and that is not as it was written.
fn lost_value(frame: &ReplayFrame<'_>, values: &ValuesAtRest<'_>) -> Option<LostValue> {
    frame::records(frame.payload).flatten().find_map(|record| {
        rope_of(&record)?.pointers().filter(|pointer| !is_long(pointer.len)).find_map(|pointer| {
            let loaded = values.piece((record.table, record.key), &pointer);
            let file = values.name_of(pointer.place);
            let offset = if matches!(file, FileName::ValueFile(..)) { 0 } else { pointer.place.offset() };
            loaded.is_err().then_some(LostValue { file, offset, lsn: frame.lsn })
        })
    })
}

fn whole_part(table: &TableState, rules: &BoundRules, part: &PartState) -> Loss {
    let codec = rules.rules.key_codec();
    Loss::of_range(&table.name, codec, &part.low, &part.high, Some(part.records))
}

/// What a part says of itself and the manifest says otherwise.
fn difference(state: &PartState, part: &Part, rules: &BoundRules) -> Option<String> {
    let facts = part.facts();
    let numbers = |records, deletes, min_seq, max_seq| {
        format!("{records} records, {deletes} deletes, seqs {min_seq} to {max_seq}")
    };
    let found = numbers(facts.records, facts.deletes, facts.min_seq, facts.max_seq);
    let wanted = numbers(state.records, state.deletes, state.min_seq, state.max_seq);
    if found != wanted {
        return Some(format!("{found}, and not {wanted}"));
    }
    let low = rules.order.compare(&facts.low, &state.low);
    let is_low_right = if state.trimmed { low.is_le() } else { low.is_eq() };
    (!is_low_right || facts.high != state.high).then(|| "other keys".to_owned())
}

/// Takes what a part holds.
struct Inspector<'a, 'l> {
    look: &'a mut Look<'l>,
    table: &'a TableState,
    rules: &'a BoundRules,
    name: &'a str,
    records: u64,
    /// Records that are none of the table, or whose values are lost.
    misfits: Misfits,
    has_faults: bool,
    /// What the blocks come to, in tables whose blocks say so.
    refolded: Option<Refolded>,
}

impl Inspect for Inspector<'_, '_> {
    fn record(&mut self, offset: u64, record: Record<'_>) {
        self.records += 1;
        if let Some(refolded) = &mut self.refolded {
            refolded.push(&self.rules.fold, offset, &record);
        }
        let values = &self.look.at_rest;
        let load = |rope: &Rope<'_>| values.value((self.table.id, record.key), rope);
        let checked = check_record(self.rules, &record, self.table.flushed_seq, &load);
        let Err(wrong) = checked else { return };
        let key = self.rules.rules.key_codec().show_line(record.key);
        match wrong {
            Wrong::Record(what) => {
                let what = format!("the record of key {key}: {what}");
                self.misfits.add(self.name, Some(offset), Some(record.key), what);
            }
            Wrong::Value(error) => {
                let (dir, said) = (&self.look.survey.dir, format!("the value of key {key}"));
                self.misfits.add_value(dir, self.name, record.key, &error, &said);
            }
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.has_faults = true;
        let loss = Loss::of_span(&self.table.name, self.rules.rules.key_codec(), &fault.keys);
        let finding = Finding::damage(self.name, Some(fault.offset), fault.what).costs(loss);
        self.look.report.findings.push(finding);
    }

    fn progress(&mut self, bytes: u64) {
        self.look.advance(bytes);
    }
}

impl Inspector<'_, '_> {
    /// Blocks that come to something else than their summaries say. Where one could not be read, that was told of.
    fn tell_refolded(&mut self, part: &Part) {
        let Some(refolded) = self.refolded.take().filter(|_| !self.has_faults) else { return };
        if let Ok(Some(offset)) = refolded.fault(part) {
            let what = "the values of a block fold to something else than its summary says; no record is lost with it";
            self.look.report.findings.push(Finding::damage(self.name, Some(offset), what));
        }
    }

    fn tell_misfits(&mut self) {
        for (finding, misfit) in std::mem::take(&mut self.misfits).findings() {
            let span = KeySpan { through: misfit.last_key, ..KeySpan::default() };
            let mut loss = Loss::of_span(&self.table.name, self.rules.rules.key_codec(), &span);
            loss.records = Some(misfit.records);
            self.look.report.findings.push(finding.costs(loss));
        }
    }
}

/// What is wrong with a record.
enum Wrong {
    /// The record itself is none of the table.
    Record(String),
    /// The value that it leads to cannot be read.
    Value(Error),
}

impl From<String> for Wrong {
    fn from(what: String) -> Wrong {
        Wrong::Record(what)
    }
}

impl Wrong {
    fn into_words(self) -> String {
        match self {
            Wrong::Record(what) => what,
            Wrong::Value(error) => error.message().to_owned(),
        }
    }
}

/// Whether a record is one of the table: its key, its values, its seq.
fn check_record(
    rules: &BoundRules,
    record: &Record<'_>,
    seq_max: Seq,
    load: &dyn Fn(&Rope<'_>) -> folddb_base::Result<Option<Vec<u8>>>,
) -> Result<(), Wrong> {
    if record.seq > seq_max {
        let what = format!("its seq is {}, and the table is flushed only up to {seq_max}", record.seq);
        return Err(Wrong::Record(what));
    }
    rules
        .rules
        .key_codec()
        .check(record.key)
        .map_err(|cause| format!("it is no key of the table: {cause}"))?;
    match record.op().map_err(|cause| cause.to_string())? {
        Op::Delete => Ok(()),
        Op::Set(payload) | Op::Insert(payload) | Op::Fold(payload) => {
            if rules.fold.has_stamps() {
                Stamp::split(payload)
                    .map_err(|_| "it has no stamp, and values of the table expire".to_owned())?;
            }
            Ok(check_value(rules, rules.fold.value_in(payload))?)
        }
        Op::InsertFold { absent, present } => {
            Ok(check_value(rules, absent).and_then(|()| check_value(rules, present))?)
        }
        Op::SetSeparated(rope) | Op::InsertSeparated(rope) | Op::FoldSeparated(rope) => {
            let rope = Rope::decode(rope).map_err(|cause| cause.to_string())?;
            match load(&rope).map_err(Wrong::Value)? {
                Some(value) => Ok(check_value(rules, &value)?),
                None => Ok(()), // of what nobody holds, the pieces are whole
            }
        }
    }
}

/// What is looked at has passed its checksum: so the disk is not at fault.
const WHOLE: &str = "its bytes are whole, so that a program wrote it, and no disk has damaged it";

/// Whether the fold takes these bytes. A fold of a user may panic, which is a no.
fn check_value(rules: &BoundRules, value: &[u8]) -> Result<(), String> {
    let checked = catch_unwind(AssertUnwindSafe(|| rules.check_value(value)));
    match checked {
        Ok(Ok(())) => Ok(()),
        Ok(Err(cause)) => Err(format!("it is no value of the table: {cause}; {WHOLE}")),
        Err(_) => Err(format!("the fold panics on its value; {WHOLE}")),
    }
}

/// Whether what a batch holds are records of tables that there are, or were.
fn check_frame(
    frame: &ReplayFrame<'_>,
    rules: &[(&TableState, BoundRules)],
    depth: Depth,
    values: &ValuesAtRest<'_>,
) -> Result<(), String> {
    let mut count = 0;
    for (seq, record) in (frame.first_seq..).zip(frame::records(frame.payload)) {
        let record = record.map_err(|cause| format!("a record of the batch: {cause}"))?;
        count += 1;
        // Of tables that the manifest never had the survey tells.
        let Some((table, rules)) = rules.iter().find(|(table, _)| table.id == record.table) else { continue };
        let in_table = |what: String| format!("seq {seq}, table `{}`: {what}", table.name);
        match record.op {
            LogOp::RangeDelete if rules.order.compare(record.key, record.payload).is_ge() => {
                return Err(in_table("a range delete ends before it begins".to_owned()));
            }
            LogOp::Op(kind) if depth == Depth::Records => {
                let record = Record { key: record.key, seq, kind, payload: record.payload };
                // What was never promised may have lost its value: the log then ends there at the next opening.
                let checks = frame.is_durable || !kind.is_separated();
                let load = |rope: &Rope<'_>| values.value((table.id, record.key), rope);
                if checks {
                    check_record(rules, &record, Seq::MAX, &load)
                        .map_err(|wrong| in_table(wrong.into_words()))?;
                }
            }
            _ => {}
        }
    }
    if count != frame.count {
        return Err(format!("the batch holds {count} records and says {}", frame.count));
    }
    Ok(())
}
