//! Secondary indexes: added, dropped, and queried.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::ptr::null_mut;

use folddb::{BytesFind, Error, ErrorKind, IndexRule, Result};

use crate::callbacks::{Progress, ProgressFunction, begin};
use crate::errors::guard;
use crate::handles;
use crate::memory::{ErrPtr, Text, copy_out_texts};
use crate::scan::RowFunction;
use crate::table::TableObject;

/// Adds an index to a table, and builds it from the rows of the table before it returns, while
/// writes go on. It is written `NAME:RULE`, such as `city:json:/address/city`; docs/C.md lists the
/// rules. `progress` may be NULL; it is called after every few thousand keys with the keys that are
/// in the index, and about how many there are. Returns whether the index is built. Adding it once
/// more continues a stopped build.
///
/// Errors: InvalidInput for a rule that does not parse or breaks the law of terms, for a hashed
/// table, and where another index has this name; Stopped where `progress` wants it to: the index
/// exists then, and refuses queries; a failed write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_index_add(
    table: *mut TableObject,
    rule: Text,
    progress: ProgressFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let (table, rule) = (handles::get(table)?, rule.get("the rule")?);
        let index = rule.parse::<IndexRule>()?;
        let mut progress = Progress::new(progress, context);
        table.itself()?.add_index_with(&index, |at| progress.report(at.keys_done, at.keys_total))?;
        match progress.is_stopped() {
            true => Err(Error::new(ErrorKind::Stopped, "the build of the index was stopped")
                .advise("add it once more to continue")),
            false => Ok(true),
        }
    })
}

/// Drops an index of a table. Returns whether it did.
///
/// Errors: InvalidInput where the table has no such index; a failed write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_index_drop(table: *mut TableObject, index: Text, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || {
        let table = handles::get(table)?;
        table.itself()?.drop_index(index.get("the index")?).map(|()| true)
    })
}

/// The indexes of a table, each written as folddb_index_add takes it. Otherwise as folddb_tables.
///
/// Errors: as folddb_index_drop, for a table at a snapshot or in a transaction.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_indexes(
    table: *mut TableObject,
    count: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut *mut c_char {
    guard(errptr, null_mut(), || {
        let indexes = handles::get(table)?.itself()?.indexes();
        let rules: Vec<String> = indexes.iter().map(|index| index.rule.to_string()).collect();
        copy_out_texts(&rules, count)
    })
}

fn find(table: &TableObject, index: &str) -> Result<BytesFind> {
    match table.at()? {
        None => table.table.find(index),
        Some(table) => table.find(index),
    }
}

fn visit(find: BytesFind, function: RowFunction, context: *mut c_void) -> Result<bool> {
    let function = function.ok_or_else(|| Error::invalid("the function is NULL"))?;
    for row in find.values() {
        let (key, value) = row?;
        if !function(context, begin(&key), key.len(), begin(&value), value.len()) {
            return Err(Error::new(ErrorKind::Stopped, "the function asked for no more rows"));
        }
    }
    Ok(true)
}

/// Calls `function` with each record that an index has under a term, which is given as it is typed:
/// `Berlin`, `7`; quotes make a text of anything. Returns whether it reached the end.
///
/// Errors: InvalidInput where the table has no such index and for a term that it cannot have;
/// Stopped where `function` wants no more; as folddb_scan_each.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_find(
    table: *mut TableObject,
    index: Text,
    term: Text,
    function: RowFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let term = term.get("the term")?.to_owned();
        let find = find(&*handles::get(table)?, index.get("the index")?)?;
        visit(find.typed((Bound::Included(term.clone()), Bound::Included(term))), function, context)
    })
}

/// The same for terms from `from` on and below `to`, in their order; NULL is no bound.
///
/// Errors: as folddb_find.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_find_range(
    table: *mut TableObject,
    index: Text,
    from: Text,
    to: Text,
    function: RowFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let (from, to) = (from.get_optional("the first term")?, to.get_optional("the end")?);
        let low = from.map_or(Bound::Unbounded, |from| Bound::Included(from.to_owned()));
        let high = to.map_or(Bound::Unbounded, |to| Bound::Excluded(to.to_owned()));
        visit(find(&*handles::get(table)?, index.get("the index")?)?.typed((low, high)), function, context)
    })
}
