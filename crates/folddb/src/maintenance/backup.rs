//! Backups: a consistent copy of a store, made while writing goes on.
//!
//! ```text
//!   capture    under the manifest's lock: what lives, its part files pinned, the segments opened;
//!              under the commit lock besides, for a moment: where the log ends, and at which seq
//!   sync       the log up to there; it is copied, never linked, and only as far as it is durable
//!   parts      second names of the store's files, or of an earlier generation's, or copies; sealed value segments too
//!   open values   value segments that are appended to: copies, as far as they went
//!   value files    values in files of their own, as parts, saved indexes and the copied log lead to them: in the same ways
//!   manifest   what lives, with the log's start and end, in a file of its own
//!   check      copies are read back record by record, the log frame by frame
//!   adopt      the list, a sync of the directory, and only then its name
//! ```
//!
//! What lives according to the manifest, and the log from its start up to any later moment, are
//! together what a crash at that moment would leave: so a generation is opened by the same
//! recovery. Parts that a merge replaces meanwhile stay as long as the backup holds them, segments
//! as long as they are open. Where another process writes, nobody holds values in files of their
//! own: one that is gone when its turn comes ends the backup, which then begins again with the
//! store as it is by then, a few times.

mod report;
mod capture;
mod making;
mod files;

use std::path::{Path, PathBuf};

use folddb_base::{Error, ErrorKind, Result, Seq};
use folddb_layout::backup::{BackupList, LIST_FILE, ListedFile, Origin};

use crate::maintenance::backup::capture::Segment;
use crate::maintenance::backup::making::Making;
use crate::maintenance::copying::{self, sync_dir};
use crate::maintenance::generation::{check, first_restorable};
use crate::maintenance::place::Place;
use crate::store::Store;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::hash_files::listed_indexes;
use folddb_engine::state::log_sync;

pub use report::{BackupOptions, BackupReport, Moved};

impl Store {
    /// Adds a backup of the store, as it is now, to the place for backups at `to`, which is made
    /// when nothing is there. Writing and reading go on. When this returns the backup is durable
    /// and checked; until then it is not among [`Store::backups`].
    ///
    /// Parts are linked where the file system permits, else they are linked from the backup before
    /// where it has them already, else copied.
    ///
    /// Of a store that was opened beside a writer ([`Store::open_secondary`]) it is what that saw
    /// when it was opened; where the writer has removed values since that lie in files of their
    /// own, or was opened again and has written its archived log again, what is there now.
    ///
    /// # Errors
    /// [`ErrorKind::SnapshotTooOld`] when a writer beside has removed such values each time that
    /// this began again; [`ErrorKind::AlreadyExists`] when `to` is something else;
    /// [`ErrorKind::InvalidInput`] when it lies inside a store or holds backups of another one;
    /// [`ErrorKind::Locked`] while another backup to it is under way; [`ErrorKind::NoSpace`];
    /// [`ErrorKind::Poisoned`]; any other failure of the operating system. What was made by then is
    /// removed.
    pub fn backup(&self, to: impl AsRef<Path>, options: &BackupOptions) -> Result<BackupReport> {
        let mut made = backup(self.engine(), to.as_ref(), options);
        let is_secondary = self.engine().options.beside.is_some();
        for _ in 1..ATTEMPTS_BESIDE {
            match made {
                Err(error) if is_secondary && may_be_disturbed(error.kind()) => {
                    made = backup(self.refresh()?.engine(), to.as_ref(), options);
                }
                made => return made,
            }
        }
        made
    }
}

/// So often a backup that a writer beside has disturbed is tried.
const ATTEMPTS_BESIDE: u32 = 5;

/// Whether a writer beside may be the cause. One that is opened again cuts the tail of its archived
/// log and writes it again: what is read of it here looks damaged then, and only another look tells
/// it from damage.
fn may_be_disturbed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::SnapshotTooOld | ErrorKind::Corruption)
}

pub(crate) fn backup(engine: &Engine, to: &Path, options: &BackupOptions) -> Result<BackupReport> {
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
    let made = begin(engine, &place, &draft, options)
        .and_then(|making| finish(making, number))
        .inspect_err(|_| copying::remove_all(files, &draft))?;
    let path = place.adopt(number)?;
    let removed = options.keep.map_or(Ok(Vec::new()), |keep| place.remove_all_but(keep))?;
    Ok(BackupReport { path, removed, ..made })
}

fn begin<'a>(
    engine: &'a Engine,
    place: &Place,
    draft: &'a Path,
    options: &'a BackupOptions,
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
    let segment_bytes = |segment: &Segment| {
        let needed = segment.needed_bytes();
        needed.map_err(|error| capture::segment_error(engine, "read", segment.number, error))
    };
    let log_bytes: Vec<u64> = capture.segments.iter().map(segment_bytes).collect::<Result<_>>()?;
    let mut making = Making {
        engine,
        draft,
        options,
        capture,
        before,
        list: Vec::new(),
        linked: Moved::default(),
        reused: Moved::default(),
        copied: Moved::default(),
        log: Moved::default(),
        bytes_done: 0,
        bytes_total: 2 * parts + log_bytes.iter().sum::<u64>(),
        log_bytes,
    };
    files::fill(&mut making)?;
    Ok(making)
}

/// Checks what was made and writes its list; then all of it is durable but for its name.
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
    check(&engine.host, (draft, list), custom, &reads_all, Seq::MAX, &mut |bytes| making.told(bytes))?;
    Ok(())
}
