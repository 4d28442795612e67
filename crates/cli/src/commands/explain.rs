//! `folddb explain STORE TABLE KEY...`: every record of a key, newest first, where it is and why it
//! still exists.

use folddb::{BytesTable, Datum, Explained, RecordOp, RecordValue};

use crate::args::KeyArgs;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::json::{self, Json, object};
use crate::render::sheet;
use crate::session::Session;

pub(crate) fn run(args: &KeyArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let key = keys::key(&table, &args.key, args.hex)?;
    let records = table.explain(&key)?;
    if records.is_empty() {
        let shown = args.key.join(" ");
        return Err(Failure::Absent(format!("table `{}` has no record of {shown}", table.name())));
    }
    let report = records.iter().map(|record| {
        object! {
            "seq": record.seq,
            "op": record.op.name(),
            "value": json::from_datum(&value_of(&table, &record.op)),
            "place": record.place.to_string(),
            "written": record.written.map(human::rfc3339),
            "deadline": record.deadline.map(human::rfc3339),
            "why": record.why.as_str(),
        }
    });
    let report = Json(Datum::List(report.map(|record| record.0).collect()));
    session.report(&report, |out| {
        records.iter().try_for_each(|record| {
            let op = record.op.name();
            let value = sheet::cell(&value_of(&table, &record.op), false);
            writeln!(out, "{}", format!("{:>10}  {op:13}  {value}", record.seq).trim_end())?;
            writeln!(out, "{:10}  in {}{}: {}", "", record.place, times_of(record), record.why)
        })
    })
}

/// When a record was written, and the deadline of its value.
fn times_of(record: &Explained) -> String {
    let written = record.written.map(|at| format!(", written {}", human::time(at)));
    let until = record.deadline.map(|at| format!(", until {}", human::time(at)));
    written.unwrap_or_default() + &until.unwrap_or_default()
}

/// The value of a record; both, if it has two.
fn value_of(table: &BytesTable, op: &RecordOp) -> Datum {
    let show = |value: &[u8]| keys::shown_value(table.rules(), value);
    match op {
        RecordOp::Put(value) | RecordOp::PutIfAbsent(value) | RecordOp::Fold(value) => match value {
            RecordValue::Inline(value) => show(value),
            separated => where_separated(separated),
        },
        RecordOp::PutIfAbsentFold { absent, present } => {
            Datum::Map(vec![("absent".to_owned(), show(absent)), ("present".to_owned(), show(present))])
        }
        RecordOp::Unreadable(bytes) => Datum::Bytes(bytes.clone()),
        _ => Datum::Null,
    }
}

/// Where a separated value is.
fn where_separated(value: &RecordValue) -> Datum {
    let RecordValue::Separated { bytes, pieces, segments, offset } = value else { return Datum::Null };
    let number = |number: u64| Datum::Int(i128::from(number));
    let mut segments = segments.iter().map(|segment| number(u64::from(*segment)));
    let mut shown = vec![("separated_bytes".to_owned(), number(*bytes))];
    match offset {
        Some(offset) => shown.extend([
            ("segment".to_owned(), segments.next().unwrap_or(Datum::Null)),
            ("offset".to_owned(), number(*offset)),
        ]),
        None => shown.extend([
            ("pieces".to_owned(), number(u64::from(*pieces))),
            ("segments".to_owned(), Datum::List(segments.collect())),
        ]),
    }
    Datum::Map(shown)
}
