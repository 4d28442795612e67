//! Folds the records of one key after the other, by the rules at the head of `fold_step.rs`.

use folddb_base::bytes::same_bytes;
use folddb_base::op::OpKind;
use folddb_base::{Error, ErrorKind, OpBuf, Record, RecordSink, Result, Seq, Stamp};
use folddb_rules::algebra::Decline;
use folddb_rules::{Composed, FoldRules};

use super::counts::{Counts, StepFailure};
use super::past::Past;
use super::rules::{BottomRule, StepRules, Times};
use super::waiting::{Waiting, damaged, decoded, is_state, send, set_kind};
use crate::range_sweep::RangeSweep;

/// The most ops of one key that wait for the end of the key. If there are more, they are output as
/// they are.
pub(super) const KEPT_MAX: usize = 4096;

/// The state of the current stripe of the current key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// No record of the stripe counts so far.
    Nothing,
    /// The op in `pending` is the fold of the stripe so far.
    Pending,
    /// An absorbing op has been output: everything else in the stripe is shadowed.
    Closed,
}

/// Folds the records of one key after the other. All buffers are reused.
pub(super) struct KeyFolder {
    fold: FoldRules,
    boundaries: Vec<Seq>,
    ranges: RangeSweep,
    bottom: BottomRule,
    key: Vec<u8>,
    pub(super) inside: bool,
    sent: bool,
    held: Held,
    pending: Waiting,
    scratch: OpBuf,
    /// Newest first: ops that declined to compose, or that the bottom may still change.
    pub(super) kept: Vec<Waiting>,
    kept_len: usize,
    pub(super) counts: Counts,
    pub(super) failure: Option<StepFailure>,
    /// Present if the past is kept. Then `boundaries` is not empty.
    pub(super) past: Option<Box<Past>>,
    sweep_ms: u64,
    /// Whether a state itself may be a reason to drop it: by the delete rule, or because it has
    /// expired.
    asks_states: bool,
}

impl KeyFolder {
    pub(super) fn new(rules: StepRules) -> KeyFolder {
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

    pub(super) fn set_times(&mut self, times: Times) {
        if times.keeps_past() {
            // This boundary is above all seqs, so it separates nothing: `take` checks for a past
            // only if there are boundaries.
            self.boundaries.push(Seq::MAX);
            self.past = Some(Box::new(Past::new(times)));
        }
        if self.fold.has_stamps() {
            self.sweep_ms = times.sweep_ms;
            self.asks_states |= times.sweep_ms > 0;
        }
    }

    #[inline]
    pub(super) fn is_inside(&self, key: &[u8]) -> bool {
        self.inside && same_bytes(&self.key, key)
    }

    #[inline]
    pub(super) fn begin_key(&mut self, key: &[u8]) {
        // Many keys have eight bytes: these are copied without a call.
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

    /// The lowest seq of the stripe of `seq`: two records are in one stripe if theirs are equal.
    /// Rows that were loaded before anything was written have the seq 0, and a snapshot may have
    /// that seq, so the seq of a boundary does not identify a stripe: what is above boundary 0
    /// begins at 1.
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
    pub(super) fn take<K: RecordSink + ?Sized>(&mut self, record: Record<'_>, sink: &mut K) -> Result<()> {
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

    /// As [`KeyFolder::take`], if the past is kept.
    #[inline(never)]
    fn take_of_past<K: RecordSink + ?Sized>(&mut self, record: Record<'_>, sink: &mut K) -> Result<()> {
        let keys_in = self.counts.keys_in;
        let Some(past) = &mut self.past else { return Ok(()) };
        past.begin(keys_in);
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

    /// True for an absorbing op that no older record of the key can change.
    #[inline]
    fn goes_straight_out(&self, record: &Record<'_>) -> bool {
        self.kept_len == 0
            && match record.kind {
                OpKind::Set | OpKind::SetSeparated => !self.asks_states || !self.goes_away(record),
                OpKind::Delete => matches!(self.bottom, BottomRule::Never),
                _ => false,
            }
    }

    /// Whether a state may be dropped after all records of its key were read.
    #[cold]
    fn goes_away(&self, record: &Record<'_>) -> bool {
        let is_deleted = record.kind == OpKind::Set && self.fold.is_deleted_state(record.key, record.payload);
        is_deleted || self.is_over(record.kind, record.payload)
    }

    /// Whether the state has expired.
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

    /// An op that declined to compose with an older op may compose with a state. So if the pending
    /// op absorbs, it is composed with the newer ops of its stripe that wait.
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

    /// After the last record of the stripe: outputs what is left, or lets it wait if the bottom may
    /// still change it.
    fn end_stripe<K: RecordSink + ?Sized>(&mut self, sink: &mut K) -> Result<()> {
        if matches!(self.bottom, BottomRule::Never) {
            self.send_kept(sink)?;
            return self.send_pending(sink);
        }
        self.keep_pending(sink)
    }

    /// Lets the pending op wait. If too many wait, they are output as they are.
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

    /// After the last record of the key: settles what is left of it and outputs it.
    #[inline]
    pub(super) fn finish_key<K: RecordSink + ?Sized>(&mut self, sink: &mut K) -> Result<()> {
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

    /// Drops an expired state if it is all that is left of its key, or replaces it with a `Delete`.
    /// See the head of `fold_step.rs`, 7.
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

    /// At the bottom: makes the oldest op that is left a state, or drops it. See the head of
    /// `fold_step.rs`, 5.
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
                let (key, message) = (&self.key, failure.message());
                self.failure
                    .get_or_insert_with(|| StepFailure { key: key.clone(), message: message.to_owned() });
            }
        }
    }

    pub(super) fn check_balance(&self) -> Result<()> {
        if self.counts.balance() {
            return Ok(());
        }
        let message = format!("a merge lost count of its records ({}) and is given up", self.counts);
        Err(Error::new(ErrorKind::Corruption, message))
    }
}
