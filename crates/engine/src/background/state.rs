//! What background work keeps between two steps: an open store with the merges and the reclaiming
//! under way in it.

use std::sync::Arc;

use folddb_host::sync::Mutex;

use crate::background::merges::Merges;
use crate::background::reclaiming::Reclaiming;
use crate::state::engine::Engine;

/// The merges and the reclaiming of a store that are under way, planned, or given up.
pub struct Background {
    pub engine: Arc<Engine>,
    pub merges: Mutex<Merges>,
    /// Held while a step is taken, and before the manifest's lock.
    pub reclaiming: Mutex<Reclaiming>,
}

impl Background {
    /// Of a store in which nothing is under way yet.
    pub fn new(engine: Arc<Engine>) -> Background {
        Background { engine, merges: Mutex::default(), reclaiming: Mutex::default() }
    }
}
