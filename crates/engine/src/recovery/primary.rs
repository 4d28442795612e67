//! Opening: from files to the first view.
//!
//! ```text
//!   create     directory, MANIFEST, FORMAT last, then as open
//!   open       lock, FORMAT, manifest
//!   runs       every listed part is opened and checked
//!   replay     the log from where the manifest says, through the same call as a write
//!   leftovers  parts that no manifest lists go: of merges and flushes that a crash cut short
//!   install    what was replayed is in parts, and one edit installs them; the old segments go
//!   log        a fresh segment is begun
//!   tidy       small runs are merged, as many as openings that each wrote little have left
//! ```
//!
//! Nothing is appended to an existing segment: after a failed sync the page cache may show bytes
//! that the disk does not have, so recovery rewrites what it replayed and syncs that.

use std::path::Path;
use std::sync::Arc;

use folddb_base::Result;
use folddb_host::Host;
use folddb_host::forks::ForkMark;
use folddb_host::sync::atomic::AtomicU64;
use folddb_host::sync::{Mutex, RwLock};
use folddb_layout::file_name::FileName;
use folddb_manifest::{Loaded, ManifestLog, State};
use folddb_run::Shared;
use folddb_value_log::ValueOptions;

use crate::background::state::Background;
use crate::background::{merge, tidy};
use crate::edit::indexes::link_indexes;
use crate::edit::{feeds, install};
use crate::options::Options;
use crate::recovery::format;
use crate::recovery::install::install_replayed;
use crate::recovery::listed::{check_values, leftovers, refuse_newer};
use crate::recovery::log::start_journal;
use crate::recovery::replay::{Replay, is_copied, replay};
use crate::recovery::tables::open_table;
use crate::recovery::torn::{blame_manifest, torn_manifest};
use crate::shared::memory::Tenant;
use crate::state::catalog::Catalog;
use crate::state::committer::{Active, Committer};
use crate::state::counters::Counters;
use crate::state::debt::Debt;
use crate::state::disk_quota::{DiskQuota, SpaceUser};
use crate::state::engine::Engine;
use crate::state::event_queue::EventQueue;
use crate::state::feed_state::Feeds;
use crate::state::hash_index::PointLocks;
use crate::state::health::Health;
use crate::state::latency::Latencies;
use crate::state::manifest::Manifest;
use crate::state::numbers::Numbers;
use crate::state::snapshots::Boundaries;
use crate::state::sync_waiters::SyncWaiters;
use crate::state::tables_at_work::TablesAtWork;
use crate::state::value_state::{Values, value_files};
use crate::state::write_times::StoreTimes;
use crate::values::segments;
use crate::values::segments::remove_leftover;

/// The same, without regard to a concurrent writer.
pub(crate) fn open_once(dir: &Path, mut options: Options) -> Result<Background> {
    options.check_shared_here()?;
    let mark = Arc::new(ForkMark::new());
    options.host = mark.guard(&options.host);
    format::check_format(dir, &options)?;
    format::refuse_to_write_a_backup(dir, &options)?;
    let lock = format::lock_to_open(dir, &options)?;
    let quota = DiskQuota::open(dir, &options)?;
    let host =
        quota.as_ref().map_or(options.host.clone(), |quota| quota.host(&options.host, SpaceUser::Flush));
    let mut loaded = folddb_manifest::load(&options.host, dir)?;
    loaded.state.log_copied = Some(is_copied(&loaded.state, loaded.edits)); // the next snapshot records it
    let (numbers, edits) = (Arc::new(Numbers::starting_at(loaded.next_number)), loaded.edits);
    let torn = torn_manifest(dir, &options, &loaded);
    let state = Arc::new(loaded.state.clone());
    let leftovers = leftovers(dir, &options, &state)?;
    let shared = options.shared_or_own();
    let parts = Shared::of(&shared.cache, options.merge_threads);
    let (catalog, committer) =
        open_tables(dir, &options, &host, &state, &parts).map_err(|error| blame_manifest(&torn, error))?;
    check_values(dir, &*host.files, &state).map_err(|error| blame_manifest(&torn, error))?;
    let values = open_values(dir, &options, &quota, (&host, &parts), &numbers, &state);
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
        boundaries: Arc::new(Boundaries::of(&mark)),
        times: StoreTimes::of(&state),
        health: Health::of(&mark),
        quota,
        debt: Debt::default(),
        memory: Tenant::enter(&shared.memory, options.has_threads()),
        bell: shared.pool.new_bell(),
        shared,
        work: TablesAtWork::default(),
        counters: Counters::default(),
        latencies: Latencies::default(),
        events: EventQueue::new(options.listener.clone()),
        sync_waiters: SyncWaiters::default(),
        options,
        lock: Mutex::new(lock),
    };
    segments::note_listed_values(&engine, &engine.manifest.lock());
    note_parts(&engine);
    let replayed = replay(&engine, &state, edits).map_err(|error| blame_manifest(&torn, error))?;
    engine.read_to_lsn = replayed.read_to_lsn;
    // The disk is changed only now that everything acknowledged has been found.
    if !engine.options.read_only {
        begin_to_write(&mut engine, loaded, leftovers, replayed)?;
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

/// The tables that the manifest lists, each with an empty memtable.
fn open_tables(
    dir: &Path,
    options: &Options,
    host: &Host,
    state: &State,
    parts: &Arc<Shared>,
) -> Result<(Catalog, Committer)> {
    let (mut catalog, mut committer) = (Catalog::default(), Committer::empty());
    for (id, table) in state.tables.iter() {
        let table = open_table(dir, options, &host.files, (id, table), state, parts)?;
        let flushed_seq = state.tables.get(&table.id).map_or(0, |table| table.flushed_seq);
        committer.install_active(Active::new(Arc::clone(&table), flushed_seq));
        catalog.insert(table);
    }
    Ok((catalog, committer))
}

/// Continues the manifest, removes leftovers, installs what was replayed, and begins a log.
fn begin_to_write(
    engine: &mut Engine,
    loaded: Loaded,
    leftovers: Vec<FileName>,
    replayed: Replay,
) -> Result<()> {
    refuse_newer(&engine.dir, &loaded.state, &leftovers, replayed.has_batches)?;
    let numbers = Arc::clone(&engine.numbers);
    let log = ManifestLog::resume(&engine.host, &engine.dir, loaded, Arc::new(move || numbers.take()))
        .inspect_err(|_| replayed.rewritten.discard())?;
    *engine.manifest.lock() = Manifest::Log(Box::new(log), None);
    for name in leftovers {
        remove_leftover(&*engine.host.files, &engine.dir, name); // the next opening retries what stays
    }
    let end_lsn = replayed.end_lsn;
    install_replayed(engine, replayed)?;
    start_journal(engine, end_lsn)?;
    engine.quota.iter().for_each(|quota| quota.set_open());
    Ok(())
}

/// The value log, with the files that the manifest lists.
fn open_values(
    dir: &Path,
    options: &Options,
    quota: &Option<Arc<DiskQuota>>,
    (host, parts): (&Host, &Arc<Shared>),
    numbers: &Arc<Numbers>,
    state: &State,
) -> Values {
    let numbers = Arc::clone(numbers);
    let who =
        quota.as_ref().map_or(options.host.clone(), |quota| quota.host(&options.host, SpaceUser::Values));
    let value_options = ValueOptions {
        segment_bytes_max: options.values_segment_bytes(),
        append_mode: options.append_mode_now(),
    };
    let reading = (options.value_files_max(), options.values_direct);
    let files = value_files(dir, Arc::clone(&host.files), Arc::clone(parts), state, reading);
    Values::new(&who, dir, value_options, Arc::new(move || numbers.take()), files)
}

/// Counts the parts of all tables, and marks those that have some for planning.
fn note_parts(engine: &Engine) {
    let catalog = engine.catalog();
    let with_runs = catalog.all().filter(|table| !table.view().runs.is_empty());
    engine.work.changed.lock().extend(with_runs.clone().map(|table| table.id));
    with_runs.for_each(|table| {
        install::count_parts(engine, &[], &table.view().runs);
        install::note_leading(engine, table, &table.view().runs);
    });
}
