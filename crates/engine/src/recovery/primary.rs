//! Opening: from files to the first view.
//!
//! ```text
//!   create     directory, MANIFEST, FORMAT last, then as open
//!   open       lock, FORMAT, manifest
//!   runs       every listed part is opened and checked
//!   replay     the log from where the manifest says, through the same call as a write
//!   leftovers  parts that no manifest lists go: of merges and flushes that a crash cut short
//!   install    what was replayed is in parts, and one edit installs them; the old segments go
//!   journal    a fresh segment is begun
//!   tidy       small runs are merged, as many as openings that each wrote little have left
//! ```
//!
//! Nothing is appended to a segment that was there before: after a failed sync the page cache may show
//! bytes that the disk does not have, so recovery rewrites what it replayed and syncs that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq, TableId};
use folddb_host::Files;
use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_host::sync::{Mutex, RwLock};
use folddb_journal::{Journal, JournalOptions, JournalStart, LogEnd, ReplayFrame, ReplayFrom};
use folddb_layout::file_name::FileName;
use folddb_layout::manifest_edit::Change;
use folddb_layout::values::{VALUES_HEADER_BYTES, check_header};
use folddb_manifest::{ArchivedLog, Loaded, LossCause, ManifestLog, State, TableState};
use folddb_rules::table_rules::{TableKind, TableRules};
use folddb_run::{Part, Shared};
use folddb_value_log::directories::{count_value_files, directory_path};
use folddb_value_log::relocated::RelocatedFile;
use folddb_value_log::segment::values_path;
use folddb_value_log::{ValueOptions, ValuesEnd};

use crate::background::flush::Written;
use crate::background::hash_checkpoint::SavedIndex;
use crate::background::jobs::Background;
use crate::background::ranges::new_range_deletes;
use crate::background::{flush, hash_checkpoint, merge, tidy};
use crate::edit::feeds::is_held_for_feeds;
use crate::edit::indexes::link_indexes;
use crate::edit::install::Installed;
use crate::edit::{feeds, install};
use crate::options::Options;
use crate::recovery::archived_tail::Tail;
use crate::recovery::{format, secondary};
use crate::state::bell::Bell;
use crate::state::catalog::{Catalog, TableCore};
use crate::state::clock;
use crate::state::committer::{Active, Committer};
use crate::state::counters::Counters;
use crate::state::debt::Debt;
use crate::state::disk_quota::{DiskQuota, SpaceUser};
use crate::state::engine::Engine;
use crate::state::feed_state::Feeds;
use crate::state::hash_files::open_saved;
use crate::state::hash_index::{Hashed, PointLocks, low_bits, new_salt};
use crate::state::health::Health;
use crate::state::manifest::Manifest;
use crate::state::numbers::Numbers;
use crate::state::range_deletes::RangeDeletes;
use crate::state::snapshots::Boundaries;
use crate::state::times::StoreTimes;
use crate::state::value_state::{Values, value_files};
use crate::state::view::{PartFile, PartFiles, TableView, runs_of};
use crate::state::work::TablesAtWork;
use crate::values::at_rest::ValuesAtRest;
use crate::values::repair::ValueRepair;
use crate::values::segments::{remove_leftover, seal_change, seal_directory_change};
use crate::values::{segments, settle};
use crate::write::commit;

/// The same, without regard to who writes to it meanwhile.
pub(crate) fn open_once(dir: &Path, options: Options) -> Result<Background> {
    format::check_format(dir, &options)?;
    format::refuse_to_write_a_backup(dir, &options)?;
    let lock = format::lock_to_open(dir, &options)?;
    let quota = DiskQuota::open(dir, &options)?;
    let host =
        quota.as_ref().map_or(options.host.clone(), |quota| quota.host(&options.host, SpaceUser::Flush));
    let mut loaded = folddb_manifest::load(&options.host, dir)?;
    loaded.state.log_copied = Some(is_copied(&loaded.state, loaded.edits)); // the next snapshot says it
    let numbers = Arc::new(Numbers::starting_at(loaded.next_number));
    let edits = loaded.edits;
    let torn = torn_manifest(dir, &options, &loaded);
    let state = Arc::new(loaded.state.clone());
    let leftovers = leftovers(dir, &options, &state)?;
    let parts = Shared::new(options.cache_bytes() as u64, options.open_files_max);
    let mut catalog = Catalog::default();
    let mut committer = Committer::empty();
    for (id, table) in state.tables.iter() {
        let table = open_table(dir, &options, &host.files, (id, table), &state, &parts)
            .map_err(|error| owed_to(&torn, error))?;
        let flushed_seq = state.tables.get(&table.id).map_or(0, |table| table.flushed_seq);
        committer.install_active(Active::new(Arc::clone(&table), flushed_seq));
        catalog.insert(table);
    }
    check_values(dir, &*host.files, &state).map_err(|error| owed_to(&torn, error))?;
    let values = {
        let numbers = Arc::clone(&numbers);
        let who =
            quota.as_ref().map_or(options.host.clone(), |quota| quota.host(&options.host, SpaceUser::Values));
        let value_options = ValueOptions {
            segment_bytes_max: options.values_segment_bytes(),
            append_mode: options.append_mode,
        };
        let reading = (options.value_files_max(), options.values_direct);
        let (files, cache) = (Arc::clone(&host.files), Arc::clone(&parts));
        let files = value_files(dir, files, cache, &state, reading);
        Values::new(&who, dir, value_options, Arc::new(move || numbers.take()), files)
    };
    let mut engine = Engine {
        dir: dir.to_owned(),
        store_id: state.store_id,
        host,
        index_epoch: AtomicU64::new(link_indexes(&catalog, &state, &options.custom)),
        catalog: RwLock::new(Arc::new(catalog)),
        commit: Mutex::new(committer),
        published: AtomicU64::new(0),
        journal: None,
        read_to_lsn: state.log_start_lsn,
        values,
        feeds: Feeds::of(&state),
        points: PointLocks::default(),
        manifest: Mutex::new(Manifest::ReadOnly(Arc::clone(&state))),
        numbers,
        parts,
        boundaries: Arc::new(Boundaries::default()),
        times: StoreTimes::of(&state),
        health: Health::default(),
        quota,
        debt: Debt::default(),
        bell: Bell::default(),
        work: TablesAtWork::default(),
        counters: Counters::default(),
        options,
        lock: Mutex::new(lock),
    };
    segments::note_listed_values(&engine, &engine.manifest.lock());
    note_parts(&engine);
    let replayed = replay(&engine, &state, edits).map_err(|error| owed_to(&torn, error))?;
    engine.read_to_lsn = replayed.read_to_lsn;
    // Only now, when all that was acknowledged has been found, does anything on the disk change.
    if !engine.options.read_only {
        let numbers = Arc::clone(&engine.numbers);
        let log = ManifestLog::resume(&engine.host, dir, loaded, Arc::new(move || numbers.take()))
            .inspect_err(|_| replayed.rewritten.discard())?;
        *engine.manifest.lock() = Manifest::Log(Box::new(log), None);
        for name in leftovers {
            remove_leftover(&*engine.host.files, dir, name); // what stays is tried again at the next opening
        }
        let end_lsn = replayed.end_lsn;
        install_replayed(&engine, replayed)?;
        start_journal(&mut engine, end_lsn)?;
        engine.quota.iter().for_each(|quota| quota.set_open());
    } else {
        feeds::note_history(&engine, &state);
    }
    let background = Background::new(Arc::new(engine));
    if !background.engine.options.read_only {
        merge::note_overdue(&background);
        tidy::tidy(&background)?;
    }
    Ok(background)
}

/// A manifest that may have lost its end, for errors that may be owed to that.
struct TornManifest {
    named: String,
    /// It ends in half an edit. A crash while an edit is written leaves one too, which by itself is no damage: it was never
    /// acknowledged.
    is_cut: bool,
}

fn torn_manifest(dir: &Path, options: &Options, loaded: &Loaded) -> Option<TornManifest> {
    let path = dir.join(FileName::Manifest(loaded.number).to_string());
    let end = options.host.files.len_bytes(&path).ok()?.saturating_sub(loaded.cut_bytes);
    let named = format!(
        "{} ends its last whole edit at offset {end}, and may have lost what came after",
        path.display()
    );
    let is_cut = loaded.cut_bytes > 0;
    (is_cut || loaded.state.log_open).then_some(TornManifest { named, is_cut })
}

/// Damage, with what the manifest may have to do with it. One that ends with a whole edit may have lost others, which shows
/// in what is lacking; bytes that are not what was written are not owed to it.
fn owed_to(torn: &Option<TornManifest>, error: Error) -> Error {
    match torn {
        Some(torn) if error.kind() == ErrorKind::Corruption && (torn.is_cut || error.is_lacking()) => {
            error.context(&torn.named)
        }
        _ => error,
    }
}

/// What replaying the log gave.
struct Replay {
    end_lsn: Lsn,
    /// Where what was read of it ends.
    read_to_lsn: Lsn,
    old_segments: Vec<FileNumber>,
    /// The end of the log, written anew where feeds are to give it.
    kept: Option<ArchivedLog>,
    /// Memtables that filled up on the way.
    rewritten: Rewrites,
}

/// How much of a log fits where it is opened for reading.
#[derive(Default)]
struct ReadOnlyRoom {
    /// Bytes of the batches so far.
    log_bytes: u64,
    /// Bytes of the memtables when there was no more room, and of the batches by then.
    overflow: Option<(u64, u64)>,
}

impl ReadOnlyRoom {
    /// About how many bytes of memtables the whole log takes, where it did not fit.
    fn needed_bytes(&self) -> Option<u64> {
        let (memtable_bytes, log_bytes) = self.overflow?;
        let needed = u128::from(self.log_bytes) * u128::from(memtable_bytes) / u128::from(log_bytes.max(1));
        Some(u64::try_from(needed).unwrap_or(u64::MAX))
    }
}

/// Memtables of what was replayed, as parts that the manifest does not list yet. An opening that fails takes them away
/// again: it may be tried often, and each try would leave its own.
#[derive(Default)]
struct Rewrites(Vec<Rewritten>);

impl Rewrites {
    fn of<'a>(&'a self, table: &'a Arc<TableCore>) -> impl DoubleEndedIterator<Item = &'a Rewritten> {
        self.0.iter().filter(|one| Arc::ptr_eq(&one.table, table))
    }

    fn take_changes(&mut self) -> Vec<Change> {
        self.0.iter_mut().flat_map(|one| std::mem::take(&mut one.written.changes)).collect()
    }

    fn discard(&self) {
        self.0.iter().for_each(|one| one.written.discard());
    }
}

/// Value segments that were there before an opening.
#[derive(Default)]
struct OldValues {
    /// Nothing points to these.
    unused: Vec<FileNumber>,
    /// Nothing is added to these any more.
    sealed: Vec<ValuesEnd>,
}

/// One such memtable.
struct Rewritten {
    table: Arc<TableCore>,
    last_seq: Seq,
    written: Written,
}

/// Counts the parts of all tables, and has merges planned for those that have some.
fn note_parts(engine: &Engine) {
    let catalog = engine.catalog();
    let with_runs = catalog.all().filter(|table| !table.view().runs.is_empty());
    engine.work.changed.lock().extend(with_runs.clone().map(|table| table.id));
    with_runs.for_each(|table| {
        install::count_parts(engine, &[], &table.view().runs);
        install::note_leading(engine, table, &table.view().runs);
    });
}

/// Applies what the log holds beyond the runs, frame by frame, through the same call as a write.
fn replay(engine: &Engine, state: &State, edits: u64) -> Result<Replay> {
    let mut committer = engine.commit.lock();
    committer.next_seq = state.last_seq + 1;
    let mut from = replay_from(state, edits);
    if engine.options.beside.is_some() && from.end == LogEnd::Own {
        from.end = LogEnd::Growing;
    }
    let mut rewritten = Rewrites::default();
    let mut room = ReadOnlyRoom::default();
    let mut value_repair = ValueRepair::new(&*engine.host.files, &engine.dir, state);
    let mut tail = Tail::begin(engine, state)?;
    let values = ValuesAtRest::new(&engine.host.files, &engine.dir, state);
    let (mut is_beyond, mut known_to_lsn) = (false, state.log_start_lsn);
    let visit = &mut |frame: ReplayFrame<'_>| {
        is_beyond |= engine.options.beside.is_some() && !secondary::is_known(frame.payload, state);
        if is_beyond {
            return Ok(()); // the writer has gone on since the manifest was read
        }
        known_to_lsn = frame.end_lsn;
        check_tables(&frame, state)?;
        if engine.options.read_only {
            return apply_in_room(engine, &mut committer, &mut room, &frame);
        }
        if !frame.is_durable {
            value_repair.take(&values, &frame)?;
        }
        apply_replayed(engine, &mut committer, &frame)?;
        tail.put(engine, &frame)?;
        // A log may hold more than fits the memory.
        let limits = (engine.options.memtable_bytes(), engine.options.range_deletes_per_flush());
        for table in committer.full_tables(&frame, limits) {
            rewrite(engine, &mut committer, &table, &mut rewritten)?;
        }
        Ok(())
    };
    let has_values = &mut |frame: &ReplayFrame<'_>| values.has(frame);
    let replayed = match state.values.is_empty() {
        true => folddb_journal::replay(&engine.host, &engine.dir, &from, visit),
        false => folddb_journal::replay_checked(&engine.host, &engine.dir, &from, has_values, visit),
    };
    let renewed = replayed.and_then(|replayed| value_repair.finish().map(|()| replayed));
    let replayed = renewed.inspect_err(|_| {
        rewritten.discard();
        tail.discard(engine);
    })?;
    if let Some(needed_bytes) = room.needed_bytes() {
        return Err(too_long_to_read(engine, needed_bytes));
    }
    if engine.options.read_only {
        with_stripes(engine, &mut committer, |active, stripes| active.memtable.freeze(stripes));
    }
    // A recovery that was cut short may have flushed what the log has lost since: those seqs are taken. And what an edit
    // has said of the time from a seq on must not be said of records of before.
    let flushed_seq = state.tables.values().map(TableState::last_seq).max().unwrap_or(0);
    let next_seq = (state.last_seq.max(flushed_seq) + 1).max(state.times.newest_seq());
    committer.next_seq = committer.next_seq.max(next_seq);
    engine.published.store(committer.next_seq - 1, Ordering::Release);
    let kept = tail.finish(engine, &replayed);
    let kept = kept.inspect_err(|_| rewritten.discard())?;
    let read_to_lsn = if is_beyond { known_to_lsn } else { replayed.cut_lsn };
    let (end_lsn, old_segments) = (replayed.end_lsn, replayed.segments);
    Ok(Replay { end_lsn, read_to_lsn, old_segments, kept, rewritten })
}

fn apply_replayed(engine: &Engine, committer: &mut Committer, frame: &ReplayFrame<'_>) -> Result<()> {
    committer.next_seq = frame.first_seq;
    if let Some(time_ms) = frame.time_ms {
        engine.times.note(frame.first_seq, time_ms);
    }
    commit::refresh_stripes(engine, committer);
    if let Some(published) = committer.stripes.last_mut() {
        *published = (*published).max(frame.first_seq.saturating_sub(1));
    }
    commit::apply(engine, committer, frame.first_seq, frame.lsn, frame.payload, &mut |table, range| {
        table.change_view(|view| view.with_range_delete(&table.rules.order, range));
    })?;
    let last_seq = frame.first_seq + u64::from(frame.count) - 1;
    committer.next_seq = last_seq + 1;
    commit::publish(engine, committer, last_seq);
    tables_of(frame).for_each(|table| committer.count_bytes(table));
    Ok(())
}

/// Does something to all active memtables that may fold records together, and so has to know the stripes: range
/// deletes that only the log has are boundaries too.
fn with_stripes(engine: &Engine, committer: &mut Committer, mut act: impl FnMut(&mut Active, &[Seq])) {
    committer.stripes_version = u64::MAX;
    commit::refresh_stripes(engine, committer);
    let Committer { active, stripes, .. } = committer;
    active.iter_mut().flatten().for_each(|active| act(active, stripes));
}

/// Replays into memory alone, as far as that goes: where nothing may be written, nothing can make room. What comes
/// after that is only measured.
fn apply_in_room(
    engine: &Engine,
    committer: &mut Committer,
    room: &mut ReadOnlyRoom,
    frame: &ReplayFrame<'_>,
) -> Result<()> {
    room.log_bytes += frame.payload.len() as u64;
    if room.overflow.is_some() {
        return Ok(());
    }
    apply_replayed(engine, committer, frame)?;
    let max = engine.options.replayed_bytes_max();
    if committer.active_bytes <= max {
        return Ok(());
    }
    with_stripes(engine, committer, |active, stripes| {
        active.memtable.freeze(stripes); // what only writing needs goes
        while active.memtable.merge_step(stripes) {}
        active.bytes = active.memtable.bytes();
    });
    let bytes = committer.active_memtable_bytes();
    if bytes > max / 8 * 7 {
        room.overflow = Some((bytes as u64, room.log_bytes));
        committer.active.clear();
        committer.written.clear();
    }
    Ok(())
}

fn too_long_to_read(engine: &Engine, needed_bytes: u64) -> Error {
    let needed = engine.options.memory_bytes_for_replayed(needed_bytes);
    Error::invalid(format!(
        "the log of {} holds more than fits a memory of {} bytes, and opened for reading it cannot be brought into \
             runs: open the store for writing once, or give it {needed} bytes of memory",
        engine.dir.display(),
        engine.options.memory_bytes,
    ))
}

/// Writes the memtable of a table to parts that no manifest lists yet, and empties it. Nobody reads meanwhile.
fn rewrite(
    engine: &Engine,
    committer: &mut Committer,
    table: &Arc<TableCore>,
    rewritten: &mut Rewrites,
) -> Result<()> {
    commit::seal(engine, committer, table);
    let view = table.view();
    let Some(sealed) = view.sealed.last() else { return Ok(()) };
    let before = rewritten.of(table).next_back();
    let is_bottom = view.runs.is_empty() && before.is_none();
    let flushed_seq = before.map_or_else(|| install::flushed_seq(engine, table), |earlier| earlier.last_seq);
    // Nothing is swept away: what else the log holds of its keys is not known yet.
    let times = clock::times_to_keep(engine, table);
    // Those that hide nothing go with a later flush: what is written here is in no view yet.
    let written = flush::write_sealed(engine, table, sealed, (is_bottom, times), &|applied, _| {
        new_range_deletes(applied, flushed_seq)
    })?;
    rewritten.0.push(Rewritten { table: Arc::clone(table), last_seq: sealed.last_seq, written });
    engine.debt.settle_sealed(sealed.bytes);
    table.change_view(|view| TableView {
        active: Arc::clone(&view.active),
        sealed: Vec::new(),
        runs: Arc::clone(&view.runs),
        range_deletes: Arc::clone(&view.range_deletes),
    });
    Ok(())
}

/// Writes what was replayed to runs and says so, and that the old segments are not needed, in one edit: a batch
/// may be in several tables. Then the old segments go.
fn install_replayed(engine: &Engine, replayed: Replay) -> Result<()> {
    let Replay { end_lsn, old_segments, kept, mut rewritten, .. } = replayed;
    let written = rewrite_all(engine, &mut rewritten);
    let saved = written.and_then(|()| save_all_replayed(engine));
    let saved = saved.inspect_err(|_| rewritten.discard())?;
    let mut changes = rewritten.take_changes();
    changes.extend(saved.iter().flat_map(SavedIndex::changes));
    let old_values = look_over_values(engine, &rewritten, &mut changes);
    changes.extend(kept.map(|ArchivedLog { file, first_lsn, next_lsn }| Change::ArchiveLog {
        file,
        first_lsn,
        next_lsn,
    }));
    record_log_start(engine, end_lsn, changes).inspect_err(|error| {
        if error.kind() == ErrorKind::NoSpace {
            rewritten.discard(); // after any other failure the edit may be on the disk
            saved.iter().for_each(SavedIndex::discard);
            kept.iter().for_each(|kept| feeds::remove_kept(engine, kept.file));
        }
    })?;
    saved.iter().for_each(SavedIndex::adopt);
    engine.values.files.retire(&old_values.unused);
    // All that points to what was there before is in parts.
    let state = Arc::clone(engine.manifest.lock().state());
    let sealed = state.values.iter().filter(|(_, end)| end.is_some()).map(|(&number, _)| number);
    let (held, free): (Vec<FileNumber>, Vec<FileNumber>) =
        sealed.partition(|&number| is_held_for_feeds(&state, number));
    engine.values.settled.lock().extend(free.into_iter().chain(state.relocated.keys().copied()));
    engine.values.fences.lock().extend(held.into_iter().map(|number| (number, end_lsn)));
    old_values.sealed.iter().for_each(|&end| engine.values.log.cut(end));
    for table in engine.catalog().all() {
        let parts = rewritten.of(table).flat_map(|one| one.written.parts.iter().cloned()).collect();
        if let Some(state) = engine.manifest.lock().state().tables.get(&table.id) {
            install::show(engine, table, state, &Installed { parts, flushed: None });
        }
    }
    let lost = feeds::adopt_history(engine, &old_segments, end_lsn)?;
    let lost: Vec<_> = lost.iter().map(|name| (&name[..], LossCause::Gone)).collect();
    feeds::lose_feeds(engine, &lost)
}

/// Saves the indexes that something was replayed of.
fn save_all_replayed(engine: &Engine) -> Result<Vec<SavedIndex>> {
    let mut saved: Vec<SavedIndex> = Vec::new();
    for table in engine.catalog().all() {
        let one = hash_checkpoint::save_replayed(engine, table);
        saved.extend(one.inspect_err(|_| saved.iter().for_each(SavedIndex::discard))?);
    }
    Ok(saved)
}

/// What becomes of the value segments now that all pointers are in parts: those that nothing points to go, and nothing is added
/// to the others.
fn look_over_values(engine: &Engine, rewritten: &Rewrites, changes: &mut Vec<Change>) -> OldValues {
    let manifest = engine.manifest.lock();
    let mut ends: BTreeMap<FileNumber, u64> = BTreeMap::new();
    let catalog = engine.catalog();
    let views: Vec<_> = catalog.all().map(|table| table.part_files()).collect();
    let new_parts = rewritten.0.iter().flat_map(|one| &one.written.parts);
    for part in views.iter().flat_map(BTreeMap::values).chain(new_parts) {
        for used in &part.part.facts().values {
            let end = ends.entry(FileNumber(u64::from(used.segment))).or_default();
            *end = (*end).max(used.end.saturating_mul(VALUE_ALIGN));
        }
    }
    let index =
        |table: &Arc<TableCore>| table.hashed.as_ref().map_or(0, |hashed| hashed.index.facts().misfits);
    let has_misfits = catalog.all().map(index).sum::<u64>() > 0;
    for (low, used) in catalog.all().filter_map(|table| table.hashed.as_ref()).flat_map(Hashed::segments) {
        let mut listed = manifest.state().values.keys().chain(manifest.state().relocated.keys());
        let number = listed.find(|number| low_bits(number.0) == low);
        if let (Some(&number), true) = (number, used.tally.records > 0 || has_misfits) {
            let end = ends.entry(number).or_default();
            *end = (*end).max(used.end);
        }
    }
    let mut old = OldValues::default();
    for (&number, sealed) in &manifest.state().values {
        let is_held = is_held_for_feeds(manifest.state(), number);
        match ends.get(&number) {
            found if manifest.state().is_directory(number) && (is_held || found.is_some()) => {
                // What is counted too much is dead, and found when the directory is looked through.
                let counted =
                    sealed.is_none().then(|| count_value_files(&*engine.host.files, &engine.dir, number));
                changes.extend(counted.into_iter().flatten().map(|end| seal_directory_change(&end)));
            }
            _ if is_held && sealed.is_some() => {}
            _ if is_held => {
                // How much of it counts is not known without reading the log that feeds have still to give.
                let end = segments::segment_bytes(engine, manifest.state(), number);
                old.sealed.push(ValuesEnd { number, end });
            }
            None => {
                changes.push(Change::RemoveValues { segment: number });
                old.unused.push(number);
            }
            Some(&end) if sealed.is_none() => old.sealed.push(ValuesEnd { number, end }),
            Some(_) => {}
        }
    }
    for &number in manifest.state().relocated.keys().filter(|number| !ends.contains_key(number)) {
        changes.push(Change::RemoveValues { segment: number });
        old.unused.push(number);
    }
    changes.extend(old.sealed.iter().map(seal_change));
    old
}

fn rewrite_all(engine: &Engine, rewritten: &mut Rewrites) -> Result<()> {
    // Writing asks the manifest while the commit is held, against the order of locks: nobody else is here yet.
    let mut committer = engine.commit.lock();
    let written: Vec<_> = committer.written().map(|active| Arc::clone(&active.table)).collect();
    written.iter().try_for_each(|table| rewrite(engine, &mut committer, table, rewritten))
}

/// Begins a fresh segment, from `first_lsn` on.
fn start_journal(engine: &mut Engine, first_lsn: Lsn) -> Result<()> {
    let next_seq = engine.commit.lock().next_seq;
    let store_id = engine.manifest.lock().state().store_id;
    let numbers = Arc::clone(&engine.numbers);
    let values = Arc::clone(&engine.values.log);
    let journal = Journal::start_behind(
        &engine.host_for(SpaceUser::Journal),
        &engine.dir,
        JournalStart { store_id, first_lsn, next_seq },
        JournalOptions {
            segment_bytes: engine.options.segment_bytes,
            append_mode: engine.options.append_mode,
            ..JournalOptions::default()
        },
        Arc::new(move || numbers.take()),
        Some(Box::new(move || values.sync())), // first: the log points there
    )?;
    engine.journal = Some(journal.syncer());
    let mut manifest = engine.manifest.lock();
    manifest.vouch_for(journal.syncer());
    engine.commit.lock().journal = Some(journal);
    manifest.append_in_snapshot(&[Change::LogOpen { open: true }])
}

/// Says durably, with these changes, that nothing of the log before `lsn` is needed and that the log is closed.
fn record_log_start(engine: &Engine, lsn: Lsn, mut changes: Vec<Change>) -> Result<()> {
    let mut manifest = engine.manifest.lock();
    changes.push(Change::Horizon { last_seq: engine.published(), log_start_lsn: lsn, durable_lsn: lsn });
    let has_numbers = changes.iter().any(|change| matches!(change, Change::ReserveNumbers { .. }));
    changes.extend(install::numbers_change(engine, manifest.state()).filter(|_| !has_numbers));
    changes.push(Change::LogOpen { open: false });
    let was_copied = manifest.state().log_copied == Some(true);
    changes.extend(was_copied.then_some(Change::LogCopied { copied: false }));
    changes.extend(clock::times_change(engine, manifest.state()));
    let appended = manifest.append(&changes);
    segments::note_listed_values(engine, &manifest);
    appended
}

fn remove_segments(engine: &Engine, numbers: &[FileNumber]) {
    for &number in numbers {
        // One that stays behind is not needed, and removed at the next opening.
        let _ = engine.host.files.remove(&engine.path(&FileName::Log(number).to_string()));
    }
}

/// Ends the log in order. Where all of it is in runs, it goes. `is_last` where nobody else can write a file of the store any more,
/// so that numbers which were set aside and not used are given back.
pub fn close_journal(engine: &Engine, is_last: bool) -> Result<()> {
    let Some(journal) = engine.commit.lock().journal.take() else { return Ok(()) };
    let sync = journal.syncer();
    let end = journal.close()?;
    settle::close_values(engine)?;
    // A log without a seal, for want of space, ends like that of a process that died: where feeds hold
    // it, the next opening has to write its end anew.
    let is_ended = sync.is_sealed() || engine.feeds.hold_nothing();
    if is_ended && log_is_in_runs(engine) {
        let unused = Change::ReserveNumbers { next_number: engine.numbers.peek() };
        record_log_start(engine, end, if is_last { vec![unused] } else { Vec::new() })?;
        let held_from = engine.feeds.held_from(end);
        let segments = sync.segments().into_iter().filter(|segment| segment.end_lsn <= held_from);
        let numbers: Vec<FileNumber> = segments.map(|segment| segment.number).collect();
        remove_segments(engine, &numbers);
    }
    sync.cut_closed(); // a feed may keep it, or the next opening replays it
    Ok(())
}

fn log_is_in_runs(engine: &Engine) -> bool {
    let committer = engine.commit.lock();
    let is_saved = engine.catalog().hashed().all(|(_, hashed)| !hashed.is_to_be_saved());
    committer.written().next().is_none() && engine.tables_sealed().is_empty() && is_saved
}

impl Committer {
    fn empty() -> Committer {
        Committer {
            journal: None,
            next_seq: 1,
            active: Vec::new(),
            written: BTreeSet::new(),
            stripes: Vec::new(),
            stripes_version: u64::MAX,
            active_bytes: 0,
        }
    }

    /// Bytes of all active memtables, counted anew.
    fn active_memtable_bytes(&self) -> usize {
        self.written().map(|active| active.bytes).sum()
    }

    /// The tables to write out while replaying: those of a frame whose memtables are full, and all of them when
    /// together they take twice as many bytes as one may.
    fn full_tables(
        &self,
        frame: &ReplayFrame<'_>,
        (bytes_max, range_deletes_max): (usize, usize),
    ) -> Vec<Arc<TableCore>> {
        let table = |active: &Active| Arc::clone(&active.table);
        if self.active_bytes >= 2 * bytes_max {
            return self.written().filter(|active| active.bytes > 0).map(table).collect();
        }
        let active = tables_of(frame).filter_map(|id| self.active.get(id.0 as usize)?.as_ref());
        active.filter(|active| active.is_full(bytes_max, range_deletes_max)).map(table).collect()
    }
}

/// The tables that a frame has records of, those of neighbouring records once.
fn tables_of<'f>(frame: &ReplayFrame<'f>) -> impl Iterator<Item = TableId> + use<'f> {
    let mut before = None;
    let records = folddb_layout::frame::records(frame.payload);
    let ids = records.map_while(|record| record.ok().map(|record| record.table));
    ids.filter(move |id| before.replace(*id) != Some(*id))
}

/// Where the log begins and what is known of it, by a manifest of so many edits.
pub fn replay_from(state: &State, edits: u64) -> ReplayFrom {
    ReplayFrom {
        store_id: state.store_id,
        log_start_lsn: state.log_start_lsn,
        durable_lsn: state.feeds.all().map(|feed| feed.lsn).fold(state.durable_lsn, Lsn::max), // what was told is durable
        is_open: state.log_open,
        end: if is_copied(state, edits) { LogEnd::Copied } else { LogEnd::Own },
    }
}

/// Whether the log is a copy that was made as far as it was durable, of a backup or restored from one. Where an older version wrote
/// the manifest, which did not say, one that is nothing but a snapshot and speaks of a log all the same is that of a copy; an
/// opening of that version that was cut short left such a one, too.
fn is_copied(state: &State, edits: u64) -> bool {
    state.log_copied.unwrap_or(edits == 1 && state.durable_lsn > state.log_start_lsn)
}

/// A log may only speak of tables that the manifest has known: of others, its end is lost.
fn check_tables(frame: &ReplayFrame<'_>, state: &State) -> Result<()> {
    for record in folddb_layout::frame::records(frame.payload) {
        let unknown = record.is_ok_and(|record| record.table.0 >= state.next_table_id);
        if unknown {
            let message = format!(
                "the log at LSN {} speaks of a table that the manifest never had: its end is lost",
                frame.lsn
            );
            return Err(Error::lacking(message));
        }
    }
    Ok(())
}

/// Parts and files of values that the manifest does not list: of merges, flushes, reclaims and bulk loads that a crash cut
/// short.
fn leftovers(dir: &Path, options: &Options, state: &State) -> Result<Vec<FileName>> {
    let names = options.host.files.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let listed: BTreeSet<FileNumber> = state.part_files().chain(state.index_files()).collect();
    let is_leftover = |name: &FileName| match name {
        FileName::Part(number) | FileName::Index(number) => !listed.contains(number),
        FileName::Values(number) => !state.values.contains_key(number) || state.is_directory(*number),
        FileName::ValueDirectory(number) => !state.is_directory(*number),
        FileName::Relocated(number) => !state.relocated_files.contains_key(number),
        FileName::Kept(number) => state.feeds.kept().iter().all(|kept| kept.file != *number),
        _ => false,
    };
    let names = names.iter().filter_map(|name| FileName::parse(name));
    Ok(names.filter(is_leftover).collect())
}

/// Every value segment that the manifest lists is there, and is one.
fn check_values(dir: &Path, files: &dyn Files, state: &State) -> Result<()> {
    for &number in state.directories.keys() {
        let path = directory_path(dir, number);
        if files.len_bytes(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return Err(Error::corrupt(&path, 0, "the manifest lists it, and it is not there"));
        }
    }
    for (&number, end) in state.values.iter().filter(|(number, _)| !state.is_directory(**number)) {
        let path = values_path(dir, number);
        let file = files.open(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corrupt(&path, 0, "the manifest lists it, and it is not there")
            }
            _ => Error::io("open", &path, error),
        })?;
        let failed = |error| Error::io("read", &path, error);
        let len = file.len_bytes().map_err(failed)?;
        if len < end.unwrap_or(VALUES_HEADER_BYTES as u64).max(VALUES_HEADER_BYTES as u64) {
            return Err(Error::corrupt(&path, len, "the segment ends before its values do"));
        }
        let mut header = vec![0; VALUES_HEADER_BYTES];
        file.read_exact_at(0, &mut header).map_err(failed)?;
        check_header(&header, number).map_err(|cause| Error::corrupt(&path, 0, cause))?;
    }
    for (&number, &file_bytes) in &state.relocated_files {
        check_relocated(&RelocatedFile::open(files, dir, number)?, file_bytes, state.moved_in(number))?;
    }
    Ok(())
}

/// A file of relocated values is the one that the manifest lists, and carries what is said to lie in it.
pub fn check_relocated(
    file: &RelocatedFile,
    file_bytes: u64,
    mut segments: impl Iterator<Item = FileNumber>,
) -> Result<()> {
    if file.file_bytes() != file_bytes {
        let what = format!("it has {} bytes and not {file_bytes}", file.file_bytes());
        return Err(Error::corrupt(file.path(), file_bytes.min(file.file_bytes()), what));
    }
    let carries = |segment: FileNumber| file.carried().iter().any(|one| u64::from(one.segment) == segment.0);
    match segments.find(|&segment| !carries(segment)) {
        None => Ok(()),
        Some(segment) => {
            let what = format!("the manifest says that it carries segment {segment}, and it does not");
            Err(Error::corrupt(file.path(), 0, what))
        }
    }
}

fn open_table(
    dir: &Path,
    options: &Options,
    host_files: &Arc<dyn Files>,
    (id, state): (TableId, &TableState),
    store: &State,
    shared: &Arc<Shared>,
) -> Result<Arc<TableCore>> {
    let in_table = |error: Error| error.context(format!("table `{}`", state.name));
    let rules = TableRules::from_text(&state.rules_text).map_err(in_table)?;
    let rules = rules.bind(&options.custom).map_err(in_table)?;
    let mut files = PartFiles::new();
    for part in state.runs.iter().flat_map(|run| &run.parts) {
        let path: PathBuf = dir.join(FileName::Part(part.file).to_string());
        let is_gone = host_files.len_bytes(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
        if is_gone {
            return Err(in_table(Error::missing(&path, "the manifest lists it")));
        }
        let opened = Part::open(host_files, &path, part.file, &rules.order, shared).map_err(in_table)?;
        if opened.facts().file_bytes != part.file_bytes {
            let what = format!("it has {} bytes and not {}", opened.facts().file_bytes, part.file_bytes);
            return Err(Error::corrupt(&path, 0, what));
        }
        if let Some(used) =
            opened.facts().values.iter().find(|used| !store.has_values(FileNumber(u64::from(used.segment))))
        {
            let what =
                format!("it points to value segment {}, which the manifest does not list", used.segment);
            return Err(in_table(Error::corrupt(&path, 0, what)));
        }
        files.insert(part.file, PartFile::new(opened, part.file, path, Arc::clone(host_files)));
    }
    let range_deletes = RangeDeletes::of(&rules.order, state.range_deletes.values().cloned());
    let view = |active| TableView {
        active,
        sealed: Vec::new(),
        runs: Arc::new(runs_of(state, &files)),
        range_deletes: Arc::new(range_deletes),
    };
    let hashed = match rules.rules.kind {
        TableKind::Hashed => {
            Some(open_index(dir, options, host_files, (store.store_id, id), state).map_err(in_table)?)
        }
        _ => None,
    };
    Ok(Arc::new(TableCore::new(id, &state.name, rules, hashed, view)))
}

/// The index of a hashed table: of its checkpoint, where it has one, the directory is read, and the changes that came after it.
fn open_index(
    dir: &Path,
    options: &Options,
    files: &Arc<dyn Files>,
    (store_id, id): (u128, TableId),
    state: &TableState,
) -> Result<Hashed> {
    let (hashed, changes) = match open_saved(files, dir, state)? {
        Some((file, changes)) => (Hashed::open((file, &changes), state, options.index())?, changes),
        None => (Hashed::new(new_salt(store_id, id), options.index()), Vec::new()),
    };
    if !options.read_only {
        hashed.begin_replay(changes);
    }
    Ok(hashed)
}
