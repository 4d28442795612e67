//! Random programs against a list of records applied one at a time, and the edges.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use folddb_base::{Op, OpKind, RecordStream};
use folddb_rules::resolve::Resolver;
use folddb_rules::{Fold, FoldFailure, Outcome};
use proptest::prelude::*;

use super::*;
use crate::chunk::tests::{any_key, any_order};

#[cfg(folddb_schedules)]
#[path = "tests/schedules.rs"]
mod schedules;

/// Joins, so that every mistake in the order is visible.
struct Join;

impl Fold for Join {
    fn spec(&self) -> String {
        "join".to_owned()
    }
    fn fold(
        &self,
        _: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        out.extend_from_slice(earlier);
        out.extend_from_slice(later);
        Ok(Outcome::Value)
    }
}

/// The later one wins, through `KeepLater`.
struct Last;

impl Fold for Last {
    fn spec(&self) -> String {
        "last".to_owned()
    }
    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepLater)
    }
}

/// Adds bytes modulo 256; zero is deleted.
struct Count;

impl Fold for Count {
    fn spec(&self) -> String {
        "count".to_owned()
    }
    fn fold(&self, _: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        out.push(a.iter().chain(b).fold(0, |sum, byte| sum.wrapping_add(*byte)));
        Ok(Outcome::Value)
    }
    fn is_deleted(&self, _: &[u8], value: &[u8]) -> bool {
        value == [0]
    }
    fn has_delete(&self) -> bool {
        true
    }
}

fn any_rules() -> impl Strategy<Value = Arc<FoldRules>> {
    (0..4).prop_map(|which| {
        Arc::new(match which {
            0 => FoldRules::new(Arc::new(Join)),
            1 => FoldRules::new(Arc::new(Last)),
            2 => FoldRules::new(Arc::new(Count)),
            _ => FoldRules::missing("unknown", 1),
        })
    })
}

#[derive(Clone, Debug)]
enum Act {
    /// One batch: keys (by number) and ops.
    Batch(Vec<(usize, OpKind, u8)>),
    Snapshot,
    Release(usize),
    Seal,
    SealTail,
    Merge,
    MergeWhole,
    /// Keeps a capture, to be examined later.
    Capture,
    Check,
}

fn any_act() -> impl Strategy<Value = Act> {
    let kind = prop::sample::select(vec![
        OpKind::Fold,
        OpKind::Fold,
        OpKind::Fold,
        OpKind::Set,
        OpKind::Insert,
        OpKind::Delete,
    ]);
    prop_oneof![
        10 => prop::collection::vec((0usize..12, kind, 0u8..4), 1..8).prop_map(Act::Batch),
        2 => Just(Act::Snapshot),
        1 => (0usize..4).prop_map(Act::Release),
        1 => Just(Act::Seal),
        4 => Just(Act::SealTail),
        3 => Just(Act::Merge),
        1 => Just(Act::MergeWhole),
        1 => Just(Act::Capture),
        1 => Just(Act::Check),
    ]
}

struct World {
    rules: Arc<FoldRules>,
    order: KeyOrder,
    memtable: Memtable,
    published: AtomicU64,
    history: Vec<(Seq, Vec<u8>, OpKind, Vec<u8>)>,
    snapshots: Vec<Seq>,
    captures: Vec<Captured>,
}

impl ReadAt<'_> {
    fn seq(self) -> Seq {
        match self {
            ReadAt::Seq(seq) => seq,
            ReadAt::Published(published) => published.load(Ordering::Acquire),
        }
    }
}

type Values = BTreeMap<Vec<u8>, Result<Option<Vec<u8>>, ()>>;

impl World {
    fn now(&self) -> Seq {
        self.published.load(Ordering::Acquire)
    }

    fn boundaries(&self) -> Vec<Seq> {
        let mut boundaries = self.snapshots.clone();
        boundaries.push(self.now());
        boundaries.sort_unstable();
        boundaries
    }

    fn act(&mut self, act: &Act, keys: &[Vec<u8>]) {
        match act {
            Act::Batch(ops) => self.batch(ops, keys),
            Act::Snapshot => self.snapshots.push(self.now()),
            Act::Release(index) if *index < self.snapshots.len() => drop(self.snapshots.remove(*index)),
            Act::Release(_) => {}
            Act::Seal => self.memtable.freeze(&self.boundaries()),
            Act::SealTail => self.memtable.seal_full_tail(),
            Act::Merge => drop(self.memtable.merge_step(&self.boundaries())),
            Act::MergeWhole => drop(self.memtable.merge_whole(&self.boundaries())),
            Act::Capture => {
                let captured = self.memtable.capture(&self.published);
                assert_eq!(captured.published(), self.now());
                self.captures.push(captured);
            }
            Act::Check => self.check(keys),
        }
    }

    fn batch(&mut self, ops: &[(usize, OpKind, u8)], keys: &[Vec<u8>]) {
        let boundaries = self.boundaries();
        let mut seq = self.now();
        let mut writer = self.memtable.apply();
        for &(key, kind, byte) in ops {
            seq += 1;
            let key = &keys[key % keys.len()];
            let payload = [byte];
            let payload = if kind == OpKind::Delete { &[][..] } else { &payload[..] };
            let kind = self.rules.normalize(key, kind, payload);
            let payload = if kind == OpKind::Delete { &[][..] } else { payload };
            writer.push(Record { key, seq, kind, payload }, &boundaries);
            self.history.push((seq, key.clone(), kind, payload.to_vec()));
        }
        drop(writer);
        // Half a batch is in chunks and tail, and no reader sees it.
        self.check_at(ReadAt::Published(&self.published), keys);
        self.published.store(seq, Ordering::Release);
    }

    /// What the keys are at `at`, one op after the other.
    fn model(&self, at: Seq, keys: &[Vec<u8>]) -> Values {
        let value_of = |key: &Vec<u8>| {
            let mut state = Ok(None);
            for (_, _, kind, payload) in self.history.iter().filter(|r| r.0 <= at && r.1 == *key) {
                let op = Op::from_parts(*kind, payload).unwrap();
                state = match state {
                    Err(()) if !kind.absorbs() => Err(()), // a failed fold, until the key is set or deleted
                    Err(()) => {
                        let mut state = None;
                        self.rules.apply(key, &mut state, op).map(|()| state).map_err(drop)
                    }
                    Ok(mut value) => self.rules.apply(key, &mut value, op).map(|()| value).map_err(drop),
                };
            }
            state
        };
        keys.iter().map(|key| (key.clone(), value_of(key))).collect()
    }

    fn check(&self, keys: &[Vec<u8>]) {
        self.check_at(ReadAt::Published(&self.published), keys);
        for &snapshot in &self.snapshots {
            self.check_at(ReadAt::Seq(snapshot), keys);
        }
        for captured in &self.captures {
            self.check_captured(captured, captured.published(), keys);
        }
        self.check_accounts();
    }

    fn check_at(&self, at: ReadAt<'_>, keys: &[Vec<u8>]) {
        let expected = self.model(at.seq(), keys);
        let get = |key: &Vec<u8>| {
            let mut resolver = Resolver::new();
            let seen = self.memtable.get(key, at, |record| {
                assert_eq!(record.key, &key[..]);
                let done = resolver.feed_older(&self.rules, key, record.kind, record.payload).unwrap();
                if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(seen.at, at.seq());
            let value = resolver.finish(&self.rules, key).map(|v| v.map(<[u8]>::to_vec)).map_err(drop);
            (key.clone(), value)
        };
        let values: Values = keys.iter().map(get).collect();
        assert_eq!(values, expected, "get at {:?}", at);
        self.check_captured(&self.memtable.capture_at(at), at.seq(), keys);
    }

    fn check_captured(&self, captured: &Captured, at: Seq, keys: &[Vec<u8>]) {
        let expected = self.model(at, keys);
        let forward = records(captured.stream(Direction::Forward, Bound::Unbounded));
        let mut reversed = records(captured.stream(Direction::Reversed, Bound::Unbounded));
        reversed.reverse();
        assert_eq!(forward, reversed, "a reversed stream is the mirror");
        assert!(forward.windows(2).all(|pair| {
            self.order.compare(&pair[0].0, &pair[1].0).then(pair[1].1.cmp(&pair[0].1)).is_lt()
        }));
        let mut values: Values = keys.iter().map(|key| (key.clone(), Ok(None))).collect();
        for group in forward.chunk_by(|a, b| a.0 == b.0) {
            let mut resolver = Resolver::new();
            for (key, _, kind, payload) in group.iter().filter(|record| record.1 <= at) {
                if resolver.feed_older(&self.rules, key, *kind, payload).unwrap() {
                    break;
                }
            }
            let value = resolver.finish(&self.rules, &group[0].0);
            values.insert(group[0].0.clone(), value.map(|v| v.map(<[u8]>::to_vec)).map_err(drop));
        }
        assert_eq!(values, expected, "scan at {at}");
        for key in keys {
            let mut found = Vec::new();
            let _ = captured.get(key, at, |record| {
                found.push(record.seq);
                ControlFlow::Continue(())
            });
            let mut listed = forward.iter().filter(|record| record.0 == *key && record.1 <= at);
            assert!(found.iter().all(|seq| listed.next().is_some_and(|record| record.1 == *seq)));
            let from = records(captured.stream(Direction::Forward, Bound::Included(key)));
            assert!(forward.ends_with(&from));
            assert!(from.first().is_none_or(|record| self.order.compare(&record.0, key).is_ge()));
        }
    }

    fn check_accounts(&self) {
        let counts = self.memtable.counts();
        assert_eq!(counts.pushed, self.history.len() as u64);
        assert_eq!(counts.pushed, counts.held + counts.folded);
        assert_eq!(counts.held, records(self.memtable.stream()).len() as u64);
        let layers = self.memtable.layers.load();
        assert_eq!(layers.chunk_records, layers.chunks.iter().map(|chunk| chunk.len()).sum::<usize>());
        assert_eq!(layers.chunk_bytes, layers.chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>());
        let tails = self.memtable.tail_bytes.load(Ordering::Relaxed);
        assert_eq!(layers.tails().map(|tail| tail.bytes()).sum::<usize>(), tails);
        let sealing = self.memtable.sealing.lock();
        let spare = sealing.spare.as_ref().map_or(0, |spare| spare.bytes());
        assert_eq!(self.memtable.spare_bytes.load(Ordering::Relaxed), spare, "the spare tail counts too");
        let parts = layers.chunk_bytes + tails + spare + sealing.scratch.bytes();
        assert_eq!(self.memtable.bytes(), size_of::<Memtable>() + parts);
    }
}

fn records(mut stream: impl RecordStream) -> Vec<(Vec<u8>, Seq, OpKind, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(record) = stream.record() {
        all.push((record.key.to_vec(), record.seq, record.kind, record.payload.to_vec()));
        stream.advance().unwrap();
    }
    all
}

fn memtable(limits: MemtableLimits) -> Memtable {
    Memtable::new(KeyOrder::Bytewise, Arc::new(FoldRules::new(Arc::new(Join))), limits)
}

/// As the store does it: a tail that is full is sealed by the thread that filled it.
fn push(memtable: &Memtable, key: &[u8], seq: Seq, payload: &[u8]) {
    if push_only(memtable, key, seq, payload) {
        memtable.seal_full_tail();
    }
}

/// Whether a tail became full, which stays so.
fn push_only(memtable: &Memtable, key: &[u8], seq: Seq, payload: &[u8]) -> bool {
    let mut writer = memtable.apply();
    writer.push(Record { key, seq, kind: OpKind::Fold, payload }, &[]);
    writer.has_full()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_reader_sees_the_history_up_to_its_seq(
        order in any_order(),
        rules in any_rules(),
        keys in prop::collection::vec(any_key(), 1..8),
        acts in prop::collection::vec(any_act(), 1..40),
        records_max in 1usize..12,
        chain_max in 1usize..12,
        merge_factor in 2usize..4,
    ) {
        let tail = TailLimits { records_max, chain_max, ..TailLimits::default() };
        let memtable = Memtable::new(order.clone(), Arc::clone(&rules), MemtableLimits { tail, merge_factor, keeps_all: false });
        let mut world = World {
            rules, order, memtable,
            published: AtomicU64::new(0),
            history: Vec::new(),
            snapshots: Vec::new(),
            captures: Vec::new(),
        };
        for act in &acts {
            world.act(act, &keys);
        }
        world.check(&keys);
        world.memtable.freeze(&world.boundaries());
        while world.memtable.merge_step(&world.boundaries()) {}
        prop_assert_eq!(world.memtable.layers.load().tail.len(), 0);
        prop_assert!(!world.memtable.wants_merge());
        world.check(&keys);
    }
}

#[test]
fn an_empty_memtable_says_so() {
    let memtable = memtable(MemtableLimits::default());
    assert!(memtable.is_empty());
    assert_eq!((memtable.seqs(), memtable.records()), (None, 0));
    memtable.freeze(&[]);
    assert!(memtable.stream().record().is_none());
    assert!(!memtable.merge_step(&[]));
    assert!(memtable.bytes() < 1024, "an idle table costs little: {}", memtable.bytes());
}

#[test]
fn facts_of_what_was_pushed() {
    let memtable = memtable(MemtableLimits::default());
    push(&memtable, b"k", 7, b"a");
    push(&memtable, b"k", 9, b"b");
    assert_eq!((memtable.seqs(), memtable.records()), (Some((7, 9)), 2));
    memtable.freeze(&[9]);
    assert_eq!(memtable.counts(), Counts { pushed: 2, held: 1, folded: 1 });
    assert_eq!(memtable.seqs(), Some((7, 9)));
}

#[test]
fn explain_lists_every_record_with_its_place() {
    let memtable = memtable(MemtableLimits::default());
    for seq in 1..=6 {
        push(&memtable, b"k", 10 * seq, b"x");
        push(&memtable, b"other", 10 * seq + 1, b"x");
        if seq % 2 == 0 {
            memtable.freeze(&[10 * seq - 1, 10 * seq + 1]);
        }
    }
    push(&memtable, b"k", 70, b"x");
    let mut lines = Vec::new();
    memtable.explain(b"k", |whereabouts, record| lines.push(format!("{} in {whereabouts}", record.seq)));
    let expected = ["70 in tail", "60 in chunk 0", "50 in chunk 0", "40 in chunk 1", "30 in chunk 1"];
    assert_eq!(lines[..5], expected);
    assert_eq!(lines.len(), 7);
}

#[test]
fn a_hot_key_costs_a_get_a_bounded_number_of_records() {
    let memtable = memtable(MemtableLimits::default());
    for seq in 1..=50_000u64 {
        push(&memtable, b"hot", seq, &[seq as u8; 8]);
        while memtable.merge_step(&[seq]) {}
    }
    let mut visited = 0;
    let mut bytes = 0;
    memtable.get(b"hot", ReadAt::Seq(Seq::MAX), |record| {
        visited += 1;
        bytes += record.payload.len();
        ControlFlow::Continue(())
    });
    assert!(visited <= 512 + 1 + 7 * 3, "{visited} records");
    assert_eq!(bytes, 400_000);
}

#[test]
fn a_full_tail_is_read_until_it_is_sealed_and_by_those_who_came_before_also_after() {
    let tail = TailLimits { records_max: 4, ..TailLimits::default() };
    let memtable = memtable(MemtableLimits { tail, merge_factor: 8, keeps_all: false });
    let filled: Vec<Seq> = (1..=7).filter(|&seq| push_only(&memtable, b"k", seq, &[seq as u8])).collect();
    assert_eq!(filled, [5], "the fifth record did not fit");
    assert_eq!((memtable.chunks(), memtable.counts().held), (0, 7));
    assert_eq!(memtable.seqs(), Some((1, 7)));
    let before = memtable.capture_at(ReadAt::Seq(7));
    memtable.seal_full_tail();
    memtable.seal_full_tail();
    assert_eq!((memtable.chunks(), memtable.counts()), (1, Counts { pushed: 7, held: 4, folded: 3 }));
    let seqs = |captured: &Captured| {
        let records = records(captured.stream(Direction::Forward, Bound::Unbounded));
        records.into_iter().map(|record| record.1).collect::<Vec<Seq>>()
    };
    assert_eq!(seqs(&before), [7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(seqs(&memtable.capture_at(ReadAt::Seq(7))), [7, 6, 5, 4]);
    let mut newer = Vec::new();
    let all = memtable.visit_newer(4, |record| {
        newer.push(record.seq);
        ControlFlow::Continue(())
    });
    assert_eq!((all, newer), (false, vec![5, 6, 7]));
}

#[test]
fn a_snapshot_within_a_full_tail_reads_the_same_once_it_is_sealed() {
    let tail = TailLimits { records_max: 4, ..TailLimits::default() };
    let memtable = memtable(MemtableLimits { tail, merge_factor: 8, keeps_all: false });
    for seq in 1..=5u8 {
        let record = Record { key: b"k", seq: seq.into(), kind: OpKind::Fold, payload: &[seq] };
        memtable.apply().push(record, &[2, 4]); // a snapshot at 2, and 4 is published
    }
    let read = |at: Seq| {
        let mut newest_first = Vec::new();
        memtable.get(b"k", ReadAt::Seq(at), |record| {
            newest_first.push(record.payload.to_vec());
            ControlFlow::Continue(())
        });
        newest_first.into_iter().rev().flatten().collect::<Vec<u8>>()
    };
    let before = (read(2), read(5));
    memtable.seal_full_tail();
    assert_eq!(memtable.chunks(), 1);
    assert_eq!((read(2), read(5)), before);
    assert_eq!(before, (vec![1, 2], vec![1, 2, 3, 4, 5]));
}

/// A table that is written to seldom, in a store that is written to much.
#[test]
fn seqs_that_are_far_apart_are_read_right_although_a_tail_is_full() {
    let tail = TailLimits { records_max: 2, ..TailLimits::default() };
    let memtable = memtable(MemtableLimits { tail, merge_factor: 8, keeps_all: false });
    let far = 1u64 << 33;
    let seqs = [1, 2, 3, far, far + 1, far + 2, 2 * far, 4 * far];
    let mut captures = Vec::new();
    for (index, &seq) in seqs.iter().enumerate() {
        push_only(&memtable, b"k", seq, b"x");
        captures.push((memtable.capture_at(ReadAt::Seq(seq)), index + 1));
    }
    for (captured, count) in captures {
        let records = records(captured.stream(Direction::Forward, Bound::Unbounded));
        assert_eq!(records[0].1, seqs[count - 1]);
        assert!(records.windows(2).all(|pair| pair[0].1 > pair[1].1));
        let found: usize = records.iter().map(|record| record.3.len()).sum();
        assert_eq!(found, count, "one byte for each record, folded or not");
    }
}

#[test]
fn captures_share_the_sorted_tail_until_it_lags() {
    let memtable = memtable(MemtableLimits::default());
    let key = |seq: Seq| (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes();
    let mut seq = 0;
    for round in 0..60 {
        for _ in 0..100 {
            seq += 1;
            push(&memtable, &key(seq), seq, b"x");
        }
        let captured = memtable.capture_at(ReadAt::Seq(seq));
        assert_eq!(records(captured.stream(Direction::Forward, Bound::Unbounded)).len() as u64, seq);
        let covered = memtable.sorted_tail.lock().copy.as_ref().map_or(0, |held| held.records);
        assert!(covered > 0, "round {round}");
        let fresh = memtable.capture_at(ReadAt::Seq(seq));
        assert!(fresh.to_sort() <= 256);
    }
}

#[test]
fn bytes_cover_what_is_held_and_freezing_gives_back_the_rest() {
    let memtable = memtable(MemtableLimits::default());
    for seq in 1..=20_000u64 {
        push(&memtable, &seq.to_be_bytes(), seq, &[1; 100]);
        assert!(memtable.apply().bytes() as u64 >= seq * 108);
    }
    memtable.freeze(&[]);
    let tight = 20_000 * (111 + 16 + 2);
    assert!(memtable.bytes() < tight + tight / 8, "{} bytes", memtable.bytes());
    let held = size_of::<Memtable>() + memtable.layers.load().chunk_bytes;
    assert_eq!(memtable.bytes(), held, "no scratch is left, and no tail");
}

/// Joins, and at the same time reads another key of the memtable that it folds for.
#[derive(Default)]
struct Looking {
    memtable: OnceLock<std::sync::Weak<Memtable>>,
    found: Mutex<Vec<usize>>,
}

impl Fold for Looking {
    fn spec(&self) -> String {
        "looking".to_owned()
    }
    fn fold(
        &self,
        key: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        if let Some(memtable) = self.memtable.get().and_then(std::sync::Weak::upgrade) {
            let mut count = 0;
            memtable.get(b"quiet", ReadAt::Seq(Seq::MAX), |_| {
                count += 1;
                ControlFlow::Continue(())
            });
            self.found.lock().push(count);
        }
        Join.fold(key, earlier, later, out)
    }
}

#[test]
fn a_tail_is_seen_while_it_is_sealed() {
    let looking = Arc::new(Looking::default());
    let rules = Arc::new(FoldRules::new(Arc::clone(&looking) as _));
    let memtable = Arc::new(Memtable::new(KeyOrder::Bytewise, rules, MemtableLimits::default()));
    looking.memtable.set(Arc::downgrade(&memtable)).unwrap();
    for (key, seq) in [(&b"quiet"[..], 1), (b"busy", 2), (b"busy", 3), (b"busy", 4)] {
        memtable.apply().push(Record { key, seq, kind: OpKind::Fold, payload: b"x" }, &[4]);
    }
    memtable.freeze(&[4]);
    assert_eq!(*looking.found.lock(), [1, 1], "two folds, and at each the other key is there");
}

#[test]
fn what_a_reader_holds_stays_while_its_tail_is_grown_sealed_and_used_again() {
    let tail = TailLimits { records_max: 50, ..TailLimits::default() };
    let memtable = memtable(MemtableLimits { tail, ..MemtableLimits::default() });
    let mut held = Vec::new();
    for seq in 1..=1000u64 {
        push(&memtable, b"k", seq, &[seq as u8]);
        if seq % 7 == 0 {
            held.push((memtable.capture_at(ReadAt::Seq(seq)), memtable.at(ReadAt::Seq(seq)), seq));
        }
    }
    for (captured, view, at) in held {
        let (mut scanned, mut got) = (Vec::new(), Vec::new());
        let _ = captured.get(b"k", at, |record| {
            scanned.splice(0..0, record.payload.iter().copied());
            ControlFlow::Continue(())
        });
        view.get(&KeyOrder::Bytewise, b"k", &mut |record| {
            got.splice(0..0, record.payload.iter().copied());
            ControlFlow::Continue(())
        });
        let expected: Vec<u8> = (1..=at).map(|seq| seq as u8).collect();
        assert_eq!((scanned, got), (expected.clone(), expected), "at {at}");
    }
}

#[test]
fn readers_and_background_work_run_concurrently_with_the_applier() {
    let memtable = memtable(MemtableLimits {
        tail: TailLimits { records_max: 64, ..TailLimits::default() },
        merge_factor: 3,
        ..MemtableLimits::default()
    });
    let published = AtomicU64::new(0);
    let rounds = if cfg!(miri) { 60u64 } else { 4000 };
    // Each batch joins its number to two keys, so both always have the same length.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                let boundaries = [published.load(Ordering::Acquire)];
                let mut writer = memtable.apply();
                for (key, seq) in [(b"left", 2 * round - 1), (b"rite", 2 * round)] {
                    writer.push(Record { key, seq, kind: OpKind::Fold, payload: b"x" }, &boundaries);
                }
                drop(writer);
                published.store(2 * round, Ordering::Release);
            }
        });
        scope.spawn(|| {
            while published.load(Ordering::Acquire) < 2 * rounds {
                memtable.merge_step(&[published.load(Ordering::Acquire)]);
            }
        });
        loop {
            let captured = memtable.capture(&published);
            let at = captured.published();
            let len = |key: &[u8]| {
                let mut len = 0;
                let _ = captured.get(key, at, |record| {
                    len += record.payload.len() as u64;
                    ControlFlow::Continue(())
                });
                len
            };
            assert_eq!((len(b"left"), len(b"rite")), (at / 2, at / 2));
            let mut len = 0;
            let seen = memtable.get(b"left", ReadAt::Published(&published), |record| {
                len += record.payload.len() as u64;
                ControlFlow::Continue(())
            });
            assert_eq!(len, seen.at / 2);
            if at == 2 * rounds {
                return;
            }
        }
    });
}

#[test]
fn a_memtable_that_keeps_all_folds_nothing() {
    let tail = TailLimits { records_max: 4, ..TailLimits::default() };
    let limits = MemtableLimits { tail, keeps_all: true, ..MemtableLimits::default() };
    let memtable = memtable(limits);
    {
        let mut writer = memtable.apply();
        for seq in 1..=40u64 {
            let record = Record { key: b"k", seq, kind: OpKind::Set, payload: &seq.to_le_bytes() };
            writer.push(record, &[seq - 1]);
        }
    }
    while memtable.merge_step(&[40]) {}
    assert_eq!(memtable.counts(), Counts { pushed: 40, held: 40, folded: 0 });
    for at in 1..=40 {
        let mut seen = Vec::new();
        memtable.get(b"k", ReadAt::Seq(at), |record| {
            seen.push(record.seq);
            ControlFlow::Continue(())
        });
        assert_eq!(seen, [at]);
    }
}

#[test]
fn a_stream_by_the_front_of_the_tail_is_that_of_the_whole() {
    let memtable = memtable(MemtableLimits::default());
    let key = |seq: Seq| seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    (1..=6000).for_each(|seq| push(&memtable, &key(seq), seq, b"x")); // a chunk, and a long tail
    for from in [0, 1, 77, 5999, 9999].map(key) {
        for bound in [Bound::Unbounded, Bound::Included(&from[..]), Bound::Excluded(&from[..])] {
            *memtable.sorted_tail.lock() = SortedTails::default();
            let captured = memtable.capture_at(ReadAt::Seq(6000));
            let by_front = records(captured.stream(Direction::Forward, bound));
            assert!(captured.to_sort() > 0, "nobody has sorted the tail whole");
            assert_eq!(by_front, records(captured.stream(Direction::Forward, bound)));
            assert_eq!(captured.to_sort(), 0);
            assert!(by_front.len() == 6000 || bound != Bound::Unbounded);
        }
    }
}
