//! Comparing two stores, and making one equal to the other (`synchronize`).
//!
//! Both are read at one snapshot each, key by key in parallel: by their values if all of these are
//! inline, otherwise by their heads. A separated value is read only if the heads do not decide
//! whether two values are equal; two inline values are always compared byte by byte. The comparison
//! is on what reads see: the folded values, independent of their history, and their deadlines.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::SystemTime;

use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::{Error, ErrorKind, Result, counted};
use folddb_engine::write::stream;

use crate::batch::Batch;
use crate::scan::bytes::{BytesScan, LentRows};
use crate::store::Store;
use crate::table::bytes::BytesTable;
use folddb_engine::options::Durability;
use folddb_engine::read::hashed_scan::no_order;
use folddb_engine::read::scan::Wanted;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::log_sync::not_durable;
use folddb_engine::values::head::{self, Head};
use folddb_engine::write::encoded_batch::WriteOp;
use folddb_engine::write::ops::Lifetime;

/// A batch of transferred rows is committed when it has this many ops, or this many bytes.
const BATCH_OPS: usize = 4096;

const BATCH_BYTES: usize = 4 << 20;

/// A key that differs between two tables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The key.
    pub key: Vec<u8>,
    /// Its head in the first.
    pub first: Option<Head>,
    /// Its head in the second.
    pub second: Option<Head>,
}

/// The result of comparing two tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffReport {
    /// Keys that are equal in both.
    pub same: u64,
    /// Keys that only the first has.
    pub only_first: u64,
    /// Keys that only the second has.
    pub only_second: u64,
    /// Keys whose values or deadlines differ.
    pub differing: u64,
    /// Keys whose fold fails in one or the other: they are not compared.
    pub failing: u64,
}

impl DiffReport {
    /// True if the two are equal.
    pub fn is_same(&self) -> bool {
        self.only_first + self.only_second + self.differing + self.failing == 0
    }
}

/// The result of [`Store::synchronize`] for a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncReport {
    /// The differences that were found.
    pub found: DiffReport,
    /// Keys whose values were put.
    pub put: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// Keys that were deleted.
    pub deleted: u64,
}

/// How [`Store::synchronize`] makes a table equal to another.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct SyncOptions {
    keep_others: bool,
}

impl SyncOptions {
    /// Keeps keys that only the second table has. Default false: they are deleted.
    pub fn keep_others(mut self, keep: bool) -> SyncOptions {
        self.keep_others = keep;
        self
    }
}

impl BytesScan {
    /// Compares the rows of this scan with those of another, for example of the same table in
    /// another store, and passes differences to `visit`, in the order of the keys, until it breaks.
    /// Values are equal if their bytes and their deadlines are.
    ///
    /// For a separated value its size and a 32-bit hash stand for its bytes: if at least one of two
    /// values is separated, different bytes of the same size appear equal in one of 2^32 cases.
    /// Inline values are compared byte by byte.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the two do not have the same direction and order of keys;
    /// otherwise as [`BytesScan::rows`].
    pub fn compare(
        self,
        other: BytesScan,
        mut visit: impl FnMut(Difference) -> ControlFlow<()>,
    ) -> Result<DiffReport> {
        check_comparable(&self, &other)?;
        let mut compared = Compared::of(self, other)?;
        while let Some(difference) = compared.next()? {
            if visit(difference).is_break() {
                break;
            }
        }
        Ok(compared.report)
    }
}

impl Store {
    /// Makes the rows of `to`, a scan of a table of this store, equal to those of `from`, a scan
    /// over the same range of a table in another store: rows that differ are put, and rows that
    /// only `to` has are deleted. In batches, each atomic; as durable as [`Durability::Sync`] when
    /// this returns. Folded values are put, so the table gets the values of the other, but not its
    /// history. They have the same deadlines as there. The differences are those that
    /// [`BytesScan::compare`] finds: it misses one of 2^32 for separated values.
    ///
    /// # Errors
    /// As [`Store::check_synchronize`], [`BytesScan::compare`] and [`Batch::commit`];
    /// [`ErrorKind::NotDurable`] if everything is written and visible, and only the sync at the end
    /// has failed. Batches before the failure stay, and need not be transferred again.
    pub fn synchronize(&self, to: BytesScan, from: BytesScan, options: &SyncOptions) -> Result<SyncReport> {
        self.check_synchronize(&to, &from)?;
        let ours = self.bytes_table(&to.table.name)?;
        let from = from.pinned()?;
        let (theirs, report) = (from.clone(), SyncReport::default());
        let mut sync = Sync { ours, theirs, batch: self.batch(), report, committed: 0 };
        let found = sync.all(to, from, options).map_err(|error| sync.failed(error))?;
        let has_written = sync.report.put + sync.report.deleted > 0;
        self.sync().map_err(|cause| match has_written {
            true => not_durable("what differed is written", &cause),
            false => cause,
        })?;
        Ok(SyncReport { found, ..sync.report })
    }

    /// Fails if [`Store::synchronize`] would refuse the two scans. Nothing is read or written.
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`] if keys and values of the two tables have different meanings,
    /// or if those of `from` may expire and those of `to` may not; [`ErrorKind::InvalidInput`] if
    /// `to` is not a table of this store, or is read at a snapshot or in its past, if the two do
    /// not cover the same range in the same order, or if one has a limit; the errors of either
    /// scan.
    pub fn check_synchronize(&self, to: &BytesScan, from: &BytesScan) -> Result<()> {
        if !Arc::ptr_eq(&to.engine, self.engine()) {
            return Err(Error::invalid("a table is updated by its own store"));
        }
        if let Some(mistake) = to.mistake.as_ref().or(from.mistake.as_ref()) {
            return Err(mistake.clone());
        }
        check_rules(&to.table, &from.table)?;
        to.table.rules.check_writable()?;
        check_comparable(to, from)?;
        check_ranges(to, from)
    }
}

/// A running comparison.
struct Compared {
    first: Side,
    second: Side,
    report: DiffReport,
}

/// One of the two: its rows, and the present one.
struct Side {
    scan: BytesScan,
    rows: LentRows,
    by_value: bool,
    row: Option<Row>,
}

/// A key, and its value; none if its fold fails.
type Row = (Vec<u8>, Option<Had>);

/// The part of a value that is in memory.
enum Had {
    Value(Vec<u8>),
    Head(Head),
}

impl Side {
    fn new(mut scan: BytesScan, by_value: bool) -> Result<Side> {
        scan.plan.wanted = Wanted::Value; // even if only keys are wanted: these do not show values
        let scan = scan.pinned()?;
        let rows = if by_value { scan.clone().rows()? } else { scan.clone().with_heads().rows()? };
        let mut side = Side { rows, scan, by_value, row: None };
        side.advance()?;
        Ok(side)
    }

    /// Goes to the next row.
    fn advance(&mut self) -> Result<()> {
        let row = match self.by_value {
            true => self
                .rows
                .next_row()
                .map(|row| row.map(|(key, value)| (key.to_vec(), Had::Value(value.to_vec())))),
            false => self.rows.next_head().map(|row| row.map(|(key, head)| (key.to_vec(), Had::Head(head)))),
        };
        self.row = match row {
            Ok(row) => row.map(|(key, had)| (key, Some(had))),
            Err(error) if error.kind() == ErrorKind::FoldFailed => Some((self.rows.key().to_vec(), None)),
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Takes the present row.
    fn take(&mut self) -> Result<Option<Row>> {
        let row = self.row.take();
        if row.is_some() {
            self.advance()?;
        }
        Ok(row)
    }

    /// The head of a key's value.
    fn head(&self, key: &[u8], had: Had) -> Head {
        match had {
            Had::Head(head) => head,
            Had::Value(value) => head::of_value(&self.scan.table, key, &value),
        }
    }
}

impl Compared {
    fn of(first: BytesScan, second: BytesScan) -> Result<Compared> {
        // The value alone is enough if it is only its bytes, and none is separated.
        let is_plain = |scan: &BytesScan| scan.table.separate_from() == usize::MAX && !scan.table.has_stamps;
        let by_value = is_plain(&first) && is_plain(&second);
        let (first, second) = (Side::new(first, by_value)?, Side::new(second, by_value)?);
        Ok(Compared { first, second, report: DiffReport::default() })
    }

    /// The next key that differs.
    fn next(&mut self) -> Result<Option<Difference>> {
        loop {
            self.first.scan.stop.check()?;
            self.second.scan.stop.check()?;
            let order = match (&self.first.row, &self.second.row) {
                (None, None) => return Ok(None),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => self.first.scan.compare_keys(a, b),
            };
            let first = if order.is_le() { self.first.take()? } else { None };
            let second = if order.is_ge() { self.second.take()? } else { None };
            if let Some(difference) = self.judge(first, second)? {
                return Ok(Some(difference));
            }
        }
    }

    /// Whether the rows of one key differ.
    fn judge(&mut self, first: Option<Row>, second: Option<Row>) -> Result<Option<Difference>> {
        let fails = |row: &Option<Row>| matches!(row, Some((_, None)));
        if fails(&first) || fails(&second) {
            self.report.failing += 1;
            return Ok(None);
        }
        let Some(key) = first.as_ref().or(second.as_ref()).map(|(key, _)| key.clone()) else {
            return Ok(None);
        };
        let (first, second) = (first.and_then(|row| row.1), second.and_then(|row| row.1));
        let count = match (&first, &second) {
            (Some(a), Some(b)) if self.is_same(&key, a, b)? => {
                self.report.same += 1;
                return Ok(None);
            }
            (Some(_), Some(_)) => &mut self.report.differing,
            (Some(_), None) => &mut self.report.only_first,
            (None, _) => &mut self.report.only_second,
        };
        *count += 1;
        let first = first.map(|had| self.first.head(&key, had));
        let second = second.map(|had| self.second.head(&key, had));
        Ok(Some(Difference { key, first, second }))
    }

    fn is_same(&self, key: &[u8], first: &Had, second: &Had) -> Result<bool> {
        match (first, second) {
            (Had::Value(first), Had::Value(second)) => Ok(first == second),
            (Had::Head(first), Had::Head(second)) => self.are_same_by_heads(key, first, second),
            _ => Ok(false), // cannot happen: both are read in the same way
        }
    }

    /// If one of them is separated, values with the same size and hash count as equal; those with
    /// the same size and different hashes may be equal if one has several pieces, since its hash
    /// depends on these. Then both are read piece by piece and compared.
    fn are_same_by_heads(&self, key: &[u8], first: &Head, second: &Head) -> Result<bool> {
        if (first.size_bytes, first.deadline) != (second.size_bytes, second.deadline) {
            return Ok(false);
        }
        let (is_inline, has_one_hash) =
            (!first.is_separated && !second.is_separated, first.hash == second.hash);
        if has_one_hash && !is_inline {
            return Ok(true);
        }
        if !has_one_hash && first.pieces == 1 && second.pieces == 1 {
            return Ok(false); // both hashes are of the bytes
        }
        match (self.first.scan.read(key)?, self.second.scan.read(key)?) {
            (Some(mut first), Some(mut second)) => stream::is_same(&mut first, &mut second),
            (first, second) => Ok(first.is_none() && second.is_none()),
        }
    }
}

/// The transferred rows.
struct Sync {
    ours: BytesTable,
    theirs: BytesScan,
    batch: Batch,
    report: SyncReport,
    /// Keys that are put or deleted, and committed.
    committed: u64,
}

impl Sync {
    fn all(&mut self, to: BytesScan, from: BytesScan, options: &SyncOptions) -> Result<DiffReport> {
        let mut failure = None;
        let found = to.compare(from, |difference| match self.apply(&difference, options.keep_others) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })?;
        match failure {
            Some(error) => Err(error),
            None => self.commit().map(|()| found),
        }
    }

    /// Adds to the error of a failed `synchronize` how many keys are done.
    fn failed(&self, error: Error) -> Error {
        match self.committed {
            0 => error,
            keys => error.context(format!("after {} put or deleted", counted(keys, "key"))),
        }
    }

    fn apply(&mut self, difference: &Difference, keep_others: bool) -> Result<()> {
        let key = &difference.key;
        match &difference.second {
            Some(head) if head.size_bytes > VALUE_BYTES_MAX as u64 => {
                self.commit()?; // in the order of the keys
                let long = self.long(key, head.deadline);
                let value_bytes = long.map_err(|error| self.naming(key, error))?;
                self.report.put += 1;
                self.report.value_bytes += value_bytes;
                self.committed += 1;
            }
            Some(head) => {
                let value = self.theirs.value(key)?.unwrap_or_default();
                self.set(key, &value, head.deadline);
                self.report.put += 1;
                self.report.value_bytes += value.len() as u64;
            }
            None if keep_others => return Ok(()),
            None => {
                self.batch.write(&self.ours, WriteOp::Delete, key, &[]);
                self.report.deleted += 1;
            }
        }
        if self.batch.len() >= BATCH_OPS || self.batch.len_bytes() >= BATCH_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    /// Sets a value with its deadline there: also forever, regardless of the default of the rules
    /// here.
    fn set(&mut self, key: &[u8], value: &[u8], deadline: Option<SystemTime>) {
        let ours = self.ours_until(deadline);
        self.batch.write(&ours, WriteOp::Put, key, value);
    }

    fn ours_until(&self, deadline: Option<SystemTime>) -> BytesTable {
        self.ours.with_lifetime(match deadline {
            _ if !self.ours.core().expires => Lifetime::Default,
            None => Lifetime::Forever,
            Some(deadline) => Lifetime::Until(deadline),
        })
    }

    /// Sets a value that is too long for a batch: piece by piece if the table takes that, otherwise
    /// as a whole. Returns its bytes.
    fn long(&mut self, key: &[u8], deadline: Option<SystemTime>) -> Result<u64> {
        let ours = self.ours_until(deadline);
        if !ours.takes_streams() {
            let value = self.theirs.value(key)?.unwrap_or_default();
            ours.write_whole(WriteOp::Put, key, &value)?;
            return Ok(value.len() as u64);
        }
        let Some(mut value) = self.theirs.read(key)? else { return Ok(0) };
        let mut writer = ours.writer(WriteOp::Put, key)?;
        writer.write_from(&mut value)?;
        let value_bytes = writer.len_bytes();
        writer.finish()?;
        Ok(value_bytes)
    }

    fn naming(&self, key: &[u8], error: Error) -> Error {
        error.context(format!("key {}", self.ours.rules().as_table_rules().key_codec().show_line(key)))
    }

    fn commit(&mut self) -> Result<()> {
        self.batch.commit(Durability::Process)?;
        self.committed = self.report.put + self.report.deleted;
        Ok(())
    }
}

fn check_comparable(first: &BytesScan, second: &BytesScan) -> Result<()> {
    let writes =
        |scan: &BytesScan| scan.inside.as_ref().is_some_and(|inside| inside.has_written(&scan.table));
    if let Some(scan) = [first, second].into_iter().find(|scan| writes(scan)) {
        let message =
            format!("a transaction that has written to table `{}` cannot compare it", scan.table.name);
        return Err(Error::invalid(message).advise("commit first, or compare at the transaction's snapshot"));
    }
    if let Some(hashed) = [first, second].into_iter().find(|scan| scan.table.hashed.is_some()) {
        return Err(no_order(&hashed.table)); // two walks have different orders
    }
    let way = |scan: &BytesScan| (scan.table.rules.order.name().to_owned(), scan.plan.direction);
    if way(first) == way(second) {
        return Ok(());
    }
    let (first, second) = (&first.table.name, &second.table.name);
    let message =
        format!("tables `{first}` and `{second}` cannot be compared: their keys are not in the same order");
    Err(Error::invalid(message))
}

/// All differences in the range of `from` are put or deleted, so `to` must be the present state of
/// that whole range.
fn check_ranges(to: &BytesScan, from: &BytesScan) -> Result<()> {
    let name = &to.table.name;
    let message = if to.plan.at.is_some() {
        format!("table `{name}` can only be updated as it is now, not as a snapshot sees it or as it was")
    } else if (&to.plan.low, &to.plan.high) != (&from.plan.low, &from.plan.high) {
        format!("table `{name}` can only be updated over one range of keys: give both scans the same bounds")
    } else if to.limit != usize::MAX || from.limit != usize::MAX {
        format!(
            "table `{name}` is updated over a range of keys, not up to a limit of rows: give both scans bounds"
        )
    } else {
        return Ok(());
    };
    Err(Error::invalid(message))
}

fn check_rules(ours: &TableCore, theirs: &TableCore) -> Result<()> {
    let (here, there) = (ours.rules.meaning(), theirs.rules.meaning());
    let name = &ours.name;
    let message = if here != there {
        format!("table `{name}` has different rules in the two stores: here {here}, there {there}")
    } else if theirs.expires && !ours.expires {
        format!("the values of table `{name}` never expire, but those of the other table may")
    } else {
        return Ok(());
    };
    let advice = "drop one of them, so that it can be created again with the rules of the other, or leave the table out";
    Err(Error::new(ErrorKind::RulesMismatch, message).advise(advice))
}
