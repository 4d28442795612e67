//! What live snapshots need of the past of a sector: all changes since the oldest snapshot.
//!
//! A reader at a seq takes the present candidates and undoes the changes after that seq, newest
//! first. Nothing is noted while no snapshot lives.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use folddb_base::Seq;
use folddb_layout::hash_checkpoint::{Entry, PointRange};

use crate::shard::Change;
use crate::slot::{Point, Slot, entry};

/// See the top of this file.
#[derive(Debug, Default)]
pub(crate) struct Undone {
    changes: BTreeMap<(Point, Seq), Change>,
    /// The seq of the last noted change, forgotten or not.
    latest: Seq,
}

impl Undone {
    /// Notes a change that was made at a seq.
    pub(crate) fn note(&mut self, point: Point, seq: Seq, change: Change) {
        self.changes.insert((point, seq), change);
        self.latest = self.latest.max(seq);
    }

    /// How many changes are noted.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// The approximate memory that they take, in bytes: a tree's nodes are half to completely full.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.len() * size_of::<((Point, Seq), Change)>() * 4 / 3
    }

    /// Restores the slots of a point as they were at a seq.
    pub(crate) fn undo(&self, point: Point, at: Seq, slots: &mut Vec<Slot>) {
        let later = (Bound::Excluded((point, at)), Bound::Included((point, Seq::MAX)));
        self.changes.range(later).rev().for_each(|(_, change)| undo(*change, slots));
    }

    /// The changes of a range after a seq.
    pub(crate) fn after(&self, range: PointRange, at: Seq) -> Undone {
        let from = (Point::from_bits(range.start), 0);
        let to = (Point::from_bits(range.end() - 1), Seq::MAX);
        let changes = self.changes.range(from..=to).filter(|((_, seq), _)| *seq > at);
        Undone { changes: changes.map(|(place, change)| (*place, *change)).collect(), latest: self.latest }
    }

    /// Whether a change of a point after a seq is noted.
    pub(crate) fn is_changed(&self, point: Point, since: Seq) -> bool {
        let later = (Bound::Excluded((point, since)), Bound::Included((point, Seq::MAX)));
        self.changes.range(later).next().is_some()
    }

    /// Whether any change after a seq is noted.
    pub(crate) fn has_later(&self, since: Seq) -> bool {
        self.latest > since
    }

    /// Restores present entries, which ascend, as they were before all noted changes.
    pub(crate) fn undo_all(&self, entries: &mut Vec<Entry>) {
        let points: BTreeSet<Point> = self.changes.keys().map(|(point, _)| *point).collect();
        let mut restored = Vec::new();
        for &point in &points {
            let from = entries.partition_point(|entry| entry.point < point.bits());
            let same = entries[from..].iter().take_while(|entry| entry.point == point.bits());
            let mut slots: Vec<Slot> = same.map(|entry| Slot::from_bits(entry.slot)).collect();
            self.undo(point, 0, &mut slots);
            restored.extend(slots.into_iter().map(|slot| entry(point, slot)));
        }
        entries.retain(|entry| !points.contains(&Point::from_bits(entry.point)));
        entries.append(&mut restored);
        entries.sort_unstable();
    }

    /// Forgets what no reader at this seq or later needs.
    pub(crate) fn forget(&mut self, up_to: Seq) {
        self.changes.retain(|(_, seq), _| *seq > up_to);
    }

    /// Forgets the changes of one point up to a seq.
    pub(crate) fn forget_at(&mut self, point: Point, up_to: Seq) {
        while let Some((&(at, seq), _)) = self.changes.range((point, 0)..=(point, up_to)).next() {
            self.changes.remove(&(at, seq));
        }
    }

    /// Visits every slot in it.
    pub(crate) fn each_slot(&self, visit: &mut dyn FnMut(Slot)) {
        self.changes.values().for_each(|change| slots_of(&mut change.clone()).for_each(|slot| visit(*slot)));
    }

    /// Visits every slot that a noted change has replaced or removed, each once: only readers of
    /// the past still read them.
    pub(crate) fn each_replaced(&self, visit: &mut dyn FnMut(Slot)) {
        for change in self.changes.values() {
            if let Change::Replace { old, .. } | Change::Remove(old) = change {
                visit(*old);
            }
        }
    }

    /// Replaces a slot with another, in all places. False if it does not occur.
    pub(crate) fn relocate(&mut self, point: Point, from: Slot, to: Slot) -> bool {
        let mut was_there = false;
        for (_, change) in self.changes.range_mut((point, 0)..=(point, Seq::MAX)) {
            for slot in slots_of(change) {
                if *slot == from {
                    *slot = to;
                    was_there = true;
                }
            }
        }
        was_there
    }

    /// Whether it has a slot.
    pub(crate) fn refers_to(&self, point: Point, slot: Slot) -> bool {
        let mut changes = self.changes.range((point, 0)..=(point, Seq::MAX));
        changes.any(|(_, change)| slots_of(&mut change.clone()).any(|other| *other == slot))
    }
}

fn undo(change: Change, slots: &mut Vec<Slot>) {
    let (gone, back) = match change {
        Change::Insert(new) => (Some(new), None),
        Change::Replace { old, new } => (Some(new), Some(old)),
        Change::Remove(old) => (None, Some(old)),
    };
    if let Some(at) = slots.iter().position(|slot| Some(*slot) == gone) {
        slots.swap_remove(at);
    }
    slots.extend(back);
}

fn slots_of(change: &mut Change) -> impl Iterator<Item = &mut Slot> {
    let (one, other) = match change {
        Change::Insert(slot) | Change::Remove(slot) => (slot, None),
        Change::Replace { old, new } => (old, Some(new)),
    };
    std::iter::once(one).chain(other)
}

#[cfg(test)]
#[path = "undone/tests.rs"]
mod tests;
