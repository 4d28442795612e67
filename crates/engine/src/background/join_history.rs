//! Joins small files of the log that are retained for feeds and archives: each opening that writes
//! little leaves one.
//!
//! ```text
//!   before   | kept | seg | seg || seg | seg | seg |  the log of this opening
//!   after    | kept ............|| kept ...........|  the log of this opening
//!                                ^ the position of a feed, or a gap in the seqs
//! ```
//!
//! - Batches get other places in the log, and a feed's position is a place. So no file is joined
//!   with another across a position, and a file with a position inside stays as it is.
//! - Readers treat a gap in the seqs as damage, except at the beginning of a file. So files are not
//!   joined across a gap.
//! - A file is joined again only with about as many bytes of newer ones, so a batch is copied
//!   O(log n) times; and what an opening copies is bounded.
//!
//! All of it was durable before this opening, and nobody in this process reads it yet. A reader in
//! another process sees the edit, and begins again at the feed's position. Called by `tidy`.

use std::ops::Range;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq};
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
/// A failed call; damage in what was to be joined, which is then left as it is.
pub(crate) fn join_small(engine: &Engine) -> Result<()> {
    let limits = Limits {
        files_min: engine.options.merge_factor,
        bytes_max: engine.options.replayed_bytes_max() as u64,
    };
    let mut fixed: Vec<Lsn> = engine.manifest.lock().state().feeds.holding().map(|feed| feed.lsn).collect();
    loop {
        let files = engine.feeds.before.lock().clone();
        let Some(group) = next_group(&files, &fixed, limits) else { return Ok(()) };
        fixed.extend(join(engine, &files[group])?);
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

/// Passes each batch of these files to `visit`, oldest first.
fn read(
    engine: &Engine,
    files: &[HistoryFile],
    visit: &mut dyn FnMut(&Followed<'_>) -> Result<()>,
) -> Result<()> {
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return Ok(()) };
    let mut follower = Follower::at(&engine.host, &engine.dir, first.first_lsn);
    let file_at = |lsn| files.iter().find(|file| file.covers(lsn)).copied();
    while let Some(batch) = follower.next(last.next_lsn, &file_at)? {
        visit(&batch)?;
    }
    Ok(())
}

/// Joins these files into one. If the seqs jump, returns the place, and changes nothing.
fn join(engine: &Engine, files: &[HistoryFile]) -> Result<Option<Lsn>> {
    let (Some(first), Some(last)) = (files.first(), files.last()) else { return Ok(None) };
    let (number, range) = (engine.numbers.take(), (first.first_lsn, last.next_lsn));
    let written = write(engine, files, number, range).and_then(|gap| install::sync_dir(engine).map(|()| gap));
    if let Some(gap) = written.inspect_err(|_| feeds::remove_kept(engine, number))? {
        feeds::remove_kept(engine, number);
        return Ok(Some(gap));
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
    let joined = HistoryFile { number, is_kept: true, first_lsn: range.0, next_lsn: range.1, file_bytes };
    let mut before = engine.feeds.before.lock();
    before.retain(|file| !files.contains(file));
    let at = before.partition_point(|file| file.first_lsn < joined.first_lsn);
    before.insert(at, joined);
    drop(before);
    feeds::remove_history(engine, files);
    Ok(None)
}

/// Writes the batches of these files to one, as far as their seqs follow on each other; returns the
/// beginning of the file whose first seq does not.
fn write(
    engine: &Engine,
    files: &[HistoryFile],
    number: FileNumber,
    range: (Lsn, Lsn),
) -> Result<Option<Lsn>> {
    let mut writer = ArchivedLogWriter::begin(&engine.host, &engine.dir, number, engine.store_id, range)?;
    let (mut next_seq, mut gap): (Option<Seq>, Option<Lsn>) = (None, None);
    read(engine, files, &mut |batch| {
        if next_seq.is_some_and(|next| next != batch.first_seq) {
            let file = files.iter().find(|file| file.covers(batch.lsn));
            gap = gap.or(file.map(|file| file.first_lsn));
        }
        next_seq = Some(batch.first_seq + u64::from(batch.count));
        if gap.is_some() {
            Ok(())
        } else {
            writer.put((batch.first_seq, batch.count), batch.time_ms, batch.payload)
        }
    })?;
    if gap == Some(range.0) {
        // Inside one file they rise without a gap.
        return Err(Error::lacking(format!("the log has a gap in its seqs after LSN {}", range.0)));
    }
    writer.finish().map(|()| gap)
}

#[cfg(test)]
#[path = "join_history/tests.rs"]
mod tests;
