//! FoldDB for Python: the module `folddb._folddb`, which the package in `python/folddb` re-exports.
//!
//! `docs/PYTHON.md` says how to use it. What holds everywhere:
//!
//! - **The lock of the interpreter is released** while the engine works (`errors::detached`), so
//!   other threads continue, and a fold that is written in Python can run on a thread of the store.
//! - **A function that a store calls must not call a store** (`calls`): this concerns folds and
//!   functions for progress.
//! - **Everything that holds a store is guarded** (`forks`): a forked child gets an error, and
//!   never touches locks and threads that it does not have.
//! - **Keys and values have exactly the types that the table says** (`keys`, `values`). Anything
//!   else is an error that names it and the table, before anything is written.
//!
//! It uses only the public API of `folddb`, and has no unsafe code.

mod calls;
mod errors;
mod forks;
mod open_stores;
mod convert;
mod keys;
mod strict;
mod values;
mod records;
mod rules;
mod custom;
mod shared;
mod events;
mod settings;
mod exclusive;
mod place;
mod operands;
mod typed;
mod cells;
mod columns;
mod encode;
mod many;
mod frames;
mod scan;
mod arrow;
mod finds;
mod streams;
mod maintenance;
mod table;
mod writers;
mod snapshot;
mod feeds;
mod store;

use pyo3::prelude::*;

/// What the package `folddb` is made of. Free-threaded interpreters are not supported: they turn
/// their lock on when they import this module.
#[pymodule(gil_used = true)]
mod _folddb {
    #[pymodule_export]
    use crate::arrow::Columns;
    #[pymodule_export]
    use crate::custom::CustomFold;
    #[pymodule_export]
    use crate::feeds::FeedOf;
    #[pymodule_export]
    use crate::finds::Find;
    #[pymodule_export]
    use crate::forks::_forked;
    #[pymodule_export]
    use crate::maintenance::{backups, restore, verify};
    #[pymodule_export]
    use crate::open_stores::_close_all;
    #[pymodule_export]
    use crate::scan::{Rows, Scan};
    #[pymodule_export]
    use crate::shared::SharedOf;
    #[pymodule_export]
    use crate::snapshot::SnapshotOf;
    #[pymodule_export]
    use crate::store::{_create, _open, _open_read_only, _open_secondary, StoreOf};
    #[pymodule_export]
    use crate::streams::{RawReader, RawWriter};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::writers::{BatchOf, TransactionOf};
}
