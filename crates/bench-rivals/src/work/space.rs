//! Watches the disk space during the work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::files;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What the store takes on the disk, second by second.
pub(super) fn watch_space(dir: &std::path::Path, stop: &AtomicBool) -> Result<Vec<u64>> {
    let mut bytes = Vec::new();
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        if Instant::now() >= due {
            bytes.push(files::allocated_bytes(dir).unwrap_or(0)); // files go while they are counted
            due += LOOK_EVERY;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(bytes)
}
