//! `folddb values STORE [--ages]`: a picture of the value log, segment by segment.

use std::collections::BTreeMap;
use std::time::SystemTime;

use folddb::{Datum, ValueSegment, ValueTimes};
use serde_json::{Value, json};

use crate::args::ValuesArgs;
use crate::failure::Failure;
use crate::human;
use crate::render::table;
use crate::session::Session;

/// Characters of the bar that shows how much of a segment is live.
const BAR_CHARS: u64 = 20;

pub(crate) fn run(args: &ValuesArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let segments = store.value_segments();
    let times = if args.ages { Some(store.value_times()?) } else { None };
    let times = times.as_ref();
    let report = json!({ "segments": segments.iter().map(|one| as_json(one, times)).collect::<Value>() });
    session.report(&report, |out| {
        if segments.is_empty() {
            return writeln!(out, "no value is separated");
        }
        let mut header =
            ["segment", "state", "bytes", "values", "live", "dead", ""].map(str::to_owned).to_vec();
        if times.is_some() {
            header.splice(6..6, ["oldest", "youngest"].map(str::to_owned));
        }
        let rows: Vec<_> = segments.iter().map(|segment| row(segment, times)).collect();
        table::write(out, &header, &rows)?;
        let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let live: u64 = segments.iter().map(|segment| segment.live_bytes).sum();
        let of = human::plural(segments.len() as u64, "segment");
        let (bytes, live) = (human::bytes(bytes), human::bytes(live));
        writeln!(out, "({of}, {bytes}, {live} live, or overwritten and not merged yet)")
    })
}

/// When the live values of a file were written, from those of its segments; none if no key has a
/// time.
fn times_of(segment: &ValueSegment, times: &BTreeMap<u64, ValueTimes>) -> Option<ValueTimes> {
    segment.segments.iter().filter_map(|number| times.get(number).copied()).reduce(ValueTimes::and)
}

fn as_json(segment: &ValueSegment, times: Option<&BTreeMap<u64, ValueTimes>>) -> Value {
    let mut report = json!({
        "number": segment.number,
        "sealed": segment.is_sealed,
        "in_files": segment.in_files,
        "bytes": segment.bytes,
        "live_values": segment.live_values,
        "live_bytes": segment.live_bytes,
        "segments": segment.segments,
    });
    if let (Some(times), Some(report)) = (times, report.as_object_mut()) {
        let times = times_of(segment, times);
        let mut put = |name: &str, at: Option<SystemTime>| {
            report.insert(name.to_owned(), json!(at.map(human::rfc3339)))
        };
        put("oldest", times.map(|times| times.oldest));
        put("youngest", times.map(|times| times.youngest));
    }
    report
}

/// The kind of a file of the value log.
fn state(segment: &ValueSegment) -> String {
    match (segment.segments.as_slice(), segment.is_sealed) {
        (_, true) if segment.in_files => "sealed, files".to_owned(),
        (_, false) if segment.in_files => "open, files".to_owned(),
        ([number], true) if *number == segment.number => "sealed".to_owned(),
        (_, false) => "open".to_owned(),
        (segments, true) => format!("relocated, of {}", segments.len()),
    }
}

fn row(segment: &ValueSegment, times: Option<&BTreeMap<u64, ValueTimes>>) -> Vec<Datum> {
    let text = |text: String| Datum::Text(text);
    let dead = segment.dead_bytes();
    let full =
        (segment.live_bytes * BAR_CHARS).checked_div(segment.bytes).unwrap_or(0).min(BAR_CHARS) as usize;
    let bar = "█".repeat(full) + &"·".repeat(BAR_CHARS as usize - full);
    let mut row = vec![
        Datum::Int(segment.number.into()),
        text(state(segment)),
        text(human::bytes(segment.bytes)),
        Datum::Int(segment.live_values.into()),
        text(human::bytes(segment.live_bytes)),
        text(if segment.is_sealed { human::bytes(dead) } else { String::new() }),
        text(bar),
    ];
    if let Some(times) = times {
        let times = times_of(segment, times);
        let shown = |at: Option<SystemTime>| text(at.map(human::time).unwrap_or_default());
        let (oldest, youngest) = (times.map(|one| one.oldest), times.map(|one| one.youngest));
        row.splice(6..6, [shown(oldest), shown(youngest)]);
    }
    row
}
