//! A shard: the slots of one range of points, in lines. It is the unit that grows, is saved and is
//! loaded.
//!
//! ```text
//!   points of the range   start ............................................. end
//!   lines                 |......|......|......|......|......|......|......|......|
//!                            ^ home of a point: its share of the range, of the lines
//! ```
//!
//! Homes ascend with points, for any number of lines. So a shard can grow by a fifth instead of
//! doubling: while it grows, between 70 and 84 percent of its slots are taken. And it is copied
//! front to back, sequentially in memory. A point with a full home goes to the next line that is
//! not full, and the home knows how far away its furthest point is. Mostly all are at home, and
//! only the home is examined. Nothing is moved when a slot is freed.
//!
//! A shard that has reached [`SHARD_KEYS_MAX`] keys is split by its owner (`sector.rs`), so no
//! growth takes longer than copying that many keys, for any total. Pure: no lock, no file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use folddb_base::{FileNumber, Seq};
use folddb_host::resident::Resident;
use folddb_layout::hash_checkpoint::{Entry, PointRange};

use crate::line::{FAR_MAX, LINE_POINT_BITS, Line};
use crate::sheets::{SHEET_LINES, SHEET_SLOTS, Sheet, Sheets};
use crate::slot::{Point, Slot, entry};

/// A shard with more keys is split in two. In tests the bound is low, so that they reach it.
pub(crate) const SHARD_KEYS_MAX: usize = if cfg!(test) { 250 } else { 16 << 10 };

/// A shard grows when more than this share of its slots would be taken, in percent.
const FULL_PERCENT: usize = 84;

/// The share that is taken after it has grown, in percent.
const GROWN_PERCENT: usize = 70;

/// A shard shrinks when less than this share is taken, in percent.
const SPARSE_PERCENT: usize = 35;

/// What happens to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Insert(Slot),
    /// Its value is elsewhere now.
    Replace {
        /// Where it was.
        old: Slot,
        /// Where it is.
        new: Slot,
    },
    /// It is removed.
    Remove(Slot),
}

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Shard {
    range: PointRange,
    sheets: Vec<Resident<Sheet>>,
    source: Arc<Sheets>,
    keys: usize,
    /// No slot is further from its home than this many lines.
    reach: usize,
    /// It has every change of this shard up to this seq.
    pub(crate) seq: Seq,
    /// The number of the checkpoint that has it unchanged; zero for none.
    saved_in: AtomicU64,
    /// Whether it was used since the last time that this was asked.
    is_used: AtomicBool,
}

/// A slot that was found.
#[derive(Clone, Copy, Debug)]
struct Found {
    line: usize,
    at: u32,
}

/// Sheets for this many keys, at [`GROWN_PERCENT`].
fn sheets_for(keys: usize) -> usize {
    (keys * 100).div_ceil(GROWN_PERCENT * SHEET_SLOTS).max(1)
}

impl Shard {
    /// An empty shard of a range, with room for this many keys.
    pub(crate) fn new(range: PointRange, keys: usize, source: &Arc<Sheets>) -> Shard {
        let sheets = (0..sheets_for(keys)).map(|_| source.take()).collect();
        Shard {
            range,
            sheets,
            source: Arc::clone(source),
            keys: 0,
            reach: 0,
            seq: 0,
            saved_in: AtomicU64::new(0),
            is_used: AtomicBool::new(true),
        }
    }

    /// A shard of these entries, which are in the range.
    pub(crate) fn of(range: PointRange, entries: &[Entry], source: &Arc<Sheets>) -> Shard {
        let mut shard = Shard::new(range, entries.len(), source);
        for entry in entries {
            shard.insert(Point::from_bits(entry.point), Slot::from_bits(entry.slot));
        }
        shard
    }

    /// The points that it holds.
    pub(crate) fn range(&self) -> PointRange {
        self.range
    }

    /// How many slots are taken.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    /// The memory of its lines, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.sheets.len() * (size_of::<Sheet>() + size_of::<Resident<Sheet>>())
    }

    /// The part of that which the system has promised not to swap out.
    pub(crate) fn locked_bytes(&self) -> usize {
        self.sheets.iter().filter(|sheet| sheet.is_locked()).count() * size_of::<Sheet>()
    }

    /// Notes that this checkpoint has it as it is now. The caller excludes changes.
    pub(crate) fn is_now_in(&self, checkpoint: FileNumber) {
        self.saved_in.store(checkpoint.0, Ordering::Relaxed);
    }

    /// Whether this checkpoint has it unchanged.
    pub(crate) fn is_in(&self, checkpoint: FileNumber) -> bool {
        self.saved_in.load(Ordering::Relaxed) == checkpoint.0
    }

    /// Notes that it is used.
    #[inline]
    pub(crate) fn use_it(&self) {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was used since this was last asked.
    pub(crate) fn was_used(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    fn lines(&self) -> usize {
        self.sheets.len() * SHEET_LINES
    }

    #[inline]
    fn line(&self, line: usize) -> &Line {
        self.sheets[line / SHEET_LINES].line(line % SHEET_LINES)
    }

    #[inline]
    fn line_mut(&mut self, line: usize) -> &mut Line {
        self.sheets[line / SHEET_LINES].line_mut(line % SHEET_LINES)
    }

    /// The line where a point belongs.
    #[inline]
    fn home(&self, point: Point) -> usize {
        let share = point.bits() << (64 - self.range.width().trailing_zeros());
        ((u128::from(share) * self.lines() as u128) >> 64) as usize
    }

    /// The point at a place that is taken: what the line knows, and what the whole shard shares.
    #[inline]
    fn point_at(&self, line: usize, at: u32) -> Point {
        let above = self.range.start >> LINE_POINT_BITS << LINE_POINT_BITS;
        Point::from_bits(above | self.line(line).point_bits(at))
    }

    /// Visits the slots of a point until `is_it` accepts one, and returns that one.
    #[inline]
    fn find(&self, point: Point, mut is_it: impl FnMut(Slot) -> bool) -> Option<Found> {
        let home = self.home(point);
        let line = self.line(home);
        let found = find_in(line, point, &mut is_it).map(|at| Found { line: home, at });
        if found.is_some() || line.far() == 0 {
            return found;
        }
        (1..=self.far(home)).find_map(|step| {
            let line = self.beyond(home, step);
            find_in(self.line(line), point, &mut is_it).map(|at| Found { line, at })
        })
    }

    /// How far from a home its furthest slot is, at most.
    fn far(&self, home: usize) -> usize {
        let far = self.line(home).far();
        if far < FAR_MAX { far } else { self.reach }
    }

    /// The line `step` lines after `home`; after the last line comes the first.
    #[inline]
    fn beyond(&self, home: usize, step: usize) -> usize {
        let line = home + step;
        if line < self.lines() { line } else { line - self.lines() }
    }

    /// Whether a slot of a line has that home.
    fn has_guest(&self, line: usize, home: usize) -> bool {
        let mut taken = self.line(line).taken();
        while taken != 0 {
            if self.home(self.point_at(line, taken.trailing_zeros())) == home {
                return true;
            }
            taken &= taken - 1;
        }
        false
    }

    /// Updates how far the furthest slot is from its home, after one of the slots was removed.
    fn draw_near(&mut self, home: usize) {
        let far = (1..=self.far(home)).rev().find(|&step| self.has_guest(self.beyond(home, step), home));
        self.line_mut(home).set_far(far.unwrap_or(0));
    }

    /// Appends the slots of a point, in no order.
    #[inline]
    pub(crate) fn candidates(&self, point: Point, out: &mut Vec<Slot>) {
        self.find(point, |slot| {
            out.push(slot);
            false
        });
    }

    /// Makes a change. False, with nothing done, if the slot to be changed is absent, or the slot
    /// to be inserted is present.
    pub(crate) fn change(&mut self, point: Point, change: Change) -> bool {
        self.use_it();
        self.saved_in = AtomicU64::new(0);
        let old = match change {
            Change::Insert(new) => {
                let is_new = self.find(point, |slot| slot == new).is_none();
                if is_new {
                    self.insert(point, new);
                }
                return is_new;
            }
            Change::Replace { old, .. } | Change::Remove(old) => old,
        };
        let Some(found) = self.find(point, |slot| slot == old) else { return false };
        match change {
            Change::Replace { new, .. } => self.line_mut(found.line).replace(found.at, new),
            _ => self.remove(point, found),
        }
        true
    }

    pub(crate) fn insert(&mut self, point: Point, slot: Slot) {
        if (self.keys + 1) * 100 > self.sheets.len() * SHEET_SLOTS * FULL_PERCENT {
            self.resize(self.keys + 1);
        }
        self.put(point, slot);
    }

    fn remove(&mut self, point: Point, found: Found) {
        let home = self.home(point);
        self.line_mut(found.line).clear(found.at);
        if found.line == self.beyond(home, self.far(home)) && found.line != home {
            self.draw_near(home);
        }
        self.keys -= 1;
        let is_sparse = self.keys * 100 < self.sheets.len() * SHEET_SLOTS * SPARSE_PERCENT;
        if is_sparse && self.sheets.len() > sheets_for(self.keys) {
            self.resize(self.keys);
        }
    }

    /// Puts a slot where there is room. There always is some: the slots are never all taken.
    fn put(&mut self, point: Point, slot: Slot) {
        let home = self.home(point);
        self.keys += 1;
        if self.line_mut(home).put(point, slot) {
            return;
        }
        for step in 1..self.lines() {
            let line = self.beyond(home, step);
            if self.line_mut(line).put(point, slot) {
                self.reach = self.reach.max(step);
                let far = self.line(home).far().max(step);
                self.line_mut(home).set_far(far);
                return;
            }
        }
    }

    /// Copies it into as many sheets as this many keys need.
    fn resize(&mut self, keys: usize) {
        let mut other = Shard::new(self.range, keys, &self.source);
        other.seq = self.seq;
        self.each(|point, slot| other.put(point, slot));
        *self = other;
    }

    /// Both halves of it.
    pub(crate) fn split(&self) -> (Shard, Shard) {
        let depth = self.range.depth + 1;
        let low = PointRange { depth, ..self.range };
        let high = PointRange { start: low.end(), depth };
        let mut lower_keys = 0;
        self.each(|point, _| lower_keys += usize::from(low.contains(point.bits())));
        let mut lower = Shard::new(low, lower_keys, &self.source);
        let mut upper = Shard::new(high, self.keys - lower_keys, &self.source);
        (lower.seq, upper.seq) = (self.seq, self.seq);
        self.each(|point, slot| match low.contains(point.bits()) {
            true => lower.put(point, slot),
            false => upper.put(point, slot),
        });
        (lower, upper)
    }

    /// Every point with its slot, roughly in the order of the points.
    fn each(&self, mut visit: impl FnMut(Point, Slot)) {
        for line in 0..self.lines() {
            let mut taken = self.line(line).taken();
            while taken != 0 {
                let at = taken.trailing_zeros();
                visit(self.point_at(line, at), self.line(line).slot(at));
                taken &= taken - 1;
            }
        }
    }

    /// A copy of the shard, as cheap as possible, because a lock is held.
    pub(crate) fn photo(&self) -> Photo {
        Photo {
            above: self.range.start >> LINE_POINT_BITS << LINE_POINT_BITS,
            keys: self.keys,
            sheets: self.sheets.iter().map(|sheet| **sheet).collect(),
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.sheets.drain(..).for_each(|sheet| self.source.give_back(sheet));
    }
}

/// The place of a slot of this point in a line, if it is the right one.
#[inline]
fn find_in(line: &Line, point: Point, is_it: &mut (impl FnMut(Slot) -> bool + ?Sized)) -> Option<u32> {
    let mut same = line.matching(point);
    while same != 0 {
        let at = same.trailing_zeros();
        if is_it(line.slot(at)) {
            return Some(at);
        }
        same &= same - 1;
    }
    None
}

/// A shard as it was at one moment.
#[derive(Debug)]
pub(crate) struct Photo {
    above: u64,
    keys: usize,
    sheets: Vec<Sheet>,
}

impl Photo {
    /// Its content, ascending.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(self.keys);
        for line in self.sheets.iter().flat_map(Sheet::lines) {
            let mut taken = line.taken();
            while taken != 0 {
                let at = taken.trailing_zeros();
                entries.push(entry(Point::from_bits(self.above | line.point_bits(at)), line.slot(at)));
                taken &= taken - 1;
            }
        }
        entries.sort_unstable();
        entries
    }
}

#[cfg(test)]
#[path = "shard/tests.rs"]
mod tests;
