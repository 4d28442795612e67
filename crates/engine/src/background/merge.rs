//! Merging: carries out plans in paced steps, with one edit for each finished part.
//!
//! One edit adds a finished part and removes its keys from the inputs. So at any moment each key of
//! the table is in exactly one place, a merge may be given up after any part, and the space of its
//! inputs is freed along the way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::ids::RunId;
use folddb_base::stream::Direction;
use folddb_base::{Error, ErrorKind, Result, Seq, TableId};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::manifest_edit::Change;
use folddb_merge::plan::{Reason, Way, joined_price, plan};
use folddb_merge::{BottomRule, FoldStep, KWay, MergeOptions, Moment, Plan, RunSummary, StepRules, pace};
use folddb_rules::codec::KeyRange;
use folddb_run::ReadMode;

use super::clean::{Cleaner, clean_plan};
use super::output::Output;
use super::ranges::{gone, step_ranges};
use crate::background::merge_job::MergeJob;
use crate::background::merges::{Behind, Next, TableDebt, Turn};
use crate::background::state::Background;
use crate::background::{
    covered, drop_parts, expire, hash_checkpoint, hidden_values, merge_job, ranges, summaries,
};
use crate::edit::install::{Installed, part_state};
use crate::edit::{install, old_snapshots};
use crate::read::scan::run_cursor;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::disk_quota::SpaceUser;
use crate::state::engine::Engine;
use crate::state::key_range;
use crate::state::view::RunView;

/// Plans what is due, and takes one step of the merge that writers need most: the one of the lowest
/// tier. Small merges thus overtake big ones.
pub(crate) fn merge_step(background: &Background) -> Result<Option<String>> {
    let engine = &background.engine;
    if engine.health.cause().is_some() {
        return Ok(None);
    }
    plan_merges(background)?;
    let next = background.merges.lock().take_next();
    let mut job = match next {
        None => return Ok(None),
        Some(Next::Begun(job)) => *job,
        Some(Next::Planned(table, plan)) => match job(background, &table, plan) {
            Ok(job) => job,
            Err(_) if table.check_alive().is_err() => return Ok(Some(gone(&table))),
            Err(error) => {
                give_up(background, table.id, &error);
                return Err(error);
            }
        },
    };
    match merge_job::contain(|| job.step(engine)) {
        Ok(false) => {
            let done = format!("a step of: {}", job.plan);
            keep(background, job);
            Ok(Some(done))
        }
        Ok(true) => {
            let done = format!("done: {}", job.plan);
            finish_job(background, job);
            Ok(Some(done))
        }
        Err(error) => {
            let table = Arc::clone(&job.table);
            abandon_job(background, job, &error);
            if table.check_alive().is_err() { Ok(Some(gone(&table))) } else { Err(error) }
        }
    }
}

/// Keeps a merge until its next turn, unless a caller waits for its inputs.
fn keep(background: &Background, job: MergeJob) {
    {
        let mut merges = background.merges.lock();
        if merges.compacted.get(&job.table.id) != Some(&Turn::Waits) {
            merges.waiting.push(job);
            return;
        }
    }
    give_back(background, job);
}

/// Gives up a merge between two steps. Installed parts stay; everything else that it has written is
/// removed.
pub fn give_back(background: &Background, mut job: MergeJob) {
    let engine = &background.engine;
    job.output.discard(engine);
    release(background, job.table.id, &job.plan, Some(job.run));
    engine.bell.ring();
}

pub(crate) fn finish_job(background: &Background, job: MergeJob) {
    let engine = &background.engine;
    let counts = job.step.counts();
    job.table.repeats.note_merge(job.repeated, counts.bytes_in, counts.bytes_out);
    engine.counters.merges.add(1);
    engine.latencies.merge.note(job.took);
    engine.counters.records_merged.add(job.step.counts().records_in);
    engine.counters.fold_failures.add(job.step.counts().declined_failed);
    engine.counters.records_expired.add(job.step.counts().expired);
    engine.events.note(|| job.event());
    job.cleaner.iter().for_each(Cleaner::finish);
    let (table, plan, run) = (Arc::clone(&job.table), job.plan.clone(), job.run);
    drop(job); // and the files that it has read
    release(background, table.id, &plan, Some(run));
    note_overdue_of(background, &table);
    engine.bell.ring();
}

pub(crate) fn abandon_job(background: &Background, mut job: MergeJob, error: &Error) {
    let engine = &background.engine;
    job.output.discard(engine);
    release(background, job.table.id, &job.plan, Some(job.run));
    give_up(background, job.table.id, error);
}

/// A damaged table is left alone, and does not block other tables.
fn give_up(background: &Background, table: TableId, error: &Error) {
    if error.kind() == ErrorKind::Corruption {
        background.merges.lock().given_up.insert(table, error.clone());
    }
}

/// Plans every merge that is due and not running. Examines a table only if something about it has
/// changed.
fn plan_merges(background: &Background) -> Result<()> {
    let engine = &background.engine;
    wake_tables(background);
    let catalog = engine.catalog();
    loop {
        // Removed before it is examined: a change in between adds it again.
        let Some(id) = engine.work.changed.lock().pop_first() else { return Ok(()) };
        let Some(table) = catalog.by_id(id).cloned().or_else(|| engine.catalog().by_id(id).cloned()) else {
            continue;
        };
        plan_all_for(background, &table).inspect_err(|_| _ = engine.work.changed.lock().insert(id))?;
        let mut merges = background.merges.lock();
        merges.rest(id, may_rest_for(engine, &table));
    }
}

/// Marks unchanged tables for planning if more may be due by now.
fn wake_tables(background: &Background) {
    let engine = &background.engine;
    let mut woken: Vec<TableId> = std::mem::take(&mut *engine.work.stale.lock()).into_iter().collect();
    let asks_time = !background.merges.lock().timed.is_empty();
    let now = (engine.boundaries.version(), if asks_time { clock::now_ms(engine) / 1000 } else { 0 });
    let mut merges = background.merges.lock();
    let before = std::mem::replace(&mut merges.examined_at, now);
    if before.0 != now.0 {
        woken.extend(&merges.resting);
    } else if before.1 != now.1 {
        woken.extend(&merges.timed);
    }
    drop(merges);
    engine.work.changed.lock().extend(woken);
}

/// Whether more may become due for an examined table without a change of its runs; and whether time
/// alone may cause that.
fn may_rest_for(engine: &Engine, table: &TableCore) -> Option<bool> {
    let view = table.view();
    let is_timed = table.is_timed || engine.options.deletes_age_max.is_some();
    let has_deletes =
        || view.runs.iter().flat_map(|run| &run.parts).any(|part| part.file.part.facts().deletes > 0);
    let is_plain = view.runs.len() == 1
        && !is_timed
        && table.separate_from() == usize::MAX
        && view.range_deletes.is_empty()
        && !has_deletes();
    (!view.runs.is_empty() && !is_plain).then_some(is_timed)
}

fn plan_all_for(background: &Background, table: &Arc<TableCore>) -> Result<()> {
    if table.has_stamps || !table.view().range_deletes.is_empty() {
        drop_parts::drop_parts(background, table)?;
    }
    while let Some(plan) = plan_for(background, table) {
        let begun =
            note_plan(background, table, plan).inspect_err(|error| give_up(background, table.id, error));
        if table.check_alive().is_err() {
            return Ok(()); // it was dropped in between, which is no failure
        }
        begun?;
    }
    Ok(())
}

/// The next merge of a table, whose inputs are reserved at the same moment. None if a caller waits
/// to compact the table: its runs would never all be free at once.
fn plan_for(background: &Background, table: &TableCore) -> Option<Plan> {
    let engine = &background.engine;
    if background.merges.lock().compacted.get(&table.id) == Some(&Turn::Waits) {
        return None;
    }
    let plan = reserve(background, table, |runs| due(engine, table, runs))?;
    if matches!(plan.reason, Reason::Joined(_)) {
        table.repeats.spend();
    }
    Some(plan)
}

/// The merge that is due for a table with these runs.
pub(crate) fn due(engine: &Engine, table: &TableCore, runs: &[RunSummary]) -> Option<Plan> {
    if let Some(index) = table.index_to_clean()
        && let Some(plan) = clean_plan(table, runs)
    {
        index.forget_read();
        return Some(plan);
    }
    let moment = Moment {
        boundaries: engine.boundaries.all(),
        deletes_before: deletes_before(engine, table),
        ranges_due: ranges::ranges_due(engine, table, runs),
        joined_bytes: table.repeats.joined_bytes(),
    };
    let options = merge_options(engine, table);
    let is_priced = !table.keeps_past;
    let price = || joined_price(&table.rules.order, runs, &moment, &options);
    table.repeats.set_price(is_priced.then(price).flatten());
    if !table.is_timed && !covered::has_covered(table) {
        return plan(&table.rules.order, runs, &moment, &options);
    }
    let mut runs = runs.to_vec();
    expire::count_outdated(engine, table, &mut runs);
    covered::count_covered(engine, table, &mut runs);
    plan(&table.rules.order, &runs, &moment, &options)
}

/// The options of a table's merges. Versions of a past that is kept are not garbage.
fn merge_options(engine: &Engine, table: &TableCore) -> MergeOptions {
    let freed_by_repeat = if table.keeps_past { 0.0 } else { table.repeats.freed() };
    let options = MergeOptions { freed_by_repeat, ..MergeOptions::with_factor(engine.options.merge_factor) };
    hidden_values::with_hidden_values(engine, table, options)
}

/// Deletes of a table up to this seq are too old; 0 if there are none. A table that keeps its past
/// keeps them, too.
fn deletes_before(engine: &Engine, table: &TableCore) -> Seq {
    match engine.options.deletes_age_max {
        Some(age) if !table.keeps_past => {
            clock::seq_about(engine, clock::now_ms(engine).saturating_sub(age.as_millis() as u64))
        }
        _ => 0,
    }
}

/// Makes a plan and reserves its inputs, under one lock: two threads never take the same run.
pub(crate) fn reserve(
    background: &Background,
    table: &TableCore,
    make: impl FnOnce(&[RunSummary]) -> Option<Plan>,
) -> Option<Plan> {
    let mut merges = background.merges.lock();
    if merges.given_up.contains_key(&table.id) {
        return None;
    }
    let plan = make(&summaries::summaries(table, &merges.busy))?;
    merges.busy.extend(plan.inputs.iter().map(|&input| (table.id, input)));
    Some(plan)
}

/// Releases the inputs of a plan.
pub(crate) fn release(background: &Background, table: TableId, plan: &Plan, output: Option<RunId>) {
    let engine = &background.engine;
    let mut merges = background.merges.lock();
    for run in plan.inputs.iter().copied().chain(output) {
        merges.busy.remove(&(table, run));
    }
    drop(merges);
    engine.work.changed.lock().insert(table);
}

/// Queues a plan; a join is done at once.
fn note_plan(background: &Background, table: &Arc<TableCore>, plan: Plan) -> Result<()> {
    let engine = &background.engine;
    if plan.way == Way::Join {
        let joined = join_runs(engine, table, &plan);
        release(background, table.id, &plan, None);
        return joined;
    }
    background.merges.lock().planned.push((Arc::clone(table), plan));
    Ok(())
}

/// Makes one run of runs that share no keys, without reading them.
pub(crate) fn join_runs(engine: &Engine, core: &TableCore, plan: &Plan) -> Result<()> {
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

/// True if no merge is due or running, or none of these can continue. Checked under one lock:
/// otherwise, runs that a merge takes in between would be neither due nor in a running merge.
pub fn is_settled(background: &Background) -> bool {
    let engine = &background.engine;
    let merges = background.merges.lock();
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

/// Damage that merges, sweeps and checkpoints of indexes have met, by table.
pub fn damage_met(background: &Background) -> Vec<String> {
    let engine = &background.engine;
    let merges = background.merges.lock();
    let name = |id: &TableId| engine.catalog().by_id(*id).map(|table| table.name.clone());
    let met = merges.given_up.iter().filter_map(|(id, error)| Some((name(id)?, error)));
    let indexes = engine.catalog();
    let of_index = |table: &Arc<TableCore>| Some((table.name.clone(), table.hashed.as_ref()?.damage()?));
    let message = |(name, error): (String, &Error)| format!("table `{name}`: {}", error.message());
    let mut damage: Vec<String> = met.map(message).collect();
    damage.extend(
        indexes
            .hashed()
            .map(|(table, _)| table)
            .filter_map(of_index)
            .map(|(name, error)| message((name, &error))),
    );
    damage
}

/// Forgets the merges of a dropped table, and its files.
pub fn forget_table(background: &Background, table: &TableCore) {
    let engine = &background.engine;
    let (jobs, _) = {
        let mut merges = background.merges.lock();
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
    old_snapshots::forget_pinned_files(engine, table);
    hash_checkpoint::abandon_saving(engine, table);
    if let Some(hashed) = &table.hashed {
        hashed.file.lock().iter().for_each(|file| file.retire());
        engine.values.installs.fetch_add(1, Ordering::AcqRel);
    }
    let waiting: usize = table.view().sealed.iter().map(|sealed| sealed.bytes).sum();
    engine.memory.settle_sealed(waiting);
    table.let_go();
    engine.bell.ring();
}

/// Gives up all merges, since the store is closed.
pub fn abandon_merges(background: &Background) {
    let engine = &background.engine;
    let jobs = {
        let mut merges = background.merges.lock();
        merges.planned.clear();
        std::mem::take(&mut merges.waiting)
    };
    for mut job in jobs {
        job.output.discard(engine);
    }
}

/// Sets up a merge whose inputs are reserved; on failure, these are released.
pub(crate) fn job(background: &Background, table: &Arc<TableCore>, plan: Plan) -> Result<MergeJob> {
    job_of_range(background, table, plan, KeyRange::all())
}

/// The same for the keys of a range, in which no part of an input begins earlier.
pub(crate) fn job_of_range(
    background: &Background,
    table: &Arc<TableCore>,
    plan: Plan,
    range: KeyRange,
) -> Result<MergeJob> {
    merge_job::contain(|| set_up(background, table, plan.clone(), range))
        .inspect_err(|_| release(background, table.id, &plan, None))
}

fn set_up(background: &Background, table: &Arc<TableCore>, plan: Plan, range: KeyRange) -> Result<MergeJob> {
    let engine = &background.engine;
    table.check_alive()?;
    let run = RunId(engine.numbers.take().0);
    let view = table.view();
    let inputs: Vec<&RunView> = view.runs.iter().filter(|run| plan.inputs.contains(&run.id)).collect();
    let times = clock::times_to_merge(engine, table, &|run| plan.inputs.contains(&run.id));
    // Boundaries are read after the inputs are fixed: a later snapshot is above all of them, or
    // reads no further back than is kept.
    let boundaries = engine.boundaries.all();
    let seqs = inputs.iter().flat_map(|run| &run.parts).map(|part| part.file.part.facts());
    let (min_seq, max_seq) =
        seqs.fold((u64::MAX, 0), |(low, high), facts| (low.min(facts.min_seq), high.max(facts.max_seq)));
    let age = inputs.iter().map(|run| run.age).min().unwrap_or(plan.target_age);
    let mut files = Vec::new();
    let mut cursors = Vec::new();
    for run in &inputs {
        let mut cursor = run_cursor(table, run, &mut files, Direction::Forward, ReadMode::ReadAhead);
        cursor.seek(key_range::bounds(&range).0)?;
        cursors.push(cursor);
    }
    let range_deletes = step_ranges(&view, install::flushed_seq(engine, table));
    let rules = StepRules {
        order: table.rules.order.clone(),
        fold: table.rules.fold.clone(),
        boundaries: boundaries.clone(),
        range_deletes: range_deletes.clone(),
        bottom: if plan.is_bottom { BottomRule::Always } else { BottomRule::Never },
    };
    let keep_seqs = table.keeps_past
        || boundaries.iter().any(|&boundary| boundary >= min_seq && boundary < max_seq)
        || merge_job::reaches_among_others(&view, &plan.inputs, min_seq, max_seq);
    background.merges.lock().busy.insert((table.id, run));
    let parts = inputs.iter().flat_map(|run| &run.parts);
    let met = parts.filter(|part| key_range::meets(&range, &table.rules.order, part));
    let bytes_total = met.map(|part| merge_job::taken_in_bytes(part.file.part.facts())).sum();
    let is_whole = range == KeyRange::all();
    let stream = KWay::new(table.rules.order.clone(), Direction::Forward, 0, cursors);
    Ok(MergeJob {
        table: Arc::clone(table),
        repeated: if keep_seqs { 0.0 } else { plan.repeated },
        run,
        age,
        step: FoldStep::new(stream, rules).with_times(times).ending(&table.rules.order, range.high.clone()),
        cleaner: if is_whole { Cleaner::of(table, &plan) } else { None },
        range,
        output: Output::new(engine, table, (keep_seqs, plan.is_bottom, times), SpaceUser::Merge),
        range_deletes,
        boundaries,
        bytes_total,
        took: Duration::ZERO,
        files,
        plan,
    })
}

/// Counts the backlog of merges in all tables, which slows writers down.
pub fn note_overdue(background: &Background) {
    let engine = &background.engine;
    engine.catalog().all().for_each(|table| note_overdue_of(background, table));
}

/// The same, if only this table has changed.
pub fn note_overdue_of(background: &Background, table: &TableCore) {
    let engine = &background.engine;
    let mut merges = background.merges.lock();
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
