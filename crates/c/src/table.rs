//! Tables: created, opened, and read at a snapshot or in a transaction.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use folddb::{BytesTable, BytesTableAt, Error, ErrorKind, Lifetime, Result};

use crate::durability::durability;
use crate::errors::{guard, guard_silently};
use crate::handles::{self, Object};
use crate::memory::{ErrPtr, Text, copy_out};
use crate::rules;
use crate::snapshot::SnapshotObject;
use crate::store::StoreObject;
use crate::transaction::TransactionObject;

/// A table of a store: as it is now, as a snapshot sees it, or in a transaction. Any number of
/// threads use it at once; one in a transaction is used by one thread at a time.
pub struct TableObject {
    pub(crate) table: BytesTable,
    pub(crate) store: Arc<StoreObject>,
    pub(crate) place: Place,
}

/// Where a table is read and written.
#[derive(Clone)]
pub(crate) enum Place {
    /// As it is now.
    Now,
    /// As a snapshot sees it; it is not written to.
    Snapshot(Arc<SnapshotObject>),
    /// In a transaction.
    Transaction(Arc<TransactionObject>),
}

impl TableObject {
    /// The table itself, for calls that work on nothing else.
    ///
    /// # Errors
    /// It is as a snapshot sees it, or in a transaction.
    pub(crate) fn itself(&self) -> Result<&BytesTable> {
        match &self.place {
            Place::Now => Ok(&self.table),
            Place::Snapshot(_) => Err(self.read_only()),
            Place::Transaction(_) => Err(Error::invalid(format!(
                "table `{}` is in a transaction, which cannot do this: use the table itself",
                self.table.name()
            ))),
        }
    }

    /// How it is read at a snapshot or in a transaction; none as it is now.
    ///
    /// # Errors
    /// The transaction is over.
    #[inline]
    pub(crate) fn at(&self) -> Result<Option<BytesTableAt>> {
        Ok(match &self.place {
            Place::Now => None,
            Place::Snapshot(snapshot) => Some(snapshot.0.table(&self.table)),
            Place::Transaction(transaction) => {
                Some(transaction.with(|transaction| Ok(transaction.table(&self.table)))?)
            }
        })
    }

    /// The error of a write to what a snapshot sees.
    pub(crate) fn read_only(&self) -> Error {
        let message = format!("table `{}` is as a snapshot sees it", self.table.name());
        Error::new(ErrorKind::ReadOnly, message).advise("write to the table itself")
    }
}

impl Object for TableObject {
    const NAME: &'static str = "folddb_table";
}

fn opened(
    store: *mut StoreObject,
    errptr: ErrPtr<'_>,
    open: impl FnOnce(&StoreObject) -> Result<BytesTable>,
) -> *mut TableObject {
    guard(errptr, null_mut(), || {
        let store = handles::get(store)?;
        let table = open(&store)?;
        handles::give(TableObject { table, store, place: Place::Now })
    })
}

/// Opens a table that exists. NULL where it fails. Destroy it with folddb_table_destroy.
///
/// Errors: TableNotFound, with the names that there are.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_open(
    store: *mut StoreObject,
    name: Text,
    errptr: ErrPtr<'_>,
) -> *mut TableObject {
    opened(store, errptr, |store| store.0.bytes_table(name.get("the name")?))
}

/// Creates a table under these rules, and opens it. NULL where it fails.
///
/// Rules are a line for each that is not the default: `key=utf8\nfold=sum:u64`. docs/C.md lists
/// them. The name of ready-made rules means those (`counter`, `stats`, ...); NULL means every
/// default: sorted, keys and values of any bytes, a later value replaces the earlier one.
///
/// Errors: AlreadyExists; InvalidInput for a bad name, and rules that cannot be.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_create(
    store: *mut StoreObject,
    name: Text,
    rules: Text,
    errptr: ErrPtr<'_>,
) -> *mut TableObject {
    opened(store, errptr, |store| {
        let rules = rules::parse(rules.get_optional("the rules")?.unwrap_or_default())?;
        store.0.create_bytes_table(name.get("the name")?, rules)
    })
}

/// Opens a table, and creates it under these rules where the store has none of this name. Otherwise
/// as folddb_table_create.
///
/// Errors: RulesMismatch where the table has different rules, with the difference.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_open_or_create(
    store: *mut StoreObject,
    name: Text,
    rules: Text,
    errptr: ErrPtr<'_>,
) -> *mut TableObject {
    opened(store, errptr, |store| {
        let (name, rules) = (name.get("the name")?, rules.get_optional("the rules")?);
        store.0.open_or_create_bytes_table(name, rules::parse(rules.unwrap_or_default())?)
    })
}

/// Destroys the handle. NULL is ignored. The table itself remains.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_destroy(table: *mut TableObject) {
    guard_silently(|| handles::take(table).map(drop));
}

/// The name of the table, for folddb_free. NULL where it fails.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_name(table: *mut TableObject, errptr: ErrPtr<'_>) -> *mut c_char {
    guard(errptr, null_mut(), || copy_out(handles::get(table)?.table.name().as_bytes()))
}

/// The rules of the table, as folddb_table_create accepts them, for folddb_free. NULL where it
/// fails.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_rules(table: *mut TableObject, errptr: ErrPtr<'_>) -> *mut c_char {
    guard(errptr, null_mut(), || {
        copy_out(handles::get(table)?.table.rules().as_table_rules().to_string().as_bytes())
    })
}

fn derived(
    table: *mut TableObject,
    errptr: ErrPtr<'_>,
    derive: impl FnOnce(TableObject) -> Result<TableObject>,
) -> *mut TableObject {
    guard(errptr, null_mut(), || {
        let of = handles::get(table)?;
        let copy =
            TableObject { table: of.table.clone(), store: Arc::clone(&of.store), place: of.place.clone() };
        handles::give(derive(copy)?)
    })
}

/// The same table as a snapshot sees it: another handle, for reading. NULL where it fails.
///
/// Errors: InvalidInput where the snapshot is of another store, or `table` is in a transaction.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_snapshot_table(
    snapshot: *mut SnapshotObject,
    table: *mut TableObject,
    errptr: ErrPtr<'_>,
) -> *mut TableObject {
    derived(table, errptr, |table| {
        let snapshot = handles::get(snapshot)?;
        let _ = snapshot.0.scan(&table.table).keys_only().limit(0).rows()?; // whether it is of this store
        Ok(TableObject { place: Place::Snapshot(snapshot), ..table })
    })
}

/// The same table in a transaction: another handle. Its writes are committed with the transaction,
/// and its reads see them before that. NULL where it fails.
///
/// Errors: InvalidInput where the transaction is of another store, or over.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_transaction_table(
    transaction: *mut TransactionObject,
    table: *mut TableObject,
    errptr: ErrPtr<'_>,
) -> *mut TableObject {
    derived(table, errptr, |table| {
        let transaction = handles::get(transaction)?;
        transaction.with(|transaction| {
            transaction.snapshot().scan(&table.table).keys_only().limit(0).rows().map(drop)
        })?;
        Ok(TableObject { place: Place::Transaction(transaction), ..table })
    })
}

/// The same table, whose writes are acknowledged when `durability` says, one of folddb_durability:
/// another handle. NULL where it fails.
///
/// Errors: InvalidInput for a number that is no durability.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_with_durability(
    table: *mut TableObject,
    durability: c_int,
    errptr: ErrPtr<'_>,
) -> *mut TableObject {
    derived(table, errptr, |table| {
        let durability = self::durability(durability)?;
        Ok(TableObject { table: table.table.clone().with_durability(durability), ..table })
    })
}

/// The same table, whose values last this many milliseconds after they are written: another handle.
/// For tables whose values may expire (`expire=...` among the rules). NULL where it fails.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_lasting_for(
    table: *mut TableObject,
    ms: u64,
    errptr: ErrPtr<'_>,
) -> *mut TableObject {
    derived(table, errptr, |table| {
        let lifetime = Lifetime::For(Duration::from_millis(ms));
        Ok(TableObject { table: table.table.with_lifetime(lifetime), ..table })
    })
}

/// The same table, whose values last until this time, in milliseconds since 1970: another handle.
/// Otherwise as folddb_table_lasting_for.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_table_lasting_until(
    table: *mut TableObject,
    unix_ms: u64,
    errptr: ErrPtr<'_>,
) -> *mut TableObject {
    derived(table, errptr, |table| {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(unix_ms));
        let time = time.ok_or_else(|| Error::invalid(format!("{unix_ms} ms is not a time")))?;
        Ok(TableObject { table: table.table.with_lifetime(Lifetime::Until(time)), ..table })
    })
}
