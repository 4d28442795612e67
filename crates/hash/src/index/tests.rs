use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use folddb_base::{Error, ErrorKind, FileNumber};
use folddb_host::Host;
use folddb_host::sync::{Mutex, thread};
use tempfile::TempDir;

use super::*;
use crate::slot::{SizeClass, false_candidates};
use crate::tests::{Chance, State, make};

#[cfg(folddb_schedules)]
#[path = "tests/schedules.rs"]
mod schedules;

const NUMBER: FileNumber = FileNumber(7);

fn slot(address: u64) -> Slot {
    Slot::new(address, SizeClass::of(address % 9_000)).unwrap()
}

fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000007.hash");
    (dir, path)
}

fn writer(path: &Path) -> CheckpointWriter {
    writer_of(path, NUMBER)
}

fn writer_of(path: &Path, number: FileNumber) -> CheckpointWriter {
    let _ = std::fs::remove_file(path);
    CheckpointWriter::new(Host::real().files.create(path).unwrap(), path, number, 0x5a17)
}

fn opened(path: &Path) -> Result<Arc<Checkpoint>> {
    opened_as(path, NUMBER)
}

fn opened_as(path: &Path, number: FileNumber) -> Result<Arc<Checkpoint>> {
    Checkpoint::open(&*Host::real().files, path, number)
}

fn save(index: &HashIndex, path: &Path, applied: Seq) -> Arc<Checkpoint> {
    let mut writer = writer(path);
    while index.save_step(&mut writer, applied).unwrap() {}
    writer.finish().unwrap();
    opened(path).unwrap()
}

fn candidates(index: &HashIndex, point: Point, at: Option<Seq>) -> Vec<Slot> {
    let mut slots = vec![slot(99)];
    index.candidates(point, at, &mut slots).unwrap();
    assert_eq!(slots[0], slot(99), "what was there before stays");
    slots.swap_remove(0);
    slots.sort_unstable();
    slots
}

/// All keys, and how many ranges they came in.
fn enumerate(index: &HashIndex, at: Option<Seq>) -> (Vec<(Point, Slot)>, usize) {
    let (mut keys, mut ranges, mut from) = (Vec::new(), 0, Some(IndexCursor::default()));
    while let Some(cursor) = from {
        let mut range = index.range(cursor, at).unwrap();
        keys.append(&mut range.keys);
        from = range.next.map(|next| IndexCursor::from_number(next.number()).unwrap());
        ranges += 1;
    }
    (keys, ranges)
}

// ---- random programs against a model ------------------------------------------------------------

/// What a program has done, and what must therefore be true of the index.
struct Program {
    index: HashIndex,
    chance: Chance,
    state: State,
    seq: Seq,
    log: Vec<(Seq, Point, Change)>,
    snapshots: BTreeMap<Seq, State>,
    saving: Option<CheckpointWriter>,
    /// Complete, and the newest of its kind.
    checkpoint: Option<Arc<Checkpoint>>,
    dir: TempDir,
    files: u64,
    moves: bool,
}

impl Program {
    fn new(seed: u64) -> Program {
        Program {
            index: HashIndex::new(IndexOptions { lock_in_memory: seed.is_multiple_of(5) }),
            chance: Chance::new(seed),
            state: State::new(),
            seq: 0,
            log: Vec::new(),
            snapshots: BTreeMap::new(),
            saving: None,
            checkpoint: None,
            dir: tempfile::tempdir().unwrap(),
            files: 0,
            moves: seed.is_multiple_of(3),
        }
    }

    /// Some points of few keys, some of one sector that grows, some of the last one, some anywhere.
    fn point(&mut self) -> Point {
        Point::from_bits(match self.chance.below(8) {
            0 => self.chance.below(3),
            1..=4 => 11 << 34 | self.chance.below(600) << 24,
            5 => (1 << 40) - 1 - self.chance.below(3),
            6 => 11 << 34 | self.chance.below(4),
            _ => self.chance.below(1 << 40),
        })
    }

    fn some_change(&mut self, point: Point) -> Change {
        let here = self.state.get(&point).map_or(&[][..], Vec::as_slice);
        let some = here.get(self.chance.below(here.len() as u64) as usize).copied();
        let fresh = slot(self.seq + 1_000);
        match (some, self.chance.below(6)) {
            (Some(old), 0) => Change::Remove(old),
            (Some(old), 1 | 2) => Change::Replace { old, new: fresh },
            _ => Change::Insert(fresh),
        }
    }

    fn change(&mut self) {
        let point = self.point();
        self.seq += 1;
        let change = self.some_change(point);
        let past = if self.snapshots.is_empty() { Past::Forgotten } else { Past::Kept };
        assert!(self.index.change(point, change, self.seq, past).unwrap(), "{change:?} of {point:?}");
        self.log.push((self.seq, point, change));
        make(&mut self.state, point, change);
    }

    /// What does not fit changes nothing.
    fn misfit(&mut self) {
        let point = self.point();
        let gone = slot(1 << 43);
        for change in [Change::Remove(gone), Change::Replace { old: gone, new: slot(1) }] {
            assert!(!self.index.change(point, change, self.seq, Past::Forgotten).unwrap());
        }
        assert!(!self.index.relocate(point, gone, slot(1)).unwrap());
        assert!(!self.index.refers_to(point, gone).unwrap());
    }

    /// A record is moved, for all readers.
    fn relocate(&mut self) {
        let point = self.point();
        let (from, to) =
            (slot(self.chance.below(self.seq + 1) + 1_000), slot(1 << 42 | self.chance.next() >> 24));
        let states = self.snapshots.values_mut().chain([&mut self.state]);
        let places = states.filter_map(|state| state.get_mut(&point)).flatten();
        let known: Vec<&mut Slot> = places.filter(|slot| **slot == from).collect();
        assert!(known.is_empty() || self.index.refers_to(point, from).unwrap());
        let is_known = !known.is_empty();
        known.into_iter().for_each(|slot| *slot = to);
        let was_moved = self.index.relocate(point, from, to).unwrap();
        assert!(was_moved || !is_known);
    }

    fn snapshot(&mut self) {
        if self.snapshots.len() < 3 {
            self.snapshots.insert(self.seq, self.state.clone());
        } else {
            let gone = *self.snapshots.keys().nth(self.chance.below(3) as usize).unwrap();
            self.snapshots.remove(&gone);
            self.index.forget(self.snapshots.keys().next().copied());
        }
    }

    /// A few shards more of a checkpoint, or its end.
    fn save(&mut self) {
        let mut saving = self.saving.take().unwrap_or_else(|| {
            self.files += 1;
            writer_of(&self.dir.path().join(self.files.to_string()), FileNumber(self.files))
        });
        for _ in 0..self.chance.below(60) {
            if !self.index.save_step(&mut saving, self.seq).unwrap() {
                saving.finish().unwrap();
                let path = self.dir.path().join(self.files.to_string());
                let checkpoint = opened_as(&path, FileNumber(self.files)).unwrap();
                assert!(checkpoint.faults().is_empty());
                self.index.adopt(&checkpoint);
                self.checkpoint = Some(checkpoint);
                return;
            }
        }
        self.saving = Some(saving);
    }

    /// Memory is short.
    fn let_go(&mut self) {
        let Some(checkpoint) = &self.checkpoint else { return };
        let before = self.index.facts();
        self.index.let_go(checkpoint, before.memory_bytes / (1 + self.chance.below(3)));
        assert_eq!(self.index.facts().loaded + self.index.facts().saved, before.loaded + before.saved);
    }

    /// The process dies; checkpoint and journal are left.
    fn crash(&mut self) {
        self.saving = None;
        self.snapshots.clear();
        let seq = self.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.seq());
        self.index = match &self.checkpoint {
            Some(checkpoint) => HashIndex::open(checkpoint, IndexOptions::default()),
            None => HashIndex::new(IndexOptions::default()),
        };
        for &(at, point, change) in self.log.iter().filter(|(at, ..)| *at > seq) {
            if self.chance.below(50) == 0 {
                candidates(&self.index, point, None); // something is loaded at the same time
            }
            self.index.replay(point, change, at).unwrap();
        }
    }

    fn step(&mut self) {
        match self.chance.below(400) {
            0..=4 => self.snapshot(),
            5..=14 => self.save(),
            31 | 32 => self.let_go(),
            15 if !self.moves => self.crash(),
            16..=20 if self.moves => self.relocate(),
            21 => self.misfit(),
            22..=30 => self.look(),
            _ => self.change(),
        }
    }

    fn look(&mut self) {
        let point = self.point();
        let in_state = |state: &State| state.get(&point).cloned().unwrap_or_default();
        assert_eq!(candidates(&self.index, point, None), in_state(&self.state));
        for (at, state) in &self.snapshots {
            assert_eq!(candidates(&self.index, point, Some(*at)), in_state(state), "at {at}");
        }
    }

    fn check(&self) {
        assert_eq!(enumerate(&self.index, None).0, listed(&self.state));
        for (at, state) in &self.snapshots {
            assert_eq!(enumerate(&self.index, Some(*at)).0, listed(state), "at {at}");
        }
        let facts = self.index.facts();
        assert_eq!(facts.misfits, 0);
        if facts.saved == 0 {
            assert_eq!(facts.keys, listed(&self.state).len() as u64);
        }
    }
}

fn listed(state: &State) -> Vec<(Point, Slot)> {
    let mut all: Vec<(Point, Slot)> =
        state.iter().flat_map(|(point, slots)| slots.iter().map(|slot| (*point, *slot))).collect();
    all.sort_unstable();
    all
}

#[test]
fn random_programs_agree_with_a_model() {
    for seed in 0..40 {
        let mut program = Program::new(seed);
        for step in 0..4_000 {
            program.step();
            if step % 1_000 == 999 {
                program.check();
            }
        }
        if !program.moves {
            program.crash();
            program.check();
        }
    }
}

// ---- false candidates ---------------------------------------------------------------------------

#[test]
fn false_candidates_are_as_rare_as_is_said() {
    // Points with 20 significant bits, so that there are many collisions: the rest of each is the
    // same.
    let index = HashIndex::new(IndexOptions::default());
    let mut chance = Chance::new(4);
    let small = |hash: u64| Point::from_bits(hash >> 44 << 20);
    let keys = 50_000;
    for key in 1..=keys {
        index.change(small(chance.next()), Change::Insert(slot(key)), key, Past::Forgotten).unwrap();
    }
    let mut slots = Vec::new();
    (0..keys).for_each(|_| index.candidates(small(chance.next()), None, &mut slots).unwrap());
    let expected = false_candidates(keys) * (1u64 << 20) as f64 * keys as f64;
    let ratio = slots.len() as f64 / expected;
    assert!((0.9..1.1).contains(&ratio), "{} where {expected} were expected", slots.len());
}

// ---- enumeration --------------------------------------------------------------------------------

#[test]
fn an_enumeration_meets_each_key_once_while_the_index_grows() {
    let index = HashIndex::new(IndexOptions::default());
    let mut chance = Chance::new(5);
    let old: Vec<(Point, Slot)> = (1..5_000).map(|key| (Point::of_hash(chance.next()), slot(key))).collect();
    old.iter().for_each(|(point, slot)| {
        assert!(index.change(*point, Change::Insert(*slot), slot.address(), Past::Forgotten).unwrap());
    });
    let (mut met, mut from) = (Vec::new(), Some(IndexCursor::default()));
    let mut fresh = 1 << 30;
    while let Some(cursor) = from {
        let range = index.range(cursor, None).unwrap();
        met.extend(range.keys);
        from = range.next;
        for _ in 0..1_000 {
            fresh += 1;
            index
                .change(Point::of_hash(chance.next()), Change::Insert(slot(fresh)), fresh, Past::Forgotten)
                .unwrap();
        }
    }
    assert!(met.is_sorted_by(|one, next| one.0 <= next.0));
    met.retain(|(_, slot)| slot.address() < 5_000);
    let mut expected = old;
    expected.sort_unstable();
    met.sort_unstable();
    assert_eq!(met, expected);
    assert!(index.facts().loaded > 128, "shards were split meanwhile");
}

#[test]
fn a_cursor_means_the_same_after_a_restart() {
    let (_keep, path) = place();
    let index = HashIndex::new(IndexOptions::default());
    let mut chance = Chance::new(6);
    for key in 1..3_000 {
        index.change(Point::of_hash(chance.next()), Change::Insert(slot(key)), key, Past::Forgotten).unwrap();
    }
    let all = enumerate(&index, None).0;
    let checkpoint = save(&index, &path, 2_999);
    // A place that need not be where a shard begins.
    let middle = all[1_234].0;
    let cursor = IndexCursor::from_number(middle.bits()).unwrap();
    for index in [index, HashIndex::open(&checkpoint, IndexOptions::default())] {
        let range = index.range(cursor, None).unwrap();
        assert_eq!(range.keys, all[1_234..][..range.keys.len()]);
        assert_eq!(index.facts().loads, 0, "an enumeration loads nothing");
    }
    assert_eq!(IndexCursor::from_number(1 << 40), None);
    let empty = HashIndex::new(IndexOptions::default());
    assert_eq!(enumerate(&empty, None), (Vec::new(), 64));
}

// ---- checkpoints --------------------------------------------------------------------------------

#[test]
fn opening_reads_no_piece_and_a_look_up_one() {
    let (_keep, path) = place();
    let index = HashIndex::new(IndexOptions::default());
    let mut chance = Chance::new(7);
    let points: Vec<Point> = (0..20_000).map(|_| Point::of_hash(chance.next())).collect();
    for (number, point) in points.iter().enumerate() {
        index
            .change(*point, Change::Insert(slot(number as u64 + 1)), number as u64 + 1, Past::Forgotten)
            .unwrap();
    }
    let checkpoint = save(&index, &path, 20_000);
    assert_eq!((checkpoint.keys(), checkpoint.seq(), checkpoint.salt()), (20_000, 20_000, 0x5a17));
    assert_eq!(checkpoint.number(), NUMBER);
    let again = HashIndex::open(&checkpoint, IndexOptions::default());
    let facts = again.facts();
    assert_eq!((facts.loads, facts.loaded, facts.keys), (0, 0, 20_000));
    assert!(facts.memory_bytes < 40_000, "{} bytes before anything is loaded", facts.memory_bytes);
    assert_eq!(candidates(&again, points[17], None), [slot(18)]);
    assert_eq!(candidates(&again, points[17], None), [slot(18)]);
    assert_eq!((again.facts().loads, again.facts().loaded), (1, 1));
}

#[test]
fn what_is_replayed_waits_for_its_shard_within_a_bound() {
    let (_keep, path) = place();
    let checkpoint = save(&HashIndex::new(IndexOptions::default()), &path, 10);
    let index = HashIndex::open(&checkpoint, IndexOptions::default());
    let point = Point::from_bits(5);
    (1..=10).for_each(|seq| index.replay(point, Change::Insert(slot(seq)), seq).unwrap());
    assert_eq!(index.facts().waiting, 0, "the checkpoint has them");
    (11..=30).for_each(|seq| index.replay(point, Change::Insert(slot(seq)), seq).unwrap());
    assert_eq!((index.facts().waiting, index.facts().loads), (20, 0));
    index.replay(point, Change::Replace { old: slot(11), new: slot(40) }, 31).unwrap();
    assert_eq!((index.facts().waiting, index.facts().loads), (0, 1), "more do not wait");
    let slots = candidates(&index, point, None);
    assert_eq!((slots.len(), slots.contains(&slot(40)), slots.contains(&slot(11))), (20, true, false));
    // Once more, as when a journal is read twice.
    index.replay(point, Change::Insert(slot(50)), 31).unwrap();
    assert_eq!(candidates(&index, point, None).len(), 20);
    assert_eq!(index.facts().misfits, 0);
}

#[test]
fn what_does_not_fit_at_replay_is_counted_and_what_it_puts_is_there() {
    let (_keep, path) = place();
    let checkpoint = save(&HashIndex::new(IndexOptions::default()), &path, 0);
    for is_loaded in [false, true] {
        let index = HashIndex::open(&checkpoint, IndexOptions::default());
        let point = Point::from_bits(5);
        if is_loaded {
            candidates(&index, point, None);
        }
        index.replay(point, Change::Replace { old: slot(1), new: slot(2) }, 1).unwrap();
        index.replay(point, Change::Remove(slot(1)), 2).unwrap();
        index.replay(point, Change::Insert(slot(2)), 3).unwrap();
        assert_eq!(candidates(&index, point, None), [slot(2)]);
        assert_eq!(index.facts().misfits, 3);
    }
}

#[test]
fn a_checkpoint_that_is_not_complete_is_none() {
    let (_keep, path) = place();
    let index = HashIndex::new(IndexOptions::default());
    let mut writer = writer(&path);
    (0..63).for_each(|_| assert!(index.save_step(&mut writer, 0).unwrap()));
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(opened(&path).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn an_old_checkpoint_may_go_once_a_newer_one_is_adopted() {
    let (_keep, path) = place();
    let index = HashIndex::new(IndexOptions::default());
    let point = |seq: u64| Point::of_hash(seq.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for seq in 1..=3_000 {
        index.change(point(seq), Change::Insert(slot(seq)), seq, Past::Forgotten).unwrap();
    }
    let first = save(&index, &path, 3_000);
    let index = HashIndex::open(&first, IndexOptions::default());
    (3_001..=3_100).for_each(|seq| {
        index.replay(point(seq), Change::Insert(slot(seq)), seq).unwrap();
    });
    assert!(index.facts().waiting > 0);
    let next_path = path.with_file_name("000008.hash");
    let next = save(&index, &next_path, 3_100);
    index.adopt(&next);
    assert_eq!((index.facts().waiting, index.facts().loads), (0, 0), "nothing was loaded for it");
    std::fs::write(&path, b"gone").unwrap();
    assert_eq!(Arc::strong_count(&first), 1, "nobody reads the old one");
    for seq in 1..=3_100 {
        assert!(candidates(&index, point(seq), None).contains(&slot(seq)), "{seq}");
    }
}

#[test]
fn what_has_not_changed_is_let_go_of_and_comes_back() {
    let (_keep, path) = place();
    let index = HashIndex::new(IndexOptions::default());
    let point = |key: u64| Point::of_hash(key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for seq in 1..=6_000 {
        index.change(point(seq), Change::Insert(slot(seq)), seq, Past::Forgotten).unwrap();
    }
    let checkpoint = save(&index, &path, 6_000);
    index
        .change(point(1), Change::Replace { old: slot(1), new: slot(9_000) }, 6_001, Past::Forgotten)
        .unwrap();
    let before = index.facts();
    index.let_go(&checkpoint, before.memory_bytes);
    assert_eq!(index.facts(), before, "there is no need");
    candidates(&index, point(2), None);
    index.let_go(&checkpoint, before.memory_bytes / 2);
    let half = index.facts();
    assert!(half.memory_bytes <= before.memory_bytes / 2 && half.memory_bytes > before.memory_bytes / 3);
    candidates(&index, point(2), None);
    assert_eq!(index.facts().loads, 0, "what was used is kept as long as there is other");
    index.let_go(&checkpoint, 0);
    assert_eq!((index.facts().loaded, index.facts().keys), (1, 6_000), "but for what has changed");
    for seq in 2..=6_000 {
        assert!(candidates(&index, point(seq), None).contains(&slot(seq)));
    }
    assert_eq!(candidates(&index, point(1), None), [slot(9_000)]);
    // What was read from it and has not changed may be dropped again.
    index.let_go(&checkpoint, 0);
    assert_eq!(index.facts().loaded, 1);
}

// ---- damage -------------------------------------------------------------------------------------

/// A small checkpoint: its bytes, and the points that are in it.
fn small(path: &Path) -> (Vec<u8>, Vec<Point>) {
    let index = HashIndex::new(IndexOptions::default());
    let mut chance = Chance::new(8);
    let points: Vec<Point> = (0..40).map(|_| Point::of_hash(chance.next())).collect();
    for (number, point) in points.iter().enumerate() {
        index
            .change(*point, Change::Insert(slot(number as u64 + 1)), number as u64 + 1, Past::Forgotten)
            .unwrap();
    }
    save(&index, path, 40);
    (std::fs::read(path).unwrap(), points)
}

fn is_named(error: &Error, path: &Path) -> bool {
    matches!(error.damage(), Some(damage) if damage.file == path && damage.offset.is_some())
}

#[test]
fn every_flipped_byte_is_noticed_and_named() {
    let (_keep, path) = place();
    let (bytes, points) = small(&path);
    let mut refused = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        std::fs::write(&path, &damaged).unwrap();
        let checkpoint = match opened(&path) {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                assert!(
                    is_named(&error, &path) || error.kind() == ErrorKind::NewerFormat,
                    "byte {at}: {error}"
                );
                refused += 1;
                continue;
            }
        };
        let faults = checkpoint.faults();
        assert!(faults.len() == 1 && is_named(&faults[0], &path), "byte {at}: {faults:?}");
        // One shard is lost; all others are unaffected, and each access to the lost one is an
        // error.
        let index = HashIndex::open(&checkpoint, IndexOptions::default());
        let ask = |point: &Point| index.candidates(*point, None, &mut Vec::new());
        let errors: Vec<Error> = points.iter().chain(&points).filter_map(|point| ask(point).err()).collect();
        assert!(errors.iter().all(|error| error.damage() == faults[0].damage()));
        assert!(errors.len().is_multiple_of(2) && errors.len() < 20, "byte {at}");
        let lost = Point::from_bits(
            checkpoint.pieces().iter().find(|piece| checkpoint.read(piece).is_err()).unwrap().range.start,
        );
        assert!(index.change(lost, Change::Insert(slot(1)), 50, Past::Forgotten).is_err());
        assert!(index.range(IndexCursor::from_number(lost.bits()).unwrap(), None).is_err());
        // The next checkpoint has the lost one, as damaged as it was, and the changes of all
        // others.
        let fresh = *points.iter().find(|point| ask(point).is_ok()).unwrap();
        assert!(index.change(fresh, Change::Insert(slot(77)), 50, Past::Forgotten).unwrap());
        let other = path.with_file_name("other");
        let _ = std::fs::remove_file(&other);
        let mut writer = writer_of(&other, FileNumber(9));
        while index.save_step(&mut writer, 50).unwrap() {}
        assert_eq!(writer.damage().unwrap().damage(), faults[0].damage());
        let facts = writer.finish().unwrap();
        let of_lost = checkpoint.pieces().iter().find(|piece| piece.range.start == lost.bits()).unwrap();
        assert_eq!(facts.unreadable_keys, of_lost.keys);
        let saved = Checkpoint::open(&*Host::real().files, &other, FileNumber(9)).unwrap();
        assert_eq!((saved.keys(), saved.faults().len()), (checkpoint.keys() + 1, 1));
        index.adopt(&saved);
        assert!(is_named(&index.candidates(lost, None, &mut Vec::new()).unwrap_err(), &other));
        let again = HashIndex::open(&saved, IndexOptions::default());
        let mut found = Vec::new();
        again.candidates(fresh, None, &mut found).unwrap();
        assert!(found.contains(&slot(77)));
        assert!(again.candidates(lost, None, &mut Vec::new()).is_err(), "no chance makes it whole");
    }
    assert!(refused > 64 && refused < bytes.len() / 2, "footer and directory, and nothing else: {refused}");
}

#[test]
fn every_cut_is_noticed() {
    let (_keep, path) = place();
    let (bytes, _) = small(&path);
    for len in 0..bytes.len() {
        std::fs::write(&path, &bytes[..len]).unwrap();
        assert!(is_named(&opened(&path).unwrap_err(), &path), "{len} bytes");
    }
    std::fs::write(&path, [&bytes[..], &[0]].concat()).unwrap();
    assert!(opened(&path).is_err(), "and a byte too many");
    std::fs::write(&path, &bytes).unwrap();
    assert!(opened(&path).is_ok());
    let other = Checkpoint::open(&*Host::real().files, &path, FileNumber(8));
    assert!(is_named(&other.unwrap_err(), &path), "the file of another number");
    // The file is cut after it was opened.
    let checkpoint = opened(&path).unwrap();
    std::fs::write(&path, &bytes[..100]).unwrap();
    assert!(
        checkpoint.faults().iter().all(|fault| is_named(fault, &path)) && !checkpoint.faults().is_empty()
    );
}

// ---- threads ------------------------------------------------------------------------------------

#[test]
fn readers_and_savers_run_concurrently_with_a_writer() {
    let (_keep, path) = place();
    let index = HashIndex::new(IndexOptions::default());
    let applied = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    // Key k is at slot k * 1000 + its version; the writer raises versions, in turn.
    let keys = 2_000u64;
    let point = |key: u64| Point::of_hash(key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let at = |key: u64, version: u64| slot(key * 1_000 + version + 1);
    let saved = Mutex::new(None);
    thread::scope(|scope| {
        scope.spawn(|| {
            for version in 0..20 {
                for key in 0..keys {
                    let change = match version {
                        0 => Change::Insert(at(key, 0)),
                        _ => Change::Replace { old: at(key, version - 1), new: at(key, version) },
                    };
                    let seq = version * keys + key + 1;
                    assert!(index.change(point(key), change, seq, Past::Forgotten).unwrap());
                    applied.store(seq, Ordering::Release);
                }
            }
            done.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            let mut chance = Chance::new(9);
            while !done.load(Ordering::Acquire) {
                let key = chance.below(keys);
                let least = (applied.load(Ordering::Acquire) + keys - 1 - key) / keys;
                let slots = candidates(&index, point(key), None);
                assert!(slots.len() <= 1);
                let version = slots.first().map_or(0, |slot| slot.address() - key * 1_000);
                assert!(version >= least, "key {key} has version {version}, and {least} was acknowledged");
            }
        });
        scope.spawn(|| {
            let mut number = 0;
            while number == 0 || !done.load(Ordering::Acquire) {
                number += 1;
                let path = path.with_file_name(format!("{number}"));
                let mut writer = writer(&path);
                while index.save_step(&mut writer, applied.load(Ordering::Acquire)).unwrap() {}
                let facts = writer.finish().unwrap();
                *saved.lock() = Some((path, facts));
            }
        });
    });
    // The last checkpoint and the changes after its seq give the present content.
    let (path, facts) = saved.lock().take().unwrap();
    let again = HashIndex::open(&opened(&path).unwrap(), IndexOptions::default());
    for seq in facts.seq + 1..=20 * keys {
        let (version, key) = ((seq - 1) / keys, (seq - 1) % keys);
        let change = match version {
            0 => Change::Insert(at(key, 0)),
            _ => Change::Replace { old: at(key, version - 1), new: at(key, version) },
        };
        again.replay(point(key), change, seq).unwrap();
    }
    assert_eq!(enumerate(&again, None).0, enumerate(&index, None).0);
    assert_eq!(again.facts().misfits, 0);
}

#[test]
fn a_shard_that_many_ask_for_at_once_is_loaded_whole() {
    let (_keep, path) = place();
    let index = HashIndex::new(IndexOptions::default());
    let point = |key: u64| Point::of_hash(key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for key in 1..5_000u64 {
        index.change(point(key), Change::Insert(slot(key)), key, Past::Forgotten).unwrap();
    }
    let checkpoint = save(&index, &path, 5_000);
    let index = HashIndex::open(&checkpoint, IndexOptions::default());
    thread::scope(|scope| {
        for thread in 0..4u64 {
            let index = &index;
            scope.spawn(move || {
                for key in (1..5_000u64).filter(|key| key % 4 == thread) {
                    let change = Change::Replace { old: slot(key), new: slot(key + 10_000) };
                    assert!(index.change(point(key), change, 5_000 + key, Past::Forgotten).unwrap());
                }
            });
        }
    });
    for key in 1..5_000u64 {
        assert!(candidates(&index, point(key), None).contains(&slot(key + 10_000)));
    }
    assert_eq!((index.facts().saved, index.facts().keys), (0, 4_999));
}
