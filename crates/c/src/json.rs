//! Keys and values as JSON, both ways, as the command line shows and accepts them.
//!
//! Values are bytes whose form the fold decides: statistics, sets, sketches, records. A program
//! that does not know the form asks here.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use folddb::{BytesTable, Datum, Error, Result, datum};

use crate::errors::guard;
use crate::handles;
use crate::memory::{Bytes, ErrPtr, Text, copy_out, copy_out_with_len};
use crate::scan::{self, ScanObject};
use crate::table::TableObject;

fn read(text: Text) -> Result<Datum> {
    let text = text.get("the JSON")?;
    datum::json::parse(text).map_err(|cause| Error::invalid(format!("`{text}` is not JSON: {cause}")))
}

fn wrong(table: &BytesTable, what: &str, cause: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("this is not a {what} of table `{}`: {cause}", table.name()))
}

/// The bytes of a key that is given as JSON, for folddb_free, and their length: `"UA"`, `7`, or for
/// a tuple `["UA", "EWR"]`. NULL where it fails.
///
/// Errors: InvalidInput, with what the table expects.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_key_from_json(
    table: *mut TableObject,
    json: Text,
    key_len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut c_char {
    guard(errptr, null_mut(), || {
        let table = &handles::get(table)?.table;
        let mut key = Vec::new();
        let read = table.rules().as_table_rules().key_codec().encode(&read(json)?, &mut key);
        read.map_err(|cause| wrong(table, "key", &cause))?;
        copy_out_with_len(&key, key_len)
    })
}

/// Only keys that begin with what the JSON gives: for a tuple its first elements, `["UA"]`.
/// Otherwise as folddb_scan_prefix.
///
/// Errors: InvalidInput, with what the table expects, and for keys that are numbers.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_prefix_json(scan: *mut ScanObject, json: Text, errptr: ErrPtr<'_>) -> bool {
    scan::change(scan, errptr, |range| {
        let table = &range.table.table;
        let codec = table.rules().as_table_rules().key_codec();
        let keys = match (read(json)?, codec.is_tuple()) {
            (_, true) => codec.parse_prefix(&[json.get("the JSON")?]),
            (Datum::Text(text), false) => codec.parse_prefix(&[&text]),
            (_, false) => codec.parse_prefix(&[json.get("the JSON")?]),
        };
        let keys = keys.map_err(|cause| wrong(table, "beginning of keys", &cause))?;
        range.set(scan::in_order(table, keys)?);
        Ok(())
    })
}

/// A key as JSON, for folddb_free. NULL where it fails.
///
/// Errors: InvalidInput for bytes that are no key of the table.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_key_to_json(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> *mut c_char {
    guard(errptr, null_mut(), || {
        let table = &handles::get(table)?.table;
        let shown = table.rules().as_table_rules().key_codec().show(key.get(key_len, "the key")?);
        let shown = shown.map_err(|cause| wrong(table, "key", &cause))?;
        copy_out(datum::json::text_of(&shown).as_bytes())
    })
}

/// The bytes of a value or an operand that is given as JSON, for folddb_free, and their length:
/// `12.5` for statistics, `["a", "b"]` for a set, `{"flights": 1, "delay": 12.5}` for a record.
/// NULL where it fails.
///
/// Errors: InvalidInput, with what the fold of the table expects.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_value_from_json(
    table: *mut TableObject,
    json: Text,
    value_len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut c_char {
    guard(errptr, null_mut(), || {
        let table = &handles::get(table)?.table;
        table.rules().check_writable()?;
        let mut value = Vec::new();
        let read = table.rules().read_value(&read(json)?, &mut value);
        read.map_err(|cause| wrong(table, "value", &cause))?;
        copy_out_with_len(&value, value_len)
    })
}

/// A value as JSON, for folddb_free: statistics with their mean, a sketch with its estimate. NULL
/// where it fails.
///
/// Errors: InvalidInput for bytes that are no value of the table.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_value_to_json(
    table: *mut TableObject,
    value: Bytes,
    value_len: usize,
    errptr: ErrPtr<'_>,
) -> *mut c_char {
    guard(errptr, null_mut(), || {
        let table = &handles::get(table)?.table;
        let shown = table.rules().show_value(value.get(value_len, "the value")?);
        let shown = shown.map_err(|cause| wrong(table, "value", &cause))?;
        copy_out(datum::json::text_of(&shown).as_bytes())
    })
}
