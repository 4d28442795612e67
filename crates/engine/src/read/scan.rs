//! The read path of a range: memtables and runs as streams, merged into one, each key folded as it
//! passes.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use folddb_base::bytes::{Malformed, replace_bytes, same_bytes};
use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::stream::Direction;
use folddb_base::{Op, OpBuf, OpKind, Record, RecordStream, Result, Rope, Seq};
use folddb_memtable::{Captured, Jump, MemStream, ReadAt};
use folddb_merge::KWay;
use folddb_merge::kway::shared_skip;
use folddb_rules::resolve::Resolver;
use folddb_rules::time::moment;
use folddb_rules::words::{Took, WordFold, WordOps};
use folddb_rules::{FoldRules, KeyOrder, State};
use folddb_run::{PrefixTally, Rank, ReadMode, RunCursor};

use crate::read::get::damaged_record;
use crate::read::prefix::{self, Range};
use crate::read::{get, pinned};
use crate::state::catalog::TableCore;
use crate::state::empty_ranges::EmptyRange;
use crate::state::engine::Engine;
use crate::state::range_deletes::RangeDeletes;
use crate::state::snapshots::At;
use crate::state::timing;
use crate::state::view::{PartFile, PartView, RunView, TableView};
use crate::values::head::{self, Head};
use crate::values::load;
use folddb_value_log::SegmentMap;

/// The range, direction and moment of a scan.
#[derive(Clone, Debug)]
pub struct ScanPlan {
    pub low: Bound<Vec<u8>>,
    pub high: Bound<Vec<u8>>,
    pub direction: Direction,
    /// The snapshot; if none, the state when the scan begins.
    pub at: Option<At>,
    pub wanted: Wanted,
    /// The lower bound that a cursor set, if one did. In a hashed table it is a place in the walk;
    /// any other bound is refused.
    pub resumed: Option<Bound<Vec<u8>>>,
    /// The scan ends, as if there were no more rows, after passing this many keys without a value
    /// (deleted or expired ones).
    pub passed_max: u64,
}

/// What is wanted of a row in addition to its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Its value.
    #[default]
    Value,
    /// Its value; if that is separated and longer than [`VALUE_BYTES_MAX`], its head instead
    /// (nothing in a hashed table), and the value is empty.
    Short,
    /// Its head; the value is empty. No separated value is read.
    Head,
    /// Nothing; the value is empty. No separated value is read.
    Nothing,
}

impl ScanPlan {
    pub fn everything(at: Option<At>) -> ScanPlan {
        ScanPlan {
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            direction: Direction::Forward,
            at,
            wanted: Wanted::Value,
            resumed: None,
            passed_max: u64::MAX,
        }
    }

    /// Compares two keys in the order of the table and the direction of the scan.
    pub fn compare(&self, order: &KeyOrder, a: &[u8], b: &[u8]) -> Ordering {
        let placed = order.compare(a, b);
        if self.direction == Direction::Forward { placed } else { placed.reverse() }
    }

    /// Whether `key` is still inside the range, at the end that the scan moves toward.
    // Without the attribute it is a call for each row, since it has two callers.
    #[inline(always)]
    fn admits(&self, order: &KeyOrder, key: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => match &self.high {
                Bound::Unbounded => true,
                Bound::Included(high) => order.compare(key, high) != Ordering::Greater,
                Bound::Excluded(high) => order.compare(key, high) == Ordering::Less,
            },
            Direction::Reversed => match &self.low {
                Bound::Unbounded => true,
                Bound::Included(low) => order.compare(key, low) != Ordering::Less,
                Bound::Excluded(low) => order.compare(key, low) == Ordering::Greater,
            },
        }
    }

    /// Its range in the direction of the scan from `start` on, with the bounds in the order of the
    /// table.
    fn range_from<'k>(&'k self, start: Bound<&'k [u8]>) -> Range<'k> {
        match self.direction {
            Direction::Forward => (start, self.high.as_ref().map(Vec::as_slice)),
            Direction::Reversed => (self.low.as_ref().map(Vec::as_slice), start),
        }
    }
}

/// How many keys without a value a scan skips before it notes the range for others. Few in builds
/// for tests, whose tables are small.
const PASSED_MIN: usize = if cfg!(debug_assertions) { 2 } else { 64 };

/// One source of records of a scan.
pub enum Source {
    Memtable(MemStream),
    Run(Box<RunCursor>),
}

impl Source {
    /// How many leading bytes all its keys share, and a key that begins with these; none if it has
    /// no records.
    fn shared_prefix(&self) -> Option<(usize, &[u8])> {
        match self {
            Source::Memtable(stream) => stream.shared_prefix(),
            Source::Run(cursor) => cursor.shared_prefix(),
        }
    }
}

impl RecordStream for Source {
    // Without the attribute it is not inlined, and a scan takes a quarter more instructions
    // (`.ci/instructions scan`).
    #[inline(always)]
    fn record(&self) -> Option<Record<'_>> {
        match self {
            Source::Memtable(stream) => stream.record(),
            Source::Run(cursor) => cursor.record(),
        }
    }
    #[inline]
    fn advance(&mut self) -> Result<()> {
        match self {
            Source::Memtable(stream) => stream.advance(),
            Source::Run(cursor) => cursor.advance(),
        }
    }
}

/// A running scan: a lending sequence of folded rows.
pub struct Rows {
    engine: Arc<Engine>,
    table: Arc<TableCore>,
    stream: KWay<Source>,
    plan: ScanPlan,
    /// No newer record is seen.
    limit: Seq,
    /// The time that it reads at, if values expire.
    time_ms: u64,
    range_deletes: Arc<RangeDeletes>,
    /// The empty range at the scan's position; records that are not newer are skipped.
    range: Option<Arc<EmptyRange>>,
    /// How many keys since the beginning certainly had no value; none after the first other key.
    passed: Option<usize>,
    resolver: Resolver,
    /// The fold of the table as a function of words, if it is one.
    words: Option<WordFold>,
    key: Vec<u8>,
    value: Vec<u8>,
    /// The head of the last row, if heads are wanted.
    head: Option<Head>,
    /// The value of the key is in `value`: it is that of its newest record, or all its records are
    /// of words. The resolver has seen nothing.
    is_plain: bool,
    /// The last record that was read from the value log.
    record: Vec<u8>,
    done: bool,
    /// The files of separated values.
    of: Option<Arc<SegmentMap>>,
    /// The files that the cursors read, so that they stay.
    _files: Vec<Arc<PartFile>>,
}

impl Rows {
    /// Begins a scan: it is at its first record.
    pub fn start(engine: &Arc<Engine>, table: &Arc<TableCore>, plan: ScanPlan) -> Result<Rows> {
        let began = timing::begin(engine, &engine.counters.scans);
        engine.counters.scans.add(1);
        let rows = Rows::start_at_rest(engine, table, plan);
        timing::end(engine, &engine.latencies.scan, began);
        rows
    }

    /// The same, with the files of values of its view.
    fn start_at_rest(engine: &Arc<Engine>, table: &Arc<TableCore>, plan: ScanPlan) -> Result<Rows> {
        let mut plan = plan;
        loop {
            let round = engine.values.files.round();
            let mut rows = Rows::start_once(engine, table, plan)?;
            if rows.of.is_some() {
                return Ok(rows);
            }
            rows.of = engine.values.files.segment_map_of(round);
            if rows.of.is_some() || table.separate_from() == usize::MAX {
                return Ok(rows);
            }
            plan = rows.plan;
        }
    }

    fn start_once(engine: &Arc<Engine>, table: &Arc<TableCore>, plan: ScanPlan) -> Result<Rows> {
        let (view, captured) = table.view_with(|view| {
            engine.check_readable(table)?;
            Ok(view.active.capture(&engine.published))
        })?;
        if let Some(own) = pinned::pinned_files_at(engine, plan.at)? {
            let view = own.view(table);
            engine.check_readable(table)?;
            let captured = view.active.capture(&engine.published);
            let rows = Rows::start_on(engine, table, plan, (&view, captured))?;
            return Ok(Rows { of: Some(Arc::clone(&own.segment_map)), ..rows });
        }
        get::note_chunks(engine, table, &view.active.at(ReadAt::Seq(0)));
        Rows::start_on(engine, table, plan, (&view, captured))
    }

    /// Starts on a view whose active memtable has been captured.
    fn start_on(
        engine: &Arc<Engine>,
        table: &Arc<TableCore>,
        plan: ScanPlan,
        (view, captured): (&TableView, Captured),
    ) -> Result<Rows> {
        let start = match plan.direction {
            Direction::Forward => &plan.low,
            Direction::Reversed => &plan.high,
        };
        let limit = plan.at.map_or(captured.published(), |at| at.seq.min(captured.published()));
        let is_forward = plan.direction == Direction::Forward;
        let range =
            if is_forward { table.empty_ranges.find(&table.rules.order, &plan.low, limit) } else { None };
        let start = start.as_ref().map(Vec::as_slice);
        let (sources, files) = sources_of(engine, table, &plan, (view, captured), (start, range.as_deref()))?;
        let skip = shared_skip(&table.rules.order, sources.iter().filter_map(Source::shared_prefix));
        let mut resolver = Resolver::new();
        let time_ms = if table.has_stamps { get::reading_ms(engine, plan.at) } else { 0 };
        if table.has_stamps {
            resolver.read_at(time_ms);
        }
        Ok(Rows {
            engine: Arc::clone(engine),
            table: Arc::clone(table),
            stream: KWay::new(table.rules.order.clone(), plan.direction, skip, sources),
            plan,
            limit,
            time_ms,
            range_deletes: Arc::clone(&view.range_deletes),
            range,
            passed: is_forward.then_some(0),
            resolver,
            words: table.rules.fold.words(),
            key: Vec::new(),
            value: Vec::new(),
            head: None,
            is_plain: false,
            record: Vec::new(),
            done: false,
            of: None,
            _files: files,
        })
    }

    /// The next key that has a value, and its value.
    pub fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        self.engine.check_here()?;
        while !self.done {
            // A partly read key must not be resumed: the rest of its records would look like
            // another value.
            match self.collect_key() {
                Ok(true) => {}
                Ok(false) => {
                    self.done = true;
                    self.note_range(self.behind());
                }
                Err(error) => {
                    self.done = true;
                    return Err(error);
                }
            }
            if self.done {
                break;
            }
            if self.is_plain {
                if matches!(self.plan.wanted, Wanted::Head | Wanted::Nothing) {
                    self.leave_value();
                }
                self.end_range();
                return Ok(Some((&self.key, &self.value)));
            }
            if self.resolve()? {
                self.end_range();
                return Ok(Some((&self.key, &self.value)));
            }
            self.pass();
            self.plan.passed_max -= 1;
            self.done |= self.plan.passed_max == 0;
        }
        Ok(None)
    }

    /// Resolves the records of the key, and takes its value or its head; false if it has none.
    #[inline]
    fn resolve(&mut self) -> Result<bool> {
        get::load_waiting(&self.engine, self.of.as_deref(), &self.table, &self.key, &mut self.resolver)
            .inspect_err(|_| self.done = true)?;
        let value = match self.resolver.state(&self.table.rules.fold, &self.key) {
            Ok(value) => value,
            Err(cause) => {
                self.note_range(Some(self.key.clone()));
                return Err(get::fold_failed(&self.engine, &self.table, &self.key, &cause));
            }
        };
        let Some(value) = value else { return Ok(false) };
        self.value.clear();
        let wanted = self.plan.wanted;
        match value {
            _ if wanted == Wanted::Nothing => {}
            state if wanted == Wanted::Head || wanted == Wanted::Short && is_long_separated(&state) => {
                let head = Head::of(&self.table, &self.key, state);
                self.head = Some(head.inspect_err(|_| self.done = true)?);
            }
            State::Value(value) => self.value.extend_from_slice(value),
            State::Separated(pointer) => {
                let (table, record) = (&self.table, &mut self.record);
                let loaded =
                    load::load_value(&self.engine, self.of.as_deref(), table, &self.key, pointer, record);
                self.value.extend_from_slice(loaded.inspect_err(|_| self.done = true)?);
            }
        }
        if let Some(head) = &mut self.head {
            head.deadline = self.resolver.deadline_ms().map(moment);
        }
        Ok(true)
    }

    /// Takes the head of the plain row, if wanted, and leaves out its value.
    #[cold]
    fn leave_value(&mut self) {
        if self.plan.wanted == Wanted::Head {
            self.head = Some(head::of_value(&self.table, &self.key, &self.value));
        }
        self.value.clear();
    }

    /// The next key that has a value, and the head of that; only if heads are wanted.
    pub fn next_head(&mut self) -> Result<Option<(&[u8], Head)>> {
        if self.next_row()?.is_none() {
            return Ok(None);
        }
        Ok(self.head.take().map(|head| (&self.key[..], head)))
    }

    /// Counts a key that has no value.
    fn pass(&mut self) {
        let Some(passed) = self.passed else { return };
        let is_deleted = match (self.resolver.visited(), self.resolver.operands()) {
            (0, _) => true,
            (1, [only]) => only.kind == OpKind::Delete,
            _ => false,
        };
        if is_deleted {
            self.passed = Some(passed + 1);
        } else {
            self.note_range(Some(self.key.clone()));
        }
    }

    /// The key has a value, which ends the empty range that began with the scan.
    #[inline]
    fn end_range(&mut self) {
        if self.passed.is_some() {
            self.note_range(Some(self.key.clone()));
        }
    }

    /// The key before which a forward scan has passed every key; none at the end of the table.
    /// Beyond its upper bound it does not know the keys of the parts that it passed over.
    fn behind(&self) -> Option<Vec<u8>> {
        match &self.plan.high {
            Bound::Included(high) | Bound::Excluded(high) => Some(high.clone()),
            Bound::Unbounded => self.stream.record().map(|record| record.key.to_vec()),
        }
    }

    /// Ends the empty range that began with the scan, before the key `behind` or at the end of the
    /// table, and notes it if it is long.
    fn note_range(&mut self, behind: Option<Vec<u8>>) {
        if self.passed.take().is_none_or(|passed| passed < PASSED_MIN) {
            return;
        }
        self.table.empty_ranges.note(EmptyRange { from: self.plan.low.clone(), to: behind, seq: self.limit });
    }

    /// The operands of the key of the last row, newest first, with separated values loaded.
    pub fn loaded_operands(&self) -> Result<Vec<OpBuf>> {
        let inline = |op| get::inline_op(&self.engine, self.of.as_deref(), &self.table, &self.key, op);
        self.operands().iter().map(inline).collect()
    }

    /// The key and the value of the last row.
    pub fn row(&self) -> (&[u8], &[u8]) {
        (&self.key, &self.value)
    }

    /// The deadline of the last row's value, or of the failure of its fold; none if it lasts
    /// forever.
    pub fn deadline_ms(&self) -> Option<u64> {
        if self.is_plain { None } else { self.resolver.deadline_ms() } // plain rows have no deadline
    }

    /// The head of the last row, if heads are wanted or its long value was left out.
    pub fn take_head(&mut self) -> Option<Head> {
        self.head.take()
    }

    /// Whether the value of the last row was left out because it is long.
    pub fn is_long(&mut self) -> bool {
        self.head.take().is_some()
    }

    /// The key that the last row was of, or whose fold failed.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The operands of that key as far as they fold, newest first.
    pub fn operands(&self) -> &[OpBuf] {
        self.resolver.operands()
    }

    /// The plan of the scan, and the moment that it sees.
    pub fn plan(&self) -> (&ScanPlan, At) {
        (&self.plan, At::new(self.limit, self.time_ms))
    }

    /// The engine and the table of the scan.
    pub fn owner(&self) -> (&Arc<Engine>, &Arc<TableCore>) {
        (&self.engine, &self.table)
    }

    /// Folds all records of the next key: to `value` where they are of words or the newest is the
    /// value, otherwise in the resolver. False at the end of the range.
    fn collect_key(&mut self) -> Result<bool> {
        let Some(mut record) = self.stream.record() else { return Ok(false) };
        if !self.plan.admits(&self.table.rules.order, record.key) {
            return Ok(false);
        }
        replace_bytes(&mut self.key, record.key);
        self.resolver.clear();
        self.is_plain = false;
        let order = &self.table.rules.order;
        let cover = self.range_deletes.newest_over(order, &self.key, self.limit);
        let cover = cover.max(range_end(&mut self.range, order, &self.key));
        let (rules, direction) = (&self.table.rules.fold, self.plan.direction);
        let mut words = self.words.map(WordOps::new);
        let mut enough = false;
        loop {
            let visible = record.seq <= self.limit && record.seq >= cover;
            if visible && !enough {
                enough = match take_word(&mut words, direction, record) {
                    Took::Folded => false,
                    Took::Enough => true,
                    Took::Refused => {
                        let (resolver, key) = (&mut self.resolver, &self.key[..]);
                        let left = leave_words(words.take(), (&mut *resolver, rules, key));
                        let fed = left.and_then(|()| match direction {
                            Direction::Forward if is_plain(resolver, rules, key, record) => {
                                replace_bytes(&mut self.value, record.payload);
                                self.is_plain = true;
                                Ok(true)
                            }
                            Direction::Forward => {
                                resolver.feed_older(rules, key, record.kind, record.payload)
                            }
                            Direction::Reversed => {
                                resolver.feed_newer(rules, key, record.kind, record.payload).map(|()| false)
                            }
                        });
                        fed.map_err(|cause| damaged_record(&self.table, cause))?
                    }
                };
            }
            self.stream.advance()?;
            match self.stream.record() {
                Some(next) if same_bytes(next.key, &self.key) => record = next,
                _ => break,
            }
        }
        if let Some((_, word)) = words.and_then(|words| words.held()) {
            replace_bytes(&mut self.value, &word);
            self.is_plain = true;
        }
        Ok(true)
    }
}

/// The sources of a scan, newest first, and the files that they read. Each begins where the scan
/// does, or at the end of the empty range there. Runs without a record of the range are left out.
fn sources_of(
    engine: &Arc<Engine>,
    table: &Arc<TableCore>,
    plan: &ScanPlan,
    (view, captured): (&TableView, Captured),
    (start, range): (Bound<&[u8]>, Option<&EmptyRange>),
) -> Result<(Vec<Source>, Vec<Arc<PartFile>>)> {
    let stream = |captured: Captured| match range {
        Some(range) => captured.stream_jumping(start, jump_of(range)),
        None => captured.stream(plan.direction, start),
    };
    let mut sources = vec![Source::Memtable(stream(captured))];
    for sealed in &view.sealed {
        sources.push(Source::Memtable(stream(sealed.memtable.capture(&engine.published))));
    }
    let mut files = Vec::new();
    let prefix = prefix::prefix_range(table, plan.range_from(start));
    let mut tally = PrefixTally::default();
    for (number, run) in view.runs.iter().enumerate() {
        let start = match range {
            Some(range) if run.max_seq() <= range.seq => match &range.to {
                Some(to) => Bound::Included(&to[..]),
                None => continue,
            },
            _ => start,
        };
        let rank = if number + 1 == view.runs.len() { Rank::Oldest } else { Rank::Young };
        let parts = run.parts_between(&table.rules.order, plan.range_from(start));
        let passes = tally.passes;
        let parts = prefix::parts_with(parts, prefix.as_ref(), rank, &mut tally);
        if parts.is_empty() {
            continue;
        }
        let cursor = parts_cursor(table, parts, &mut files, plan.direction, ReadMode::Cached);
        let cursor = position(cursor, start)?;
        if is_within(plan, &table.rules.order, &cursor) {
            sources.push(Source::Run(Box::new(cursor)));
        } else {
            tally.false_passes += tally.passes - passes;
        }
    }
    engine.parts.count_prefix(tally);
    Ok((sources, files))
}

/// Whether a cursor that is where a scan begins is on a record of its range.
#[inline(never)]
fn is_within(plan: &ScanPlan, order: &KeyOrder, cursor: &RunCursor) -> bool {
    cursor.record().is_some_and(|record| plan.admits(order, record.key))
}

/// The first seq at which a record of this key is new to the empty range that the scan is in.
#[inline]
fn range_end(slot: &mut Option<Arc<EmptyRange>>, order: &KeyOrder, key: &[u8]) -> Seq {
    let Some(range) = slot else { return 0 };
    if range.reaches(order, key) {
        return range.seq + 1;
    }
    *slot = None;
    0
}

/// Whether a value is separated and longer than a single write.
fn is_long_separated(value: &State<'_>) -> bool {
    let State::Separated(rope) = value else { return false };
    Rope::decode(rope).is_ok_and(|rope| rope.len > VALUE_BYTES_MAX as u64)
}

/// Whether a record alone is the value of its key, given what a resolver has seen that is newer.
#[inline]
fn is_plain(newer: &Resolver, rules: &FoldRules, key: &[u8], record: Record<'_>) -> bool {
    newer.visited() == 0
        && record.kind == OpKind::Set
        && !rules.has_stamps()
        && rules.at_bottom(key, Op::Set(record.payload)).is_some()
}

/// Takes the next record as an op on words, if all of its key so far were that.
#[inline]
fn take_word(words: &mut Option<WordOps>, direction: Direction, record: Record<'_>) -> Took {
    match (words, direction) {
        (None, _) => Took::Refused,
        (Some(words), Direction::Forward) => words.take_older(record.kind, record.payload),
        (Some(words), Direction::Reversed) => words.take_newer(record.kind, record.payload),
    }
}

/// Feeds to a resolver what the ops on words were so far, where something else follows them.
#[inline]
fn leave_words(
    words: Option<WordOps>,
    (resolver, rules, key): (&mut Resolver, &FoldRules, &[u8]),
) -> Result<(), Malformed> {
    match words.and_then(|words| words.held()) {
        None => Ok(()),
        Some((kind, word)) => resolver.feed_newer(rules, key, kind, &word), // it is the first
    }
}

/// A cursor over the visible parts of a run. The files that it reads are added to `files`, to be
/// kept.
pub fn run_cursor(
    table: &TableCore,
    run: &RunView,
    files: &mut Vec<Arc<PartFile>>,
    direction: Direction,
    mode: ReadMode,
) -> RunCursor {
    parts_cursor(table, &run.parts, files, direction, mode)
}

/// The same over some of its parts, which follow one another.
pub(crate) fn parts_cursor(
    table: &TableCore,
    parts: &[PartView],
    files: &mut Vec<Arc<PartFile>>,
    direction: Direction,
    mode: ReadMode,
) -> RunCursor {
    files.extend(parts.iter().map(|part| Arc::clone(&part.file)));
    let parts = parts.iter().map(|part| (Arc::clone(&part.file.part), part.trim().map(<[u8]>::to_vec)));
    RunCursor::new(parts.collect(), table.rules.order.clone(), direction, mode)
}

/// Moves a cursor to where a scan begins.
fn position(mut cursor: RunCursor, start: Bound<&[u8]>) -> Result<RunCursor> {
    match start {
        Bound::Unbounded => cursor.seek_start()?,
        from => cursor.seek(from)?,
    }
    Ok(cursor)
}

fn jump_of(range: &EmptyRange) -> Jump<'_> {
    Jump { through: range.seq, to: range.to.as_deref() }
}
