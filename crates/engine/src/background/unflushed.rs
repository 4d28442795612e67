//! Which values of the value log memtables point to: those that were put and are not in runs yet.
//!
//! Reclaim does not use this, since it leaves segments alone that memtables may point to. Reports
//! on the value log do, or values that were just put would appear dead. Called by `stats` and
//! `Store::value_times`.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::stream::RecordSink;
use folddb_base::{Record, Result, Rope, Seq};
use folddb_layout::values::record_bytes;
use folddb_memtable::Memtable;
use folddb_merge::{BottomRule, Budget, FoldStep, StepRules};

use super::ranges::step_ranges;
use crate::background::live_values::Alive;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::view::TableView;

/// Passes each record that points to values to a visitor.
struct Leading<'v>(&'v mut dyn FnMut(&Record<'_>, &Rope<'_>));

impl RecordSink for Leading<'_> {
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        if record.kind.is_separated()
            && let Ok(rope) = Rope::decode(record.payload)
        {
            self.0(&record, &rope);
        }
        Ok(())
    }
}

/// Adds to `alive` what runs would point to if all of memory were flushed now. A key in two
/// memtables counts twice, like one in two runs.
pub fn add_unflushed(engine: &Engine, alive: &mut BTreeMap<u32, Alive>) {
    visit_unflushed(engine, &mut |record, rope| {
        for pointer in rope.pointers() {
            let one = alive.entry(pointer.place.segment).or_default();
            one.values += 1;
            one.bytes += record_bytes(record.key.len(), pointer.len);
        }
    });
}

/// Passes the records that flushes would write now, and whose values are in the value log, to
/// `visit`. Reads none of the values. Records that a table could not flush are left out: the flush
/// itself reports why.
pub fn visit_unflushed(engine: &Engine, visit: &mut dyn FnMut(&Record<'_>, &Rope<'_>)) {
    for table in engine.catalog().all().filter(|table| table.hashed.is_none()) {
        let view = table.view();
        let sealed = view.sealed.iter().map(|sealed| &sealed.memtable);
        for memtable in std::iter::once(&view.active).chain(sealed) {
            if !memtable.is_empty() {
                let _left_out = visit_memtable(engine, table, &view, memtable, visit);
            }
        }
    }
}

fn visit_memtable(
    engine: &Engine,
    table: &TableCore,
    view: &Arc<TableView>,
    memtable: &Memtable,
    visit: &mut dyn FnMut(&Record<'_>, &Rope<'_>),
) -> Result<()> {
    let rules = StepRules {
        order: table.rules.order.clone(),
        fold: table.rules.fold.clone(),
        boundaries: engine.boundaries.all(),
        range_deletes: step_ranges(view, Seq::MAX),
        bottom: BottomRule::Never,
    };
    let mut step = FoldStep::new(memtable.stream(), rules).with_times(clock::times_to_keep(engine, table));
    step.step(Budget::UNBOUNDED, &mut Leading(visit)).map(drop)
}
