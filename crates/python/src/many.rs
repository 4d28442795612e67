//! Whole columns written at once.
//!
//! ```text
//!   columns ── chunks of at most 65,536 rows ── encoded and folded by threads ── a batch each, in order
//! ```
//!
//! All rows are checked before the first is written, unless the types of the columns leave nothing
//! to check. The operands of one key in a chunk are folded with one another first, if no reader can
//! see that: the fold is associative, so the value is the same. If a table keeps its past or its
//! log, or a feed reads it, each row is a record of its own.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use folddb::folds::Stats;
use folddb::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use folddb::table_rules::{FoldName, PredicateRule};
use folddb::{Error, ErrorKind, Fold, Outcome, Result, WriteOp, datum};
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::cells::Cells;
use crate::columns::{Chunk, Column, Source, chunks, row_of};
use crate::convert::cut;
use crate::encode::{Encoder, Row};
use crate::place::{Place, Placed};

/// The most rows of a batch.
const CHUNK_ROWS_MAX: usize = 65_536;

/// Approximate bytes of the rows of a batch. Each thread holds one encoded batch.
const CHUNK_BYTES: u64 = 32 << 20;

/// Rows that are to be written.
pub(crate) struct Many {
    pub(crate) op: WriteOp,
    pub(crate) keys: Source,
    pub(crate) values: Source,
    /// Rows that do not fit are skipped.
    pub(crate) skips: bool,
}

impl Source {
    pub(crate) fn columns(&self) -> Vec<&Column> {
        match self {
            Source::Columns(columns) => columns.iter().map(|(_, column)| column).collect(),
            Source::Encoded(column) => vec![column],
        }
    }
}

impl Many {
    /// How many rows there are.
    ///
    /// # Errors
    /// Columns have different lengths, or there are only constants.
    fn rows(&self) -> std::result::Result<u64, String> {
        let columns: Vec<&Column> = self.keys.columns().into_iter().chain(self.values.columns()).collect();
        rows_of(&columns)
    }

    /// Writes the rows, and calls `tell` after each batch with the rows done and the total. Returns
    /// how many were written.
    ///
    /// # Errors
    /// InvalidInput, naming the first row that does not fit: nothing is written then. Those of a
    /// commit, naming the first row that is not written. Stopped, if `tell` breaks it off.
    pub(crate) fn write(&self, table: &Placed, report: impl Fn(u64, u64) -> ControlFlow<()>) -> Result<u64> {
        let wrong = |why: String| Error::invalid(format!("table `{}`: {why}", table.name()));
        table.table.rules().check_writable()?;
        let rows = self.rows().map_err(wrong)?;
        let encoder = Encoder::new(table, &self.keys, Some(&self.values)).map_err(wrong)?;
        let columns: Vec<&Column> = self.keys.columns().into_iter().chain(self.values.columns()).collect();
        let folds = match folds_first(table, self.op) {
            First::Fold(fold) if fold.spec() == "stats:f64" && encoder.takes_numbers(&self.values) => {
                First::Stats
            }
            folds => folds,
        };
        let chunks = chunks(&columns, rows, rows_of_chunk(&columns, rows));
        let work = Work { table, op: self.op, skips: self.skips, encoder, folds };
        if !self.skips {
            let is_total = work.encoder.is_total(&self.keys.columns(), &self.values.columns());
            let to_check = if is_total { &chunks[..chunks.len().min(1)] } else { &chunks[..] };
            in_order(to_check, |chunk| work.check(chunk), |()| Ok(()))?;
        }
        let mut written = 0;
        in_order(
            &chunks,
            |chunk| work.encode(chunk),
            |ops| {
                written += ops.rows;
                work.commit(&ops).map_err(|error| {
                    error.context(format!(
                        "table `{}`: rows from {} on are not written",
                        table.name(),
                        ops.first_row
                    ))
                })?;
                match report(ops.end_row, rows) {
                    ControlFlow::Continue(()) => Ok(()),
                    ControlFlow::Break(()) => Err(stopped(table, ops.end_row)),
                }
            },
        )?;
        Ok(written)
    }
}

fn stopped(table: &Placed, row: u64) -> Error {
    let message = format!("table `{}`: rows from {row} on are not written", table.name());
    Error::new(ErrorKind::Stopped, message)
}

/// How many rows a batch takes: fewer if they are long.
fn rows_of_chunk(columns: &[&Column], rows: u64) -> usize {
    let bytes: usize = columns.iter().map(|column| column.len_bytes()).sum();
    let bytes_of_row = bytes as u64 / rows.max(1) + 1;
    usize::try_from(CHUNK_BYTES / bytes_of_row).unwrap_or(CHUNK_ROWS_MAX).clamp(1, CHUNK_ROWS_MAX)
}

fn rows_of(columns: &[&Column]) -> std::result::Result<u64, String> {
    let lens: Vec<u64> = columns.iter().filter_map(|column| column.len()).collect();
    let first = *lens.first().ok_or("there is no column, only values for all rows")?;
    match lens.iter().find(|len| **len != first) {
        Some(other) => Err(format!("one column has {first} rows, another {other}")),
        None => Ok(first),
    }
}

/// Encodes keys that are given as columns.
///
/// # Errors
/// InvalidInput, naming the first row that is not a key.
pub(crate) fn encoded_keys(table: &Placed, keys: &Source) -> Result<Vec<Vec<u8>>> {
    let wrong = |why: String| Error::invalid(format!("table `{}`: {why}", table.name()));
    let encoder = Encoder::new(table, keys, None).map_err(wrong)?;
    let columns = keys.columns();
    let rows = rows_of(&columns).map_err(wrong)?;
    let mut encoded = Vec::new();
    for chunk in chunks(&columns, rows, CHUNK_ROWS_MAX) {
        let cells = chunk.cells().map_err(wrong)?;
        for row in 0..chunk.len {
            let mut key = Vec::new();
            let put = encoder.key(&cells, row, &mut key);
            put.map_err(|why| {
                let row = chunk.first_row + row as u64;
                Error::invalid(format!("row {row}: table `{}`: {why}", table.name()))
            })?;
            encoded.push(key);
        }
    }
    Ok(encoded)
}

/// The key of a row, as messages show it.
#[cold]
pub(crate) fn key_of_row(table: &Placed, keys: &Source, row: u64) -> String {
    let key = || {
        let (encoder, chunk) = (Encoder::new(table, keys, None).ok()?, row_of(&keys.columns(), row)?);
        let mut key = Vec::new();
        encoder.key(&chunk.cells().ok()?, 0, &mut key).ok()?;
        Some(key_text(table, &key))
    };
    key().unwrap_or_else(|| "unknown".to_owned())
}

/// An encoded key, as messages show it: in the notation of JSON, and short.
fn key_text(table: &Placed, key: &[u8]) -> String {
    match table.codec.show(key) {
        Ok(key) => cut(&datum::json::text_of(&key)),
        Err(_) => "unknown".to_owned(),
    }
}

/// How the ops of one key are folded before they are written, if no reader can see that.
enum First {
    Nothing,
    Later,
    /// Numbers are collected into statistics, which are encoded once for all numbers of a key.
    Stats,
    Fold(Arc<dyn Fold>),
}

fn folds_first(table: &Placed, op: WriteOp) -> First {
    let rules = table.table.rules().as_table_rules();
    let shows = rules.keep.keeps_past()
        || rules.archives_log
        || !table.store.feeds().is_empty()
        || rules.delete != PredicateRule::Never
        || rules.short_circuit != PredicateRule::Never
        || matches!(rules.fold, FoldName::Custom { .. });
    match (op, table.table.rules().fold()) {
        _ if shows => First::Nothing,
        (WriteOp::Put, _) => First::Later,
        (WriteOp::Fold, Some(fold)) if !fold.has_delete() => First::Fold(Arc::clone(fold)),
        _ => First::Nothing,
    }
}

struct Work<'t> {
    table: &'t Placed,
    op: WriteOp,
    skips: bool,
    encoder: Encoder<'t>,
    folds: First,
}

/// The ops of a chunk: keys and values one after the other.
struct Ops {
    first_row: u64,
    end_row: u64,
    rows: u64,
    bytes: Vec<u8>,
    /// Where each key and each value end.
    ends: Vec<(usize, usize)>,
    /// For each op, its new value, if one was folded onto it.
    folded: Vec<Option<Vec<u8>>>,
}

impl Work<'_> {
    fn wrong(&self, chunk: &Chunk, row: usize, why: &str) -> Error {
        let row = chunk.first_row + row as u64;
        Error::invalid(format!("row {row}: table `{}`{why}", self.table.name()))
            .advise("nothing is written; mend the row, or pass over what does not fit by skip_invalid=True")
    }

    fn cells(&self, chunk: &Chunk) -> Result<Vec<Cells>> {
        chunk.cells().map_err(|why| Error::invalid(format!("table `{}`: {why}", self.table.name())))
    }

    #[inline]
    fn key(&self, cells: &[Cells], row: usize, key: &mut Vec<u8>) -> std::result::Result<(), String> {
        key.clear();
        self.encoder.key(cells, row, key).map_err(|why| format!(": {why}"))?;
        match key.len() > KEY_BYTES_MAX {
            true => Err(format!(": the key has {} bytes; {KEY_BYTES_MAX} are the most", key.len())),
            false => Ok(()),
        }
    }

    /// Encodes one row. None if there is nothing to write.
    #[inline]
    fn row(
        &self,
        cells: &[Cells],
        row: usize,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> std::result::Result<Option<()>, String> {
        value.clear();
        self.key(cells, row, key)?;
        let read = self.encoder.value(cells, row, value).map_err(|why| self.at_key(key, why))?;
        match (read, self.op) {
            (Row::Whole, _) if value.len() > VALUE_BYTES_MAX => Err(self.at_key(
                key,
                format!(
                    "the value has {} bytes; {VALUE_BYTES_MAX} are the most, but for `writer`",
                    value.len()
                ),
            )),
            (Row::Whole, _) => Ok(Some(())),
            (Row::Nothing, WriteOp::Fold) => Ok(None),
            (Row::Nothing, _) => Err(self.at_key(key, "the value is null, which cannot be put".to_owned())),
        }
    }

    #[cold]
    fn at_key(&self, key: &[u8], why: String) -> String {
        format!(", key {}: {why}", key_text(self.table, key))
    }

    /// Checks all rows of a chunk.
    fn check(&self, chunk: &Chunk) -> Result<()> {
        let cells = self.cells(chunk)?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for row in 0..chunk.len {
            self.row(&cells, row, &mut key, &mut value).map_err(|why| self.wrong(chunk, row, &why))?;
        }
        Ok(())
    }

    fn encode(&self, chunk: &Chunk) -> Result<Ops> {
        let cells = self.cells(chunk)?;
        if matches!(self.folds, First::Stats) {
            return self.encode_stats(chunk, &cells);
        }
        let (mut key, mut value, mut folded) = (Vec::new(), Vec::new(), Vec::new());
        let mut ops = Ops::new(chunk);
        let (hasher, mut places) = (DefaultHashBuilder::default(), HashTable::<usize>::new());
        for row in 0..chunk.len {
            match self.row(&cells, row, &mut key, &mut value) {
                Ok(Some(())) => {}
                Ok(None) => continue,
                Err(_) if self.skips => continue,
                Err(why) => return Err(self.wrong(chunk, row, &why)),
            }
            ops.rows += 1;
            if matches!(self.folds, First::Nothing) {
                ops.push(&key, &value);
                continue;
            }
            let hash = hasher.hash_one(key.as_slice());
            match places.find_mut(hash, |place| ops.key(*place) == key) {
                Some(place) if self.fold(&mut ops, *place, &key, &value, &mut folded) => {}
                Some(place) => {
                    *place = ops.ends.len(); // what comes later folds onto this one
                    ops.push(&key, &value);
                }
                None => {
                    places.insert_unique(hash, ops.ends.len(), |place| hasher.hash_one(ops.key(*place)));
                    ops.push(&key, &value);
                }
            }
        }
        Ok(ops)
    }

    fn encode_stats(&self, chunk: &Chunk, cells: &[Cells]) -> Result<Ops> {
        let (hasher, mut places) = (DefaultHashBuilder::default(), HashTable::<usize>::new());
        let (mut ops, mut key, mut stats) = (Ops::new(chunk), Vec::new(), Vec::<Stats>::new());
        for row in 0..chunk.len {
            match self.key(cells, row, &mut key) {
                Ok(()) => {}
                Err(_) if self.skips => continue,
                Err(why) => return Err(self.wrong(chunk, row, &why)),
            }
            let Some(number) = self.encoder.number(cells, row) else { continue };
            ops.rows += 1;
            let hash = hasher.hash_one(key.as_slice());
            match places.find(hash, |place| ops.key(*place) == key) {
                Some(place) => stats[*place].add(number),
                None => {
                    places.insert_unique(hash, ops.ends.len(), |place| hasher.hash_one(ops.key(*place)));
                    ops.push(&key, &[]);
                    stats.push(Stats::of(number));
                }
            }
        }
        ops.folded = stats.iter().map(|stats| Some(stats.to_bytes())).collect();
        Ok(ops)
    }

    /// Folds an operand onto an earlier one. False if that is not possible.
    fn fold(&self, ops: &mut Ops, place: usize, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> bool {
        let First::Fold(fold) = &self.folds else {
            ops.folded[place] = Some(value.to_vec());
            return true;
        };
        out.clear();
        match fold.fold(key, ops.value(place), value, out) {
            // If the result of operands is too long for a record, they stay separate, and the store
            // folds them.
            Ok(Outcome::Value) if out.len() > VALUE_BYTES_MAX => false,
            Ok(Outcome::Value) => {
                let kept = ops.folded[place].get_or_insert_default();
                std::mem::swap(kept, out);
                true
            }
            Ok(Outcome::KeepEarlier) => true,
            Ok(Outcome::KeepLater) => {
                ops.folded[place] = Some(value.to_vec());
                true
            }
            Ok(Outcome::Delete) | Err(_) => false,
        }
    }

    /// Writes the ops of a chunk in one commit. In a batch or a transaction, they are written with
    /// its commit.
    fn commit(&self, ops: &Ops) -> Result<()> {
        let rows = (0..ops.ends.len()).map(|place| (ops.key(place), ops.value(place)));
        if !matches!(self.table.place, Place::Now) {
            return rows
                .into_iter()
                .try_for_each(|(key, value)| self.table.write(self.op, key, value).map(drop));
        }
        let mut batch = self.table.store.batch();
        for (key, value) in rows {
            if batch.len_bytes() + key.len() + value.len() > folddb::limits::BATCH_BYTES_MAX / 2 {
                batch.commit(self.table.durability)?;
            }
            batch.write(&self.table.table, self.op, key, value);
        }
        batch.commit(self.table.durability).map(drop)
    }
}

impl Ops {
    fn new(chunk: &Chunk) -> Ops {
        Ops {
            first_row: chunk.first_row,
            end_row: chunk.first_row + chunk.len as u64,
            rows: 0,
            bytes: Vec::with_capacity(chunk.len * 16),
            ends: Vec::with_capacity(chunk.len / 4),
            folded: Vec::new(),
        }
    }

    #[inline]
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
        self.folded.push(None);
    }

    #[inline]
    fn key(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1].1 };
        &self.bytes[start..self.ends[place].0]
    }

    #[inline]
    fn value(&self, place: usize) -> &[u8] {
        match &self.folded[place] {
            Some(value) => value,
            None => &self.bytes[self.ends[place].0..self.ends[place].1],
        }
    }
}

/// Runs `work` on all chunks by several threads, and `then` on the results, in order, by this
/// thread. The first error ends it.
fn in_order<T: Send>(
    chunks: &[Chunk],
    work: impl Fn(&Chunk) -> Result<T> + Sync,
    mut then: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8).min(chunks.len());
    if threads <= 1 {
        return chunks.iter().try_for_each(|chunk| then(work(chunk)?));
    }
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::sync_channel(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, has_failed, work) = (&next, &has_failed, &work);
            scope.spawn(move || {
                while !has_failed.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(chunk) = chunks.get(number) else { return };
                    if sender.send((number, work(chunk))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let done = take_in_order(&receiver, &mut then);
        has_failed.store(true, Ordering::Relaxed);
        drop(receiver); // a thread that waits to send ends
        done
    })
}

fn take_in_order<T>(
    receiver: &mpsc::Receiver<(usize, Result<T>)>,
    then: &mut impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let (mut early, mut due) = (BTreeMap::new(), 0);
    while let Ok((number, done)) = receiver.recv() {
        early.insert(number, done);
        while let Some(done) = early.remove(&due) {
            then(done?)?;
            due += 1;
        }
    }
    Ok(())
}
