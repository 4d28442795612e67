//! The uncommitted writes of a transaction, and their effect on its reads.
//!
//! Ops are kept as given, key by key. A read of a key applies its ops to the state at the snapshot;
//! a scan takes those of its range when it begins. Their write times and deadlines are known only
//! at the commit: nothing here expires.
//!
//! Called by `transaction`, and by the scans that it begins (`scan/rows.rs`).

pub(crate) mod entries;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use folddb_base::{ErrorKind, OpBuf, OpKind, Result, TableId};
use folddb_host::sync::Mutex;

use folddb_engine::read::get;
use folddb_engine::read::get::damaged_record;
use folddb_engine::read::scan::ScanPlan;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::write::read_set::{Reads, is_within};

/// The ops of one key, in order.
pub(crate) type OwnOps = (Vec<u8>, Vec<OpBuf>);

/// See the top of this file.
#[derive(Default)]
pub(crate) struct OwnWrites {
    ops: BTreeMap<(TableId, Vec<u8>), Vec<OpBuf>>,
    /// The deleted ranges: from the first key up to, but not including, the second. Ops of their
    /// keys begin with a delete.
    ranges: BTreeMap<TableId, Vec<DeletedRange>>,
}

/// See [`OwnWrites`].
pub(crate) type DeletedRange = (Vec<u8>, Vec<u8>);

/// The context of reads in a transaction: reads are noted for its commit, and include its own
/// writes, unless they are at its snapshot alone.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) reads: Arc<Reads>,
    pub(crate) own: Option<Arc<Mutex<OwnWrites>>>,
}

impl Inside {
    /// Whether something was written to a table.
    pub(crate) fn has_written(&self, table: &TableCore) -> bool {
        self.own.as_ref().is_some_and(|own| own.lock().has_any_of(table))
    }

    /// The deleted ranges of a table.
    pub(crate) fn deleted_of(&self, table: &TableCore) -> Vec<DeletedRange> {
        self.own.as_ref().map(|own| own.lock().ranges_of(table).to_vec()).unwrap_or_default()
    }

    /// The own writes to the keys of a scan, in its order.
    pub(crate) fn own_of(&self, table: &TableCore, plan: &ScanPlan) -> Vec<OwnOps> {
        self.own.as_ref().map(|own| own.lock().within(table, plan)).unwrap_or_default()
    }
}

impl OwnWrites {
    /// Adds an op.
    pub(crate) fn note(&mut self, table: &TableCore, key: &[u8], op: OpBuf) {
        let is_hidden = self.is_deleted(table, key);
        let begin = || if is_hidden { vec![deleted()] } else { Vec::new() };
        let own = self.ops.entry((table.id, key.to_vec())).or_insert_with(begin);
        if matches!(op.kind, OpKind::Set | OpKind::Delete) {
            own.clear(); // nothing earlier matters
        }
        own.push(op);
    }

    /// Adds a delete of all keys from `from` up to, but not including, `to`.
    pub(crate) fn note_range(&mut self, table: &TableCore, from: &[u8], to: &[u8]) {
        let order = &table.rules.order;
        let (low, high) = (Bound::Included(from.to_vec()), Bound::Excluded(to.to_vec()));
        let of_table = self.ops.iter_mut().filter(|((of, _), _)| *of == table.id);
        for ((_, key), ops) in of_table {
            if is_within(order, (&low, &high), key) {
                *ops = vec![deleted()];
            }
        }
        self.ranges.entry(table.id).or_default().push((from.to_vec(), to.to_vec()));
    }

    /// The deleted ranges of a table.
    fn ranges_of(&self, table: &TableCore) -> &[DeletedRange] {
        self.ranges.get(&table.id).map_or(&[], Vec::as_slice)
    }

    fn is_deleted(&self, table: &TableCore, key: &[u8]) -> bool {
        is_in_any(table, self.ranges_of(table), key)
    }

    /// The ops of a key.
    pub(crate) fn of(&self, table: &TableCore, key: &[u8]) -> Vec<OpBuf> {
        match self.ops.get(&(table.id, key.to_vec())) {
            Some(ops) => ops.clone(),
            None if self.is_deleted(table, key) => vec![deleted()],
            None => Vec::new(),
        }
    }

    /// Whether there are ops of a table.
    pub(crate) fn has_any_of(&self, table: &TableCore) -> bool {
        self.of_table(table).next().is_some() || !self.ranges_of(table).is_empty()
    }

    fn of_table(&self, table: &TableCore) -> impl Iterator<Item = (&Vec<u8>, &Vec<OpBuf>)> {
        let id = table.id;
        let from = self.ops.range((id, Vec::new())..);
        from.take_while(move |((of, _), _)| *of == id).map(|((_, key), ops)| (key, ops))
    }

    fn within(&self, table: &TableCore, plan: &ScanPlan) -> Vec<OwnOps> {
        let order = &table.rules.order;
        let is_inside = |key: &[u8]| table.hashed.is_some() || is_within(order, (&plan.low, &plan.high), key);
        let inside = self.of_table(table).filter(|(key, _)| is_inside(key));
        let mut own: Vec<OwnOps> = inside.map(|(key, ops)| (key.clone(), ops.clone())).collect();
        if table.hashed.is_none() {
            own.sort_by(|a, b| plan.compare(order, &a.0, &b.0));
        }
        own
    }
}

/// The op of a range delete for each of its keys.
pub(crate) fn deleted() -> OpBuf {
    OpBuf { kind: OpKind::Delete, payload: Vec::new() }
}

/// Whether a key is in one of these ranges.
pub(crate) fn is_in_any(table: &TableCore, ranges: &[DeletedRange], key: &[u8]) -> bool {
    let order = &table.rules.order;
    ranges.iter().any(|(from, to)| order.compare(from, key).is_le() && order.compare(key, to).is_lt())
}

/// The result of a transaction's ops on the state at its snapshot.
///
/// # Errors
/// The fold fails; the snapshot cannot be read, or its fold fails and the ops do not replace it.
pub(crate) fn applied(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    past: Result<Option<Vec<u8>>>,
    own: &[OpBuf],
) -> Result<Option<Vec<u8>>> {
    let is_own = own.first().is_some_and(|op| matches!(op.kind, OpKind::Set | OpKind::Delete));
    let mut state = match past {
        Err(error) if error.kind() == ErrorKind::FoldFailed && is_own => None,
        past => past?,
    };
    for op in own {
        let op = op.op().map_err(|cause| damaged_record(table, cause))?;
        let applied = table.rules.fold.apply_unstamped(key, &mut state, op);
        applied.map_err(|cause| get::fold_failed(engine, table, key, &cause))?;
    }
    Ok(state)
}
