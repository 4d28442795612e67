//! What a player does with a bulk load: it begins one, hands it rows, and finishes or abandons it,
//! while everything else continues. The table exists with all rows or not at all.

use folddb::time::unix_ms;
use folddb::{ErrorKind, Expire, WriteOp};
use folddb_base::Seq;

use crate::compare::{Outcome, same};
use crate::known::Loaded;
use crate::model::{Model, Present};
use crate::play::parts::Loading;
use crate::play::player::{Player, name_of};
use crate::play::write::{ops_of, write_op};
use crate::program::{Load, TableOp, What};
use crate::tables::{Order, Shape};

impl Player {
    pub(super) fn load(&mut self, step: &Load) -> Outcome {
        match step {
            Load::Begin(slot, shape) => self.begin_load(*slot, shape),
            Load::Rows(ops) => {
                let Some(mut loading) = self.loading.take() else { return Ok(()) };
                if self.push(&mut loading, ops)? {
                    self.loading = Some(loading);
                }
                Ok(())
            }
            Load::Finish => match self.loading.take() {
                Some(loading) => self.finish_load(loading),
                None => Ok(()),
            },
            Load::GiveUp => {
                self.loading = None;
                Ok(())
            }
        }
    }

    fn begin_load(&mut self, slot: u8, shape: &Shape) -> Outcome {
        if self.loading.is_some() {
            return Ok(());
        }
        let name = name_of(slot);
        self.consumer.know(shape);
        let (seq, begun_ms) = (u64::from(self.store()?.last_seq()), unix_ms(self.store()?.now()));
        match self.store()?.bulk_load_bytes(&name, shape.rules()) {
            Ok(_) if !is_loadable(shape) => Err("a table is loaded that cannot be".to_owned()),
            Ok(_) if self.known.model.shape(&name).is_some() => {
                Err("a table is loaded that is there".to_owned())
            }
            Ok(load) => {
                let mut so_far = Model::new();
                so_far.create_table(&name, *shape);
                self.loading = Some(Loading { load, slot, shape: *shape, seq, begun_ms, so_far, last: None });
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                let is_told = error.message().contains("feed") && self.feed_tells_of(slot);
                same("whether a load is refused", &(is_loadable(shape) && !is_told), &false)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                same("whether the table is there", &self.known.model.shape(&name).is_some(), &true)
            }
            Err(error) => self.refused("begin a load", error),
        }
    }

    /// Hands rows over, in the order of the table, without those before the last one. False where
    /// the load has ended.
    pub(super) fn push(&mut self, loading: &mut Loading, ops: &[TableOp]) -> Result<bool, String> {
        let shape = loading.shape;
        let mut ops: Vec<TableOp> = ops
            .iter()
            .filter(|op| !matches!(op.what, What::DeleteRange | What::DeletePrefix))
            .copied()
            .collect();
        ops.sort_by(|a, b| shape.compare(&shape.key(a.key), &shape.key(b.key)));
        let name = name_of(loading.slot);
        for op in ops {
            let op = TableOp { table: loading.slot, ..op };
            let (key, value) = (shape.key(op.key), shape.value(op.value, op.len_bytes));
            if loading.last.as_ref().is_some_and(|last| shape.compare(last, &key).is_gt()) {
                continue;
            }
            loading.last = Some(key.clone());
            for model_op in ops_of(&op, &shape) {
                loading.so_far.apply(&name, model_op);
            }
            let fails = loading.so_far.rows_at(&name, Seq::MAX).contains(&(key.clone(), Present::Failed));
            let value = if write_op(op.what) == WriteOp::Delete { Vec::new() } else { value };
            match loading.load.push(write_op(op.what), &key, &value) {
                Ok(()) if fails => return Err("a row is taken on which the fold fails".to_owned()),
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::FoldFailed => {
                    return same("whether the fold fails", &fails, &true).map(|()| false);
                }
                Err(error) => return self.refused("load a row", error).map(|()| false),
            }
        }
        Ok(true)
    }

    fn finish_load(&mut self, loading: Loading) -> Outcome {
        let Loading { load, slot, shape, seq, begun_ms, so_far, .. } = loading;
        let name = name_of(slot);
        let rows = so_far.rows_at(&name, Seq::MAX).into_iter().filter_map(|(key, present)| match present {
            Present::Value(value) => Some((key, value)),
            Present::Failed => None,
        });
        let loaded = Loaded { seq, begun_ms, rows: rows.collect() };
        match (load.finish(), self.known.model.shape(&name)) {
            (Ok(_), None) if self.has_lost_a_sync() => {
                Err("a load is acknowledged after a sync of the log or the manifest has failed".to_owned())
            }
            (Ok(_), None) => {
                self.known.loaded(&name, shape, loaded);
                self.known.survives_power();
                Ok(())
            }
            (Ok(_), Some(_)) => Err("a table was loaded that is there".to_owned()),
            (Err(error), Some(_)) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            (Err(error), _) if error.kind() == ErrorKind::InvalidInput => {
                let is_told = error.message().contains("feed") && self.feed_tells_of(slot);
                same("whether a feed tells of the table", &is_told, &true)
            }
            (Err(error), None) => {
                if error.kind() != ErrorKind::NoSpace {
                    self.known.doubt_loaded(&name, shape, loaded);
                }
                self.refused("finish a load", error)
            }
            (Err(error), Some(_)) => self.refused("finish a load", error),
        }
    }
}

/// Whether a table by these rules takes a load.
fn is_loadable(shape: &Shape) -> bool {
    let rules = shape.rules();
    shape.order != Order::Hashed
        && rules.separate.is_none()
        && shape.expire == Expire::Never
        && !shape.archives_log
}
