//! The work of a merge: a stream in the total order comes in, folded records go out, in bounded steps.
//!
//! For each key, newest record first:
//!
//! 1. A record belongs to the *stripe* between two live snapshots. Only records of one stripe fold, and the
//!    folded record takes the newest seq. Stripe boundaries are captured once, when the job starts.
//! 2. A record under a range delete of its own stripe vanishes; a boundary between the two keeps it.
//! 3. What absorbs (`Set`, `Delete`) shadows everything older in its stripe.
//! 4. Ops that decline to compose stay side by side. A failing user function costs space, never data.
//! 5. Where nothing older exists than what the job sees of a key (its *bottom*), the oldest record that is
//!    left states the whole truth: a `Delete` is dropped, `Insert`, `Fold` and `InsertFold` become the `Set` (or `SetSeparated`)
//!    of what they make of an absent key, a state that counts as deleted is dropped. When it is dropped, the
//!    next newer record is the oldest, also in a younger stripe; a `Delete` above a kept version stays.
//!
//! ```text
//!   seq      9        8    |   5        3        2   |   1              | = boundaries 6 and 1
//!   op    Fold c   Fold b  | Fold a   Set v   Fold u |  Delete
//!   out      Fold b·c      |        Set v·a          |  (dropped at the bottom)
//! ```
//!
//! Two more, for tables that ask for it ([`Times`]):
//!
//! 6. Where the *past* is kept, the newest N events of a key (records, and range deletes over it), and all that are newer than some
//!    seq, are stripes of their own; what is older folds as above. A range delete over what is kept must stay in force for it.
//! 7. A state that has *expired*, and that nobody may have met alive who wrote later, is a `Delete`: where it is the only
//!    record of its key that is left.
//!
//! Every record that comes in is accounted for: it goes out, or is folded, shadowed, range-deleted or
//! dropped. A step that finds the account out of balance fails rather than let the merge be installed.
//! Background work drives a [`FoldStep`] over a [`crate::KWay`] of runs; a flush does the same over chunks.

use std::collections::BTreeSet;

use folddb_base::bytes::Malformed;
use folddb_base::op::OpKind;
use folddb_base::{Error, ErrorKind, Op, OpBuf, Record, RecordSink, RecordStream, Result, Seq, Stamp};
use folddb_rules::algebra::Decline;
use folddb_rules::datum::hex;
use folddb_rules::{Composed, FoldRules, KeyOrder};

use crate::range_sweep::{RangeDelete, RangeSweep};

/// Ops of one key that wait at most; beyond it they go out as they are.
const KEPT_MAX: usize = 4096;

/// Answers yes or no for a key.
pub type KeyRule = Box<dyn Fn(&[u8]) -> bool + Send>;

/// Whether nothing older than what the job sees exists.
pub enum BottomRule {
    /// The job sees the oldest run of the table: nothing older exists for any key.
    Always,
    /// Older runs may hold any of the keys.
    Never,
    /// True for the keys of which nothing older exists.
    ByKey(KeyRule),
}

impl BottomRule {
    fn holds(&self, key: &[u8]) -> bool {
        match self {
            BottomRule::Always => true,
            BottomRule::Never => false,
            BottomRule::ByKey(rule) => rule(key),
        }
    }
}

/// What a merge is told about the table and the moment, once.
pub struct StepRules {
    /// The order of the table's keys.
    pub order: KeyOrder,
    /// The fold of the table.
    pub fold: FoldRules,
    /// The seqs of the live snapshots, rising, taken after the inputs were frozen and published.
    pub boundaries: Vec<Seq>,
    /// The live range deletes of the table, in any order. They stay in force for readers of the output.
    pub range_deletes: Vec<RangeDelete>,
    /// Where nothing older exists.
    pub bottom: BottomRule,
}

/// What a merge is told of the past that it keeps, and of what has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// So many events of a key are kept as they are, but for the oldest of them, into which older ones fold: 1 keeps none.
    pub newest: u32,
    /// Events that are newer than this are kept as they are.
    pub since: Seq,
    /// What had expired by then goes; 0 where nothing may. The caller vouches that whoever wrote to a key of the inputs later
    /// than these, in a run or a memtable that is none of them, did so at this time or after it.
    pub sweep_ms: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times { newest: 1, since: Seq::MAX, sweep_ms: 0 }
    }
}

impl Times {
    /// Whether any of the past is kept.
    fn keeps_past(&self) -> bool {
        self.newest > 1 || self.since < Seq::MAX
    }
}

/// How much a step may take in before it pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Records.
    pub records: u64,
    /// Bytes of their keys and payloads.
    pub bytes: u64,
}

impl Budget {
    /// No bound: runs to the end.
    pub const UNBOUNDED: Budget = Budget { records: u64::MAX, bytes: u64::MAX };
}

/// Where a step paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// Inside of a key: an output part must not end here.
    More,
    /// Between two keys: everything before [`FoldStep::next_key`] has gone out.
    AtKeyBoundary,
    /// At the end. Everything has gone out.
    Done,
}

/// What became of the records. Each that came in is in exactly one of the other counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that came in.
    pub records_in: u64,
    /// Records that went out.
    pub records_out: u64,
    /// Composed into a neighbour.
    pub folded: u64,
    /// Older than a `Set` or `Delete` of their stripe.
    pub shadowed: u64,
    /// Under a range delete.
    pub range_deleted: u64,
    /// Stood for an absent key, where nothing older exists.
    pub dropped: u64,
    /// States that had expired: they were dropped, or went out as `Delete`s.
    pub expired: u64,
    /// Distinct keys that came in.
    pub keys_in: u64,
    /// Distinct keys that went out.
    pub keys_out: u64,
    /// Bytes of keys and payloads that came in.
    pub bytes_in: u64,
    /// Bytes of keys and payloads that went out.
    pub bytes_out: u64,
    /// `Delete`s that went out.
    pub deletes_out: u64,
    /// Times that two ops had no single form.
    pub declined_by_form: u64,
    /// Times that two ops stayed apart because the fold is not at hand.
    pub declined_fold_missing: u64,
    /// Times that the user's function failed or panicked.
    pub declined_failed: u64,
}

impl Counts {
    /// Whether in = out + folded + shadowed + range-deleted + dropped. Holds between keys.
    pub fn balance(&self) -> bool {
        let gone = self.folded + self.shadowed + self.range_deleted + self.dropped;
        self.records_in == self.records_out + gone
    }
}

/// One line, for people.
impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { records_in, records_out, folded, shadowed, range_deleted, dropped, .. } = self;
        write!(
            f,
            "{records_in} records in, {records_out} out, {folded} folded, {shadowed} shadowed, \
             {range_deleted} range-deleted, {dropped} dropped"
        )
    }
}

/// The first failure of the user's function in this merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFailure {
    /// The key that it failed on.
    pub key: Vec<u8>,
    /// What it said.
    pub message: String,
}

/// A merge that is under way.
pub struct FoldStep<S> {
    stream: S,
    folder: KeyFolder,
}

impl<S: RecordStream> FoldStep<S> {
    /// A merge of `stream`, which runs forward and stands at its first record.
    pub fn new(stream: S, rules: StepRules) -> FoldStep<S> {
        FoldStep { stream, folder: KeyFolder::new(rules) }
    }

    /// The same merge, of a table that keeps its past or whose values expire.
    pub fn with_times(mut self, times: Times) -> FoldStep<S> {
        self.folder.set_times(times);
        self
    }

    /// The range deletes that something is kept under, which they must go on to hide from readers of the present.
    pub fn sheltering(&self) -> impl Iterator<Item = Seq> + '_ {
        self.folder.past.iter().flat_map(|past| past.sheltering.iter().copied())
    }

    /// Takes in records until the budget is spent (at least one record), sending what is settled to `sink`.
    ///
    /// # Errors
    /// Those of the stream and of the sink; a payload that is not one of its kind; an account out of
    /// balance. The merge is then of no further use and must not be installed.
    pub fn step<K: RecordSink + ?Sized>(&mut self, budget: Budget, sink: &mut K) -> Result<StepResult> {
        let FoldStep { stream, folder } = self;
        let records_max = folder.counts.records_in.saturating_add(budget.records.max(1));
        let bytes_max = folder.counts.bytes_in.saturating_add(budget.bytes.max(1));
        loop {
            let spent = folder.counts.records_in >= records_max || folder.counts.bytes_in >= bytes_max;
            let Some(record) = stream.record() else {
                folder.finish_key(sink)?;
                folder.check_balance()?;
                return Ok(StepResult::Done);
            };
            if folder.is_inside(record.key) {
                if spent {
                    return Ok(StepResult::More);
                }
            } else {
                folder.finish_key(sink)?;
                if spent {
                    folder.check_balance()?;
                    return Ok(StepResult::AtKeyBoundary);
                }
                folder.begin_key(record.key);
            }
            folder.take(record, sink)?;
            stream.advance()?;
        }
    }

    /// The first key that has not gone out, between two keys; none inside of a key and at the end.
    pub fn next_key(&self) -> Option<&[u8]> {
        if self.folder.inside { None } else { self.stream.record().map(|record| record.key) }
    }

    /// What became of the records so far.
    pub fn counts(&self) -> &Counts {
        &self.folder.counts
    }

    /// The first failure of the user's function, if there was one.
    pub fn failure(&self) -> Option<&StepFailure> {
        self.folder.failure.as_ref()
    }

    /// The stream below.
    pub fn stream(&self) -> &S {
        &self.stream
    }
}

/// What the current stripe of the current key has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// No record of the key has been met that counts.
    Nothing,
    /// The op in `pending` is the fold of the stripe so far.
    Pending,
    /// An absorbing op has gone out already: whatever else is in the stripe is shadowed.
    Closed,
}

/// What is kept of the past of a key, as far as it has been taken in.
struct Past {
    times: Times,
    /// The key that is being taken in, by its number.
    key: u64,
    /// Its events so far, and the seq of the last one.
    events: u32,
    last: Seq,
    /// The first of its events that is not kept as it is; 0 before it is met.
    rest_from: Seq,
    /// Range deletes that something is kept under.
    sheltering: BTreeSet<Seq>,
}

impl Past {
    /// Takes note of an event. True when it is kept as it is.
    fn note(&mut self, seq: Seq) -> bool {
        self.events = self.events.saturating_add(1);
        self.last = seq;
        let is_kept = self.events < self.times.newest || seq > self.times.since;
        if !is_kept && self.rest_from == 0 {
            self.rest_from = seq;
        }
        is_kept
    }
}

/// An op on its way out.
#[derive(Debug, Default)]
struct Waiting {
    seq: Seq,
    floor: Seq,
    op: OpBuf,
}

/// Folds the records of one key after the other. All buffers are reused.
struct KeyFolder {
    fold: FoldRules,
    boundaries: Vec<Seq>,
    ranges: RangeSweep,
    bottom: BottomRule,
    key: Vec<u8>,
    inside: bool,
    sent: bool,
    held: Held,
    pending: Waiting,
    scratch: OpBuf,
    /// Newest first: what declined to compose, or may still be settled at the bottom.
    kept: Vec<Waiting>,
    kept_len: usize,
    counts: Counts,
    failure: Option<StepFailure>,
    /// Where the past is kept; the boundaries are never empty then.
    past: Option<Box<Past>>,
    sweep_ms: u64,
    /// Whether a state may go away for what it is: by the delete rule, or because it has expired.
    asks_states: bool,
}

impl KeyFolder {
    fn new(rules: StepRules) -> KeyFolder {
        let StepRules { order, fold, mut boundaries, range_deletes, bottom } = rules;
        boundaries.sort_unstable();
        let asks_states = fold.has_delete();
        KeyFolder {
            fold,
            boundaries,
            ranges: RangeSweep::new(order, range_deletes),
            bottom,
            key: Vec::new(),
            inside: false,
            sent: false,
            held: Held::Nothing,
            pending: Waiting::default(),
            scratch: OpBuf::default(),
            kept: Vec::new(),
            kept_len: 0,
            counts: Counts::default(),
            failure: None,
            past: None,
            sweep_ms: 0,
            asks_states,
        }
    }

    fn set_times(&mut self, times: Times) {
        if times.keeps_past() {
            // Above all seqs, so a boundary of nothing: tables without a past need not be asked for one.
            self.boundaries.push(Seq::MAX);
            let (events, last, rest_from) = (0, Seq::MAX, 0);
            let sheltering = BTreeSet::new();
            self.past = Some(Box::new(Past { times, key: 0, events, last, rest_from, sheltering }));
        }
        if self.fold.has_stamps() {
            self.sweep_ms = times.sweep_ms;
            self.asks_states |= times.sweep_ms > 0;
        }
    }

    #[inline]
    fn is_inside(&self, key: &[u8]) -> bool {
        self.inside && same_key(&self.key, key)
    }

    #[inline]
    fn begin_key(&mut self, key: &[u8]) {
        // Most keys are of one length, and many of eight bytes: those are copied without a call.
        match (<&mut [u8; 8]>::try_from(&mut self.key[..]), <&[u8; 8]>::try_from(key)) {
            (Ok(held), Ok(key)) => *held = *key,
            _ => {
                self.key.clear();
                self.key.extend_from_slice(key);
            }
        }
        self.ranges.reach(key);
        self.inside = true;
        self.sent = false;
        self.held = Held::Nothing;
        self.counts.keys_in += 1;
    }

    /// The lowest seq of the stripe of `seq`: two records are of one stripe when theirs are equal.
    /// Rows that were loaded before anything was written have the seq 0, and a snapshot may be of
    /// that seq, so a boundary is not told by its own seq: what is above boundary 0 begins at 1.
    #[inline]
    fn floor_of(&self, seq: Seq) -> Seq {
        if self.boundaries.is_empty() {
            return 0;
        }
        match self.boundaries.partition_point(|&boundary| boundary < seq) {
            0 => 0,
            above => self.boundaries[above - 1] + 1,
        }
    }

    /// Takes the next older record of the key.
    #[inline]
    fn take<K: RecordSink + ?Sized>(&mut self, record: Record<'_>, sink: &mut K) -> Result<()> {
        self.counts.records_in += 1;
        self.counts.bytes_in += (record.key.len() + record.payload.len()) as u64;
        if !self.boundaries.is_empty() && self.past.is_some() {
            return self.take_of_past(record, sink);
        }
        let floor = self.floor_of(record.seq);
        if self.ranges.next_above(record.seq).is_some_and(|above| self.floor_of(above) == floor) {
            self.counts.range_deleted += 1;
            return Ok(());
        }
        self.place(record, floor, sink)
    }

    /// As [`KeyFolder::take`], where the past is kept.
    #[inline(never)]
    fn take_of_past<K: RecordSink + ?Sized>(&mut self, record: Record<'_>, sink: &mut K) -> Result<()> {
        let keys_in = self.counts.keys_in;
        let Some(past) = &mut self.past else { return Ok(()) };
        if past.key != keys_in {
            (past.key, past.events, past.last, past.rest_from) = (keys_in, 0, Seq::MAX, 0);
        }
        for range in self.ranges.between(record.seq, past.last) {
            past.note(range);
        }
        let is_kept = past.note(record.seq);
        let (rest_from, above) = (past.rest_from, self.ranges.next_above(record.seq));
        let floor = if is_kept { record.seq } else { self.floor_of(record.seq) };
        if let Some(above) = above {
            if !is_kept && above <= rest_from && self.floor_of(above) == floor {
                self.counts.range_deleted += 1;
                return Ok(());
            }
            if let Some(past) = &mut self.past {
                past.sheltering.extend(self.ranges.between(record.seq, Seq::MAX));
            }
        }
        self.place(record, floor, sink)
    }

    /// Takes the next older record of the key into the stripe that begins at `floor`.
    #[inline]
    fn place<K: RecordSink + ?Sized>(&mut self, record: Record<'_>, floor: Seq, sink: &mut K) -> Result<()> {
        match self.held {
            Held::Closed if floor == self.pending.floor => {
                self.counts.shadowed += 1;
                Ok(())
            }
            Held::Pending if floor == self.pending.floor => self.fold_in(record, sink),
            Held::Pending => {
                self.end_stripe(sink)?;
                self.start(record, floor, sink)
            }
            Held::Nothing | Held::Closed => self.start(record, floor, sink),
        }
    }

    /// Starts a stripe, or the older side of a pair that declined.
    #[inline]
    fn start<K: RecordSink + ?Sized>(&mut self, record: Record<'_>, floor: Seq, sink: &mut K) -> Result<()> {
        self.pending.floor = floor;
        if self.goes_straight_out(&record) {
            self.held = Held::Closed;
            return self.send(record, sink);
        }
        self.held = Held::Pending;
        self.pending.seq = record.seq;
        self.pending.op.kind = self.settled_kind(&record);
        self.pending.op.payload.clear();
        if self.pending.op.kind != OpKind::Delete {
            self.pending.op.payload.extend_from_slice(record.payload);
        }
        self.collapse()
    }

    /// True for an absorbing op that nothing later in the key can change.
    #[inline]
    fn goes_straight_out(&self, record: &Record<'_>) -> bool {
        self.kept_len == 0
            && match record.kind {
                OpKind::Set | OpKind::SetSeparated => !self.asks_states || !self.goes_away(record),
                OpKind::Delete => matches!(self.bottom, BottomRule::Never),
                _ => false,
            }
    }

    /// Whether a state may go away when all of its key is known.
    #[cold]
    fn goes_away(&self, record: &Record<'_>) -> bool {
        let is_deleted = record.kind == OpKind::Set && self.fold.is_deleted_state(record.key, record.payload);
        is_deleted || self.is_over(record.kind, record.payload)
    }

    /// Whether it is among what is to be swept away.
    fn is_over(&self, kind: OpKind, payload: &[u8]) -> bool {
        self.sweep_ms > 0
            && matches!(kind, OpKind::Set | OpKind::SetSeparated | OpKind::Fold)
            && matches!(Stamp::of(kind, payload), Ok(Some(stamp)) if stamp.is_over_at(self.sweep_ms))
    }

    #[inline]
    fn settled_kind(&self, record: &Record<'_>) -> OpKind {
        match record.kind {
            OpKind::Set if self.fold.is_deleted_state(record.key, record.payload) => OpKind::Delete,
            kind => kind,
        }
    }

    /// Composes an older record of the same stripe under the pending op.
    fn fold_in<K: RecordSink + ?Sized>(&mut self, record: Record<'_>, sink: &mut K) -> Result<()> {
        if self.pending.op.kind.absorbs() {
            self.counts.shadowed += 1;
            return Ok(());
        }
        let older = record.op().map_err(|malformed| damaged(&record, malformed))?;
        let newer = decoded(&self.key, self.pending.seq, &self.pending.op)?;
        match self.fold.compose(&self.key, older, newer, &mut self.scratch) {
            Composed::Both(decline) => {
                self.note(decline);
                self.keep_pending(sink)?;
                return self.start(record, self.pending.floor, sink);
            }
            Composed::Older => self.pending.op.assign(older),
            Composed::Newer(kind) => set_kind(&mut self.pending.op, kind),
            Composed::Out => std::mem::swap(&mut self.pending.op, &mut self.scratch),
        }
        self.counts.folded += 1;
        self.collapse()
    }

    /// A newer neighbour that declined to compose with an op may compose with a state: once the pending op
    /// absorbs, folds it into those that wait above it in its stripe.
    #[inline]
    fn collapse(&mut self) -> Result<()> {
        if self.kept_len == 0 || !self.pending.op.kind.absorbs() {
            return Ok(());
        }
        self.collapse_kept()
    }

    #[cold]
    fn collapse_kept(&mut self) -> Result<()> {
        while self.kept_len > 0 && self.kept[self.kept_len - 1].floor == self.pending.floor {
            let newer = &mut self.kept[self.kept_len - 1];
            let older = decoded(&self.key, self.pending.seq, &self.pending.op)?;
            let newer_op = decoded(&self.key, newer.seq, &newer.op)?;
            match self.fold.compose(&self.key, older, newer_op, &mut self.scratch) {
                Composed::Both(_) => return Ok(()),
                Composed::Older => {}
                Composed::Newer(kind) => {
                    std::mem::swap(&mut self.pending.op, &mut newer.op);
                    set_kind(&mut self.pending.op, kind);
                }
                Composed::Out => std::mem::swap(&mut self.pending.op, &mut self.scratch),
            }
            self.pending.seq = newer.seq;
            self.kept_len -= 1;
            self.counts.folded += 1;
        }
        Ok(())
    }

    /// The stripe is over: what is left of it goes out, or waits where the bottom may still change it.
    fn end_stripe<K: RecordSink + ?Sized>(&mut self, sink: &mut K) -> Result<()> {
        if matches!(self.bottom, BottomRule::Never) {
            self.send_kept(sink)?;
            return self.send_pending(sink);
        }
        self.keep_pending(sink)
    }

    /// Lets the pending op wait. When too many do, those that wait go out as they are.
    fn keep_pending<K: RecordSink + ?Sized>(&mut self, sink: &mut K) -> Result<()> {
        if self.kept_len == KEPT_MAX {
            self.send_kept(sink)?;
        }
        if self.kept_len == self.kept.len() {
            self.kept.push(Waiting::default());
        }
        let floor = self.pending.floor;
        std::mem::swap(&mut self.kept[self.kept_len], &mut self.pending);
        self.pending.floor = floor;
        self.kept_len += 1;
        Ok(())
    }

    /// The key is over: settles what is left of it and sends it out.
    #[inline]
    fn finish_key<K: RecordSink + ?Sized>(&mut self, sink: &mut K) -> Result<()> {
        if !self.inside {
            return Ok(());
        }
        if self.held == Held::Pending {
            self.finish_pending(sink)?;
        }
        self.inside = false;
        self.counts.keys_out += u64::from(self.sent);
        Ok(())
    }

    #[inline]
    fn finish_pending<K: RecordSink + ?Sized>(&mut self, sink: &mut K) -> Result<()> {
        let settled = self.kept_len == 0 && is_state(self.pending.op.kind);
        if !settled && self.bottom.holds(&self.key) {
            self.settle()?;
        }
        if self.sweep_ms > 0 {
            self.sweep();
        }
        self.send_kept(sink)?;
        if self.held == Held::Pending { self.send_pending(sink) } else { Ok(()) }
    }

    /// What has expired goes, where it is all that is left of its key. See the head of this file, 7.
    #[cold]
    fn sweep(&mut self) {
        let op = &self.pending.op;
        let is_alone = self.held == Held::Pending && self.kept_len == 0 && !self.sent;
        if !is_alone || !self.is_over(op.kind, &op.payload) {
            return;
        }
        self.counts.expired += 1;
        if self.bottom.holds(&self.key) {
            self.counts.dropped += 1;
            self.held = Held::Nothing;
        } else {
            set_kind(&mut self.pending.op, OpKind::Delete);
        }
    }

    /// Nothing older exists: the oldest op left becomes a state, or goes. See the head of this file, 5.
    #[inline]
    fn settle(&mut self) -> Result<()> {
        if self.kept_len == 0
            && matches!(self.pending.op.kind, OpKind::Fold | OpKind::Insert)
            && !self.fold.is_deleted_state(&self.key, &self.pending.op.payload)
        {
            self.pending.op.kind = OpKind::Set;
            return Ok(());
        }
        if self.kept_len == 0 && self.pending.op.kind == OpKind::InsertSeparated {
            self.pending.op.kind = OpKind::SetSeparated;
            return Ok(());
        }
        self.settle_all()
    }

    fn settle_all(&mut self) -> Result<()> {
        loop {
            let op = decoded(&self.key, self.pending.seq, &self.pending.op)?;
            if let Some(state) = self.fold.at_bottom(&self.key, op) {
                self.scratch.assign(state.as_set());
                std::mem::swap(&mut self.pending.op, &mut self.scratch);
                self.collapse()?;
                if is_state(self.pending.op.kind) {
                    return Ok(());
                }
                continue;
            }
            self.counts.dropped += 1;
            if self.kept_len == 0 {
                self.held = Held::Nothing;
                return Ok(());
            }
            self.kept_len -= 1;
            std::mem::swap(&mut self.pending, &mut self.kept[self.kept_len]);
        }
    }

    #[inline]
    fn send_kept<K: RecordSink + ?Sized>(&mut self, sink: &mut K) -> Result<()> {
        if self.kept_len == 0 { Ok(()) } else { self.send_some_kept(sink) }
    }

    #[cold]
    fn send_some_kept<K: RecordSink + ?Sized>(&mut self, sink: &mut K) -> Result<()> {
        for index in 0..self.kept_len {
            let Waiting { seq, op, .. } = &self.kept[index];
            let record = Record { key: &self.key, seq: *seq, kind: op.kind, payload: &op.payload };
            send(record, &mut self.counts, sink)?;
        }
        self.sent = true;
        self.kept_len = 0;
        Ok(())
    }

    #[inline]
    fn send_pending<K: RecordSink + ?Sized>(&mut self, sink: &mut K) -> Result<()> {
        let Waiting { seq, op, .. } = &self.pending;
        self.sent = true;
        let record = Record { key: &self.key, seq: *seq, kind: op.kind, payload: &op.payload };
        send(record, &mut self.counts, sink)
    }

    #[inline]
    fn send<K: RecordSink + ?Sized>(&mut self, record: Record<'_>, sink: &mut K) -> Result<()> {
        self.sent = true;
        send(record, &mut self.counts, sink)
    }

    fn note(&mut self, decline: Decline) {
        match decline {
            Decline::NoNormalForm | Decline::Separated | Decline::TooLong => {
                self.counts.declined_by_form += 1
            }
            Decline::FoldMissing => self.counts.declined_fold_missing += 1,
            Decline::Failed(failure) => {
                self.counts.declined_failed += 1;
                let key = &self.key;
                self.failure.get_or_insert_with(|| StepFailure { key: key.clone(), message: failure.0 });
            }
        }
    }

    fn check_balance(&self) -> Result<()> {
        if self.counts.balance() {
            return Ok(());
        }
        let message = format!("a merge lost count of its records ({}) and is given up", self.counts);
        Err(Error::new(ErrorKind::Corruption, message))
    }
}

#[inline]
fn send<K: RecordSink + ?Sized>(record: Record<'_>, counts: &mut Counts, sink: &mut K) -> Result<()> {
    counts.records_out += 1;
    counts.bytes_out += (record.key.len() + record.payload.len()) as u64;
    counts.deletes_out += u64::from(record.kind == OpKind::Delete);
    sink.push(record)
}

/// True for an op that states the whole truth about its key.
#[inline]
fn is_state(kind: OpKind) -> bool {
    matches!(kind, OpKind::Set | OpKind::SetSeparated)
}

fn set_kind(op: &mut OpBuf, kind: OpKind) {
    op.kind = kind;
    if kind == OpKind::Delete {
        op.payload.clear();
    }
}

fn decoded<'a>(key: &[u8], seq: Seq, op: &'a OpBuf) -> Result<Op<'a>> {
    op.op().map_err(|malformed| damaged(&Record { key, seq, kind: op.kind, payload: &op.payload }, malformed))
}

#[cold]
fn damaged(record: &Record<'_>, malformed: Malformed) -> Error {
    let (key, seq, kind) = (hex(record.key), record.seq, record.kind);
    let message = format!("the {kind:?} at seq {seq} of key {key} cannot be decoded: {malformed}");
    Error::new(ErrorKind::Corruption, message)
}

/// Equality of keys that differ in their last bytes, as neighbours do, without a call.
#[inline]
fn same_key(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.split_last_chunk::<8>(), b.split_last_chunk::<8>()) {
        (Some((head_a, tail_a)), Some((head_b, tail_b))) => {
            u64::from_le_bytes(*tail_a) == u64::from_le_bytes(*tail_b)
                && (head_a.is_empty() || head_a == head_b)
        }
        _ => a == b,
    }
}

#[cfg(test)]
#[path = "fold_step/tests.rs"]
mod tests;
