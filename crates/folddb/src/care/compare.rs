//! Comparing two stores, and bringing one up to the other.
//!
//! Both are read at one snapshot each, key by key, side by side, by their heads: a value that lies apart is read only where the
//! heads leave it open whether two values are the same. What is compared is what reads see: the folded values, however they came there.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Result};

use crate::batch::Batch;
use crate::catalog::TableCore;
use crate::encode::WriteOp;
use crate::hashed_scan::no_order;
use crate::head::Head;
use crate::options::Durability;
use crate::scans::{BytesScan, LentRows};
use crate::store::Store;
use crate::table::BytesTable;

/// A batch of what is brought over is committed when it holds so many ops, or so many bytes.
const BATCH_OPS: usize = 4096;
const BATCH_BYTES: usize = 4 << 20;

/// A key that two tables do not have alike.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The key.
    pub key: Vec<u8>,
    /// What the first has there.
    pub first: Option<Head>,
    /// What the second has there.
    pub second: Option<Head>,
}

/// What comparing two tables came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffReport {
    /// Keys that both have alike.
    pub same: u64,
    /// Keys that only the first has.
    pub only_first: u64,
    /// Keys that only the second has.
    pub only_second: u64,
    /// Keys whose values differ.
    pub differing: u64,
    /// Keys whose value could not be told, in one or the other, because its fold fails: they are not compared.
    pub failing: u64,
}

impl DiffReport {
    /// True where the two were found alike.
    pub fn is_same(&self) -> bool {
        self.only_first + self.only_second + self.differing + self.failing == 0
    }
}

/// What bringing a table up to another did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncReport {
    /// What was found before.
    pub found: DiffReport,
    /// Keys that were set.
    pub set: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// Keys that were deleted.
    pub deleted: u64,
}

/// How a table is brought up to another.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncOptions {
    keep_others: bool,
}

impl SyncOptions {
    /// Keys that only the second table has stay. Default false: they are deleted.
    pub fn keep_others(mut self, keep: bool) -> SyncOptions {
        self.keep_others = keep;
        self
    }
}

impl BytesScan {
    /// Compares the rows of this scan with those of another, of the same table in another store, say, and hands what differs to `visit`,
    /// in the order of the keys, until it breaks.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] where the two do not go the same way in the same order of keys; otherwise as [`BytesScan::rows`].
    pub fn compare(
        self,
        other: BytesScan,
        mut visit: impl FnMut(Difference) -> ControlFlow<()>,
    ) -> Result<DiffReport> {
        check_comparable(&self, &other)?;
        let mut compared =
            Compared { first: Side::new(self)?, second: Side::new(other)?, report: DiffReport::default() };
        while let Some(difference) = compared.next()? {
            if visit(difference).is_break() {
                break;
            }
        }
        Ok(compared.report)
    }
}

impl Store {
    /// Makes the rows of `to`, a scan of a table of this store, those of `from`, a scan over the same range of a table of another one:
    /// what differs is set, and what only `to` has is deleted. In batches, each atomic; as durable as [`Durability::Sync`] when this returns.
    /// Values are set as they are folded, so a table that is brought up so has the values of the other, and not its history.
    ///
    /// # Errors
    /// [`ErrorKind::RulesDiffer`] where the two tables do not have the same rules; otherwise as [`BytesScan::compare`] and
    /// [`Batch::commit`]. Batches before the failure stay, and what is brought up once is not again.
    pub fn bring_up(&self, to: BytesScan, from: BytesScan, options: &SyncOptions) -> Result<SyncReport> {
        if !Arc::ptr_eq(&to.engine, self.engine()) {
            return Err(Error::invalid("a table is brought up by its own store"));
        }
        check_rules(&to.table, &from.table)?;
        let ours = self.bytes_table(&to.table.name)?;
        let from = from.pinned()?;
        let mut sync =
            Sync { ours, theirs: from.clone(), batch: self.batch(), report: SyncReport::default() };
        let mut failure = None;
        let keep_others = options.keep_others;
        let found = to.compare(from, |difference| match sync.mend(&difference, keep_others) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        sync.commit()?;
        self.sync()?;
        Ok(SyncReport { found, ..sync.report })
    }
}

/// A comparison under way.
struct Compared {
    first: Side,
    second: Side,
    report: DiffReport,
}

/// One of the two: its rows, and the one that it stands at.
struct Side {
    scan: BytesScan,
    rows: LentRows,
    row: Option<(Vec<u8>, Option<Head>)>,
}

impl Side {
    fn new(scan: BytesScan) -> Result<Side> {
        let scan = scan.pinned()?;
        let mut side = Side { rows: scan.clone().with_heads().rows()?, scan, row: None };
        side.advance()?;
        Ok(side)
    }

    /// Goes to the next row. One whose fold fails has no head.
    fn advance(&mut self) -> Result<()> {
        self.row = match self.rows.next_head() {
            Ok(row) => row.map(|(key, head)| (key.to_vec(), Some(head))),
            Err(error) if error.kind() == ErrorKind::FoldFailed => Some((self.rows.key().to_vec(), None)),
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Takes the row that it stands at.
    fn take(&mut self) -> Result<Option<(Vec<u8>, Option<Head>)>> {
        let row = self.row.take();
        if row.is_some() {
            self.advance()?;
        }
        Ok(row)
    }
}

impl Compared {
    /// The next key that the two do not have alike.
    fn next(&mut self) -> Result<Option<Difference>> {
        loop {
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

    /// Whether what the two have of one key differs.
    #[allow(clippy::type_complexity)]
    fn judge(
        &mut self,
        first: Option<(Vec<u8>, Option<Head>)>,
        second: Option<(Vec<u8>, Option<Head>)>,
    ) -> Result<Option<Difference>> {
        let fails = |row: &Option<(Vec<u8>, Option<Head>)>| matches!(row, Some((_, None)));
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
        Ok(Some(Difference { key, first, second }))
    }

    /// Values of one size and one hash are the same; those of one size and other hashes may be: the hash of one in several pieces
    /// tells how it was cut, too.
    fn is_same(&self, key: &[u8], first: &Head, second: &Head) -> Result<bool> {
        if first.size_bytes != second.size_bytes {
            return Ok(false);
        }
        Ok(first.hash == second.hash || self.first.scan.value(key)? == self.second.scan.value(key)?)
    }
}

/// What is brought over.
struct Sync {
    ours: BytesTable,
    theirs: BytesScan,
    batch: Batch,
    report: SyncReport,
}

impl Sync {
    fn mend(&mut self, difference: &Difference, keep_others: bool) -> Result<()> {
        let key = &difference.key;
        match &difference.second {
            Some(_) => {
                let value = self.theirs.value(key)?.unwrap_or_default();
                self.batch.write(&self.ours, WriteOp::Set, key, &value);
                self.report.set += 1;
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

    fn commit(&mut self) -> Result<()> {
        self.batch.commit(Durability::Process).map(drop)
    }
}

fn check_comparable(first: &BytesScan, second: &BytesScan) -> Result<()> {
    if let Some(hashed) = [first, second].into_iter().find(|scan| scan.table.hashed.is_some()) {
        return Err(no_order(&hashed.table)); // two walks go in two orders
    }
    let way = |scan: &BytesScan| (scan.table.rules.order.name().to_owned(), scan.plan.direction);
    if way(first) == way(second) {
        return Ok(());
    }
    let (first, second) = (&first.table.name, &second.table.name);
    let message = format!(
        "tables `{first}` and `{second}` cannot be compared: their keys do not come in the same order"
    );
    Err(Error::invalid(message))
}

fn check_rules(ours: &TableCore, theirs: &TableCore) -> Result<()> {
    let (here, there) = (meaning(ours), meaning(theirs));
    if here == there {
        return Ok(());
    }
    let message = format!(
        "table `{}` means other things than the one that it is to be brought up to: here {here}, there {there}",
        ours.name
    );
    Err(Error::new(ErrorKind::RulesDiffer, message))
}

/// What the rules of a table say that the bytes of its keys and values depend on.
fn meaning(table: &TableCore) -> String {
    let rules = &table.rules;
    let (key, value) = (rules.rules.key_codec().name(), rules.rules.value_codec().name());
    format!("key {key}, order {}, value {value}, fold {}", rules.order.name(), rules.fold.spec())
}
