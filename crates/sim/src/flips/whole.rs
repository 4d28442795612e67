//! The files and the content of a store that is flipped, and its tables.

use std::collections::BTreeMap;

use folddb::table_rules::TableRules;
use folddb::{BytesTable, ErrorKind, Store};

/// All rows of all tables.
pub type Dump = BTreeMap<String, Vec<(Vec<u8>, Vec<u8>)>>;

/// A file of the store, as it was written.
pub struct Whole {
    /// Its name.
    pub name: String,
    /// Its bytes, up to the last that is not zero: a segment is preallocated.
    pub bytes: Vec<u8>,
}

/// The tables of these names, created where they do not exist.
pub(crate) fn tables_of<const N: usize>(
    store: &Store,
    rules: [(&str, TableRules); N],
) -> folddb::Result<Vec<BytesTable>> {
    let table = |(name, rules)| store.bytes_table(name).or_else(|_| store.create_bytes_table(name, rules));
    rules.into_iter().map(table).collect()
}

/// Whether an error names the file. Damage to the version in `FORMAT` looks like a newer version.
pub(crate) fn names_file(error: &folddb::Error, name: &str) -> bool {
    let is_damage = error.kind() == ErrorKind::Corruption && error.message().contains("offset");
    is_damage && error.message().contains(name) || error.kind() == ErrorKind::NewerFormat && name == "FORMAT"
}
