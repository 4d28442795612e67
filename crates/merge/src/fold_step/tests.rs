use std::sync::Arc;

use folddb_base::stream::OwnedRecord;
use folddb_base::{Direction, ErrorKind, OpBuf, OpKind, Stamp, VecStream};
use folddb_rules::{Fold, FoldFailure, FoldRules, KeyOrder, Outcome};
use proptest::prelude::*;

use super::key_folder::KEPT_MAX;
use super::*;
use crate::KWay;
use crate::range_sweep::RangeDelete;

/// Concatenates; a value that begins with `!` makes what is earlier irrelevant; one with a `?`
/// fails.
struct Concat;

impl Fold for Concat {
    fn spec(&self) -> String {
        "test:concat".to_owned()
    }
    fn fold(
        &self,
        _: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        if earlier.contains(&b'?') || later.contains(&b'?') {
            return Err(FoldFailure::new("a question is no value"));
        }
        if later.starts_with(b"!") {
            return Ok(Outcome::KeepLater);
        }
        out.extend_from_slice(earlier);
        out.extend_from_slice(later);
        Ok(Outcome::Value)
    }
    fn short_circuit(&self, _: &[u8], value: &[u8]) -> bool {
        value.starts_with(b"!")
    }
}

/// Adds single bytes, wrapping; 0 counts as deleted.
struct Sum;

impl Fold for Sum {
    fn spec(&self) -> String {
        "test:sum".to_owned()
    }
    fn fold(
        &self,
        _: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        out.push(earlier[0].wrapping_add(later[0]));
        Ok(Outcome::Value)
    }
    fn is_deleted(&self, _: &[u8], value: &[u8]) -> bool {
        value == [0]
    }
    fn has_delete(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum World {
    Concat,
    ConcatFailing,
    Sum,
    Missing,
}

impl World {
    fn rules(self) -> FoldRules {
        match self {
            World::Concat | World::ConcatFailing => FoldRules::new(Arc::new(Concat)),
            World::Sum => FoldRules::new(Arc::new(Sum)),
            World::Missing => FoldRules::missing("lost", 1),
        }
    }

    fn value(self, number: u8) -> Vec<u8> {
        match self {
            World::Sum => vec![[0, 1, 2, 254, 255][number as usize % 5]],
            World::ConcatFailing if number.is_multiple_of(5) => vec![b'?'],
            _ if number.is_multiple_of(7) => vec![b'!', b'a' + number % 26],
            _ => vec![b'a' + number % 26],
        }
    }
}

/// One thing that happens; its place in the list is its seq. Only a loaded row can have the seq 0.
#[derive(Clone, Debug)]
enum Event {
    Write(u8, u8, u8),
    RangeDelete(u8, u8),
    Snapshot,
}

const KEYS: u8 = 4;

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => (0..KEYS, 0u8..8, any::<u8>()).prop_map(|(key, kind, value)| Event::Write(key, kind, value)),
        1 => (0..KEYS, 0..=KEYS).prop_map(|(from, to)| Event::RangeDelete(from, to)),
        1 => Just(Event::Snapshot),
    ]
}

fn world() -> impl Strategy<Value = World> {
    prop_oneof![Just(World::Concat), Just(World::ConcatFailing), Just(World::Sum), Just(World::Missing)]
}

/// Keys of several lengths, in bytewise order.
fn key(number: u8) -> Vec<u8> {
    match number {
        0 => b"a".to_vec(),
        1 => b"key".to_vec(),
        2 => b"key of some length".to_vec(),
        number => vec![b'z', number],
    }
}

/// A history, sorted into what a merge sees.
struct History {
    records: Vec<OwnedRecord>,
    ranges: Vec<RangeDelete>,
    boundaries: Vec<Seq>,
}

impl History {
    fn new(world: World, events: &[Event]) -> History {
        let rules = world.rules();
        let mut history = History { records: Vec::new(), ranges: Vec::new(), boundaries: Vec::new() };
        for (at, event) in events.iter().enumerate() {
            let seq = at as Seq;
            match *event {
                Event::RangeDelete(..) | Event::Snapshot if seq == 0 => {}
                Event::Write(number, kind, value) => {
                    history.records.push(write(&rules, &key(number), seq, kind, world.value(value)));
                }
                Event::RangeDelete(from, to) => {
                    history.ranges.push(RangeDelete { from: key(from), to: key(to), seq });
                }
                // A snapshot is at the last published seq, which usually is that of a record.
                Event::Snapshot => history.boundaries.push(seq - 1),
            }
        }
        sort(&mut history.records);
        history
    }

    fn step<S: RecordStream>(&self, world: World, stream: S, bottom: BottomRule) -> FoldStep<S> {
        let (boundaries, range_deletes) = (self.boundaries.clone(), self.ranges.clone());
        let rules =
            StepRules { order: KeyOrder::Bytewise, fold: world.rules(), boundaries, range_deletes, bottom };
        FoldStep::new(stream, rules)
    }

    /// What a reader at `at` sees of a key with the older state `base`, applying one op at a time.
    fn read(
        &self,
        world: World,
        records: &[OwnedRecord],
        key: &[u8],
        at: Seq,
        base: Option<Vec<u8>>,
    ) -> Seen {
        let rules = world.rules();
        let covers = |range: &&RangeDelete| &range.from[..] <= key && key < &range.to[..];
        let mut moments: Vec<(Seq, Option<&OwnedRecord>)> =
            self.ranges.iter().filter(covers).map(|range| (range.seq, None)).collect();
        // The records of a key are in the order newest first; only their own order decides between
        // equal seqs.
        moments.extend(records.iter().rev().filter(|record| record.key == key).map(|r| (r.seq, Some(r))));
        moments.sort_by_key(|moment| moment.0);
        let mut seen: Seen = Ok(base);
        for (_, record) in moments.into_iter().filter(|moment| moment.0 <= at) {
            seen = apply(&rules, key, seen, record);
        }
        seen
    }
}

/// The value of a key, or that it cannot be read.
type Seen = Result<Option<Vec<u8>>, ()>;

fn apply(rules: &FoldRules, key: &[u8], seen: Seen, record: Option<&OwnedRecord>) -> Seen {
    let Some(record) = record else { return Ok(None) };
    if record.op.kind.absorbs() {
        let mut state = None;
        rules.apply(key, &mut state, record.op.op().unwrap()).map_err(|_| ())?;
        return Ok(state);
    }
    let mut state = seen?;
    rules.apply(key, &mut state, record.op.op().unwrap()).map_err(|_| ())?;
    Ok(state)
}

fn write(rules: &FoldRules, key: &[u8], seq: Seq, kind: u8, value: Vec<u8>) -> OwnedRecord {
    let kind =
        [OpKind::Delete, OpKind::Set, OpKind::Insert].get(kind as usize).copied().unwrap_or(OpKind::Fold);
    let kind = rules.normalize(key, kind, &value);
    let payload = if kind == OpKind::Delete { Vec::new() } else { value };
    OwnedRecord { key: key.to_vec(), seq, op: OpBuf { kind, payload } }
}

fn sort(records: &mut [OwnedRecord]) {
    records.sort_by(|a, b| a.key.cmp(&b.key).then(b.seq.cmp(&a.seq)));
}

fn run_to_end<S: RecordStream>(mut step: FoldStep<S>) -> (Vec<OwnedRecord>, Counts) {
    let mut out = VecStream::default();
    assert_eq!(step.step(Budget::UNBOUNDED, &mut out).unwrap(), StepResult::Done);
    (out.records, *step.counts())
}

/// Runs in small steps and checks what each pause promises.
fn run_in_steps<S: RecordStream>(mut step: FoldStep<S>, records: u64) -> Vec<OwnedRecord> {
    let mut out = VecStream::default();
    loop {
        let before = step.counts().records_in;
        let result = step.step(Budget { records, bytes: u64::MAX }, &mut out).unwrap();
        assert!(step.counts().records_in <= before + records, "a step keeps to its budget");
        match result {
            StepResult::Done => return out.records,
            StepResult::More => assert_eq!(step.next_key(), None),
            StepResult::AtKeyBoundary => {
                let next = step.next_key().unwrap();
                assert!(out.records.iter().all(|record| &record.key[..] < next));
                assert!(step.counts().balance());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn readers_see_the_same_before_and_after(
        world in world(),
        events in prop::collection::vec(event(), 0..60),
        bottom in 0u8..3,
        base in any::<u8>(),
        budget in 1u64..10,
    ) {
        let history = History::new(world, &events);
        let rule = || match bottom {
            0 => BottomRule::Always,
            1 => BottomRule::Never,
            _ => BottomRule::ByKey(Box::new(|key| key.len().is_multiple_of(2))),
        };
        let step = || history.step(world, VecStream::new(history.records.clone()), rule());
        let (merged, counts) = run_to_end(step());
        prop_assert_eq!(&run_in_steps(step(), budget), &merged, "steps make no difference");

        for key in (0..KEYS).map(key) {
            let base = if rule().holds(&key) { None } else { Some(world.value(base)) };
            for at in history.boundaries.iter().copied().chain([Seq::MAX]) {
                let before = history.read(world, &history.records, &key, at, base.clone());
                let after = history.read(world, &merged, &key, at, base.clone());
                prop_assert_eq!(before, after, "key {:?} at {}: {:?}", key, at, &merged);
            }
        }

        let mut sorted = merged.clone();
        sort(&mut sorted);
        prop_assert_eq!(&sorted, &merged, "the output is in the total order");
        prop_assert!(counts.balance());
        prop_assert_eq!(counts.records_in, history.records.len() as u64);
        prop_assert_eq!(counts.records_out, merged.len() as u64);
        let mut keys: Vec<_> = merged.iter().map(|record| &record.key).collect();
        keys.dedup();
        prop_assert_eq!(counts.keys_out, keys.len() as u64);
        prop_assert_eq!(counts.deletes_out, merged.iter().filter(|r| r.op.kind == OpKind::Delete).count() as u64);
    }

    #[test]
    fn what_composes_leaves_one_record_a_stripe(
        events in prop::collection::vec(event(), 0..60),
        bottom in any::<bool>(),
    ) {
        let history = History::new(World::Concat, &events);
        let rule = if bottom { BottomRule::Always } else { BottomRule::Never };
        let (merged, counts) = run_to_end(history.step(World::Concat, VecStream::new(history.records.clone()), rule));
        let stripe = |seq: Seq| history.boundaries.iter().filter(|&&boundary| boundary < seq).count();
        for pair in merged.windows(2).filter(|pair| pair[0].key == pair[1].key) {
            prop_assert!(stripe(pair[0].seq) > stripe(pair[1].seq));
        }
        prop_assert_eq!(counts.declined_by_form + counts.declined_failed + counts.declined_fold_missing, 0);
        if bottom {
            for (at, record) in merged.iter().enumerate() {
                let oldest = merged.get(at + 1).is_none_or(|older| older.key != record.key);
                prop_assert!(!oldest || record.op.kind == OpKind::Set);
            }
        }
    }

    #[test]
    fn any_schedule_of_merges_gives_the_same_bytes(
        sum in any::<bool>(),
        events in prop::collection::vec(event(), 1..80),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        windows in prop::collection::vec((any::<prop::sample::Index>(), 2usize..5, any::<bool>()), 0..10),
        drops_seqs in any::<bool>(),
    ) {
        let world = if sum { World::Sum } else { World::Concat };
        let history = History::new(world, &events);
        let drops_seqs = drops_seqs && history.boundaries.is_empty();
        let one_go = run_to_end(history.step(world, VecStream::new(history.records.clone()), BottomRule::Always)).0;

        let mut boundaries: Vec<Seq> = cuts.iter().map(|cut| cut.index(events.len()) as Seq).collect();
        boundaries.sort_unstable();
        let runs_of = |seq: Seq| boundaries.iter().filter(|&&boundary| boundary < seq).count();
        let mut runs = vec![Vec::new(); boundaries.len() + 1];
        for record in &history.records {
            runs[boundaries.len() - runs_of(record.seq)].push(record.clone());
        }
        let merge = |inputs: &[Vec<OwnedRecord>], bottom: bool| {
            let streams = inputs.iter().cloned().map(VecStream::new).collect();
            let stream = KWay::new(KeyOrder::Bytewise, Direction::Forward, 0, streams);
            let rule = if bottom { BottomRule::Always } else { BottomRule::Never };
            let (mut merged, counts) = run_to_end(history.step(world, stream, rule));
            let newest = merged.iter().map(|record| record.seq).max().unwrap_or(0);
            if drops_seqs && counts.keys_out == counts.records_out {
                merged.iter_mut().for_each(|record| record.seq = newest);
            }
            merged
        };
        for run in &mut runs {
            *run = merge(std::slice::from_ref(run), false);
        }
        for (first, len, bottom) in windows {
            let first = first.index(runs.len());
            let end = (first + len).min(runs.len());
            let merged = merge(&runs[first..end], bottom && end == runs.len());
            runs.splice(first..end, [merged]);
        }
        let mut stepwise = merge(&runs, true);
        let mut one_go = one_go;
        if drops_seqs {
            stepwise.iter_mut().chain(&mut one_go).for_each(|record| record.seq = 0);
        }
        prop_assert_eq!(stepwise, one_go);
    }
}

/// Merges a script such as `a 9 Fold x` and gives the output in the same words.
fn script(
    world: World,
    boundaries: &[Seq],
    ranges: &[(&str, &str, Seq)],
    bottom: bool,
    lines: &[&str],
) -> Vec<String> {
    let parse = |line: &&str| {
        let words: Vec<&str> = line.split(' ').collect();
        let kind = match words[2] {
            "Delete" => OpKind::Delete,
            "Set" => OpKind::Set,
            "Insert" => OpKind::Insert,
            _ => OpKind::Fold,
        };
        let payload = words.get(3).map_or(Vec::new(), |text| text.as_bytes().to_vec());
        OwnedRecord { key: words[0].into(), seq: words[1].parse().unwrap(), op: OpBuf { kind, payload } }
    };
    let range = |&(from, to, seq): &(&str, &str, Seq)| RangeDelete { from: from.into(), to: to.into(), seq };
    let records = lines.iter().map(parse).collect();
    let history =
        History { records, ranges: ranges.iter().map(range).collect(), boundaries: boundaries.to_vec() };
    let rule = if bottom { BottomRule::Always } else { BottomRule::Never };
    let (merged, _) = run_to_end(history.step(world, VecStream::new(history.records.clone()), rule));
    let show = |record: &OwnedRecord| {
        let payload = String::from_utf8_lossy(&record.op.payload);
        let key = String::from_utf8_lossy(&record.key);
        format!("{key} {} {:?} {payload}", record.seq, record.op.kind).trim_end().to_owned()
    };
    merged.iter().map(show).collect()
}

#[test]
fn the_drawing_at_the_head_of_the_file_is_true() {
    let lines = ["k 9 Fold c", "k 8 Fold b", "k 5 Fold a", "k 3 Set v", "k 2 Fold u", "k 1 Delete"];
    assert_eq!(script(World::Concat, &[1, 6], &[], true, &lines), ["k 9 Fold bc", "k 5 Set va"]);
    assert_eq!(
        script(World::Concat, &[1, 6], &[], false, &lines),
        ["k 9 Fold bc", "k 5 Set va", "k 1 Delete"]
    );
    assert_eq!(script(World::Concat, &[], &[], false, &lines), ["k 9 Set vabc"]);
}

#[test]
fn a_delete_above_a_kept_version_stays() {
    let lines = ["k 7 Delete", "k 3 Set v"];
    assert_eq!(script(World::Concat, &[5], &[], true, &lines), lines);
    assert!(script(World::Concat, &[], &[], true, &lines).is_empty());
    assert_eq!(script(World::Concat, &[], &[], false, &lines), ["k 7 Delete"]);
}

#[test]
fn dropping_the_oldest_settles_the_younger_stripes() {
    let lines = ["k 9 Insert x", "k 7 Delete", "k 3 Delete"];
    assert_eq!(script(World::Concat, &[4, 8], &[], true, &lines), ["k 9 Set x"]);
    assert_eq!(script(World::Concat, &[4, 8], &[], false, &lines), lines);
}

#[test]
fn a_range_delete_hides_within_its_stripe_only() {
    let lines = ["k 7 Fold b", "k 3 Set a", "k 1 Fold x"];
    let ranges = [("a", "l", 5)];
    assert_eq!(script(World::Concat, &[], &ranges, false, &lines), ["k 7 Fold b"]);
    assert_eq!(script(World::Concat, &[], &ranges, true, &lines), ["k 7 Set b"]);
    assert_eq!(script(World::Concat, &[4], &ranges, true, &lines), ["k 7 Fold b", "k 3 Set a"]);
    assert_eq!(script(World::Concat, &[6], &ranges, true, &lines), ["k 7 Set b"]);
}

#[test]
fn a_failing_fold_keeps_both_and_the_rest_still_folds() {
    let lines = ["k 5 Fold c", "k 4 Fold b", "k 3 Fold ?", "k 2 Fold a", "k 1 Set v"];
    assert_eq!(script(World::Concat, &[], &[], true, &lines), ["k 5 Fold bc", "k 3 Fold ?", "k 2 Set va"]);
    let history = History { records: Vec::new(), ranges: Vec::new(), boundaries: Vec::new() };
    let records = ["?", "a"].iter().enumerate().map(|(at, text)| OwnedRecord {
        key: b"k".to_vec(),
        seq: 2 - at as Seq,
        op: OpBuf { kind: OpKind::Fold, payload: text.as_bytes().to_vec() },
    });
    let mut step = history.step(World::Concat, VecStream::new(records.collect()), BottomRule::Never);
    step.step(Budget::UNBOUNDED, &mut VecStream::default()).unwrap();
    let failure = step.failure().unwrap();
    assert_eq!((&failure.key[..], failure.message.as_str()), (&b"k"[..], "a question is no value"));
    assert_eq!(step.counts().declined_failed, 1);
}

#[test]
fn what_waits_for_the_bottom_is_bounded() {
    let records: Vec<_> = (1..=3 * KEPT_MAX as Seq)
        .rev()
        .map(|seq| OwnedRecord {
            key: b"k".to_vec(),
            seq,
            op: OpBuf { kind: OpKind::Fold, payload: b"?".to_vec() },
        })
        .collect();
    let history = History { records: records.clone(), ranges: Vec::new(), boundaries: Vec::new() };
    let mut step = history.step(World::Concat, VecStream::new(records.clone()), BottomRule::Always);
    let mut out = VecStream::default();
    step.step(Budget::UNBOUNDED, &mut out).unwrap();
    assert!(step.folder.kept.len() <= KEPT_MAX);
    assert_eq!(out.records.len(), records.len());
    let last = out.records.last().unwrap();
    assert_eq!((last.seq, last.op.kind), (1, OpKind::Set));
}

#[test]
fn a_merge_that_lost_count_of_its_records_fails() {
    let op = || OpBuf { kind: OpKind::Set, payload: b"v".to_vec() };
    let records = ["a", "b", "c"].map(|key| OwnedRecord { key: key.into(), seq: 1, op: op() }).to_vec();
    let history = History { records: records.clone(), ranges: Vec::new(), boundaries: Vec::new() };
    let one_record = Budget { records: 1, ..Budget::UNBOUNDED };
    for budget in [one_record, Budget::UNBOUNDED] {
        let mut step = history.step(World::Concat, VecStream::new(records.clone()), BottomRule::Never);
        step.step(one_record, &mut VecStream::default()).unwrap();
        step.folder.counts.records_out -= 1; // as if one were lost
        let error = step.step(budget, &mut VecStream::default()).unwrap_err();
        assert!(error.message().contains("lost count"), "{error}");
    }
}

#[test]
fn a_payload_that_is_none_is_an_error_with_the_key() {
    let op = OpBuf { kind: OpKind::InsertFold, payload: vec![9] };
    let broken = OwnedRecord { key: b"k".to_vec(), seq: 1, op };
    let fold =
        OwnedRecord { key: b"k".to_vec(), seq: 2, op: OpBuf { kind: OpKind::Fold, payload: b"a".to_vec() } };
    let history = History { records: vec![fold, broken], ranges: Vec::new(), boundaries: Vec::new() };
    let mut step = history.step(World::Concat, VecStream::new(history.records.clone()), BottomRule::Never);
    let error = step.step(Budget::UNBOUNDED, &mut VecStream::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("InsertFold at seq 1 of key 0x6b"), "{error}");
}

/// What happens to a key, newest first: the seqs of its records, and of the range deletes over it.
fn events_of(history: &History, key: &[u8]) -> Vec<Seq> {
    let covers = |range: &&RangeDelete| &range.from[..] <= key && key < &range.to[..];
    let ranges = history.ranges.iter().filter(covers).map(|range| range.seq);
    let records = history.records.iter().filter(|record| record.key == key).map(|record| record.seq);
    let mut seqs: Vec<Seq> = ranges.chain(records).collect();
    seqs.sort_unstable_by(|a, b| b.cmp(a));
    seqs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_past_that_is_asked_for_reads_as_before(
        world in world(),
        events in prop::collection::vec(event(), 0..50),
        newest in 1u32..5,
        since in prop::option::of(0u64..50),
        bottom: bool,
        base in any::<u8>(),
        cut in 0usize..50,
    ) {
        let history = History::new(world, &events);
        let times = Times { newest, since: since.unwrap_or(Seq::MAX), sweep_ms: 0 };
        let rule = || if bottom { BottomRule::Always } else { BottomRule::Never };
        // In two steps: first the newer part, and then all.
        let cut = history.boundaries.iter().copied().find(|_| cut.is_multiple_of(2)).unwrap_or(cut as Seq);
        let (older, newer): (Vec<_>, Vec<_>) = history.records.iter().cloned().partition(|record| record.seq <= cut);
        let run = |records, rule| {
            let mut step = history.step(world, VecStream::new(records), rule).with_times(times);
            let mut out = VecStream::default();
            assert_eq!(step.step(Budget::UNBOUNDED, &mut out).unwrap(), StepResult::Done);
            assert!(step.counts().balance());
            (out.records, step.sheltering().collect::<Vec<_>>())
        };
        let newer = run(newer, BottomRule::Never).0;
        let mut all = [newer, older].concat();
        sort(&mut all);
        let (merged, sheltering) = run(all, rule());
        for key in (0..KEYS).map(key) {
            let base = if bottom { None } else { Some(world.value(base)) };
            let seqs = events_of(&history, &key);
            let kept_from = seqs.get(newest as usize - 1).copied().unwrap_or(Seq::MAX);
            let oldest_found = merged.iter().filter(|record| record.key == key).map(|record| record.seq).min();
            for at in 0..=events.len() as Seq {
                let is_boundary = history.boundaries.contains(&at);
                let is_kept = at >= kept_from && oldest_found.is_some_and(|found| at >= found);
                if !(is_boundary || is_kept || at >= times.since || at == events.len() as Seq) {
                    continue;
                }
                let before = history.read(world, &history.records, &key, at, base.clone());
                let after = history.read(world, &merged, &key, at, base.clone());
                prop_assert_eq!(before, after, "key {:?} at {}: {:?}", key, at, &merged);
            }
            if bottom && history.boundaries.is_empty() {
                // What nothing is kept under may be forgotten.
                let ranges = history.ranges.iter().filter(|range| sheltering.contains(&range.seq)).cloned().collect();
                let retired = History { records: Vec::new(), ranges, boundaries: Vec::new() };
                let before = history.read(world, &history.records, &key, Seq::MAX, None);
                prop_assert_eq!(before, retired.read(world, &merged, &key, Seq::MAX, None), "{:?}", &merged);
            }
        }
        if since.is_none() && history.boundaries.is_empty() && world == World::Concat && history.ranges.is_empty() {
            for key in (0..KEYS).map(key) {
                prop_assert!(merged.iter().filter(|record| record.key == key).count() <= newest as usize);
            }
        }
    }

    #[test]
    fn what_is_swept_away_nobody_would_have_met(
        sum: bool,
        drawn in prop::collection::vec((0u8..8, any::<u8>(), 0u64..4, 0u64..9, any::<bool>()), 1..16),
        merged_of in any::<prop::sample::Index>(),
        start in prop::option::of((any::<u8>(), 0u64..12)),
        bottom: bool,
        later in 0u64..20,
    ) {
        let world = if sum { World::Sum } else { World::Concat };
        let rules = world.rules().with_stamps(true);
        let (mut write_ms, mut boundary) = (100, None);
        let stamped = |write_ms: u64, lasts: u64, value: &[u8]| {
            let deadline_ms = if lasts == 8 { folddb_base::stamp::NEVER } else { write_ms + lasts };
            [&Stamp { write_ms, deadline_ms }.bytes()[..], value].concat()
        };
        let mut written = Vec::new();
        for (at, (kind, value, after, lasts, is_boundary)) in drawn.iter().enumerate() {
            write_ms += after;
            let mut record = write(&world.rules(), b"k", at as Seq + 1, *kind, world.value(*value));
            if record.op.kind != OpKind::Delete {
                record.op.payload = stamped(write_ms, *lasts, &record.op.payload);
            }
            written.push((record, write_ms));
            if *is_boundary && boundary.is_none() && at % 5 == 4 {
                boundary = Some(at as Seq + 1);
            }
        }
        // The oldest are merged; what comes after was written at these times.
        let count = 1 + merged_of.index(written.len());
        let sweep_ms = written.get(count).map_or(write_ms + later, |(_, write_ms)| *write_ms);
        let mut inputs: Vec<_> = written[..count].iter().map(|(record, _)| record.clone()).collect();
        sort(&mut inputs);
        let rule = if bottom { BottomRule::Always } else { BottomRule::Never };
        let boundaries = boundary.into_iter().collect();
        let step = StepRules { order: KeyOrder::Bytewise, fold: rules.clone(), boundaries, range_deletes: Vec::new(), bottom: rule };
        let step = FoldStep::new(VecStream::new(inputs), step).with_times(Times { sweep_ms, ..Times::default() });
        let (merged, counts) = run_to_end(step);
        prop_assert!(counts.balance());
        let state_of = |ops: &mut dyn Iterator<Item = &OwnedRecord>| {
            let start = start.filter(|_| !bottom).map(|(value, lasts)| stamped(99, lasts, &world.value(value)));
            let mut state = start.filter(|state| !rules.is_deleted_state(b"k", state));
            ops.for_each(|record| rules.apply(b"k", &mut state, record.op.op().unwrap()).unwrap());
            let now_ms = write_ms.max(sweep_ms) + later;
            state.filter(|state| !Stamp::split(state).unwrap().0.is_over_at(now_ms))
        };
        let rest = || written[count..].iter().map(|(record, _)| record);
        let before = state_of(&mut written[..count].iter().map(|(record, _)| record).chain(rest()));
        let after = state_of(&mut merged.iter().rev().chain(rest()));
        let value = |state: Option<Vec<u8>>| state.map(|state| state[12..].to_vec());
        prop_assert_eq!(value(before), value(after), "{:?} of {:?}", &merged, &written);
    }
}
