//! The present time of a store, when its records were written, and how far back its tables keep
//! their past.
//!
//! Only tables that keep their past or whose values expire use it, and stores with an age for
//! deletes; the others pay nothing.
//!
//! - **Time does not go back.** It is the later of the wall clock and the newest time that was
//!   used: after a clock that was ahead is set back, time stands still until the clock has caught
//!   up. Across a crash, the log and the manifest keep the times of writes, and the manifest that
//!   of what was swept.
//! - **A map from seqs to times**, about an entry a second in which such tables are written to: see
//!   `folddb_manifest::times`.
//! - **A reader of the past** reads at a seq and at a time ([`At`]): values that had expired then
//!   are absent.
//!
//! Called by `commit`, `read`, `background`, `snapshot` and `recovery`.

use std::sync::Arc;
use std::time::SystemTime;

use folddb_base::{Error, Result, Seq as RawSeq};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::manifest_edit::Change;
use folddb_manifest::State;
use folddb_merge::Times as MergeTimes;
use folddb_rules::Keep;
use folddb_rules::time::{self, Kept, moment, unix_ms, utc};

use crate::seq::Seq;
use crate::state::catalog::TableCore;
use crate::state::committer::Committer;
use crate::state::engine::Engine;
use crate::state::snapshots::{At, Held, HeldFor};
use crate::state::view::{PartView, RunView, Sealed};

/// How to keep a past that is not kept: advice for one key, or for the whole table, for which
/// versions of each key are not enough.
pub(crate) fn how_to_keep(table: &TableCore, of_key: bool) -> &'static str {
    match (table.hashed.is_some(), of_key) {
        (false, true) => {
            "read what is kept; to keep more, create the table with keep=window:TIME, keep=forever or keep=versions:N"
        }
        (true, true) => "read what is kept; to keep more, create the table with keep=versions:N",
        (false, false) => {
            "read what is kept; to keep the past of the whole table, create it with keep=window:TIME or keep=forever"
        }
        (true, false) => {
            "read what is kept; the past of a whole table is kept by a sorted one, with keep=window:TIME or keep=forever"
        }
    }
}

/// A moment of the past, in the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AsOf {
    /// After the record of this seq.
    Seq(Seq),
    /// At this time; known to about a second. A future time means the present, so that readers
    /// whose clocks are slightly ahead of the store's are served: callers that must distinguish the
    /// two compare with `Store::now`.
    Time(SystemTime),
}

/// The present time, in milliseconds since 1970.
pub fn now_ms(engine: &Engine) -> u64 {
    let wall_ms = engine.host.clock.unix_millis();
    engine.times.newest_ms.fetch_max(wall_ms, Ordering::AcqRel).max(wall_ms)
}

/// The time, which the next edit makes durable: values that had expired by then may be dropped.
pub fn note_now(engine: &Engine, committer: &Committer) -> u64 {
    let now_ms = now_ms(engine);
    engine.times.note(committer.next_seq, now_ms);
    now_ms.min(engine.times.map.lock().newest_ms()) // a time within a tick of the last is not noted
}

/// The same if values of the table expire, otherwise just the time.
pub(crate) fn noted_now_of(engine: &Engine, table: &TableCore, committer: &Committer) -> u64 {
    if table.has_stamps { note_now(engine, committer) } else { now_ms(engine) }
}

/// The seq for rows that a table is created with: the last that was written. A table that keeps its
/// past may be read at any time from now on, so it notes the time, even if nobody has used the time
/// before.
pub fn seq_of_load(engine: &Engine, table: &TableCore) -> RawSeq {
    let committer = engine.commit.lock();
    if table.is_timed {
        note_now(engine, &committer);
    }
    engine.published()
}

/// The change that makes known times durable that are not, if there are any.
pub fn times_change(engine: &Engine, state: &State) -> Option<Change> {
    let map = engine.times.map.lock();
    let entries = map.beyond(&state.times);
    (!entries.is_empty()).then(|| Change::Times { entries: entries.to_vec() })
}

/// When the record of this seq was written, if known.
pub fn time_of(engine: &Engine, seq: RawSeq) -> Option<u64> {
    engine.times.map.lock().time_of(seq)
}

/// The last record that was written by about this time.
pub(crate) fn seq_about(engine: &Engine, time_ms: u64) -> RawSeq {
    engine.times.map.lock().seq_at(time_ms).unwrap_or(0)
}

// ---- merging ------------------------------------------------------------------------------------

/// How much of the past a job keeps that begins now. Must be called before the boundaries are read.
/// A window is counted from the newest noted time, which each edit makes durable: what was dropped
/// stays out of the window, even if nothing records it any more and the clock goes back.
pub fn times_to_keep(engine: &Engine, table: &TableCore) -> MergeTimes {
    // An alteration of the window waits, and so knows what has been determined before it.
    let _same = table.is_timed.then(|| table.altering.read());
    let newest = match table.keep() {
        Keep::Versions(count) => count,
        _ => 1,
    };
    let noted_ms = if table.is_timed { engine.times.map.lock().newest_ms() } else { 0 };
    MergeTimes { newest, since: kept_since(engine, table, noted_ms), sweep_ms: 0 }
}

/// The same, and first notes the time if the table keeps a window. Takes the commit lock.
pub(crate) fn times_to_keep_now(engine: &Engine, table: &TableCore) -> MergeTimes {
    if matches!(table.keep(), Keep::Window(_)) {
        note_now(engine, &engine.commit.lock());
    }
    times_to_keep(engine, table)
}

/// From this seq on all states of a table are kept: states that an older version folded away
/// without noting the time stay folded if the clock has gone back since.
pub fn kept_since(engine: &Engine, table: &TableCore, now_ms: u64) -> RawSeq {
    let keep = table.keep();
    match time::kept(keep) {
        Kept::Forever => 0,
        Kept::Window(_) => {
            let since_ms = now_ms.saturating_sub(time::window_ms(keep).unwrap_or(0));
            let since = engine.times.map.lock().seq_at(since_ms);
            since.unwrap_or(0).min(engine.published()).max(table.folded_before())
        }
        Kept::Latest | Kept::Versions(_) => RawSeq::MAX,
    }
}

/// As [`times_to_keep_now`], and the time up to which a merge of `inputs` may drop expired values:
/// no later write may have seen them alive, and no reader may read at a time when they were.
pub(crate) fn times_to_merge(
    engine: &Engine,
    table: &TableCore,
    is_input: &dyn Fn(&RunView) -> bool,
) -> MergeTimes {
    let mut times = times_to_keep_now(engine, table);
    if table.has_stamps {
        times.sweep_ms = sweepable_ms(engine, table, is_input);
    }
    times
}

/// The same for a flush.
pub(crate) fn times_to_flush(engine: &Engine, table: &TableCore, sealed: &Sealed) -> MergeTimes {
    let mut times = times_to_keep_now(engine, table);
    if table.has_stamps {
        let is_other = |other: &&Sealed| !Arc::ptr_eq(&other.memtable, &sealed.memtable);
        let view = table.view();
        let others = view.sealed.iter().filter(is_other).map(|other| other.since_ms);
        // Runs are older than a memtable, so no run counts.
        times.sweep_ms = others.fold(sweepable_below(engine, table, &|_| true, false), u64::min);
    }
    times
}

/// See [`times_to_merge`].
pub(crate) fn sweepable_ms(engine: &Engine, table: &TableCore, is_input: &dyn Fn(&RunView) -> bool) -> u64 {
    sweepable_below(engine, table, is_input, true)
}

fn sweepable_below(
    engine: &Engine,
    table: &TableCore,
    is_input: &dyn Fn(&RunView) -> bool,
    counts_sealed: bool,
) -> u64 {
    let keep = table.keep();
    let kept_ms = match time::kept(keep) {
        Kept::Latest | Kept::Window(_) => time::window_ms(keep).unwrap_or(0),
        Kept::Versions(_) | Kept::Forever => return 0,
    };
    // Later writes get at least this time: no write has its time but is not yet in the memtable.
    let (now_ms, view, active_since_ms) = {
        let committer = engine.commit.lock();
        (note_now(engine, &committer), table.view(), table.active_since_ms.load(Ordering::Acquire))
    };
    let mut sweep_ms = now_ms.saturating_sub(kept_ms);
    sweep_ms = engine.boundaries.oldest_ms().map_or(sweep_ms, |oldest| oldest.min(sweep_ms));
    if !view.active.is_empty() {
        sweep_ms = sweep_ms.min(active_since_ms);
    }
    if counts_sealed {
        sweep_ms = view.sealed.iter().map(|sealed| sealed.since_ms).fold(sweep_ms, u64::min);
    }
    let oldest_input = view.runs.iter().rposition(is_input).unwrap_or(view.runs.len());
    let inputs: Vec<&RunView> = view.runs.iter().filter(|run| is_input(run)).collect();
    let newer = view.runs[..oldest_input].iter().filter(|run| !is_input(run)).flat_map(|run| &run.parts);
    let meets = |part: &&PartView| inputs.iter().any(|input| input.overlaps(part, &table.rules.order));
    let written = newer.filter(meets).filter_map(|part| Some(part.file.part.facts().stamps?.min_write_ms));
    written.fold(sweep_ms, u64::min)
}

// ---- reading ------------------------------------------------------------------------------------

/// Fails for a seq that has not been written yet.
pub fn check_written(engine: &Engine, as_of: AsOf) -> Result<()> {
    match as_of {
        AsOf::Seq(seq) if u64::from(seq) > engine.published() => Err(Error::invalid(format!(
            "nothing has been written with seq {seq} yet: the last is {}",
            engine.published()
        ))),
        _ => Ok(()),
    }
}

/// The given moment, if it is past.
pub(crate) fn moment_of(engine: &Engine, as_of: AsOf, present: At) -> At {
    let At { seq: published, time_ms: now_ms, .. } = present;
    let map = engine.times.map.lock();
    let (seq, time_ms) = match as_of {
        AsOf::Seq(seq) => {
            let seq = u64::from(seq);
            let next = map.time_by(seq.saturating_add(1)).unwrap_or(now_ms);
            (seq, if seq >= published { now_ms } else { next })
        }
        AsOf::Time(moment) => {
            let time_ms = unix_ms(moment);
            (map.seq_at(time_ms).unwrap_or(0), time_ms)
        }
    };
    At::new(seq.min(published), time_ms.min(now_ms))
}

/// Holds the given moment, so that merges keep its state; also returns the moment of the request.
pub fn hold_at(engine: &Engine, as_of: AsOf) -> (Held, At) {
    let still = engine.still();
    let asked = At::new(engine.published(), now_ms(engine));
    let at = still.as_ref().map_or(asked, |_| moment_of(engine, as_of, asked));
    let held_for = if at.seq >= asked.seq { HeldFor::Snapshot } else { HeldFor::Past(asked) };
    (engine.boundaries.hold_from(at, asked.time_ms, held_for, engine.host.clock.monotonic()), asked)
}

/// Holds the present of a table, at a time that the next edit makes durable: for work whose result
/// permanently decides what had expired.
pub fn hold_present(engine: &Engine, table: &TableCore, committer: &Committer) -> Held {
    let at = At::new(engine.published(), noted_now_of(engine, table, committer));
    engine.boundaries.hold(at, HeldFor::Work, engine.host.clock.monotonic())
}

/// Fails if a table does not keep all of its states at `at`; `now` is the moment of the request.
pub fn check_kept(engine: &Engine, table: &TableCore, at: At, now: At) -> Result<()> {
    let keep = table.keep();
    let keeps_expired = match time::kept(keep) {
        _ if !table.has_stamps => true,
        Kept::Latest => false,
        Kept::Window(_) => at.time_ms >= now.time_ms.saturating_sub(time::window_ms(keep).unwrap_or(0)),
        Kept::Versions(_) | Kept::Forever => true,
    };
    if at.seq >= now.seq && (at.time_ms >= now.time_ms || keeps_expired) {
        return Ok(());
    }
    let since = match time::kept(keep) {
        Kept::Forever => 0,
        Kept::Window(_) => kept_since(engine, table, now.time_ms),
        Kept::Latest => RawSeq::MAX,
        Kept::Versions(count) => {
            let message = format!(
                "table `{}` keeps the newest {count} states of each key, so the whole table as of seq {} is not known: \
                     ask for the history of a key",
                table.name, at.seq
            );
            return Err(Error::invalid(message).advise(how_to_keep(table, false)));
        }
    };
    if at.seq >= since && keeps_expired {
        return Ok(());
    }
    // All writes are there; expired values are dropped by time, even without later writes.
    if at.seq >= since.min(now.seq) {
        let beyond = match keep {
            Keep::Window(_) => format!(" by {} ago", keep.to_string().trim_start_matches("window:")),
            _ => String::new(),
        };
        return Err(Error::invalid(format!(
            "table `{}` keeps no expired values{beyond}: what was alive at {} may be gone",
            table.name,
            utc(moment(at.time_ms))
        ))
        .advise(how_to_keep(table, false)));
    }
    Err(not_kept(engine, table, at, since.min(now.seq)))
}

/// The error for a state that is no longer kept, or never was; `since` is the oldest that is.
#[cold]
pub(crate) fn not_kept(engine: &Engine, table: &TableCore, at: At, since: RawSeq) -> Error {
    let at_seq = |seq: RawSeq| {
        let written =
            time_of(engine, seq).map(|time_ms| format!(", of {}", utc(moment(time_ms)))).unwrap_or_default();
        format!("seq {seq}{written}")
    };
    Error::invalid(format!(
        "table `{}` keeps {}: the oldest state that is kept is the one at {}, and you asked for {}",
        table.name,
        table.keep(),
        at_seq(since),
        at_seq(at.seq)
    ))
    .advise(how_to_keep(table, false))
}
