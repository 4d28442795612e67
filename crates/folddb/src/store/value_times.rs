//! When the values of a segment were written. Files of values do not have these times; the pointers
//! to the values do.
//!
//! So this reads every key with a pointer, in runs and memory, but none of the values: meant for
//! occasional use. Records of hashed tables have no time unless their values expire or their past
//! is kept, and are left out.
//!
//! Called by users, through `Store`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use folddb_base::{Error, Record, Result, Rope, error};
use folddb_rules::time::moment;
use folddb_run::{Depth, Fault, Inspect, examine};

use crate::store::Store;
use folddb_engine::background::unflushed;

/// When the live values of a segment were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueTimes {
    /// The first of them.
    pub oldest: SystemTime,
    /// The last.
    pub youngest: SystemTime,
}

impl ValueTimes {
    /// The times of two segments together.
    #[must_use]
    pub fn and(self, other: ValueTimes) -> ValueTimes {
        ValueTimes { oldest: self.oldest.min(other.oldest), youngest: self.youngest.max(other.youngest) }
    }
}

impl Store {
    /// By segment, when the live values of sorted tables were written. For a value in several
    /// pieces the time of the newest counts for all. A segment without known times is left out.
    /// Reads every key with a separated value.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub fn value_times(&self) -> Result<BTreeMap<u64, ValueTimes>> {
        self.engine().check_here()?;
        let mut found = TimesOfValues::default();
        for table in self.engine().catalog().all() {
            for file in table.part_files().values().filter(|file| !file.part.facts().values.is_empty()) {
                examine(&file.part, Depth::Records, &mut found);
                if let Some(fault) = found.fault.take() {
                    return Err(error::corrupt(file.part.path(), fault.offset, fault.what));
                }
                if let Some(error) = found.unread.take() {
                    return Err(error);
                }
            }
        }
        unflushed::visit_unflushed(self.engine(), &mut |_, rope| found.note(rope));
        Ok(found.times)
    }
}

#[derive(Default)]
struct TimesOfValues {
    times: BTreeMap<u64, ValueTimes>,
    fault: Option<Fault>,
    unread: Option<Error>,
}

impl TimesOfValues {
    fn note(&mut self, rope: &Rope<'_>) {
        let written = moment(rope.time_ms);
        let now = ValueTimes { oldest: written, youngest: written };
        for pointer in rope.pointers() {
            let times = self.times.entry(u64::from(pointer.place.segment)).or_insert(now);
            *times = times.and(now);
        }
    }
}

impl Inspect for TimesOfValues {
    fn record(&mut self, _: u64, record: Record<'_>) {
        if let Some(Ok(rope)) = record.kind.is_separated().then(|| Rope::decode(record.payload)) {
            self.note(&rope);
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    fn unread(&mut self, error: Error) {
        self.unread.get_or_insert(error);
    }
}
