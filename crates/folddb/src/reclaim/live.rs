//! What of the value lane is alive: what something points to.
//!
//! Asked of segments that are settled (`reclaim.rs`), so that nothing but what the tables keep on disk points into them. Here is
//! the one place where a kind of table says what it points to.
//!
//! | kind of table | how much of each segment | where |
//! |---|---|---|
//! | sorted | the facts of its parts | the liveness of its parts |
//! | hashed | the account of its index | not told yet: no segment that one may lead to is moved (`spare_hashed`) |

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::Result;

use crate::engine::Engine;
use crate::hashed::Hashed;
use crate::view::PartFile;

/// How much of a segment is alive. What two parts of a merge under way point to counts twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alive {
    /// Values.
    pub(crate) values: u64,
    /// Bytes of their records.
    pub(crate) bytes: u64,
}

/// Something that points to values.
pub(crate) enum Holder {
    /// A part of a sorted table. Held, so that its file stays until it has been asked.
    Part(Arc<PartFile>),
}

impl Engine {
    /// How much of each segment is alive.
    pub(crate) fn alive(&self) -> BTreeMap<u32, Alive> {
        let mut alive: BTreeMap<u32, Alive> = BTreeMap::new();
        let roster = self.values.files.present();
        for table in self.catalog().all() {
            let mut add = |segment: u32, values: u64, bytes: u64| {
                let one = alive.entry(segment).or_default();
                (one.values, one.bytes) = (one.values + values, one.bytes + bytes);
            };
            for part in table.part_files().values() {
                part.part.facts().values.iter().for_each(|used| add(used.segment, used.count, used.bytes));
            }
            for (low, used) in
                table.hashed.iter().flat_map(Hashed::segments).filter(|(_, used)| used.tally.records > 0)
            {
                if let Some(segment) = roster.number_of(low) {
                    add(segment, used.tally.records, used.tally.bytes);
                }
            }
        }
        alive
    }

    /// All that points into one of these segments. The caller holds the manifest's lock, so that none is missed.
    pub(crate) fn holders(&self, is_wanted: &dyn Fn(u32) -> bool) -> Vec<Holder> {
        let mut holders = Vec::new();
        for table in self.catalog().all() {
            let parts = table.part_files();
            let points_there =
                |part: &&Arc<PartFile>| part.part.facts().values.iter().any(|used| is_wanted(used.segment));
            holders.extend(parts.values().filter(points_there).cloned().map(Holder::Part));
        }
        holders
    }
}

impl Holder {
    /// Adds the units of these segments that it points to.
    ///
    /// # Errors
    /// What it keeps on disk cannot be read.
    pub(crate) fn add_to(&self, units: &mut BTreeMap<u32, Vec<u32>>) -> Result<()> {
        match self {
            Holder::Part(part) => {
                let liveness = part.part.liveness()?;
                units.iter_mut().for_each(|(&segment, units)| units.extend(liveness.units(segment)));
                Ok(())
            }
        }
    }
}
