//! Backups: a consistent copy of a store, made during writes.
//!
//! ```text
//!   capture    under the manifest's lock: what lives, its part files pinned, the segments opened;
//!              also under the commit lock, for a moment: where the log ends, and at which seq
//!   sync       the log up to there; it is copied, never linked, and only as far as it is durable
//!   parts      hard links to the store's files, or to an earlier generation's, or copies; sealed value segments too
//!   segments   value segments that are still appended to: copies of what they hold so far
//!   files      value files that parts, saved indexes and the copied log point to: linked or copied like parts
//!   manifest   what lives, with the log's start and end, in a file of its own
//!   check      copies are read back record by record, the log frame by frame
//!   adopt      the list, a sync of the directory, and only then its name
//! ```
//!
//! The live files of the manifest, and the log from its start up to any later moment, are what a
//! crash at that moment would leave: so a generation is opened by the same recovery. Parts that a
//! merge replaces stay while the backup holds them, segments while they are open. If another
//! process writes, nothing holds values in files of their own: if one is gone when its turn comes,
//! the backup begins again with the present store, a few times.

mod report;
mod capture;
mod making;
mod files;

use crate::maintenance::progress::{ByteProgress, Counter, Report, unreported};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use folddb_base::{Error, ErrorKind, Result, Seq};
use folddb_layout::backup::{BackupList, LIST_FILE, ListedFile, Origin};

use crate::maintenance::backup::capture::Segment;
use crate::maintenance::backup::making::Making;
use crate::maintenance::backup_place::Place;
use crate::maintenance::copying::{self, sync_dir};
use crate::maintenance::generation::{check, first_restorable};
use crate::store::Store;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::hash_files::listed_indexes;
use folddb_engine::state::log_sync;

pub use report::{BackupOptions, BackupReport, FileTotals};

impl Store {
    /// Adds a backup of the present store to the directory for backups at `to`, which is created if
    /// nothing is there. Reads and writes continue. When this returns the backup is durable and
    /// checked; until then it is not in [`Store::backups`].
    ///
    /// Parts are hard-linked if the file system permits, otherwise linked from the previous backup
    /// if it has them, otherwise copied.
    ///
    /// A backup of a secondary ([`Store::open_secondary`]) has the state at its opening; if the
    /// writer has since removed values in files of their own, or was reopened and has rewritten its
    /// archived log, it has the present state.
    ///
    /// # Errors
    /// [`ErrorKind::SnapshotTooOld`] if another process has removed such values at each attempt;
    /// [`ErrorKind::AlreadyExists`] if `to` is something else; [`ErrorKind::InvalidInput`] if it is
    /// inside a store or has backups of another one; [`ErrorKind::Locked`] while another backup to
    /// it is running; [`ErrorKind::NoSpace`]; [`ErrorKind::Poisoned`]; any other failure of the
    /// operating system. An unfinished backup is removed.
    pub fn backup(&self, to: impl AsRef<Path>, how: &BackupOptions) -> Result<BackupReport> {
        self.backup_with(to, how, unreported)
    }

    /// The same. `progress` is called as bytes are copied and checked, and may stop it.
    ///
    /// # Errors
    /// As [`Store::backup`]; [`ErrorKind::Stopped`] if `progress` broke it off.
    pub fn backup_with(
        &self,
        to: impl AsRef<Path>,
        how: &BackupOptions,
        mut progress: impl FnMut(ByteProgress) -> ControlFlow<()>,
    ) -> Result<BackupReport> {
        let mut made = backup(self.engine(), to.as_ref(), how, &mut progress);
        let is_secondary = self.engine().options.underlying.is_some();
        for _ in 1..SECONDARY_ATTEMPTS_MAX {
            match made {
                Err(error) if is_secondary && may_be_disturbed(error.kind()) => {
                    made = backup(self.refresh()?.engine(), to.as_ref(), how, &mut progress);
                }
                made => return made,
            }
        }
        made
    }
}

/// How often a backup that another writing process disturbs is tried.
const SECONDARY_ATTEMPTS_MAX: u32 = 5;

/// Whether another writing process may be the cause. When it is reopened, it cuts and rewrites the
/// tail of its archived log, which then looks damaged here: only reading it again shows whether it
/// is.
fn may_be_disturbed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::SnapshotTooOld | ErrorKind::Corruption)
}

fn backup(
    engine: &Engine,
    to: &Path,
    options: &BackupOptions,
    report_to: Report<'_>,
) -> Result<BackupReport> {
    engine.check_here()?;
    if engine.options.read_only {
        engine.check_open()?;
    } else {
        engine.health.check_writable(true)?;
    }
    let store_id = engine.manifest.lock().state().store_id;
    let place = Place::open_or_make(&engine.host, to, store_id)?;
    let number = place.next_number()?;
    let draft = place.draft_of(number);
    let files = &*engine.host.files;
    files.create_dir(&draft).map_err(|error| Error::io("create the directory", &draft, error))?;
    let made = begin(engine, &place, (&draft, options), report_to)
        .and_then(|making| finish(making, number))
        .inspect_err(|_| copying::remove_all(files, &draft))?;
    let path = place.adopt(number)?;
    let removed = options.keep.map_or(Ok(Vec::new()), |keep| place.remove_all_but(keep))?;
    Ok(BackupReport { path, removed, ..made })
}

fn begin<'a>(
    engine: &'a Engine,
    place: &Place,
    (draft, options): (&'a Path, &'a BackupOptions),
    report_to: Report<'a>,
) -> Result<Making<'a>> {
    let before = place.newest()?.map(|(path, list)| {
        let files = list.files.into_iter();
        (path, files.map(|file| (file.name, file)).collect())
    });
    let capture = capture::capture(engine)?;
    log_sync::sync_to(engine, capture.end_lsn)?;
    let parts = files::listed_parts(&capture.state).map(|(_, bytes)| bytes).sum::<u64>()
        + listed_indexes(&capture.state).map(|(_, bytes)| bytes).sum::<u64>()
        + capture.values.iter().map(|one| one.bytes).sum::<u64>()
        + capture.state.relocated_files.values().sum::<u64>();
    let needed_of = |segment: &Segment| {
        let needed = segment.needed();
        needed.map_err(|error| capture::segment_error(engine, "read", segment.number, error))
    };
    let log_needed: Vec<Range<u64>> = capture.segments.iter().map(needed_of).collect::<Result<_>>()?;
    let log_bytes = log_needed.iter().map(|needed| needed.end - needed.start).sum::<u64>();
    let mut making = Making {
        engine,
        draft,
        options,
        capture,
        before,
        list: Vec::new(),
        linked: FileTotals::default(),
        reused: FileTotals::default(),
        copied: FileTotals::default(),
        log: FileTotals::default(),
        counter: Counter::new(report_to, 2 * parts + log_bytes),
        log_needed,
    };
    files::fill(&mut making)?;
    Ok(making)
}

/// Checks the generation and writes its list; then everything except its name is durable.
fn finish(mut making: Making<'_>, generation: u64) -> Result<BackupReport> {
    making.list.sort_by_key(|file| file.name);
    let first_seq = first_restorable(&making.capture.state, making.capture.last_seq);
    let list = BackupList {
        generation,
        store_id: making.capture.state.store_id,
        made_unix_s: making.engine.host.clock.unix_seconds(),
        first_seq,
        last_seq: making.capture.last_seq,
        files: std::mem::take(&mut making.list),
    };
    copying::write(making.files(), &making.draft.join(LIST_FILE), &list.encode())?;
    sync_dir(making.files(), making.draft)?;
    check_made(&mut making, &list)?;
    making.counter.check()?;
    Ok(BackupReport {
        generation,
        path: PathBuf::new(),
        first_seq: first_seq.into(),
        last_seq: list.last_seq.into(),
        linked: making.linked,
        reused: making.reused,
        copied: making.copied,
        log: making.log,
        removed: Vec::new(),
        writers_held: making.capture.writers_held,
    })
}

fn check_made(making: &mut Making<'_>, list: &BackupList) -> Result<()> {
    let (check_all, reused) = (making.options.check_all, making.before.take().unwrap_or_default().1);
    let is_new = |file: &ListedFile| file.origin == Origin::Copied && reused.get(&file.name) != Some(file);
    let reads_all = |file: &ListedFile| check_all || is_new(file);
    let (engine, draft) = (making.engine, making.draft);
    let custom = &engine.options.custom;
    check(&engine.host, (draft, list), custom, &reads_all, Seq::MAX, &mut |bytes| {
        making.advance(bytes);
        making.counter.check()
    })?;
    Ok(())
}
