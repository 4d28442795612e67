//! Change feeds in the manifest, and what follows from them: which files of the log are retained
//! for them, which feeds retain too much and are lost, which files may be removed.
//! `state::feed_state` shows what is retained.

use std::path::Path;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, TableId, size_text};
use folddb_host::Host;
use folddb_host::sync::atomic::Ordering;
use folddb_journal::SegmentFacts;
use folddb_journal::archived_log::archived_log_path;
use folddb_journal::follow::{HistoryFile, history, segments_in};
use folddb_layout::file_name::FileName;
use folddb_layout::segment::SEGMENT_HEADER_BYTES;
use folddb_manifest::{Change, FeedPhase, FeedState, LossCause, State, TableNote};

use crate::edit::install;
use crate::state::engine::Engine;
use crate::state::feed_state::{FeedStats, NOTHING};
use crate::state::log_sync;
use crate::state::manifest::Manifest;

// ---- positions of feeds -------------------------------------------------------------------------

/// Changes the feeds in the manifest.
pub fn edit_feeds(engine: &Engine, manifest: &mut Manifest, changes: &[Change]) -> Result<()> {
    engine.check_open()?;
    manifest.append(changes).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    engine.feeds.note(manifest.state());
    Ok(())
}

/// Changes which tables exist, which feeds may have to report.
pub fn edit_tables(engine: &Engine, manifest: &mut Manifest, changes: &[Change]) -> Result<()> {
    manifest.append(changes).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    engine.feeds.note(manifest.state());
    Ok(())
}

/// Releases the history, and the files of values, that are no longer needed. Not under the
/// manifest's lock.
pub fn let_go_of_history(engine: &Engine) {
    let log_start_lsn = engine.manifest.lock().state().log_start_lsn;
    install::retire_segments(engine, log_start_lsn);
    let from_lsn = engine.feeds.held_from(NOTHING);
    let mut before = engine.feeds.before.lock();
    let (gone, stay) = before.drain(..).partition(|file| file.next_lsn <= from_lsn);
    *before = stay;
    drop(before);
    let gone: Vec<HistoryFile> = gone;
    remove_history(engine, &gone);
    engine.values.installs.fetch_add(1, Ordering::AcqRel); // value segments may be settled
    engine.bell.ring();
}

pub(crate) fn remove_history(engine: &Engine, files: &[HistoryFile]) {
    for file in files {
        // A file that stays is not needed, and the next opening removes it.
        let _ = engine.host.files.remove(&file.path(&engine.dir));
    }
}

/// The lowest value segment that the log may point to from `lsn` on. The caller holds the
/// manifest's lock.
pub fn values_from(engine: &Engine, state: &State, lsn: Lsn) -> FileNumber {
    let (settled, fences) = (engine.values.settled.lock(), engine.values.fences.lock());
    let may_lead = |number: &&FileNumber| {
        !settled.contains(number) && fences.get(number).is_none_or(|&fence| fence > lsn)
    };
    let next = FileNumber(engine.numbers.peek());
    state.values.keys().find(may_lead).copied().unwrap_or(next)
}

/// The change that notes that a table was created or dropped, if feeds will report it. Everything
/// before it is then durable.
pub fn note_of_table(
    engine: &Engine,
    state: &State,
    (table, name, rules_text): (TableId, &str, String),
    is_dropped: bool,
) -> Result<Option<Change>> {
    if engine.feeds.hold_nothing() {
        return Ok(None);
    }
    let seq = engine.published();
    log_sync::sync_log(engine)?;
    let (note, name) = (state.feeds.last_note() + 1, name.to_owned());
    let note = TableNote { note, seq, table, name, rules_text, is_dropped };
    Ok(Some(Change::NoteTable { note }))
}

/// Fails if a feed reports the table of this name: it could not report changes that are not in the
/// log.
pub fn check_no_feed_of(state: &State, table: &str) -> Result<()> {
    let tells = |feed: &&FeedState| feed.table.is_empty() || feed.table == table;
    match state.feeds.holding().find(tells) {
        None => Ok(()),
        Some(feed) => Err(Error::invalid(format!(
            "feed `{}` reports table `{table}`, and a bulk load does not write to the log: load in batches, or drop the feed",
            feed.name
        ))),
    }
}

// ---- what is held -------------------------------------------------------------------------------

/// The file that has the history at an LSN.
pub fn history_at(engine: &Engine, lsn: Lsn) -> Option<HistoryFile> {
    let before = engine.feeds.before.lock().iter().find(|file| file.covers(lsn)).copied();
    before.or_else(|| living_history(engine).find(|file| file.covers(lsn)))
}

/// The segments of the log that memtables retain, oldest first; the last is being appended to.
pub fn segments_of_memory(engine: &Engine) -> Vec<SegmentFacts> {
    let mut segments = engine.journal.as_ref().map(|journal| journal.segments()).unwrap_or_default();
    let log_start = engine.feeds.log_start();
    let active = segments.pop();
    segments.retain(|segment| segment.end_lsn > log_start);
    segments.extend(active);
    segments
}

/// Makes the part of the log that only feeds need durable, before an edit moves the log's start
/// past it: nothing else would, since its records are in runs.
pub(crate) fn sync_history(engine: &Engine, log_start_lsn: Lsn) -> Result<()> {
    if engine.feeds.hold_nothing() { Ok(()) } else { log_sync::sync_to(engine, log_start_lsn) }
}

/// The segments of this opening.
pub(crate) fn living_history(engine: &Engine) -> impl Iterator<Item = HistoryFile> {
    let segments = engine.journal.as_ref().map(|journal| journal.segments()).unwrap_or_default();
    let last = segments.len().saturating_sub(1);
    segments.into_iter().enumerate().map(move |(index, segment)| HistoryFile {
        number: segment.number,
        is_archived: false,
        first_lsn: segment.first_lsn,
        next_lsn: if index == last { NOTHING } else { segment.end_lsn },
        file_bytes: segment.end_lsn - segment.first_lsn,
    })
}

/// Bytes that this feed retains, in log and values, including those that others retain, too.
pub fn held_bytes(engine: &Engine, feed: &FeedState, state: &State) -> u64 {
    if !feed.holds() {
        return 0;
    }
    let needed_from = state.log_start_lsn;
    let of = |file: &HistoryFile| {
        file.bytes_from(feed.lsn).min(needed_from.saturating_sub(file.first_lsn.max(feed.lsn)))
    };
    let before: u64 = engine.feeds.before.lock().iter().map(of).sum();
    let living: u64 = living_history(engine).map(|file| of(&file)).sum();
    let fences = engine.values.fences.lock();
    let held = fences.iter().filter(|(_, fence)| (feed.lsn + 1..=needed_from).contains(*fence));
    let values: u64 = held.filter_map(|(number, _)| state.values.get(number)).flatten().sum();
    before + living + values
}

/// How many files from before this opening this feed retains: of the log, and of values.
fn held_files(engine: &Engine, feed: &FeedState, state: &State) -> usize {
    if !feed.holds() {
        return 0;
    }
    let before = engine.feeds.before.lock().iter().filter(|file| file.next_lsn > feed.lsn).count();
    before + state.values.range(feed.values_from..).count()
}

/// What all feeds retain.
pub fn feed_stats(engine: &Engine) -> Vec<FeedStats> {
    let state = std::sync::Arc::clone(engine.manifest.lock().state());
    let published = engine.published();
    let stats = |feed: &FeedState| FeedStats {
        name: feed.name.clone(),
        table: Some(feed.table.clone()).filter(|table| !table.is_empty()),
        prefix: feed.prefix.clone(),
        seq: feed.seq.into(),
        lag: published.saturating_sub(feed.seq),
        held_bytes: held_bytes(engine, feed, &state),
        held_files: held_files(engine, feed, &state),
        bytes_max: feed.bytes_max,
        has_begun: feed.phase != FeedPhase::Rows,
        lost: match feed.phase {
            FeedPhase::Lost(cause) => Some(why_lost(feed, cause)),
            _ => None,
        },
    };
    state.feeds.all().map(stats).collect()
}

/// Marks feeds as lost that retain more than they may, or, if space is short, the one that retains
/// most.
pub(crate) fn mind_feeds(engine: &Engine) -> Result<()> {
    if engine.feeds.hold_nothing() || engine.health.cause().is_some() {
        return Ok(());
    }
    let state = std::sync::Arc::clone(engine.manifest.lock().state());
    let mut holding: Vec<(u64, &FeedState)> =
        state.feeds.holding().map(|feed| (held_bytes(engine, feed, &state), feed)).collect();
    holding.sort_by_key(|(bytes, _)| *bytes);
    let is_short =
        engine.health.is_short() || engine.quota.as_ref().is_some_and(|quota| !quota.takes_writes());
    let mut lost: Vec<(&str, LossCause)> = holding
        .iter()
        // A feed that is up to date retains only the segment that is being written.
        .filter(|(bytes, feed)| *bytes > feed.bytes_max && feed.seq < engine.published())
        .map(|(_, feed)| (&feed.name[..], LossCause::Budget))
        .collect();
    let greediest = holding.iter().rfind(|(_, feed)| feed.bytes_max < u64::MAX); // others are never lost
    if let (true, true, Some((bytes, feed))) = (lost.is_empty(), is_short, greediest)
        && *bytes > 0
    {
        lost.push((&feed.name, LossCause::Space));
    }
    lose_feeds(engine, &lost)
}

/// Records durably that these feeds have lost their places, and releases what they retained.
pub(crate) fn lose_feeds(engine: &Engine, lost: &[(&str, LossCause)]) -> Result<()> {
    if lost.is_empty() {
        return Ok(());
    }
    let mut manifest = engine.manifest.lock();
    // Notes that it has not given are removed. Their numbers must not be used again: a reader in a
    // secondary may have seen them.
    let note = manifest.state().feeds.last_note();
    let lose = |(name, cause): &(&str, LossCause)| {
        let feed = manifest.state().feeds.get(name)?.clone();
        Some(Change::SetFeed { feed: FeedState { phase: FeedPhase::Lost(*cause), note, ..feed } })
    };
    let changes: Vec<Change> = lost.iter().filter_map(lose).collect();
    edit_feeds(engine, &mut manifest, &changes)?;
    drop(manifest);
    engine.counters.feeds_lost.add(changes.len() as u64);
    let_go_of_history(engine);
    engine.feeds.bell.ring();
    Ok(())
}

/// Frees the rest of a segment beyond the place where the history continues in another file.
pub(crate) fn cut_history(engine: &Engine, segment: &mut HistoryFile) {
    let needed_bytes = SEGMENT_HEADER_BYTES as u64 + (segment.next_lsn - segment.first_lsn);
    if segment.file_bytes > needed_bytes
        && engine.host.files.cut(&segment.path(&engine.dir), needed_bytes).is_ok()
    {
        segment.file_bytes = needed_bytes;
    }
}

/// Notes what feeds retain in a store that is opened for reading, as far as possible: its writer
/// may remove files at the same time.
pub(crate) fn note_history(engine: &Engine, state: &State) {
    if let Ok(found) = look_at_history(engine, state) {
        *engine.feeds.before.lock() = found;
    }
}

/// The files of history from the position of the slowest feed.
pub(crate) fn look_at_history(engine: &Engine, state: &State) -> Result<Vec<HistoryFile>> {
    let Some(from_lsn) = state.feeds.from_lsn() else { return Ok(Vec::new()) };
    let mut found = history_in(&engine.host, &engine.dir, state)?;
    found.retain(|file| file.next_lsn > from_lsn);
    Ok(found)
}

/// Removes an archived end of a log that nothing lists.
pub(crate) fn remove_kept(engine: &Engine, number: FileNumber) {
    let _ = engine.host.files.remove(&archived_log_path(&engine.dir, number));
}

/// The files in the directory of a store that have history.
///
/// # Errors
/// A failed call.
pub fn history_in(host: &Host, dir: &Path, state: &State) -> Result<Vec<HistoryFile>> {
    let segments = segments_in(host, dir, state.store_id)?;
    let archived = state.feeds.archived().iter().map(|part| {
        let file_bytes = host.files.len_bytes(&archived_log_path(dir, part.file)).unwrap_or(0);
        let (number, first_lsn, next_lsn) = (part.file, part.first_lsn, part.next_lsn);
        HistoryFile { number, is_archived: true, first_lsn, next_lsn, file_bytes }
    });
    Ok(history(&segments, &archived.collect::<Vec<_>>()))
}

/// Whether batches that feeds have not given yet may point to a value segment. None points to one
/// whose values have moved: it was settled.
pub(crate) fn is_held_for_feeds(state: &State, segment: FileNumber) -> bool {
    state.values.contains_key(&segment) && state.feeds.values_from().is_some_and(|from| segment >= from)
}

/// The error of a lost feed: why, and how to start it again. `state` is its state in the manifest.
pub fn lost_error(name: &str, state: Option<&FeedState>) -> Error {
    let why = match state.map(|state| (state, state.phase)) {
        Some((state, FeedPhase::Lost(cause))) => why_lost(state, cause),
        _ => "it has been dropped".to_owned(),
    };
    let lost = Error::new(ErrorKind::FeedLost, format!("feed `{name}` has lost its place: {why}"));
    lost.advise(
        "begin the feed again, with the present rows: Feed::begin_again, or folddb watch with --again",
    )
}

/// Why a feed has lost its place.
pub(crate) fn why_lost(feed: &FeedState, cause: LossCause) -> String {
    match cause {
        LossCause::Budget => {
            format!("it would have held more than its limit of {}", size_text(feed.bytes_max))
        }
        LossCause::Space => "the store was short of space, and it held some".to_owned(),
        LossCause::Gone => "some of the log that it has not delivered yet is gone".to_owned(),
    }
}

// ---- opening ------------------------------------------------------------------------------------

/// Lists the history from before this opening, up to `first_lsn`, where the new log begins, and
/// removes its segments that nobody needs. Feeds whose history has a gap are lost. A log that a
/// table archives is not: what is left of it stays, also beside a missing file, which may be put
/// back.
pub(crate) fn adopt_history(
    engine: &Engine,
    old_segments: &[FileNumber],
    first_lsn: Lsn,
) -> Result<Vec<String>> {
    engine.feeds.log_starts_at(first_lsn);
    let state = std::sync::Arc::clone(engine.manifest.lock().state());
    let mut found = look_at_history(engine, &state)?;
    found.retain(|file| file.first_lsn < first_lsn);
    let is_whole = |feed: &&FeedState| {
        let mut lsn = feed.lsn;
        while let Some(file) = found.iter().find(|file| file.covers(lsn)) {
            lsn = file.next_lsn;
        }
        lsn >= first_lsn
    };
    let (archives, feeds): (Vec<_>, Vec<_>) = state.feeds.holding().partition(|feed| feed.is_archive());
    let lost = feeds.into_iter().filter(|feed| !is_whole(feed)).map(|feed| feed.name.clone()).collect();
    // What an archive lacks may be in a segment whose header cannot be read.
    let unread = match archives.iter().all(is_whole) {
        true => Vec::new(),
        false => unreadable(engine, old_segments)?,
    };
    let is_needed = |number: &FileNumber| {
        found.iter().any(|file| !file.is_archived && file.number == *number) || unread.contains(number)
    };
    for &number in old_segments.iter().filter(|number| !is_needed(number)) {
        let _ = engine.host.files.remove(&engine.path(&FileName::Log(number).to_string()));
    }
    found.iter_mut().filter(|file| !file.is_archived).for_each(|segment| cut_history(engine, segment));
    *engine.feeds.before.lock() = found;
    Ok(lost)
}

/// Those of these segments whose headers cannot be read.
fn unreadable(engine: &Engine, segments: &[FileNumber]) -> Result<Vec<FileNumber>> {
    let read = segments_in(&engine.host, &engine.dir, engine.store_id)?;
    let is_read = |number: &FileNumber| read.iter().any(|segment| segment.number == *number);
    Ok(segments.iter().filter(|number| !is_read(number)).copied().collect())
}
