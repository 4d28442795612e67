//! A store that is opened for every single write, as by a cron job that calls the command line once
//! a minute.
//!
//! Also with history that must stay: a feed without a reader, and a table that archives its log.
//!
//! Each opening writes one row and then ends in one of three ways: closed, dropped, or dead. After
//! each of them, all that was written must be there, and the size of the store must stay bounded:
//! runs, files, bytes of the manifest, file numbers, and the work of an opening, counted in calls
//! and bytes and never in seconds.
//!
//! Called by `tests/openings.rs` for a few thousand openings, and by the example `openings` for a
//! year of them.

use std::fmt;

use folddb::{Error, FeedEvent, FeedOptions, Result, Rules, Store, Table};

use crate::small_store::options;
use crate::world::SimDisk;

/// The bounds, for any number of openings.
const RUNS_MAX: usize = 17;
const FILES_MAX: usize = 220;
const MANIFEST_BYTES_MAX: u64 = 64 << 10;
const NUMBERS_EACH_MAX: u64 = 48;
const CALLS_EACH_MAX: u64 = 1_000;
const BYTES_EACH_MAX: u64 = 200_000;

/// The part of the log that must stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The part that is not in runs.
    Released,
    /// All of it: a feed has not given it, and a table archives it. Values stay in the log, since
    /// each value segment that a feed leads to stays, too.
    Retained,
}

/// Keys that are written to again and again.
const KEYS: u64 = 500;
const BLOBS: u64 = 20;

/// What was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often the store was opened.
    pub openings: u64,
    /// The most runs that a table had.
    pub runs: usize,
    /// The most files.
    pub files: usize,
    /// The most bytes of a manifest.
    pub manifest_bytes: u64,
    /// The highest number of a file.
    pub number: u64,
    /// Calls and bytes written, on average over the last thousand openings.
    pub calls_each: u64,
    /// The same for bytes.
    pub bytes_each: u64,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} openings: at most {} runs, {} files, {} bytes of manifest; numbers up to {}; lately {} calls and {} bytes \
             written for each",
            self.openings,
            self.runs,
            self.files,
            self.manifest_bytes,
            self.number,
            self.calls_each,
            self.bytes_each,
        )
    }
}

struct Tables {
    sum: Table<u64, u64>,
    rows: Table<u64, u64>,
    blobs: Table<u64, Vec<u8>>,
    hashed: Table<u64, Vec<u8>>,
    /// This many of them are written to, in turn.
    count: u64,
}

impl Tables {
    fn of(store: &Store, history: History) -> Result<Tables> {
        let is_archived = history == History::Retained;
        Ok(Tables {
            sum: store.table("sum", Rules::sorted::<u64, u64>().fold("sum:u64").archive_log(is_archived))?,
            count: if is_archived { 2 } else { 4 },
            rows: store.table("rows", Rules::sorted::<u64, u64>())?,
            blobs: store.table("blobs", Rules::sorted::<u64, Vec<u8>>().separate(64))?,
            hashed: store.table("hashed", Rules::hashed::<u64, Vec<u8>>())?,
        })
    }

    fn write(&self, turn: u64) -> Result<()> {
        let round = turn / self.count;
        match turn % self.count {
            0 => self.sum.fold(&1, &1).map(drop),
            1 => self.rows.put(&(round % KEYS), &turn).map(drop),
            2 => self.blobs.put(&(round % BLOBS), &blob(turn)).map(drop),
            _ => self.hashed.put(&(round % BLOBS), &blob(turn)).map(drop),
        }
    }

    /// The result of the last write to a key of each table, after `turns` of them.
    fn check(&self, turns: u64) -> Result<std::result::Result<(), String>> {
        let sum = self.sum.get(&1)?.unwrap_or(0);
        if sum != turns.div_ceil(self.count) {
            return Ok(Err(format!("the sum is {sum} after {turns} turns")));
        }
        let Some(turn) = turns.checked_sub(1) else { return Ok(Ok(())) };
        let round = turn / self.count;
        let is_there = match turn % self.count {
            1 => self.rows.get(&(round % KEYS))? == Some(turn),
            2 => self.blobs.get(&(round % BLOBS))? == Some(blob(turn)),
            3 => self.hashed.get(&(round % BLOBS))? == Some(blob(turn)),
            _ => true,
        };
        Ok(if is_there { Ok(()) } else { Err(format!("turn {turn} is not there")) })
    }
}

fn blob(turn: u64) -> Vec<u8> {
    format!("{turn:>200}").into_bytes()
}

/// Opens a store `openings` times, each time for one write. Calls `told` at every thousandth
/// opening.
///
/// # Errors
/// What was lost, or which bound was passed, with the opening.
pub fn open_for_each_write(
    openings: u64,
    history: History,
    told: &mut dyn FnMut(&Seen),
) -> std::result::Result<Seen, String> {
    let mut disk = SimDisk::new(openings);
    let mut seen = Seen::default();
    let mut before = (0, 0);
    for turn in 0..openings {
        disk.forget_diary();
        let at = |error: folddb::Error| format!("opening {turn}: {error}");
        open_once(&disk, turn, history).map_err(at)?.map_err(|lost| format!("opening {turn}: {lost}"))?;
        let turns = turn + 1;
        seen.openings = turns;
        look(&disk, turn, &mut seen).map_err(at)?;
        if turns.is_multiple_of(1000) || turns == openings {
            let now = (disk.calls(), disk.bytes_written());
            let many = (turns - 1) % 1000 + 1;
            (seen.calls_each, seen.bytes_each) = ((now.0 - before.0) / many, (now.1 - before.1) / many);
            before = now;
            told(&seen);
            check_bounds(&seen).map_err(|why| format!("{why}: {:?}", disk.names(&SimDisk::store_dir())))?;
        }
        disk = disk.after_death();
    }
    Ok(seen)
}

fn open_once(disk: &SimDisk, turn: u64, history: History) -> Result<std::result::Result<(), String>> {
    let (path, options) = (SimDisk::store_dir(), options(disk));
    let store = if turn == 0 { Store::create(path, options)? } else { Store::open(path, options)? };
    let tables = Tables::of(&store, history)?;
    if history == History::Retained && turn == 0 {
        begin_feed(&store)?;
    }
    if history == History::Retained && turn.is_multiple_of(500) {
        check_feed(&store, turn)?;
    }
    if let Err(lost) = tables.check(turn)? {
        return Ok(Err(lost));
    }
    tables.write(turn)?;
    drop(tables);
    match turn / 4 % 3 {
        0 => store.close()?,
        1 => drop(store),
        _ => disk.die(),
    }
    Ok(Ok(()))
}

fn begin_feed(store: &Store) -> Result<()> {
    let mut feed = store.feed(FEED, FeedOptions::default())?;
    while feed.poll()?.is_some() {}
    feed.acknowledge(feed.position())
}

/// The feed gives the batch of each turn, once and in order.
fn check_feed(store: &Store, turns: u64) -> Result<()> {
    let mut feed = store.feed(FEED, FeedOptions::default())?;
    let mut next = 1u64;
    while let Some(event) = feed.poll()? {
        let FeedEvent::Batch(batch) = event else { continue };
        if u64::from(batch.first_seq) != next || batch.ops.len() != 1 {
            return Err(Error::invalid(format!("turn {next} is not what the feed gives: {batch:?}")));
        }
        next += 1;
    }
    if next == turns + 1 { Ok(()) } else { Err(Error::invalid(format!("the feed gives {next} turns"))) }
}

const FEED: &str = "unread";

/// Checks the store that an opening has left.
fn look(disk: &SimDisk, turn: u64, seen: &mut Seen) -> Result<()> {
    let names = disk.names(&SimDisk::store_dir());
    seen.files = seen.files.max(names.len());
    let manifests = names.iter().filter(|(name, _)| name.starts_with("MANIFEST"));
    seen.manifest_bytes = manifests.map(|(_, bytes)| *bytes).fold(seen.manifest_bytes, u64::max);
    let number = |name: &str| name.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
    seen.number = names.iter().filter_map(|(name, _)| number(name)).fold(seen.number, u64::max);
    if turn.is_multiple_of(25) {
        let left = disk.after_death();
        let store = Store::open_read_only(SimDisk::store_dir(), options(&left))?;
        for table in store.tables() {
            seen.runs = seen.runs.max(store.bytes_table(&table)?.stats()?.runs.len());
        }
    }
    Ok(())
}

fn check_bounds(seen: &Seen) -> std::result::Result<(), String> {
    let is_within = seen.runs <= RUNS_MAX
        && seen.files <= FILES_MAX
        && seen.manifest_bytes <= MANIFEST_BYTES_MAX
        && seen.number <= NUMBERS_EACH_MAX * seen.openings + 1000
        && seen.calls_each <= CALLS_EACH_MAX
        && seen.bytes_each <= BYTES_EACH_MAX;
    if is_within { Ok(()) } else { Err(format!("a bound is passed after {seen}")) }
}
