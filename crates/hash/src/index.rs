//! The index of a hashed table, shared by all threads.
//!
//! ```text
//!   lock      guards                        held while
//!   sector    a 64th of all points          a slot is looked up or changed; a shard of 16 K keys is copied, split or grown
//! ```
//!
//! One other lock guards the list of free sheets (`sheets.rs`). It is held for moments, also under
//! the lock of a sector. No file is touched with a lock held: a shard that is not in memory is read
//! first and then put in place.
//!
//! **Who calls what.** A write looks for the candidates of its key, reads their records to find the
//! right one, and changes it with [`HashIndex::change`]; changes come in the order of their seqs. A
//! read asks for candidates, at present or at a snapshot's seq. Recovery opens a checkpoint and
//! applies later changes with [`HashIndex::replay`]. Background work saves with
//! [`HashIndex::save_step`], and drops what does not fit its memory. Reclaim calls
//! [`HashIndex::relocate`] for each record that it has moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folddb_base::{ErrorKind, FileNumber, Result, Seq};
use folddb_host::sync::RwLock;
use folddb_layout::hash_checkpoint::{Entry, POINT_BITS, PieceEntry};

use crate::checkpoint::{Checkpoint, CheckpointWriter, Image};
use crate::sector::{Held, Replayed, SECTOR_BITS, Sector, Taken};
use crate::shard::Change;
use crate::sheets::Sheets;
use crate::slot::{Point, Slot};

/// How an index is held.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexOptions {
    /// Ask the system not to swap it out. If it refuses, the index is held anyway: see
    /// [`IndexFacts::locked_bytes`].
    pub lock_in_memory: bool,
}

/// See the top of this file.
#[derive(Debug)]
pub struct HashIndex {
    sectors: Box<[RwLock<Sector>]>,
    sheets: Arc<Sheets>,
    loads: AtomicU64,
    misfits: AtomicU64,
}

/// Whether there is a snapshot that may need the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// There is none.
    Forgotten,
    /// There is one, or may be.
    Kept,
}

/// Some keys of an enumeration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexRange {
    /// Each with its slot, ascending by point.
    pub keys: Vec<(Point, Slot)>,
    /// Where the next range begins; none after the last.
    pub next: Option<IndexCursor>,
}

/// A place in an enumeration: a point. It means the same after growth, after a restart, and in a
/// copy of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexCursor(u64);

impl IndexCursor {
    /// The place with this number, as [`IndexCursor::number`] returned it; none if there is no such
    /// place.
    pub fn from_number(number: u64) -> Option<IndexCursor> {
        (number < 1 << POINT_BITS).then_some(IndexCursor(number))
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What an index is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFacts {
    /// The number of keys; for shards that are not loaded, as they were saved.
    pub keys: u64,
    /// Shards in memory.
    pub loaded: u64,
    /// Shards that are only in the checkpoint.
    pub saved: u64,
    /// Changes that wait for these.
    pub waiting: u64,
    /// Changes that are kept for snapshots.
    pub undone: u64,
    /// Total memory, in bytes.
    pub memory_bytes: u64,
    /// The part of that which the system has promised not to swap out.
    pub locked_bytes: u64,
    /// Shards loaded from a checkpoint so far.
    pub loads: u64,
    /// Replayed changes that did not fit the content.
    pub misfits: u64,
}

impl HashIndex {
    /// An empty index.
    pub fn new(options: IndexOptions) -> HashIndex {
        let sheets = Arc::new(Sheets::new(options.lock_in_memory));
        let sector = |number| RwLock::new(Sector::new(number, &sheets));
        HashIndex::of((0..1 << SECTOR_BITS).map(sector).collect(), sheets)
    }

    /// The index that a checkpoint saved. A piece is read only when one of its keys is needed.
    pub fn open(checkpoint: &Arc<Checkpoint>, options: IndexOptions) -> HashIndex {
        let number = |piece: &PieceEntry| piece.range.start >> (POINT_BITS - SECTOR_BITS);
        let sectors = checkpoint.pieces().chunk_by(|one, next| number(one) == number(next));
        let sectors = sectors.map(|pieces| RwLock::new(Sector::of_pieces(pieces, checkpoint))).collect();
        HashIndex::of(sectors, Arc::new(Sheets::new(options.lock_in_memory)))
    }

    /// From now on, reads what is not in memory from this checkpoint, which was just saved from
    /// this index.
    pub fn adopt(&self, checkpoint: &Arc<Checkpoint>) {
        self.sectors.iter().for_each(|sector| sector.write().adopt(checkpoint));
    }

    /// Drops shards from memory until they take at most this many bytes, as far as they have not
    /// changed since this checkpoint was saved or read; first those that have not been used since
    /// the last call. They are loaded again when they are used.
    pub fn let_go(&self, checkpoint: &Arc<Checkpoint>, memory_bytes_max: u64) {
        let mut surplus = self.facts().memory_bytes.saturating_sub(memory_bytes_max);
        for takes_used in [false, true] {
            let mut wants = |bytes: usize, was_used: bool| {
                let is_wanted = surplus > 0 && (takes_used || !was_used);
                surplus = surplus.saturating_sub(if is_wanted { bytes as u64 } else { 0 });
                is_wanted
            };
            self.sectors.iter().for_each(|sector| sector.write().let_go(checkpoint, &mut wants));
        }
    }

    fn of(sectors: Box<[RwLock<Sector>]>, sheets: Arc<Sheets>) -> HashIndex {
        HashIndex { sectors, sheets, loads: AtomicU64::new(0), misfits: AtomicU64::new(0) }
    }

    #[inline]
    fn sector(&self, point: Point) -> &RwLock<Sector> {
        &self.sectors[(point.bits() >> (POINT_BITS - SECTOR_BITS)) as usize]
    }

    /// Appends the slots of all keys with this point, in no order: at present, or as they were at a
    /// seq at which a snapshot lives.
    ///
    /// # Errors
    /// The shard is not in memory and cannot be read: `Corruption` with file and offset, or what
    /// the system says. Other points are not affected.
    #[inline]
    pub fn candidates(&self, point: Point, at: Option<Seq>, out: &mut Vec<Slot>) -> Result<()> {
        let from = out.len();
        loop {
            let sector = self.sector(point).read();
            if let Held::Loaded(shard) = sector.held(point) {
                shard.use_it();
                shard.candidates(point, out);
                if let Some(at) = at.filter(|_| sector.undone.len() > 0) {
                    let mut slots = out.split_off(from);
                    sector.undone.undo(point, at, &mut slots);
                    out.append(&mut slots);
                }
                return Ok(());
            }
            drop(sector);
            self.load(point)?;
        }
    }

    /// Makes the change of the record with this seq. False, with nothing done, if the slot to be
    /// replaced or removed is absent, or the slot to be inserted is present.
    ///
    /// # Errors
    /// As [`HashIndex::candidates`].
    pub fn change(&self, point: Point, change: Change, seq: Seq, past: Past) -> Result<bool> {
        loop {
            let mut sector = self.sector(point).write();
            if let Some(was_made) = sector.change(point, change, Some(seq)) {
                if was_made && past == Past::Kept {
                    sector.undone.note(point, seq, change);
                }
                return Ok(was_made);
            }
            drop(sector);
            self.load(point)?;
        }
    }

    /// Makes the change of a record of the log, unless the checkpoint already has it. If the shard
    /// is not in memory, the change waits for it, up to a bound. A change that does not fit the
    /// content is counted, and what it puts is added anyway.
    ///
    /// # Errors
    /// As [`HashIndex::candidates`].
    pub fn replay(&self, point: Point, change: Change, seq: Seq) -> Result<()> {
        self.apply(point, change, seq, Past::Forgotten).map(drop)
    }

    /// As [`HashIndex::replay`], for a change that may be new: snapshots may need the past. False
    /// if the index already had it.
    ///
    /// # Errors
    /// As [`HashIndex::candidates`].
    pub fn apply(&self, point: Point, change: Change, seq: Seq, past: Past) -> Result<bool> {
        loop {
            let mut sector = self.sector(point).write();
            let replayed = sector.replay(point, change, seq);
            if past == Past::Kept && matches!(replayed, Replayed::Taken | Replayed::Misfit) {
                sector.undone.note(point, seq, change);
            }
            drop(sector);
            match replayed {
                Replayed::Taken => return Ok(true),
                Replayed::Known => return Ok(false),
                Replayed::Misfit => {
                    self.misfits.fetch_add(1, Ordering::Relaxed);
                    return Ok(true);
                }
                Replayed::LoadFirst => self.load(point)?,
            }
        }
    }

    /// Changes the place of the record of a slot, for present readers and for snapshots. False if
    /// the slot is unknown: the record is dead, and did not have to be moved. This is saved only by
    /// the next checkpoint: an earlier copy still leads to the old place.
    ///
    /// # Errors
    /// As [`HashIndex::candidates`].
    pub fn relocate(&self, point: Point, from: Slot, to: Slot) -> Result<bool> {
        loop {
            let mut sector = self.sector(point).write();
            if let Some(is_live) = sector.change(point, Change::Replace { old: from, new: to }, None) {
                return Ok(sector.undone.relocate(point, from, to) || is_live);
            }
            drop(sector);
            self.load(point)?;
        }
    }

    /// Whether a key of this point was changed after a seq at which a snapshot lives. Moving a
    /// record is not a change. Reads no file.
    pub fn is_changed(&self, point: Point, since: Seq) -> bool {
        self.sector(point).read().undone.is_changed(point, since)
    }

    /// Whether any key was changed after a seq at which a snapshot lives. Reads no file.
    pub fn has_changed(&self, since: Seq) -> bool {
        self.sectors.iter().any(|sector| sector.read().undone.has_later(since))
    }

    /// Whether what a slot leads to may still be read: by the present index, or by a snapshot.
    ///
    /// # Errors
    /// As [`HashIndex::candidates`].
    pub fn refers_to(&self, point: Point, slot: Slot) -> Result<bool> {
        let mut slots = Vec::new();
        self.candidates(point, None, &mut slots)?;
        Ok(slots.contains(&slot) || self.sector(point).read().undone.refers_to(point, slot))
    }

    /// Forgets what was kept for snapshots, except what live ones still need: the oldest reads at
    /// `oldest`.
    pub fn forget(&self, oldest: Option<Seq>) {
        let up_to = oldest.unwrap_or(Seq::MAX);
        self.sectors.iter().for_each(|sector| sector.write().undone.forget(up_to));
    }

    /// Forgets what was kept for one point up to a seq: no live snapshot can ask for it.
    pub fn forget_at(&self, point: Point, up_to: Seq) {
        self.sector(point).write().undone.forget_at(point, up_to);
    }

    /// Visits every slot that only snapshots may still read, and maybe others.
    pub fn each_undone(&self, visit: &mut dyn FnMut(Slot)) {
        self.sectors.iter().for_each(|sector| sector.read().undone.each_slot(visit));
    }

    /// Visits every slot that was replaced or removed and that a snapshot may still read, each
    /// once.
    pub fn each_replaced(&self, visit: &mut dyn FnMut(Slot)) {
        self.sectors.iter().for_each(|sector| sector.read().undone.each_replaced(visit));
    }

    /// Drops everything: the table was dropped, or the store was closed.
    pub fn clear(&self) {
        for (number, sector) in self.sectors.iter().enumerate() {
            let gone = std::mem::replace(&mut *sector.write(), Sector::new(number, &self.sheets));
            drop(gone); // without the lock
        }
    }

    /// Loads the shard of a point, unless it is loaded.
    fn load(&self, point: Point) -> Result<()> {
        let source = match self.sector(point).read().held(point) {
            Held::Loaded(_) => return Ok(()),
            Held::Saved(saved) => saved.source(),
        };
        let shard = source.read(&self.sheets)?;
        let misfits = self.sector(point).write().install(point, shard, source.checkpoint());
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.misfits.fetch_add(misfits, Ordering::Relaxed);
        Ok(())
    }

    /// The next keys of an enumeration, at present or as they were at a seq at which a snapshot
    /// lives: at most a shard. Keys that exist from its beginning to its end are returned once;
    /// keys that are added or removed in between may be.
    ///
    /// # Errors
    /// As [`HashIndex::candidates`].
    pub fn range(&self, from: IndexCursor, at: Option<Seq>) -> Result<IndexRange> {
        let image = self.image(from.0, 0, at, None)?;
        let entries = image.entries.iter().filter(|entry| entry.point >= from.0);
        let key = |entry: &Entry| (Point::from_bits(entry.point), Slot::from_bits(entry.slot));
        Ok(IndexRange { keys: entries.map(key).collect(), next: IndexCursor::from_number(image.range.end()) })
    }

    /// Where the shard after that of a place begins; none after the last. Nothing is read.
    pub fn beyond(&self, from: IndexCursor) -> Option<IndexCursor> {
        let point = Point::from_bits(from.0);
        IndexCursor::from_number(self.sector(point).read().held(point).range().end())
    }

    /// Adds a shard to a checkpoint that was begun; false when all are in it. Changes up to
    /// `applied` have all been made; others may come in the meantime. Writers of the shard wait
    /// while it is copied in memory, other writers do not wait. If the piece of a shard is damaged,
    /// it is copied unchanged: that loses its own keys, and not the changes of all others.
    ///
    /// # Errors
    /// An error of the system for either file; then the new one is useless.
    pub fn save_step(&self, writer: &mut CheckpointWriter, applied: Seq) -> Result<bool> {
        let Some(from) = writer.next_point() else { return Ok(false) };
        match self.image(from, applied, None, Some(writer.number())) {
            Err(damage) if damage.kind() == ErrorKind::Corruption => {
                let point = Point::from_bits(from);
                let Some((of, piece)) = self.sector(point).read().held(point).saved() else {
                    return Err(damage);
                };
                writer.carry(&of, &piece, applied, damage)?;
            }
            image => writer.push(&image?)?,
        }
        Ok(true)
    }

    /// The shard at a point, as it is at one moment after all changes up to `applied` were made, or
    /// as it was at a seq; for this checkpoint or for none.
    fn image(&self, from: u64, applied: Seq, at: Option<Seq>, to: Option<FileNumber>) -> Result<Image> {
        let point = Point::from_bits(from);
        let sector = self.sector(point).read();
        let held = sector.held(point);
        let (range, taken) = (held.range(), held.take(to));
        let undone = at.map(|at| sector.undone.after(range, at)).unwrap_or_default();
        drop(sector);
        let (mut entries, seq) = match taken {
            Taken::Photo(photo, seq) => (photo.entries(), seq),
            Taken::Saved(saved) => saved.entries()?,
        };
        undone.undo_all(&mut entries);
        Ok(Image { range, entries, seq: seq.max(applied) })
    }

    /// Its present facts.
    pub fn facts(&self) -> IndexFacts {
        let mut facts = IndexFacts {
            loads: self.loads.load(Ordering::Relaxed),
            misfits: self.misfits.load(Ordering::Relaxed),
            memory_bytes: self.sheets.free_bytes() as u64,
            locked_bytes: self.sheets.free_bytes() as u64,
            ..IndexFacts::default()
        };
        for sector in &self.sectors {
            let sector = sector.read();
            facts.undone += sector.undone.len() as u64;
            facts.memory_bytes += sector.memory_bytes() as u64;
            sector.all().for_each(|held| facts.add(held));
        }
        facts
    }
}

impl IndexFacts {
    fn add(&mut self, held: &Held) {
        match held {
            Held::Loaded(shard) => {
                self.loaded += 1;
                self.keys += shard.keys() as u64;
                self.locked_bytes += shard.locked_bytes() as u64;
            }
            Held::Saved(saved) => {
                self.saved += 1;
                self.keys += saved.keys();
                self.waiting += saved.waiting() as u64;
            }
        }
    }
}

#[cfg(test)]
#[path = "index/tests.rs"]
mod tests;
