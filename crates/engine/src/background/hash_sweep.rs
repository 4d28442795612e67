//! Sweeping hashed tables: the slots of expired values are removed from the index, and then their
//! space is freed.
//!
//! ```text
//!   look    at slots in the order of points, some hundred a step: the front of each record is read
//!   take    those whose deadline has passed for every reader, with their points locked
//!   save    a checkpoint without them is asked for; when it is listed, they count no more
//! ```
//!
//! It is not logged. A crash brings back the slots that every checkpoint still has, but they have
//! expired all the same: readers take the newest record they find, and the next pass removes them
//! again. So until a checkpoint without them is listed, removed slots count as live when space is
//! reclaimed ([`Hashed::add_units`], the quota).
//!
//! A pass reads the fronts of all records, so it is rare: after half of the table's own lifetime of
//! values, or after an hour if each write sets it. Tables that keep versions are left alone:
//! expired values are their past. Called by background work, together with reclaim, and by
//! `compact`.

use folddb_base::{ErrorKind, Result};
use folddb_hash::{Change, IndexCursor, Past, Point, Slot};
use folddb_host::sync::atomic::Ordering;
use folddb_rules::time;

use crate::read::hashed;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::hash_index::{Hashed, Sweep};
use crate::values::hashed_record::Reading;

/// Records that a step examines.
const STEP_KEYS: usize = 512;

/// Shortest time between passes, in milliseconds, even if values expire sooner.
const PASS_MS_MIN: u64 = 60_000;

/// Time between passes if each write sets the lifetime of its value.
const PASS_MS_BY_WRITE: u64 = 3_600_000;

/// Most slots that may wait for a checkpoint without them, or an eighth of all keys.
const TAKEN_MAX: usize = 1 << 16;

/// Takes a step of a pass that is due; describes what it did, or none if none is due.
pub(crate) fn sweep_step(engine: &Engine) -> Result<Option<String>> {
    for (table, _) in engine.catalog().hashed() {
        let Some(hashed) = swept(table).filter(|_| table.check_alive().is_ok()) else { continue };
        let mut sweep = hashed.sweep.lock();
        if is_due(engine, table, hashed, &mut sweep) {
            let count = sweep_on(engine, table, hashed, &mut sweep)?;
            return Ok(Some(format!("removed {count} expired values of table `{}`", table.name)));
        }
    }
    Ok(None)
}

/// Makes a complete pass over a table whose values expire.
pub(crate) fn sweep_all(engine: &Engine, table: &TableCore) -> Result<()> {
    let Some(hashed) = swept(table) else { return Ok(()) };
    let mut sweep = hashed.sweep.lock();
    sweep.at = Some(IndexCursor::default());
    while sweep.at.is_some() {
        engine.check_open()?;
        table.check_alive()?;
        sweep_on(engine, table, hashed, &mut sweep)?;
    }
    Ok(())
}

/// Takes a step, past damaged shards, too: the damage is noted, and what the shard points to stays.
fn sweep_on(engine: &Engine, table: &TableCore, hashed: &Hashed, sweep: &mut Sweep) -> Result<u64> {
    let Some(from) = sweep.at else { return Ok(0) };
    match sweep_some(engine, table, hashed, sweep) {
        Err(damage) if damage.kind() == ErrorKind::Corruption => {
            hashed.note_damage(&damage);
            continue_at(engine, hashed, sweep, hashed.index.beyond(from));
            Ok(0)
        }
        swept => swept,
    }
}

/// The pass continues at `next`, or is over.
fn continue_at(engine: &Engine, hashed: &Hashed, sweep: &mut Sweep, next: Option<IndexCursor>) {
    sweep.at = next;
    if next.is_none() {
        sweep.since_ms = Some(clock::now_ms(engine));
        if hashed.taken.lock().waiting() > 0 {
            want_saved(engine, hashed);
        }
    }
}

fn is_due(engine: &Engine, table: &TableCore, hashed: &Hashed, sweep: &mut Sweep) -> bool {
    if sweep.at.is_some() {
        let keys: u64 = hashed.segments().values().map(|used| used.tally.records).sum();
        let is_full = hashed.taken.lock().waiting() >= TAKEN_MAX.max(keys as usize / 8);
        if is_full {
            want_saved(engine, hashed);
        }
        return !is_full;
    }
    let now_ms = clock::now_ms(engine);
    let every_ms = match time::default_ms(table.expire()) {
        Some(ms) => (ms / 2).max(PASS_MS_MIN),
        None => PASS_MS_BY_WRITE,
    };
    let since_ms = *sweep.since_ms.get_or_insert(now_ms);
    if now_ms.saturating_sub(since_ms) >= every_ms {
        sweep.at = Some(IndexCursor::default());
    }
    sweep.at.is_some()
}

fn want_saved(engine: &Engine, hashed: &Hashed) {
    hashed.wants_save.store(true, Ordering::Release);
    engine.bell.ring();
}

/// Examines some slots, and removes those of expired values; returns how many.
fn sweep_some(engine: &Engine, table: &TableCore, hashed: &Hashed, sweep: &mut Sweep) -> Result<u64> {
    let Some(from) = sweep.at else { return Ok(0) };
    let round = engine.values.files.round();
    let range = hashed.index.range(from, None)?;
    let Some(of) = engine.values.files.segment_map_of(round) else { return Ok(0) };
    // Readers that begin later read at no earlier time. Old snapshots pin files of sorted tables
    // only.
    let now_ms = clock::note_now(engine, &engine.commit.lock());
    let over_ms = engine.boundaries.oldest_held_ms().map_or(now_ms, |oldest| oldest.min(now_ms));
    let (mut expired, mut record) = (Vec::new(), Vec::new());
    for &(point, slot) in range.keys.iter().take(STEP_KEYS) {
        // Records that cannot be read are kept: a reader must get the error.
        let found =
            hashed::read_slot(engine, &of, table, slot, None, Reading::Head, &mut record).ok().flatten();
        if found.and_then(|found| found.front).is_some_and(|front| !front.is_alive(over_ms)) {
            expired.push((point, slot));
        }
    }
    let count = take_out(engine, table, hashed, &expired)?;
    let next = range.keys.get(STEP_KEYS).map(|(point, _)| point.bits().max(from.number() + 1));
    continue_at(engine, hashed, sweep, next.map_or(range.next, IndexCursor::from_number));
    Ok(count)
}

fn take_out(engine: &Engine, table: &TableCore, hashed: &Hashed, expired: &[(Point, Slot)]) -> Result<u64> {
    let mut count = 0;
    for &(point, slot) in expired {
        // A writer that has looked the key up must find the same slot again.
        let _locked = engine.points.hold(std::iter::once((table.id, point)));
        if hashed.index.change(point, Change::Remove(slot), 0, Past::Forgotten)? {
            hashed.taken.lock().push(slot);
            count += 1;
        }
    }
    engine.counters.records_expired.add(count);
    Ok(count)
}

/// The index of a table that is swept.
fn swept(table: &TableCore) -> Option<&Hashed> {
    table.hashed.as_ref().filter(|_| table.expires && table.versions() == 1)
}
