//! Dead values in files of their own are removed, while live ones stay where they are;
//! `values::directories` describes it.

use std::collections::{BTreeMap, BTreeSet};

use folddb_base::{Error, ErrorKind, FileNumber, Result};
use folddb_manifest::State;
use folddb_value_log::directories::{value_file_path, value_files_in};

use crate::background::live_values;
use crate::background::reclaim_report::ReclaimWant;
use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::state::value_state::Swept;
use crate::values::segments;

/// Value directories that are examined at once: the pointers to all of them are collected in one
/// pass, and a million units take 4 MiB.
pub(crate) const DIRECTORIES_AT_ONCE: usize = 256;

/// A directory is examined if at least one in this many of its value files is dead.
pub(crate) const DEAD_SHARE: u64 = 64;

/// The units that something points to, by directory.
pub type Units = BTreeMap<u32, Vec<u32>>;

/// Removes dead value files if that is worth it; returns how many, if any.
///
/// Value directories are given up if a source of pointers to them is damaged, so that it is not
/// known which files are live.
pub(crate) fn sweep_directories(
    engine: &Engine,
    want: ReclaimWant,
    given_up: &mut BTreeMap<FileNumber, Error>,
) -> Result<Option<String>> {
    let manifest = engine.manifest.lock(); // no part is installed in between
    engine.values.swept.lock().retain(|&number, _| manifest.state().is_directory(number));
    if manifest.state().directories.is_empty() {
        return Ok(None);
    }
    engine.check_open()?;
    let due = directories_due(engine, manifest.state(), want, given_up);
    if due.is_empty() {
        return Ok(None);
    }
    let boundaries = engine.boundaries.version();
    let _segment_map = engine.values.files.present(); // its files stay, even if a directory is removed in between
    let holders = live_values::holders(engine, &due.keys().map(|number| number.0 as u32).collect());
    drop(manifest);
    let mut units: Units = due.keys().map(|number| (number.0 as u32, Vec::new())).collect();
    match holders.into_iter().try_for_each(|holder| holder.add_all_to(&mut units)) {
        Err(error) if error.kind() == ErrorKind::Corruption => {
            let said = format!("left {} directories of values alone: {}", due.len(), error.message());
            given_up.extend(due.into_keys().map(|number| (number, error.clone())));
            return Ok(Some(said));
        }
        found => found?,
    }
    // The present index no longer points there: a power cut must not bring back one that does.
    log_sync::sync_for_hashed(engine)?;
    let mut dead = Vec::new();
    let (mut value_files, mut bytes) = (0, 0);
    for (&number, &alive) in &due {
        let found = look_through(engine, number, &units, alive, boundaries)?;
        value_files += found.0.len();
        bytes += found.1;
        dead.extend(Some((number, found.0)).filter(|(_, units)| !units.is_empty()));
    }
    look_again(engine, &dead)?;
    engine.check_open()?;
    segments::note_listed_values(engine, &engine.manifest.lock());
    if dead.is_empty() {
        return Ok(None);
    }
    if log_sync::has_hashed(engine) {
        // What replaced them is durable. Were its value damaged, an opening would take the batch
        // for one that a crash has torn, and the index would lead to them again.
        log_sync::vouch(engine)?;
    }
    engine.values.files.swept(dead);
    engine.counters.value_bytes_given_back.add(bytes);
    Ok(Some(format!("freed {value_files} dead values in files of their own")))
}

/// The settled directories of which enough seems to be dead, each with its number of live files;
/// not those that were given up.
pub(crate) fn directories_due(
    engine: &Engine,
    state: &State,
    want: ReclaimWant,
    given_up: &BTreeMap<FileNumber, Error>,
) -> BTreeMap<FileNumber, u64> {
    segments::note_settled(engine, state);
    let (alive, boundaries) = (live_values::alive(engine), engine.boundaries.version());
    let mut settled = engine.values.settled.lock().clone();
    live_values::leave_unsure(engine, &mut settled);
    let swept = engine.values.swept.lock();
    let sealed =
        state.directories.iter().filter_map(|(&number, value_files)| Some((number, (*value_files)?)));
    let due = sealed.filter(|(number, _)| settled.contains(number)).filter_map(|(number, value_files)| {
        let alive = alive.get(&(number.0 as u32)).map_or(0, |alive| alive.values);
        let before = swept.get(&number);
        let dead = before.map_or(value_files, |swept| swept.value_files).saturating_sub(alive);
        let has_changed = before.is_none_or(|swept| alive < swept.alive || boundaries != swept.boundaries);
        let least = match want {
            ReclaimWant::Asked => 1,
            ReclaimWant::WhenDue | ReclaimWant::Small => (value_files / DEAD_SHARE).max(1),
        };
        (alive > 0 && has_changed && dead >= least).then_some((number, alive)) // empty ones are removed whole
    });
    due.filter(|(number, _)| !given_up.contains_key(number)).take(DIRECTORIES_AT_ONCE).collect()
}

/// Which value files of a directory are dead, and their bytes. Notes what will remain.
pub(crate) fn look_through(
    engine: &Engine,
    number: FileNumber,
    units: &Units,
    alive: u64,
    boundaries: u64,
) -> Result<(Vec<u32>, u64)> {
    let files = &*engine.host.files;
    let kept: BTreeSet<u32> = units.get(&(number.0 as u32)).into_iter().flatten().copied().collect();
    let there = value_files_in(files, &engine.dir, number)?;
    let bytes_of = |unit: &u32| files.len_bytes(&value_file_path(&engine.dir, number, *unit)).unwrap_or(0);
    let (kept, dead): (Vec<u32>, Vec<u32>) = there.into_iter().partition(|unit| kept.contains(unit));
    let (dead_bytes, bytes) = (dead.iter().map(bytes_of).sum(), kept.iter().map(bytes_of).sum());
    let left = Swept { value_files: kept.len() as u64, bytes, alive, boundaries };
    engine.values.swept.lock().insert(number, left);
    Ok((dead, dead_bytes))
}

/// In debug builds: reads everything that points to these directories now, and checks that nothing
/// points to dead files.
pub(crate) fn look_again(engine: &Engine, dead: &[(FileNumber, Vec<u32>)]) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let mut now: Units = dead.iter().map(|(number, _)| (number.0 as u32, Vec::new())).collect();
    let holders = live_values::holders(engine, &now.keys().copied().collect());
    holders.into_iter().try_for_each(|holder| holder.add_all_to(&mut now))?;
    for (number, units) in dead {
        let missed = now[&(number.0 as u32)].iter().find(|unit| units.contains(unit));
        assert_eq!(missed, None, "a value file of directory {number} that something leads to is not dead");
    }
    Ok(())
}
