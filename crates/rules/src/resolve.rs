//! From the records of one key to its value.
//!
//! A [`Resolver`] takes the ops of one key, either newest first (a get, a forward scan) or oldest
//! first (a backward scan), composes them as they arrive, and says when older ones no longer
//! matter. Gets, scans and snapshots all use it.
//!
//! Small ops become one at once. Long ones wait until what follows has about their length, like the
//! digits of a binary counter: a list of n operands is then copied log n times instead of n times,
//! and the buffers are no longer than the value. The fold is associative, so the bytes are the
//! same. Where folding is concatenating, long ones wait for the last, and all are copied once.
//!
//! Separated values are not examined. If that leaves a key as a pointer, [`Resolver::state`]
//! returns the pointer; if an operand waits to be folded onto such a value, the reader loads it
//! first: see [`Resolver::load`].
//!
//! If values expire, the resolver reads at a time ([`Resolver::read_at`]): a state is absent if its
//! deadline is not after that time, even if the fold fails on it.

use folddb_base::bytes::Malformed;
use folddb_base::limits::FOLDED_BYTES_MAX;
use folddb_base::stamp::NEVER;
use folddb_base::{Op, OpBuf, OpKind, Stamp};

use crate::algebra::{Composed, Decline, FoldRules, State};

/// A payload up to this length is composed with the next one at once.
const SHORT_BYTES: usize = 1 << 10;

/// A buffer longer than this is not kept for the next key, except the two that every key needs.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// As many buffers are kept for the next key.
const KEPT_OPS_MAX: usize = 32;

/// Folds the ops of one key; reused from key to key.
#[derive(Debug, Default)]
pub struct Resolver {
    /// Newest first; those from `used` on are only buffers.
    ops: Vec<OpBuf>,
    used: usize,
    /// For each op, whether it has declined to compose with the next newer one; as many as are
    /// used.
    declined: Vec<bool>,
    scratch: OpBuf,
    state: Option<Vec<u8>>,
    visited: usize,
    /// The time that it reads at, in milliseconds since 1970; used if values expire.
    now_ms: u64,
    /// The deadline of the last returned state, if it has one, and whether it had passed.
    deadline_ms: Option<u64>,
    expired: bool,
}

impl Resolver {
    /// A resolver that has seen nothing.
    pub fn new() -> Resolver {
        Resolver::default()
    }

    /// Forgets the key, keeping the buffers.
    pub fn clear(&mut self) {
        self.used = 0;
        self.visited = 0;
        self.declined.clear();
        self.ops.truncate(KEPT_OPS_MAX);
        for spare in self.ops.iter_mut().skip(1) {
            spare.payload.clear();
            spare.payload.shrink_to(KEPT_BYTES_MAX);
        }
    }

    /// Sets the time that it reads at, in milliseconds since 1970.
    pub fn read_at(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// The deadline of the value that [`Resolver::state`] returned, if it does not last forever.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.deadline_ms
    }

    /// Whether the key had a value that had expired when [`Resolver::state`] was called.
    pub fn has_expired(&self) -> bool {
        self.expired
    }

    /// How many ops it was fed since it was cleared.
    pub fn visited(&self) -> usize {
        self.visited
    }

    /// Takes the next *older* op. True when nothing older can matter: stop looking.
    ///
    /// # Errors
    /// When the payload is not one of its kind.
    pub fn feed_older(
        &mut self,
        rules: &FoldRules,
        key: &[u8],
        kind: OpKind,
        payload: &[u8],
    ) -> Result<bool, Malformed> {
        self.visited += 1;
        let older = Op::from_parts(kind, payload)?;
        if self.used == 0 {
            self.push(kind, payload);
            return Ok(kind.absorbs());
        }
        let newer = &mut self.ops[self.used - 1];
        if newer.payload.len() > SHORT_BYTES {
            self.push(kind, payload);
            if rules.concatenates().is_none() {
                self.carry(rules, key)?;
            }
            return Ok(self.ops[self.used - 1].kind.absorbs());
        }
        match rules.compose(key, older, newer.op()?, &mut self.scratch) {
            Composed::Newer(kind) => set_kind(newer, kind),
            Composed::Older => newer.assign(older),
            Composed::Out => std::mem::swap(newer, &mut self.scratch),
            Composed::Both(_) => {
                self.push(kind, payload);
                self.decline(self.used - 1);
            }
        }
        self.carry(rules, key)?;
        Ok(self.ops[self.used - 1].kind.absorbs())
    }

    /// Composes the oldest ops, as long as what is older is not much shorter than what is newer.
    fn carry(&mut self, rules: &FoldRules, key: &[u8]) -> Result<(), Malformed> {
        while let [.., newer, older] = &self.ops[..self.used] {
            let at = self.used - 1;
            if self.declined[at] || older.payload.len() < newer.payload.len() / 2 {
                break;
            }
            self.compose_at(rules, key, at)?;
        }
        Ok(())
    }

    /// Composes all that has waited.
    ///
    /// # Errors
    /// Only for ops that were not fed.
    pub fn settle(&mut self, rules: &FoldRules, key: &[u8]) -> Result<(), Malformed> {
        if self.used > 2
            && let Some(separator) = rules.concatenates()
        {
            self.concatenate(separator);
        }
        for at in (1..self.used).rev() {
            if !self.declined[at] {
                self.compose_at(rules, key, at)?;
            }
        }
        Ok(())
    }

    /// Joins neighbors to as few ops as the longest record allows, and copies each once.
    #[cold]
    fn concatenate(&mut self, separator: &[u8]) {
        let (mut joined, mut newest) = (0, 0);
        while newest < self.used {
            let end = self.end_of_joined(newest, separator);
            if end - newest > 1 {
                let payloads: Vec<&[u8]> =
                    self.ops[newest..end].iter().rev().map(|op| op.payload.as_slice()).collect();
                self.scratch.payload = payloads.join(separator);
                self.scratch.kind = self.ops[end - 1].kind;
                std::mem::swap(&mut self.ops[joined], &mut self.scratch);
            } else {
                self.ops.swap(joined, newest);
            }
            self.declined[joined] = self.declined[newest];
            (joined, newest) = (joined + 1, end);
        }
        self.used = joined;
        self.declined.truncate(joined);
    }

    /// The end of the ops, from `newest` on to older ones, that are one after the other in the
    /// value: operands, down to the value that they were folded onto.
    fn end_of_joined(&self, newest: usize, separator: &[u8]) -> usize {
        let (mut end, mut bytes) = (newest + 1, self.ops[newest].payload.len());
        while self.ops[end - 1].kind == OpKind::Fold && end < self.used && !self.declined[end] {
            let older = &self.ops[end];
            bytes += separator.len() + older.payload.len();
            if !matches!(older.kind, OpKind::Fold | OpKind::Set) || bytes > FOLDED_BYTES_MAX {
                break;
            }
            end += 1;
        }
        end
    }

    /// Composes the op at `at` with the next newer one, or notes that they decline.
    fn compose_at(&mut self, rules: &FoldRules, key: &[u8], at: usize) -> Result<(), Malformed> {
        let [newer, older] = &mut self.ops[at - 1..=at] else { return Ok(()) };
        match rules.compose(key, older.op()?, newer.op()?, &mut self.scratch) {
            Composed::Newer(kind) => set_kind(newer, kind),
            Composed::Older => std::mem::swap(newer, older),
            Composed::Out => std::mem::swap(newer, &mut self.scratch),
            Composed::Both(_) => {
                self.decline(at);
                return Ok(());
            }
        }
        self.ops[at..self.used].rotate_left(1);
        self.declined.remove(at);
        self.used -= 1;
        Ok(())
    }

    fn decline(&mut self, at: usize) {
        self.declined[at] = true;
    }

    /// Takes the next *newer* op.
    ///
    /// # Errors
    /// When the payload is not one of its kind.
    pub fn feed_newer(
        &mut self,
        rules: &FoldRules,
        key: &[u8],
        kind: OpKind,
        payload: &[u8],
    ) -> Result<(), Malformed> {
        self.visited += 1;
        let newer = Op::from_parts(kind, payload)?;
        if self.used == 0 || kind.absorbs() {
            self.used = 0;
            self.declined.clear();
            self.push(kind, payload);
            return Ok(());
        }
        let older = &mut self.ops[0];
        if older.payload.len() > SHORT_BYTES {
            self.push_newest(kind, payload);
        } else {
            match rules.compose(key, older.op()?, newer, &mut self.scratch) {
                Composed::Older => {}
                Composed::Newer(kind) => {
                    older.assign(newer);
                    set_kind(older, kind);
                }
                Composed::Out => std::mem::swap(older, &mut self.scratch),
                Composed::Both(_) => {
                    self.push_newest(kind, payload);
                    self.decline(1);
                }
            }
        }
        self.carry_newest(rules, key)?;
        if self.ops[0].kind.absorbs() {
            self.used = 1;
            self.declined.truncate(1);
        }
        Ok(())
    }

    /// Composes the newest ops, as long as what is newer is not much shorter than what is older.
    fn carry_newest(&mut self, rules: &FoldRules, key: &[u8]) -> Result<(), Malformed> {
        while let [newer, older, ..] = &self.ops[..self.used] {
            if self.declined[1] || newer.payload.len() < older.payload.len() / 2 {
                break;
            }
            self.compose_at(rules, key, 1)?;
        }
        Ok(())
    }

    fn push_newest(&mut self, kind: OpKind, payload: &[u8]) {
        self.push(kind, payload);
        self.ops[..self.used].rotate_right(1);
        self.declined.rotate_right(1);
    }

    fn push(&mut self, kind: OpKind, payload: &[u8]) {
        if self.used == self.ops.len() {
            self.ops.push(OpBuf::default());
        }
        let slot = &mut self.ops[self.used];
        slot.kind = kind;
        slot.payload.clear();
        slot.payload.extend_from_slice(payload);
        self.declined.push(false);
        self.used += 1;
    }

    /// Whether it still holds a separated value.
    #[inline]
    pub fn is_separated(&self) -> bool {
        self.ops[..self.used].iter().any(|op| op.kind.is_separated())
    }

    /// Composes what has waited. If that leaves operands on separated values, it loads those:
    /// `load` appends the value that a pointer leads to. Then everything that is left has its
    /// values in memory, unless it is a single op.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn load<E>(
        &mut self,
        rules: &FoldRules,
        key: &[u8],
        mut load: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.used < 2 || self.settle(rules, key).is_err() {
            return Ok(()); // one op needs no value, and `state` reports malformed ops
        }
        if self.used < 2 || self.join_all(rules) {
            return Ok(());
        }
        for op in self.ops[..self.used].iter_mut().filter(|op| op.kind.is_separated()) {
            self.scratch.payload.clear();
            if rules.has_stamps()
                && let Ok(stamp) = Stamp::of_pointer(&op.payload)
            {
                self.scratch.payload.extend_from_slice(&stamp.bytes());
            }
            load(&op.payload, &mut self.scratch.payload)?;
            std::mem::swap(&mut op.payload, &mut self.scratch.payload);
            op.kind = op.kind.inline();
        }
        Ok(())
    }

    /// Joins everything that is left into one rope of any length, if folding is joining: then true,
    /// and no value must be loaded.
    #[cold]
    fn join_all(&mut self, rules: &FoldRules) -> bool {
        let Some(joins) = rules.joins().filter(|_| self.is_separated()) else { return false };
        let ops = self.ops[..self.used].iter().rev().map(|op| op.op().ok()).collect::<Option<Vec<_>>>();
        if ops.is_none_or(|ops| joins.join_all(&ops, &mut self.scratch).is_none()) {
            return false;
        }
        std::mem::swap(&mut self.ops[0], &mut self.scratch);
        self.used = 1;
        self.declined.truncate(1);
        true
    }

    /// The value of the key, given that nothing older exists and that no value is separated.
    ///
    /// # Errors
    /// When ops that could not be composed cannot be applied one by one either.
    pub fn finish(&mut self, rules: &FoldRules, key: &[u8]) -> Result<Option<&[u8]>, Decline> {
        match self.state(rules, key)? {
            None => Ok(None),
            Some(State::Value(value)) => Ok(Some(value)),
            Some(State::Separated(_)) => Err(Decline::Separated),
        }
    }

    /// The state of the key, given that nothing older exists. See [`Resolver::load`].
    ///
    /// # Errors
    /// When ops that could not be composed cannot be applied one by one either.
    #[inline]
    pub fn state(&mut self, rules: &FoldRules, key: &[u8]) -> Result<Option<State<'_>>, Decline> {
        let damaged = |_| Decline::NoNormalForm; // cannot happen: every op was decoded when it was fed
        self.settle(rules, key).map_err(damaged)?;
        if rules.has_stamps() {
            return self.stamped_state(rules, key);
        }
        match self.used {
            0 => Ok(None),
            1 => Ok(rules.at_bottom(key, self.ops[0].op().map_err(damaged)?)),
            _ => {
                self.state = None;
                for op in self.ops[..self.used].iter().rev() {
                    rules.apply(key, &mut self.state, op.op().map_err(damaged)?)?;
                }
                Ok(self.state.as_deref().map(State::Value))
            }
        }
    }

    /// As [`Resolver::state`], if ops have stamps and everything that would compose is composed.
    #[cold]
    fn stamped_state(&mut self, rules: &FoldRules, key: &[u8]) -> Result<Option<State<'_>>, Decline> {
        let damaged = |_| Decline::NoNormalForm;
        (self.deadline_ms, self.expired) = (None, false);
        let state = match &self.ops[..self.used] {
            [] => None,
            [only] => rules.at_bottom(key, only.op().map_err(damaged)?),
            several => {
                self.state = None;
                if let Some((cause, until)) = apply_all(rules, key, several, &mut self.state)? {
                    self.deadline_ms = until.map(|until| until.deadline_ms).filter(|&ms| ms < NEVER);
                    self.expired = until.is_some_and(|until| until.is_over_at(self.now_ms));
                    return if self.expired { Ok(None) } else { Err(cause) };
                }
                self.state.as_deref().map(State::Value)
            }
        };
        let (stamp, state) = match state {
            None => return Ok(None),
            Some(State::Value(payload)) => {
                let (stamp, value) = Stamp::split(payload).map_err(damaged)?;
                (stamp, State::Value(value))
            }
            Some(State::Separated(pointer)) => {
                (Stamp::of_pointer(pointer).map_err(damaged)?, State::Separated(pointer))
            }
        };
        self.deadline_ms = (stamp.deadline_ms < NEVER).then_some(stamp.deadline_ms);
        self.expired = stamp.is_over_at(self.now_ms);
        Ok((!self.expired).then_some(state))
    }

    /// The ops as far as they would compose, newest first: what a reader without the fold gets.
    /// Call [`Resolver::settle`] or [`Resolver::finish`] before.
    pub fn operands(&self) -> &[OpBuf] {
        &self.ops[..self.used]
    }
}

/// Applies ops that did not compose, newest first, one by one. A state on which one fails lasts as
/// a value would, so that it does not matter whether a merge has swept it: each fold extends its
/// life, an `Insert` leaves it, and what is written after its deadline meets nothing. If the last
/// state failed, returns why, and until when it lasts.
///
/// # Errors
/// Only for ops that were not fed.
#[cold]
fn apply_all(
    rules: &FoldRules,
    key: &[u8],
    ops: &[OpBuf],
    state: &mut Option<Vec<u8>>,
) -> Result<Option<(Decline, Option<Stamp>)>, Decline> {
    let damaged = |_| Decline::NoNormalForm;
    let mut failed: Option<(Decline, Option<Stamp>)> = None;
    for op in ops.iter().rev() {
        let stamp = Stamp::of(op.kind, &op.payload).ok().flatten();
        if let Some((_, until)) = &mut failed {
            let is_over = until.zip(stamp).is_some_and(|(until, stamp)| until.is_over_at(stamp.write_ms));
            if !is_over && !op.kind.absorbs() {
                if !matches!(op.kind, OpKind::Insert | OpKind::InsertSeparated) {
                    *until = stamp;
                }
                continue;
            }
            (failed, *state) = (None, None);
        }
        if let Err(cause) = rules.apply(key, state, op.op().map_err(damaged)?) {
            failed = Some((cause, stamp));
        }
    }
    Ok(failed)
}

fn set_kind(op: &mut OpBuf, kind: OpKind) {
    op.kind = kind;
    if kind == OpKind::Delete {
        op.payload.clear();
    }
}

#[cfg(test)]
#[path = "resolve/tests.rs"]
mod tests;
