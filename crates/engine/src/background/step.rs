//! How much a step of background work processes.

use folddb_merge::Budget;

use crate::state::engine::Engine;

/// The budget of a step of a flush or a merge: about 2 ms of work.
pub(crate) const STEP: Budget = Budget { records: 1 << 14, bytes: 4 << 20 };

/// The budget of a step: at most the size of a part, so that parts end where they should.
pub(crate) fn step_budget(engine: &Engine) -> Budget {
    Budget { bytes: STEP.bytes.min(engine.options.part_bytes), ..STEP }
}
