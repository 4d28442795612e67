//! What is wrong with a store, what it costs, and what to do about it: facts in, advice out, most
//! severe first.
//!
//! [`advise`] is a pure function. The facts come from an open store, which knows its snapshots and
//! failures, or from the files of a closed one, which are checked as `verify` does.

mod facts;
mod sample;

use std::path::Path;
use std::sync::atomic::Ordering;

use folddb_base::{ErrorKind, Result, counted, size_text};

use crate::maintenance::doctor::sample::unfit;
use crate::maintenance::finding::{Finding, Severity};
use crate::maintenance::progress::unreported;
use crate::maintenance::survey::Survey;
use crate::maintenance::verify::verify;
use crate::options::Options;
use crate::store::Store;
use crate::table::stats::TableStats;
use folddb_engine::edit::{feeds, log_archive};
use folddb_engine::options::OpenMode;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::feed_state::FeedStats;

pub use facts::{Advice, Weight};
pub(crate) use facts::{Facts, TableFacts};

/// A snapshot that has lived this long was probably forgotten. In seconds.
const SNAPSHOT_S_MAX: f64 = 600.0;

/// More range deletes than merges leave in a table of usual size.
const RANGE_DELETES_MANY: usize = 32_768;

/// Tables smaller than this get no advice about their size. In bytes.
const TABLE_BYTES_MIN: u64 = 1 << 20;

/// A feed that keeps more files than this makes openings slow.
const FEED_FILES: usize = 500;

/// This many runs slow down every read, even if they are small: openings merge them before that.
const RUNS_MANY: usize = 32;

/// If all is well, the log is no longer than this many of the longest segments.
const SEGMENTS_MAX: u64 = 5;

/// What is wrong, most severe first; empty if nothing is.
pub(crate) fn advise(facts: &Facts) -> Vec<Advice> {
    let mut advice = Vec::new();
    of_damage(facts, &mut advice);
    of_unread_parts(facts, &mut advice);
    of_refusals(facts, &mut advice);
    of_space(facts, &mut advice);
    of_folds(facts, &mut advice);
    of_snapshots(facts, &mut advice);
    of_debt(facts, &mut advice);
    of_log(facts, &mut advice);
    of_seal(facts, &mut advice);
    of_memory(facts, &mut advice);
    facts.feeds.iter().for_each(|feed| of_feed(facts, feed, &mut advice));
    for table in &facts.tables {
        of_table(facts, table, &mut advice);
    }
    of_leftovers(facts, &mut advice);
    advice.sort_by_key(|one| std::cmp::Reverse(one.weight));
    advice
}

pub(crate) fn one(weight: Weight, what: String, costs: impl Into<String>, todo: impl Into<String>) -> Advice {
    Advice { weight, what, costs: costs.into(), todo: todo.into() }
}

fn of_damage(facts: &Facts, advice: &mut Vec<Advice>) {
    let store = &facts.store;
    let damage: Vec<&Finding> =
        facts.findings.iter().filter(|finding| finding.severity == Severity::Damage).collect();
    let list = if facts.needs_list { " --list-from BACKUP, with its list" } else { "" };
    let todo = format!(
        "folddb verify {store} --deep lists all of it; then restore a backup, or salvage what is whole: folddb repair {store} NEW{list}"
    );
    if let Some(first) = damage.first().map(|first| first.to_string()) {
        let first = first.trim_start_matches("damage: ");
        let what = match damage.len() {
            1 => format!("a file is damaged: {first}"),
            places => format!("files are damaged in {places} places, the first: {first}"),
        };
        if damage.iter().all(|finding| finding.is_newer_file) {
            let todo = format!(
                "copy the directory; then put the newest MANIFEST back, or restore a backup: folddb verify {store} lists such files. To \
                 go on with the older state, move them away"
            );
            let costs = "what was written since is not found, and the store does not open for writing";
            return advice.push(one(Weight::Broken, format!("the manifest is old: {first}"), costs, todo));
        }
        advice.push(match damage.iter().all(|finding| finding.is_of_feeds_only()) {
            true => one(
                Weight::Broken,
                what,
                "feeds lose their places; the tables are as they were written",
                format!("begin these feeds again, with the present rows: folddb watch {store} FEED --again"),
            ),
            false => {
                one(Weight::Broken, what, "what was written there is lost, and the store may not open", &todo)
            }
        });
    }
    for damage in &facts.stats.damage {
        let what = format!("a merge found damage: {damage}");
        let costs =
            "keys there cannot be read, and the table is no longer merged: it grows, and reads get slower";
        advice.push(one(Weight::Broken, what, costs, &todo));
    }
}

fn of_unread_parts(facts: &Facts, advice: &mut Vec<Advice>) {
    if facts.parts_unread == 0 {
        return;
    }
    let what = format!("this build of FoldDB cannot read {}", counted(facts.parts_unread, "part"));
    let todo = format!("folddb verify {} names the feature or the version: use a build with it", facts.store);
    advice.push(one(Weight::Broken, what, "reads and merges of these keys fail here; nothing is lost", todo));
}

fn of_refusals(facts: &Facts, advice: &mut Vec<Advice>) {
    if let Some(cause) = &facts.stats.poisoned_by {
        let what = format!("a write failed, and the disk may hold any part of it: {cause}");
        let todo = "check the disk, then close the store and open it again, which replays the log";
        advice.push(one(Weight::Broken, what, "every write is refused; reads go on", todo));
    }
    let is_damaged = facts.findings.iter().any(|finding| finding.severity == Severity::Damage);
    if let Some(cause) = facts.refused.as_ref().filter(|_| !is_damaged) {
        let todo = format!("fix what the message names; folddb verify {} reads more", facts.store);
        advice.push(one(
            Weight::Broken,
            format!("the store does not open: {cause}"),
            "nothing can be read",
            todo,
        ));
    }
}

fn of_seal(facts: &Facts, advice: &mut Vec<Advice>) {
    if facts.stats.is_frozen {
        let todo = format!("nothing; to write to it: folddb thaw {}", facts.store);
        let what = "the store is frozen".to_owned();
        advice.push(one(Weight::Minor, what, "it is opened for reading only", todo));
    }
}

fn of_space(facts: &Facts, advice: &mut Vec<Advice>) {
    let used = facts.stats.disk.bytes;
    if let Some(why) = &facts.stats.short_of_space {
        let todo = "free some space, or raise the limit that it names; writing resumes by itself. Deletes still work";
        advice.push(one(Weight::Broken, format!("there is no space: {why}"), "writes are refused", todo));
    } else if facts.refused.is_none() && facts.free_bytes < 2 * facts.reserve_bytes {
        let (free, reserve) = (size_text(facts.free_bytes), size_text(facts.reserve_bytes));
        let what = format!("{free} are free on the disk, and writes are refused below {reserve}");
        let is_short = facts.free_bytes < facts.reserve_bytes;
        let (weight, costs, wanted) = match is_short {
            true => (Weight::Broken, "writes are refused", facts.reserve_bytes),
            false => (Weight::Costly, "soon writes are refused", 2 * facts.reserve_bytes),
        };
        let todo = format!("free {} or more", size_text(wanted - facts.free_bytes));
        advice.push(one(weight, what, costs, todo));
    }
    if let Some(bytes_max) = facts.bytes_max.filter(|max| used > max / 10 * 9 && used <= *max) {
        let what = format!("the store uses {used} bytes of its budget of {bytes_max}");
        let todo = format!(
            "raise disk_bytes_max, or delete what is not needed, then: folddb compact {}",
            facts.store
        );
        advice.push(one(Weight::Costly, what, "soon writes are refused", todo));
    }
}

fn of_folds(facts: &Facts, advice: &mut Vec<Advice>) {
    let failures = facts.stats.reads.fold_failures;
    if failures > 0 {
        let what = format!("folds have failed {} since the store was opened", counted(failures, "time"));
        let costs = "such keys cannot be read, and their records are kept one by one";
        let todo = format!(
            "folddb scan {0} TABLE names the first such key, folddb explain {0} TABLE KEY shows its records; put or delete the \
             key, or fix the fold",
            facts.store
        );
        advice.push(one(Weight::Costly, what, costs, todo));
    }
}

fn of_snapshots(facts: &Facts, advice: &mut Vec<Advice>) {
    let Some(age_s) = facts.stats.snapshots.oldest_s.filter(|age_s| *age_s > SNAPSHOT_S_MAX) else {
        return;
    };
    let what =
        format!("{} snapshots are live, the oldest for {age_s:.0} seconds", facts.stats.snapshots.live);
    let costs = match facts.stats.disk.snapshot_file_bytes {
        0 => {
            "records on the two sides of a snapshot are not folded together, and what it sees is not removed"
                .to_owned()
        }
        bytes => format!("{bytes} bytes of files that nobody else needs"),
    };
    advice.push(one(
        Weight::Costly,
        what,
        costs,
        "drop the snapshot, or the iterator that holds it, in your program; with snapshot_age_max they end by themselves",
    ));
}

fn of_debt(facts: &Facts, advice: &mut Vec<Advice>) {
    let behind = facts.overdue_bytes + facts.sealed_bytes;
    if facts.is_live && behind > (64 << 20) {
        let what = format!(
            "background work is behind: {} bytes wait to be merged and {} to be flushed",
            facts.overdue_bytes, facts.sealed_bytes
        );
        let costs = format!("writers have been slowed down by {} us so far", facts.stats.writes.delay_us);
        let todo = "write in larger batches, give the store more memory, or a faster disk; it catches up when writing pauses";
        advice.push(one(Weight::Costly, what, costs, todo));
    }
    if facts.stats.background.retries > 0 {
        let what = format!(
            "flushes or merges have failed and were tried again, {}",
            counted(facts.stats.background.retries, "time")
        );
        let todo = "check whether the disk is full or failing";
        advice.push(one(Weight::Minor, what, "after five failures in a row all writes are refused", todo));
    }
}

fn of_log(facts: &Facts, advice: &mut Vec<Advice>) {
    if facts.is_live && facts.log_bytes > SEGMENTS_MAX.saturating_mul(facts.segment_bytes) {
        let what = format!("the log has grown to {} bytes", facts.log_bytes);
        let todo = "compact the store, or flush it in a program; a table that is written to rarely holds the log back";
        advice.push(one(Weight::Minor, what, "opening the store after a crash replays all of it", todo));
    }
    if facts.batches_cut > 0 {
        let store = &facts.store;
        let what = format!(
            "the end of the log is not whole: the next opening removes {} batches",
            facts.batches_cut
        );
        let costs = "what they wrote: after a power cut it was never acknowledged as durable; if only the process died it was acknowledged";
        let todo = format!(
            "folddb verify {store} says where; before anything opens the store: folddb repair {store} NEW --past-holes saves the rest"
        );
        advice.push(one(Weight::Costly, what, costs, todo));
    }
    if !facts.is_live && facts.batches_to_replay > 0 {
        let what = format!("the store was not closed: its log holds {} batches", facts.batches_to_replay);
        let todo =
            format!("folddb compact {} opens and closes it now; a program closes it at its end", facts.store);
        advice.push(one(Weight::Minor, what, "each opening replays them first; nothing is lost", todo));
    }
}

fn of_memory(facts: &Facts, advice: &mut Vec<Advice>) {
    let filter_bytes: u64 =
        facts.tables.iter().map(|table| table.stats.records * u64::from(table.filter_bits) / 8).sum();
    if filter_bytes > facts.cache_bytes {
        let what =
            format!("filters take about {filter_bytes} bytes, and the cache has {}", facts.cache_bytes);
        let costs = "a get reads a filter from the disk before it can pass over a run";
        let todo = "open the store with more memory (memory_bytes, --memory), or fewer filter bits for tables that are not read by key";
        advice.push(one(Weight::Minor, what, costs, todo));
    }
}

fn of_feed(facts: &Facts, feed: &FeedStats, advice: &mut Vec<Advice>) {
    let (name, store) = (&feed.name, &facts.store);
    if name.starts_with(log_archive::PREFIX) {
        return; // a lost one is reported with its table, and the others retain what they should
    }
    let drop = format!("if nobody reads it any more, drop it: folddb feed drop {store} {name}");
    if let Some(why) = &feed.lost {
        let what = format!("feed `{name}` has lost its place: {why}");
        let todo = format!(
            "start it again, with the present rows: folddb watch {store} {name} --again, with its --table and --prefix; or {drop}"
        );
        advice.push(one(Weight::Costly, what, "its consumer does not have what the store has", todo));
    } else if feed.held_bytes > feed.bytes_max / 2 {
        let what = format!(
            "feed `{name}` is {} behind, and {} are kept for it",
            counted(feed.lag, "record"),
            size_text(feed.held_bytes)
        );
        let costs = format!("space; with {} it loses its place", size_text(feed.bytes_max));
        advice.push(one(Weight::Costly, what, costs, format!("let its consumer continue; or {drop}")));
    } else if feed.held_files > FEED_FILES {
        let what =
            format!("feed `{name}` is {} records behind, and keeps {} files", feed.lag, feed.held_files);
        let costs = "time: each opening of the store reads all of them";
        advice.push(one(Weight::Costly, what, costs, format!("let its consumer continue; or {drop}")));
    }
}

fn of_table(facts: &Facts, table: &TableFacts, advice: &mut Vec<Advice>) {
    of_table_log(facts, table, advice);
    of_table_rules(facts, table, advice);
    of_table_shape(facts, &table.stats, advice);
    if table.stats.disk_bytes >= TABLE_BYTES_MIN {
        of_table_garbage(facts, &table.stats, advice);
    }
}

/// The archived log of a table.
fn of_table_log(facts: &Facts, table: &TableFacts, advice: &mut Vec<Advice>) {
    let (name, store) = (&table.stats.name, &facts.store);
    if table.lacks_log {
        let what = format!(
            "table `{name}` should archive its log, and has lost it: by a repair, by a restore, or by damage"
        );
        let todo = format!(
            "to archive it again, create the table again: folddb dump {store} {name} --to FILE; \
             folddb drop {store} {name}; folddb load {store} FILE"
        );
        advice.push(one(
            Weight::Costly,
            what,
            "if its runs are lost, they cannot be rebuilt from its log",
            todo,
        ));
    }
}

/// What the rules of a table name and this program lacks, and values that do not fit them.
fn of_table_rules(facts: &Facts, table: &TableFacts, advice: &mut Vec<Advice>) {
    let (name, store) = (&table.stats.name, &facts.store);
    if let Some(missing) = &table.missing {
        let what = format!("table `{name}`: {missing}");
        let todo = "open it with a program that has it (Options::custom_fold, custom_predicate)";
        advice.push(one(Weight::Costly, what, "the table can be read unfolded, and not written", todo));
    }
    if let Some(first) = &table.unfit {
        let what = format!("table `{name}` has values that its fold does not take: {first}");
        let costs = "they cannot be folded, and count and aggregate may refuse the table; neither a backup nor a repair fixes this";
        let todo = format!(
            "put or delete such keys, with a program whose types are those of the table; folddb verify {store} --deep lists all, \
             folddb explain {store} {name} KEY shows the records of one"
        );
        advice.push(one(Weight::Costly, what, costs, todo));
    }
}

/// The range deletes and runs of a table.
fn of_table_shape(facts: &Facts, stats: &TableStats, advice: &mut Vec<Advice>) {
    let name = &stats.name;
    let compact = format!("folddb compact {} {name}", facts.store);
    if stats.range_deletes >= RANGE_DELETES_MANY {
        let what = format!("table `{name}` has {} range deletes in force", stats.range_deletes);
        let costs = "each takes about 200 bytes of memory; snapshots and kept history keep them";
        advice.push(one(Weight::Costly, what, costs, &compact));
    }
    if stats.outdated_bytes > 0 {
        let what = format!(
            "{} of table `{name}` were written before its rules were altered",
            size_text(stats.outdated_bytes)
        );
        let costs = "they are as the old rules say until merges have rewritten them";
        let todo = format!("nothing, as merges come to them; or, at once, {compact}");
        advice.push(one(Weight::Minor, what, costs, todo));
    }
    let is_small = stats.disk_bytes < TABLE_BYTES_MIN;
    let runs_many = if is_small { RUNS_MANY } else { RUNS_MANY.min(2 * facts.merge_factor.max(6) + 1) };
    if stats.runs.len() >= runs_many {
        let what = format!("table `{name}` has {} runs", stats.runs.len());
        let costs = "a scan merges all of them, and a get asks the filter of each";
        advice.push(one(
            Weight::Costly,
            what,
            costs,
            format!("leave the store open, so that background work can merge, or {compact}"),
        ));
    }
}

/// Records of a table that a compaction would remove.
fn of_table_garbage(facts: &Facts, stats: &TableStats, advice: &mut Vec<Advice>) {
    let name = &stats.name;
    let deletes: u64 = stats.runs.iter().flat_map(|run| &run.parts).map(|part| part.deletes).sum();
    let live = stats.keys_estimate.saturating_sub(deletes.min(stats.keys_estimate));
    let is_garbage = stats.records > 2 * live;
    if is_garbage {
        let share = (stats.records - live) * 100 / stats.records.max(1);
        let what = format!(
            "about {share} % of the records of table `{name}` are folded, replaced or deleted by others: {} records, {live} keys",
            stats.records
        );
        let costs = format!("about {} of {} bytes", stats.disk_bytes / 100 * share, stats.disk_bytes);
        advice.push(one(Weight::Minor, what, costs, format!("folddb compact {} {name}", facts.store)));
    }
}

fn of_leftovers(facts: &Facts, advice: &mut Vec<Advice>) {
    let notes: Vec<&Finding> =
        facts.findings.iter().filter(|finding| finding.severity == Severity::Note).collect();
    if let Some(first) = notes.first() {
        let (what, them) = match notes.len() {
            1 => (format!("one note about the files: {first}"), "it"),
            many => (format!("{many} notes about the files, the first: {first}"), "them"),
        };
        let todo = format!("nothing; folddb verify {} lists {them}", facts.store);
        advice.push(one(Weight::Minor, what, "what it says, or some space until the next opening", todo));
    }
}

// ---- gathering the facts ------------------------------------------------------------------------

impl Store {
    /// What is wrong with this store, as far as an open store knows, most severe first; empty if
    /// nothing is. Reads no files: [`Store::diagnose`] checks those of a closed store.
    ///
    /// # Errors
    /// The store is closed.
    pub fn doctor(&self) -> Result<Vec<Advice>> {
        self.engine().check_here()?;
        Ok(advise(&live_facts(self, true)?))
    }

    /// What is wrong with the store at `path`, which nobody has open for writing; it need not be
    /// possible to open it. Also reads the first rows of each table that opens.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotFound`], [`ErrorKind::Locked`]; a directory that cannot be listed.
    pub fn diagnose(path: impl AsRef<Path>, options: &Options) -> Result<Vec<Advice>> {
        let (path, options) = (path.as_ref(), &options.engine);
        let report = {
            let survey = Survey::take(path, options)?;
            verify(&survey, options, false, &mut unreported)?
        };
        let mut facts = match Store::open_as(path, options.clone(), OpenMode::ReadOnly) {
            Ok(store) => sampled_facts(&store)?,
            Err(error) if error.kind() == ErrorKind::Locked => return Err(error),
            Err(error) => Facts { refused: Some(error.message().to_owned()), ..Facts::default() },
        };
        facts.store = path.display().to_string();
        facts.needs_list = report.store_id.is_none();
        facts.batches_cut = report.checked.batches_cut;
        facts.batches_to_replay = report.checked.batches.saturating_sub(report.checked.batches_cut);
        facts.parts_unread = report.checked.parts_unread;
        facts.findings = report.findings;
        Ok(advise(&facts))
    }
}

/// The facts of a closed store, including those from the first rows of its tables.
fn sampled_facts(store: &Store) -> Result<Facts> {
    let mut facts = live_facts(store, false)?;
    for table in &mut facts.tables {
        table.unfit = store.bytes_table(&table.stats.name).ok().and_then(|table| unfit(&table));
    }
    facts.stats.reads.fold_failures = 0; // those of the sample are reported with their tables
    Ok(facts)
}

fn live_facts(store: &Store, is_live: bool) -> Result<Facts> {
    let engine: &Engine = store.engine();
    let mut tables = Vec::new();
    for name in store.tables() {
        // A table may be dropped in between.
        let Ok(stats) = store.bytes_table(&name).and_then(|table| table.stats()) else { continue };
        let Ok(table) = store.bytes_table(&name) else { continue };
        let rules = table.core().present();
        tables.push(TableFacts {
            stats,
            filter_bits: u32::from(rules.rules.filter_bits),
            missing: rules.missing.clone(),
            unfit: None,
            lacks_log: rules.rules.archives_log
                && log_archive::archived_log(engine.manifest.lock().state(), &name).is_none(),
        });
    }
    let stats = store.stats();
    Ok(Facts {
        store: store.path().display().to_string(),
        is_live,
        findings: Vec::new(),
        parts_unread: 0,
        needs_list: false,
        refused: None,
        tables,
        free_bytes: engine.host.files.space_free_bytes(&engine.dir).unwrap_or(u64::MAX),
        reserve_bytes: engine.options.disk_reserve_bytes,
        bytes_max: engine.options.disk_bytes_max,
        cache_bytes: engine.options.cache_bytes() as u64,
        merge_factor: engine.options.merge_factor,
        overdue_bytes: engine.debt.overdue_bytes.load(Ordering::Relaxed),
        sealed_bytes: engine.memory.bytes().sealed as u64,
        batches_to_replay: 0,
        batches_cut: 0,
        log_bytes: feeds::segments_of_memory(engine).iter().map(|segment| segment.len_bytes).sum(),
        feeds: store.feeds(),
        segment_bytes: engine.options.segment_bytes,
        stats,
    })
}

#[cfg(test)]
mod tests;
