//! What works behind the writers: a thread that flushes memtables, and two that compact. Writers
//! wait for them here when they are too far ahead.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use lsm_tree::compaction::{CompactionAction, Leveled};
use lsm_tree::{AbstractTree, AnyTree, SeqNo, SequenceNumberGenerator};

use super::log::{Log, Numbers, Record, Segment, locked};
use crate::rival::Durability;

/// Threads that compact.
const COMPACTIONS: usize = 2;
/// Memtables that wait to be flushed, or are flushed, while writers go on.
const SEALED_MAX: usize = 2;
/// Runs of level 0 with which writers wait: as many as RocksDB allows.
const RUNS_MAX: usize = 36;

/// What the threads have to do, and what they do.
#[derive(Default)]
struct Work {
    is_flush_due: bool,
    is_flushing: bool,
    /// Counts what may have made a compaction due.
    changes: u64,
    /// The changes that each thread has looked at.
    looked_at: [u64; COMPACTIONS],
    compacting: usize,
    has_ended: bool,
    failure: Option<String>,
}

struct Shared {
    tree: AnyTree,
    log: Log,
    numbers: Arc<Numbers>,
    levels: Arc<Leveled>,
    memtable_bytes: u64,
    /// Below it, every number is of a commit that is done.
    visible: AtomicU64,
    /// Held for reading while a snapshot is taken and an iterator opened on it.
    snapshots: RwLock<()>,
    work: Mutex<Work>,
    changed: Condvar,
}

pub(super) struct Background {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Background {
    pub(super) fn start(
        tree: AnyTree,
        numbers: Arc<Numbers>,
        levels: Leveled,
        memtable_bytes: u64,
        log_dir: &Path,
        durability: Durability,
    ) -> Result<Background> {
        let log = Log::open(log_dir, durability, &tree, &numbers, memtable_bytes)?;
        let visible = AtomicU64::new(numbers.get());
        let shared = Arc::new(Shared {
            tree,
            log,
            numbers,
            levels: Arc::new(levels),
            memtable_bytes,
            visible,
            snapshots: RwLock::new(()),
            work: Mutex::new(Work { changes: 1, ..Work::default() }),
            changed: Condvar::new(),
        });
        let flushing = Arc::clone(&shared);
        let mut threads = vec![std::thread::spawn(move || flushing.flush_until_ended())];
        threads.extend((0..COMPACTIONS).map(|index| {
            let compacting = Arc::clone(&shared);
            std::thread::spawn(move || compacting.compact_until_ended(index))
        }));
        Ok(Background { shared, threads })
    }

    pub(super) fn tree(&self) -> &AnyTree {
        &self.shared.tree
    }

    /// Commits the writes of a record, and empties it.
    pub(super) fn commit(&self, record: &mut Record) -> Result<()> {
        let shared = &self.shared;
        let mut segment = shared.log.lock();
        let first = shared.numbers.take(record.writes());
        let place = shared.log.append(&mut segment, record, first)?;
        if record.apply(&shared.tree, first) >= shared.memtable_bytes {
            shared.seal(&mut segment)?;
        }
        drop(segment);
        shared.log.promise(place)?;
        shared.visible.fetch_max(first + record.writes(), Ordering::AcqRel);
        record.clear();
        Ok(())
    }

    /// Opens something on a snapshot of what is committed. No flush and no compaction takes away
    /// what it sees meanwhile; what is open keeps its files.
    pub(super) fn at_a_snapshot<T>(&self, open: impl FnOnce(SeqNo) -> T) -> T {
        let _kept = self.shared.snapshots.read().unwrap_or_else(PoisonError::into_inner);
        open(self.shared.visible.load(Ordering::Acquire))
    }

    /// Returns when all is flushed and no compaction is due.
    pub(super) fn settle(&self) -> Result<()> {
        let shared = &self.shared;
        if shared.tree.active_memtable().size() > 0 {
            shared.seal(&mut shared.log.lock())?;
        }
        shared.wait_until(|work| {
            let is_flushed = !work.is_flush_due && !work.is_flushing;
            is_flushed && work.compacting == 0 && work.looked_at == [work.changes; COMPACTIONS]
        })
    }

    pub(super) fn compact_all(&self) -> Result<()> {
        self.settle()?;
        self.shared.tree.major_compact(64 << 20, self.shared.watermark())?;
        Ok(())
    }

    /// Ends the threads. What is not flushed stays in the log.
    pub(super) fn close(mut self) -> Result<AnyTree> {
        self.end();
        self.shared.log.sync()?;
        checked(&locked(&self.shared.work))?;
        Ok(self.shared.tree.clone())
    }

    fn end(&mut self) {
        locked(&self.shared.work).has_ended = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                locked(&self.shared.work).failure = Some("a thread in the background panicked".to_owned());
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}

/// An error of the background, for those in front.
fn checked(work: &Work) -> Result<()> {
    match &work.failure {
        Some(failure) => Err(anyhow!("{failure}")),
        None => Ok(()),
    }
}

impl Shared {
    /// Seals the memtable when there is room for another, and has it flushed.
    fn seal(&self, segment: &mut Segment) -> Result<()> {
        self.wait_until(|_| {
            self.tree.sealed_memtable_count() < SEALED_MAX && self.tree.l0_run_count() < RUNS_MAX
        })?;
        self.log.rotate(segment, &self.tree)?;
        locked(&self.work).is_flush_due = true;
        self.changed.notify_all();
        Ok(())
    }

    fn wait_until(&self, holds: impl Fn(&Work) -> bool) -> Result<()> {
        let mut work = locked(&self.work);
        loop {
            checked(&work)?;
            if holds(&work) {
                return Ok(());
            }
            work = self.waited(work);
        }
    }

    fn waited<'a>(&self, work: MutexGuard<'a, Work>) -> MutexGuard<'a, Work> {
        self.changed.wait(work).unwrap_or_else(PoisonError::into_inner)
    }

    /// The number below which only the newest version of a key is needed.
    fn watermark(&self) -> SeqNo {
        let _opened = self.snapshots.write().unwrap_or_else(PoisonError::into_inner);
        self.visible.load(Ordering::Acquire)
    }

    /// Notes what a thread has done, for those who wait.
    fn note(&self, done: Result<()>, change: impl FnOnce(&mut Work)) {
        let mut work = locked(&self.work);
        if let Err(error) = done {
            work.failure.get_or_insert(format!("{error:#}"));
        }
        change(&mut work);
        self.changed.notify_all();
    }

    fn flush_until_ended(&self) {
        loop {
            let mut work = locked(&self.work);
            while !work.is_flush_due && !work.has_ended {
                work = self.waited(work);
            }
            if work.has_ended {
                return;
            }
            (work.is_flush_due, work.is_flushing) = (false, true);
            drop(work);
            let done = self.flush();
            self.note(done, |work| {
                work.is_flushing = false;
                work.changes += 1;
            });
        }
    }

    fn flush(&self) -> Result<()> {
        let active = self.log.active();
        self.tree.flush(&self.tree.get_flush_lock(), self.watermark()).context("flush")?;
        self.log.remove_below(active)
    }

    fn compact_until_ended(&self, index: usize) {
        loop {
            let mut work = locked(&self.work);
            while work.looked_at[index] == work.changes && !work.has_ended {
                work = self.waited(work);
            }
            if work.has_ended {
                return;
            }
            work.looked_at[index] = work.changes;
            work.compacting += 1;
            drop(work);
            let done = self.tree.compact(self.levels.clone(), self.watermark()).context("compact");
            let has_changed = done.as_ref().is_ok_and(|done| done.action != CompactionAction::Nothing);
            self.note(done.map(drop), |work| {
                work.compacting -= 1;
                work.changes += u64::from(has_changed);
            });
        }
    }
}
