//! The contents of a directory and of its manifests, read past all errors: the base of verify,
//! repair and doctor. Works on stores that do not open; changes nothing.

pub(crate) mod lost_list;
mod value_tables;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use folddb_base::{Error, ErrorKind, FileNumber, Result, Seq, TableId};
use folddb_host::files::FileLock;
use folddb_journal::{LogReport, ReplayFrame, ReplayFrom};
use folddb_layout::file_name::FileName;
use folddb_layout::frame;
use folddb_layout::manifest_edit::Change;
use folddb_layout::version::Version;
use folddb_manifest::{Examined, State, TableState};
use folddb_rules::KeyOrder;
use folddb_rules::table_rules::{BoundRules, StoredRules, TableRules};
use folddb_run::{Part, Shared};

use crate::maintenance::finding::{Finding, Loss};
use crate::maintenance::survey::lost_list::LostList;
use folddb_engine::options::{OpenMode, Options};
use folddb_engine::recovery::listed::{NEWER, newer_files};
use folddb_engine::recovery::{format, replay};

/// The result of a survey.
pub(crate) struct Survey {
    pub(crate) dir: PathBuf,
    /// The files of a store, by name.
    pub(crate) files: Vec<FileName>,
    /// The contents of `FORMAT`.
    pub(crate) version: Result<Version>,
    /// All manifests, the newest first.
    pub(crate) manifests: Vec<Examined>,
    /// The best list of what lives in the manifests, and its manifest.
    pub(crate) listing: Option<Listing>,
    /// What is known to be lost of the list of what lives: all of it, or its end.
    pub(crate) lost_list: Option<LostList>,
    /// Unlisted files that were written after the manifest.
    newer: BTreeSet<FileName>,
    /// Prevents writes during the survey.
    _lock: Box<dyn FileLock>,
}

/// What lives, from a manifest.
#[derive(Clone)]
pub(crate) struct Listing {
    pub(crate) number: FileNumber,
    pub(crate) state: State,
    /// False if the manifest is damaged, so that the state is only the readable part.
    pub(crate) is_whole: bool,
    pub(crate) edits: u64,
    /// The length of the manifest.
    pub(crate) len_bytes: u64,
    /// Bytes of an edit at its end that is not whole.
    pub(crate) cut_bytes: u64,
}

impl Survey {
    /// Surveys a directory.
    ///
    /// # Errors
    /// `StoreNotFound`, `Locked` while a writer has the store open; the directory cannot be listed.
    pub(crate) fn take(dir: &Path, options: &Options) -> Result<Survey> {
        let names = options.host.files.list(dir).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                format::store_not_found(dir, options)
            }
            _ => Error::io("list", dir, error),
        })?;
        let mut files: Vec<FileName> = names.iter().filter_map(|name| FileName::parse(name)).collect();
        files.sort_unstable();
        if !files.iter().any(|file| *file != FileName::Lock) {
            return Err(format::store_not_found(dir, options));
        }
        let lock = format::lock(dir, &options.clone().opened_as(OpenMode::ReadOnly))?;
        let manifests = folddb_manifest::examine(&options.host, dir)?;
        let listing = choose(&manifests);
        let version = format::read_version(dir, options);
        let mut survey = Survey {
            dir: dir.to_owned(),
            files,
            version,
            manifests,
            listing,
            lost_list: None,
            newer: BTreeSet::new(),
            _lock: lock,
        };
        survey.lost_list = match &survey.listing {
            None => Some(survey.lost_list(options)?),
            Some(listing) if listing.is_whole => survey.lost_end(&listing.state, options)?,
            Some(_) => None,
        };
        if let (Some(listing), Some(_)) = (&mut survey.listing, &survey.lost_list) {
            listing.is_whole = false;
        }
        survey.newer = survey.newer_files(options)?;
        Ok(survey)
    }

    /// The unlisted files that were written after the manifest.
    fn newer_files(&self, options: &Options) -> Result<BTreeSet<FileName>> {
        let Some(listing) = self.listing.as_ref().filter(|listing| listing.is_whole) else {
            return Ok(BTreeSet::new());
        };
        let state = &listing.state;
        if newer_files(state, self.unlisted(state), false).next().is_none() {
            return Ok(BTreeSet::new()); // the log need not be read
        }
        let log = self.read_log(options, &self.log_start(state), &mut |_, _| Ok(()))?;
        let has_log = log.batches + log.batches_beyond > 0;
        Ok(newer_files(state, self.unlisted(state), has_log).collect())
    }

    /// The path of a file.
    pub(crate) fn path(&self, file: FileName) -> PathBuf {
        self.dir.join(file.to_string())
    }

    /// What is wrong with `FORMAT` and the manifests, and which files are not listed.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.look_at_format(&mut findings);
        self.look_at_manifests(&mut findings);
        self.look_for_leftovers(&mut findings);
        findings
    }

    fn look_at_format(&self, findings: &mut Vec<Finding>) {
        let file = FileName::Format.to_string();
        match &self.version {
            Err(error) if error.kind() == ErrorKind::StoreNotFound => findings.push(Finding::damage(
                file,
                None,
                "it is not there: the creation of the store was cut short, or it is lost",
            )),
            Err(error) => findings.push(Finding::damage(file, Some(0), in_words(error))),
            Ok(version) => {
                let listing = self.listing.as_ref().map(|listing| listing.state.store_id);
                if !version.is_readable() {
                    let what = format!("it has format {}, which this version does not know", version.major);
                    findings.push(Finding::damage(file, Some(0), what));
                } else if listing.is_some_and(|store_id| store_id != version.store_id) {
                    findings.push(Finding::damage(
                        file,
                        Some(0),
                        "it is that of another store than the manifest",
                    ));
                }
            }
        }
    }

    fn look_at_manifests(&self, findings: &mut Vec<Finding>) {
        for (index, manifest) in self.manifests.iter().enumerate() {
            let file = FileName::Manifest(manifest.number).to_string();
            let faults = manifest.faults.iter().map(|fault| {
                let may_be = if fault.is_newer { "; a newer version may" } else { "" };
                Finding::damage(&file, Some(fault.offset), format!("{}{may_be}", fault.what))
            });
            findings.extend(faults);
            let counts = self.listing.as_ref().is_some_and(|listing| listing.number == manifest.number);
            if manifest.edits == 0 && manifest.faults.is_empty() {
                let is_only =
                    self.manifests.len() == 1 || index + 1 == self.manifests.len() && self.listing.is_none();
                let finding = match is_only {
                    true => Finding::damage(&file, Some(0), "it does not begin with a whole snapshot"),
                    false => Finding::note(&file, "writing it was cut short; an older one is used"),
                };
                findings.push(finding);
            } else if manifest.cut_bytes > 0 && counts {
                let end = manifest.len_bytes - manifest.cut_bytes;
                let what = format!(
                    "its last edit, {} bytes at offset {end}, is not whole: cut short by a crash, which loses nothing, or damaged",
                    manifest.cut_bytes
                );
                findings.push(Finding::note(&file, what));
            } else if self.listing.as_ref().is_some_and(|listing| listing.number > manifest.number) {
                findings.push(Finding::note(&file, "a newer one is used; the next opening removes it"));
            }
        }
        if self.manifests.is_empty() {
            findings.push(Finding::damage(
                "MANIFEST",
                None,
                "there is none: which files are live is not known",
            ));
        }
        findings.extend(self.lost_list.as_ref().map(|lost| self.of_lost_list(lost)));
    }

    fn of_lost_list(&self, lost: &LostList) -> Finding {
        let newest = || self.manifests.first().map(|manifest| manifest.number);
        let file = self.listing.as_ref().map(|listing| listing.number).or_else(newest);
        let file =
            file.map_or_else(|| "MANIFEST".to_owned(), |number| FileName::Manifest(number).to_string());
        let offset = self.listing.as_ref().map(|listing| listing.len_bytes - listing.cut_bytes);
        let tables = self.listing.iter().flat_map(|listing| listing.state.tables.values());
        let named = tables.map(|table| Loss::whole_table(&table.name));
        let losses = named.chain(lost.tables()).collect();
        Finding { losses, ..Finding::damage(file, offset, lost.in_words()) }
    }

    /// The part files, files of indexes and of values that the manifest does not list.
    pub(crate) fn unlisted(&self, state: &State) -> impl Iterator<Item = FileName> {
        let listed: BTreeSet<FileNumber> = state.part_files().chain(state.index_files()).collect();
        let is_listed = move |file: &FileName| match file {
            FileName::Part(number) | FileName::Index(number) => listed.contains(number),
            FileName::Values(number) => state.values.contains_key(number) && !state.is_directory(*number),
            FileName::ValueDirectory(number) => state.is_directory(*number),
            FileName::Relocated(number) => state.relocated_files.contains_key(number),
            FileName::ArchivedLog(number) => state.feeds.archived().iter().any(|kept| kept.file == *number),
            _ => true,
        };
        self.files.iter().copied().filter(move |file| !is_listed(file))
    }

    fn look_for_leftovers(&self, findings: &mut Vec<Finding>) {
        let Some(listing) = &self.listing else { return };
        for file in self.unlisted(&listing.state) {
            if self.newer.contains(&file) {
                let since = |table: &TableState| Loss {
                    keys: "what was written since".to_owned(),
                    ..Loss::whole_table(&table.name)
                };
                let losses = listing.state.tables.values().map(since).collect();
                let damage = Finding::damage(file.to_string(), None, NEWER);
                findings.push(Finding { losses, is_newer_file: true, ..damage });
                continue;
            }
            let what = match listing.is_whole {
                true => {
                    "no manifest lists it: left by a flush, merge, reclaim or bulk load that was cut short; the next opening removes it"
                }
                false => {
                    "what is left of the manifest does not list it, so it is not known whether it is live"
                }
            };
            findings.push(Finding::note(file.to_string(), what));
        }
    }

    /// Where the log begins, by a manifest.
    pub(crate) fn log_start(&self, state: &State) -> ReplayFrom {
        replay::replay_from(state, self.listing.as_ref().map_or(0, |listing| listing.edits))
    }

    /// Where the log begins, and how much of it is known to be durable: later frames record that of
    /// earlier ones, so all are read first.
    pub(crate) fn vouched_start(&self, options: &Options, state: &State) -> Result<ReplayFrom> {
        let from = self.log_start(state);
        let durable_lsn = self.read_log(options, &from, &mut |_, _| Ok(()))?.vouched_lsn;
        Ok(ReplayFrom { durable_lsn, ..from })
    }

    /// Reads the log, if its start is known.
    pub(crate) fn read_log(
        &self,
        options: &Options,
        from: &ReplayFrom,
        visit: &mut dyn FnMut(ReplayFrame<'_>, bool) -> Result<(), String>,
    ) -> Result<LogReport> {
        folddb_journal::examine(&options.host, &self.dir, from, visit)
    }
}

/// What is lost of the list of what lives.
impl Survey {
    /// What is left of a store whose list is lost from the beginning.
    fn lost_list(&self, options: &Options) -> Result<LostList> {
        let store_id = self.version.as_ref().map_or(0, |version| version.store_id);
        let state = State { store_id, ..State::default() };
        let mut lost = LostList { is_all: true, ..LostList::default() };
        for change in self.manifests.iter().flat_map(|one| one.claimed.iter().chain(&one.created)) {
            if let Change::CreateTable { table, name, .. } = change {
                lost.named.insert(*table, name.clone());
            }
        }
        self.hear_log(&state, options, &mut lost)?;
        self.count_files(&state, options, &mut lost);
        Ok(lost)
    }

    /// Checks whether the list has lost its end. Tables are durable in the manifest before the log
    /// names them. If something that the manifest lists is missing, and there are unlisted files or
    /// its last edit is cut, that edit or later ones may have removed it.
    fn lost_end(&self, state: &State, options: &Options) -> Result<Option<LostList>> {
        let mut lost = LostList::default();
        let log = self.hear_log(state, options, &mut lost)?;
        self.count_files(state, options, &mut lost);
        let is_start_gone = log.faults.iter().any(|fault| fault.file.is_none() && fault.lsn <= log.start_lsn);
        let is_cut = self.listing.as_ref().is_some_and(|listing| listing.cut_bytes > 0);
        let is_lacking = || is_start_gone || self.listed(state).any(|path| is_gone(&path, options));
        let is_told = !lost.nameless.is_empty() || (lost.files > 0 || is_cut) && is_lacking();
        Ok(is_told.then_some(lost))
    }

    /// The tables that the log, value files and the store's own manifests name, and that are not on
    /// another list.
    pub(crate) fn tables_beyond(&self, list: &State, options: &Options) -> Result<Vec<Loss>> {
        let mut lost = LostList::default();
        let own = self.listing.iter().flat_map(|listing| listing.state.tables.values());
        lost.named.extend(own.map(|table| (table.id, table.name.clone())));
        lost.named.extend(self.lost_list.iter().flat_map(|lost| lost.named.clone()));
        lost.named.retain(|table, _| table.0 >= list.next_table_id);
        self.hear_log(list, options, &mut lost)?;
        self.count_files(list, options, &mut lost);
        Ok(if lost.has_tables() { lost.tables().collect() } else { Vec::new() })
    }

    /// Which tables the log names that are not on the list.
    fn hear_log(&self, state: &State, options: &Options, lost: &mut LostList) -> Result<LogReport> {
        self.read_log(options, &self.log_start(state), &mut |frame, _| {
            for record in frame::records(frame.payload).flatten() {
                if record.table.0 >= state.next_table_id {
                    lost.records += 1;
                    if !lost.named.contains_key(&record.table) {
                        lost.nameless.insert(record.table);
                    }
                }
            }
            Ok(())
        })
    }

    fn count_files(&self, state: &State, options: &Options, lost: &mut LostList) {
        for file in self.unlisted(state) {
            lost.files += 1;
            let found = value_tables::tables_in(&options.host.files, &self.dir, file).into_iter();
            let is_told = |table: &TableId| lost.named.contains_key(table) || lost.nameless.contains(table);
            let is_lost = |table: &TableId| table.0 >= state.next_table_id && !is_told(table);
            let found: Vec<TableId> = found.filter(is_lost).collect();
            lost.in_values.extend(found);
            if let FileName::Part(number) = file {
                lost.file_records += self.facts_of(number, options).map_or(0, |(_, records)| records);
            }
        }
    }

    /// The listed files, except the log.
    fn listed(&self, state: &State) -> impl Iterator<Item = PathBuf> {
        let parts = state.part_files().map(FileName::Part);
        let indexes = state.index_files().map(FileName::Index);
        let values = state.values.keys().map(|&number| state.values_name(number));
        let relocated = state.relocated_files.keys().copied().map(FileName::Relocated);
        parts.chain(indexes).chain(values).chain(relocated).map(|file| self.path(file))
    }

    /// The seqs of an unlisted part, and how many records it has, by its own facts.
    pub(crate) fn facts_of(
        &self,
        number: FileNumber,
        options: &Options,
    ) -> Option<(RangeInclusive<Seq>, u64)> {
        let (files, path, shared) =
            (&options.host.files, self.path(FileName::Part(number)), Shared::new(0, 1));
        let open = |order| Part::open(files, &path, number, &order, &shared);
        let part = open(KeyOrder::Bytewise).or_else(|_| open(KeyOrder::Reversed));
        let part = part.ok()?;
        let facts = part.facts();
        Some((facts.min_seq..=facts.max_seq, facts.records))
    }
}

fn is_gone(path: &Path, options: &Options) -> bool {
    let found = options.host.files.len_bytes(path);
    found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Reports errors of batches one by one only up to a limit: if the manifest does not belong to the
/// log, every batch may be wrong.
#[derive(Default)]
pub(crate) struct Few(u64);

/// The limit.
const FEW: u64 = 8;

impl Few {
    /// Passes on the error of a batch, up to the limit.
    pub(crate) fn pass(&mut self, outcome: Result<(), String>) -> Result<(), String> {
        self.0 += u64::from(outcome.is_err());
        if self.0 > FEW { Ok(()) } else { outcome }
    }

    /// Adds the number of the others to the last one that was passed on.
    pub(crate) fn add_to(&self, log: &mut LogReport) {
        let last = log.faults.iter_mut().rfind(|fault| fault.records == Some(0));
        if let Some(last) = last.filter(|_| self.0 > FEW) {
            last.what.push_str(&format!("; and {} more batches are wrong", self.0 - FEW));
        }
    }
}

/// The best list in the manifests: the newest intact one, or otherwise the readable part of the
/// newest.
fn choose(manifests: &[Examined]) -> Option<Listing> {
    // A manifest without any intact edit was never one; damage in a newer one is no reason to use
    // an older.
    let newest = manifests.iter().find(|manifest| manifest.edits > 0 || !manifest.faults.is_empty())?;
    let listing = |manifest: &Examined| {
        let state = manifest.patched.as_ref().filter(|state| state.store_id != 0).or(manifest.state.as_ref());
        Some(Listing {
            number: manifest.number,
            state: state?.clone(),
            is_whole: manifest.is_whole(),
            edits: manifest.edits,
            len_bytes: manifest.len_bytes,
            cut_bytes: manifest.cut_bytes,
        })
    };
    let is_lost = newest.state.is_none() && newest.patched.as_ref().is_none_or(|state| state.store_id == 0);
    match is_lost {
        false => listing(newest),
        true => {
            manifests.iter().find(|manifest| manifest.is_whole()).and_then(listing).map(|listing| Listing {
                is_whole: false, // it is not the one that was used
                ..listing
            })
        }
    }
}

/// The rules of a table with their functions.
pub(crate) fn bind(table: &TableState, options: &Options) -> Result<BoundRules> {
    let in_table = |error: Error| error.context(format!("table `{}`", table.name));
    TableRules::from_stored(&table.rules_text).and_then(|rules| rules.bind(&options.custom)).map_err(in_table)
}

/// The faults of the log as findings. Lost records may belong to any table.
pub(crate) fn log_findings(report: &LogReport, state: &State) -> Vec<Finding> {
    let finding = |fault: &folddb_journal::LogFault| {
        let file = match fault.file {
            Some(number) => FileName::Log(number).to_string(),
            None => "the log".to_owned(),
        };
        let upto = match fault.to_lsn {
            Some(to) if to == fault.lsn => String::new(),
            Some(to) => format!("; lost from LSN {} to {to}", fault.lsn),
            None => format!("; lost from LSN {} on", fault.lsn),
        };
        let finding =
            Finding::damage(file, fault.file.map(|_| fault.offset), format!("{}{upto}", fault.what));
        let losses = state.tables.values().map(|table| Loss {
            records: None,
            keys: "any keys written recently".to_owned(),
            ..Loss::whole_table(&table.name)
        });
        let losses = losses.filter(|_| fault.records != Some(0)).collect();
        Finding { losses, ..finding }
    };
    report.faults.iter().map(finding).collect()
}

/// The message of an error, without the file and the offset, which are reported separately.
pub(crate) fn in_words(error: &Error) -> String {
    error.damage().map_or_else(|| error.message().to_owned(), |damage| damage.what.clone())
}
