//! FoldDB for Python: the module `folddb._folddb`, which the package in `python/folddb` shows.
//!
//! `docs/PYTHON.md` says how it is used. What holds everywhere:
//!
//! - **The lock of the interpreter is released** wherever the engine works (`errors::detached`), so
//!   threads continue, and a fold that is written in Python can run on a thread of the store.
//! - **What a store calls calls no store** (`calls`): a fold, and a function for progress.
//! - **Everything that holds a store is guarded** (`forks`): a forked child gets an error, and
//!   never touches locks and threads that it does not have.
//! - **Keys and values are of just the types that the table says** (`keys`, `values`); anything
//!   else is named, with its table, before anything is written.
//!
//! It knows only what is public in `folddb`, and has no unsafe code.

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
mod settings;
mod exclusive;
mod place;
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
/// the lock on when they import this.
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
    use crate::maintenance::{restore, verify};
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
