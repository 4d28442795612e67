//! Values in files of their own, as the engine puts them there and takes away those that are dead.
//!
//! A shelf is a value segment that is a directory, an object a record of it that is a file (`folddb_journal::shelves`). All that is
//! true of segments is true of shelves, and the same rooms see to it: they are listed before anything points to them, sealed,
//! fenced, settled, and go when nothing leads to them any more. But what is alive in a shelf never moves; what is dead goes by itself:
//!
//! ```text
//!   ask      what leads to objects of some shelves: parts, indexes, snapshots; as for reclaiming
//!   look     what is on those shelves; whatever nothing leads to is dead
//!   sweep    a roster begins without the dead, which go with the last reader that has an older one
//! ```
//!
//! No edit says so: an object that is dead is one that nothing leads to, before a crash and after it. The counts of the manifest are
//! those of when a shelf was sealed; what it holds since is kept in memory (`Swept`), and found out again after an opening.
//!
//! Called by `values` and `reclaim`.

use std::collections::{BTreeMap, BTreeSet};

use folddb_base::{Error, ErrorKind, FileNumber, Result, ValuePlace};
use folddb_journal::shelves::{object_path, objects_in};
use folddb_layout::file_name::FileName;
use folddb_manifest::State;

use crate::background::reclaim;
use crate::background::reclaim::live;
use crate::report::ReclaimWant;
use crate::state::engine::Engine;
use crate::values::values;
use crate::write::commit;

/// Shelves that are looked through at once: what leads there is asked once for all of them, and a million units take 4 MiB.
const SHELVES_AT_ONCE: usize = 256;

/// A shelf is looked through when one in so many of its objects is dead.
const DEAD_SHARE: u64 = 64;

/// What a shelf held when it was looked through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swept {
    /// Objects that were left, and the bytes of their files.
    objects: u64,
    bytes: u64,
    /// As many were alive then, but for snapshots.
    alive: u64,
    /// The snapshots of then.
    borders: u64,
}

/// What leads to objects, by shelf.
type Units = BTreeMap<u32, Vec<u32>>;

/// Writes a record as an object.
pub(crate) fn put_object(engine: &Engine, record: &[u8]) -> Result<ValuePlace> {
    let shelves = &engine.values.lane.shelves;
    loop {
        let put = shelves.append(record).inspect_err(|error| commit::note_write_failure(engine, error))?;
        if let Some(place) = put {
            return Ok(place);
        }
        let _only = engine.values.making();
        if !shelves.has_room() {
            make_shelf(engine)?;
        }
    }
}

/// Makes a shelf. The caller holds the lock under which segments are made.
fn make_shelf(engine: &Engine) -> Result<()> {
    let shelves = &engine.values.lane.shelves;
    let shelf = values::make_numbered(
        engine,
        &|| shelves.make(values::value_bytes(engine)),
        &|shelf| shelf.number(),
        &|shelf| shelves.unmake(shelf),
    )?;
    match values::list_values(engine, FileName::Shelf(shelf.number())) {
        Ok(()) => shelves.adopt(shelf),
        Err(error) => {
            if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Closed) {
                shelves.unmake(shelf); // after any other failure the edit may be on the disk
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Makes the next shelf ahead.
pub(crate) fn keep_shelves_ready(engine: &Engine) -> Result<()> {
    let shelves = &engine.values.lane.shelves;
    if shelves.wants_next() && engine.health.cause().is_none() && !engine.health.is_short() {
        let _only = engine.values.making();
        if shelves.wants_next() {
            make_shelf(engine)?;
        }
    }
    Ok(())
}

/// Bytes of a shelf that is sealed, as far as is known; of one that is open the lane knows.
pub(crate) fn shelf_bytes(engine: &Engine, number: FileNumber, sealed_bytes: Option<u64>) -> u64 {
    let swept = engine.values.swept.lock().get(&number).map(|swept| swept.bytes);
    swept.or(sealed_bytes).unwrap_or(0)
}

/// Takes dead objects away where that is worth it; says how many, if any.
///
/// Shelves are given up where what leads to them is damaged, so that it is not known what of them is alive.
pub(crate) fn sweep_shelves(
    engine: &Engine,
    want: ReclaimWant,
    given_up: &mut BTreeMap<FileNumber, Error>,
) -> Result<Option<String>> {
    let manifest = engine.manifest.lock(); // no part is installed meanwhile
    engine.values.swept.lock().retain(|&number, _| manifest.state().is_shelf(number));
    if manifest.state().shelves.is_empty() {
        return Ok(None);
    }
    engine.check_open()?;
    let due = shelves_due(engine, manifest.state(), want, given_up);
    if due.is_empty() {
        return Ok(None);
    }
    let borders = engine.borders.version();
    let _roster = engine.values.files.present(); // what it has stays, also a shelf that goes meanwhile
    let holders = live::holders(engine, &due.keys().map(|number| number.0 as u32).collect());
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
    // An index leads there no more as of now: a power cut must not bring back one that does.
    reclaim::sync_for_hashed(engine)?;
    let mut dead = Vec::new();
    let (mut objects, mut bytes) = (0, 0);
    for (&number, &alive) in &due {
        let found = look_through(engine, number, &units, alive, borders)?;
        objects += found.0.len();
        bytes += found.1;
        dead.extend(Some((number, found.0)).filter(|(_, units)| !units.is_empty()));
    }
    look_again(engine, &dead)?;
    engine.check_open()?;
    values::note_listed_values(engine, &engine.manifest.lock());
    if dead.is_empty() {
        return Ok(None);
    }
    engine.values.files.swept(dead);
    engine.counters.value_bytes_given_back.add(bytes);
    Ok(Some(format!("gave back {objects} dead values in files of their own")))
}

/// The settled shelves of which enough seems to be dead, each with how many are alive; those not that were given up.
fn shelves_due(
    engine: &Engine,
    state: &State,
    want: ReclaimWant,
    given_up: &BTreeMap<FileNumber, Error>,
) -> BTreeMap<FileNumber, u64> {
    reclaim::note_settled(engine, state);
    let (alive, borders) = (live::alive(engine), engine.borders.version());
    let mut settled = engine.values.settled.lock().clone();
    live::leave_unsure(engine, &mut settled);
    let swept = engine.values.swept.lock();
    let sealed = state.shelves.iter().filter_map(|(&number, objects)| Some((number, (*objects)?)));
    let due = sealed.filter(|(number, _)| settled.contains(number)).filter_map(|(number, objects)| {
        let alive = alive.get(&(number.0 as u32)).map_or(0, |alive| alive.values);
        let before = swept.get(&number);
        let dead = before.map_or(objects, |swept| swept.objects).saturating_sub(alive);
        let has_changed = before.is_none_or(|swept| alive < swept.alive || borders != swept.borders);
        let least = match want {
            ReclaimWant::Asked => 1,
            ReclaimWant::WhenDue | ReclaimWant::Small => (objects / DEAD_SHARE).max(1),
        };
        (alive > 0 && has_changed && dead >= least).then_some((number, alive)) // those without any go as a whole
    });
    due.filter(|(number, _)| !given_up.contains_key(number)).take(SHELVES_AT_ONCE).collect()
}

/// Which objects of a shelf are dead, and their bytes. Notes what will be left.
fn look_through(
    engine: &Engine,
    number: FileNumber,
    units: &Units,
    alive: u64,
    borders: u64,
) -> Result<(Vec<u32>, u64)> {
    let files = &*engine.host.files;
    let kept: BTreeSet<u32> = units.get(&(number.0 as u32)).into_iter().flatten().copied().collect();
    let there = objects_in(files, &engine.dir, number)?;
    let bytes_of = |unit: &u32| files.len_bytes(&object_path(&engine.dir, number, *unit)).unwrap_or(0);
    let (kept, dead): (Vec<u32>, Vec<u32>) = there.into_iter().partition(|unit| kept.contains(unit));
    let (dead_bytes, bytes) = (dead.iter().map(bytes_of).sum(), kept.iter().map(bytes_of).sum());
    let left = Swept { objects: kept.len() as u64, bytes, alive, borders };
    engine.values.swept.lock().insert(number, left);
    Ok((dead, dead_bytes))
}

/// In debug builds: everything that leads to these shelves now is asked again, and nothing leads to what is dead.
fn look_again(engine: &Engine, dead: &[(FileNumber, Vec<u32>)]) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let mut now: Units = dead.iter().map(|(number, _)| (number.0 as u32, Vec::new())).collect();
    let holders = live::holders(engine, &now.keys().copied().collect());
    holders.into_iter().try_for_each(|holder| holder.add_all_to(&mut now))?;
    for (number, units) in dead {
        let missed = now[&(number.0 as u32)].iter().find(|unit| units.contains(unit));
        assert_eq!(missed, None, "an object of shelf {number} that something leads to is not dead");
    }
    Ok(())
}
