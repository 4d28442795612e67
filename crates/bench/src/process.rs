//! What the operating system says about this process, from `/proc`. Elsewhere the figures are
//! absent.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Clock ticks a second in `/proc/self/stat`: 100 on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// How often memory is examined.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);

/// CPU seconds that the process has used, in user and system mode together.
pub fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the name in parentheses, which may hold blanks; utime and stime are the
    // 14th and 15th.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_S)
}

/// Bytes that were read from disks for the process.
pub fn read_bytes() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
}

/// A field of `/proc/self/status` that is given in kB, in bytes.
fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The most memory that the process has had since the watch began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peaks {
    /// All resident pages (`VmHWM`), mapped files among them.
    pub resident_bytes: Option<u64>,
    /// Anonymous pages: the memory that the process really needs. Sampled.
    pub anonymous_bytes: Option<u64>,
}

/// Watches the memory of the process until it is dropped.
pub struct MemoryWatch {
    stop: Arc<AtomicBool>,
    anonymous: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryWatch {
    /// Begins to watch, and resets earlier peaks as far as the system allows it.
    pub fn start() -> MemoryWatch {
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let (stop, anonymous) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stop_seen, peak) = (Arc::clone(&stop), Arc::clone(&anonymous));
        let watch = move || {
            while !stop_seen.load(Ordering::Relaxed) {
                let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
                peak.fetch_max(status_bytes(&status, "RssAnon").unwrap_or(0), Ordering::Relaxed);
                std::thread::park_timeout(SAMPLE_EVERY);
            }
        };
        let thread = std::thread::Builder::new().name("bench-memory".to_owned()).spawn(watch).ok();
        MemoryWatch { stop, anonymous, thread }
    }

    /// The peaks up to now.
    pub fn peaks(&self) -> Peaks {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let now = status_bytes(&status, "RssAnon");
        let sampled = self.anonymous.load(Ordering::Relaxed);
        Peaks {
            resident_bytes: status_bytes(&status, "VmHWM"),
            anonymous_bytes: now.map(|now| now.max(sampled)),
        }
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join(); // it only watches
        }
    }
}

/// Bytes that the files of a directory take on the disk. Preallocated files count with their
/// allocated blocks.
pub fn allocated_bytes(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| allocated(&file)).sum()
}

#[cfg(unix)]
fn allocated(file: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(file) * 512
}

#[cfg(not(unix))]
fn allocated(file: &std::fs::Metadata) -> u64 {
    file.len()
}
