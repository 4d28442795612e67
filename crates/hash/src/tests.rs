//! What the tests of all modules use.

use std::collections::BTreeMap;

use crate::{Change, Point, Slot};

/// What an index should hold.
pub(crate) type State = BTreeMap<Point, Vec<Slot>>;

/// Makes a change to a state.
pub(crate) fn make(state: &mut State, point: Point, change: Change) {
    let slots = state.entry(point).or_default();
    match change {
        Change::Insert(new) => slots.push(new),
        Change::Replace { old, new } => {
            slots.iter_mut().filter(|slot| **slot == old).for_each(|slot| *slot = new)
        }
        Change::Remove(old) => slots.retain(|slot| *slot != old),
    }
    slots.sort_unstable();
}

/// SplitMix64: numbers that look random and follow from a seed.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`; zero if that is zero.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }
}
