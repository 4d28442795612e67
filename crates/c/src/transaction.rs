//! Transactions: reads at one snapshot, and writes that happen only if what was read still holds.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use folddb::{Error, ErrorKind, Result, Store, Transaction};

use crate::durability::durability;
use crate::errors::{guard, guard_silently};
use crate::exclusive::Exclusive;
use crate::handles::{self, Object};
use crate::memory::ErrPtr;
use crate::store::StoreObject;

/// Reads at one snapshot, and writes that are committed together, if what was read has not been
/// written to since. One thread uses it at a time.
pub struct TransactionObject(Exclusive<Option<Transaction>>);

impl Object for TransactionObject {
    const NAME: &'static str = "folddb_transaction";
}

impl TransactionObject {
    fn begin(store: &Store) -> TransactionObject {
        TransactionObject(Exclusive::new(Some(store.transaction())))
    }

    /// Does something in it.
    ///
    /// # Errors
    /// It is over; another call uses it.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        let mut transaction = self.0.lock::<TransactionObject>()?;
        work(transaction.as_mut().ok_or_else(over)?)
    }

    fn commit(&self, number: c_int) -> Result<u64> {
        let durability = durability(number)?;
        let transaction = self.0.lock::<TransactionObject>()?.take().ok_or_else(over)?;
        transaction.commit(durability).map(u64::from)
    }
}

fn over() -> Error {
    Error::invalid("this folddb_transaction was committed, and is over: create another")
}

/// Begins a transaction. NULL where it fails. folddb_transaction_table reads and writes in it.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_transaction_create(
    store: *mut StoreObject,
    errptr: ErrPtr<'_>,
) -> *mut TransactionObject {
    guard(errptr, null_mut(), || handles::give(TransactionObject::begin(&handles::get(store)?.0)))
}

/// Commits what was written, if what was read still holds, as durably as `durability` says, one of
/// folddb_durability. Returns whether it did. The transaction is over in either case.
///
/// Errors: Conflict where others have written to what was read: nothing is written, begin again;
/// InvalidInput where something that was written was wrong: nothing is written; a failed write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_transaction_commit(
    transaction: *mut TransactionObject,
    durability: c_int,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || handles::get(transaction)?.commit(durability).map(|_| true))
}

/// Destroys the handle. NULL is ignored. What was not committed is discarded.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_transaction_destroy(transaction: *mut TransactionObject) {
    guard_silently(|| handles::take(transaction).map(drop));
}

/// Does the work of a transaction, and returns whether it is to be committed. It is called again
/// after a conflict, so it must do nothing else that cannot be done twice. It must neither commit
/// nor destroy the transaction. A C++ exception must not leave it.
pub type TransactFunction =
    Option<extern "C" fn(context: *mut c_void, transaction: *mut TransactionObject) -> bool>;

/// How often a transaction is begun again.
const TRIES_MAX: usize = 1000;

/// Runs `work` in a transaction and commits it, again and again until there is no conflict. Returns
/// whether it was committed: false with no error where `work` said no.
///
/// Errors: as folddb_transaction_commit; Conflict after a thousand tries.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_transact(
    store: *mut StoreObject,
    durability: c_int,
    work: TransactFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let store = handles::get(store)?;
        let work = work.ok_or_else(|| Error::invalid("the work is NULL"))?;
        for _ in 0..TRIES_MAX {
            let handle = handles::give(TransactionObject::begin(&store.0))?;
            let is_wanted = work(context, handle);
            let transaction = handles::take(handle)?;
            if !is_wanted {
                return Ok(false);
            }
            match transaction.commit(durability) {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                committed => return committed.map(|_| true),
            }
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!("a transaction was overtaken {TRIES_MAX} times in a row"),
        ))
    })
}
