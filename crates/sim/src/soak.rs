//! The soak: real processes that use the whole interface of one store, killed with SIGKILL at
//! random moments, opened again and checked, for any time.
//!
//! The caller says how the writing process is started; it calls [`write_until_killed`]. The batches
//! are numbered (see [`crate::numbered`]), so the state after any of them is known: the store must
//! be in such a state, with at least all batches acknowledged in a mode that survives. Memory,
//! descriptors and the directory must not grow.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use folddb::{Durability, Options, Result, Rules, Store};

use crate::chance::Seeded;
use crate::numbered::Numbered;
use crate::process::Usage;

/// The most resident bytes of a writer: the promise of docs/LIMITS.md for this store, plus the
/// program.
const RESIDENT_BYTES_MAX: u64 = 48 << 20;
/// The most open descriptors of a writer: see docs/LIMITS.md.
const DESCRIPTORS_MAX: u64 = 96;
/// The most bytes of a closed store: the data are less than 2 MB, and their garbage is merged away.
const DISK_BYTES_MAX: u64 = 24 << 20;

/// As small as possible, so that flushes and merges always run.
pub fn options() -> Options {
    Options::default().memory_bytes(4 << 20).tuning(|t| {
        t.segment_bytes(1 << 20)
            .value_segment_bytes(64 << 10)
            .part_bytes(64 << 10)
            .merge_factor(2)
            .open_files_max(32)
    })
}

/// How a batch is committed, by the mode of a round. `Buffered` promises a killed process only the
/// order.
fn durability(seed: u64, i: u64) -> Durability {
    match seed % 4 {
        0 => Durability::Sync,
        1 if i.is_multiple_of(5) => Durability::Sync,
        2 => Durability::Buffered,
        _ => Durability::Process,
    }
}

/// The writer: says `open n` with the last batch that it has found, then `ack i` for each batch.
/// Ends by being killed.
///
/// # Errors
/// Any call that fails: none may.
pub fn write_until_killed(dir: &Path, seed: u64) -> Result<(), String> {
    let failed = |error: folddb::Error| format!("{error:?}");
    let mut chance = Seeded::new(seed);
    loop {
        let store = Store::open(dir, options()).map_err(failed)?;
        let numbered = Numbered::open(&store).map_err(failed)?;
        let last = numbered.last()?;
        say(&format!("open {last}"))?;
        let end = last + 200 + chance.below(2000);
        for i in last + 1..=end {
            let mut batch = store.batch();
            numbered.fill(&mut batch, i);
            batch.commit(durability(seed, i)).map_err(failed)?;
            say(&format!("ack {i}"))?;
            besides(&store, &mut chance).map_err(failed)?;
        }
        drop(numbered);
        if chance.one_in(4) { drop(store) } else { store.close().map_err(failed)? }
    }
}

fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| format!("nobody listens: {error}"))
}

/// Sometimes an action that does not change the numbered tables: snapshots and scans, a table that
/// is created, filled, emptied by a range delete and dropped, or an optimization.
fn besides(store: &Store, chance: &mut Seeded) -> Result<()> {
    match chance.below(400) {
        0..4 => {
            let past = store.snapshot();
            let table = store.table("log", Rules::sorted::<u64, Vec<u8>>())?;
            past.scan(&table).limit(50).count()?;
            table.scan().reverse().limit(50).count()?;
        }
        4..8 => {
            let table = store.table("scratch", Rules::sorted::<u64, u64>().fold("sum:u64"))?;
            let mut batch = store.batch();
            for key in 0..200 {
                batch.fold(&table, &key, &1);
            }
            batch.delete(&table, &7);
            batch.delete_range(table.as_bytes(), &100u64.to_be_bytes(), &150u64.to_be_bytes());
            batch.commit(Durability::Process)?;
            table.scan().count()?;
            if chance.one_in(2) {
                store.drop_table("scratch")?;
            }
        }
        8 => store.bytes_table("log")?.compact()?,
        9 => store.flush()?,
        _ => {}
    }
    Ok(())
}

/// How long to soak, from which seed, where, and how a writer is started on a directory with a
/// seed.
pub struct Soak<'a> {
    /// The directory of the store, which does not exist yet.
    pub dir: PathBuf,
    /// Decides the moments of kills, and the actions of writers.
    pub seed: u64,
    /// How long.
    pub lasting: Duration,
    /// A process that calls [`write_until_killed`].
    pub writer: &'a dyn Fn(&Path, u64) -> Command,
}

/// The findings of a soak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Processes killed.
    pub kills: u64,
    /// As many of them before they had opened the store.
    pub kills_while_opening: u64,
    /// Batches in the store at the end.
    pub batches: u64,
    /// The most memory that a writer had resident, in bytes.
    pub resident_bytes_max: u64,
    /// The most descriptors that a writer had open.
    pub descriptors_max: u64,
    /// The most that the closed store took, in bytes.
    pub disk_bytes_max: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills, {} of them while opening; {} batches, none lost; at most {} KiB of memory, {} descriptors, {} KiB on disk",
            self.kills,
            self.kills_while_opening,
            self.batches,
            self.resident_bytes_max >> 10,
            self.descriptors_max,
            self.disk_bytes_max >> 10
        )
    }
}

impl Soak<'_> {
    /// Soaks.
    ///
    /// # Errors
    /// Says what is wrong, and in which round. The directory stays unchanged.
    pub fn run(&self, progress: &mut dyn FnMut(&Summary)) -> Result<Summary, String> {
        let failed = |error: folddb::Error| format!("{error:?}");
        Numbered::open(&Store::create(&self.dir, options()).map_err(failed)?).map_err(failed)?;
        let (mut chance, mut summary, began) = (Seeded::new(self.seed), Summary::default(), Instant::now());
        let (mut promised, mut round) = (0, 0);
        while began.elapsed() < self.lasting || round < 4 {
            let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(round);
            let this_round = round;
            let in_round = |what: String| format!("round {this_round}: {what}");
            let acknowledged = self.write_and_kill(seed, &mut chance, &mut summary).map_err(in_round)?;
            if durability(seed, 1) != Durability::Buffered {
                promised = promised.max(acknowledged);
            }
            round += 1;
            if chance.one_in(3) {
                continue; // the next writer finds what this one left
            }
            let found = self.look(chance.one_in(3), &mut summary).map_err(in_round)?;
            if found < promised {
                return Err(in_round(format!(
                    "batch {promised} was acknowledged, {found} is the last there is"
                )));
            }
            (promised, summary.batches) = (found, found);
            progress(&summary);
        }
        Ok(summary)
    }

    /// Runs a writer and kills it. Returns the last batch that it has acknowledged, 0 if none.
    fn write_and_kill(&self, seed: u64, chance: &mut Seeded, summary: &mut Summary) -> Result<u64, String> {
        let mut command = (self.writer)(&self.dir, seed);
        let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("the writer does not start: {error}"))?;
        let stdout = child.stdout.take().ok_or("its output is not piped")?;
        let (opened, wait_open) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let (mut last, mut line, mut lines) = (0, String::new(), BufReader::new(stdout));
            while lines.read_line(&mut line).is_ok_and(|len| len > 0) {
                if line.starts_with("open ") {
                    let _ = opened.send(());
                }
                // A line without its end was cut by the kill.
                let number = line.strip_prefix("ack ").and_then(|rest| rest.strip_suffix('\n'));
                last = number.and_then(|number| number.parse().ok()).unwrap_or(last);
                line.clear();
            }
            last
        });
        let while_opening = chance.one_in(3);
        if while_opening {
            std::thread::sleep(Duration::from_micros(chance.below(30_000)));
        } else {
            let _ = wait_open.recv_timeout(Duration::from_secs(60));
            std::thread::sleep(Duration::from_micros(chance.below(300_000)));
        }
        let usage = Usage::of(child.id());
        let ended = child.try_wait().map_err(|error| error.to_string())?.is_some();
        let _ = child.kill();
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let last = reader.join().map_err(|_| "its output was not read".to_owned())?;
        if ended {
            return Err(format!("the writer ended by itself: {}", String::from_utf8_lossy(&output.stderr)));
        }
        summary.kills += 1;
        summary.kills_while_opening += u64::from(while_opening);
        note_usage(&usage.unwrap_or_default(), summary)?;
        Ok(last)
    }

    /// Opens the store, checks its contents, and closes it, after which no other file may be left.
    /// Returns the last batch.
    fn look(&self, read_only: bool, summary: &mut Summary) -> Result<u64, String> {
        let failed = |error: folddb::Error| format!("{error:?}");
        let store = (if read_only {
            Store::open_read_only(&self.dir, options())
        } else {
            Store::open(&self.dir, options())
        })
        .map_err(failed)?;
        let found = Numbered::open(&store).map_err(failed)?.last()?;
        if read_only {
            return Ok(found);
        }
        store.settle().map_err(failed)?;
        let mut listed = 0;
        for table in store.tables() {
            let runs = store.bytes_table(&table).and_then(|table| table.stats()).map_err(failed)?.runs;
            listed += runs.iter().map(|run| run.parts.len()).sum::<usize>();
        }
        store.close().map_err(failed)?;
        self.check_directory(listed, summary)?;
        Ok(found)
    }

    /// A closed store has the parts that it lists, and no segment.
    fn check_directory(&self, listed: usize, summary: &mut Summary) -> Result<(), String> {
        let entries = std::fs::read_dir(&self.dir).map_err(|error| error.to_string())?;
        let (mut parts, mut bytes, mut others) = (0, 0, Vec::new());
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
            parts += usize::from(name.ends_with(".part"));
            if !name.ends_with(".part")
                && !["FORMAT", "LOCK", "MANIFEST"].iter().any(|known| name.starts_with(known))
            {
                others.push(name);
            }
        }
        if parts != listed || !others.is_empty() {
            return Err(format!(
                "{parts} parts are there and {listed} are listed; besides there are {others:?}"
            ));
        }
        if bytes > DISK_BYTES_MAX {
            return Err(format!("the closed store takes {bytes} bytes; it grows"));
        }
        summary.disk_bytes_max = summary.disk_bytes_max.max(bytes);
        Ok(())
    }
}

fn note_usage(usage: &Usage, summary: &mut Summary) -> Result<(), String> {
    if usage.peak_bytes > RESIDENT_BYTES_MAX || usage.descriptors > DESCRIPTORS_MAX {
        return Err(format!("a writer used more than is promised: {usage:?}"));
    }
    summary.resident_bytes_max = summary.resident_bytes_max.max(usage.peak_bytes);
    summary.descriptors_max = summary.descriptors_max.max(usage.descriptors);
    Ok(())
}
