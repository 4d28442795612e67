//! Events of a store, reported to a function of Python as dicts.

use std::time::Duration;

use folddb::{Event, StallCause};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::calls;

/// A listener that calls a function of Python. What this raises is reported as what nobody can
/// catch (`sys.unraisablehook`), and the store goes on.
pub(crate) fn listener(function: Py<PyAny>) -> impl Fn(&Event) + Send + Sync + 'static {
    move |event| {
        let tell = || {
            // There is no interpreter once it ends.
            Python::try_attach(|py| {
                let told = dict(py, event).and_then(|event| function.call1(py, (event,)));
                if let Err(raised) = told {
                    raised.write_unraisable(py, Some(function.bind(py)));
                }
            })
        };
        let _ = calls::called("a listener", tell);
    }
}

/// An event by the names that it has in Rust; times in seconds.
fn dict<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    let kind = match event {
        Event::Flush(_) => "flush",
        Event::Merge(_) => "merge",
        Event::Reclaim(_) => "reclaim",
        Event::Stall(_) => "stall",
        Event::Poison(_) => "poison",
        Event::Missed(_) => "missed",
        _ => "other",
    };
    told.set_item("kind", kind)?;
    match event {
        Event::Flush(flush) => {
            told.set_item("table", &flush.table)?;
            told.set_item("records", flush.records)?;
            told.set_item("memory_bytes", flush.memory_bytes)?;
        }
        Event::Merge(merge) => {
            told.set_item("table", &merge.table)?;
            told.set_item("plan", &merge.plan)?;
            told.set_item("runs", merge.runs)?;
            told.set_item("bytes_in", merge.bytes_in)?;
            told.set_item("records_in", merge.records_in)?;
            told.set_item("records_out", merge.records_out)?;
        }
        Event::Reclaim(reclaim) => {
            told.set_item("segments", reclaim.segments)?;
            told.set_item("bytes_copied", reclaim.bytes_copied)?;
            told.set_item("bytes_freed", reclaim.bytes_freed)?;
        }
        Event::Stall(stall) => told.set_item("cause", cause(stall.cause))?,
        Event::Poison(poison) => {
            told.set_item("error", format!("{:?}", poison.kind))?;
            told.set_item("message", &poison.message)?;
        }
        Event::Missed(missed) => told.set_item("events", missed.events)?,
        _ => {}
    }
    if let Some(took) = took(event) {
        told.set_item("took_s", took.as_secs_f64())?;
    }
    Ok(told)
}

fn cause(cause: StallCause) -> &'static str {
    match cause {
        StallCause::MemoryFull => "memory_full",
        StallCause::RangeDeletes => "range_deletes",
        _ => "other",
    }
}

fn took(event: &Event) -> Option<Duration> {
    match event {
        Event::Flush(flush) => Some(flush.took),
        Event::Merge(merge) => Some(merge.took),
        Event::Reclaim(reclaim) => Some(reclaim.took),
        Event::Stall(stall) => Some(stall.took),
        _ => None,
    }
}
