//! Events of a store, reported to a function of C.

use std::ffi::{CString, c_char, c_void};

use folddb::Event;

use crate::callbacks::Context;
use crate::errors::{Kind, kind_of};

/// What has happened.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A memtable has become a run.
    Flush = 0,
    /// Some runs of a table have become one.
    Merge = 1,
    /// Live values were copied together, and the files that they were in are gone.
    Reclaim = 2,
    /// A writer had to wait for memory, and continues.
    StallMemory = 3,
    /// A writer had to wait for range deletes, and continues.
    StallRangeDeletes = 4,
    /// A write or a sync failed: the store writes no more until it is opened again.
    Poison = 5,
    /// The function was slower than the store, which has forgotten some events.
    Missed = 6,
    /// Something that this version of the header has no name for.
    Other = 7,
}

/// An event in figures. Fields that it does not have are 0 or NULL.
#[repr(C)]
pub struct StoreEvent {
    /// What has happened.
    pub kind: EventKind,
    /// The table of a flush or a merge.
    pub table: *const c_char,
    /// The plan of a merge, and what failed where the store is poisoned.
    pub text: *const c_char,
    /// The kind of failure that has poisoned the store.
    pub error_kind: Kind,
    /// Runs that were merged, segments that were reclaimed, events that were missed.
    pub count: u64,
    /// Records that a merge has read.
    pub records_in: u64,
    /// Records that a flush or a merge has written.
    pub records_out: u64,
    /// Bytes that a merge has read, and that a reclaim has copied.
    pub bytes_in: u64,
    /// Bytes that a flush has freed in memory, or a reclaim in files.
    pub bytes_freed: u64,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// Is called with an event. The event, and the texts in it, are valid during the call.
///
/// A thread of the store calls it, with one event at a time and no lock held: it may read and write
/// the store, but not close it. Merges wait while it runs. A C++ exception must not leave it.
pub type EventFunction = Option<extern "C" fn(context: *mut c_void, event: *const StoreEvent)>;

/// Calls the function with an event.
pub(crate) fn notify(
    function: extern "C" fn(*mut c_void, *const StoreEvent),
    context: &Context,
    event: &Event,
) {
    let (table, text) = texts(event);
    let (table, text) = (table.map(of_c), text.map(of_c));
    let begin = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
    let event = StoreEvent { table: begin(&table), text: begin(&text), ..figures(event) };
    function(context.pointer(), &raw const event);
}

fn of_c(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

fn texts(event: &Event) -> (Option<&str>, Option<&str>) {
    match event {
        Event::Flush(flush) => (Some(&flush.table), None),
        Event::Merge(merge) => (Some(&merge.table), Some(&merge.plan)),
        Event::Poison(poison) => (None, Some(&poison.message)),
        _ => (None, None),
    }
}

fn figures(event: &Event) -> StoreEvent {
    let micros = |took: std::time::Duration| u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let nothing = StoreEvent {
        kind: EventKind::Other,
        table: std::ptr::null(),
        text: std::ptr::null(),
        error_kind: Kind::Ok,
        count: 0,
        records_in: 0,
        records_out: 0,
        bytes_in: 0,
        bytes_freed: 0,
        took_us: 0,
    };
    match event {
        Event::Flush(flush) => StoreEvent {
            kind: EventKind::Flush,
            records_out: flush.records,
            bytes_freed: flush.memory_bytes,
            took_us: micros(flush.took),
            ..nothing
        },
        Event::Merge(merge) => StoreEvent {
            kind: EventKind::Merge,
            count: merge.runs as u64,
            records_in: merge.records_in,
            records_out: merge.records_out,
            bytes_in: merge.bytes_in,
            took_us: micros(merge.took),
            ..nothing
        },
        Event::Reclaim(reclaim) => StoreEvent {
            kind: EventKind::Reclaim,
            count: reclaim.segments as u64,
            bytes_in: reclaim.bytes_copied,
            bytes_freed: reclaim.bytes_freed,
            took_us: micros(reclaim.took),
            ..nothing
        },
        Event::Stall(stall) => StoreEvent {
            kind: match stall.cause {
                folddb::StallCause::RangeDeletes => EventKind::StallRangeDeletes,
                _ => EventKind::StallMemory,
            },
            took_us: micros(stall.took),
            ..nothing
        },
        Event::Poison(poison) => {
            StoreEvent { kind: EventKind::Poison, error_kind: kind_of(poison.kind), ..nothing }
        }
        Event::Missed(missed) => StoreEvent { kind: EventKind::Missed, count: missed.events, ..nothing },
        _ => nothing,
    }
}
