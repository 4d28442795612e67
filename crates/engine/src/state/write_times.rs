//! When records were written, as far as known, and the newest time that was used.

use folddb_base::Seq;
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_manifest::{State, Times};

/// The clock and the map of a store.
#[derive(Debug, Default)]
pub struct StoreTimes {
    /// The newest time that was used.
    pub newest_ms: AtomicU64,
    /// All known times, durable or not.
    pub map: Mutex<Times>,
}

impl StoreTimes {
    /// Those in the manifest.
    pub fn of(state: &State) -> StoreTimes {
        let newest_ms = AtomicU64::new(state.times.newest_ms());
        StoreTimes { newest_ms, map: Mutex::new(Times::clone(&state.times)) }
    }

    /// Notes that a batch from `seq` on was written at this time.
    pub fn note(&self, seq: Seq, time_ms: u64) {
        self.newest_ms.fetch_max(time_ms, Ordering::AcqRel);
        self.map.lock().note(seq, time_ms);
    }
}
