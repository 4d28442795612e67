//! The bytes of the value log in addition to the files that reclaim may copy from, and how far it
//! is over its bound.
//!
//! | | counts as | known from |
//! |---|---|---|
//! | fresh | live: segments that are being filled, and full ones that memory may point to | the manifest, the value log |
//! | spare | dead: space that segments have preallocated and not filled yet | the value log |
//! | hidden | dead: values that newer runs have replaced and no merge has met; values that a range delete covers | the sketches of runs, their leaves |
//!
//! While the value log is over its bound and work on it is possible, writers are slowed down:
//! [`note_value_log`], and the law in `folddb_merge::pace`. Used by `reclaim`; `background` plans
//! merges that uncover hidden values.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use folddb_base::FileNumber;
use folddb_host::sync::atomic::Ordering;
use folddb_manifest::State;
use folddb_merge::{MergeOptions, Moment, ReclaimOptions, ValueFile};
use folddb_rules::value_placement::ValuePlacement;

use crate::background::summaries::summaries;
use crate::background::{covered, expire};
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::values::segments;

/// Dead values that runs may always hide: half of the smallest segment.
const HIDDEN_BYTES_MIN: u64 = 512 << 10;

/// The part of the value log outside the files that reclaim may copy from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsettled {
    pub fresh_bytes: u64,
    pub spare_bytes: u64,
}

/// The options of a table's merges, with those for separated values.
pub(crate) fn with_hidden_values(engine: &Engine, table: &TableCore, options: MergeOptions) -> MergeOptions {
    match table.hides_values() {
        true => options.hiding_values(HIDDEN_BYTES_MIN.min(engine.options.values_segment_bytes() / 2)),
        false => options,
    }
}

/// About how many bytes of what parts point to are dead.
pub(crate) fn hidden_value_bytes(engine: &Engine) -> u64 {
    let moment = Moment { boundaries: engine.boundaries.all(), ..Moment::default() };
    let leading = engine.tables_leading(); // other tables hide none
    let in_value_log = |table: &&Arc<TableCore>| table.value_placement() == ValuePlacement::Segments;
    let hiding = leading.iter().filter(|table| table.hides_values()).filter(in_value_log);
    let of = |table: &Arc<TableCore>| {
        let mut runs = summaries(table, &HashSet::new());
        expire::count_outdated(engine, table, &mut runs);
        covered::count_covered(table, &mut runs);
        folddb_merge::hidden_value_bytes(&runs, &moment)
    };
    hiding.map(of).sum()
}

/// The bytes of the value log outside settled segments.
pub(crate) fn unsettled(engine: &Engine, state: &State) -> Unsettled {
    let filled: HashMap<FileNumber, u64> =
        engine.values.log.ends().iter().map(|segment| (segment.number, segment.end)).collect();
    let settled = engine.values.settled.lock();
    let mut unsettled = Unsettled::default();
    let is_secondary = |number: FileNumber| !settled.contains(&number) && !state.is_directory(number);
    for (&number, &end) in state.values.iter().filter(|(number, _)| is_secondary(**number)) {
        let len = segments::segment_bytes(engine, state, number);
        let fresh = end.or_else(|| filled.get(&number).copied()).unwrap_or(len).min(len);
        unsettled.fresh_bytes += fresh;
        unsettled.spare_bytes += len - fresh;
    }
    unsettled
}

/// Notes how far the value log is over its bound while work on it is possible; otherwise notes
/// zero.
pub fn note_value_log(engine: &Engine, files: &[ValueFile], options: &ReclaimOptions, is_worked_at: bool) {
    let (taken, alive) = options.value_log(files);
    let times = taken as f64 / (options.bound * alive.max(1) as f64);
    let thousandths = if is_worked_at { (times * 1000.0) as u64 } else { 0 };
    engine.debt.value_log_thousandths.store(thousandths, Ordering::Relaxed);
}
