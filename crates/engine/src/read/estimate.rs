//! About how much a range of a sorted table holds, without reading it: from the indexes of its
//! files, and by counting what is in memory.
//!
//! ```text
//!   disk_bytes   blocks of the range: at most the two at its ends are in doubt, in each file that it cuts
//!   records      of a whole file exactly; of one that the range cuts, the same share as of its bytes
//!   rows         keys of the files, less those that several have by their sketches; and keys in memory
//! ```
//!
//! Called by `scan` of the public API.

use std::ops::Bound;
use std::sync::Arc;

use folddb_base::stream::Direction;
use folddb_base::{Error, RecordStream, Result};
use folddb_layout::sketch;
use folddb_memtable::Memtable;
use folddb_rules::KeyOrder;
use folddb_rules::codec::KeyRange;
use folddb_run::Extent;

use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::key_range;
use crate::state::view::{PartFile, PartView, TableView};

/// About how much a range holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeEstimate {
    /// Keys. Those that were deleted, or have expired, count until a merge drops them; so do
    /// versions that are kept.
    pub rows: u64,
    /// Records; a key may have several.
    pub records: u64,
    /// Bytes of keys and values in files, as stored: the middle of the next two.
    pub disk_bytes: u64,
    /// At least as many.
    pub disk_bytes_min: u64,
    /// At most as many. In each file that the range cuts, at most two blocks are between them.
    pub disk_bytes_max: u64,
    /// Bytes of separated values that records in files point to; a share of those of each file, as
    /// of its other bytes.
    pub value_bytes: u64,
    /// Bytes of keys and payloads that are only in memory.
    pub memory_bytes: u64,
}

/// The estimate of a range of a table.
pub fn estimate(engine: &Engine, table: &TableCore, range: &KeyRange) -> Result<RangeEstimate> {
    engine.check_readable(table)?;
    if table.hashed.is_some() {
        let message = format!("table `{}` is hashed: it has no ranges of keys", table.name);
        return Err(Error::invalid(message).advise("its `stats` have its keys and bytes"));
    }
    let view = table.view();
    let mut sum = of_files(table, &view, range)?;
    let memtables = std::iter::once(&view.active).chain(view.sealed.iter().map(|sealed| &sealed.memtable));
    for memtable in memtables {
        add_memory(engine, &table.rules.order, memtable, range, &mut sum)?;
    }
    Ok(sum)
}

fn of_files(table: &TableCore, view: &TableView, range: &KeyRange) -> Result<RangeEstimate> {
    let order = &table.rules.order;
    let met = |part: &&PartView| key_range::meets(range, order, part);
    let parts = view.runs.iter().flat_map(|run| &run.parts).filter(met);
    let mut sum = RangeEstimate::default();
    let (mut keys, mut keys_of_parts, mut files) = (0.0, 0, Vec::new());
    for part in parts {
        let facts = part.file.part.facts();
        let extent = visible_extent(order, part, range)?;
        let share = extent.share();
        sum.records += (facts.records as f64 * share).round() as u64;
        keys += facts.keys as f64 * share;
        sum.disk_bytes_min += extent.least_bytes;
        sum.disk_bytes_max += extent.most_bytes;
        let value_bytes: u64 = facts.values.iter().map(|used| used.bytes).sum();
        sum.value_bytes += (value_bytes as f64 * share).round() as u64;
        keys_of_parts += facts.keys;
        files.push(Arc::clone(&part.file));
    }
    sum.disk_bytes = sum.disk_bytes_min.midpoint(sum.disk_bytes_max);
    // The parts of one run have no key in common, and sketches have an error of 3 %.
    let runs_met = view.runs.iter().filter(|run| run.parts.iter().any(|part| met(&part))).count();
    let apart = if runs_met > 1 { share_of_distinct(&files, keys_of_parts) } else { 1.0 };
    sum.rows = (keys * apart).round() as u64;
    Ok(sum)
}

/// The share of the keys of these files that are distinct.
fn share_of_distinct(files: &[Arc<PartFile>], keys: u64) -> f64 {
    let distinct = sketch::estimate_keys(files.iter().map(|file| file.part.facts().sketch.as_slice()));
    (distinct as f64 / keys.max(1) as f64).min(1.0)
}

/// The extent of the range in what a part shows.
fn visible_extent(order: &KeyOrder, part: &PartView, range: &KeyRange) -> Result<Extent> {
    let low = match part.trim() {
        Some(trim) if !key_range::is_before(range, order, trim) => Bound::Included(trim),
        _ => key_range::bounds(range).0,
    };
    part.file.part.extent(low, key_range::bounds(range).1)
}

/// Counts the records of a memtable.
fn add_memory(
    engine: &Engine,
    order: &KeyOrder,
    memtable: &Memtable,
    range: &KeyRange,
    sum: &mut RangeEstimate,
) -> Result<()> {
    let mut stream =
        memtable.capture(&engine.published).stream(Direction::Forward, key_range::bounds(range).0);
    let mut last_key: Option<Vec<u8>> = None;
    while let Some(record) = stream.record() {
        if key_range::is_behind(range, order, record.key) {
            return Ok(());
        }
        sum.records += 1;
        sum.memory_bytes += (record.key.len() + record.payload.len()) as u64;
        if last_key.as_deref() != Some(record.key) {
            sum.rows += 1;
            let key = last_key.get_or_insert_default();
            key.clear();
            key.extend_from_slice(record.key);
        }
        stream.advance()?;
    }
    Ok(())
}
