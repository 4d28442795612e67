//! What all workloads of a child share: opening, settling, closing, dropping caches, and collecting
//! figures.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Result, anyhow};
use folddb_bench::check::RowSum;
use folddb_bench::measure::{Phase, round};
use folddb_bench::process::MemoryWatch;
use serde_json::{Map, Value, json};

use super::beside::{Beside, read_while_writing};
use super::files;
use super::job::Job;
use super::load::{Loaded, Source, load};
use super::reads::{self, Found, GETS, Questions};
use super::space::watch_space;
use crate::rival::{Meaning, Rival, Setup, Sight};
use crate::rivals::{self, Entry};

/// One run: the store, what is known of it, and the figures up to now.
pub(super) struct Child<'a> {
    pub(super) job: &'a Job,
    pub(super) setup: Setup,
    entry: &'static Entry,
    store: Option<Box<dyn Rival>>,
    memory: MemoryWatch,
    figures: Map<String, Value>,
    device_bytes_before: u64,
    right: bool,
}

impl Child<'_> {
    pub(super) fn new<'a>(rival: &str, job: &'a Job, dir: PathBuf) -> Result<Child<'a>> {
        let entry = rivals::entry(rival)?;
        std::fs::create_dir_all(&dir)?;
        let setup = Setup {
            dir,
            memory_bytes: job.memory_bytes,
            durability: job.durability,
            meaning: Meaning::Numbers,
        };
        let memory = MemoryWatch::start();
        let device_bytes_before = files::device_bytes();
        let figures = Map::new();
        Ok(Child { job, setup, entry, store: None, memory, figures, device_bytes_before, right: true })
    }

    /// Adds a figure.
    pub(super) fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.figures.insert(name.to_owned(), value.into());
    }

    /// Notes whether all of something was right.
    pub(super) fn judge(&mut self, right: bool) {
        self.right &= right;
    }

    /// Opens a fresh store for this meaning of folds.
    pub(super) fn open(&mut self, meaning: Meaning) -> Result<()> {
        self.setup.meaning = meaning;
        self.store = Some((self.entry.open)(&self.setup)?);
        Ok(())
    }

    /// A second store of the same kind in a directory of its own.
    pub(super) fn open_beside(&self, name: &str) -> Result<Box<dyn Rival>> {
        let mut setup = self.setup.clone();
        setup.dir.push(name);
        setup.memory_bytes /= 8;
        std::fs::create_dir_all(&setup.dir)?;
        (self.entry.open)(&setup)
    }

    pub(super) fn store(&self) -> Result<&dyn Rival> {
        self.store.as_deref().ok_or_else(|| anyhow!("the store is not open"))
    }

    /// Writes all rows, with their figures.
    pub(super) fn load(&mut self, source: &mut dyn Source) -> Result<()> {
        let (dir, stop) = (self.setup.dir.clone(), AtomicBool::new(false));
        let (store, job) = (self.store()?, self.job);
        let (loaded, space) = std::thread::scope(|scope| {
            let space = scope.spawn(|| watch_space(&dir, &stop));
            let loaded =
                store.writer().and_then(|mut writer| load(&mut *writer, source, job.rows, job.batch));
            stop.store(true, Ordering::Relaxed);
            (loaded, space.join())
        });
        self.put_load(loaded?);
        self.put("disk_bytes_by_second", space.map_err(|_| anyhow!("the watch panicked"))??);
        Ok(())
    }

    /// Adds what a load took.
    pub(super) fn put_load(&mut self, loaded: Loaded) {
        self.put("load", loaded.phase);
        self.put("commits", loaded.commits);
        self.put("commits_by_second", loaded.by_second);
    }

    /// Reports how much the store takes on the disk for each live byte of keys and values.
    pub(super) fn put_space(&mut self, live_bytes: u64) -> Result<()> {
        let disk_bytes = files::allocated_bytes(&self.setup.dir)?;
        let per_byte = round(disk_bytes as f64 / live_bytes.max(1) as f64, 3);
        self.put(
            "space",
            json!({ "live_bytes": live_bytes, "disk_bytes": disk_bytes, "per_byte": per_byte }),
        );
        Ok(())
    }

    /// Settles, syncs, and reports how much was written for `user_bytes`, the disk space, and the
    /// memory up to now.
    pub(super) fn settle(&mut self, user_bytes: u64) -> Result<()> {
        let phase = Phase::start(0);
        self.store()?.settle()?;
        let mut settle = seconds_of(phase);
        let syncing = Instant::now();
        files::sync(&self.setup.dir)?;
        settle["sync_seconds"] = json!(round(syncing.elapsed().as_secs_f64(), 3));
        self.put("settle", settle);
        let device_bytes = files::device_bytes().saturating_sub(self.device_bytes_before);
        let amplification = round(device_bytes as f64 / user_bytes.max(1) as f64, 3);
        self.put(
            "written",
            json!({ "user_bytes": user_bytes, "device_bytes": device_bytes, "amplification": amplification }),
        );
        self.put("disk_bytes", files::allocated_bytes(&self.setup.dir)?);
        let peaks = self.memory.peaks();
        self.put("peak_resident_bytes", peaks.resident_bytes);
        self.put("peak_anonymous_bytes", peaks.anonymous_bytes);
        Ok(())
    }

    /// All read phases, after a load that has settled: warm, after optimizing if requested, cold,
    /// and with a concurrent writer. `expected` is what must be in the store.
    pub(super) fn read_all(
        &mut self,
        questions: &dyn Questions,
        expected: RowSum,
        more: &mut (dyn Source + Send),
    ) -> Result<()> {
        self.read_still(questions, expected)?;
        let how = Beside {
            batch: self.job.batch,
            loaded_rows: self.job.rows,
            seed: self.job.seed,
            writes_per_s: self.job.beside_writes_per_s,
            gets_per_s: self.job.beside_gets_per_s,
        };
        let Found { figures, right } = read_while_writing(self.store()?, more, questions, &how)?;
        self.put("read_while_writing", figures);
        self.judge(right);
        Ok(())
    }

    /// Those read phases in which nobody writes.
    pub(super) fn read_still(&mut self, questions: &dyn Questions, expected: RowSum) -> Result<()> {
        let (warm, found) = self.warm(questions)?;
        self.check(found, expected);
        if self.job.optimize {
            self.optimize(questions, expected)?;
        }
        let cold = self.cold(questions, expected)?;
        self.put("reads", json!({ "warm": warm, "cold": cold }));
        Ok(())
    }

    /// Gets to warm up, then those that count, then a scan.
    fn warm(&mut self, questions: &dyn Questions) -> Result<(Value, Option<RowSum>)> {
        let is_ordered = self.store()?.is_ordered();
        let mut reader = self.store()?.reader(Sight::Still)?;
        reads::gets(&mut *reader, questions, GETS, self.job.seed.wrapping_add(1))?;
        let Found { mut figures, right } = reads::gets(&mut *reader, questions, GETS, self.job.seed)?;
        let (scan, found) = reads::scan(&mut *reader, questions, is_ordered)?;
        drop(reader);
        figures["scan"] = scan;
        self.judge(right);
        Ok((figures, found))
    }

    fn optimize(&mut self, questions: &dyn Questions, expected: RowSum) -> Result<()> {
        let phase = Phase::start(0);
        if !self.store()?.optimize()? {
            return Ok(());
        }
        let mut optimized = seconds_of(phase);
        let (warm, found) = self.warm(questions)?;
        optimized["disk_bytes"] = json!(files::allocated_bytes(&self.setup.dir)?);
        optimized["reads"] = json!({ "warm": warm });
        self.put("optimized", optimized);
        self.judge(found == Some(expected));
        Ok(())
    }

    /// Gets from a store that was just opened, with nothing of it in memory; and a scan in the same
    /// state.
    fn cold(&mut self, questions: &dyn Questions, expected: RowSum) -> Result<Value> {
        let open_ms = self.reopen_cold()?;
        let mut reader = self.store()?.reader(Sight::Still)?;
        let Found { mut figures, right } = reads::gets(&mut *reader, questions, GETS, self.job.seed)?;
        drop(reader);
        self.judge(right);
        self.reopen_cold()?;
        let is_ordered = self.store()?.is_ordered();
        let mut reader = self.store()?.reader(Sight::Still)?;
        let (scan, found) = reads::scan(&mut *reader, questions, is_ordered)?;
        drop(reader);
        self.judge(found == Some(expected));
        figures["scan"] = scan;
        figures["open_ms"] = json!(open_ms);
        Ok(figures)
    }

    /// Closes, drops all files from the page cache, and opens again; the milliseconds that the
    /// opening took.
    pub(super) fn reopen_cold(&mut self) -> Result<f64> {
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        files::drop_from_page_cache(&self.setup.dir)?;
        let before = Instant::now();
        self.store = Some((self.entry.open)(&self.setup)?);
        Ok(round(before.elapsed().as_secs_f64() * 1e3, 3))
    }

    /// Notes the checksum of what was found.
    pub(super) fn check(&mut self, found: Option<RowSum>, expected: RowSum) {
        self.put("checksum", found.map(|found| format!("{:016x}", found.sum)));
        self.put("checksum_expected", format!("{:016x}", expected.sum));
        self.judge(found == Some(expected));
    }

    /// Closes the store, and returns all figures.
    pub(super) fn end(mut self) -> Result<Value> {
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        let mut whole = Map::new();
        for (name, value) in [
            ("rival", json!(self.entry.name)),
            ("version", json!((self.entry.version)())),
            ("workload", json!(self.job.workload.name())),
            ("rows", json!(self.job.rows)),
            ("batch", json!(self.job.batch)),
            ("threads", json!(self.job.threads)),
            ("memory_bytes", json!(self.job.memory_bytes)),
            ("durability", json!(self.setup.durability.name())),
            ("settings", json!((self.entry.settings)(&self.setup))),
        ] {
            whole.insert(name.to_owned(), value);
        }
        whole.extend(self.figures);
        whole.insert("verified".to_owned(), json!(self.right));
        Ok(Value::Object(whole))
    }
}

/// Wall clock and CPU of a phase without a meaningful number of rows.
fn seconds_of(phase: Phase) -> Value {
    let mut figures = phase.end();
    if let Some(figures) = figures.as_object_mut() {
        figures.remove("rows_per_s");
    }
    figures
}
