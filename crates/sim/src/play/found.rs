//! The hits of a transaction in the index of a table, and their meaning for its commit.
//!
//! A find is for all terms. So a record with a new term, or another key of a term, is a conflict.
//! So is each write to a key that was a hit at the snapshot, unless the transaction has hidden that
//! by its own writes. With all other writes a commit may fail or not: entries that no longer hold
//! were examined, too.

use std::collections::BTreeSet;

use folddb::BytesTable;
use folddb::time::unix_ms;

use crate::compare::Outcome;
use crate::model::{Index, Model, ModelOp};
use crate::play::ask::Asked;
use crate::play::parts::{Found, Running};
use crate::play::player::{Player, name_of, said};
use crate::play::write::ops_of;
use crate::tables::{INDEX, Shape};

impl Player {
    /// It finds the rows that the table has for it; all entries of the index are read.
    pub(super) fn find_in(&self, running: &mut Running, (table, shape): (&BytesTable, &Shape)) -> Outcome {
        let (model, name) = (&self.known.model, table.name());
        let snapshot = running.transaction.snapshot();
        if model.index(name) != Index::Built || snapshot.has_ended() {
            return Ok(());
        }
        let (seq, time_ms) = (u64::from(snapshot.seq()), unix_ms(snapshot.time()));
        let since = model.index_since(name);
        let find = running.transaction.table(table).find(INDEX).map_err(said("find in a transaction"))?;
        let rows = running.rows(model, name);
        let turn = seq + running.ops.len() as u64;
        let asked = Asked { shape, rows: &rows, find, turn, may_refuse: seq < since };
        asked.compare().map_err(|why| format!("the index of {name} in a transaction: {why}"))?;
        let found = Model::found(shape, &model.rows_seen(name, seq, time_ms));
        if seq >= since {
            let own = own_keys(running, name, shape);
            let hits = found.iter().map(|(_, key)| key).filter(|key| !own.is(shape, key));
            let read: Vec<_> = hits.map(|key| (name.to_owned(), key.clone())).collect();
            running.reads.extend(read);
        }
        let may_be_refused = seq < since;
        let found = Found { shape: *shape, since, may_be_refused, at_snapshot: found };
        running.found.insert(name.to_owned(), found);
        Ok(())
    }
}

/// The keys of a table that a transaction has written to.
struct OwnKeys {
    keys: BTreeSet<Vec<u8>>,
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

impl OwnKeys {
    fn is(&self, shape: &Shape, key: &[u8]) -> bool {
        let is_in = |(from, to): &(Vec<u8>, Vec<u8>)| {
            shape.compare(from, key).is_le() && shape.compare(key, to).is_lt()
        };
        self.keys.contains(key) || self.ranges.iter().any(is_in)
    }
}

fn own_keys(running: &Running, name: &str, shape: &Shape) -> OwnKeys {
    let mut own = OwnKeys { keys: BTreeSet::new(), ranges: Vec::new() };
    let of_table = running.ops.iter().filter(|(op, _)| name_of(op.table) == name);
    for op in of_table.flat_map(|(op, _)| ops_of(op, shape)) {
        match op {
            ModelOp::DeleteRange(from, to) => own.ranges.push((from, to)),
            ModelOp::Set(key, _) | ModelOp::Insert(key, _) | ModelOp::Fold(key, _) | ModelOp::Delete(key) => {
                own.keys.insert(key);
            }
        }
    }
    own
}

impl Found {
    /// Whether there are new records that it would have found, if it was not refused.
    pub(super) fn lacks_some(&self, model: &Model, name: &str) -> bool {
        if self.may_be_refused {
            return false;
        }
        let now = Model::found(&self.shape, &model.rows_at(name, folddb_base::Seq::MAX));
        now.iter().any(|hit| !self.at_snapshot.contains(hit))
    }

    /// Whether the index that it asked was dropped.
    pub(super) fn is_gone(&self, model: &Model, name: &str) -> bool {
        model.index(name) != Index::Built || model.index_since(name) != self.since
    }
}
