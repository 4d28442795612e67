//! What a directory holds and what its manifests say, read past whatever is wrong: the ground on which verifying,
//! salvaging and advising stand. Works on stores that do not open; changes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result};
use folddb_host::files::FileLock;
use folddb_journal::{LogReport, ReplayFrame, ReplayFrom};
use folddb_layout::file_name::FileName;
use folddb_layout::version::Version;
use folddb_manifest::{Examined, State, TableState};
use folddb_rules::table_rules::{BoundRules, TableRules};

use crate::care::finding::{Finding, Loss};
use crate::options::Options;
use crate::recover;

/// What there is.
pub(crate) struct Survey {
    pub(crate) dir: PathBuf,
    /// The files of a store, by name.
    pub(crate) files: Vec<FileName>,
    /// What `FORMAT` says.
    pub(crate) version: Result<Version>,
    /// All manifests, the newest first.
    pub(crate) manifests: Vec<Examined>,
    /// The best that the manifests tell of what lives, and which of them.
    pub(crate) told: Option<Told>,
    /// Nobody writes meanwhile.
    _lock: Box<dyn FileLock>,
}

/// What lives, as a manifest tells it.
#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) number: FileNumber,
    pub(crate) state: State,
    /// False where the manifest is damaged, so that the state is only what could be read of it.
    pub(crate) is_whole: bool,
    pub(crate) edits: u64,
    /// Bytes of an edit at its end that is not whole.
    pub(crate) cut_bytes: u64,
}

impl Survey {
    /// Looks around.
    ///
    /// # Errors
    /// `NoStore`, `Locked` while a writer has the store open; the directory cannot be listed.
    pub(crate) fn take(dir: &Path, options: &Options) -> Result<Survey> {
        let names = options.host.files.list(dir).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                recover::no_store(dir, options)
            }
            _ => Error::io("list", dir, error),
        })?;
        let mut files: Vec<FileName> = names.iter().filter_map(|name| FileName::parse(name)).collect();
        files.sort_unstable();
        if !files.iter().any(|file| *file != FileName::Lock) {
            return Err(recover::no_store(dir, options));
        }
        let lock = recover::lock(dir, &options.clone().read_only(true))?;
        let manifests = folddb_manifest::examine(&options.host, dir)?;
        let told = choose(&manifests);
        let version = recover::read_version(dir, options);
        Ok(Survey { dir: dir.to_owned(), files, version, manifests, told, _lock: lock })
    }

    /// The path of a file.
    pub(crate) fn path(&self, file: FileName) -> PathBuf {
        self.dir.join(file.to_string())
    }

    /// What is wrong with `FORMAT` and the manifests, and which files nobody lists.
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
            Err(error) if error.kind() == ErrorKind::NoStore => findings.push(Finding::damage(
                file,
                None,
                "it is not there: the creation of the store was cut short, or it is lost",
            )),
            Err(error) => findings.push(Finding::damage(file, Some(0), in_words(error))),
            Ok(version) => {
                let told = self.told.as_ref().map(|told| told.state.store_id);
                if !version.is_readable() {
                    let what = format!("it says format {}, which this version does not know", version.major);
                    findings.push(Finding::damage(file, Some(0), what));
                } else if told.is_some_and(|store_id| store_id != version.store_id) {
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
            let counts = self.told.as_ref().is_some_and(|told| told.number == manifest.number);
            if manifest.edits == 0 && manifest.faults.is_empty() {
                let is_only =
                    self.manifests.len() == 1 || index + 1 == self.manifests.len() && self.told.is_none();
                let finding = match is_only {
                    true => Finding::damage(&file, Some(0), "it does not begin with a whole snapshot"),
                    false => Finding::note(&file, "its making was cut short; an older one counts"),
                };
                findings.push(finding);
            } else if manifest.cut_bytes > 0 && counts {
                let end = manifest.len_bytes - manifest.cut_bytes;
                let what = format!(
                    "its last edit, {} bytes at offset {end}, is not whole: cut short by a crash, which loses nothing, or rotten",
                    manifest.cut_bytes
                );
                findings.push(Finding::note(&file, what));
            } else if self.told.as_ref().is_some_and(|told| told.number > manifest.number) {
                findings.push(Finding::note(&file, "a newer one counts; it goes at the next opening"));
            }
        }
        if self.manifests.is_empty() {
            findings.push(Finding::damage("MANIFEST", None, "there is none: what lives is not known"));
        }
    }

    fn look_for_leftovers(&self, findings: &mut Vec<Finding>) {
        let Some(told) = &self.told else { return };
        let state = &told.state;
        let listed: BTreeSet<FileNumber> = state.part_files().chain(state.index_files()).collect();
        for file in &self.files {
            let is_listed = match file {
                FileName::Part(number) | FileName::Index(number) => listed.contains(number),
                FileName::Values(number) => {
                    told.state.values.contains_key(number) && !told.state.is_shelf(*number)
                }
                FileName::Shelf(number) => told.state.is_shelf(*number),
                FileName::Moved(number) => told.state.moved_files.contains_key(number),
                FileName::Kept(number) => state.feeds.kept().iter().any(|kept| kept.file == *number),
                _ => true,
            };
            if is_listed {
                continue;
            }
            let what = match told.is_whole {
                true => {
                    "no manifest lists it: left by a flush, merge, reclaim or bulk load that was cut short; it goes at the next opening"
                }
                false => "what is left of the manifest does not list it, so whether it lives is not known",
            };
            findings.push(Finding::note(file.to_string(), what));
        }
    }

    /// Where the log begins, and all that is known to be durable of it: later frames vouch for earlier ones, so all are met first.
    pub(crate) fn vouched_start(&self, options: &Options, state: &State) -> Result<ReplayFrom> {
        let from = log_start(state);
        let durable_lsn = self.read_log(options, &from, &mut |_, _| Ok(()))?.vouched_lsn;
        Ok(ReplayFrom { durable_lsn, ..from })
    }

    /// Reads the log, if it is known where it begins.
    pub(crate) fn read_log(
        &self,
        options: &Options,
        from: &ReplayFrom,
        visit: &mut dyn FnMut(ReplayFrame<'_>, bool) -> Result<(), String>,
    ) -> Result<LogReport> {
        folddb_journal::examine(&options.host, &self.dir, from, visit)
    }
}

/// The best that manifests tell: the newest that is whole, or else what can be read of the newest.
fn choose(manifests: &[Examined]) -> Option<Told> {
    // A manifest without any whole edit was never one; damage in a newer one is no reason to go back to an older.
    let newest = manifests.iter().find(|manifest| manifest.edits > 0 || !manifest.faults.is_empty())?;
    let told = |manifest: &Examined| {
        let state = manifest.patched.as_ref().filter(|state| state.store_id != 0).or(manifest.state.as_ref());
        Some(Told {
            number: manifest.number,
            state: state?.clone(),
            is_whole: manifest.is_whole(),
            edits: manifest.edits,
            cut_bytes: manifest.cut_bytes,
        })
    };
    let is_lost = newest.state.is_none() && newest.patched.as_ref().is_none_or(|state| state.store_id == 0);
    match is_lost {
        false => told(newest),
        true => manifests.iter().find(|manifest| manifest.is_whole()).and_then(told).map(|told| Told {
            is_whole: false, // it is not the one that counted
            ..told
        }),
    }
}

/// Where the log begins, by what a manifest tells.
pub(crate) fn log_start(state: &State) -> ReplayFrom {
    ReplayFrom {
        store_id: state.store_id,
        log_start_lsn: state.log_start_lsn,
        durable_lsn: state.feeds.all().map(|feed| feed.lsn).fold(state.durable_lsn, Lsn::max), // what was told is durable
        is_open: state.log_open,
    }
}

/// The rules of a table with their functions.
pub(crate) fn bind(table: &TableState, options: &Options) -> Result<BoundRules> {
    let in_table = |error: Error| error.context(format!("table `{}`", table.name));
    TableRules::from_text(&table.rules_text).and_then(|rules| rules.bind(&options.custom)).map_err(in_table)
}

/// What the log's faults say of the store, each as a finding. Records that are lost may be of any table.
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
            keys: "any keys written lately".to_owned(),
            ..Loss::whole_table(&table.name)
        });
        let losses = losses.filter(|_| fault.records != Some(0)).collect();
        Finding { losses, ..finding }
    };
    report.faults.iter().map(finding).collect()
}

/// What an error says, without the file and the offset that stand beside it.
pub(crate) fn in_words(error: &Error) -> String {
    error.damage().map_or_else(|| error.message().to_owned(), |damage| damage.what.clone())
}
