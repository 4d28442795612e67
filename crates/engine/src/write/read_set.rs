//! The read set of a transaction, and whether it still holds at commit.
//!
//! ```text
//!   keys      looked up one by one; also those that an index led to
//!   ranges    that scans went over, as far as they came: up to the last row that was handed out, or all where they came to their end
//!   tables    hashed ones, as wholes: a walk over one is in no order of keys
//!
//!   check         before any lock: may read runs
//!   check_rest    under the commit lock: what was written meanwhile, which is in memory, and what time it is
//! ```
//!
//! Only what was *read* counts: two transactions that fold onto the same key without reading it do
//! not conflict. Absence was read, too: a new key in a range, or a range delete that touches it, is
//! a conflict. It is also a conflict if writes between the two checks have already been flushed, so
//! that nobody waits for the disk under the lock.
//!
//! Newer records stay separate while the snapshot is a boundary, which that of a transaction is
//! until it ends. If it has ended because of its age, a delete that would be a conflict may be
//! merged away, and a record may have the seq of a newer one that it was merged with. So the check
//! is not valid, whatever it has found. The index of a hashed table notes every change while a
//! snapshot lives; relocating a record is not a change.
//!
//! A value that was read and has expired by the time of the commit is a conflict, too.
//!
//! Called by `transaction` and `commit`, and by all reads in a transaction.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use folddb_base::checksum::key_hash;
use folddb_base::stamp::NEVER;
use folddb_base::stream::Direction;
use folddb_base::{Error, ErrorKind, RecordStream, Result, Seq, TableId};
use folddb_host::sync::Mutex;
use folddb_memtable::ReadAt;
use folddb_rules::KeyOrder;
use folddb_rules::time::unix_ms;
use folddb_run::{Rank, ReadMode, RunCursor, Tally};

use crate::read::{head, pinned};
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::snapshots::At;
use crate::state::view::TableView;

/// A range of keys, in the order of its table.
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// What a transaction reads at a snapshot, noted by its reads.
pub struct Reads {
    at: At,
    noted: Mutex<BTreeMap<TableId, Noted>>,
}

impl std::fmt::Debug for Reads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reads at seq {}, of {} tables", self.at.seq, self.noted.lock().len())
    }
}

/// The reads of a table.
struct Noted {
    table: Arc<TableCore>,
    keys: BTreeSet<Vec<u8>>,
    scans: Vec<Arc<Mutex<Passed>>>,
}

/// The part of a range that a scan has covered.
pub struct Passed {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    direction: Direction,
    /// The last key that it has returned.
    last: Option<Vec<u8>>,
    /// It has reached its end, or walks over a table without an order.
    is_all: bool,
    /// All values that it has returned last until this time.
    lasts_until_ms: u64,
}

impl Passed {
    /// It has returned the row of this key, with this deadline.
    pub fn through(&mut self, key: &[u8], deadline_ms: Option<u64>) {
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        self.lasts_until_ms = self.lasts_until_ms.min(deadline_ms.unwrap_or(NEVER));
    }

    /// It has reached its end.
    pub fn end(&mut self) {
        self.is_all = true;
    }

    fn range(&self) -> Option<Range> {
        match (&self.last, self.direction) {
            _ if self.is_all => Some((self.low.clone(), self.high.clone())),
            (None, _) => None,
            (Some(last), Direction::Forward) => Some((self.low.clone(), Bound::Included(last.clone()))),
            (Some(last), Direction::Reversed) => Some((Bound::Included(last.clone()), self.high.clone())),
        }
    }
}

impl Reads {
    /// An empty read set at the snapshot `at`, which lives as long as this.
    pub fn new(at: At) -> Reads {
        Reads { at, noted: Mutex::default() }
    }

    fn note(&self, table: &Arc<TableCore>, note: impl FnOnce(&mut Noted)) {
        let mut noted = self.noted.lock();
        note(noted.entry(table.id).or_insert_with(|| Noted {
            table: Arc::clone(table),
            keys: BTreeSet::new(),
            scans: Vec::new(),
        }));
    }

    /// Notes a key.
    pub fn note_key(&self, table: &Arc<TableCore>, key: &[u8]) {
        self.note(table, |noted| {
            if !noted.keys.contains(key) {
                noted.keys.insert(key.to_vec());
            }
        });
    }

    /// Notes the begin of a range scan, which then reports its progress.
    pub fn note_scan(
        &self,
        table: &Arc<TableCore>,
        (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>),
        direction: Direction,
    ) -> Arc<Mutex<Passed>> {
        let is_all = table.hashed.is_some();
        let passed = Passed { low, high, direction, last: None, is_all, lasts_until_ms: NEVER };
        let passed = Arc::new(Mutex::new(passed));
        self.note(table, |noted| noted.scans.push(Arc::clone(&passed)));
        passed
    }

    /// Takes all notes, to be checked by the commit.
    pub fn take(&self) -> ReadSet {
        let noted = std::mem::take(&mut *self.noted.lock());
        ReadSet { at: self.at, tables: noted.into_values().map(ReadOf::new).collect() }
    }
}

/// All reads of a transaction.
pub struct ReadSet {
    at: At,
    tables: Vec<ReadOf>,
}

/// All reads of a table.
struct ReadOf {
    table: Arc<TableCore>,
    keys: BTreeSet<Vec<u8>>,
    ranges: Ranges,
    /// All values that scans have returned last until this time.
    lasts_until_ms: u64,
}

/// The result of checking reads before the commit lock is taken.
#[derive(Clone, Copy)]
pub struct Checked {
    /// Nothing was written to what was read up to this seq.
    seq: Seq,
    /// All values that were read last until this time.
    lasts_until_ms: u64,
}

impl ReadSet {
    /// Checks that nothing was written to the read set since it was read; returns up to when that
    /// holds.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]; [`ErrorKind::SnapshotTooOld`]; [`ErrorKind::Closed`] for a table
    /// that was dropped; a failed read.
    pub fn check(&self, engine: &Engine) -> Result<Checked> {
        let checked = Checked { seq: engine.published(), lasts_until_ms: self.lasts_until_ms(engine)? };
        self.check_alive()?;
        if checked.seq == self.at.seq || self.tables.is_empty() {
            return Ok(checked);
        }
        let unchanged = self.tables.iter().try_for_each(|read| {
            let view = read.table.view();
            read.check_memory(engine, &view, self.at.seq)?;
            read.check_runs(engine, &view, self.at.seq)
        });
        self.unless_ended(engine, unchanged)?;
        Ok(checked)
    }

    /// What a check has found, if the snapshot was a boundary all the time. If it has ended, merges
    /// have not kept the seqs of before and after it apart, so neither result means anything.
    fn unless_ended(&self, engine: &Engine, found: Result<()>) -> Result<()> {
        pinned::pinned_files_at(engine, Some(self.at))?;
        found
    }

    /// When the first of the values that were read expires.
    fn lasts_until_ms(&self, engine: &Engine) -> Result<u64> {
        let mut until_ms = NEVER;
        for read in self.tables.iter().filter(|read| read.table.expires || read.table.has_stamps) {
            until_ms = until_ms.min(read.lasts_until_ms);
            for key in &read.keys {
                match head::head(engine, &read.table, key, Some(self.at)) {
                    Ok(head) => {
                        until_ms = until_ms.min(head.and_then(|head| head.deadline).map_or(NEVER, unix_ms))
                    }
                    Err(error) if error.kind() == ErrorKind::FoldFailed => {} // there is no value that could expire
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(until_ms)
    }

    /// Fails if a table is dropped, since nothing is known of it any more.
    fn check_alive(&self) -> Result<()> {
        self.tables.iter().try_for_each(|read| read.table.check_alive())
    }

    /// The same for writes since that check, at the time of the commit. The caller holds the commit
    /// lock.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]; [`ErrorKind::SnapshotTooOld`].
    pub(crate) fn check_rest(&self, engine: &Engine, by: Checked, time_ms: Option<u64>) -> Result<()> {
        self.check_alive()?; // dropping a table takes no seq
        if by.lasts_until_ms < NEVER && time_ms.unwrap_or_else(|| clock::now_ms(engine)) >= by.lasts_until_ms
        {
            let message = "a value that the transaction read has expired since";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let checked = by.seq;
        if checked == engine.published() || self.tables.is_empty() {
            return Ok(());
        }
        let unchanged = self.tables.iter().try_for_each(|read| {
            let view = read.table.view();
            if view.runs.iter().any(|run| run.max_seq() > checked) {
                return Err(conflict(&read.table, None));
            }
            read.check_memory(engine, &view, checked)
        });
        self.unless_ended(engine, unchanged)
    }
}

impl ReadOf {
    fn new(noted: Noted) -> ReadOf {
        let (mut ranges, mut lasts_until_ms) = (Vec::new(), NEVER);
        for passed in &noted.scans {
            let passed = passed.lock();
            lasts_until_ms = lasts_until_ms.min(passed.lasts_until_ms);
            ranges.extend(passed.range());
        }
        let ranges = Ranges::of(&noted.table.rules.order, ranges);
        ReadOf { table: noted.table, keys: noted.keys, ranges, lasts_until_ms }
    }

    /// Fails if memory has something of it that is newer than `since`.
    fn check_memory(&self, engine: &Engine, view: &TableView, since: Seq) -> Result<()> {
        let table = &self.table;
        if let Some(hashed) = &table.hashed {
            let changed = self.keys.iter().find(|key| hashed.index.is_changed(hashed.point(key), since));
            let is_walked_and_changed = !self.ranges.0.is_empty() && hashed.index.has_changed(since);
            return match changed {
                None if !is_walked_and_changed => Ok(()),
                key => Err(conflict(table, key.map(Vec::as_slice))),
            };
        }
        if let Some(key) = self.keys.iter().find(|key| is_in_memory(engine, table, view, key, since)) {
            return Err(conflict(table, Some(key)));
        }
        self.ranges.check_memory(table, view, since)
    }

    /// Fails if a run has.
    fn check_runs(&self, engine: &Engine, view: &TableView, since: Seq) -> Result<()> {
        for key in &self.keys {
            if is_in_runs(engine, &self.table, view, key, since)? {
                return Err(conflict(&self.table, Some(key)));
            }
        }
        self.ranges.check_runs(&self.table, view, since)
    }
}

/// Whether a memtable or a range delete has something of `key` that is newer than `since`.
fn is_in_memory(engine: &Engine, table: &TableCore, view: &TableView, key: &[u8], since: Seq) -> bool {
    let order = &table.rules.order;
    if view.range_deletes.newest_over(order, key, Seq::MAX) > since {
        return true;
    }
    let sealed = view.sealed.iter().filter(|sealed| sealed.last_seq > since).map(|sealed| &sealed.memtable);
    std::iter::once(&view.active).chain(sealed).any(|memtable| {
        let mut is_newer = false;
        memtable.get(key, ReadAt::Published(&engine.published), |newest| {
            is_newer = newest.seq > since;
            ControlFlow::Break(())
        });
        is_newer
    })
}

/// Whether a run has.
fn is_in_runs(engine: &Engine, table: &TableCore, view: &TableView, key: &[u8], since: Seq) -> Result<bool> {
    let (order, hash) = (&table.rules.order, key_hash(key));
    let mut is_newer = false;
    let mut tally = Tally::default();
    for run in view.runs.iter().filter(|run| run.max_seq() > since) {
        let Some(part) = run.part_of(order, key) else { continue };
        let _ = part.file.part.get_as(Rank::Young, key, hash, Seq::MAX, &mut tally, &mut |newest| {
            is_newer |= newest.seq > since;
            Ok(ControlFlow::Break(()))
        })?;
    }
    engine.parts.count(&tally);
    Ok(is_newer)
}

/// Ranges of a table, disjoint and in its order.
struct Ranges(Vec<Range>);

impl Ranges {
    /// Joins those that share keys.
    fn of(order: &KeyOrder, mut ranges: Vec<Range>) -> Ranges {
        ranges.sort_by(|a, b| compare_lows(order, &a.0, &b.0));
        let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges.into_iter().filter(|(low, high)| is_range(order, low, high)) {
            match joined.last_mut() {
                Some(last) if is_range(order, &low, &last.1) => {
                    if compare_highs(order, &last.1, &high).is_lt() {
                        last.1 = high;
                    }
                }
                _ => joined.push((low, high)),
            }
        }
        Ranges(joined)
    }

    /// Whether a key is in one of them.
    fn have(&self, order: &KeyOrder, key: &[u8]) -> bool {
        let behind = self.0.partition_point(|(low, _)| is_above(order, low, key));
        self.0[..behind].last().is_some_and(|(_, high)| is_below(order, high, key))
    }

    /// Whether a range delete touches one of them.
    fn touch(&self, order: &KeyOrder, from: &[u8], to: &[u8]) -> bool {
        self.0.iter().any(|(low, high)| {
            let begins_before = match low {
                Bound::Unbounded => true,
                Bound::Included(low) | Bound::Excluded(low) => order.compare(low, to).is_lt(),
            };
            begins_before && is_below(order, high, from)
        })
    }

    fn check_memory(&self, table: &TableCore, view: &TableView, since: Seq) -> Result<()> {
        let order = &table.rules.order;
        if self.0.is_empty() {
            return Ok(());
        }
        let mut deletes = view.range_deletes.newer_than(since);
        if deletes.any(|range| self.touch(order, &range.from, &range.to)) {
            return Err(conflict(table, None));
        }
        let sealed = view.sealed.iter().filter(|sealed| sealed.last_seq > since);
        let mut hit = None;
        for memtable in std::iter::once(&view.active).chain(sealed.map(|sealed| &sealed.memtable)) {
            let is_hit = memtable.visit_newer(since, |record| match self.have(order, record.key) {
                true => {
                    hit = Some(record.key.to_vec());
                    ControlFlow::Break(())
                }
                false => ControlFlow::Continue(()),
            });
            if is_hit {
                return Err(conflict(table, hit.as_deref()));
            }
        }
        Ok(())
    }

    fn check_runs(&self, table: &TableCore, view: &TableView, since: Seq) -> Result<()> {
        let order = &table.rules.order;
        for run in view.runs.iter().filter(|run| run.max_seq() > since) {
            for (low, high) in &self.0 {
                let touched = run.parts.iter().filter(|part| {
                    part.file.part.facts().max_seq > since
                        && is_above(order, low, &part.high)
                        && is_below(order, high, &part.low)
                });
                let parts: Vec<_> = touched
                    .map(|part| (Arc::clone(&part.file.part), part.trim().map(<[u8]>::to_vec)))
                    .collect();
                if parts.is_empty() {
                    continue;
                }
                let cursor = RunCursor::new(parts, order.clone(), Direction::Forward, ReadMode::Cached);
                if let Some(key) = newer_in(cursor, order, (low, high), since)? {
                    return Err(conflict(table, Some(&key)));
                }
            }
        }
        Ok(())
    }
}

/// The first key of a range of which a run has something newer.
fn newer_in(
    mut cursor: RunCursor,
    order: &KeyOrder,
    (low, high): (&Bound<Vec<u8>>, &Bound<Vec<u8>>),
    since: Seq,
) -> Result<Option<Vec<u8>>> {
    match low.as_ref().map(Vec::as_slice) {
        Bound::Unbounded => cursor.seek_start()?,
        from => cursor.seek(from)?,
    }
    while let Some(record) = cursor.record() {
        if !is_below(order, high, record.key) {
            break;
        }
        if record.seq > since {
            return Ok(Some(record.key.to_vec()));
        }
        cursor.advance()?;
    }
    Ok(None)
}

/// Whether a key is between two bounds.
pub fn is_within(order: &KeyOrder, (low, high): (&Bound<Vec<u8>>, &Bound<Vec<u8>>), key: &[u8]) -> bool {
    is_above(order, low, key) && is_below(order, high, key)
}

/// Whether a key is on the inner side of a low bound.
fn is_above(order: &KeyOrder, low: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match low {
        Bound::Unbounded => true,
        Bound::Included(low) => order.compare(low, key).is_le(),
        Bound::Excluded(low) => order.compare(low, key).is_lt(),
    }
}

/// Whether a key is on the inner side of a high bound.
fn is_below(order: &KeyOrder, high: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match high {
        Bound::Unbounded => true,
        Bound::Included(high) => order.compare(key, high).is_le(),
        Bound::Excluded(high) => order.compare(key, high).is_lt(),
    }
}

/// Whether keys may be between two bounds.
fn is_range(order: &KeyOrder, low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> bool {
    match low {
        Bound::Unbounded => true,
        Bound::Included(low) => is_below(order, high, low),
        Bound::Excluded(low) => match high {
            Bound::Unbounded => true,
            Bound::Included(high) | Bound::Excluded(high) => order.compare(low, high).is_lt(),
        },
    }
}

fn compare_lows(order: &KeyOrder, a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> Ordering {
    let key = |bound: &Bound<Vec<u8>>| matches!(bound, Bound::Excluded(_));
    compare_bounds(order, a, b, Ordering::Less).then_with(|| key(a).cmp(&key(b)))
}

fn compare_highs(order: &KeyOrder, a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> Ordering {
    let key = |bound: &Bound<Vec<u8>>| matches!(bound, Bound::Included(_));
    compare_bounds(order, a, b, Ordering::Greater).then_with(|| key(a).cmp(&key(b)))
}

/// By their keys; `open` is the result for an open one.
fn compare_bounds(order: &KeyOrder, a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>, open: Ordering) -> Ordering {
    match (a, b) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => open,
        (_, Bound::Unbounded) => open.reverse(),
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => {
            order.compare(a, b)
        }
    }
}

fn conflict(table: &TableCore, key: Option<&[u8]>) -> Error {
    let name = &table.name;
    let message = match key.map(|key| table.rules.rules.key_codec().show_line(key)) {
        Some(key) => format!("key {key} of table `{name}` was written to since the transaction read it"),
        None => format!("table `{name}` was written to since the transaction read it"),
    };
    Error::new(ErrorKind::Conflict, message)
}

#[cfg(test)]
mod tests;
