//! Joins small files of the log that are retained for feeds and archives: each opening that writes
//! little leaves one.
//!
//! ```text
//!   before   | kept | seg | seg || seg | seg | seg |  the log of this opening
//!   after    | kept ............|| kept ...........|  the log of this opening
//!                                ^ the position of a feed, a gap in the seqs, or a damaged file
//! ```
//!
//! - Batches get other places in the log, and a feed's position is a place. So no file is joined
//!   with another across a position, and a file with a position inside stays as it is.
//! - Readers treat a gap in the seqs as damage, except at the beginning of a file. So files are not
//!   joined across a gap.
//! - A file that cannot be read is not joined with others: those on either side of it are.
//! - A file is joined again only with about as many bytes of newer ones, so a batch is copied
//!   O(log n) times; and what an opening copies is bounded.
//!
//! All of it was durable before this opening, and nobody in this process reads it yet. A reader in
//! another process sees the edit, and begins again at the feed's position. Called by `tidy`.

use std::ops::Range;

use folddb_base::{ErrorKind, FileNumber, Lsn, Result, Seq};
use folddb_journal::archived_log::{ArchivedLogWriter, archived_log_path};
use folddb_journal::follow::{Followed, Follower, HistoryFile};
use folddb_layout::manifest_edit::Change;

use crate::edit::{feeds, install};
use crate::state::engine::Engine;

/// Below this, a file is joined with newer ones however small they are.
const SMALL_FILE_BYTES: u64 = 64 << 10;

/// How much is joined at once.
#[derive(Clone, Copy)]
struct Limits {
    files_min: usize,
    bytes_max: u64,
}

/// Joins files of history until too few small ones are left.
///
/// # Errors
/// A failed call.
pub(crate) fn join_small(engine: &Engine) -> Result<()> {
    let limits = Limits {
        files_min: engine.options.merge_factor,
        bytes_max: engine.options.replayed_bytes_max() as u64,
    };
    let mut fixed: Vec<Lsn> = engine.manifest.lock().state().feeds.holding().map(|feed| feed.lsn).collect();
    loop {
        let files = engine.feeds.before.lock().clone();
        let Some(group) = next_group(&files, &fixed, limits) else { return Ok(()) };
        if let Some(obstacle) = join(engine, &files[group])? {
            fixed.extend(obstacle.places());
        }
    }
}

/// Why files are not joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    /// The seqs jump where this file begins.
    Gap(HistoryFile),
    /// This file cannot be read whole, as its readers will report.
    Unreadable(HistoryFile),
}

impl Obstacle {
    /// The places that nothing is joined across, because of it.
    fn places(self) -> Vec<Lsn> {
        match self {
            Obstacle::Gap(file) => vec![file.first_lsn],
            Obstacle::Unreadable(file) => vec![file.first_lsn, file.next_lsn],
        }
    }
}

/// The next files to be joined, of all files of history; `fixed` are the places that must stay.
fn next_group(files: &[HistoryFile], fixed: &[Lsn], limits: Limits) -> Option<Range<usize>> {
    let is_free = |file: &HistoryFile| !fixed.iter().any(|&lsn| file.first_lsn < lsn && lsn < file.next_lsn);
    let goes_on = |index: usize| {
        let (before, after) = (&files[index - 1], &files[index]);
        before.next_lsn == after.first_lsn
            && !fixed.contains(&after.first_lsn)
            && is_free(before)
            && is_free(after)
    };
    let mut end = files.len();
    while end > 0 {
        let mut first = end - 1;
        while first > 0 && goes_on(first) {
            first -= 1;
        }
        let newest = newest_of(&files[first..end], limits.bytes_max);
        if newest >= limits.files_min {
            return Some(end - newest..end);
        }
        end = first;
    }
    None
}

/// How many of the newest of these files are joined into one.
fn newest_of(files: &[HistoryFile], bytes_max: u64) -> usize {
    let mut bytes = 0u64;
    let is_joined = |file: &&HistoryFile| {
        let is_similar = file.file_bytes <= SMALL_FILE_BYTES.max(bytes.saturating_mul(2));
        bytes = bytes.saturating_add(file.file_bytes);
        is_similar && bytes <= bytes_max
    };
    files.iter().rev().take_while(is_joined).count()
}

/// Passes each batch of these files to `visit`, oldest first. Returns the file that cannot be read
/// to its end, if there is one.
fn read(
    engine: &Engine,
    files: &[HistoryFile],
    visit: &mut dyn FnMut(&Followed<'_>) -> Result<()>,
) -> Result<Option<HistoryFile>> {
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return Ok(None) };
    let mut follower = Follower::at(&engine.host, &engine.dir, first.first_lsn);
    let file_at = |lsn| files.iter().find(|file| file.covers(lsn)).copied();
    loop {
        match follower.next(last.next_lsn, &file_at) {
            Ok(Some(batch)) => visit(&batch)?,
            Ok(None) => return Ok(None),
            Err(error) => return file_at(follower.lsn()).map(Some).ok_or(error),
        }
    }
}

/// Joins these files into one, or changes nothing and returns why it cannot.
fn join(engine: &Engine, files: &[HistoryFile]) -> Result<Option<Obstacle>> {
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return Ok(None) };
    let (number, range) = (engine.numbers.take(), (first.first_lsn, last.next_lsn));
    let written = write(engine, files, number, range).and_then(|met| install::sync_dir(engine).map(|()| met));
    if let Some(obstacle) = written.inspect_err(|_| feeds::remove_kept(engine, number))? {
        feeds::remove_kept(engine, number);
        return Ok(Some(obstacle));
    }
    let change = Change::ArchiveLog { file: number, first_lsn: range.0, next_lsn: range.1 };
    let mut manifest = engine.manifest.lock();
    feeds::edit_feeds(engine, &mut manifest, &[change]).inspect_err(|error| {
        if error.kind() == ErrorKind::NoSpace {
            // After any other failure the edit may be on the disk.
            feeds::remove_kept(engine, number);
        }
    })?;
    drop(manifest);
    let path = archived_log_path(&engine.dir, number);
    let file_bytes = engine.host.files.len_bytes(&path).unwrap_or(0); // only statistics ask for it
    let joined = HistoryFile { number, is_archived: true, first_lsn: range.0, next_lsn: range.1, file_bytes };
    let mut before = engine.feeds.before.lock();
    before.retain(|file| !files.contains(file));
    let at = before.partition_point(|file| file.first_lsn < joined.first_lsn);
    before.insert(at, joined);
    drop(before);
    feeds::remove_history(engine, files);
    Ok(None)
}

/// Writes the batches of these files to one, as far as they can be read and their seqs follow on
/// each other; returns what ends that early.
fn write(
    engine: &Engine,
    files: &[HistoryFile],
    number: FileNumber,
    range: (Lsn, Lsn),
) -> Result<Option<Obstacle>> {
    let mut writer = ArchivedLogWriter::begin(&engine.host, &engine.dir, number, engine.store_id, range)?;
    let (mut next_seq, mut gap): (Option<Seq>, Option<HistoryFile>) = (None, None);
    let unreadable = read(engine, files, &mut |batch| {
        if next_seq.is_some_and(|next| next != batch.first_seq) {
            gap = gap.or(files.iter().find(|file| file.covers(batch.lsn)).copied());
        }
        next_seq = Some(batch.first_seq + u64::from(batch.count));
        if gap.is_some() {
            Ok(())
        } else {
            writer.put((batch.first_seq, batch.count), batch.time_ms, batch.payload)
        }
    })?;
    // Inside one file they rise without a gap.
    let is_inside = |file: &HistoryFile| file.first_lsn == range.0;
    let obstacle = match (unreadable, gap) {
        (Some(file), _) => Some(Obstacle::Unreadable(file)),
        (None, Some(file)) if is_inside(&file) => Some(Obstacle::Unreadable(file)),
        (None, Some(file)) => Some(Obstacle::Gap(file)),
        (None, None) => None,
    };
    writer.finish().map(|()| obstacle)
}

#[cfg(test)]
#[path = "join_history/tests.rs"]
mod tests;
