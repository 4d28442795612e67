//! A sector: a sixty-fourth of all points, guarded by one lock. It finds the shard of a point and
//! splits shards.
//!
//! ```text
//!   places    | 0 | 0 | 1 | 1 | 2 | 2 | 3 | 4 |     2^depth of them, by the next bits of the point
//!   held      0: loaded   1: loaded   2: saved   3: loaded   4: saved
//! ```
//!
//! A shard that was saved and not used since is represented by a piece of a checkpoint, with the
//! replayed changes that wait until it is loaded. No file is read here: the owner of the sector
//! does that, without the lock.

use std::collections::BTreeSet;
use std::sync::Arc;

use folddb_base::{FileNumber, Result, Seq};
use folddb_layout::hash_checkpoint::{DEPTH_MAX, DEPTH_MIN, Entry, POINT_BITS, PieceEntry, PointRange};

use crate::checkpoint::Checkpoint;
use crate::shard::{Change, Photo, SHARD_KEYS_MAX, Shard};
use crate::sheets::Sheets;
use crate::slot::{Point, Slot, entry};
use crate::undone::Undone;

/// Bits of a point that choose the sector.
pub(crate) const SECTOR_BITS: u32 = DEPTH_MIN;

/// How many replayed changes wait for a shard before it is loaded. Together they take about as much
/// memory as the shard.
const WAITING_MAX: usize = if cfg!(test) { 20 } else { 4096 };

/// See the top of this file.
#[derive(Debug)]
pub(crate) struct Sector {
    held: Vec<Held>,
    places: Vec<u32>,
    depth: u32,
    /// What live snapshots need.
    pub(crate) undone: Undone,
}

/// A shard, in memory or not.
#[derive(Debug)]
pub(crate) enum Held {
    /// It is in memory.
    Loaded(Shard),
    /// It is in the checkpoint.
    Saved(Saved),
}

/// A shard that has not been used since it was saved.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    checkpoint: Arc<Checkpoint>,
    piece: PieceEntry,
    waiting: Vec<Waiting>,
}

/// A change that was replayed.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    point: Point,
    change: Change,
    seq: Seq,
}

/// The outcome of a replayed change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replayed {
    /// It was applied, or waits.
    Taken,
    /// The shard had it already.
    Known,
    /// The slot to be changed was absent, or the slot to be inserted was present. The new slot is
    /// in place now.
    Misfit,
    /// The shard must be loaded first.
    LoadFirst,
}

/// The range of the sector with this number.
fn range_of(number: usize) -> PointRange {
    PointRange { start: (number as u64) << (POINT_BITS - SECTOR_BITS), depth: SECTOR_BITS }
}

impl Sector {
    /// An empty sector.
    pub(crate) fn new(number: usize, sheets: &Arc<Sheets>) -> Sector {
        let shard = Shard::new(range_of(number), 0, sheets);
        Sector { held: vec![Held::Loaded(shard)], places: vec![0], depth: 0, undone: Undone::default() }
    }

    /// A sector of these pieces, which ascend and hold all of its points.
    pub(crate) fn of_pieces(pieces: &[PieceEntry], checkpoint: &Arc<Checkpoint>) -> Sector {
        let depth = pieces.iter().map(|piece| piece.range.depth - SECTOR_BITS).max().unwrap_or(0);
        let shares = |piece: &PieceEntry| 1usize << (depth + SECTOR_BITS - piece.range.depth);
        let numbered = pieces.iter().enumerate();
        let places = numbered.flat_map(|(at, piece)| std::iter::repeat_n(at as u32, shares(piece))).collect();
        let checkpoint = || Arc::clone(checkpoint);
        let saved = |piece: &PieceEntry| {
            Held::Saved(Saved { checkpoint: checkpoint(), piece: *piece, waiting: Vec::new() })
        };
        Sector { held: pieces.iter().map(saved).collect(), places, depth, undone: Undone::default() }
    }

    #[inline]
    fn place_of(&self, point: Point) -> usize {
        let within = point.bits() & ((1 << (POINT_BITS - SECTOR_BITS)) - 1);
        (within >> (POINT_BITS - SECTOR_BITS - self.depth)) as usize
    }

    /// The shard of a point.
    #[inline]
    pub(crate) fn held(&self, point: Point) -> &Held {
        &self.held[self.places[self.place_of(point)] as usize]
    }

    #[inline]
    fn held_mut(&mut self, point: Point) -> &mut Held {
        let place = self.place_of(point);
        &mut self.held[self.places[place] as usize]
    }

    /// All shards, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Held> {
        self.held.iter()
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let beside = |held: &Held| match held {
            Held::Loaded(shard) => shard.memory_bytes(),
            Held::Saved(saved) => saved.waiting.capacity() * size_of::<Waiting>(),
        };
        let own = self.held.capacity() * size_of::<Held>() + self.places.capacity() * size_of::<u32>();
        own + self.undone.memory_bytes() + self.held.iter().map(beside).sum::<usize>()
    }

    /// Makes a change in a loaded shard; none if it is not loaded.
    pub(crate) fn change(&mut self, point: Point, change: Change, seq: Option<Seq>) -> Option<bool> {
        let Held::Loaded(shard) = self.held_mut(point) else { return None };
        let was_made = shard.change(point, change);
        if let (true, Some(seq)) = (was_made, seq) {
            shard.seq = shard.seq.max(seq);
        }
        if shard.keys() > SHARD_KEYS_MAX {
            self.split(point);
        }
        Some(was_made)
    }

    /// Makes a change of the log, unless it is already included.
    pub(crate) fn replay(&mut self, point: Point, change: Change, seq: Seq) -> Replayed {
        let is_fit = match self.held_mut(point) {
            Held::Saved(saved) => return saved.replay(Waiting { point, change, seq }),
            Held::Loaded(shard) if seq <= shard.seq => return Replayed::Known,
            Held::Loaded(shard) => make_for_good(shard, point, change, seq),
        };
        if matches!(self.held(point), Held::Loaded(shard) if shard.keys() > SHARD_KEYS_MAX) {
            self.split(point);
        }
        if is_fit { Replayed::Taken } else { Replayed::Misfit }
    }

    /// Puts a shard that was read from a checkpoint in its place, makes the changes that waited for
    /// it, and returns how many of them did not fit. If the place no longer waits for that
    /// checkpoint, nothing is done.
    pub(crate) fn install(&mut self, point: Point, mut shard: Shard, from: &Arc<Checkpoint>) -> u64 {
        let held = self.held_mut(point);
        match held {
            Held::Saved(saved) if Arc::ptr_eq(&saved.checkpoint, from) => {
                let misfits = saved.catch_up(&mut shard);
                *held = Held::Loaded(shard);
                misfits
            }
            _ => 0,
        }
    }

    /// From now on, what is not in memory is read from a newer checkpoint of the same index.
    pub(crate) fn adopt(&mut self, checkpoint: &Arc<Checkpoint>) {
        for held in &mut self.held {
            let Held::Saved(saved) = held else { continue };
            if let Some(piece) = checkpoint.piece(saved.piece.range) {
                saved.waiting.retain(|waiting| waiting.seq > piece.seq);
                (saved.checkpoint, saved.piece) = (Arc::clone(checkpoint), *piece);
            }
        }
    }

    /// Drops shards that this checkpoint has unchanged, if `wants` is true for them. It gets how
    /// much memory that would free, and whether the shard was used since the last such question.
    pub(crate) fn let_go(
        &mut self,
        checkpoint: &Arc<Checkpoint>,
        wants: &mut dyn FnMut(usize, bool) -> bool,
    ) {
        for held in &mut self.held {
            let Held::Loaded(shard) = held else { continue };
            let Some(piece) = checkpoint.piece(shard.range()) else { continue };
            if shard.is_in(checkpoint.number()) && wants(shard.memory_bytes(), shard.was_used()) {
                let checkpoint = Arc::clone(checkpoint);
                *held = Held::Saved(Saved { checkpoint, piece: *piece, waiting: Vec::new() });
            }
        }
    }

    /// Splits the shard of a point, if its keys have different points.
    fn split(&mut self, point: Point) {
        let at = self.places[self.place_of(point)];
        let Held::Loaded(shard) = &self.held[at as usize] else { return };
        let depth = shard.range().depth + 1;
        if depth > DEPTH_MAX {
            return;
        }
        let (lower, upper) = shard.split();
        let upper_start = upper.range().start;
        self.held[at as usize] = Held::Loaded(lower);
        self.held.push(Held::Loaded(upper));
        if depth - SECTOR_BITS > self.depth {
            self.places = self.places.iter().flat_map(|place| [*place, *place]).collect();
            self.depth += 1;
        }
        let new = (self.held.len() - 1) as u32;
        let first = self.place_of(Point::from_bits(upper_start));
        self.places[first..].iter_mut().take_while(|place| **place == at).for_each(|place| *place = new);
    }
}

/// What a thread that holds the lock for a moment takes from a shard.
pub(crate) enum Taken {
    /// It was in memory.
    Photo(Photo, Seq),
    /// It was not.
    Saved(Saved),
}

impl Held {
    /// The points that it holds.
    pub(crate) fn range(&self) -> PointRange {
        match self {
            Held::Loaded(shard) => shard.range(),
            Held::Saved(saved) => saved.piece.range,
        }
    }

    /// The piece that has it, if it is not in memory.
    pub(crate) fn saved(&self) -> Option<(Arc<Checkpoint>, PieceEntry)> {
        match self {
            Held::Loaded(_) => None,
            Held::Saved(saved) => Some((Arc::clone(&saved.checkpoint), saved.piece)),
        }
    }

    /// Its present state, for this checkpoint or for none.
    pub(crate) fn take(&self, checkpoint: Option<FileNumber>) -> Taken {
        match self {
            Held::Loaded(shard) => {
                checkpoint.into_iter().for_each(|number| shard.is_now_in(number));
                Taken::Photo(shard.photo(), shard.seq)
            }
            Held::Saved(saved) => Taken::Saved(saved.clone()),
        }
    }
}

impl Saved {
    fn replay(&mut self, waiting: Waiting) -> Replayed {
        if waiting.seq <= self.piece.seq {
            return Replayed::Known;
        }
        if self.waiting.len() >= WAITING_MAX {
            return Replayed::LoadFirst;
        }
        self.waiting.push(waiting);
        Replayed::Taken
    }

    /// How many changes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many keys its piece has.
    pub(crate) fn keys(&self) -> u64 {
        self.piece.keys
    }

    /// The same without the waiting changes: enough to read it.
    pub(crate) fn source(&self) -> Saved {
        Saved { checkpoint: Arc::clone(&self.checkpoint), piece: self.piece, waiting: Vec::new() }
    }

    /// The place to read it from.
    pub(crate) fn checkpoint(&self) -> &Arc<Checkpoint> {
        &self.checkpoint
    }

    /// Reads the shard as it was saved.
    pub(crate) fn read(&self, sheets: &Arc<Sheets>) -> Result<Shard> {
        let mut shard = Shard::of(self.piece.range, &self.checkpoint.read(&self.piece)?, sheets);
        shard.seq = self.piece.seq;
        shard.is_now_in(self.checkpoint.number());
        Ok(shard)
    }

    /// What it holds, with the waiting changes, ascending; and the seq up to which that is
    /// complete. No shard is made from it.
    pub(crate) fn entries(&self) -> Result<(Vec<Entry>, Seq)> {
        let mut entries = self.checkpoint.read(&self.piece)?;
        let points: BTreeSet<Point> = self.waiting.iter().map(|waiting| waiting.point).collect();
        let mut changed: Vec<(Point, Vec<Slot>)> =
            points.into_iter().map(|point| (point, Vec::new())).collect();
        let mut at = 0; // both ascend
        entries.retain(|entry| {
            at += changed[at..].iter().take_while(|(point, _)| point.bits() < entry.point).count();
            match changed.get_mut(at).filter(|(point, _)| point.bits() == entry.point) {
                Some((_, slots)) => {
                    slots.push(Slot::from_bits(entry.slot));
                    false
                }
                None => true,
            }
        });
        let mut seq = self.piece.seq;
        for waiting in &self.waiting {
            seq = seq.max(waiting.seq);
            if let Ok(at) = changed.binary_search_by_key(&waiting.point, |(point, _)| *point) {
                make_among(&mut changed[at].1, waiting.change);
            }
        }
        let changed = changed.iter().flat_map(|(point, slots)| slots.iter().map(|slot| entry(*point, *slot)));
        entries.extend(changed);
        entries.sort_unstable();
        Ok((entries, seq))
    }

    /// Makes the changes that waited, and returns how many of them did not fit.
    pub(crate) fn catch_up(&self, shard: &mut Shard) -> u64 {
        let waiting = self.waiting.iter();
        waiting.filter(|w| !make_for_good(shard, w.point, w.change, w.seq)).count() as u64
    }
}

/// As [`make_for_good`], among the slots of one point.
fn make_among(slots: &mut Vec<Slot>, change: Change) {
    let (old, new) = match change {
        Change::Insert(new) => (None, Some(new)),
        Change::Replace { old, new } => (Some(old), Some(new)),
        Change::Remove(old) => (Some(old), None),
    };
    if let Some(at) = slots.iter().position(|slot| Some(*slot) == old) {
        slots.swap_remove(at);
    }
    slots.extend(new.filter(|new| !slots.contains(new)));
}

/// Makes a change that is known to have happened. False if it does not fit the content; what it
/// puts is added anyway.
fn make_for_good(shard: &mut Shard, point: Point, change: Change, seq: Seq) -> bool {
    shard.seq = shard.seq.max(seq);
    let is_fit = shard.change(point, change);
    if let (false, Change::Replace { new, .. }) = (is_fit, change) {
        shard.change(point, Change::Insert(new));
    }
    is_fit
}

#[cfg(test)]
#[path = "sector/tests.rs"]
mod tests;
