//! `leveled`: objects of some kilobytes that are read five times as often as they are replaced, by
//! several threads, hot objects more often than others: the benchmark that Riak's leveled was built
//! for. With `--heads` a put asks for the head of its object first, as Riak does to know what it
//! replaces. Space is watched during the work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, anyhow};
use folddb_bench::generate::{Chance, Pareto};
use folddb_bench::measure::{Latencies, Phase, per_second, round};
use serde_json::{Value, json};

use super::child::Child;
use super::heads::heads_beside_gets;
use super::job::Job;
use super::load::load;
use super::objects::{Puts, Shelf, Versions};
use super::space::watch_space;
use crate::rival::{Meaning, Op, Rival, Sight};

const KEY_BYTES: usize = 8;

/// One op in this many is a put.
const PUT_EVERY: u64 = 6;

pub(super) fn run(child: &mut Child<'_>) -> Result<()> {
    let job = child.job;
    let (keys, size) = (job.key_count(), job.value_bytes as usize);
    child.put("keys", keys);
    child.put("value_bytes", job.value_bytes);
    let shelf = Shelf::new(job.seed, KEY_BYTES, size, size);
    child.open(Meaning::Objects)?;
    let mut puts = Puts::new(&shelf, keys);
    let filled = load(&mut *child.store()?.writer()?, &mut puts, keys, job.batch)?;
    child.put("fill", filled.phase);
    child.store()?.settle()?;
    let (figures, versions) = serve(child, &shelf, keys)?;
    child.put("serve", figures);
    let replaced: u64 = versions.last.iter().sum();
    child.settle(puts.bytes + replaced * (KEY_BYTES + size) as u64)?;
    child.put_space(versions.live_bytes())?;
    heads_beside_gets(child, &versions)?;
    let found = versions.found(child.store()?)?;
    child.check(found, versions.sum());
    Ok(())
}

/// Runs all ops; returns the figures and the final versions.
fn serve<'a>(child: &mut Child<'_>, shelf: &'a Shelf, keys: u64) -> Result<(Value, Versions<'a>)> {
    let (job, store, dir) = (child.job, child.store()?, child.setup.dir.clone());
    let threads = job.threads.max(1).min(keys);
    let last: Vec<AtomicU64> = (0..keys).map(|_| AtomicU64::new(0)).collect();
    let (stop, phase, started) = (AtomicBool::new(false), Phase::start(job.rows), Instant::now());
    let (served, took, space) = std::thread::scope(|scope| -> Result<_> {
        let space = scope.spawn(|| watch_space(&dir, &stop));
        let at_work: Vec<_> = (0..threads)
            .map(|thread| {
                let clerk = Clerk { store, shelf, last: &last, job, thread, threads };
                scope.spawn(move || clerk.serve())
            })
            .collect();
        let mut all = Served::none();
        let ended: Vec<_> = at_work.into_iter().map(|clerk| clerk.join()).collect();
        let took = started.elapsed();
        stop.store(true, Ordering::Relaxed);
        for served in ended {
            all.absorb(served.map_err(|_| anyhow!("a thread panicked"))??);
        }
        Ok((all, took, space.join().map_err(|_| anyhow!("the watch panicked"))??))
    })?;
    child.judge(served.right);
    let mut figures = phase.end();
    figures["seconds"] = json!(round(took.as_secs_f64(), 3));
    figures["rows_per_s"] = json!(per_second(served.ops, took));
    figures["gets"] = served.gets.to_json();
    figures["puts"] = served.puts.to_json();
    if job.heads {
        figures["heads"] = served.heads.to_json();
    }
    figures["disk_bytes_by_second"] = json!(space);
    let last = last.into_iter().map(AtomicU64::into_inner).collect();
    Ok((figures, Versions { shelf, last }))
}

/// The results of a thread.
struct Served {
    ops: u64,
    gets: Latencies,
    puts: Latencies,
    /// Heads that puts ask for first. Their time is in `puts`, too.
    heads: Latencies,
    right: bool,
}

impl Served {
    fn none() -> Served {
        Served {
            ops: 0,
            gets: Latencies::new(),
            puts: Latencies::new(),
            heads: Latencies::new(),
            right: true,
        }
    }

    fn absorb(&mut self, other: Served) {
        self.right &= other.right;
        self.ops += other.ops;
        self.gets.absorb(&other.gets);
        self.puts.absorb(&other.puts);
        self.heads.absorb(&other.heads);
    }
}

/// A thread. It puts its own objects, and gets all objects.
struct Clerk<'a> {
    store: &'a dyn Rival,
    shelf: &'a Shelf,
    /// For each object, the last version that is certainly in the store.
    last: &'a [AtomicU64],
    job: &'a Job,
    thread: u64,
    threads: u64,
}

impl Clerk<'_> {
    fn serve(&self) -> Result<Served> {
        let (mut reader, mut writer) = (self.store.reader(Sight::Fresh)?, self.store.writer()?);
        let keys = self.last.len() as u64;
        let (pareto, mut chance) = (Pareto::new(keys), Chance::new(self.job.seed ^ (self.thread + 1) << 32));
        let mut served = Served::none();
        let mut value = Vec::new();
        for _ in (self.thread..self.job.rows).step_by(self.threads as usize) {
            let index = pareto.number(&mut chance);
            if chance.below(PUT_EVERY) == 0 {
                let own = index - index % self.threads + self.thread;
                let own = if own < keys { own } else { self.thread };
                let version = self.last[own as usize].load(Ordering::Relaxed) + 1;
                self.shelf.objects.fill(self.shelf.number(own), version, &mut value);
                let id = self.shelf.id(own);
                let before = Instant::now();
                if self.job.heads {
                    served.right &= reader.size_bytes(id.bytes())? == Some(value.len() as u64);
                    served.heads.note(before.elapsed());
                }
                writer.apply(Op::Put { key: id.bytes(), value: &value })?;
                served.puts.note(before.elapsed());
                self.last[own as usize].store(version, Ordering::Release);
            } else {
                let (id, at) = (self.shelf.id(index), &self.last[index as usize]);
                let (oldest, mut found) = (at.load(Ordering::Acquire), None);
                let before = Instant::now();
                reader.get(id.bytes(), &mut |value| {
                    found = value.and_then(|value| self.shelf.objects.read(value))
                })?;
                served.gets.note(before.elapsed());
                // The put of the next version may have been done but not yet noted.
                let newest = at.load(Ordering::Acquire) + 1;
                let number = self.shelf.number(index);
                served.right &=
                    found.is_some_and(|(of, version)| of == number && (oldest..=newest).contains(&version));
            }
            served.ops += 1;
        }
        Ok(served)
    }
}
