//! What a transaction's own writes change in an index: the entries that they would add, and the
//! keys whose entries at the snapshot no longer count.
//!
//! ```text
//!   a key it has written to      has the terms of what its ops make of the snapshot's value; its entries there are passed over
//!   whose fold fails then        keeps those, and has the terms of each op: at each of them a find returns the error
//!   a range that it has deleted  its entries are passed over
//! ```
//!
//! It includes writes before the iteration begins. Its reads of the snapshot are noted for the
//! commit. Called by `index/hits.rs`, for a find in a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::{OpBuf, OpKind, Result};
use folddb_rules::terms::put_entry;
use folddb_rules::{Extractor, Terms};

use crate::uncommitted::{DeletedRange, Inside, applied, is_in_any};
use folddb_engine::read::get;
use folddb_engine::read::lookup::{Lookup, Want};
use folddb_engine::read::scan::ScanPlan;
use folddb_engine::read::terms::{Taken, take_terms};
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::At;
use folddb_engine::values::head;

/// See the top of this file.
pub(crate) struct OwnFound {
    ops: BTreeMap<Vec<u8>, Own>,
    deleted: Vec<DeletedRange>,
    /// In the order of the index.
    entries: Vec<Vec<u8>>,
}

/// What was written to a key.
struct Own {
    ops: Vec<OpBuf>,
    /// Their result cannot be read.
    is_failed: bool,
}

impl OwnFound {
    /// The own writes to a table with an index; none if there are none.
    pub(crate) fn of(
        engine: &Engine,
        (table, extractor): (&Arc<TableCore>, &Extractor),
        inside: &Inside,
        at: At,
    ) -> Option<OwnFound> {
        let deleted = inside.deleted_of(table);
        let written = inside.own_of(table, &ScanPlan::everything(Some(at)));
        if written.is_empty() && deleted.is_empty() {
            return None;
        }
        let mut own = OwnFound { ops: BTreeMap::new(), deleted, entries: Vec::new() };
        for (key, ops) in written {
            if reads_past(&ops) {
                inside.reads.note_key(table, &key);
            }
            let mut terms = Terms::default();
            let value = value_of(engine, table, &key, &ops, at);
            let is_failed = value.is_err();
            let brought: Vec<&[u8]> = match &value {
                Ok(value) => value.as_deref().into_iter().collect(),
                Err(_) => {
                    ops.iter().filter(|op| op.kind != OpKind::Delete).map(|op| &op.payload[..]).collect()
                }
            };
            for value in brought {
                take_terms(extractor, table, &key, Taken::Value(value), &mut terms);
            }
            own.entries.extend(terms.iter().map(|term| {
                let mut entry = Vec::new();
                put_entry(&mut entry, term, &key);
                entry
            }));
            own.ops.insert(key, Own { ops, is_failed });
        }
        own.entries.sort_unstable();
        Some(own)
    }

    /// The entries, in the order of the index.
    pub(crate) fn entries(&self) -> &[Vec<u8>] {
        &self.entries
    }

    /// Whether the entries that a key has at the snapshot no longer count.
    pub(crate) fn hides(&self, table: &TableCore, key: &[u8]) -> bool {
        match self.ops.get(key) {
            Some(own) => !own.is_failed,
            None => is_in_any(table, &self.deleted, key),
        }
    }

    /// The state of a key that was written to; none if it was not, or is absent now.
    pub(crate) fn look(
        &self,
        engine: &Engine,
        (table, extractor): (&TableCore, &Extractor),
        key: &[u8],
        at: At,
        want: Want,
    ) -> Option<Result<Option<Lookup>>> {
        let ops = &self.ops.get(key)?.ops;
        let looked = value_of(engine, table, key, ops, at).map(|value| {
            let value = value?;
            let mut lookup = Lookup::default();
            take_terms(extractor, table, key, Taken::Value(&value), &mut lookup.terms);
            match want {
                Want::Key => {}
                Want::Head => lookup.head = Some(head::of_value(table, key, &value)),
                Want::Value => lookup.value = value,
            }
            Some(lookup)
        });
        Some(looked)
    }
}

/// Whether the result of ops depends on the previous state.
fn reads_past(ops: &[OpBuf]) -> bool {
    !ops.first().is_some_and(|op| matches!(op.kind, OpKind::Set | OpKind::Delete))
}

/// The result of a key's ops on its state at the snapshot.
fn value_of(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    ops: &[OpBuf],
    at: At,
) -> Result<Option<Vec<u8>>> {
    let past = match reads_past(ops) {
        true => get::get(engine, table, key, Some(at), |value| Ok(value.map(<[u8]>::to_vec))),
        false => Ok(None),
    };
    applied(engine, table, key, past, ops)
}
