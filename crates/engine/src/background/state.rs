//! What background work keeps between two steps: an open store with its running merges and reclaim.

use std::sync::Arc;

use folddb_host::sync::Mutex;

use crate::background::merges::Merges;
use crate::background::reclaiming::Reclaiming;
use crate::state::engine::Engine;

/// The merges and the reclaim of a store: running, planned, or given up.
pub struct Background {
    pub engine: Arc<Engine>,
    pub merges: Mutex<Merges>,
    /// Held while a step is taken, and before the manifest's lock.
    pub reclaiming: Mutex<Reclaiming>,
}

impl Background {
    /// For a store in which nothing is running yet.
    pub fn new(engine: Arc<Engine>) -> Background {
        Background { engine, merges: Mutex::default(), reclaiming: Mutex::default() }
    }
}
