//! The writes of a player: single ops, streams, batches; and what it notes when they are
//! acknowledged, refused, or fail.

use folddb::time::unix_ms;
use folddb::{BytesTable, Durability, ErrorKind, Expire, WriteOp};
use folddb_base::{Seq, Stamp};

use crate::compare::{Outcome, prefix_of, prefix_ops, range, same};
use crate::faulty_files::Call;
use crate::known::Ops;
use crate::model::{ModelOp, Present};
use crate::play::player::Player;
use crate::play::player::name_of;
use crate::program::{TableOp, What};
use crate::tables::{KEYS, Kind, Order, Shape};

impl Player {
    pub(super) fn write(&mut self, op: &TableOp) -> Outcome {
        let Some((table, shape)) = self.table(op.table)? else { return Ok(()) };
        let key = shape.key(op.key);
        let value = shape.value(op.value, op.len_bytes);
        if let Some(streamed) = streamed(op, &table, &shape) {
            return self.stream(op, &table, &shape, (streamed, &value));
        }
        let (lifetime, _) = shape.lifetime(op.value, unix_ms(self.store()?.now()), self.epoch_ms);
        let written = match op.what {
            What::DeleteRange if shape.order == Order::Hashed => return self.rangeless(&table, &shape, op),
            What::DeleteRange => {
                let Some((from, to)) = range(&shape, op) else { return self.upside_down(&table, &shape, op) };
                table.delete_range(&from, &to)
            }
            What::DeletePrefix => match prefix_ops(&shape, op) {
                None => return self.prefixless(&table, &shape, op),
                Some(_) => table.delete_prefix(&prefix_of(&shape, op)),
            },
            What::Delete => table.write(WriteOp::Delete, &key, b"ignored"),
            What::Put | What::PutIfAbsent | What::Fold => {
                table.with_lifetime(lifetime).write(write_op(op.what), &key, &value)
            }
        };
        self.committed(self.ops_of(op, &shape)?, Durability::Process, written)
    }

    /// Writes an op as a stream, with background work halfway; or drops the writer there.
    fn stream(
        &mut self,
        op: &TableOp,
        table: &BytesTable,
        shape: &Shape,
        (how, value): (WriteOp, &[u8]),
    ) -> Outcome {
        let (lifetime, _) = shape.lifetime(op.value, unix_ms(self.store()?.now()), self.epoch_ms);
        let mut writer = match table.with_lifetime(lifetime).writer(how, &shape.key(op.key)) {
            Ok(writer) => writer,
            Err(error) => return self.refused("begin a stream", error),
        };
        let (mut first, mut second) = value.split_at(value.len() / 2);
        let begun = writer.write_from(&mut first);
        self.steps(3)?;
        if op.value.is_multiple_of(16) {
            return begun.or_else(|error| self.refused("write to a stream", error));
        }
        let written = begun.and_then(|()| writer.write_from(&mut second)).and_then(|()| writer.finish());
        self.committed(self.ops_of(op, shape)?, Durability::Process, written)
    }

    fn upside_down(&self, table: &BytesTable, shape: &Shape, op: &TableOp) -> Outcome {
        let refused =
            table.delete_range(&shape.key(op.key), &shape.key(op.key)).map_err(|error| error.kind());
        same("an empty range", &refused, &Err(ErrorKind::InvalidInput))
    }

    fn rangeless(&self, table: &BytesTable, shape: &Shape, op: &TableOp) -> Outcome {
        let refused =
            table.delete_range(&shape.key(op.key), &shape.key(op.value % KEYS)).map_err(|error| error.kind());
        same("a range of a hashed table", &refused, &Err(ErrorKind::InvalidInput))
    }

    fn prefixless(&self, table: &BytesTable, shape: &Shape, op: &TableOp) -> Outcome {
        let refused = table.delete_prefix(&prefix_of(shape, op)).map_err(|error| error.kind());
        same("a prefix of a table without such ranges", &refused, &Err(ErrorKind::InvalidInput))
    }

    pub(super) fn commit(&mut self, ops: &[TableOp], durability: Durability) -> Outcome {
        let mut batch = self.store()?.batch();
        let mut taken = Ops::new();
        for op in ops {
            let Some((table, shape)) = self.table(op.table)? else { continue };
            let (key, value) = (shape.key(op.key), shape.value(op.value, op.len_bytes));
            let (lifetime, _) = shape.lifetime(op.value, unix_ms(self.store()?.now()), self.epoch_ms);
            match op.what {
                What::Put | What::PutIfAbsent | What::Fold => {
                    batch.write(&table.with_lifetime(lifetime), write_op(op.what), &key, &value)
                }
                What::Delete => batch.write(&table, WriteOp::Delete, &key, &[]),
                What::DeleteRange if shape.order == Order::Hashed => continue,
                What::DeleteRange => match range(&shape, op) {
                    Some((from, to)) => batch.delete_range(&table, &from, &to),
                    None => continue,
                },
                What::DeletePrefix if prefix_ops(&shape, op).is_none() => continue,
                What::DeletePrefix => batch.delete_prefix(&table, &prefix_of(&shape, op)),
            };
            taken.extend(self.ops_of(op, &shape)?);
        }
        same("the length of a batch", &batch.len(), &taken.len())?;
        let committed = batch.commit(durability);
        self.committed(self.in_order(taken), durability, committed)
    }

    /// The ops of a batch in the order of their seqs: ops on hashed tables are resolved last, and
    /// have the last ones.
    pub(super) fn in_order(&self, mut ops: Ops) -> Ops {
        let is_hashed =
            |name: &str| self.known.model.shape(name).is_some_and(|shape| shape.order == Order::Hashed);
        ops.sort_by_key(|(table, ..)| is_hashed(table));
        ops
    }

    /// Notes the outcome of a batch.
    pub(super) fn committed(
        &mut self,
        ops: Ops,
        durability: Durability,
        outcome: folddb::Result<folddb::Seq>,
    ) -> Outcome {
        match outcome {
            Ok(_) if !ops.is_empty() && self.has_lost_a_sync() => {
                Err("a commit is acknowledged after a sync of the log or the manifest has failed".to_owned())
            }
            // An empty batch never matters.
            Ok(_) if ops.is_empty() => Ok(()),
            Ok(seq) => {
                self.known.written(ops, durability);
                same("the seq of a batch", &seq.into(), &self.known.model.last_seq())
            }
            // Hashed tables fold when they are written to.
            Err(error) if error.kind() == ErrorKind::FoldFailed => self.fails_to_fold(&ops),
            // It is visible and has reached the kernel: only its sync has failed.
            Err(error) if error.kind() == ErrorKind::NotDurable => {
                same("the durability of a batch that may not be durable", &durability, &Durability::Sync)?;
                self.known.written(ops, Durability::Process);
                self.refused("sync a commit", error)
            }
            // A refused batch is never visible, before or after a crash: nothing is noted.
            Err(error) => self.refused("commit", error),
        }
    }

    /// Nothing is written of a batch whose fold fails on a key of a hashed table; it must fail in
    /// the model, too.
    fn fails_to_fold(&self, ops: &Ops) -> Outcome {
        let mut model = self.known.model.clone();
        let fails = ops.iter().any(|(table, op, stamp)| {
            model.apply_at(table, op.clone(), *stamp);
            let is_hashed = model.shape(table).is_some_and(|shape| shape.order == Order::Hashed);
            // Also where the result has expired already: it is folded when it is written.
            let rows = model.rows_seen(table, Seq::MAX, 0);
            is_hashed && rows.iter().any(|(_, now)| *now == Present::Failed)
        });
        same("whether the fold fails", &fails, &true)
    }

    /// Whether a sync with an unknown result has failed in this process; a failure for lack of
    /// space is no exception. A segment in creation was removed with it.
    pub(super) fn has_lost_a_sync(&self) -> bool {
        let Some(disk) = &self.disk else { return false };
        let files = disk.names(&self.dir);
        disk.failed().iter().any(|(call, path)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_there = files.iter().any(|(file, _)| *file == name);
            (*call == Call::AppendSync && is_there)
                || (*call == Call::WriteSync && name.starts_with("MANIFEST"))
        })
    }

    /// An op in the form of the model; nothing where it does nothing.
    pub(super) fn ops_of(&self, op: &TableOp, shape: &Shape) -> Result<Ops, String> {
        let write_ms = unix_ms(self.store()?.now());
        let (_, deadline_ms) = shape.lifetime(op.value, write_ms, self.epoch_ms);
        let stamp = Stamp { write_ms, deadline_ms };
        Ok(ops_of(op, shape).into_iter().map(|model_op| (name_of(op.table), model_op, stamp)).collect())
    }
}

/// How an op is written as a stream: one in four, where the table accepts streams.
fn streamed(op: &TableOp, table: &BytesTable, shape: &Shape) -> Option<WriteOp> {
    let how = match op.what {
        What::Put => WriteOp::Put,
        What::PutIfAbsent => WriteOp::PutIfAbsent,
        // Operands with deadlines are not joined while they are separated.
        What::Fold if shape.kind == Kind::Append && shape.expire == Expire::Never => WriteOp::Fold,
        _ => return None,
    };
    // The remainder by 4 decides its lifetime.
    ((op.value / 4).is_multiple_of(4) && table.takes_streams()).then_some(how)
}

pub(super) fn write_op(what: What) -> WriteOp {
    match what {
        What::Put => WriteOp::Put,
        What::PutIfAbsent => WriteOp::PutIfAbsent,
        What::Fold => WriteOp::Fold,
        What::Delete | What::DeleteRange | What::DeletePrefix => WriteOp::Delete,
    }
}

/// An op in the form of the model; nothing where it does nothing.
pub(super) fn ops_of(op: &TableOp, shape: &Shape) -> Vec<ModelOp> {
    let (key, value) = (shape.key(op.key), shape.value(op.value, op.len_bytes));
    vec![match op.what {
        What::Put => ModelOp::Set(key, value),
        What::PutIfAbsent => ModelOp::Insert(key, value),
        What::Fold => ModelOp::Fold(key, value),
        What::Delete => ModelOp::Delete(key),
        What::DeleteRange => match range(shape, op) {
            Some((from, to)) => ModelOp::DeleteRange(from, to),
            None => return Vec::new(),
        },
        What::DeletePrefix => return prefix_ops(shape, op).unwrap_or_default(),
    }]
}
