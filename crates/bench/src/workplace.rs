//! Where a bench runs: a directory with a store in it, and the figures on that store in every
//! report.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use folddb::{Error, ErrorKind, Options, Result, Store, StoreStats};
use serde_json::{Value, json};

use crate::cold;
use crate::measure::round;
use crate::process::{MemoryWatch, allocated_bytes, cpu_seconds};
use crate::report::Report;
use crate::{BenchOptions, measure};

/// A store in a directory that is removed with it, unless it is to be kept.
pub(crate) struct Workplace {
    pub(crate) store: Store,
    /// Milliseconds that the opening took, after a reopening.
    pub(crate) open_ms: f64,
    /// Whether the files could be made cold before it.
    pub(crate) is_cold: bool,
    options: Options,
    path: PathBuf,
    /// The directory that was made for the store, if one was.
    made_dir: Option<PathBuf>,
    keep: bool,
    memory: MemoryWatch,
    cpu_started: Option<f64>,
}

impl Workplace {
    /// Creates a fresh store, with `memory_bytes` unless the options say otherwise.
    pub(crate) fn create(bench: &str, options: &BenchOptions, memory_bytes: usize) -> Result<Workplace> {
        let (parent, made_dir) = match &options.dir {
            Some(dir) => (dir.clone(), None),
            None => {
                let dir = fresh_dir(bench)?;
                (dir.clone(), Some(dir))
            }
        };
        let path = parent.join(format!("{bench}.folddb"));
        let memory = MemoryWatch::start();
        let cpu_started = cpu_seconds();
        let store_options = Options::default()
            .memory_bytes(options.memory_bytes.unwrap_or(memory_bytes))
            .merge_threads(options.merge_threads)
            .durability(options.durability);
        let store_options = match options.merge_factor {
            Some(factor) => store_options.tuning(|tuning| tuning.merge_factor(factor)),
            None => store_options,
        };
        let created = Store::create(&path, store_options.clone());
        if let (Err(_), Some(dir)) = (&created, &made_dir) {
            let _ = std::fs::remove_dir_all(dir); // nothing of worth is in it
        }
        Ok(Workplace {
            store: created?,
            open_ms: 0.0,
            is_cold: false,
            options: store_options,
            path,
            made_dir,
            keep: options.keep,
            memory,
            cpu_started,
        })
    }

    /// Closes the store and opens it with none of its files in memory.
    pub(crate) fn reopen_cold(self) -> Result<Workplace> {
        self.reopen(Store::close)
    }

    /// As [`Workplace::reopen_cold`], without a close: what is only in memtables is replayed from
    /// the log, as after the death of a process.
    pub(crate) fn leave_and_reopen_cold(self) -> Result<Workplace> {
        self.reopen(|store| {
            drop(store);
            Ok(())
        })
    }

    fn reopen(self, end: impl FnOnce(Store) -> Result<()>) -> Result<Workplace> {
        end(self.store)?;
        let is_cold = cold::forget_files(&self.path)?;
        let started = Instant::now();
        let store = Store::open(&self.path, self.options.clone())?;
        let open_ms = round(started.elapsed().as_secs_f64() * 1e3, 3);
        Ok(Workplace { store, open_ms, is_cold, ..self })
    }

    /// What the bench was run with.
    pub(crate) fn put_setting(
        report: &mut Report,
        options: &BenchOptions,
        memory_bytes: usize,
        batch: usize,
    ) {
        report.put("scale", options.scale);
        report.put("seed", options.seed);
        report.put("durability", format!("{:?}", options.durability).to_lowercase());
        report.put("ops_per_batch", batch);
        if let Some(factor) = options.merge_factor {
            report.put("merge_factor", factor);
        }
        report.put("memory_budget_bytes", options.memory_bytes.unwrap_or(memory_bytes));
    }

    /// Peak memory and CPU up to now.
    pub(crate) fn put_process(&self, report: &mut Report) {
        let peaks = self.memory.peaks();
        report.put("peak_resident_bytes", peaks.resident_bytes);
        report.put("peak_anonymous_bytes", peaks.anonymous_bytes);
        report.put("cpu_s", measure::cpu_since(self.cpu_started));
    }

    /// The most memory up to now.
    pub(crate) fn peak_resident_bytes(&self) -> Option<u64> {
        self.memory.peaks().resident_bytes
    }

    /// How much was written for `user_bytes` of keys and values, and what background work cost the
    /// writers.
    pub(crate) fn put_written(&self, report: &mut Report, user_bytes: u64) {
        let stats = self.store.stats();
        report.put("written", written(&stats, user_bytes));
        report.put(
            "background",
            json!({
                "flushes": stats.background.flushes,
                "merges": stats.background.merges,
                "records_merged": stats.background.records_merged,
                "stalls": stats.writes.stalls,
                "writer_delay_s": round(stats.writes.delay_us as f64 / 1e6, 3),
            }),
        );
    }

    /// What the store takes up on the disk now, and in how many runs.
    pub(crate) fn disk(&self, table: &str) -> Result<Value> {
        let stats = self.store.bytes_table(table)?.stats()?;
        let parts: usize = stats.runs.iter().map(|run| run.parts.len()).sum();
        Ok(json!({
            "runs": stats.runs.len(),
            "parts": parts,
            "part_bytes": stats.disk_bytes,
            "allocated_bytes": allocated_bytes(&self.path),
        }))
    }

    /// Closes the store and removes it, unless it is to be kept.
    pub(crate) fn close(self, report: &mut Report) -> Result<()> {
        let Workplace { store, path, made_dir, keep, memory, .. } = self;
        let closed = store.close();
        drop(memory);
        if keep {
            report.put("store", path.display().to_string());
            return closed;
        }
        let gone = made_dir.as_deref().unwrap_or(&path);
        closed.and(std::fs::remove_dir_all(gone).map_err(|error| Error::io("remove", gone, error)))
    }
}

fn written(stats: &StoreStats, user_bytes: u64) -> Value {
    let factor = |bytes: u64| round(bytes as f64 / user_bytes.max(1) as f64, 3);
    json!({
        "user_bytes": user_bytes,
        "journal_bytes": stats.writes.log_bytes,
        "part_bytes": stats.background.part_bytes,
        "amplification": factor(stats.writes.log_bytes + stats.background.part_bytes),
        "amplification_of_parts": factor(stats.background.part_bytes),
    })
}

/// A directory of its own under the system's directory for temporary files.
fn fresh_dir(bench: &str) -> Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let temp: &Path = &std::env::temp_dir();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = temp.join(format!("folddb-bench-{bench}-{}-{number}", std::process::id()));
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("create", &dir, error).context("no place for the bench")),
        }
    }
}

/// The error for a bench that does not exist.
pub(crate) fn unknown(name: &str, names: &[&str]) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!("there is no bench `{name}`: choose one of {}", names.join(", ")),
    )
}
