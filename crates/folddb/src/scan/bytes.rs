//! Scans as users narrow and iterate them.

use std::cmp::Ordering;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use folddb_base::stream::Direction;
use folddb_base::{Error, Result};
use folddb_rules::KeyOrder;
use folddb_rules::codec::KeyRange;
use folddb_rules::time::moment;

use crate::scan::cursor::{Cursor, Position, Resume};
use crate::scan::rows::{AnyRows, Short};
use crate::uncommitted::Inside;
use folddb_engine::read::get;
use folddb_engine::read::scan::{ScanPlan, Wanted};
use folddb_engine::read::stop::Stop;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::Held;
use folddb_engine::values::head::Head;
use folddb_engine::write::stream;
use folddb_engine::write::stream::ValueReader;

/// A scan of keys and values as bytes. Narrow it, then iterate, or take lent rows from
/// [`BytesScan::rows`].
#[derive(Clone)]
#[must_use = "a scan does nothing until it is iterated"]
pub struct BytesScan {
    pub(crate) engine: Arc<Engine>,
    pub(crate) table: Arc<TableCore>,
    pub(crate) plan: ScanPlan,
    pub(crate) limit: usize,
    pub(crate) mistake: Option<Error>,
    /// The snapshot that it reads at, which must outlive it.
    pub(crate) held: Option<Arc<Held>>,
    /// The transaction that it is a scan of.
    pub(crate) inside: Option<Inside>,
    /// The flag that stops long work on it.
    pub(crate) stop: Stop,
}

impl std::fmt::Debug for BytesScan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a scan of table `{}`", self.table.name)
    }
}

impl BytesScan {
    pub(crate) fn new(engine: &Arc<Engine>, table: &Arc<TableCore>, plan: ScanPlan) -> BytesScan {
        BytesScan {
            engine: Arc::clone(engine),
            table: Arc::clone(table),
            plan,
            limit: usize::MAX,
            mistake: None,
            held: None,
            inside: None,
            stop: Stop::default(),
        }
    }

    /// The rest of a cursor's scan.
    pub(crate) fn resume(
        engine: &Arc<Engine>,
        table: &Arc<TableCore>,
        cursor: &Cursor,
        how: Resume,
    ) -> Result<BytesScan> {
        let (plan, held) = cursor.resume(engine, table, how)?;
        Ok(BytesScan { held: held.map(Arc::new), ..BytesScan::new(engine, table, plan) })
    }

    pub(crate) fn holding(mut self, held: Arc<Held>) -> BytesScan {
        self.held = Some(held);
        self
    }

    /// The same in a transaction.
    pub(crate) fn inside(mut self, inside: Inside) -> BytesScan {
        self.inside = Some(inside);
        self
    }

    pub(crate) fn failing(mut self, mistake: Error) -> BytesScan {
        self.mistake = Some(mistake);
        self
    }

    /// While this flag is true, work that covers the range in one call stops between two rows with
    /// [`crate::ErrorKind::Stopped`]: a count, an aggregate, a fold, a digest, a comparison,
    /// [`crate::Store::synchronize`]. A caller that iterates rows stops by itself.
    pub fn stopped_by(mut self, flag: &Arc<AtomicBool>) -> Self {
        self.stop = Stop::by(flag);
        self
    }

    /// Begins at `key`, included.
    pub fn from(mut self, key: &[u8]) -> Self {
        self.plan.low = Bound::Included(key.to_vec());
        self
    }

    /// Begins after `key`.
    pub fn after(mut self, key: &[u8]) -> Self {
        self.plan.low = Bound::Excluded(key.to_vec());
        self
    }

    /// Ends before `key`.
    pub fn before(mut self, key: &[u8]) -> Self {
        self.plan.high = Bound::Excluded(key.to_vec());
        self
    }

    /// Ends with `key`, included.
    pub fn through(mut self, key: &[u8]) -> Self {
        self.plan.high = Bound::Included(key.to_vec());
        self
    }

    /// Only keys of a range.
    pub fn range<B: AsRef<[u8]>>(self, range: impl RangeBounds<B>) -> Self {
        let bytes = |bound: Bound<&B>| bound.map(|key| key.as_ref().to_vec());
        self.low(bytes(range.start_bound())).high(bytes(range.end_bound()))
    }

    /// Only keys whose bytes begin with `prefix`. Tables with a custom order have no such ranges:
    /// an error when iterated.
    pub fn prefix(self, prefix: &[u8]) -> Self {
        self.within(KeyRange::prefix(prefix.to_vec()))
    }

    /// Only keys inside a range of bytes.
    pub fn within(mut self, range: KeyRange) -> Self {
        if !self.table.rules.order.has_byte_prefixes() {
            let message = format!(
                "table `{}` has a custom order, in which the keys of a prefix are not a range",
                self.table.name
            );
            self.mistake = Some(Error::invalid(message));
            return self;
        }
        let range = self.in_order(range);
        (self.plan.low, self.plan.high) = (range.low, range.high);
        self
    }

    /// A range of bytes in the order of this table.
    pub(crate) fn in_order(&self, range: KeyRange) -> KeyRange {
        match self.table.rules.order {
            KeyOrder::Reversed => range.mirrored(),
            _ => range,
        }
    }

    /// The range that it was narrowed to, in the order of the table.
    pub(crate) fn chosen_range(&self) -> Result<KeyRange> {
        match &self.mistake {
            Some(mistake) => Err(mistake.clone()),
            None => Ok(KeyRange { low: self.plan.low.clone(), high: self.plan.high.clone() }),
        }
    }

    pub(crate) fn low(mut self, bound: Bound<Vec<u8>>) -> Self {
        self.plan.low = bound;
        self
    }

    pub(crate) fn high(mut self, bound: Bound<Vec<u8>>) -> Self {
        self.plan.high = bound;
        self
    }

    /// The value that `key` has for this scan, which has a snapshot.
    pub(crate) fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        get::get(&self.engine, &self.table, key, self.plan.at, |value| Ok(value.map(<[u8]>::to_vec)))
    }

    /// A reader of the value of a key, as the scan sees it.
    pub(crate) fn read(&self, key: &[u8]) -> Result<Option<ValueReader>> {
        stream::read_value(&self.engine, &self.table, key, self.plan.at)
    }

    /// Compares two keys in the order of its table and the direction of the scan.
    pub(crate) fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.plan.compare(&self.table.rules.order, a, b)
    }

    /// The same scan for its heads.
    pub(crate) fn with_heads(mut self) -> BytesScan {
        self.plan.wanted = Wanted::Head;
        self
    }

    /// The same scan for its values, or the heads of long ones: see [`LentRows::next_short`].
    pub(crate) fn short_values(mut self) -> BytesScan {
        self.plan.wanted = Wanted::Short;
        self
    }

    /// Goes from the highest key down.
    pub fn reverse(mut self) -> Self {
        self.plan.direction = match self.plan.direction {
            Direction::Forward => Direction::Reversed,
            Direction::Reversed => Direction::Forward,
        };
        self
    }

    /// Stops after this many rows.
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    /// Only keys: rows have empty values, and no separated value is read.
    pub fn keys_only(mut self) -> Self {
        self.plan.wanted = Wanted::Nothing;
        self
    }

    /// The keys of the range; no separated value is read.
    pub fn keys(self) -> impl FusedIterator<Item = Result<Vec<u8>>> {
        self.keys_only().into_iter().map(|row| row.map(|(key, _)| key))
    }

    /// The first row of the range, in the direction of the scan.
    ///
    /// # Errors
    /// As [`BytesScan::rows`].
    pub fn first(self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.limit(1).into_iter().next().transpose()
    }

    /// The last row of the range, in the direction of the scan.
    ///
    /// # Errors
    /// As [`BytesScan::rows`].
    pub fn last(self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.reverse().first()
    }

    /// True if the range has no row. Reads no separated value.
    ///
    /// # Errors
    /// As [`BytesScan::rows`].
    pub fn is_empty(self) -> Result<bool> {
        Ok(self.keys_only().rows()?.next_row()?.is_none())
    }

    /// Starts the scan; rows are lent one at a time, without copies.
    ///
    /// # Errors
    /// A prefix on a table without them; a dropped table; damage; a failed read.
    pub fn rows(self) -> Result<LentRows> {
        match self.mistake {
            Some(mistake) => Err(mistake),
            None => {
                let rows = AnyRows::start_in(&self.engine, &self.table, self.plan, self.inside.as_ref())?;
                Ok(LentRows { rows, left: self.limit, position: Position::Beginning, _held: self.held })
            }
        }
    }

    /// Keys with the heads of their values instead of these: no separated value is read, except as
    /// [`Head`] says.
    pub fn heads(self) -> Heads {
        Heads { state: RowsState::start(self.with_heads()) }
    }
}

/// Rows of a scan, lent one at a time.
#[must_use = "rows are read one by one"]
pub struct LentRows {
    pub(crate) rows: AnyRows,
    pub(crate) left: usize,
    position: Position,
    _held: Option<Arc<Held>>,
}

impl std::fmt::Debug for LentRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("rows of a scan, lent one at a time")
    }
}

impl LentRows {
    /// The next key and its value; none at the end.
    ///
    /// # Errors
    /// [`crate::ErrorKind::FoldFailed`] if the fold fails on a key (the next call continues after
    /// it); damage; a failed read.
    pub fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let row = self.rows.next_row();
        self.position = self.position.after(&row);
        if matches!(row, Ok(None)) {
            self.left = 0; // it stays at its end
        }
        row
    }

    /// The deadline of the last value; none if it lasts forever, or was written by the scanning
    /// transaction.
    pub fn deadline(&self) -> Option<SystemTime> {
        self.rows.deadline_ms().map(moment)
    }

    pub(crate) fn next_head(&mut self) -> Result<Option<(&[u8], Head)>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let row = self.rows.next_head();
        self.position = self.position.after(&row);
        if matches!(row, Ok(None)) {
            self.left = 0;
        }
        row
    }

    /// The next key and its value, or the head of a long separated one; only if short values are
    /// wanted.
    pub(crate) fn next_short(&mut self) -> Result<Option<(&[u8], Short<'_>)>> {
        if self.next_row()?.is_none() {
            return Ok(None);
        }
        Ok(Some(self.rows.short()))
    }

    /// The key of the last row, or of the one whose fold failed.
    pub(crate) fn key(&self) -> &[u8] {
        self.rows.cursor_parts().2
    }

    /// The position of the scan, to resume it later:
    /// [`BytesTable::resume`](crate::BytesTable::resume).
    pub fn cursor(&self) -> Cursor {
        let (owner, plan, key) = self.rows.cursor_parts();
        Cursor::of(owner, plan, key, self.position)
    }
}

impl IntoIterator for BytesScan {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    type IntoIter = BytesRows;
    fn into_iter(self) -> BytesRows {
        BytesRows { state: RowsState::start(self) }
    }
}

/// Rows of a scan as owned bytes.
#[must_use = "an iterator does nothing until it is iterated"]
pub struct BytesRows {
    state: RowsState,
}

pub(crate) enum RowsState {
    Failed(Option<Error>),
    Going(Box<LentRows>),
}

impl RowsState {
    pub(crate) fn start(scan: BytesScan) -> RowsState {
        match scan.rows() {
            Ok(rows) => RowsState::Going(Box::new(rows)),
            Err(error) => RowsState::Failed(Some(error)),
        }
    }

    pub(crate) fn cursor(&self) -> Option<Cursor> {
        match self {
            RowsState::Going(rows) => Some(rows.cursor()),
            RowsState::Failed(_) => None,
        }
    }

    pub(crate) fn next<T>(&mut self, make: impl FnOnce(&[u8], &[u8]) -> Result<T>) -> Option<Result<T>> {
        self.step(|rows| Ok(rows.next_row()?.map(|(key, value)| make(key, value))))
    }

    fn step<T>(
        &mut self,
        step: impl FnOnce(&mut LentRows) -> Result<Option<Result<T>>>,
    ) -> Option<Result<T>> {
        let failure = match self {
            RowsState::Failed(error) => return error.take().map(Err),
            RowsState::Going(rows) => match step(rows) {
                Ok(row) => return row,
                // Other keys are untouched by a fold that fails on one.
                Err(error) if error.kind() == crate::ErrorKind::FoldFailed => return Some(Err(error)),
                Err(error) => error,
            },
        };
        *self = RowsState::Failed(None);
        Some(Err(failure))
    }
}

impl BytesRows {
    /// The position of the scan, to resume it later; none after a failure.
    pub fn cursor(&self) -> Option<Cursor> {
        self.state.cursor()
    }
}

impl Iterator for BytesRows {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    fn next(&mut self) -> Option<Self::Item> {
        self.state.next(|key, value| Ok((key.to_vec(), value.to_vec())))
    }
}

impl FusedIterator for BytesRows {}

impl std::fmt::Debug for BytesRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("rows of a scan")
    }
}

/// Keys of a scan, each with the head of its value.
#[must_use = "an iterator does nothing until it is iterated"]
pub struct Heads {
    state: RowsState,
}

impl Iterator for Heads {
    type Item = Result<(Vec<u8>, Head)>;
    fn next(&mut self) -> Option<Self::Item> {
        self.state.step(|rows| Ok(rows.next_head()?.map(|(key, head)| Ok((key.to_vec(), head)))))
    }
}

impl FusedIterator for Heads {}

impl std::fmt::Debug for Heads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("heads of a scan")
    }
}
