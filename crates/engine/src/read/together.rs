//! Some keys that are read together from the runs of one view: all of them are probed in all runs,
//! then come nearer to their blocks step by step, side by side, and are read last, one after the
//! other (`run/near.rs`).
//!
//! Each comes nearer in one run alone, the newest whose filter admits it: older ones matter only if
//! it has no record there, or operands. If most keys are in memtables, all this is in vain, so the
//! keys before decide.
//!
//! Used by `get.rs`.

use std::ops::Range;

use folddb_base::checksum::key_hash;
use folddb_base::{Result, Seq};
use folddb_run::{Near, Part, Probe, Rank};

use crate::state::catalog::TableCore;
use crate::state::view::TableView;

/// How many keys take their steps side by side. A processor waits for some twelve lines at a time,
/// and what these keys have asked for fits its nearest cache.
const SIDE_BY_SIDE: usize = 16;

/// Reads keys, in order, in groups.
pub(crate) struct Together<'v> {
    table: &'v TableCore,
    view: &'v TableView,
    /// Newer records are not seen.
    limit: Seq,
    /// For each key of a group the hash, the run in which it comes nearer, and how near it is.
    keys: Vec<(u64, usize, Option<Near<'v>>)>,
    /// For each key the probes of all runs.
    probes: Vec<Option<(&'v Part, Probe<'v>)>>,
    /// Whether most keys of the last group were not found in memtables.
    needs_runs: bool,
}

/// What is known of a key before it is read.
pub(crate) struct Ahead<'a, 'v> {
    pub(crate) hash: u64,
    pub(crate) probes: &'a [Option<(&'v Part, Probe<'v>)>],
    /// The run in which it has come nearer.
    pub(crate) near_in: usize,
    pub(crate) near: Option<&'a mut Near<'v>>,
}

/// Reads the key of a place. Returns whether memtables alone have its value.
type ReadKey<'r> = dyn FnMut(usize, Option<Ahead<'_, '_>>) -> Result<bool> + 'r;

impl<'v> Together<'v> {
    pub(crate) fn new(table: &'v TableCore, view: &'v TableView, limit: Seq) -> Together<'v> {
        Together { table, view, limit, keys: Vec::new(), probes: Vec::new(), needs_runs: true }
    }

    /// Reads the keys of these places.
    pub(crate) fn read(
        &mut self,
        places: Range<usize>,
        keys: &[&[u8]],
        read: &mut ReadKey<'_>,
    ) -> Result<()> {
        let mut from = places.start;
        while from < places.end {
            let group = from..places.end.min(from + SIDE_BY_SIDE);
            from = group.end;
            // A key alone has nobody to wait with.
            let in_memory = match self.needs_runs && group.len() > 1 {
                true => self.read_ahead(group.clone(), keys, read)?,
                false => read_each(group.clone(), read)?,
            };
            self.needs_runs = in_memory * 2 < group.len();
        }
        Ok(())
    }

    fn read_ahead(&mut self, places: Range<usize>, keys: &[&[u8]], read: &mut ReadKey<'_>) -> Result<usize> {
        let keys = &keys[places.clone()];
        self.come_near(keys);
        let (runs, mut in_memory) = (self.view.runs.len(), 0);
        let mut rest = &mut self.keys[..];
        for (number, place) in places.enumerate() {
            let Some(((hash, near_in, near), others)) = rest.split_first_mut() else { break };
            let next = others.first_mut().and_then(|(_, _, near)| near.as_mut());
            if let (Some(near), Some(next)) = (near.as_mut(), next.as_deref()) {
                near.note_next(next);
            }
            let probes = &self.probes[number * runs..(number + 1) * runs];
            let ahead = Ahead { hash: *hash, probes, near_in: *near_in, near: near.as_mut() };
            in_memory += usize::from(read(place, Some(ahead))?);
            if let (Some(near), Some(next)) = (near.as_mut(), next) {
                near.pass_on(next);
            }
            rest = others;
        }
        Ok(in_memory)
    }

    /// Takes all steps with all keys.
    fn come_near(&mut self, keys: &[&[u8]]) {
        let (view, order, limit) = (self.view, &self.table.rules.order, self.limit);
        self.probes.clear();
        self.keys.clear();
        for key in keys {
            let hash = key_hash(key);
            self.keys.push((hash, 0, None));
            self.probes.extend(view.runs.iter().map(|run| {
                let part = &*run.part_of(order, key)?.file.part;
                Some((part, part.probe(key, hash, limit)))
            }));
        }
        let runs = view.runs.len();
        for ((hash, near_in, near), probes) in self.keys.iter_mut().zip(self.probes.chunks(runs.max(1))) {
            let mut likely = probes.iter().enumerate().filter_map(|(number, slot)| {
                let (part, probe) = (*slot)?;
                Some((number, Near::of(part, probe, rank_of(number, runs), *hash)?))
            });
            if let Some((number, first)) = likely.next() {
                (*near_in, *near) = (number, Some(first));
            }
        }
        for _ in 0..Near::STEPS {
            for (key, (_, _, near)) in keys.iter().zip(&mut self.keys) {
                if let Some(near) = near {
                    near.step(key);
                }
            }
        }
    }
}

/// The rank of the run of this number, of so many.
#[inline]
pub(crate) fn rank_of(number: usize, runs: usize) -> Rank {
    if number + 1 == runs { Rank::Oldest } else { Rank::Young }
}

/// Reads keys one after the other; returns how many of them memtables alone have.
fn read_each(places: Range<usize>, read: &mut ReadKey<'_>) -> Result<usize> {
    let mut in_memory = 0;
    for place in places {
        in_memory += usize::from(read(place, None)?);
    }
    Ok(in_memory)
}
