//! When the values of a segment were written. No file of values says so; the pointers that lead
//! there do.
//!
//! So this reads every key of every run and of memory that leads to values, and none of the values:
//! what a person asks for, not a program that runs all the time. Records of hashed tables have no
//! time unless their values expire or their past is kept, and are not asked.
//!
//! Called by users, by way of `Store`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use folddb_base::{Error, Record, Result, Rope};
use folddb_rules::time::moment;
use folddb_run::{Depth, Fault, Inspect, examine};

use crate::store::Store;
use folddb_engine::background::unflushed;

/// When values of a segment were written that something leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueTimes {
    /// The first of them.
    pub oldest: SystemTime,
    /// The last.
    pub youngest: SystemTime,
}

impl ValueTimes {
    /// Those of two segments together.
    pub fn and(self, other: ValueTimes) -> ValueTimes {
        ValueTimes { oldest: self.oldest.min(other.oldest), youngest: self.youngest.max(other.youngest) }
    }
}

impl Store {
    /// By segment, when the values were written that sorted tables lead to. Of a value in several
    /// pieces the time of the newest counts for all. A segment of which nothing is known is not
    /// there. Reads every key with a separated value.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub fn value_times(&self) -> Result<BTreeMap<u64, ValueTimes>> {
        let mut look = Look::default();
        for table in self.engine().catalog().all() {
            for file in table.part_files().values().filter(|file| !file.part.facts().values.is_empty()) {
                examine(&file.part, Depth::Records, &mut look);
                if let Some(fault) = look.fault.take() {
                    return Err(Error::corrupt(file.part.path(), fault.offset, fault.what));
                }
            }
        }
        unflushed::visit_unflushed(self.engine(), &mut |_, rope| look.note(rope));
        Ok(look.times)
    }
}

#[derive(Default)]
struct Look {
    times: BTreeMap<u64, ValueTimes>,
    fault: Option<Fault>,
}

impl Look {
    fn note(&mut self, rope: &Rope<'_>) {
        let written = moment(rope.time_ms);
        let now = ValueTimes { oldest: written, youngest: written };
        for pointer in rope.pointers() {
            let times = self.times.entry(u64::from(pointer.place.segment)).or_insert(now);
            *times = times.and(now);
        }
    }
}

impl Inspect for Look {
    fn record(&mut self, _: u64, record: Record<'_>) {
        if let Some(Ok(rope)) = record.kind.is_separated().then(|| Rope::decode(record.payload)) {
            self.note(&rope);
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}
