//! Reclaiming the space of dead values (value-log GC) during reads and writes: files without live
//! values are removed, and the live values of files that are worth it are copied together into one.
//!
//! The live values of a segment are those that parts point to, once nothing else can: no running
//! batch has put a value into it, and no memtable holds a pointer to one. So a segment waits until
//! it is
//!
//! ```text
//!   sealed    nothing is added any more, said in the manifest
//!   fenced    every batch that put a value into it has it in a memtable; the log ended here then (see `values/settle.rs`, `fence`)
//!   flushed   what the manifest says is needed of the log begins there or later: no memtable holds such a pointer, and no replay
//!             after a crash will meet one; and no feed has still to give what leads there (`feeds.rs`)
//! ```
//!
//! and is then *settled*, for good, even if its values move. From then on the parts that point to
//! it only decrease: merges write what their inputs hold, and these are listed until the merges are
//! done.
//!
//! One edit removes dead segments from the list, or moves segments to another file; a new segment
//! map begins (`value_files.rs`), and files are removed with the last reader of an older one. A
//! crash before the edit changes nothing, or leaves a new file that the next opening removes; a
//! crash after it leaves old files that the next opening removes.
//!
//! Called by `background`: dead segments with the flushes, copying in steps between those of
//! merges. `folddb_merge::reclaim` plans what is copied.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, ErrorKind, FileNumber, Result, counted};
use folddb_host::sync::atomic::Ordering;
use folddb_manifest::State;
use folddb_merge::{ReclaimOptions, SMALL_FILES, ValueFile, plan_reclaim};

use crate::background::hidden_values::Unsettled;
use crate::background::reclaim_job::{ReclaimJob, StepFault};
use crate::background::reclaim_report::ReclaimWant;
use crate::background::reclaiming::{Examined, Reclaiming};
use crate::background::state::Background;
use crate::background::{hidden_values, live_values, sweep_directories};
use crate::state::disk_quota::SpaceUser;
use crate::state::engine::Engine;
use crate::values::segments;

/// Bytes that a step copies: a few milliseconds of work.
const STEP_BYTES: u64 = 4 << 20;

/// A plan that frees less than this share of a segment, and of all values, is carried out only on
/// request.
const GAIN_SHARE: u64 = 16;

const GAIN_SHARE_OF_ALL: u64 = 64;

const GAIN_BYTES_MIN: u64 = 16 << 10;

/// Bytes of files for each live byte after a reclaim on request.
const BOUND_WHEN_ASKED: f64 = 1.1;

/// How long to wait after a full disk before the next try, if nothing else has changed.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Most bytes of values that an opening copies into one file.
const SMALL_BYTES_MAX: u64 = 32 << 20;

/// With less room than this, or room that has not doubled since, it is not examined again.
const ROOM_BYTES_MIN: u64 = 1 << 20;

// ---- moving what is alive -----------------------------------------------------------------------

/// One step of the running reclaim, or of one that is worth it; describes what it did, or none.
pub(crate) fn reclaim_step(background: &Background) -> Result<Option<String>> {
    let mut reclaiming = background.reclaiming.lock();
    reclaim_step_as(background, &mut reclaiming, ReclaimWant::WhenDue)
}

pub(crate) fn reclaim_step_as(
    background: &Background,
    reclaiming: &mut Reclaiming,
    want: ReclaimWant,
) -> Result<Option<String>> {
    let engine = &background.engine;
    if engine.health.cause().is_some() {
        return Ok(None);
    }
    let seen = examine(engine);
    if reclaiming.job.is_none() {
        if want == ReclaimWant::WhenDue && is_as_it_was(engine, reclaiming) {
            return Ok(None);
        }
        if want != ReclaimWant::Small
            && let Some(swept) = sweep_directories::sweep_directories(engine, want, &mut reclaiming.given_up)?
        {
            return Ok(Some(swept));
        }
        begin(background, reclaiming, want)?;
    }
    let Some(mut job) = reclaiming.job.take() else {
        reclaiming.examined = Some(seen);
        return Ok(None);
    };
    match job.step(engine, STEP_BYTES) {
        Ok(false) => {
            let said = format!("a step of: {}", job.plan);
            reclaiming.job = Some(job);
            Ok(Some(said))
        }
        Ok(true) => Ok(Some(format!("done: {}", job.plan))),
        Err(fault) => {
            let planned = job.plan.files.clone();
            job.discard(engine);
            give_up(engine, reclaiming, (seen, &planned), fault).map(Some)
        }
    }
}

/// Begins the plan that is worth it, if one is.
fn begin(background: &Background, reclaiming: &mut Reclaiming, want: ReclaimWant) -> Result<()> {
    let engine = &background.engine;
    let hidden_bytes = hidden_values::hidden_value_bytes(engine);
    let uncovers = background.merges.lock().uncovers_values();
    let manifest = engine.manifest.lock(); // no part is installed in between
    engine.check_open()?;
    let files = settled_files(engine, manifest.state(), &reclaiming.given_up);
    let unsettled = hidden_values::unsettled(engine, manifest.state());
    let options = reclaim_options(engine, want, unsettled, hidden_bytes);
    let plan = plan_reclaim(&files, &options);
    hidden_values::note_value_log(engine, &files, &options, uncovers || plan.is_some());
    reclaiming.job = plan.map(|plan| ReclaimJob::begin(engine, manifest.state(), plan));
    Ok(())
}

/// Leaves alone what is damaged; describes that.
///
/// # Errors
/// The failure, if nothing is damaged: the plan is tried again.
fn give_up(
    engine: &Engine,
    reclaiming: &mut Reclaiming,
    (seen, planned): (Examined, &[u64]),
    fault: StepFault,
) -> Result<String> {
    match fault {
        StepFault::File(file, error) => {
            let said = format!("left file {file} of values alone: {}", error.message());
            reclaiming.given_up.insert(file, error);
            Ok(said)
        }
        StepFault::Holder(error) => {
            let files = counted(planned.len() as u64, "file");
            let planned = planned.iter().map(|&file| (FileNumber(file), error.clone()));
            reclaiming.given_up.extend(planned);
            Ok(format!("left {files} of values alone: {}", error.message()))
        }
        StepFault::Other(error) => {
            // Tried again when something has changed, or space is free.
            let again_at = Some(engine.host.clock.monotonic() + ASK_AGAIN_AFTER);
            reclaiming.examined =
                Some(Examined { again_at, ..seen }).filter(|_| error.kind() == ErrorKind::NoSpace);
            Err(error)
        }
    }
}

/// The files of values whose live bytes are known, except those that are left alone, and those
/// without live values.
pub(crate) fn settled_files(
    engine: &Engine,
    state: &State,
    given_up: &BTreeMap<FileNumber, Error>,
) -> Vec<ValueFile> {
    if state.values.is_empty() && state.relocated.is_empty() {
        return Vec::new();
    }
    segments::note_settled(engine, state);
    let alive = live_values::alive(engine);
    let file = |number: FileNumber, bytes: u64, segments: Vec<u32>| {
        let of = |segment: &u32| alive.get(segment).copied().unwrap_or_default();
        let live_bytes = segments.iter().map(|segment| of(segment).bytes).sum::<u64>().min(bytes);
        let live_values = segments.iter().map(|segment| of(segment).values).sum();
        ValueFile { number: number.0, segments, bytes, live_values, live_bytes }
    };
    let mut settled = engine.values.settled.lock().clone();
    live_values::leave_unsure(engine, &mut settled);
    let own =
        state.values.iter().filter(|(number, _)| settled.contains(number) && !state.is_directory(**number));
    let own = own.filter_map(|(&number, end)| Some(file(number, (*end)?, vec![number.0 as u32])));
    let movable = |file: &FileNumber| state.moved_in(*file).all(|segment| settled.contains(&segment));
    let moved =
        state.relocated_files.iter().filter(|(number, _)| movable(number)).map(|(&number, &bytes)| {
            file(number, bytes, state.moved_in(number).map(|segment| segment.0 as u32).collect())
        });
    own.chain(moved)
        .filter(|file| file.live_values > 0 && !given_up.contains_key(&FileNumber(file.number)))
        .collect()
}

pub(crate) fn reclaim_options(
    engine: &Engine,
    want: ReclaimWant,
    unsettled: Unsettled,
    hidden_bytes: u64,
) -> ReclaimOptions {
    let file_bytes = match want {
        ReclaimWant::Small => engine.options.values_segment_bytes().min(SMALL_BYTES_MAX),
        _ => engine.options.values_segment_bytes(),
    };
    let is_short = engine.health.is_short() && want != ReclaimWant::Small;
    // A request is for what can be done now.
    let (unsettled, hidden_bytes) = match want {
        ReclaimWant::WhenDue | ReclaimWant::Small => (unsettled, hidden_bytes),
        ReclaimWant::Asked => (Unsettled::default(), 0),
    };
    let (bound, gain_bytes_min) = match want {
        ReclaimWant::WhenDue => {
            let gain_bytes = (file_bytes / GAIN_SHARE).min(engine.values.bytes() / GAIN_SHARE_OF_ALL);
            (engine.options.value_space_max, gain_bytes.max(GAIN_BYTES_MIN))
        }
        ReclaimWant::Asked => (BOUND_WHEN_ASKED.min(engine.options.value_space_max), 1),
        ReclaimWant::Small => (f64::MAX, u64::MAX), // only for their number
    };
    ReclaimOptions {
        bound,
        fresh_bytes: unsettled.fresh_bytes,
        spare_bytes: unsettled.spare_bytes,
        hidden_bytes,
        file_bytes,
        gain_bytes_min: if is_short { 1 } else { gain_bytes_min },
        room_bytes: room_bytes(engine) / 2, // the rest is for merges, which may be running, too
        is_short,
    }
}

/// True if no reclaim is running, and none is due that can be done.
pub(crate) fn is_reclaimed(background: &Background) -> bool {
    let engine = &background.engine;
    let reclaiming = background.reclaiming.lock();
    reclaiming.job.is_none() && is_as_it_was(engine, &reclaiming)
}

fn examine(engine: &Engine) -> Examined {
    Examined {
        installs: engine.values.installs.load(Ordering::Acquire),
        is_short: engine.health.is_short(),
        room_bytes: room_bytes(engine),
        again_at: None,
    }
}

/// Whether there is no reason to look again: no part has changed, and there is hardly more room
/// than before.
fn is_as_it_was(engine: &Engine, reclaiming: &Reclaiming) -> bool {
    let Some(then) = reclaiming.examined else { return false };
    then.installs == engine.values.installs.load(Ordering::Acquire)
        && then.is_short == engine.health.is_short()
        && then.again_at.is_none_or(|at| engine.host.clock.monotonic() < at)
        && room_bytes(engine) / 2 < then.room_bytes.max(ROOM_BYTES_MIN)
}

/// How much new files may take.
fn room_bytes(engine: &Engine) -> u64 {
    let free_bytes = engine.host.files.space_free_bytes(&engine.dir).unwrap_or(u64::MAX);
    free_bytes.min(engine.quota.as_ref().map_or(u64::MAX, |quota| quota.room_bytes(SpaceUser::Merge)))
}

/// Makes one file of many small ones, as left by openings that each wrote little.
pub(crate) fn reclaim_small(background: &Background) -> Result<()> {
    let engine = &background.engine;
    let state = Arc::clone(engine.manifest.lock().state());
    if state.values.len() + state.relocated_files.len() < SMALL_FILES {
        return Ok(());
    }
    let mut reclaiming = background.reclaiming.lock();
    while reclaim_step_as(background, &mut reclaiming, ReclaimWant::Small)?.is_some() {}
    reclaiming.examined = None; // background work looks at more than this
    Ok(())
}

/// Gives up the running reclaim: the store is closed.
pub fn abandon_reclaim(background: &Background) {
    let engine = &background.engine;
    let job = background.reclaiming.lock().job.take();
    job.into_iter().for_each(|job| job.discard(engine));
}

/// Damage that reclaim has met, by file.
pub fn damaged_values(background: &Background) -> Vec<String> {
    let reclaiming = background.reclaiming.lock();
    reclaiming.given_up.values().map(|error| format!("values: {}", error.message())).collect()
}
