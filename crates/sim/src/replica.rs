//! The replica of a consumer of a change feed: a model of its own, which knows the store only
//! through the feed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use folddb::time::unix_ms;
use folddb::{FeedChange, FeedEvent, FeedOp};
use folddb_base::stamp::NEVER;
use folddb_base::{Seq, Stamp};

use crate::compare::{Outcome, same};
use crate::model::{Model, ModelOp, ModelRow};
use crate::tables::Shape;

/// See the top of this file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replica {
    model: Model,
    /// Keys on which the fold had failed when the feed began: their state is not known before they
    /// are set again.
    failed: BTreeSet<(String, Vec<u8>)>,
    /// It has begun, and has all rows.
    pub(crate) is_complete: bool,
    has_begun: bool,
    began_ms: u64,
    last_seq: Seq,
}

impl Replica {
    /// A number that only equal replicas share.
    pub(crate) fn print(&self) -> u64 {
        let Replica { model, failed, is_complete, has_begun, began_ms, last_seq } = self;
        let mut print = DefaultHasher::new();
        (model.print(Seq::MAX), model.last_seq(), model.now_ms()).hash(&mut print);
        (failed, is_complete, has_begun, began_ms, last_seq).hash(&mut print);
        print.finish()
    }

    /// Takes the next event. `shapes` has the meanings of rules as text.
    pub(crate) fn take(&mut self, event: FeedEvent, shapes: &BTreeMap<String, Shape>) -> Outcome {
        match event {
            FeedEvent::Begin { seq, time } => {
                *self = Replica {
                    has_begun: true,
                    began_ms: unix_ms(time),
                    last_seq: seq.into(),
                    ..Replica::default()
                };
            }
            _ if !self.has_begun => return Err(format!("the feed begins with {event:?}")),
            FeedEvent::TableCreated(table) => {
                let shape = shapes.get(&table.rules_text);
                let shape =
                    shape.ok_or_else(|| format!("nobody gave a table these rules: {}", table.rules_text))?;
                same("whether the table is there", &self.model.shape(&table.name), &None)?;
                self.model.create_table(&table.name, *shape);
            }
            FeedEvent::TableDropped(table) => {
                same("whether the table is there", &self.model.shape(&table.name).is_some(), &true)?;
                self.model.drop_table(&table.name);
                self.failed.retain(|(name, _)| *name != table.name);
            }
            FeedEvent::Row(row) => {
                same("whether rows come before changes", &self.is_complete, &false)?;
                let Some(value) = row.value else {
                    self.failed.insert((row.table.name.clone(), row.key));
                    return Ok(());
                };
                let stamp =
                    Stamp { write_ms: self.began_ms, deadline_ms: row.deadline.map_or(NEVER, unix_ms) };
                self.model.apply_at(&row.table.name, ModelOp::Set(row.key, value), stamp);
            }
            FeedEvent::RowsEnd => self.is_complete = true,
            FeedEvent::Batch(batch) => {
                if u64::from(batch.first_seq) <= self.last_seq || batch.ops.is_empty() {
                    return Err(format!("after seq {} comes the batch {batch:?}", self.last_seq));
                }
                self.last_seq = batch.last_seq.into();
                for op in batch.ops {
                    let deadline_ms = op.deadline.map_or(NEVER, unix_ms);
                    let stamp = Stamp { write_ms: batch.written.map_or(0, unix_ms), deadline_ms };
                    let table = op.table.name.clone();
                    same("whether the table is there", &self.model.shape(&table).is_some(), &true)?;
                    self.model.apply_at(&table, model_op(op)?, stamp);
                }
            }
            unknown => return Err(format!("the replica does not know {unknown:?}")),
        }
        Ok(())
    }

    /// It has the contents of the store within its scope, at the time of `model`.
    pub(crate) fn compare(&self, model: &Model, told: &Told) -> Outcome {
        let mut mine = self.model.clone();
        mine.set_time(model.now_ms());
        let mut tables = model.tables();
        tables.retain(|name| told.table.as_ref().is_none_or(|only| only == name));
        same("the tables of the replica", &mine.tables(), &tables)?;
        if let Some(key) = untold(&mine, told) {
            return Err(format!("the replica has key {key:?}, which does not begin with {:?}", told.prefix));
        }
        for name in tables {
            let known = |rows: Vec<ModelRow>| -> Vec<ModelRow> {
                rows.into_iter()
                    .filter(|(key, _)| key.starts_with(&told.prefix))
                    .filter(|(key, _)| !self.failed.contains(&(name.clone(), key.clone())))
                    .collect()
            };
            let (found, expected) =
                (known(mine.rows_at(&name, Seq::MAX)), known(model.rows_at(&name, Seq::MAX)));
            if found != expected {
                let differs = found.iter().zip(&expected).find(|(a, b)| a != b);
                return Err(format!(
                    "the replica of {name} ({:?}) has {} rows and not {}; they differ at {differs:?}",
                    model.shape(&name),
                    found.len(),
                    expected.len()
                ));
            }
        }
        Ok(())
    }
}

/// The scope of a feed.
pub(crate) struct Told {
    /// The only table, where it is one.
    pub(crate) table: Option<String>,
    /// The beginning of the keys.
    pub(crate) prefix: Vec<u8>,
}

/// A key of a replica outside its scope.
fn untold(mine: &Model, told: &Told) -> Option<Vec<u8>> {
    let mut keys =
        mine.tables().into_iter().flat_map(|name| mine.rows_at(&name, Seq::MAX)).map(|(key, _)| key);
    keys.find(|key| !key.starts_with(&told.prefix))
}

fn model_op(op: FeedOp) -> Result<ModelOp, String> {
    Ok(match op.change {
        FeedChange::Put(value) => ModelOp::Set(op.key, value),
        FeedChange::PutIfAbsent(value) => ModelOp::Insert(op.key, value),
        FeedChange::Fold(value) => ModelOp::Fold(op.key, value),
        FeedChange::Delete => ModelOp::Delete(op.key),
        FeedChange::DeleteRange(to) => ModelOp::DeleteRange(op.key, to),
        change => return Err(format!("no value is so long: {change:?}")),
    })
}
