//! Saving the index of a hashed table: a checkpoint, shard by shard, during reads and writes.
//!
//! ```text
//!   asked for   by whatever needs a shorter log: a flush, a close, a log that has grown too long, an index that is too large
//!   begin       under the commit lock, for a moment: where the log is from then on
//!   step        some shards, each as it is at one moment
//!   finish      the file is synced, then the log as far as any shard has it; one edit lists the file, says from where on the log
//!               is needed, and takes the one before off the list, whose file goes
//! ```
//!
//! A crash before the edit leaves a file that the next opening removes. Changes in no checkpoint
//! are replayed, and since their log is then removed, opening saves them: as changes after the
//! checkpoint, if that is much less than the whole index. So the cost of an opening after a crash
//! depends on the writes since the checkpoint, not on the size of the table. Called by the flushes,
//! by `recovery` and by `store`.

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq};
use folddb_hash::{Checkpoint, CheckpointWriter, Made, write_changes};
use folddb_host::sync::atomic::Ordering;
use folddb_journal::Journal;
use folddb_layout::file_name::FileName;
use folddb_manifest::{Change, IndexState};

use crate::edit::{feeds, install};
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::hash_files::{IndexFile, SavedFile};
use crate::state::hash_index::{Hashed, NOT_SAVING, Replayed, Saving, low_bits};
use crate::state::{clock, log_sync};

/// Shards that a step saves: about 20 ms of work.
const STEP_SHARDS: usize = 32;

/// An index is not saved only to free segments until values of this many times the bytes of its
/// checkpoint were put: saving it must not cost more than it frees.
const VALUES_PER_CHECKPOINT: u64 = 16;

/// The saved form of an index.
enum Saved {
    /// All of it.
    Whole(Arc<IndexFile>),
    /// The changes after its checkpoint.
    Changes(Arc<SavedFile>),
}

/// A file of an index that is durable, and that no manifest lists yet.
pub struct SavedIndex {
    pub table: Arc<TableCore>,
    file: Saved,
    pub state: IndexState,
    pub seq: Seq,
}

impl SavedIndex {
    /// The changes that assign it to its table.
    pub fn changes(&self) -> [Change; 2] {
        let (table, state) = (self.table.id, self.state.clone());
        let save = match self.file {
            Saved::Whole(_) => Change::SaveIndex { table, index: state },
            Saved::Changes(_) => Change::SaveChanges { table, changes: state },
        };
        [save, Change::Flushed { table, seq: self.seq }]
    }

    /// Gives it up: removes the file.
    pub fn discard(&self) {
        match &self.file {
            Saved::Whole(file) => file.retire(),
            Saved::Changes(file) => file.retire(),
        }
    }

    /// An edit lists it. The previous one is removed.
    pub fn adopt(&self) {
        let Some(hashed) = &self.table.hashed else { return };
        match &self.file {
            Saved::Whole(file) => {
                hashed.index.adopt(&file.checkpoint);
                let before = hashed.file.lock().replace(Arc::clone(file));
                before.iter().for_each(|before| before.retire());
            }
            Saved::Changes(changes) => {
                hashed.file.lock().iter().for_each(|file| file.follow(Arc::clone(changes)));
            }
        }
    }
}

/// Saves some of an index, if one is to be saved.
pub(crate) fn save_due(engine: &Engine) -> Result<Option<String>> {
    let begun = engine.debt.flushes_begun.fetch_add(1, Ordering::AcqRel) + 1;
    save_step(engine).inspect_err(|error| {
        if error.kind() == ErrorKind::NoSpace {
            engine.debt.flush_refused.store(begun, Ordering::Release);
            engine.bell.ring();
        }
    })
}

/// Continues to save the indexes that are to be saved; describes what it did, or none if there was
/// nothing to do.
pub fn save_step(engine: &Engine) -> Result<Option<String>> {
    keep_to_memory(engine);
    let catalog = engine.catalog();
    // In this order: a snapshot that is taken in between reads at what is published now, or later.
    let published = engine.published();
    let oldest = engine.boundaries.oldest_held();
    for (table, hashed) in catalog.hashed() {
        hashed.forget(oldest, published);
        if !hashed.is_to_be_saved() || table.check_alive().is_err() {
            continue;
        }
        let saved = save_some(engine, table, hashed);
        return match saved {
            Err(_) if table.check_alive().is_err() => {
                Ok(Some(format!("table `{}` was dropped meanwhile", table.name)))
            }
            Err(error) => {
                end_saving(engine, table, hashed, false);
                Err(error)
            }
            Ok(None) => continue,
            Ok(Some(true)) => Ok(Some(format!("saved the index of table `{}`", table.name))),
            Ok(Some(false)) => Ok(Some(format!("saved some of the index of table `{}`", table.name))),
        };
    }
    Ok(None)
}

/// Saves some of an index; true when it is done. None if there is nothing to save.
fn save_some(engine: &Engine, table: &Arc<TableCore>, hashed: &Hashed) -> Result<Option<bool>> {
    let mut saving = hashed.saving.lock();
    if saving.is_none() {
        *saving = begin_saving(engine, table, hashed)?;
    }
    let Some(current) = &mut *saving else { return Ok(None) };
    for _ in 0..STEP_SHARDS {
        if !hashed.index.save_step(&mut current.writer, engine.published())? {
            current.writer.damage().iter().for_each(|damage| hashed.note_damage(damage));
            let Some(done) = saving.take() else { return Ok(None) };
            drop(saving);
            let saved = finish_saving(engine, table, hashed, done)?;
            list_saved(engine, hashed, &saved)?;
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}

/// Begins a checkpoint. From now on new writes need the log, even if the checkpoint fails; none if
/// there is nothing to save.
fn begin_saving(engine: &Engine, table: &Arc<TableCore>, hashed: &Hashed) -> Result<Option<Saving>> {
    let seq = {
        let mut committer = engine.commit.lock();
        hashed.wants_save.store(false, Ordering::Release);
        let seq = committer.next_seq - 1;
        // Even without writes, there may be changes from replay and from sweeping.
        let is_followed = hashed.file.lock().as_ref().is_some_and(|file| file.is_followed());
        let has_more = is_followed || hashed.taken.lock().waiting() > 0;
        let end_lsn = committer.journal.as_ref().filter(|_| has_more).map(Journal::end_lsn);
        let Some(active) = committer.active_mut(table.id) else { return Ok(None) };
        let Some(first_lsn) = active.first_lsn.take().or(end_lsn) else { return Ok(None) };
        hashed.saving_from.store(first_lsn, Ordering::Release);
        hashed.put_bytes.store(0, Ordering::Relaxed);
        hashed.taken.lock().begin_saving();
        seq
    };
    new_checkpoint(engine, hashed, seq).map(Some)
}

fn new_checkpoint(engine: &Engine, hashed: &Hashed, seq: Seq) -> Result<Saving> {
    let number = engine.numbers.take();
    let path = engine.path(&FileName::Index(number).to_string());
    let file = engine.host.files.create(&path).map_err(|error| Error::io("create", &path, error))?;
    let writer = CheckpointWriter::new(file, &path, number, hashed.salt());
    Ok(Saving { writer, number, path, seq })
}

/// Makes a checkpoint durable, and opens it.
fn finish_saving(
    engine: &Engine,
    table: &Arc<TableCore>,
    hashed: &Hashed,
    saving: Saving,
) -> Result<SavedIndex> {
    let Saving { writer, number, path, seq } = saving;
    let finished = writer.finish().and_then(|facts| {
        install::sync_dir(engine)?;
        let checkpoint = Checkpoint::open(&*engine.host.files, &path, number)?;
        Ok((facts, checkpoint))
    });
    let (facts, checkpoint) = finished.inspect_err(|_| {
        let _ = engine.host.files.remove(&path); // the next opening removes what stays
    })?;
    let state = hashed.state_of(number, &facts, is_listed_low(engine));
    let file = SavedFile::new(facts.file_bytes, path, Arc::clone(&engine.host.files));
    let file = Saved::Whole(IndexFile::new(checkpoint, file));
    engine.counters.index_bytes_written.add(facts.file_bytes);
    Ok(SavedIndex { table: Arc::clone(table), file, state, seq })
}

/// A test whether a listed value segment has these low bits in its number.
fn is_listed_low(engine: &Engine) -> impl Fn(u32) -> bool + use<> {
    let listed = Arc::clone(engine.manifest.lock().state());
    move |low| listed.values.keys().chain(listed.relocated.keys()).any(|number| low_bits(number.0) == low)
}

/// Lists a checkpoint, and releases the log that it makes unnecessary.
fn list_saved(engine: &Engine, hashed: &Hashed, saved: &SavedIndex) -> Result<()> {
    // Its shards include writes during the save: those must be durable before the shards are.
    let end = engine.journal.as_ref().map_or(0, |journal| journal.end_lsn());
    log_sync::sync_to(engine, end).inspect_err(|_| saved.discard())?;
    let log_start = install::log_start_without_index(engine, None, Some(&saved.table));
    feeds::sync_history(engine, log_start.unwrap_or(0)).inspect_err(|_| saved.discard())?;
    let mut changes = saved.changes().to_vec();
    changes.extend(log_start.map(|lsn| install::horizon(engine, lsn)));
    let mut manifest = engine.manifest.lock();
    engine.check_readable(&saved.table).inspect_err(|_| saved.discard())?;
    changes.extend(install::numbers_change(engine, manifest.state()));
    changes.extend(clock::times_change(engine, manifest.state())); // the log that has them may be removed
    manifest.append(&changes).inspect_err(|error| {
        if error.kind() == ErrorKind::NoSpace {
            saved.discard(); // after any other failure the edit may be on the disk
        }
        log_sync::note_write_failure(engine, error);
    })?;
    saved.adopt();
    hashed.end_saving(true);
    engine.values.installs.fetch_add(1, Ordering::AcqRel);
    drop(manifest);
    end_saving(engine, &saved.table, hashed, true);
    if let Some(lsn) = log_start {
        install::retire_segments(engine, lsn);
    }
    engine.counters.indexes_saved.add(1);
    engine.bell.ring();
    Ok(())
}

/// Ends the writing of a checkpoint. If it failed, the log is needed from where it was before, and
/// a checkpoint is still wanted.
fn end_saving(engine: &Engine, table: &TableCore, hashed: &Hashed, is_listed: bool) {
    if let Some(given_up) = hashed.saving.lock().take() {
        drop(given_up.writer);
        let _ = engine.host.files.remove(&given_up.path);
    }
    hashed.end_saving(is_listed);
    let mut committer = engine.commit.lock();
    let from = hashed.saving_from.swap(NOT_SAVING, Ordering::AcqRel);
    if is_listed || from == NOT_SAVING {
        return;
    }
    if let Some(active) = committer.active_mut(table.id) {
        active.first_lsn = Some(active.first_lsn.map_or(from, |lsn: Lsn| lsn.min(from)));
    }
    hashed.wants_save.store(true, Ordering::Release);
}

/// Gives up the checkpoint that is being written, since the table is dropped or the store closed.
pub fn abandon_saving(engine: &Engine, table: &TableCore) {
    let Some(hashed) = &table.hashed else { return };
    if let Some(given_up) = hashed.saving.lock().take() {
        drop(given_up.writer);
        let _ = engine.host.files.remove(&given_up.path);
    }
}

/// Saves the changes of an index that opening has replayed. No manifest lists them yet.
pub(crate) fn save_replayed(engine: &Engine, table: &Arc<TableCore>) -> Result<Option<SavedIndex>> {
    let Some(hashed) = &table.hashed else { return Ok(None) };
    let Some(Replayed { changes, fresh }) = hashed.replayed.lock().take() else { return Ok(None) };
    let seq = {
        let mut committer = engine.commit.lock();
        hashed.wants_save.store(false, Ordering::Release);
        let seq = committer.next_seq - 1;
        committer.active_mut(table.id).and_then(|active| active.first_lsn.take());
        seq
    };
    if fresh == 0 {
        return Ok(None); // the checkpoint had everything
    }
    let file = hashed.file.lock().clone();
    match file.filter(|file| changes.len() <= file.changes_max() && hashed.index.facts().misfits == 0) {
        Some(file) => save_changes(engine, table, (hashed, &file), &changes, seq).map(Some),
        None => save_whole(engine, table, hashed, seq).map(Some),
    }
}

/// Saves the changes after a checkpoint.
fn save_changes(
    engine: &Engine,
    table: &Arc<TableCore>,
    (hashed, after): (&Hashed, &IndexFile),
    changes: &[Made],
    seq: Seq,
) -> Result<SavedIndex> {
    let number = engine.numbers.take();
    let path = engine.path(&FileName::Index(number).to_string());
    let file = engine.host.files.create(&path).map_err(|error| Error::io("create", &path, error))?;
    let of = (after.checkpoint.number(), hashed.salt());
    let written = write_changes(file, &path, number, of, changes)
        .and_then(|bytes| install::sync_dir(engine).map(|()| bytes))
        .inspect_err(|_| {
            let _ = engine.host.files.remove(&path); // the next opening removes what stays
        })?;
    engine.counters.index_bytes_written.add(written);
    let state = hashed.state_of_changes(number, written, changes, is_listed_low(engine));
    let file = SavedFile::new(written, path, Arc::clone(&engine.host.files));
    Ok(SavedIndex { table: Arc::clone(table), file: Saved::Changes(Arc::new(file)), state, seq })
}

/// Saves the whole index while nobody changes it.
fn save_whole(engine: &Engine, table: &Arc<TableCore>, hashed: &Hashed, seq: Seq) -> Result<SavedIndex> {
    let mut saving = new_checkpoint(engine, hashed, seq)?;
    loop {
        match hashed.index.save_step(&mut saving.writer, seq) {
            Ok(true) => {}
            Ok(false) => return finish_saving(engine, table, hashed, saving),
            Err(error) => {
                drop(saving.writer);
                let _ = engine.host.files.remove(&saving.path);
                return Err(error);
            }
        }
    }
}

/// Evicts saved shards of indexes that use too much memory; if that is not enough, requests a
/// checkpoint.
fn keep_to_memory(engine: &Engine) {
    let Some(max) = engine.options.index_bytes_max else { return };
    for (_, hashed) in engine.catalog().hashed() {
        if hashed.index.facts().memory_bytes <= max {
            continue;
        }
        let Some(file) = hashed.file.lock().clone() else {
            hashed.wants_save.store(true, Ordering::Release);
            continue;
        };
        hashed.index.let_go(&file.checkpoint, max);
        let is_over = hashed.index.facts().memory_bytes > max;
        if is_over && hashed.put_bytes.load(Ordering::Relaxed) >= file.bytes() {
            hashed.wants_save.store(true, Ordering::Release);
        }
    }
}

/// Whether it is worth saving an index so that value segments can be removed.
pub(crate) fn saving_pays(table: &TableCore) -> bool {
    let Some(hashed) = &table.hashed else { return true };
    let bytes = hashed.file.lock().as_ref().map_or(0, |file| file.bytes());
    hashed.put_bytes.load(Ordering::Relaxed) >= bytes.saturating_mul(VALUES_PER_CHECKPOINT)
}

/// Removes the segments that hashed tables point to from `dead`.
pub(crate) fn spare_hashed(engine: &Engine, dead: &mut std::collections::BTreeSet<FileNumber>) {
    for (table, hashed) in engine.catalog().hashed() {
        match hashed.referenced_segments() {
            Some(live) => dead.retain(|number| !live.contains(&low_bits(number.0))),
            None => dead.clear(),
        }
        debug_assert!(are_unreferenced(hashed, dead), "the quota of table `{}` is wrong", table.name);
    }
}

/// Whether no key and no snapshot points into these segments, checked one by one. True if a read
/// fails.
fn are_unreferenced(hashed: &Hashed, dead: &std::collections::BTreeSet<FileNumber>) -> bool {
    let mut units = dead.iter().map(|number| (low_bits(number.0), Vec::new())).collect();
    dead.is_empty() || hashed.add_units(&mut units).is_err() || units.values().all(Vec::is_empty)
}
