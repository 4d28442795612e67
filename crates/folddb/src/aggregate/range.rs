//! How many rows a range has, and what their values fold to.
//!
//! In a table with summaries, each block of the bottom run stores what it folds to. The range is
//! divided into tiles along that run: if no other run or memtable has a key of a block, its summary
//! is used, and the block is not read; the same holds for a whole part; everything in between is
//! scanned. Both use the same snapshot, so the result is exact. Called by users and the command
//! line.

use std::cmp::Ordering;
use std::ops::Bound;

use folddb_base::stream::Direction;
use folddb_base::{Error, RecordStream, Result, Seq};
use folddb_layout::summaries::Summary;
use folddb_memtable::Captured;
use folddb_rules::codec::{Key, Value};
use folddb_rules::{Aggregate as Sum, KeyOrder};
use folddb_run::{Rank, ReadMode, RunCursor};

use crate::scan::bytes::BytesScan;
use crate::scan::rows::AnyRows;
use crate::scan::typed::{Scan, wrong_row};
use folddb_engine::read::pinned;
use folddb_engine::read::prefix;
use folddb_engine::read::scan::{ScanPlan, Wanted, run_cursor};
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::range_deletes::RangeDeletes;
use folddb_engine::state::view::{PartView, RunView, TableView};

/// What the rows of a range fold to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Aggregate<V = Vec<u8>> {
    /// How many there are.
    pub rows: u64,
    /// What their values fold to, in the order of the keys; none if there is no row.
    pub value: Option<V>,
    /// How much was read.
    pub cost: AggregateCost,
}

/// How much was read to count or aggregate a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AggregateCost {
    /// Parts whose summary was enough: nothing of them was read.
    pub part_summaries: u64,
    /// Blocks whose summary was enough: they were not read.
    pub block_summaries: u64,
    /// Ranges between them that were scanned.
    pub ranges_scanned: u64,
    /// Rows that were read in these.
    pub rows_scanned: u64,
}

impl BytesScan {
    /// The number of keys in the range. Reads all of it, except blocks with usable summaries
    /// ([`crate::table_rules::TableRules::summaries`]).
    ///
    /// # Errors
    /// As [`BytesScan::rows`].
    pub fn count(self) -> Result<u64> {
        if self.limit == usize::MAX && self.table.present().rules.summaries {
            return self.sum(Wanted::Nothing).map(|sum| sum.rows);
        }
        let stop = self.stop.clone();
        let mut rows = self.keys_only().rows()?;
        if let AnyRows::Hashed(hashed) = &mut rows.rows {
            return hashed.count(rows.left, &stop);
        }
        let mut count = 0;
        while rows.next_row()?.is_some() {
            count += 1;
            stop.check()?;
        }
        Ok(count)
    }

    /// How many rows the range has, what their values fold to, and how much was read. Values are
    /// folded as they are stored: with `json-merge`, `{"a":1}` and a value that was written as
    /// `{"a":null}`, and shows as `{}`, fold to `{}`. The values of a hashed table are in no order,
    /// which only matters to a fold that is not commutative.
    ///
    /// # Errors
    /// As [`BytesScan::rows`]; [`crate::ErrorKind::FoldFailed`] if the values of two keys do not
    /// fold, naming the key, or the block if summaries were folded. A scan with a limit, and one of
    /// a table that replaces values, are refused.
    pub fn aggregate(self) -> Result<Aggregate> {
        let rules = &self.table.rules.fold;
        if !rules.covers_many() {
            return Err(Error::invalid(format!(
                "table `{}` folds by `{}`, which keeps one of the values of many keys; count them, or fold its rows",
                self.table.name,
                rules.spec()
            )));
        }
        if self.limit != usize::MAX {
            return Err(Error::invalid("a scan with a limit cannot be aggregated"));
        }
        self.sum(Wanted::Value)
    }

    fn sum(self, wanted: Wanted) -> Result<Aggregate> {
        let scan = self.pinned()?;
        let mut sum = Summing { scan: &scan, wanted, sum: Sum::default(), found: Aggregate::default() };
        let range = (&scan.plan.low, &scan.plan.high);
        let view = pinned::view_at(&scan.engine, &scan.table, scan.plan.at)?;
        // In a transaction all of the range is scanned, which notes its reads and includes its own
        // writes.
        let base = if scan.inside.is_some() { None } else { base_of(&scan.table, &view, range) };
        match base {
            None => sum.take(Tile::Scanned { low: range.0.clone(), high: range.1.clone() })?,
            Some(base) => {
                let mut tiling = Tiling {
                    order: &scan.table.rules.order,
                    range,
                    limit: scan.plan.at.map_or(Seq::MAX, |at| at.seq),
                    range_deletes: &view.range_deletes,
                    wants_fold: wanted == Wanted::Value,
                    others: Others::of(&scan, &view, base),
                    from: range.0.clone(),
                    scan_from: None,
                    is_over: false,
                    visit: &mut |tile| sum.take(tile),
                };
                base.parts.iter().try_for_each(|part| tiling.part(part))?;
                tiling.rest()?;
            }
        }
        sum.found.value = sum.sum.take();
        Ok(sum.found)
    }
}

impl<K: Key, V: Value> Scan<K, V> {
    /// How many rows the range has, what their values fold to, and how much was read.
    ///
    /// # Errors
    /// As [`BytesScan::aggregate`].
    pub fn aggregate(self) -> Result<Aggregate<V>> {
        let name = self.bytes.table.name.clone();
        let Aggregate { rows, value, cost } = self.bytes.aggregate()?;
        let value =
            value.map(|value| V::decode(&value)).transpose().map_err(|cause| wrong_row(&name, &cause))?;
        Ok(Aggregate { rows, value, cost })
    }
}

/// A piece of the range.
enum Tile {
    /// Some blocks, or a whole part, with this summary.
    Summary { summary: Summary, is_part: bool },
    /// Keys that must be scanned.
    Scanned { low: Bound<Vec<u8>>, high: Bound<Vec<u8>> },
}

/// The aggregate of the tiles so far.
struct Summing<'a> {
    scan: &'a BytesScan,
    wanted: Wanted,
    sum: Sum,
    found: Aggregate,
}

impl Summing<'_> {
    fn take(&mut self, tile: Tile) -> Result<()> {
        self.scan.stop.check()?;
        match tile {
            Tile::Summary { summary, is_part } => {
                self.found.rows += summary.rows;
                let cost = &mut self.found.cost;
                *(if is_part { &mut cost.part_summaries } else { &mut cost.block_summaries }) += 1;
                summary.fold.map_or(Ok(()), |fold| self.push(None, &fold))
            }
            Tile::Scanned { low, high } => self.scan(low, high),
        }
    }

    fn scan(&mut self, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) -> Result<()> {
        let (engine, table) = (&self.scan.engine, &self.scan.table);
        let wanted = self.wanted;
        let plan = ScanPlan { low, high, direction: Direction::Forward, wanted, ..self.scan.plan.clone() };
        let mut rows = AnyRows::start_in(engine, table, plan, self.scan.inside.as_ref())?;
        self.found.cost.ranges_scanned += 1;
        while let Some((key, value)) = rows.next_row()? {
            self.found.rows += 1;
            self.found.cost.rows_scanned += 1;
            self.scan.stop.check()?;
            if wanted == Wanted::Value {
                self.push(Some(key), value)?;
            }
        }
        Ok(())
    }

    /// Folds the value of a key onto it, or, without a key, the summary of a block or a part.
    fn push(&mut self, key: Option<&[u8]>, value: &[u8]) -> Result<()> {
        let table = &self.scan.table;
        self.sum.push(&table.rules.fold, value).map_err(|cause| {
            let name = &table.name;
            let message = match key.map(|key| table.rules.rules.key_codec().show_line(key)) {
                Some(key) => format!("the values of table `{name}` do not fold up to key {key}: {cause}"),
                None => format!(
                    "the values of table `{name}` do not fold: the aggregate of a block does not fold onto the values before it: {cause}"
                ),
            };
            Error::new(crate::ErrorKind::FoldFailed, message)
        })
    }
}

/// The run along which the range is divided: the one with the most keys, if its blocks may have
/// summaries, and it has keys of the range as far as its filters know.
fn base_of<'v>(
    table: &TableCore,
    view: &'v TableView,
    (low, high): (&Bound<Vec<u8>>, &Bound<Vec<u8>>),
) -> Option<&'v RunView> {
    if !table.present().rules.summaries {
        return None;
    }
    let keys = |run: &&RunView| run.parts.iter().map(|part| part.file.part.facts().keys).sum::<u64>();
    let range = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
    view.runs.iter().max_by_key(keys).filter(|run| prefix::may_have(table, run, Rank::Young, range))
}

/// Divides a range into tiles along the parts of one run.
struct Tiling<'a> {
    order: &'a KeyOrder,
    range: (&'a Bound<Vec<u8>>, &'a Bound<Vec<u8>>),
    /// No newer record is seen.
    limit: Seq,
    range_deletes: &'a RangeDeletes,
    wants_fold: bool,
    others: Others,
    /// Everything before is decided.
    from: Bound<Vec<u8>>,
    /// Everything from here up to `from` is to be scanned.
    scan_from: Option<Bound<Vec<u8>>>,
    is_over: bool,
    visit: &'a mut dyn FnMut(Tile) -> Result<()>,
}

impl Tiling<'_> {
    fn part(&mut self, part: &PartView) -> Result<()> {
        let is_before = !is_above(self.order, self.range.0, &part.high);
        if self.is_over || is_before {
            return Ok(());
        }
        if !is_below(self.order, self.range.1, &part.low) {
            self.is_over = true;
            return Ok(());
        }
        let file = &part.file.part;
        let is_whole = !part.trimmed
            && is_above(self.order, self.range.0, &part.low)
            && is_below(self.order, self.range.1, &part.high);
        if !self.is_seen_as_it_is(part) {
            self.scan_through(&part.high);
            return Ok(());
        }
        if let Some(total) = file.total().filter(|total| is_whole && self.suits(total))
            && !self.others.have_a_key(&self.from, Bound::Included(&part.high))?
        {
            return self.take_summary(total.clone(), true, &part.high);
        }
        self.blocks(part)
    }

    /// Whether a reader sees the records of the part unchanged: none is newer than its snapshot,
    /// none is hidden by a range delete.
    fn is_seen_as_it_is(&self, part: &PartView) -> bool {
        let facts = part.file.part.facts();
        let hides = || self.range_deletes.is_any_among(self.order, (&part.low, &part.high), facts.min_seq);
        facts.max_seq <= self.limit && !hides()
    }

    fn suits(&self, summary: &Summary) -> bool {
        !self.wants_fold || summary.fold.is_some()
    }

    fn blocks(&mut self, part: &PartView) -> Result<()> {
        let file = &part.file.part;
        let Some(summaries) = file.summaries()? else {
            self.scan_through(&part.high);
            return Ok(());
        };
        // The keys of a block are above this, or the first of the part.
        let mut above = Bound::Included(part.file.part.facts().low.clone());
        let boundaries: Vec<Vec<u8>> = file.boundaries().map(<[u8]>::to_vec).collect();
        for (leaf, (boundary, said)) in boundaries.into_iter().zip(summaries.leaves).enumerate() {
            if !is_above(self.order, self.range.0, &boundary) {
                above = Bound::Excluded(boundary);
                continue;
            }
            let separators = file.separators_of(leaf)?.unwrap_or_default();
            for (separator, summary) in separators.into_iter().zip(said) {
                self.block(part, &above, &separator, summary)?;
                if self.is_over {
                    return Ok(());
                }
                above = Bound::Excluded(separator);
            }
        }
        Ok(())
    }

    /// One block, with keys above one bound and up to the other.
    fn block(
        &mut self,
        part: &PartView,
        above: &Bound<Vec<u8>>,
        through: &[u8],
        summary: Option<Summary>,
    ) -> Result<()> {
        let (low, high) = self.range;
        if !is_above(self.order, low, through) {
            return Ok(());
        }
        let edge = match above {
            Bound::Included(edge) | Bound::Excluded(edge) => edge,
            Bound::Unbounded => &part.low,
        };
        // Keys beyond the bound are inside, whether or not the bound itself is.
        let begins_inside = match above {
            Bound::Included(edge) => is_above(self.order, low, edge),
            _ => is_above(self.order, low, edge) || key_of(low).is_some_and(|key| key == &edge[..]),
        };
        let is_trimmed = part.trimmed && self.order.compare(edge, &part.low).is_lt();
        let ends_inside = is_below(self.order, high, through);
        let usable =
            summary.filter(|summary| begins_inside && ends_inside && !is_trimmed && self.suits(summary));
        match usable {
            Some(summary) if !self.others.have_a_key(&self.from, Bound::Included(through))? => {
                self.take_summary(summary, false, through)?;
            }
            _ => self.scan_through(through),
        }
        self.is_over = !ends_inside;
        Ok(())
    }

    /// The summary covers all keys up to this one.
    fn take_summary(&mut self, summary: Summary, is_part: bool, through: &[u8]) -> Result<()> {
        self.end_scan()?;
        self.from = Bound::Excluded(through.to_vec());
        (self.visit)(Tile::Summary { summary, is_part })
    }

    /// All keys up to this one are to be scanned.
    fn scan_through(&mut self, through: &[u8]) {
        let from = std::mem::replace(&mut self.from, Bound::Excluded(through.to_vec()));
        self.scan_from.get_or_insert(from);
    }

    fn end_scan(&mut self) -> Result<()> {
        let Some(low) = self.scan_from.take() else { return Ok(()) };
        let high = match &self.from {
            Bound::Excluded(key) => Bound::Included(key.clone()),
            other => other.clone(),
        };
        (self.visit)(Tile::Scanned { low, high })
    }

    /// The rest after the last part.
    fn rest(mut self) -> Result<()> {
        let high = self.range.1.as_ref().map(Vec::as_slice);
        if !self.others.have_a_key(&self.from, high)? {
            let Some(low) = self.scan_from.take() else { return Ok(()) };
            return (self.visit)(Tile::Scanned { low, high: self.range.1.clone() });
        }
        let low = self.scan_from.take().unwrap_or(self.from);
        (self.visit)(Tile::Scanned { low, high: self.range.1.clone() })
    }
}

fn key_of(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Whether a key satisfies a lower bound.
fn is_above(order: &KeyOrder, low: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match low {
        Bound::Unbounded => true,
        Bound::Included(low) => order.compare(low, key) != Ordering::Greater,
        Bound::Excluded(low) => order.compare(low, key) == Ordering::Less,
    }
}

/// Whether a key satisfies an upper bound.
fn is_below(order: &KeyOrder, high: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    is_below_bound(order, high.as_ref().map(Vec::as_slice), key)
}

fn is_below_bound(order: &KeyOrder, high: Bound<&[u8]>, key: &[u8]) -> bool {
    match high {
        Bound::Unbounded => true,
        Bound::Included(high) => order.compare(key, high) != Ordering::Greater,
        Bound::Excluded(high) => order.compare(key, high) == Ordering::Less,
    }
}

/// The keys of all memtables and runs except one, in ascending order of queries.
struct Others {
    order: KeyOrder,
    sources: Vec<(Other, Next)>,
}

enum Other {
    Memtable(Captured),
    Run(Box<RunCursor>),
}

/// The first key of a source at or after the start of the last query.
enum Next {
    Unasked,
    Key(Vec<u8>),
    End,
}

impl Others {
    fn of(scan: &BytesScan, view: &TableView, base: &RunView) -> Others {
        let (engine, table) = (&scan.engine, &scan.table);
        let active = std::iter::once(view.active.capture(&engine.published));
        let sealed = view.sealed.iter().map(|sealed| sealed.memtable.capture(&engine.published));
        let memtables = active.chain(sealed).map(Other::Memtable);
        // The view keeps the files.
        let mut files = Vec::new();
        let runs = view.runs.iter().filter(|run| run.id != base.id).map(|run| {
            Other::Run(Box::new(run_cursor(table, run, &mut files, Direction::Forward, ReadMode::Cached)))
        });
        let sources = memtables.chain(runs).map(|other| (other, Next::Unasked)).collect();
        Others { order: table.rules.order.clone(), sources }
    }

    /// Whether one of them has a record, of any age, in the range.
    fn have_a_key(&mut self, from: &Bound<Vec<u8>>, to: Bound<&[u8]>) -> Result<bool> {
        for (other, next) in &mut self.sources {
            let is_stale = match next {
                Next::Unasked => true,
                Next::Key(key) => !is_above(&self.order, from, key),
                Next::End => false,
            };
            if is_stale {
                *next = other.first(from.as_ref().map(Vec::as_slice))?.map_or(Next::End, Next::Key);
            }
            if let Next::Key(key) = next
                && is_below_bound(&self.order, to, key)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Other {
    /// The first key from there on.
    fn first(&mut self, from: Bound<&[u8]>) -> Result<Option<Vec<u8>>> {
        let key = match self {
            Other::Memtable(captured) => {
                let stream = captured.stream(Direction::Forward, from);
                stream.record().map(|record| record.key.to_vec())
            }
            Other::Run(cursor) => {
                cursor.seek(from)?;
                cursor.record().map(|record| record.key.to_vec())
            }
        };
        Ok(key)
    }
}
