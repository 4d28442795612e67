//! Scans, whose rows come in a direct buffer, many in one crossing.
//!
//! ```text
//!   [key length : 4][value length : 4][key][value]      for each row, numbers little-endian
//! ```
//!
//! A row that does not fit into an empty buffer waits, and the call says how long it is, so that
//! Java comes again with a larger one.

use std::sync::{Mutex, PoisonError};

use folddb::{BytesScan, Error, LentRows, Result};
use jni::EnvUnowned;
use jni::objects::{JByteArray, JByteBuffer, JClass};

use crate::errors::guard;
use crate::handles::{self, Object};
use crate::memory::{direct, whole_optional};
use crate::store::SnapshotObject;
use crate::table::TableObject;

const HEADER: usize = 8;

const AFTER: i32 = 1;
const THROUGH: i32 = 2;
const REVERSE: i32 = 4;
const KEYS_ONLY: i32 = 8;

/// A running scan.
pub(crate) struct ScanObject(Mutex<Walk>);

struct Walk {
    rows: LentRows,
    /// A row that did not fit, with its header.
    waiting: Option<Vec<u8>>,
}

impl Object for ScanObject {
    const NAME: &'static str = "scan";
}

/// What came of filling a buffer.
#[derive(Debug, PartialEq, Eq)]
enum Filled {
    /// So many bytes of it; none at the end.
    Bytes(usize),
    /// The first row takes so many.
    Needs(usize),
}

impl Walk {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<Filled> {
        let mut at = 0;
        if let Some(row) = &self.waiting {
            let Some(place) = buffer.get_mut(..row.len()) else { return Ok(Filled::Needs(row.len())) };
            place.copy_from_slice(row);
            at = row.len();
            self.waiting = None;
        }
        while let Some((key, value)) = self.rows.next_row()? {
            let len = HEADER + key.len() + value.len();
            match buffer.get_mut(at..at + len) {
                Some(place) => write_row(place, key, value),
                None => {
                    let mut row = vec![0; len];
                    write_row(&mut row, key, value);
                    self.waiting = Some(row);
                    return Ok(if at == 0 { Filled::Needs(len) } else { Filled::Bytes(at) });
                }
            }
            at += len;
        }
        Ok(Filled::Bytes(at))
    }
}

/// Writes a row to a place of its length.
fn write_row(place: &mut [u8], key: &[u8], value: &[u8]) {
    place[..4].copy_from_slice(&(key.len() as u32).to_le_bytes());
    place[4..HEADER].copy_from_slice(&(value.len() as u32).to_le_bytes());
    place[HEADER..HEADER + key.len()].copy_from_slice(key);
    place[HEADER + key.len()..].copy_from_slice(value);
}

fn bounded(
    scan: BytesScan,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    flags: i32,
    limit: i64,
) -> BytesScan {
    let is = |flag| flags & flag != 0;
    let scan = match low {
        None => scan,
        Some(low) if is(AFTER) => scan.after(&low),
        Some(low) => scan.from(&low),
    };
    let scan = match high {
        None => scan,
        Some(high) if is(THROUGH) => scan.through(&high),
        Some(high) => scan.before(&high),
    };
    let scan = if is(REVERSE) { scan.reverse() } else { scan };
    let scan = if is(KEYS_ONLY) { scan.keys_only() } else { scan };
    scan.limit(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Begins a scan.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_scan<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
    snapshot: i64,
    low: JByteArray<'local>,
    high: JByteArray<'local>,
    prefix: JByteArray<'local>,
    flags: i32,
    limit: i64,
) -> i64 {
    guard(env, |env| {
        let table = handles::get::<TableObject>(table)?;
        let scan = match handles::get_optional::<SnapshotObject>(snapshot)? {
            None => table.0.scan(),
            Some(at) => at.0.table(&table.0).scan(),
        };
        let scan = match whole_optional(env, &prefix)? {
            None => scan,
            Some(prefix) => scan.prefix(&prefix),
        };
        let (low, high) = (whole_optional(env, &low)?, whole_optional(env, &high)?);
        let rows = bounded(scan, low, high, flags, limit).rows()?;
        Ok(handles::give(ScanObject(Mutex::new(Walk { rows, waiting: None })))?)
    })
}

/// Fills a buffer with rows. Gives how many bytes there are, 0 at the end; or below zero how many
/// the next row takes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_rows<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    scan: i64,
    mut buffer: JByteBuffer<'local>,
) -> i32 {
    guard(env, |env| {
        let scan = handles::get::<ScanObject>(scan)?;
        let buffer = direct(env, &mut buffer)?;
        let mut walk = scan.0.lock().unwrap_or_else(PoisonError::into_inner);
        let filled = walk.fill(buffer)?;
        let number = |len: usize| {
            i32::try_from(len).map_err(|_| {
                Error::invalid(format!("a row of {len} bytes is more than a buffer of Java holds"))
            })
        };
        match filled {
            Filled::Bytes(len) => Ok(number(len)?),
            Filled::Needs(len) => Ok(-number(len)?),
        }
    })
}
