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
use folddb_merge::kway::shared_skip;
use folddb_merge::plan::{Reason, Way, joined_price, plan};
use folddb_merge::{
    Borders, BottomRule, Counts, FoldStep, KWay, MergeOptions, Moment, Plan, RunSummary, StepRules, pace,
};
use folddb_rules::codec::KeyRange;
use folddb_run::{ReadMode, RunCursor};

use super::clean::{Cleaner, clean_plan};
use super::merge_base::{MergeBase, reaches_among_others, taken_in_bytes};
use super::output::Output;
use super::ranges::{gone, step_ranges};
use super::split::{End, Slice, Split, borders_of};
use crate::background::merge_job::MergeJob;
use crate::background::merges::{Behind, Next, TableDebt, Turn};
use crate::background::state::Background;
use crate::background::{
    covered, drop_parts, expire, hash_checkpoint, hidden_values, merge_job, ranges, summaries,
};
use crate::edit::install::{Installed, part_state};
use crate::edit::{install, old_snapshots};
use crate::read::scan::parts_cursor;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::disk_quota::SpaceUser;
use crate::state::engine::Engine;
use crate::state::key_range;
use crate::state::view::{RunView, TableView};

/// Plans what is due, and takes one step of the merge that writers need most: the one of the lowest
/// tier. Small merges thus overtake big ones.
pub(crate) fn merge_step(background: &Background) -> Result<Option<String>> {
    let engine = &background.engine;
    if engine.health.cause().is_some() {
        return Ok(None);
    }
    plan_merges(background)?;
    let next = background.merges.lock().take_next();
    let job = match next {
        None => return Ok(None),
        Some(Next::Begun(job)) => *job,
        Some(Next::Slice(slice)) => {
            let table = Arc::clone(&slice.split.base.table);
            match slice_job(background, slice) {
                Ok(job) => job,
                Err(_) if table.check_alive().is_err() => return Ok(Some(gone(&table))),
                Err(error) => return Err(error),
            }
        }
        Some(Next::Planned(table, plan)) => match job(background, &table, plan) {
            Ok(job) => job,
            Err(_) if table.check_alive().is_err() => return Ok(Some(gone(&table))),
            Err(error) => {
                give_up(background, table.id, &error);
                return Err(error);
            }
        },
    };
    take_step(background, job)
}

fn take_step(background: &Background, mut job: MergeJob) -> Result<Option<String>> {
    let base = Arc::clone(&job.base);
    match merge_job::contain(|| job.step(&background.engine)) {
        Ok(false) => {
            keep(background, job);
            Ok(Some(format!("a step of: {}", base.plan)))
        }
        Ok(true) => {
            let done = if finish_job(background, job) { "done" } else { "a slice of" };
            Ok(Some(format!("{done}: {}", base.plan)))
        }
        Err(error) => {
            abandon_job(background, job, &error);
            if base.table.check_alive().is_err() { Ok(Some(gone(&base.table))) } else { Err(error) }
        }
    }
}

/// Keeps a merge until its next turn, unless it was given up meanwhile, or a caller waits for its
/// inputs.
pub(crate) fn keep(background: &Background, job: MergeJob) {
    {
        let mut merges = background.merges.lock();
        if merges.compacted.get(&job.base.table.id) != Some(&Turn::Waits) && !job.is_stopped() {
            merges.waiting.push(job);
            return;
        }
    }
    give_back(background, job);
}

/// Gives up a merge between two steps; one in slices as a whole. Installed parts stay; everything
/// else that it has written is removed.
pub fn give_back(background: &Background, job: MergeJob) {
    let_go(background, job, None);
    background.engine.bell.ring();
}

/// Gives up a merge in slices, of which threads may run some: these end with their next step.
pub(crate) fn stop(background: &Background, split: &Arc<Split>) {
    stop_slices(background, split, None);
    release_if_over(background, split);
    background.engine.bell.ring();
}

fn stop_slices(background: &Background, split: &Arc<Split>, error: Option<&Error>) {
    split.stop(error);
    let waiting = background.merges.lock().take_slices_of(split);
    waiting.into_iter().for_each(|job| forget_job(background, job));
}

/// Gives up a merge whose slice or whole this is.
fn let_go(background: &Background, mut job: MergeJob, error: Option<&Error>) {
    job.output.discard(&background.engine);
    let (base, slice) = (Arc::clone(&job.base), job.slice.take());
    drop(job); // and the files that it has read
    match slice {
        None => release(background, base.table.id, &base.plan, Some(base.run)),
        Some(slice) => {
            stop_slices(background, &slice.split, error);
            leave(background, slice);
        }
    }
}

/// A slice no longer runs; with the last one, the inputs are released.
fn leave(background: &Background, slice: Slice) {
    let split = Arc::clone(&slice.split);
    drop(slice); // and the parts that it has not handed over
    split.leave();
    release_if_over(background, &split);
}

/// Releases the inputs of a merge in slices, if nothing of it runs or will. True for one caller.
fn release_if_over(background: &Background, split: &Arc<Split>) -> bool {
    let is_over = split.is_to_release();
    if is_over {
        let base = &split.base;
        background.merges.lock().splits.retain(|other| !Arc::ptr_eq(other, split));
        release(background, base.table.id, &base.plan, Some(base.run));
    }
    is_over
}

/// Ends a merge that is done. False if it was a slice, and others are not done yet.
pub(crate) fn finish_job(background: &Background, mut job: MergeJob) -> bool {
    let engine = &background.engine;
    let (base, slice) = (Arc::clone(&job.base), job.slice.take());
    job.cleaner.iter().for_each(Cleaner::finish);
    let whole = (*job.step.counts(), job.took);
    drop(job); // and the files that it has read
    let Some(slice) = slice else {
        note_done(engine, &base, base.plan.to_string(), whole);
        release(background, base.table.id, &base.plan, Some(base.run));
        note_overdue_of(background, &base.table);
        engine.bell.ring();
        return true;
    };
    let split = Arc::clone(&slice.split);
    split.leave();
    let is_last = release_if_over(background, &split);
    if is_last {
        if matches!(split.end(), Some(End::Complete)) {
            note_done(engine, &base, split.plan_text(), split.totals());
        }
        note_overdue_of(background, &base.table);
    }
    engine.bell.ring(); // others may begin slices, or wait for the end
    is_last
}

/// Counts a merge that is done.
fn note_done(engine: &Engine, base: &MergeBase, plan: String, (counts, took): (Counts, Duration)) {
    base.table.repeats.note_merge(base.repeated, counts.bytes_in, counts.bytes_out);
    engine.counters.merges.add(1);
    engine.latencies.merge.note(took);
    engine.counters.records_merged.add(counts.records_in);
    engine.counters.fold_failures.add(counts.declined_failed);
    engine.counters.records_expired.add(counts.expired);
    engine.events.note(|| merge_job::event_of(base, plan, &counts, took));
}

pub(crate) fn abandon_job(background: &Background, job: MergeJob, error: &Error) {
    let table = job.base.table.id;
    let_go(background, job, Some(error));
    give_up(background, table, error);
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
    covered::count_covered(table, &mut runs);
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
    if engine.options.merge_threads > 1 {
        engine.bell.ring(); // other threads that merge may be asleep
    }
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

/// True if no merge is due or running, or none of these can continue, and nothing has to be
/// examined to know that. Checked under one lock: otherwise, runs that a merge takes in between
/// would be neither due nor in a running merge.
pub fn is_settled(background: &Background) -> bool {
    let engine = &background.engine;
    let merges = background.merges.lock();
    let is_due = |table: &Arc<TableCore>| {
        !merges.given_up.contains_key(&table.id)
            && (due(engine, table, &summaries::summaries(table, &merges.busy)).is_some()
                || covered::is_to_examine(engine, table))
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
    let taken = {
        let mut merges = background.merges.lock();
        merges.busy.retain(|(id, _)| *id != table.id);
        merges.rest(table.id, None);
        merges.given_up.remove(&table.id);
        merges.take_all_of(table.id)
    };
    taken.splits.iter().for_each(|split| split.stop(None));
    taken.jobs.into_iter().for_each(|job| forget_job(background, job));
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
    let (jobs, splits) = {
        let mut merges = background.merges.lock();
        merges.planned.clear();
        (std::mem::take(&mut merges.waiting), std::mem::take(&mut merges.splits))
    };
    splits.iter().for_each(|split| split.stop(None));
    jobs.into_iter().for_each(|job| forget_job(background, job));
}

/// Forgets a job that rests. Whoever waits for the others of its merge must not wait for it.
fn forget_job(background: &Background, mut job: MergeJob) {
    job.output.discard(&background.engine);
    let slice = job.slice.take();
    drop(job); // and the files that it has read
    slice.into_iter().for_each(|slice| leave(background, slice));
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
    let view = table.view();
    let inputs: Vec<&RunView> = view.runs.iter().filter(|run| plan.inputs.contains(&run.id)).collect();
    let base = Arc::new(base_of(engine, table, &view, plan, &range));
    let cleaner = if range == KeyRange::all() { Cleaner::of(table, &base.plan) } else { None };
    let is_cut = range == KeyRange::all() && cleaner.is_none();
    let borders = if is_cut { borders_of(engine, &base, &inputs) } else { Borders::default() };
    if borders.slices() == 1 {
        let job = job_of(engine, Arc::clone(&base), None, range)?;
        background.merges.lock().busy.insert((table.id, base.run));
        return Ok(MergeJob { cleaner, ..job });
    }
    let split = Split::of(Arc::clone(&base), borders, engine.options.merge_threads);
    let slice = split.begin().ok_or_else(|| Error::invalid("no slice of a merge may begin"))?;
    let range = slice.range();
    let job = job_of(engine, base, Some(slice), range)?;
    let mut merges = background.merges.lock();
    merges.busy.insert((table.id, split.base.run));
    merges.splits.push(split);
    drop(merges);
    engine.bell.ring(); // its other slices may begin
    Ok(job)
}

/// What is the same for all keys of a merge of the runs that this view has.
fn base_of(
    engine: &Engine,
    table: &Arc<TableCore>,
    view: &TableView,
    plan: Plan,
    range: &KeyRange,
) -> MergeBase {
    let inputs: Vec<&RunView> = view.runs.iter().filter(|run| plan.inputs.contains(&run.id)).collect();
    let times = clock::times_to_merge(engine, table, &|run| plan.inputs.contains(&run.id));
    // Boundaries are read after the inputs are fixed: a later snapshot is above all of them, or
    // reads no further back than is kept.
    let boundaries = engine.boundaries.all();
    let seqs = inputs.iter().flat_map(|run| &run.parts).map(|part| part.file.part.facts());
    let (min_seq, max_seq) =
        seqs.fold((u64::MAX, 0), |(low, high), facts| (low.min(facts.min_seq), high.max(facts.max_seq)));
    let age = inputs.iter().map(|run| run.age).min().unwrap_or(plan.target_age);
    let range_deletes = step_ranges(view, install::flushed_seq(engine, table));
    let keep_seqs = table.keeps_past
        || boundaries.iter().any(|&boundary| boundary >= min_seq && boundary < max_seq)
        || reaches_among_others(view, &plan.inputs, min_seq, max_seq);
    let parts = inputs.iter().flat_map(|run| &run.parts);
    let met = parts.filter(|part| key_range::meets(range, &table.rules.order, part));
    MergeBase {
        table: Arc::clone(table),
        run: RunId(engine.numbers.take().0),
        age,
        keep_seqs,
        times,
        repeated: if keep_seqs { 0.0 } else { plan.repeated },
        range_deletes,
        boundaries,
        bytes_total: met.map(|part| taken_in_bytes(part.file.part.facts())).sum(),
        plan,
    }
}

/// The work of a slice that has begun; if it cannot be set up, its merge is given up.
pub(crate) fn slice_job(background: &Background, slice: Slice) -> Result<MergeJob> {
    let (split, range) = (Arc::clone(&slice.split), slice.range());
    let base = Arc::clone(&split.base);
    merge_job::contain(|| job_of(&background.engine, base, Some(slice), range)).inspect_err(|error| {
        stop_slices(background, &split, Some(error));
        split.leave();
        release_if_over(background, &split);
        give_up(background, split.base.table.id, error);
        background.engine.bell.ring();
    })
}

/// The work of a merge in a range of its keys, or in all of them.
fn job_of(engine: &Engine, base: Arc<MergeBase>, slice: Option<Slice>, range: KeyRange) -> Result<MergeJob> {
    let table = Arc::clone(&base.table);
    let (order, view) = (&table.rules.order, table.view());
    let (mut files, mut cursors) = (Vec::new(), Vec::new());
    for run in view.runs.iter().filter(|run| base.plan.inputs.contains(&run.id)) {
        // Without a slice, it may have to look at the key after its range.
        let parts = match &slice {
            Some(_) => run.parts_between(order, key_range::bounds(&range)),
            None => &run.parts[..],
        };
        let mut cursor = parts_cursor(&table, parts, &mut files, Direction::Forward, ReadMode::ReadAhead);
        cursor.seek(key_range::bounds(&range).0)?;
        cursors.push(cursor);
    }
    let rules = StepRules {
        order: order.clone(),
        fold: table.rules.fold.clone(),
        boundaries: base.boundaries.clone(),
        range_deletes: base.range_deletes.clone(),
        bottom: if base.plan.is_bottom { BottomRule::Always } else { BottomRule::Never },
    };
    let skip = shared_skip(order, cursors.iter().filter_map(RunCursor::shared_prefix));
    let stream = KWay::new(order.clone(), Direction::Forward, skip, cursors);
    let shape = (base.keep_seqs, base.plan.is_bottom, base.times);
    Ok(MergeJob {
        step: FoldStep::new(stream, rules).with_times(base.times).ending(order, range.high.clone()),
        cleaner: None,
        output: Output::new(engine, &table, shape, SpaceUser::Merge),
        took: Duration::ZERO,
        range,
        slice,
        files,
        base,
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
