//! Which values of the value log are live: those that something points to.
//!
//! Used for settled segments (`reclaim.rs`), so only the tables' data on disk point into them. This
//! is the one place where each kind of table lists what it points to.
//!
//! | kind of table | how much of each segment | where |
//! |---|---|---|
//! | sorted | the facts of its parts | the liveness of its parts |
//! | hashed | the quota of its index, and what it keeps for snapshots | its index, and then what it keeps for snapshots |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use folddb_base::{FileNumber, Result};
use folddb_hash::IndexCursor;

use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::hash_index::low_bits;
use crate::state::view::PartFile;

/// How much of a segment is live. Values to which two parts of a running merge point count twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alive {
    /// Values.
    pub values: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

/// A source of pointers to values.
pub enum Holder {
    /// A part of a sorted table. Held, so that its file stays until it has been read.
    Part(Arc<PartFile>),
    /// A hashed table, and the next place in its index.
    Hashed(Arc<TableCore>, IndexCursor),
}

/// If a hashed table is unsure what it points to, since a log record did not match its index,
/// removes the segments that it may point to.
pub(crate) fn leave_unsure(engine: &Engine, segments: &mut BTreeSet<FileNumber>) {
    let catalog = engine.catalog();
    let mut unsure = catalog.hashed().map(|(_, hashed)| hashed).filter(|hashed| hashed.is_unsure());
    if unsure.next().is_some() {
        segments.clear();
    }
}

/// How much of each segment is live. The caller holds the manifest's lock.
pub fn alive(engine: &Engine) -> BTreeMap<u32, Alive> {
    let mut alive: BTreeMap<u32, Alive> = BTreeMap::new();
    let segment_map = engine.values.files.present();
    let mut add = |segment: u32, values: u64, bytes: u64| {
        let one = alive.entry(segment).or_default();
        (one.values, one.bytes) = (one.values + values, one.bytes + bytes);
    };
    for table in engine.tables_leading() {
        for part in table.part_files().values() {
            part.part.facts().values.iter().for_each(|used| add(used.segment, used.count, used.bytes));
        }
    }
    for (_, hashed) in engine.catalog().hashed() {
        let read = hashed.read_segments();
        for (low, tally) in read.into_iter().filter(|(_, tally)| tally.records > 0) {
            if let Some(segment) = segment_map.number_of(low) {
                add(segment, tally.records, tally.bytes);
            }
        }
    }
    alive
}

/// Everything that points into these segments. The caller holds the manifest's lock, so that none
/// is missed.
pub fn holders(engine: &Engine, segments: &BTreeSet<u32>) -> Vec<Holder> {
    let mut holders = Vec::new();
    let wanted_lows: BTreeSet<u32> = segments.iter().map(|&segment| low_bits(u64::from(segment))).collect();
    let is_wanted = |segment: u32| segments.contains(&segment);
    for table in engine.tables_leading() {
        let parts = table.part_files();
        let points_there =
            |part: &&Arc<PartFile>| part.part.facts().values.iter().any(|used| is_wanted(used.segment));
        holders.extend(parts.values().filter(points_there).cloned().map(Holder::Part));
    }
    for (table, hashed) in engine.catalog().hashed() {
        // It has an account for every segment that ever had one of its values, even if only
        // snapshots point there.
        if hashed.segments().keys().any(|low| wanted_lows.contains(low)) {
            holders.push(Holder::Hashed(Arc::clone(table), IndexCursor::default()));
        }
    }
    holders
}

impl Holder {
    /// Adds the units of these segments that it points to: all of them, or those of one step; then
    /// it returns the rest.
    ///
    /// # Errors
    /// Its data on disk cannot be read.
    pub(crate) fn add_to(self, units: &mut BTreeMap<u32, Vec<u32>>) -> Result<Option<Holder>> {
        match self {
            Holder::Part(part) => {
                let liveness = part.part.liveness()?;
                units.iter_mut().for_each(|(&segment, units)| units.extend(liveness.units(segment)));
                Ok(None)
            }
            Holder::Hashed(table, from) => {
                let Some(hashed) = &table.hashed else { return Ok(None) };
                let mut by_low: BTreeMap<u32, &mut Vec<u32>> =
                    units.iter_mut().map(|(&segment, units)| (low_bits(u64::from(segment)), units)).collect();
                let next = hashed.add_units_from(from, &mut |low, unit| {
                    by_low.get_mut(&low).into_iter().for_each(|units| units.push(unit));
                })?;
                Ok(next.map(|next| Holder::Hashed(table, next)))
            }
        }
    }

    /// All steps at once.
    ///
    /// # Errors
    /// As [`Holder::add_to`].
    pub(crate) fn add_all_to(self, units: &mut BTreeMap<u32, Vec<u32>>) -> Result<()> {
        let mut next = Some(self);
        while let Some(holder) = next {
            next = holder.add_to(units)?;
        }
        Ok(())
    }
}

/// Bytes of values that parts, and the indexes of hashed tables, point to.
pub fn value_live_bytes(engine: &Engine) -> u64 {
    alive(engine).values().map(|alive| alive.bytes).sum()
}
