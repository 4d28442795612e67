//! `folddb values STORE`: a picture of the value lane, segment by segment.

use folddb::{Datum, ValueSegment};
use serde_json::{Value, json};

use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::human;
use crate::render::table;
use crate::session::Session;

/// Characters of the bar that shows how much of a segment is alive.
const BAR_CHARS: u64 = 20;

pub(crate) fn run(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let segments = store.value_segments();
    let report = json!({ "segments": segments.iter().map(as_json).collect::<Value>() });
    session.report(&report, |out| {
        if segments.is_empty() {
            return writeln!(out, "no value lies apart");
        }
        let header = ["segment", "state", "bytes", "values", "live", "dead", ""];
        table::write(out, &header.map(str::to_owned), &segments.iter().map(row).collect::<Vec<_>>())?;
        let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let live: u64 = segments.iter().map(|segment| segment.live_bytes).sum();
        let of = human::plural(segments.len() as u64, "segment");
        writeln!(out, "({of}, {}, {} live)", human::bytes(bytes), human::bytes(live))
    })
}

fn as_json(segment: &ValueSegment) -> Value {
    json!({
        "number": segment.number,
        "sealed": segment.is_sealed,
        "in_files": segment.in_files,
        "bytes": segment.bytes,
        "live_values": segment.live_values,
        "live_bytes": segment.live_bytes,
        "segments": segment.segments,
    })
}

/// What a file of the lane is.
fn state(segment: &ValueSegment) -> String {
    match (segment.segments.as_slice(), segment.is_sealed) {
        (_, true) if segment.in_files => "sealed, files".to_owned(),
        (_, false) if segment.in_files => "open, files".to_owned(),
        ([number], true) if *number == segment.number => "sealed".to_owned(),
        (_, false) => "open".to_owned(),
        (segments, true) => format!("moved, of {}", segments.len()),
    }
}

fn row(segment: &ValueSegment) -> Vec<Datum> {
    let text = |text: String| Datum::Text(text);
    let dead = segment.bytes.saturating_sub(segment.live_bytes);
    let full =
        (segment.live_bytes * BAR_CHARS).checked_div(segment.bytes).unwrap_or(0).min(BAR_CHARS) as usize;
    let bar = "█".repeat(full) + &"·".repeat(BAR_CHARS as usize - full);
    vec![
        Datum::Int(segment.number.into()),
        text(state(segment)),
        text(human::bytes(segment.bytes)),
        Datum::Int(segment.live_values.into()),
        text(human::bytes(segment.live_bytes)),
        text(if segment.is_sealed { human::bytes(dead) } else { String::new() }),
        text(bar),
    ]
}
