//! Finds threads that wait forever: each thread notes at its [`Desk`] what it begins, and a
//! watchman checks whether it makes progress.
//!
//! A deadlocked thread cannot be joined, so the watchman prints what every thread was doing and
//! ends the process.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A thread without a step for this long is considered hung. Long, since machines are slow and it
/// may wait for much work.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Where a thread says what it does.
#[derive(Debug)]
pub struct Desk {
    name: String,
    steps: AtomicU64,
    doing: Mutex<&'static str>,
    ended: AtomicBool,
}

impl Desk {
    /// The desk of a thread of this name.
    pub fn new(name: impl Into<String>) -> Desk {
        Desk {
            name: name.into(),
            steps: AtomicU64::new(0),
            doing: Mutex::new("nothing yet"),
            ended: AtomicBool::new(false),
        }
    }

    /// The thread begins something.
    pub fn begin(&self, what: &'static str) {
        *self.doing.lock() = what;
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// The thread has ended, and is not waited for.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// How many things it has begun.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Looks at the desks now and then.
#[derive(Debug)]
pub struct Watchman {
    /// The steps of each desk, and since when it has had this number.
    seen: Vec<(u64, Instant)>,
}

impl Watchman {
    /// A watchman whose watch begins now.
    pub fn new(desks: &[Desk], now: Instant) -> Watchman {
        Watchman { seen: desks.iter().map(|desk| (desk.steps(), now)).collect() }
    }

    /// What all threads are doing, if one has hung for longer than `patience`.
    pub fn look(&mut self, desks: &[Desk], now: Instant, patience: Duration) -> Option<String> {
        let mut hangs = false;
        for (desk, seen) in desks.iter().zip(&mut self.seen) {
            if seen.0 != desk.steps() || desk.ended.load(Ordering::Relaxed) {
                *seen = (desk.steps(), now);
            }
            hangs |= now.duration_since(seen.1) > patience;
        }
        hangs.then(|| self.dump(desks, now))
    }

    fn dump(&self, desks: &[Desk], now: Instant) -> String {
        let mut text = String::from("a thread hangs; what each is about, and for how long:\n");
        for (desk, seen) in desks.iter().zip(&self.seen) {
            let ended = if desk.ended.load(Ordering::Relaxed) { ", ended" } else { "" };
            let (doing, since_s) = (*desk.doing.lock(), now.duration_since(seen.1).as_secs());
            let _ = writeln!(text, "{:>14}  {doing}, {since_s} s, {} steps{ended}", desk.name, desk.steps());
        }
        text
    }

    /// Watches until `done`. Ends the process when a thread hangs.
    pub fn guard(mut self, desks: &[Desk], done: &AtomicBool) {
        while !done.load(Ordering::Acquire) {
            if let Some(dump) = self.look(desks, Instant::now(), PATIENCE) {
                eprintln!("{dump}{}", system_threads());
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Facts of the system about the threads of this process, if available: name, state, where it
/// waits.
fn system_threads() -> String {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return String::new() };
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let line = |task: std::fs::DirEntry| {
        let state = read(task.path().join("stat"));
        let state = state.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?');
        format!("{:>20}  {state}  {}\n", read(task.path().join("comm")), read(task.path().join("wchan")))
    };
    tasks.flatten().map(line).collect()
}

#[cfg(test)]
#[path = "watch/tests.rs"]
mod tests;
