//! Merging: what the plan names, in paced steps, one edit for each part that is finished.
//!
//! A finished part and the keys that its inputs lose to it are one edit, so at any moment each key of the
//! table is in exactly one place, a merge may be given up after any part, and what its inputs no longer show
//! is freed as it goes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use folddb_base::ids::RunId;
use folddb_base::stream::Direction;
use folddb_base::{Error, ErrorKind, Result, Seq, TableId};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::manifest_edit::Change;
use folddb_merge::plan::{Reason, Way, plan};
use folddb_merge::{
    BottomRule, FoldStep, KWay, MergeOptions, Moment, Plan, RangeDelete, RunSummary, StepResult, StepRules,
    pace,
};
use folddb_run::{PartFacts, ReadMode, RunCursor};

use super::clean::{Cleaner, clean_plan};
use super::output::Output;
use super::ranges::{Applied, gone, step_ranges};
use crate::background::hidden_values;
use crate::background::{expire, hash_checkpoint, ranges, step, summaries};
use crate::edit::install::{Installed, part_state};
use crate::edit::{install, old_snapshots};
use crate::read::scan::run_cursor;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::disk_quota::Who;
use crate::state::engine::Engine;
use crate::state::view::{PartFile, RunView, TableView};

/// The merges that are under way.
#[derive(Default)]
pub(crate) struct Merges {
    /// Begun, and to be gone on with: at most one for each tier, since each holds memory for every input.
    waiting: Vec<MergeJob>,
    /// Planned, with their inputs taken, and not begun.
    planned: Vec<(Arc<TableCore>, Plan)>,
    pub(super) busy: HashSet<(TableId, RunId)>,
    /// Tables that somebody optimizes, or waits to optimize.
    pub(super) optimized: HashMap<TableId, Turn>,
    /// Tables whose merges failed for a reason that trying again does not mend.
    pub(super) given_up: HashMap<TableId, Error>,
    /// Tables that have been looked at, for which more may be due when snapshots come and go.
    resting: BTreeSet<TableId>,
    /// The same, where time alone may make more due, too.
    timed: BTreeSet<TableId>,
    /// The version of the snapshots, and the second, of the last look at those.
    looked_at: (u64, u64),
    /// What each table is behind with.
    behind: Behind,
}

/// What merges are behind with, table by table, and what that comes to.
#[derive(Default)]
struct Behind {
    of: HashMap<TableId, TableDebt>,
    overdue_bytes: u64,
    /// How many tables have so many runs in their fullest tier, and how many so many tiers.
    runs: BTreeMap<usize, usize>,
    tiers: BTreeMap<usize, usize>,
}

/// What they are behind with in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TableDebt {
    overdue_bytes: u64,
    runs_max: usize,
    tier_max: usize,
}

impl Behind {
    /// Notes what a table is behind with by now.
    fn set(&mut self, table: TableId, debt: Option<TableDebt>) {
        let before = match debt {
            Some(debt) => self.of.insert(table, debt),
            None => self.of.remove(&table),
        };
        if let Some(before) = before {
            self.overdue_bytes -= before.overdue_bytes;
            count_out(&mut self.runs, before.runs_max);
            count_out(&mut self.tiers, before.tier_max);
        }
        if let Some(debt) = debt {
            self.overdue_bytes += debt.overdue_bytes;
            *self.runs.entry(debt.runs_max).or_default() += 1;
            *self.tiers.entry(debt.tier_max).or_default() += 1;
        }
    }
}

fn count_out(counts: &mut BTreeMap<usize, usize>, value: usize) {
    if let Some(count) = counts.get_mut(&value) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&value);
        }
    }
}

/// What to go on with.
enum Next {
    Begun(Box<MergeJob>),
    Planned(Arc<TableCore>, Plan),
}

impl Merges {
    /// Takes the merge of the lowest tier. One that is begun comes before others of its tier, so that there are never
    /// more begun than tiers, however many tables have something to merge.
    fn take_next(&mut self) -> Option<Next> {
        let begun = (0..self.waiting.len()).min_by_key(|&index| self.waiting[index].plan.target_tier);
        let planned = (0..self.planned.len()).min_by_key(|&index| self.planned[index].1.target_tier);
        let lower = |planned: usize, begun: usize| {
            self.planned[planned].1.target_tier < self.waiting[begun].plan.target_tier
        };
        match (begun, planned) {
            (Some(begun), Some(planned)) if !lower(planned, begun) => {
                Some(Next::Begun(Box::new(self.waiting.swap_remove(begun))))
            }
            (_, Some(planned)) => {
                let (table, plan) = self.planned.remove(planned);
                Some(Next::Planned(table, plan))
            }
            (Some(begun), None) => Some(Next::Begun(Box::new(self.waiting.swap_remove(begun)))),
            (None, None) => None,
        }
    }

    /// Notes whether more may be due for a table that has been looked at, and whether time alone may do that.
    fn rest(&mut self, table: TableId, may_be_due: Option<bool>) {
        match may_be_due {
            Some(_) => self.resting.insert(table),
            None => self.resting.remove(&table),
        };
        match may_be_due {
            Some(true) => self.timed.insert(table),
            _ => self.timed.remove(&table),
        };
    }

    /// Whether a merge is under way, or planned, that uncovers dead values.
    pub(crate) fn uncovers_values(&self) -> bool {
        let plans = self.waiting.iter().map(|job| &job.plan).chain(self.planned.iter().map(|(_, plan)| plan));
        plans.map(|plan| plan.reason).any(|reason| matches!(reason, Reason::HiddenValues(_)))
    }

    /// Takes out what is begun, and what is planned, of a table.
    pub(super) fn take_all_of(&mut self, table: TableId) -> (Vec<MergeJob>, Vec<Plan>) {
        let (jobs, waiting) = self.waiting.drain(..).partition(|job| job.table.id == table);
        let (plans, planned): (Vec<_>, Vec<_>) = self.planned.drain(..).partition(|(of, _)| of.id == table);
        (self.waiting, self.planned) = (waiting, planned);
        (jobs, plans.into_iter().map(|(_, plan)| plan).collect())
    }
}

/// One merge under way.
pub(crate) struct MergeJob {
    pub(super) table: Arc<TableCore>,
    plan: Plan,
    run: RunId,
    /// The age of the oldest input: should the merge be given up after some parts, its output must not stand above an
    /// input of a lower tier, or a later merge of its tier would lift old records over newer ones.
    age: Seq,
    step: FoldStep<KWay<RunCursor>>,
    /// What leaves stale entries out, where the table is an index.
    cleaner: Option<Cleaner>,
    output: Output,
    /// The range deletes that the merge applies, oldest first.
    range_deletes: Vec<RangeDelete>,
    /// The borders when the merge began; a range delete below them serves a snapshot no longer.
    borders: Vec<Seq>,
    bytes_total: u64,
    /// The inputs that it may still read.
    files: Vec<Arc<PartFile>>,
}

/// How far a merge has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of keys and values taken in so far.
    pub bytes_done: u64,
    /// Bytes of the files that are being merged; an estimate of where `bytes_done` ends.
    pub bytes_total: u64,
    /// Records taken in so far.
    pub records_in: u64,
    /// Records written so far.
    pub records_out: u64,
}

/// Plans what is due, and takes one step of the merge that writers would miss most: the one of the
/// lowest tier. Small merges thus overtake big ones.
pub(crate) fn merge_step(engine: &Arc<Engine>) -> Result<Option<String>> {
    if engine.health.cause().is_some() {
        return Ok(None);
    }
    plan_merges(engine)?;
    let next = engine.merges.lock().take_next();
    let mut job = match next {
        None => return Ok(None),
        Some(Next::Begun(job)) => *job,
        Some(Next::Planned(table, plan)) => match job(engine, &table, plan) {
            Ok(job) => job,
            Err(_) if table.check_alive().is_err() => return Ok(Some(gone(&table))),
            Err(error) => {
                give_up(engine, table.id, &error);
                return Err(error);
            }
        },
    };
    match contain(|| job.step(engine)) {
        Ok(false) => {
            let done = format!("a step of: {}", job.plan);
            keep(engine, job);
            Ok(Some(done))
        }
        Ok(true) => {
            let done = format!("done: {}", job.plan);
            finish_job(engine, job);
            Ok(Some(done))
        }
        Err(error) => {
            let table = Arc::clone(&job.table);
            abandon_job(engine, job, &error);
            if table.check_alive().is_err() { Ok(Some(gone(&table))) } else { Err(error) }
        }
    }
}

/// Keeps a merge until its turn comes again, unless somebody waits for its inputs.
fn keep(engine: &Engine, job: MergeJob) {
    {
        let mut merges = engine.merges.lock();
        if merges.optimized.get(&job.table.id) != Some(&Turn::Waits) {
            merges.waiting.push(job);
            return;
        }
    }
    give_back(engine, job);
}

/// Gives up a merge between two steps. What it has installed stays; what else it has written goes.
pub(super) fn give_back(engine: &Engine, mut job: MergeJob) {
    job.output.discard(engine);
    release(engine, job.table.id, &job.plan, Some(job.run));
    engine.bell.ring();
}

pub(super) fn finish_job(engine: &Engine, job: MergeJob) {
    engine.counters.merges.add(1);
    engine.counters.records_merged.add(job.step.counts().records_in);
    engine.counters.fold_failures.add(job.step.counts().declined_failed);
    engine.counters.records_expired.add(job.step.counts().expired);
    job.cleaner.iter().for_each(Cleaner::finish);
    let (table, plan, run) = (Arc::clone(&job.table), job.plan.clone(), job.run);
    drop(job); // with the files that it has read
    release(engine, table.id, &plan, Some(run));
    note_overdue_of(engine, &table);
    engine.bell.ring();
}

pub(super) fn abandon_job(engine: &Engine, mut job: MergeJob, error: &Error) {
    job.output.discard(engine);
    release(engine, job.table.id, &job.plan, Some(job.run));
    give_up(engine, job.table.id, error);
}

/// A table with damage is left alone, and holds up no other table.
fn give_up(engine: &Engine, table: TableId, error: &Error) {
    if error.kind() == ErrorKind::Corruption {
        engine.merges.lock().given_up.insert(table, error.clone());
    }
}

/// Plans every merge that is due and not under way. Looks at a table only when something about it changed.
fn plan_merges(engine: &Engine) -> Result<()> {
    wake_tables(engine);
    let catalog = engine.catalog();
    loop {
        // Taken off before it is looked at: what changes meanwhile puts it on again.
        let Some(id) = engine.work.changed.lock().pop_first() else { return Ok(()) };
        let Some(table) = catalog.by_id(id).cloned().or_else(|| engine.catalog().by_id(id).cloned()) else {
            continue;
        };
        plan_all_for(engine, &table).inspect_err(|_| _ = engine.work.changed.lock().insert(id))?;
        let mut merges = engine.merges.lock();
        merges.rest(id, may_rest_for(engine, &table));
    }
}

/// Has tables looked at again for which more may be due by now, though nothing about them has changed.
fn wake_tables(engine: &Engine) {
    let mut woken: Vec<TableId> = std::mem::take(&mut *engine.work.stale.lock()).into_iter().collect();
    let asks_time = !engine.merges.lock().timed.is_empty();
    let now = (engine.borders.version(), if asks_time { clock::now_ms(engine) / 1000 } else { 0 });
    let mut merges = engine.merges.lock();
    let before = std::mem::replace(&mut merges.looked_at, now);
    if before.0 != now.0 {
        woken.extend(&merges.resting);
    } else if before.1 != now.1 {
        woken.extend(&merges.timed);
    }
    drop(merges);
    engine.work.changed.lock().extend(woken);
}

/// Whether more may be due for a table that has been looked at, without a change of its runs; and whether time alone may do that.
fn may_rest_for(engine: &Engine, table: &TableCore) -> Option<bool> {
    let view = table.view();
    let is_timed = table.is_timed || engine.options.deletes_age_max.is_some();
    let has_deletes =
        || view.runs.iter().flat_map(|run| &run.parts).any(|part| part.file.part.facts().deletes > 0);
    let is_plain = view.runs.len() == 1
        && !is_timed
        && table.separate_from == usize::MAX
        && view.range_deletes.is_empty()
        && !has_deletes();
    (!view.runs.is_empty() && !is_plain).then_some(is_timed)
}

fn plan_all_for(engine: &Engine, table: &Arc<TableCore>) -> Result<()> {
    if table.has_stamps {
        expire::drop_expired(engine, table)?;
    }
    while let Some(plan) = plan_for(engine, table) {
        let begun = note_plan(engine, table, plan).inspect_err(|error| give_up(engine, table.id, error));
        if table.check_alive().is_err() {
            return Ok(()); // it was dropped meanwhile, which is no failure
        }
        begun?;
    }
    Ok(())
}

/// The next merge of a table, whose inputs are taken for it in the same moment. None of one that somebody waits to
/// optimize: its runs would never all be free at once.
fn plan_for(engine: &Engine, table: &TableCore) -> Option<Plan> {
    if engine.merges.lock().optimized.get(&table.id) == Some(&Turn::Waits) {
        return None;
    }
    reserve(engine, table, |runs| due(engine, table, runs))
}

/// What is due for a table with these runs.
pub(super) fn due(engine: &Engine, table: &TableCore, runs: &[RunSummary]) -> Option<Plan> {
    if let Some(index) = table.index_to_clean()
        && let Some(plan) = clean_plan(table, runs)
    {
        index.forget_met();
        return Some(plan);
    }
    let moment = Moment {
        borders: engine.borders.all(),
        deletes_before: deletes_before(engine, table),
        ranges_due: ranges::ranges_due(engine, table, runs),
    };
    let options = MergeOptions::with_factor(engine.options.merge_factor);
    let mut options = hidden_values::with_hidden_values(engine, table, options);
    if !table.is_timed && !expire::has_covered(table) {
        return plan(&table.rules.order, runs, &moment, &options);
    }
    options.repeats_are_garbage = !table.keeps_past;
    let mut runs = runs.to_vec();
    expire::count_outdated(engine, table, &mut runs);
    expire::count_covered(engine, table, &mut runs);
    plan(&table.rules.order, &runs, &moment, &options)
}

/// Deletes of a table up to this seq are older than may be; 0 where there are none. A table that keeps its past keeps them with it.
fn deletes_before(engine: &Engine, table: &TableCore) -> Seq {
    match engine.options.deletes_age_max {
        Some(age) if !table.keeps_past => {
            clock::seq_about(engine, clock::now_ms(engine).saturating_sub(age.as_millis() as u64))
        }
        _ => 0,
    }
}

/// Makes a plan and marks its inputs as taken, under one lock: two threads never take the same run.
pub(super) fn reserve(
    engine: &Engine,
    table: &TableCore,
    make: impl FnOnce(&[RunSummary]) -> Option<Plan>,
) -> Option<Plan> {
    let mut merges = engine.merges.lock();
    if merges.given_up.contains_key(&table.id) {
        return None;
    }
    let plan = make(&summaries::summaries(table, &merges.busy))?;
    merges.busy.extend(plan.inputs.iter().map(|&input| (table.id, input)));
    Some(plan)
}

/// Gives back what a plan has taken.
pub(super) fn release(engine: &Engine, table: TableId, plan: &Plan, output: Option<RunId>) {
    let mut merges = engine.merges.lock();
    for run in plan.inputs.iter().copied().chain(output) {
        merges.busy.remove(&(table, run));
    }
    drop(merges);
    engine.work.changed.lock().insert(table);
}

/// Keeps a plan until its turn comes; a join needs no turn.
fn note_plan(engine: &Engine, table: &Arc<TableCore>, plan: Plan) -> Result<()> {
    if plan.way == Way::Join {
        let joined = join_runs(engine, table, &plan);
        release(engine, table.id, &plan, None);
        return joined;
    }
    engine.merges.lock().planned.push((Arc::clone(table), plan));
    Ok(())
}

/// Runs that share no keys become one run without any of them being read.
fn join_runs(engine: &Engine, core: &TableCore, plan: &Plan) -> Result<()> {
    let view = core.view();
    let inputs = view.runs.iter().filter(|run| plan.inputs.contains(&run.id));
    let mut parts: Vec<_> = inputs.flat_map(|run| run.parts.iter().map(|part| (run.id, part))).collect();
    parts.sort_by(|(_, a), (_, b)| core.rules.order.compare(&a.low, &b.low));
    let (table, run) = (core.id, RunId(engine.numbers.take().0));
    let (tier, age) = (plan.target_tier, plan.target_age);
    let changes = parts.iter().flat_map(|(from, view)| {
        let file = view.file.number;
        let mut part = part_state(file, view.file.part.facts());
        (part.low, part.trimmed) = (view.low.clone(), view.trimmed);
        [Change::RemovePart { table, run: *from, file }, Change::AddPart { table, run, tier, age, part }]
    });
    install::install(engine, core, changes.collect(), Installed::default())
}

/// True when no merge is due or under way, or all that are cannot go on. Looked at under one lock: runs that a merge
/// takes up in the meantime would be neither due nor under way.
pub(crate) fn is_settled(engine: &Engine) -> bool {
    let merges = engine.merges.lock();
    let is_due = |table: &Arc<TableCore>| {
        !merges.given_up.contains_key(&table.id)
            && due(engine, table, &summaries::summaries(table, &merges.busy)).is_some()
    };
    let catalog = engine.catalog();
    let mut to_look = engine.work.changed.lock().clone();
    to_look.extend(engine.work.stale.lock().iter());
    to_look.extend(&merges.resting);
    let mut tables = to_look.into_iter().filter_map(|id| catalog.by_id(id));
    merges.waiting.is_empty() && merges.busy.is_empty() && !tables.any(is_due)
}

/// What damage merges have met, and what sweeps or saves indexes, by table.
pub(crate) fn damage_met(engine: &Engine) -> Vec<String> {
    let merges = engine.merges.lock();
    let name = |id: &TableId| engine.catalog().by_id(*id).map(|table| table.name.clone());
    let met = merges.given_up.iter().filter_map(|(id, error)| Some((name(id)?, error)));
    let indexes = engine.catalog();
    let of_index = |table: &Arc<TableCore>| Some((table.name.clone(), table.hashed.as_ref()?.damage()?));
    let told = |(name, error): (String, &Error)| format!("table `{name}`: {}", error.message());
    let mut damage: Vec<String> = met.map(told).collect();
    damage.extend(
        indexes
            .hashed()
            .map(|(table, _)| table)
            .filter_map(of_index)
            .map(|(name, error)| told((name, &error))),
    );
    damage
}

/// Forgets the merges of a table that is dropped, and the files that it had.
pub(crate) fn forget_table(engine: &Engine, table: &TableCore) {
    let (jobs, _) = {
        let mut merges = engine.merges.lock();
        merges.busy.retain(|(id, _)| *id != table.id);
        merges.rest(table.id, None);
        merges.given_up.remove(&table.id);
        merges.take_all_of(table.id)
    };
    for mut job in jobs {
        job.output.discard(engine);
    }
    for file in table.part_files().values() {
        file.retire();
    }
    install::count_parts(engine, &table.view().runs, &[]);
    engine.work.sealed.lock().remove(&table.id);
    engine.work.leading.lock().remove(&table.id);
    old_snapshots::forget_own_files(engine, table);
    hash_checkpoint::abandon_saving(engine, table);
    if let Some(hashed) = &table.hashed {
        hashed.file.lock().iter().for_each(|file| file.retire());
        engine.values.installs.fetch_add(1, Ordering::AcqRel);
    }
    let waiting: usize = table.view().sealed.iter().map(|sealed| sealed.bytes).sum();
    engine.debt.settle_sealed(waiting);
    table.let_go();
    engine.bell.ring();
}

/// Gives up the merges that nobody will go on with, since the store is closed.
pub(crate) fn abandon_merges(engine: &Engine) {
    let jobs = {
        let mut merges = engine.merges.lock();
        merges.planned.clear();
        std::mem::take(&mut merges.waiting)
    };
    for mut job in jobs {
        job.output.discard(engine);
    }
}

/// Sets up a merge whose inputs have been taken for it; where that fails, they are given back.
pub(super) fn job(engine: &Engine, table: &Arc<TableCore>, plan: Plan) -> Result<MergeJob> {
    contain(|| set_up(engine, table, plan.clone())).inspect_err(|_| release(engine, table.id, &plan, None))
}

fn set_up(engine: &Engine, table: &Arc<TableCore>, plan: Plan) -> Result<MergeJob> {
    table.check_alive()?;
    let run = RunId(engine.numbers.take().0);
    let view = table.view();
    let inputs: Vec<&RunView> = view.runs.iter().filter(|run| plan.inputs.contains(&run.id)).collect();
    let times = clock::times_to_merge(engine, table, &|run| plan.inputs.contains(&run.id));
    // Borders are read after the inputs are fixed: a snapshot taken later is above all of them, or looks back no further
    // than is kept.
    let borders = engine.borders.all();
    let seqs = inputs.iter().flat_map(|run| &run.parts).map(|part| part.file.part.facts());
    let (min_seq, max_seq) =
        seqs.fold((u64::MAX, 0), |(low, high), facts| (low.min(facts.min_seq), high.max(facts.max_seq)));
    let age = inputs.iter().map(|run| run.age).min().unwrap_or(plan.target_age);
    let mut files = Vec::new();
    let mut cursors = Vec::new();
    for run in &inputs {
        let mut cursor = run_cursor(table, run, &mut files, Direction::Forward, ReadMode::ReadAhead);
        cursor.seek_start()?;
        cursors.push(cursor);
    }
    let range_deletes = step_ranges(&view, install::flushed_seq(engine, table));
    let rules = StepRules {
        order: table.rules.order.clone(),
        fold: table.rules.fold.clone(),
        borders: borders.clone(),
        range_deletes: range_deletes.clone(),
        bottom: if plan.is_bottom { BottomRule::Always } else { BottomRule::Never },
    };
    let keep_seqs = table.keeps_past
        || borders.iter().any(|&border| border >= min_seq && border < max_seq)
        || reaches_among_others(&view, &plan.inputs, min_seq, max_seq);
    engine.merges.lock().busy.insert((table.id, run));
    let bytes_total = files.iter().map(|file| taken_in_bytes(file.part.facts())).sum();
    let stream = KWay::new(table.rules.order.clone(), Direction::Forward, 0, cursors);
    Ok(MergeJob {
        table: Arc::clone(table),
        run,
        age,
        step: FoldStep::new(stream, rules).with_times(times),
        cleaner: Cleaner::of(table, &plan),
        output: Output::new(engine, table, (keep_seqs, plan.is_bottom, times), Who::Merge),
        range_deletes,
        borders,
        bytes_total,
        files,
        plan,
    })
}

/// Counts what merging is behind with in all tables, which slows writers down.
pub(crate) fn note_overdue(engine: &Engine) {
    engine.catalog().all().for_each(|table| note_overdue_of(engine, table));
}

/// The same, where only this table has changed.
pub(crate) fn note_overdue_of(engine: &Engine, table: &TableCore) {
    let mut merges = engine.merges.lock();
    let is_to_count = table.check_alive().is_ok() && !merges.given_up.contains_key(&table.id);
    let tiers = if is_to_count { merges.tiers_to_merge(table) } else { Vec::new() };
    let tier0 = tiers.first().copied().unwrap_or_default();
    let debt = TableDebt {
        overdue_bytes: pace::Debt::overdue(tier0.runs, tier0.bytes, engine.options.merge_factor),
        runs_max: tiers.iter().map(|tier| tier.runs).max().unwrap_or(0),
        tier_max: tiers.len().saturating_sub(1),
    };
    merges.behind.set(table.id, (!tiers.is_empty()).then_some(debt));
    let highest = |counts: &BTreeMap<usize, usize>| counts.last_key_value().map_or(0, |(&value, _)| value);
    let Behind { overdue_bytes, runs, tiers, .. } = &merges.behind;
    engine.debt.overdue_bytes.store(*overdue_bytes, Ordering::Relaxed);
    engine.debt.tier_runs_max.store(highest(runs), Ordering::Relaxed);
    engine.debt.tier_max.store(highest(tiers), Ordering::Relaxed);
}

/// What merges have before them of one tier of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tier {
    runs: usize,
    /// Bytes of keys and payloads, which is what the speed of merges is measured in: files may be several times smaller.
    bytes: u64,
}

impl Merges {
    /// The tiers of a table, the lowest first. What somebody optimizes does not count: it is no work of upkeep.
    fn tiers_to_merge(&self, table: &TableCore) -> Vec<Tier> {
        let mut tiers = Vec::new();
        let optimized = match self.optimized.get(&table.id) {
            Some(Turn::Merges(inputs)) => inputs.as_slice(),
            _ => &[],
        };
        for run in table.view().runs.iter().filter(|run| !optimized.contains(&run.id)) {
            let at = usize::from(run.tier);
            if tiers.len() <= at {
                tiers.resize(at + 1, Tier::default());
            }
            tiers[at].runs += 1;
            tiers[at].bytes +=
                run.parts.iter().map(|part| taken_in_bytes(part.file.part.facts())).sum::<u64>();
        }
        tiers
    }
}

/// What a merge takes in of a part, as [`Progress::bytes_done`] counts it.
pub(super) fn taken_in_bytes(facts: &PartFacts) -> u64 {
    facts.key_bytes + facts.payload_bytes
}

impl MergeJob {
    /// Takes in some keys; at the size of a part, and at the end, installs. True when the merge is done.
    pub(super) fn step(&mut self, engine: &Arc<Engine>) -> Result<bool> {
        engine.check_readable(&self.table)?; // a store that is closed gets no more files
        let (started, bytes_before) = (engine.host.clock.monotonic(), self.step.counts().bytes_in);
        let result = self.take_in(engine)?;
        let took = engine.host.clock.monotonic().saturating_sub(started);
        engine.debt.merge_bytes_per_s.note(self.step.counts().bytes_in - bytes_before, took);
        match result {
            StepResult::Done => {
                self.close_part(engine, true)?;
                Ok(true)
            }
            StepResult::AtKeyBorder if self.output.bytes_written() >= engine.options.part_bytes => {
                self.close_part(engine, false)?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Takes in some keys, and lets out what becomes of them.
    fn take_in(&mut self, engine: &Arc<Engine>) -> Result<StepResult> {
        let writer = self.output.writer(engine)?;
        let Some(cleaner) = &mut self.cleaner else {
            return self.step.step(step::step_budget(engine), writer);
        };
        let result = self.step.step(cleaner.budget(step::step_budget(engine)), cleaner.sink())?;
        cleaner.hand_on(engine, writer)?;
        Ok(result)
    }

    /// Installs the part written so far, and takes from the inputs what is in it.
    fn close_part(&mut self, engine: &Engine, is_last: bool) -> Result<()> {
        self.cleaner.as_mut().map_or(Ok(()), |cleaner| cleaner.settle(engine))?;
        let closed = self.output.close_part(engine, &self.table)?;
        let mut changes = Vec::new();
        let mut installed = Installed::default();
        if let Some((part, facts)) = closed {
            changes.push(Change::AddPart {
                table: self.table.id,
                run: self.run,
                tier: self.plan.target_tier,
                age: self.age,
                part: part_state(part.number, &facts),
            });
            installed.parts.push(part);
        }
        let next_key = if is_last { None } else { self.step.next_key() };
        changes.extend(consumed(&self.table, &self.plan.inputs, next_key));
        if is_last {
            changes.extend(self.retired_range_deletes(engine));
        }
        install::install(engine, &self.table, changes, installed)?;
        self.files.retain(|file| !file.is_retired()); // what has been read to its end goes now
        Ok(())
    }

    /// The range deletes that hide nothing any more, as far as this merge can tell. Those that only the log has yet
    /// are left to a later one.
    fn retired_range_deletes(&self, engine: &Engine) -> Vec<Change> {
        if self.range_deletes.is_empty() {
            return Vec::new();
        }
        // The manifest first: a flush that ends meanwhile adds a range delete and the run that it came with.
        let _manifest = engine.manifest.lock();
        let view = self.table.view();
        let is_other = |run: &&RunView| run.id != self.run && !self.plan.inputs.contains(&run.id);
        let others: Vec<&RunView> = view.runs.iter().filter(is_other).collect();
        let applied = Applied {
            table: &self.table,
            ranges: &self.range_deletes,
            borders: &self.borders,
            sheltering: self.step.sheltering().collect(),
            written: None,
        };
        let idle = applied.idle(&others, None);
        let done = self.range_deletes.iter().zip(idle).filter(|(_, idle)| *idle);
        done.map(|(range, _)| Change::RetireRangeDelete { table: self.table.id, seq: range.seq }).collect()
    }

    pub(super) fn progress(&self) -> Progress {
        let counts = self.step.counts();
        Progress {
            bytes_done: counts.bytes_in,
            bytes_total: self.bytes_total,
            records_in: counts.records_in,
            records_out: counts.records_out,
        }
    }
}

/// Whether seqs of runs that are no inputs lie among those of the inputs: a merge that was broken off leaves such. Its
/// output holds the newest seqs next to keys that only older runs have, and without seqs of their own these would read
/// as newer than what other runs hold of them.
fn reaches_among_others(view: &TableView, inputs: &[RunId], min_seq: Seq, max_seq: Seq) -> bool {
    let others = view.runs.iter().filter(|run| !inputs.contains(&run.id)).flat_map(|run| &run.parts);
    others
        .map(|part| part.file.part.facts())
        .any(|facts| facts.min_seq <= max_seq && facts.max_seq >= min_seq)
}

/// Runs what may call a user's comparison function. A panic is a failure, so that what was taken is given back.
pub(super) fn contain<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Io, "a merge panicked; what it was doing has not taken effect"))
    })
}

/// What the inputs lose: everything below `next_key`, or all.
fn consumed(table: &TableCore, inputs: &[RunId], next_key: Option<&[u8]>) -> Vec<Change> {
    let order = &table.rules.order;
    let mut changes = Vec::new();
    let view = table.view();
    for run in view.runs.iter().filter(|run| inputs.contains(&run.id)) {
        for part in &run.parts {
            let (table, run, file) = (table.id, run.id, part.file.number);
            match next_key {
                Some(next) if order.compare(next, &part.low).is_le() => {}
                Some(next) if order.compare(next, &part.high).is_le() => {
                    changes.push(Change::TrimPart { table, run, file, low: next.to_vec() });
                }
                _ => changes.push(Change::RemovePart { table, run, file }),
            }
        }
    }
    changes
}

/// How far the one has come who optimizes a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Merges have runs of the table: they are given up, and no more are begun.
    Waits,
    /// It has these inputs. Merges of newer runs go on beside it.
    Merges(Vec<RunId>),
}

#[cfg(test)]
mod tests;
