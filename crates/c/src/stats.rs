//! Figures of a store and of a table, by name.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use folddb::{Error, Result, StoreStats, TableStats};

use crate::errors::guard;
use crate::handles;
use crate::memory::{ErrPtr, Text, copy_out_texts};
use crate::store::StoreObject;
use crate::table::TableObject;

/// The figures of a store, by group and name.
fn figures(stats: &StoreStats) -> Vec<(String, f64)> {
    let of_groups = stats.metrics().into_iter();
    let of_groups = of_groups.map(|metric| (format!("{}.{}", metric.group, metric.name), metric.value));
    of_groups.chain([("last_seq".to_owned(), u64::from(stats.last_seq) as f64)]).collect()
}

fn table_figures(stats: &TableStats) -> Vec<(String, f64)> {
    let figures = [
        ("records", stats.records as f64),
        ("keys_estimate", stats.keys_estimate as f64),
        ("disk_bytes", stats.disk_bytes as f64),
        ("memtable_bytes", stats.memtable_bytes as f64),
        ("runs", stats.runs.len() as f64),
        ("range_deletes", stats.range_deletes as f64),
        ("index_bytes", stats.index_bytes.unwrap_or(0) as f64),
    ];
    figures.map(|(name, figure)| (name.to_owned(), figure)).into()
}

fn named(figures: &[(String, f64)], name: &str) -> Result<f64> {
    let found = figures.iter().find(|(known, _)| *known == name);
    found.map(|(_, figure)| *figure).ok_or_else(|| {
        let names: Vec<&str> = figures.iter().map(|(known, _)| known.as_str()).collect();
        Error::invalid(format!("there is no figure `{name}`; the figures are {}", names.join(", ")))
    })
}

/// A figure of a store, by its name in Rust: `disk.bytes`, `writes.commits`, `last_seq`;
/// folddb_stat_names lists them. Counters begin at the opening. 0 where it fails, too.
///
/// Errors: InvalidInput for an unknown name, with the names that exist.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_stat(store: *mut StoreObject, name: Text, errptr: ErrPtr<'_>) -> f64 {
    guard(errptr, 0.0, || named(&figures(&handles::get(store)?.0.stats()), name.get("the name")?))
}

/// The names of the figures of a store. Otherwise as folddb_tables.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_stat_names(
    store: *mut StoreObject,
    count: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut *mut c_char {
    guard(errptr, null_mut(), || {
        let figures = figures(&handles::get(store)?.0.stats());
        let names: Vec<String> = figures.into_iter().map(|(name, _)| name).collect();
        copy_out_texts(&names, count)
    })
}

/// A figure of a table, by its name in Rust's `TableStats`: `records`, `disk_bytes`, `runs`. 0
/// where it fails, too.
///
/// Errors: InvalidInput for an unknown name, with the names that exist; Closed.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_stat(table: *mut TableObject, name: Text, errptr: ErrPtr<'_>) -> f64 {
    guard(errptr, 0.0, || {
        let table = handles::get(table)?;
        let stats = table.table.stats()?;
        named(&table_figures(&stats), name.get("the name")?)
    })
}
