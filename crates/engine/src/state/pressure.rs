//! The backlog of a store and its space: why writers are slowed down or refused.

use folddb_base::{Error, ErrorKind};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::file_name::FileName;
use folddb_merge::pace;

use crate::options::BackgroundWork;
use crate::shared::memory::MemtableBytes;
use crate::shared::memory_plan::MemoryPlan;
use crate::state::engine::Engine;
use crate::state::health::Space;

/// True if background threads flush by themselves.
pub fn background_runs(engine: &Engine) -> bool {
    engine.options.background == BackgroundWork::Threads
}

/// Checks the space that is left, and notes it for writers.
pub fn check_space(engine: &Engine) {
    let Ok(free_bytes) = engine.host.files.space_free_bytes(&engine.dir) else { return };
    let space = Space {
        free_bytes,
        used_bytes: used_bytes(engine),
        reserve_bytes: engine.options.disk_reserve_bytes,
        bytes_max: engine.options.disk_bytes_max,
        kept_bytes: engine.quota.as_ref().map_or(0, |quota| quota.writes_keep()),
    };
    engine.health.set_space(&space);
}

/// Poisons the store if its file system has turned read-only, or was shut down after an error of
/// its own (opening a file is an input/output error then): what is appended through a map
/// would be acknowledged until a file is made or synced, and be lost when the machine stops.
pub(crate) fn check_disk(engine: &Engine) {
    let path = engine.dir.join(FileName::Format.to_string());
    match engine.host.files.check_writable(&path) {
        Err(error) if is_lost(&error) => {
            engine.health.poison(&Error::io("write", &engine.dir, error));
        }
        _ => {} // anything else is for the call that meets it to report
    }
}

fn is_lost(error: &std::io::Error) -> bool {
    const EIO: i32 = 5;
    error.kind() == std::io::ErrorKind::ReadOnlyFilesystem || error.raw_os_error() == Some(EIO)
}

/// Bytes of all files of the store, if it has a budget; otherwise of those that it needs.
pub fn used_bytes(engine: &Engine) -> u64 {
    if let Some(quota) = &engine.quota {
        return quota.used_bytes();
    }
    let space = space_now(engine);
    space.runs + space.indexes + space.log + space.values
}

/// The bytes of the files of a store, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceByKind {
    /// Runs of sorted tables, and of indexes.
    pub runs: u64,
    /// Checkpoints of the indexes of hashed tables.
    pub indexes: u64,
    /// Segments of the log, with their full length.
    pub log: u64,
    /// The value log, and values in files of their own.
    pub values: u64,
}

pub fn space_now(engine: &Engine) -> SpaceByKind {
    let index = |hashed: &crate::state::hash_index::Hashed| {
        hashed.file.lock().as_ref().map_or(0, |file| file.bytes())
    };
    let segments = engine.journal.as_ref().map(|journal| journal.segments()).unwrap_or_default();
    SpaceByKind {
        runs: engine.work.part_bytes.load(Ordering::Relaxed),
        indexes: engine.catalog().hashed().map(|(_, hashed)| index(hashed)).sum(),
        log: segments.iter().map(|segment| segment.len_bytes).sum(),
        values: engine.values.bytes(),
    }
}

/// The present backlog of background work.
pub fn debt_now(engine: &Engine) -> pace::Debt {
    let shared = engine.memory.shared();
    let (own, all) = (engine.memory.bytes(), shared.bytes());
    let filling_bytes = engine.debt.filling_bytes.load(Ordering::Relaxed);
    let filling_all = all.active.saturating_sub(shared.plan().memtable_bytes()).max(filling_bytes);
    let filled = |bytes: MemtableBytes, filling: usize, plan: MemoryPlan| {
        (bytes.sealed - bytes.flushed + filling, plan.sealed_bytes_max())
    };
    let own_filled = filled(own, filling_bytes, engine.options.memory_plan());
    let all_filled = filled(all, filling_all, shared.plan());
    // The nearer of the two bounds.
    let is_nearer = |(one, max): (usize, usize), (other, other_max): (usize, usize)| {
        one as f64 / max as f64 > other as f64 / other_max as f64
    };
    let (filled_bytes, filled_bytes_max) =
        if is_nearer(all_filled, own_filled) { all_filled } else { own_filled };
    pace::Debt {
        sealed_bytes: (own.sealed - own.flushed).max(all.sealed - all.flushed) as u64,
        filled_bytes: filled_bytes as u64,
        filled_bytes_max: filled_bytes_max as u64,
        overdue_bytes: engine.debt.overdue_bytes.load(Ordering::Relaxed),
        crowding: engine.debt.tier_runs_max.load(Ordering::Relaxed) as f64
            / engine.options.merge_factor as f64,
        flush_bytes_per_s: engine.debt.flush_bytes_per_s.get(),
        merge_bytes_per_s: engine.debt.merge_bytes_per_s.get(),
        value_log: engine.debt.value_log_thousandths.load(Ordering::Relaxed) as f64 / 1000.0,
        reclaim_bytes_per_s: engine.debt.reclaim_bytes_per_s.get(),
        merge_amplification: engine.debt.tier_max.load(Ordering::Relaxed) as f64,
    }
}

/// The error for lack of space.
pub(crate) fn no_space(engine: &Engine) -> Error {
    let why = engine.health.short_of_space().unwrap_or_else(|| "the disk was full".to_owned());
    Error::new(ErrorKind::NoSpace, why)
}
