//! The model: what a store means, told as naively as can be.
//!
//! A table is the list of everything that was ever written to it, and a state is got by applying that list
//! from the beginning, one op at a time. There are no runs, no merges and no composition of ops.

use std::collections::BTreeMap;

use folddb_base::Seq;

use crate::tables::Shape;

/// One op on a table.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// What a key is. An absent key has no entry in a state.
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
    history: Vec<(Seq, ModelOp)>,
}

/// A store.
#[derive(Clone, Debug, Default)]
pub struct Model {
    tables: BTreeMap<String, ModelTable>,
    last_seq: Seq,
}

impl Model {
    /// An empty store.
    pub fn new() -> Model {
        Model::default()
    }

    /// Adds a table.
    pub fn create_table(&mut self, name: &str, shape: Shape) {
        self.tables.insert(name.to_owned(), ModelTable { shape, history: Vec::new() });
    }

    /// Removes a table.
    pub fn drop_table(&mut self, name: &str) {
        self.tables.remove(name);
    }

    /// The names of the tables, in order.
    pub fn tables(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    /// The rules of a table.
    pub fn shape(&self, name: &str) -> Option<Shape> {
        self.tables.get(name).map(|table| table.shape)
    }

    /// The seq of the last op.
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// Applies one op. A table that is not there takes none.
    pub fn apply(&mut self, table: &str, op: ModelOp) {
        if let Some(table) = self.tables.get_mut(table) {
            self.last_seq += 1;
            table.history.push((self.last_seq, op));
        }
    }

    /// The store as it was at `seq`, to go on from there in another way. Tables that were dropped since are gone.
    pub fn until(&self, seq: Seq) -> Model {
        let mut model = Model { last_seq: seq.min(self.last_seq), ..self.clone() };
        for table in model.tables.values_mut() {
            table.history.retain(|(at, _)| *at <= seq);
        }
        model
    }

    /// Whether a table that is still there was written to after `low` and up to `high`.
    pub fn has_ops_between(&self, low: Seq, high: Seq) -> bool {
        let mut seqs = self.tables.values().flat_map(|table| &table.history).map(|(seq, _)| *seq);
        seqs.any(|seq| low < seq && seq <= high)
    }

    /// Takes back all that was written after `seq`, and gives the next op the seq after `last_seq`: some seqs may be taken
    /// by what a crash has lost.
    pub fn cut(&mut self, seq: Seq, last_seq: Seq) {
        for table in self.tables.values_mut() {
            table.history.retain(|(at, _)| *at <= seq);
        }
        self.last_seq = last_seq;
    }

    /// Everything in a table as a reader at `seq` sees it, in the order of the table.
    pub fn rows_at(&self, table: &str, seq: Seq) -> Vec<ModelRow> {
        let Some(table) = self.tables.get(table) else { return Vec::new() };
        let mut state: BTreeMap<Vec<u8>, Present> = BTreeMap::new();
        for (_, op) in table.history.iter().filter(|(at, _)| *at <= seq) {
            apply(&table.shape, &mut state, op);
        }
        let mut rows: Vec<ModelRow> = state.into_iter().collect();
        rows.sort_by(|a, b| table.shape.compare(&a.0, &b.0));
        rows
    }
}

fn apply(shape: &Shape, state: &mut BTreeMap<Vec<u8>, Present>, op: &ModelOp) {
    match op {
        ModelOp::Set(key, value) => put(shape, state, key, value.clone()),
        ModelOp::Insert(key, value) => {
            if !state.contains_key(key) {
                put(shape, state, key, value.clone());
            }
        }
        ModelOp::Fold(key, operand) => match state.get(key) {
            None => put(shape, state, key, operand.clone()),
            Some(Present::Failed) => {}
            Some(Present::Value(value)) => match shape.fold(value, operand) {
                Some(folded) => put(shape, state, key, folded),
                None => {
                    state.insert(key.clone(), Present::Failed);
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

fn put(shape: &Shape, state: &mut BTreeMap<Vec<u8>, Present>, key: &[u8], value: Vec<u8>) {
    if shape.is_deleted(&value) {
        state.remove(key);
    } else {
        state.insert(key.to_vec(), Present::Value(value));
    }
}

#[cfg(test)]
#[path = "model/tests.rs"]
mod tests;
