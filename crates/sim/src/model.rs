//! The model: what a store means, in the most naive form.
//!
//! A table is the list of everything that was ever written to it, and applying that list from the
//! beginning, one op at a time, gives a state. There are no runs, no merges and no composition of
//! ops.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use folddb_base::stamp::NEVER;
use folddb_base::{Seq, Stamp};

use crate::tables::{Kind, Mark, Order, Shape};

/// One op on a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ModelOp {
    /// Makes the value this one.
    Set(Vec<u8>, Vec<u8>),
    /// Gives an absent key this value.
    Insert(Vec<u8>, Vec<u8>),
    /// Folds this operand on.
    Fold(Vec<u8>, Vec<u8>),
    /// Makes the key absent.
    Delete(Vec<u8>),
    /// Makes all keys from the first on and below the second, in the order of the table, absent.
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// The state of a key. An absent key has no entry in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Present {
    /// It has this value.
    Value(Vec<u8>),
    /// The fold has failed on it: reading it is an error until a `Set` or a delete.
    Failed,
}

/// A row of a scan.
pub type ModelRow = (Vec<u8>, Present);

#[derive(Clone, Debug)]
struct ModelTable {
    shape: Shape,
    /// Which of the tables of the store it is, in the order of their making.
    born: u64,
    /// What was written. Copies share the ops, which may be long.
    history: Vec<(Seq, Arc<ModelOp>, Stamp)>,
    /// The seq of its initial rows; 0 where it was empty.
    loaded_at: Seq,
    /// When those rows were surely present, and when surely not yet.
    loaded: LoadTime,
    index: Index,
    /// The last seq when all of it was in the index: queries can ask for moments from then on.
    index_since: Seq,
}

/// The age of the initial rows of a table: they are as old as the last write before their load; the
/// store knows its time only for tables that ask for the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTime {
    /// They do not exist before the last write to such a table.
    pub after_ms: u64,
    /// They exist from the beginning of their load on.
    pub by_ms: u64,
}

/// A state of a key, and the record that caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelState {
    /// The record.
    pub seq: Seq,
    /// When it was written.
    pub write_ms: u64,
    /// The key in this state; none where it was absent.
    pub present: Option<Present>,
    /// Until when.
    pub deadline_ms: u64,
}

/// Whether a table has its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Index {
    /// It has none.
    #[default]
    None,
    /// It is being built: all that is written is in it.
    Begun,
    /// All is in it.
    Built,
}

/// Whether a key was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Written {
    /// It was not.
    Not,
    /// It was, unless it had a value: an insert keeps that. A hashed table checks this, and then
    /// writes nothing.
    Unless,
    /// It was.
    Surely,
}

impl Shape {
    fn written(&self, op: &ModelOp) -> Written {
        let keeps_first = match op {
            ModelOp::Insert(..) => true,
            ModelOp::Fold(..) => self.kind == Kind::First,
            _ => false,
        };
        if self.order == Order::Hashed && keeps_first { Written::Unless } else { Written::Surely }
    }
}

/// The state of a key, and until when.
type Lasting = (Present, u64);

/// All keys of a table.
type TableState = BTreeMap<Vec<u8>, Lasting>;

/// A store.
#[derive(Clone, Debug, Default)]
pub struct Model {
    tables: BTreeMap<String, ModelTable>,
    /// How many tables were created.
    made: u64,
    last_seq: Seq,
    /// When seqs were written, for seqs with a known time; rising.
    times: Vec<(Seq, u64)>,
    /// The known last seqs of batches.
    ends: Vec<Seq>,
    /// The time according to the store.
    now_ms: u64,
    /// The latest time of any of its processes.
    latest_ms: u64,
}

impl Model {
    /// An empty store.
    pub fn new() -> Model {
        Model::default()
    }

    /// Adds a table.
    pub fn create_table(&mut self, name: &str, shape: Shape) {
        self.made += 1;
        let table = ModelTable {
            shape,
            born: self.made,
            history: Vec::new(),
            loaded_at: 0,
            loaded: LoadTime::default(),
            index: Index::None,
            index_since: 0,
        };
        self.tables.insert(name.to_owned(), table);
    }

    /// Removes a table.
    pub fn drop_table(&mut self, name: &str) {
        self.tables.remove(name);
    }

    /// Gives a table other rules, under which its data mean the same.
    pub fn alter_table(&mut self, name: &str, shape: Shape) {
        if let Some(table) = self.tables.get_mut(name) {
            table.shape = shape;
        }
    }

    /// The names of the tables, in order.
    pub fn tables(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    /// The rules of a table.
    pub fn shape(&self, name: &str) -> Option<Shape> {
        self.tables.get(name).map(|table| table.shape)
    }

    /// The number of the table with this name now: another table of the same name has another
    /// number. 0 where there is none.
    pub fn born(&self, name: &str) -> u64 {
        self.tables.get(name).map_or(0, |table| table.born)
    }

    /// Whether a key was written to after `seq`.
    pub fn was_written_since(&self, table: &str, key: &[u8], seq: Seq) -> Written {
        let Some(table) = self.tables.get(table) else { return Written::Not };
        let since = table.history.iter().filter(|(at, op, _)| *at > seq && is_about(&table.shape, op, key));
        since.map(|(_, op, _)| table.shape.written(op)).max().unwrap_or(Written::Not)
    }

    /// Whether a range was deleted from a table after `seq`.
    pub fn was_cut_since(&self, table: &str, seq: Seq) -> bool {
        let Some(table) = self.tables.get(table) else { return false };
        table.history.iter().any(|(at, op, _)| *at > seq && matches!(**op, ModelOp::DeleteRange(..)))
    }

    /// Whether a table has its index.
    pub fn index(&self, name: &str) -> Index {
        self.tables.get(name).map(|table| table.index).unwrap_or_default()
    }

    /// It has it in this state now, when the last seq is this.
    pub fn set_index(&mut self, name: &str, index: Index, last_seq: Seq) {
        if let Some(table) = self.tables.get_mut(name) {
            if index == Index::Built && table.index != Index::Built {
                table.index_since = last_seq;
            }
            table.index = index;
        }
    }

    /// The first seq whose moment its index can be asked for.
    pub fn index_since(&self, name: &str) -> Seq {
        self.tables.get(name).map_or(0, |table| table.index_since)
    }

    /// Notes that entries of indexes have the seqs up to this one.
    pub fn pass_to(&mut self, last_seq: Seq) {
        self.last_seq = last_seq;
    }

    /// How many entries of indexes a batch brings: one for each term of what it writes.
    pub fn entries_of<'o>(&self, ops: impl Iterator<Item = (&'o String, &'o ModelOp)>) -> u64 {
        let of_op = |(name, op): (&String, &ModelOp)| {
            let Some(table) = self.tables.get(name).filter(|table| table.index != Index::None) else {
                return 0;
            };
            match op {
                ModelOp::Set(_, value) if table.shape.is_deleted(value) => 0,
                ModelOp::Set(key, value) | ModelOp::Insert(key, value) | ModelOp::Fold(key, value) => {
                    table.shape.marks(key, value).len() as u64
                }
                ModelOp::Delete(_) | ModelOp::DeleteRange(..) => 0,
            }
        };
        ops.map(of_op).sum()
    }

    /// What an index finds in these rows of a table: each term with each key that has it, in their
    /// order.
    pub fn found(shape: &Shape, rows: &[ModelRow]) -> Vec<(Mark, Vec<u8>)> {
        let marks = |(key, present): &ModelRow| match present {
            Present::Value(value) => {
                shape.marks(key, value).into_iter().map(|mark| (mark, key.clone())).collect()
            }
            Present::Failed => Vec::new(),
        };
        let mut found: Vec<_> = rows.iter().flat_map(marks).collect();
        found.sort();
        found
    }

    /// The seq of the last op.
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// The time according to the store is this.
    pub fn set_time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.latest_ms = self.latest_ms.max(now_ms);
    }

    /// The last time that it was given.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The latest time ever: a crash may forget a time that no write has, and time may go back over
    /// it.
    pub fn latest_ms(&self) -> u64 {
        self.latest_ms
    }

    /// Applies one op whose value lasts. A missing table ignores it.
    pub fn apply(&mut self, table: &str, op: ModelOp) {
        self.apply_at(table, op, Stamp { write_ms: self.now_ms, deadline_ms: NEVER });
    }

    /// Applies one op that was written at a time and whose value has a deadline.
    pub fn apply_at(&mut self, table: &str, op: ModelOp, stamp: Stamp) {
        if let Some(table) = self.tables.get_mut(table) {
            self.last_seq += 1;
            if table.shape.is_timed() {
                self.times.push((self.last_seq, stamp.write_ms));
            }
            table.history.push((self.last_seq, Arc::new(op), stamp));
        }
    }

    /// Applies an op of an initial row of a table, which has an older seq; the load began at this
    /// time.
    pub fn load(&mut self, table: &str, seq: Seq, begun_ms: u64, op: ModelOp) {
        let stamp = Stamp { write_ms: self.now_ms, deadline_ms: NEVER };
        let before = self.times.partition_point(|(at, _)| *at <= seq);
        let after_ms = before.checked_sub(1).map_or(0, |at| self.times[at].1);
        if let Some(table) = self.tables.get_mut(table) {
            table.history.push((seq, Arc::new(op), stamp));
            (table.loaded_at, table.loaded) = (seq, LoadTime { after_ms, by_ms: begun_ms });
        }
    }

    /// The seq of the initial rows of a table; 0 where there were none.
    pub fn loaded_at(&self, table: &str) -> Seq {
        self.tables.get(table).map_or(0, |table| table.loaded_at)
    }

    /// The age of those rows.
    pub fn loaded(&self, table: &str) -> LoadTime {
        self.tables.get(table).map_or_else(LoadTime::default, |table| table.loaded)
    }

    /// The seqs and times of all writes to a table, except its initial rows.
    pub fn writes(&self, table: &str) -> Vec<(Seq, u64)> {
        let Some(table) = self.tables.get(table) else { return Vec::new() };
        let written = table.history.iter().filter(|(seq, ..)| *seq > table.loaded_at);
        written.map(|(seq, _, stamp)| (*seq, stamp.write_ms)).collect()
    }

    /// What was applied since the last time was one batch.
    pub fn end_batch(&mut self) {
        self.ends.push(self.last_seq);
    }

    /// The store as it was at `seq`, to continue differently from there. Tables that were dropped
    /// since are gone.
    pub fn until(&self, seq: Seq) -> Model {
        let mut model = Model { last_seq: seq.min(self.last_seq), ..self.clone() };
        for table in model.tables.values_mut() {
            table.history.retain(|(at, ..)| *at <= seq);
        }
        model
    }

    /// Whether a table that still exists was written to after `low` and up to `high`.
    pub fn has_ops_between(&self, low: Seq, high: Seq) -> bool {
        let mut seqs = self.tables.values().flat_map(|table| &table.history).map(|(seq, ..)| *seq);
        seqs.any(|seq| low < seq && seq <= high)
    }

    /// Undoes all writes after `seq`, and gives the next op the seq after `last_seq`: writes lost
    /// by a crash may have taken some seqs.
    pub fn cut(&mut self, seq: Seq, last_seq: Seq) {
        for table in self.tables.values_mut() {
            table.history.retain(|(at, ..)| *at <= seq);
        }
        self.ends.retain(|end| *end <= seq);
        self.times.retain(|(at, _)| *at <= seq);
        self.last_seq = last_seq;
    }

    /// A number that two models share if and only if they are equal once each is [cut](Model::cut)
    /// at some seq up to this one; later ops do not matter.
    pub fn print(&self, until: Seq) -> u64 {
        let mut print = DefaultHasher::new();
        for (name, table) in &self.tables {
            let ModelTable { shape, born, history, loaded_at, loaded, index, index_since } = table;
            let facts = format!("{name} {shape:?} {born} {loaded_at} {loaded:?} {index:?} {index_since}");
            facts.hash(&mut print);
            for (seq, op, stamp) in history.iter().filter(|(seq, ..)| *seq <= until) {
                (seq, op, stamp.write_ms, stamp.deadline_ms).hash(&mut print);
            }
        }
        for (seq, time_ms) in self.times.iter().filter(|(seq, _)| *seq <= until) {
            (seq, time_ms).hash(&mut print);
        }
        self.ends.iter().filter(|end| **end <= until).for_each(|end| end.hash(&mut print));
        (self.made, self.latest_ms).hash(&mut print);
        print.finish()
    }

    /// Everything in a table as a reader at `seq` sees it, in the order of the table.
    pub fn rows_at(&self, table: &str, seq: Seq) -> Vec<ModelRow> {
        self.rows_seen(table, seq, self.now_ms)
    }

    /// As [`Model::rows_at`], for a reader at a time other than now.
    pub fn rows_seen(&self, table: &str, seq: Seq, time_ms: u64) -> Vec<ModelRow> {
        let Some(table) = self.tables.get(table) else { return Vec::new() };
        let mut state = TableState::new();
        for (_, op, stamp) in table.history.iter().filter(|(at, ..)| *at <= seq) {
            apply(&table.shape, &mut state, op, *stamp);
        }
        // A failed fold shows for as long as a value would last.
        let is_seen = |(_, deadline_ms): &Lasting| *deadline_ms > time_ms;
        let seen = state.into_iter().filter(|(_, lasting)| is_seen(lasting));
        let mut rows: Vec<ModelRow> = seen.map(|(key, (present, _))| (key, present)).collect();
        rows.sort_by(|a, b| table.shape.compare(&a.0, &b.0));
        rows
    }
}

impl Model {
    /// The past of a key, newest first: for each op on it, its seq and the result; the newest
    /// `count` of them, without those at the old end in which the key was absent.
    pub fn history(&self, table: &str, key: &[u8], count: usize) -> Vec<(Seq, Option<Present>)> {
        let Some(table) = self.tables.get(table) else { return Vec::new() };
        if table.shape.order == Order::Hashed {
            return newest(self.hashed_states(table, key), count);
        }
        newest(table.states(key).into_iter().map(|state| (state.seq, state.present)).collect(), count)
    }

    /// All states of a key of a sorted table, newest first.
    pub fn states(&self, table: &str, key: &[u8]) -> Vec<ModelState> {
        let mut states = self.tables.get(table).map(|table| table.states(key)).unwrap_or_default();
        states.reverse();
        states
    }

    /// The same for a hashed table, oldest first: all ops of a batch on a key are one version, or
    /// none where they change nothing.
    fn hashed_states(&self, table: &ModelTable, key: &[u8]) -> Vec<(Seq, Option<Present>)> {
        let mut state = TableState::new();
        let mut versions = Vec::new();
        let batch_of = |seq: Seq| self.ends.partition_point(|end| *end < seq);
        for batch in table.history.chunk_by(|one, next| batch_of(one.0) == batch_of(next.0)) {
            let is_alive = |state: &TableState, stamp: &Stamp| {
                state.get(key).is_some_and(|(_, deadline_ms)| *deadline_ms > stamp.write_ms)
            };
            let was_alive = batch.first().is_some_and(|(_, _, stamp)| is_alive(&state, stamp));
            let mut touched = None;
            for (seq, op, stamp) in batch {
                let is_void = matches!(**op, ModelOp::Insert(..)) && is_alive(&state, stamp);
                apply(&table.shape, &mut state, op, *stamp);
                if is_about(&table.shape, op, key) && !is_void {
                    touched = Some(*seq);
                }
            }
            let now = state.get(key).map(|(present, _)| present.clone());
            if now.is_some() || was_alive {
                versions.extend(touched.map(|seq| (seq, now)));
            }
        }
        versions
    }
}

impl ModelTable {
    /// All states of a key, oldest first.
    fn states(&self, key: &[u8]) -> Vec<ModelState> {
        let mut state = TableState::new();
        let mut states = Vec::new();
        for (seq, op, stamp) in &self.history {
            if is_about(&self.shape, op, key) {
                apply(&self.shape, &mut state, op, *stamp);
                let (present, deadline_ms) = state.get(key).cloned().unzip();
                let deadline_ms = deadline_ms.unwrap_or(NEVER);
                states.push(ModelState { seq: *seq, write_ms: stamp.write_ms, present, deadline_ms });
            }
        }
        states
    }
}

/// The newest `count` versions, the newest first, without those at the old end in which the key was
/// absent.
fn newest(mut versions: Vec<(Seq, Option<Present>)>, count: usize) -> Vec<(Seq, Option<Present>)> {
    versions.reverse();
    versions.truncate(count);
    while versions.last().is_some_and(|(_, present)| present.is_none()) {
        versions.pop();
    }
    versions
}

fn is_about(shape: &Shape, op: &ModelOp, key: &[u8]) -> bool {
    match op {
        ModelOp::Set(at, _) | ModelOp::Insert(at, _) | ModelOp::Fold(at, _) | ModelOp::Delete(at) => {
            at == key
        }
        ModelOp::DeleteRange(from, to) => shape.compare(key, from).is_ge() && shape.compare(key, to).is_lt(),
    }
}

/// Applies one op to a table. Whether the earlier value has expired is examined when the op is
/// written.
fn apply(shape: &Shape, state: &mut TableState, op: &ModelOp, stamp: Stamp) {
    if let ModelOp::Insert(key, _) | ModelOp::Fold(key, _) = op
        && state
            .get(key)
            .is_some_and(|(_, deadline_ms)| *deadline_ms <= stamp.write_ms && *deadline_ms < NEVER)
    {
        state.remove(key);
    }
    let until = stamp.deadline_ms;
    match op {
        ModelOp::Set(key, value) => put(shape, state, key, (value.clone(), until)),
        ModelOp::Insert(key, value) => {
            if !state.contains_key(key) {
                put(shape, state, key, (value.clone(), until));
            }
        }
        ModelOp::Fold(key, operand) => match state.get(key) {
            None => put(shape, state, key, (operand.clone(), until)),
            Some((Present::Failed, _)) => {
                state.insert(key.clone(), (Present::Failed, until));
            }
            Some((Present::Value(value), _)) => match shape.fold(value, operand) {
                Some(folded) => put(shape, state, key, (folded, until)),
                None => {
                    state.insert(key.clone(), (Present::Failed, until));
                }
            },
        },
        ModelOp::Delete(key) => {
            state.remove(key);
        }
        ModelOp::DeleteRange(from, to) => {
            state.retain(|key, _| shape.compare(key, from).is_lt() || shape.compare(key, to).is_ge());
        }
    }
}

fn put(shape: &Shape, state: &mut TableState, key: &[u8], (value, until): (Vec<u8>, u64)) {
    if shape.is_deleted(&value) {
        state.remove(key);
    } else {
        state.insert(key.to_vec(), (Present::Value(value), until));
    }
}

#[cfg(test)]
#[path = "model/tests.rs"]
mod tests;
