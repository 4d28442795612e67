//! Rows of any scan: of a sorted table, a hashed one, or either in a transaction.
//!
//! ```text
//!   a transaction   rows of its snapshot   ─┐ in one order; where both have a key, the ops are applied to what it has
//!                   keys it has written to ─┘ (hashed: as the walk meets them, the others after its end)
//!                   and notes how far it has come, and until when all that it has shown lasts
//! ```
//!
//! Used by `bytes.rs`, and by code that reads a whole table.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use folddb_base::{ErrorKind, OpBuf, Result};
use folddb_host::sync::Mutex;

use crate::uncommitted::{DeletedRange, Inside, OwnOps, applied, deleted, is_in_any};
use folddb_engine::read::get;
use folddb_engine::read::hashed_scan::HashedRows;
use folddb_engine::read::scan::{Rows, ScanPlan, Wanted};
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::At;
use folddb_engine::values::head::{self, Head};
use folddb_engine::write::read_set::Passed;

/// See [`AnyRows::cursor_parts`].
type CursorParts<'r> = ((&'r Arc<Engine>, &'r Arc<TableCore>), (&'r ScanPlan, At), &'r [u8]);

/// Rows of any kind.
pub(crate) enum AnyRows {
    Sorted(Box<Rows>),
    Hashed(Box<HashedRows>),
    Inside(Box<InsideRows>),
}

/// A value, if it is not too long to be held.
pub(crate) enum Short<'r> {
    Value(&'r [u8]),
    /// Its head instead.
    Long(Head),
}

impl AnyRows {
    /// Starts a scan.
    pub(crate) fn start(engine: &Arc<Engine>, table: &Arc<TableCore>, plan: ScanPlan) -> Result<AnyRows> {
        match table.hashed.is_some() {
            false => Rows::start(engine, table, plan).map(|rows| AnyRows::Sorted(Box::new(rows))),
            true => HashedRows::start(engine, table, &plan).map(|rows| AnyRows::Hashed(Box::new(rows))),
        }
    }

    /// The same, possibly in a transaction.
    pub(crate) fn start_in(
        engine: &Arc<Engine>,
        table: &Arc<TableCore>,
        plan: ScanPlan,
        inside: Option<&Inside>,
    ) -> Result<AnyRows> {
        match inside {
            None => AnyRows::start(engine, table, plan),
            Some(inside) => {
                let own = VecDeque::from(inside.own_of(table, &plan));
                let deleted = inside.deleted_of(table);
                let range = (plan.low.clone(), plan.high.clone());
                let direction = plan.direction;
                let base = AnyRows::start(engine, table, plan)?;
                let passed = inside.reads.note_scan(table, range, direction);
                Ok(AnyRows::Inside(Box::new(InsideRows::new(base, own, deleted, passed))))
            }
        }
    }

    /// The table of the scan, its plan with the moment that it reads at, and the key of its last
    /// row.
    pub(crate) fn cursor_parts(&self) -> CursorParts<'_> {
        match self {
            AnyRows::Sorted(rows) => (rows.owner(), rows.plan(), rows.key()),
            AnyRows::Hashed(rows) => (rows.owner(), rows.plan(), rows.key()),
            AnyRows::Inside(rows) => rows.cursor_parts(),
        }
    }

    /// The next key and its value.
    pub(crate) fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match self {
            AnyRows::Sorted(rows) => rows.next_row(),
            AnyRows::Hashed(rows) => rows.next_row(),
            AnyRows::Inside(rows) => Ok(if rows.advance()? { Some(rows.row()) } else { None }),
        }
    }

    /// The next key and the head of its value; only if heads are wanted.
    pub(crate) fn next_head(&mut self) -> Result<Option<(&[u8], Head)>> {
        match self {
            AnyRows::Sorted(rows) => rows.next_head(),
            AnyRows::Hashed(rows) => rows.next_head(),
            AnyRows::Inside(rows) => Ok(if rows.advance()? { rows.head() } else { None }),
        }
    }

    /// The last row, or the head of its value if that is separated and long; only if short values
    /// are wanted.
    pub(crate) fn short(&mut self) -> (&[u8], Short<'_>) {
        match self {
            AnyRows::Sorted(rows) => {
                let head = rows.take_head();
                let (key, value) = rows.row();
                (key, head.map_or(Short::Value(value), Short::Long))
            }
            AnyRows::Hashed(rows) => match rows.row() {
                (key, Some(value)) => (key, Short::Value(value)),
                (key, None) => (key, rows.long_head().map_or(Short::Value(&[]), Short::Long)),
            },
            AnyRows::Inside(rows) => match &rows.shown {
                Some((key, value)) => (key, Short::Value(value)),
                None => rows.base.short(),
            },
        }
    }

    /// The last row.
    pub(crate) fn row(&self) -> (&[u8], &[u8]) {
        match self {
            AnyRows::Sorted(rows) => rows.row(),
            AnyRows::Hashed(rows) => rows.row_as_wanted(),
            AnyRows::Inside(rows) => rows.row(),
        }
    }

    /// The head of the last row; only if heads are wanted.
    fn head(&mut self) -> Option<Head> {
        match self {
            AnyRows::Sorted(rows) => rows.take_head(),
            AnyRows::Hashed(rows) => rows.head(),
            AnyRows::Inside(rows) => rows.head().map(|(_, head)| head),
        }
    }

    /// The deadline of the last row's value; none if it lasts forever, or was written by the
    /// transaction itself.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        match self {
            AnyRows::Sorted(rows) => rows.deadline_ms(),
            AnyRows::Hashed(rows) => rows.deadline_ms(),
            AnyRows::Inside(rows) => rows.table_deadline_ms(),
        }
    }
}

/// Rows as a transaction sees them.
pub(crate) struct InsideRows {
    /// Those of its snapshot.
    base: AnyRows,
    /// Those are at a row that was not returned yet, or at a key whose fold fails.
    ahead: Option<Result<()>>,
    /// What the transaction has written to the remaining keys. For a hashed table: to all keys;
    /// those without ops were already reached.
    own: VecDeque<OwnOps>,
    /// The ranges that it has deleted.
    deleted: Vec<DeletedRange>,
    /// The last row, if the transaction has written to its key.
    shown: Option<(Vec<u8>, Vec<u8>)>,
    passed: Arc<Mutex<Passed>>,
}

/// Which row is next.
enum Turn {
    /// The present row of the snapshot, or its end.
    Base,
    /// A key that was written to, which the snapshot may have, too.
    Own { ops: OwnOps, is_met: bool },
}

impl InsideRows {
    fn new(
        base: AnyRows,
        own: VecDeque<OwnOps>,
        deleted: Vec<DeletedRange>,
        passed: Arc<Mutex<Passed>>,
    ) -> InsideRows {
        InsideRows { base, ahead: None, own, deleted, shown: None, passed }
    }

    fn cursor_parts(&self) -> CursorParts<'_> {
        let (owner, plan, key) = self.base.cursor_parts();
        match &self.shown {
            Some((own, _)) if owner.1.hashed.is_none() => (owner, plan, own),
            _ => (owner, plan, key), // a walk continues at its table's place
        }
    }

    /// The last row.
    fn row(&self) -> (&[u8], &[u8]) {
        match &self.shown {
            Some((key, value)) => (key, value),
            None => self.base.row(),
        }
    }

    /// The key of the last row, and the head of its value.
    fn head(&mut self) -> Option<(&[u8], Head)> {
        if let Some((key, value)) = &self.shown {
            let table = self.base.cursor_parts().0.1;
            return Some((key, head::of_value(table, key, value)));
        }
        let head = self.base.head()?;
        Some((self.base.row().0, head))
    }

    /// Moves to the next row; false at the end.
    fn advance(&mut self) -> Result<bool> {
        let moved = self.step();
        let mut passed = self.passed.lock();
        match &moved {
            Ok(false) => passed.end(),
            Ok(true) => passed.through(self.cursor_parts().2, self.table_deadline_ms()),
            // The next call continues after it.
            Err(error) if error.kind() == ErrorKind::FoldFailed => {
                passed.through(self.cursor_parts().2, None)
            }
            Err(_) => {}
        }
        drop(passed);
        moved
    }

    /// The deadline of the last row's value, if that is the snapshot's.
    fn table_deadline_ms(&self) -> Option<u64> {
        if self.shown.is_none() { self.base.deadline_ms() } else { None }
    }

    fn step(&mut self) -> Result<bool> {
        loop {
            self.shown = None;
            if self.ahead.is_none() {
                match self.base.next_row().map(|row| row.is_some()) {
                    Ok(is_row) => self.ahead = is_row.then_some(Ok(())),
                    Err(error) if error.kind() == ErrorKind::FoldFailed => self.ahead = Some(Err(error)),
                    Err(error) => return Err(error),
                }
            }
            match self.turn() {
                Turn::Base => return self.ahead.take().transpose().map(|row| row.is_some()),
                Turn::Own { ops: (key, ops), is_met } => {
                    if self.take_own(key, &ops, is_met)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Takes the state of a key that was written to; false if it is absent.
    fn take_own(&mut self, key: Vec<u8>, ops: &[OpBuf], is_met: bool) -> Result<bool> {
        let ((engine, table), (plan, _), _) = self.base.cursor_parts();
        let past = match is_met {
            true => get::get(engine, table, &key, plan.at, |value| Ok(value.map(<[u8]>::to_vec))),
            false => Ok(None),
        };
        let applied = applied(engine, table, &key, past, ops);
        let wants_value = plan.wanted != Wanted::Nothing;
        if is_met {
            self.passed.lock().through(&key, self.base.deadline_ms());
            self.ahead = None;
        }
        self.shown = Some((key, Vec::new())); // its position, even if the fold fails
        let Some(value) = applied? else { return Ok(false) };
        if let Some((_, shown)) = self.shown.as_mut().filter(|_| wants_value) {
            *shown = value;
        }
        Ok(true)
    }

    fn turn(&mut self) -> Turn {
        let ((_, table), (plan, _), base) = self.base.cursor_parts();
        let is_ahead = self.ahead.is_some();
        if table.hashed.is_some() {
            if !is_ahead {
                while let Some(own) = self.own.pop_front() {
                    if !own.1.is_empty() {
                        return Turn::Own { ops: own, is_met: false };
                    }
                }
                return Turn::Base;
            }
            let met = self.own.binary_search_by(|(key, _)| key.as_slice().cmp(base));
            return match met {
                Ok(at) => {
                    let (key, ops) = &mut self.own[at];
                    Turn::Own { ops: (key.clone(), std::mem::take(ops)), is_met: true }
                }
                Err(_) => Turn::Base,
            };
        }
        let Some((key, _)) = self.own.front() else { return self.base_or_deleted(table, base) };
        let placed = match is_ahead {
            true => plan.compare(&table.rules.order, key, base),
            false => Ordering::Less,
        };
        let next = if placed.is_le() { self.own.pop_front() } else { None };
        match next {
            Some(ops) => Turn::Own { ops, is_met: placed.is_eq() },
            None => self.base_or_deleted(table, base),
        }
    }

    /// The snapshot's row, unless the transaction has deleted its range.
    fn base_or_deleted(&self, table: &TableCore, key: &[u8]) -> Turn {
        match self.ahead.is_some() && is_in_any(table, &self.deleted, key) {
            true => Turn::Own { ops: (key.to_vec(), vec![deleted()]), is_met: true },
            false => Turn::Base,
        }
    }
}
