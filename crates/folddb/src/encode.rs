//! Records as a commit hands them to the journal, and what a write may do.
//!
//! Lengths are checked and ops normalised here, before any lock is taken.

use std::sync::Arc;

use folddb_base::limits::{KEY_BYTES_MAX, RANGE_DELETES_MAX, VALUE_BYTES_MAX};
use folddb_base::{Error, OpKind, Result};
use folddb_layout::frame::{self, LogOp};

use crate::catalog::TableCore;

/// Buffers that outlive a write keep at most so much.
pub(crate) const RECYCLED_BYTES_MAX: usize = 1 << 20;

/// What a write does to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOp {
    /// Makes the value this one.
    Set,
    /// Gives an absent key this value.
    Insert,
    /// Folds this operand on.
    Fold,
    /// Makes the key absent.
    Delete,
}

impl WriteOp {
    pub(crate) fn kind(self) -> OpKind {
        match self {
            WriteOp::Set => OpKind::Set,
            WriteOp::Insert => OpKind::Insert,
            WriteOp::Fold => OpKind::Fold,
            WriteOp::Delete => OpKind::Delete,
        }
    }
}

/// The encoded records of a commit, as the journal will hold them.
#[derive(Default)]
pub(crate) struct Encoded {
    pub(crate) payload: Vec<u8>,
    pub(crate) count: u32,
    pub(crate) tables: Vec<Arc<TableCore>>,
    /// True when all ops are deletes: those still go through when space is short.
    pub(crate) frees_only: bool,
    pub(crate) has_range_delete: bool,
}

impl Encoded {
    pub(crate) fn clear(&mut self) {
        self.payload.clear();
        self.tables.clear();
        self.count = 0;
        self.frees_only = true;
        self.has_range_delete = false;
    }

    /// Empties it for the next write, keeping its memory but for that of an unusually large one.
    pub(crate) fn recycle(&mut self) {
        self.clear();
        self.payload.shrink_to(RECYCLED_BYTES_MAX);
    }

    /// Appends one op, normalised by the table's rules.
    #[inline]
    pub(crate) fn push(
        &mut self,
        table: &Arc<TableCore>,
        kind: OpKind,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        check_lengths(table, key, value)?;
        if table.rules.missing.is_some() {
            table.rules.check_writable()?;
        }
        let kind = table.rules.fold.normalise(key, kind, value);
        let value = if kind == OpKind::Delete { &[][..] } else { value };
        frame::put_record(&mut self.payload, table.id, kind, key, value);
        self.count_in(table, kind == OpKind::Delete);
        Ok(())
    }

    /// Appends a range delete: all keys from `from` on and below `to`.
    pub(crate) fn push_range_delete(&mut self, table: &Arc<TableCore>, from: &[u8], to: &[u8]) -> Result<()> {
        check_lengths(table, from, &[])?;
        check_lengths(table, to, &[])?;
        if table.rules.order.compare(from, to).is_ge() {
            return Err(Error::invalid(format!(
                "a range delete in table `{}` must begin before it ends; swap its bounds",
                table.name
            )));
        }
        check_range_count(table)?;
        frame::put_record(&mut self.payload, table.id, LogOp::RangeDelete, from, to);
        self.count_in(table, true);
        self.has_range_delete = true;
        Ok(())
    }

    #[inline]
    fn count_in(&mut self, table: &Arc<TableCore>, frees: bool) {
        self.count += 1;
        self.frees_only &= frees;
        if !self.tables.iter().any(|known| Arc::ptr_eq(known, table)) {
            self.tables.push(Arc::clone(table));
        }
    }
}

/// Every read looks at all range deletes, so they are few.
fn check_range_count(table: &TableCore) -> Result<()> {
    if table.view().range_deletes.len() < RANGE_DELETES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "table `{}` has {RANGE_DELETES_MAX} range deletes in force; optimize it, which applies them, or delete single keys",
        table.name
    )))
}

#[inline]
fn check_lengths(table: &TableCore, key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        return Err(too_long(table, "key", key.len(), KEY_BYTES_MAX));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(too_long(table, "value", value.len(), VALUE_BYTES_MAX));
    }
    Ok(())
}

#[cold]
fn too_long(table: &TableCore, what: &str, len: usize, limit: usize) -> Error {
    Error::invalid(format!(
        "a {what} of {len} bytes is too long for table `{}`: at most {limit} bytes",
        table.name
    ))
}
