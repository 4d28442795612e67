//! The walk over a whole hashed table: in the order of the points of its keys, which is no key
//! order.
//!
//! The index is read one shard at a time, and each record by itself: its head and key if only keys
//! are wanted, otherwise all of it. A walk sees the table as it was when it began, so it holds a
//! boundary like a snapshot. Used by `scan/rows.rs` of folddb.

use std::ops::Bound;
use std::sync::Arc;

use folddb_base::stream::Direction;
use folddb_base::{Error, Result};
use folddb_hash::{IndexCursor, Point, Slot};

use crate::read::scan::{ScanPlan, Wanted};
use crate::read::stop::Stop;
use crate::read::{hashed, pinned};
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::snapshots::{At, Held, HeldFor};
use crate::values::hashed_record::{Found, Reading, newest_first};
use crate::values::head::Head;

/// A running walk.
pub struct HashedRows {
    engine: Arc<Engine>,
    table: Arc<TableCore>,
    plan: ScanPlan,
    at: At,
    /// The remaining slots of the present shard, the next one last.
    slots: Vec<(Point, Slot)>,
    next: Option<IndexCursor>,
    record: Vec<u8>,
    /// The key of the last row.
    last: Vec<u8>,
    found: Option<Found>,
    _held: Option<Held>,
}

impl HashedRows {
    /// Begins a walk.
    ///
    /// # Errors
    /// The plan needs an order; the table is dropped.
    pub fn start(engine: &Arc<Engine>, table: &Arc<TableCore>, plan: &ScanPlan) -> Result<HashedRows> {
        let from_start = plan.low == Bound::Unbounded || plan.resumed.as_ref() == Some(&plan.low);
        if !from_start || plan.high != Bound::Unbounded || plan.direction != Direction::Forward {
            return Err(no_order(table));
        }
        let held = match plan.at {
            Some(_) => None,
            None => {
                let _still = engine.still();
                let at = At::new(engine.published(), clock::now_ms(engine));
                Some(engine.boundaries.hold(at, HeldFor::Work, engine.host.clock.monotonic()))
            }
        };
        let at = plan.at.or(held.as_ref().map(|held| held.at)).unwrap_or(At::new(0, 0));
        engine.check_readable(table)?;
        Ok(HashedRows {
            engine: Arc::clone(engine),
            table: Arc::clone(table),
            plan: plan.clone(),
            at,
            slots: Vec::new(),
            next: Some(place_of(table, &plan.low)),
            record: Vec::new(),
            last: Vec::new(),
            found: None,
            _held: held,
        })
    }

    /// The engine and the table whose rows these are.
    pub fn owner(&self) -> (&Arc<Engine>, &Arc<TableCore>) {
        (&self.engine, &self.table)
    }

    /// Its plan, and the moment that it reads at.
    pub fn plan(&self) -> (&ScanPlan, At) {
        (&self.plan, self.at)
    }

    /// The key of the last row that could be read.
    pub fn key(&self) -> &[u8] {
        &self.last
    }

    /// The next slot; none at the end.
    fn next_slot(&mut self) -> Result<Option<Slot>> {
        self.engine.check_here()?;
        loop {
            if let Some((_, slot)) = self.slots.pop() {
                return Ok(Some(slot));
            }
            let (Some(from), Some(hashed)) = (self.next, &self.table.hashed) else { return Ok(None) };
            let range = hashed.index.range(from, Some(self.at.seq))?;
            self.engine.check_readable(&self.table)?;
            pinned::pinned_files_at(&self.engine, Some(self.at))?; // if it is over, what it sees is forgotten
            let next = range.next;
            self.slots = self.newest_of(range.keys)?;
            self.slots.reverse();
            self.next = next;
        }
    }

    /// The newest version of each key, if a table keeps several: those of one key have one point.
    fn newest_of(&mut self, keys: Vec<(Point, Slot)>) -> Result<Vec<(Point, Slot)>> {
        if self.table.versions() == 1 {
            return Ok(keys);
        }
        let of = self.engine.values.files.present();
        let mut newest = Vec::with_capacity(keys.len());
        for same in keys.chunk_by(|one, next| one.0 == next.0) {
            let mut slots: Vec<Slot> = same.iter().map(|(_, slot)| *slot).collect();
            newest_first(&of, &mut slots);
            let mut seen: Vec<Vec<u8>> = Vec::new();
            for slot in slots {
                if same.len() > 1 {
                    let Some(found) = self.read(slot, Reading::Head)? else { continue };
                    let key = found.key(&self.record);
                    if seen.iter().any(|other| other == key) {
                        continue;
                    }
                    seen.push(key.to_vec());
                }
                newest.push((same[0].0, slot));
            }
        }
        Ok(newest)
    }

    fn next_found(&mut self) -> Result<Option<Found>> {
        let reading = match self.plan.wanted {
            Wanted::Value => Reading::Whole,
            Wanted::Short => Reading::Short,
            Wanted::Nothing | Wanted::Head => Reading::Head,
        };
        loop {
            let Some(slot) = self.next_slot()? else { return Ok(None) };
            let Some(found) = self.read(slot, reading)? else { continue };
            if !found.is_alive(self.at.time_ms) {
                self.plan.passed_max -= 1;
                if self.plan.passed_max == 0 {
                    self.end();
                }
                continue;
            }
            self.last.clear();
            self.last.extend_from_slice(found.key(&self.record));
            // A resumed walk begins with the key that it had last.
            if !matches!(&self.plan.low, Bound::Excluded(had) if *had == self.last) {
                return Ok(Some(found));
            }
        }
    }

    fn read(&mut self, slot: Slot, reading: Reading) -> Result<Option<Found>> {
        // Every segment map that begins while the boundary is held has what it sees.
        let of = self.engine.values.files.present();
        let found = hashed::read_slot(&self.engine, &of, &self.table, slot, None, reading, &mut self.record);
        found.map_err(|error| match pinned::pinned_files_at(&self.engine, Some(self.at)) {
            Err(over) => over, // the value may be gone, too
            Ok(_) => error.context(format!("a value of table `{}`", self.table.name)),
        })
    }

    /// The next key, and its value if wanted.
    pub fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some(found) = self.next_found().inspect_err(|_| self.end())? else { return Ok(None) };
        self.found = Some(found);
        let wants_value = matches!(self.plan.wanted, Wanted::Value | Wanted::Short);
        let value = if wants_value { found.value(&self.record) } else { &[] };
        Ok(Some((found.key(&self.record), value)))
    }

    /// The key of the last row, and its value, unless that is long and only short ones are wanted.
    pub fn row(&self) -> (&[u8], Option<&[u8]>) {
        let short = self.found.filter(|found| !found.is_long());
        (&self.last, short.map(|found| found.value(&self.record)))
    }

    /// The same, with its value if wanted.
    pub fn row_as_wanted(&self) -> (&[u8], &[u8]) {
        let wants_value = matches!(self.plan.wanted, Wanted::Value | Wanted::Short);
        let found = self.found.filter(|_| wants_value);
        (&self.last, found.map_or(&[], |found| found.value(&self.record)))
    }

    /// The head of the last row's value.
    pub fn head(&self) -> Option<Head> {
        self.found.as_ref().map(|found| self.head_of(found))
    }

    /// The deadline of the last row's value; none if it lasts forever.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.found.and_then(|found| found.deadline_ms())
    }

    /// The head of the last row's value, if that was left out.
    pub fn long_head(&self) -> Option<Head> {
        self.found.filter(Found::is_long).map(|found| self.head_of(&found))
    }

    /// The next key, and the head of its value.
    pub fn next_head(&mut self) -> Result<Option<(&[u8], Head)>> {
        let Some(found) = self.next_found().inspect_err(|_| self.end())? else { return Ok(None) };
        let head = self.head_of(&found);
        Ok(Some((found.key(&self.record), head)))
    }

    /// The head of a value that was found: the present segment map has what the boundary sees.
    fn head_of(&self, found: &Found) -> Head {
        found.head_of_value(&self.engine.values.files.present())
    }

    /// How many keys are left. Reads no record, unless values may have expired or keys been
    /// deleted.
    pub fn count(&mut self, limit: usize, stop: &Stop) -> Result<u64> {
        let mut count = 0;
        if self.table.records_of().has_fronts {
            self.plan.wanted = Wanted::Nothing;
            while count < limit as u64 && self.next_found()?.is_some() {
                count += 1;
                stop.check()?;
            }
            return Ok(count);
        }
        while count < limit as u64 && self.next_slot()?.is_some() {
            count += 1;
            stop.check()?;
        }
        Ok(count)
    }

    /// It has met damage: a walk that continued would appear complete.
    fn end(&mut self) {
        (self.next, self.slots) = (None, Vec::new());
    }
}

/// Where a walk resumes that was at a key: at its point.
fn place_of(table: &TableCore, low: &Bound<Vec<u8>>) -> IndexCursor {
    let (Bound::Included(key) | Bound::Excluded(key)) = low else { return IndexCursor::default() };
    if matches!(low, Bound::Included(_)) && key.is_empty() {
        return IndexCursor::default(); // no row could be read
    }
    let point = table.hashed.as_ref().map_or(0, |hashed| hashed.point(key).bits());
    IndexCursor::from_number(point).unwrap_or_default()
}

/// The error for a request that needs an order from a hashed table.
pub fn no_order(table: &TableCore) -> Error {
    Error::invalid(format!(
        "table `{}` is hashed, so its keys have no order: scan all of it, or use a sorted table for ranges, prefixes, \
         reverse scans and comparisons",
        table.name
    ))
}
