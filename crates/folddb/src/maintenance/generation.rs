//! Checking a generation: its files are those of its list, and are valid.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq, counted, error};
use folddb_host::Host;
use folddb_journal::ReplayFrame;
use folddb_layout::backup::{BackupList, ListedFile};
use folddb_layout::file_name::FileName;
use folddb_layout::version::{FORMAT_FILE_BYTES_MAX, Version};
use folddb_manifest::{State, TableState};
use folddb_rules::table_rules::{Custom, StoredRules, TableKind, TableRules};
use folddb_run::Part;
use folddb_value_log::relocated::RelocatedFile;

use crate::maintenance::copying::{read_small, tail_hash};
use crate::maintenance::needed_values::{from_of_copy, needed_units, no_cache, parts_of};
use folddb_engine::recovery::listed::check_relocated;
use folddb_engine::state::hash_files::{listed_indexes, open_saved};
use folddb_engine::values::at_rest::ValuesAtRest;

/// A generation that was found intact.
pub(crate) struct Checked {
    pub(crate) version: Version,
    pub(crate) state: State,
    pub(crate) log: LogFacts,
}

/// The contents of the log in a store directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFacts {
    /// Where it ends.
    pub(crate) end_lsn: Lsn,
    /// The last seq of the history.
    pub(crate) last_seq: Seq,
    /// The end of the last batch that ends at or before the wanted seq, and that seq.
    pub(crate) cut: (Lsn, Seq),
    /// Its segments.
    pub(crate) segments: Vec<FileNumber>,
}

/// Checks a generation against its list. Reads every record of the parts that `reads_all` names; of
/// the others only footer, index and facts. Calls `read` with every file's length when it has been
/// checked.
///
/// # Errors
/// The first error, naming the file.
pub(crate) fn check(
    host: &Host,
    (dir, list): (&Path, &BackupList),
    custom: &Custom,
    reads_all: &dyn Fn(&ListedFile) -> bool,
    wanted_seq: Seq,
    read: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Checked> {
    for file in &list.files {
        check_file(host, dir, file)?;
    }
    let version = read_version(host, dir)?;
    let state = folddb_manifest::load(host, dir)?.state;
    if version.store_id != list.store_id || state.store_id != list.store_id {
        let message = format!("the files in {} are not of one store", dir.display());
        return Err(Error::new(ErrorKind::Corruption, message));
    }
    let files = list.files.iter().map(|file| (file.name, file)).collect();
    let mut listed = Listed { host, dir, files, state: &state, custom, reads_all, read };
    listed.check_parts()?;
    listed.check_indexes()?;
    listed.check_segments()?;
    listed.check_directories()?;
    listed.check_value_files()?;
    listed.check_relocated()?;
    let log = read_log(host, dir, &state, wanted_seq)?;
    if log.last_seq != list.last_seq {
        let message = format!(
            "the log in {} ends at seq {}, and the backup was made at {}",
            dir.display(),
            log.last_seq,
            list.last_seq
        );
        return Err(Error::new(ErrorKind::Corruption, message));
    }
    Ok(Checked { version, state, log })
}

/// The listed files of a generation, and what its manifest needs of them.
struct Listed<'c> {
    host: &'c Host,
    dir: &'c Path,
    files: BTreeMap<FileName, &'c ListedFile>,
    state: &'c State,
    custom: &'c Custom,
    reads_all: &'c dyn Fn(&ListedFile) -> bool,
    read: &'c mut dyn FnMut(u64) -> Result<()>,
}

impl Listed<'_> {
    fn path(&self, name: FileName) -> PathBuf {
        self.dir.join(name.to_string())
    }

    fn not_named(&self, name: FileName) -> Error {
        let path = self.path(name);
        let message = format!("{} is needed, and the list of the backup does not name it", path.display());
        Error::new(ErrorKind::Corruption, message)
    }

    fn check_parts(&mut self) -> Result<()> {
        let shared = no_cache();
        for (listed, order) in parts_of(self.state, self.custom)? {
            let name = FileName::Part(listed.file);
            let path = self.path(name);
            let file = *self.files.get(&name).ok_or_else(|| self.not_named(name))?;
            let part = Part::open(&self.host.files, &path, listed.file, &order, &shared)?;
            part.check_listed(listed)?;
            if (self.reads_all)(file) {
                folddb_run::verify(&part)?;
            }
            part.forget();
            (self.read)(file.len_bytes)?;
        }
        Ok(())
    }

    /// The saved indexes of hashed tables: all are there, and those that are read are valid.
    fn check_indexes(&mut self) -> Result<()> {
        for (number, file_bytes) in listed_indexes(self.state) {
            let name = FileName::Index(number);
            let file = self.files.get(&name).filter(|file| file.len_bytes == file_bytes);
            let len_bytes = file.ok_or_else(|| self.not_named(name))?.len_bytes;
            (self.read)(len_bytes)?;
        }
        for table in self.state.tables.values() {
            let Some((index, _)) = open_saved(&self.host.files, self.dir, table)? else { continue };
            let file = self.files.get(&FileName::Index(index.checkpoint.number()));
            let faults = file.filter(|file| (self.reads_all)(file)).map(|_| index.checkpoint.faults());
            if let Some(fault) = faults.into_iter().flatten().next() {
                return Err(fault);
            }
        }
        Ok(())
    }

    fn check_segments(&mut self) -> Result<()> {
        let state = self.state;
        for (&number, end) in state.values.iter().filter(|(number, _)| !state.is_directory(**number)) {
            let name = FileName::Values(number);
            let is_whole =
                self.files.get(&name).is_some_and(|file| end.is_some_and(|end| end <= file.len_bytes));
            if !is_whole {
                let message = format!(
                    "{} is needed, and the list of the backup does not name it, or names it shorter than its values are",
                    self.path(name).display()
                );
                return Err(Error::new(ErrorKind::Corruption, message));
            }
            (self.read)(end.unwrap_or(0))?;
        }
        Ok(())
    }

    /// Each listed value file was checked before; this checks that the list is complete.
    fn check_directories(&mut self) -> Result<()> {
        for (&number, value_files) in &self.state.directories {
            let named = (FileName::ValueFile(number, 0), FileName::ValueFile(number, u32::MAX));
            let named = self.files.range(named.0..=named.1).map(|(_, file)| file.len_bytes);
            let (count, bytes) = named.fold((0, 0), |(count, bytes), one| (count + 1, bytes + one));
            if value_files.is_none_or(|value_files| value_files != count) {
                let message = format!(
                    "the list of the backup names {} of {}, not all",
                    counted(count, "value"),
                    self.path(FileName::ValueDirectory(number)).display()
                );
                return Err(Error::new(ErrorKind::Corruption, message));
            }
            (self.read)(bytes)?;
        }
        Ok(())
    }

    /// The value files that records point to are listed.
    fn check_value_files(&self) -> Result<()> {
        let directories = self.state.directories.keys().copied();
        let needed = needed_units(self.host, (self.dir, self.dir), self.state, self.custom, directories)?;
        for (directory, units) in needed {
            let names = units.into_iter().map(|unit| FileName::ValueFile(directory, unit));
            if let Some(name) = names.into_iter().find(|name| !self.files.contains_key(name)) {
                let what = "a value is in it, and the list of the backup does not name it";
                return Err(error::missing(&self.path(name), what));
            }
        }
        Ok(())
    }

    fn check_relocated(&mut self) -> Result<()> {
        for (&number, &file_bytes) in &self.state.relocated_files {
            let name = FileName::Relocated(number);
            if !self.files.contains_key(&name) {
                return Err(self.not_named(name));
            }
            let file = RelocatedFile::open(&*self.host.files, self.dir, number)?;
            check_relocated(&file, file_bytes, self.state.moved_in(number))?;
            (self.read)(file_bytes)?;
        }
        Ok(())
    }
}

/// Checks that a file has the listed length and end.
fn check_file(host: &Host, dir: &Path, file: &ListedFile) -> Result<()> {
    let path = dir.join(file.name.to_string());
    let opened = match host.files.open(&path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::new(ErrorKind::Corruption, format!("{} is missing", path.display())));
        }
        Err(error) => return Err(Error::io("open", &path, error)),
    };
    let failed = |error| Error::io("read", &path, error);
    let len_bytes = opened.len_bytes().map_err(failed)?;
    if len_bytes != file.len_bytes {
        let what = format!("it has {len_bytes} bytes, and had {} when the backup was made", file.len_bytes);
        return Err(error::corrupt(&path, len_bytes.min(file.len_bytes), what));
    }
    if tail_hash(&*opened, len_bytes).map_err(failed)? != file.tail_hash {
        return Err(error::corrupt(&path, 0, "its end is not what it was when the backup was made"));
    }
    Ok(())
}

/// The contents of `FORMAT` in a directory, if this version can read it.
pub(crate) fn read_version(host: &Host, dir: &Path) -> Result<Version> {
    let path = dir.join(FileName::Format.to_string());
    let Some(bytes) = read_small(&*host.files, &path, FORMAT_FILE_BYTES_MAX as u64)? else {
        return Err(Error::new(ErrorKind::Corruption, format!("{} is missing", path.display())));
    };
    let version = Version::decode(&bytes).map_err(|cause| error::corrupt(&path, 0, cause))?;
    if !version.is_readable() {
        let message = format!("{} was written in a newer format", dir.display());
        return Err(Error::new(ErrorKind::NewerFormat, message));
    }
    Ok(version)
}

/// The first seq at which a directory with this state can be restored: everything in runs is older,
/// and everything after is in the log.
pub(crate) fn first_seq(state: &State) -> Seq {
    state.tables.values().map(TableState::last_seq).max().unwrap_or(0)
}

/// The first seq at which a backup of this state, whose log ends with `last_seq`, can be restored.
/// Values that an index pointed to before its end may be gone, so a backup with a hashed table can
/// be restored only at its end.
pub(crate) fn first_restorable(state: &State, last_seq: Seq) -> Seq {
    let is_hashed = |table: &TableState| {
        TableRules::from_stored(&table.rules_text).is_ok_and(|rules| rules.kind == TableKind::Hashed)
    };
    if state.tables.values().any(is_hashed) { last_seq } else { first_seq(state) }
}

/// Reads the log of a store directory completely; `wanted_seq` is where a restored one is cut.
pub(crate) fn read_log(host: &Host, dir: &Path, state: &State, wanted_seq: Seq) -> Result<LogFacts> {
    let from = from_of_copy(state);
    let base = state.last_seq.max(first_seq(state));
    let mut cut = None;
    let mut first_of_log = None;
    let visit = &mut |frame: ReplayFrame<'_>| {
        let last_seq = (frame.first_seq + u64::from(frame.count)).saturating_sub(1);
        first_of_log.get_or_insert(frame.first_seq);
        if last_seq <= wanted_seq {
            cut = Some((frame.end_lsn, last_seq));
        }
        Ok(())
    };
    let values = ValuesAtRest::new(&host.files, dir, state);
    let has_values = &mut |frame: &ReplayFrame<'_>| values.has(frame);
    let replayed = folddb_journal::replay_checked(host, dir, &from, has_values, visit)?;
    let last_seq = replayed.last_seq.unwrap_or(0).max(base);
    // If the log has nothing that early, the state is that of the runs.
    let before_log = first_of_log.map_or(last_seq, |first: Seq| first.saturating_sub(1)).min(wanted_seq);
    let cut = cut.unwrap_or((state.log_start_lsn, before_log));
    Ok(LogFacts { end_lsn: replayed.cut_lsn, last_seq, cut, segments: replayed.segments })
}
