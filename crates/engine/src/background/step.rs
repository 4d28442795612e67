//! How much a step of background work takes in before it looks up.

use folddb_merge::Budget;

use crate::state::engine::Engine;

/// What a step of a flush or a merge takes in before it looks up: about 2 ms of work.
pub(crate) const STEP: Budget = Budget { records: 1 << 14, bytes: 4 << 20 };

/// What a step takes in: no more than a part is to hold, so that parts end where they should.
pub(crate) fn step_budget(engine: &Engine) -> Budget {
    Budget { bytes: STEP.bytes.min(engine.options.part_bytes), ..STEP }
}
