//! `folddb explain STORE TABLE KEY...`: every record of a key, newest first, where it lies and why it is still there.

use std::collections::BTreeSet;

use folddb::{BytesTable, Datum, Explained, OpKind};
use folddb_base::{Op, Rope};

use crate::args::KeyArgs;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::json::{self, Json, object};
use crate::render::table;
use crate::session::Session;

pub(crate) fn run(args: &KeyArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let key = keys::key(&table, &args.key, args.hex)?;
    let records = table.explain(&key)?;
    if records.is_empty() {
        let shown = args.key.join(" ");
        return Err(Failure::NotFound(format!("table `{}` has no record of {shown}", table.name())));
    }
    let report = records.iter().map(|record| {
        object! {
            "seq": record.seq,
            "op": name_of(record.kind),
            "value": json::from_datum(&value_of(&table, record)),
            "place": record.place.to_string(),
            "written": record.written_ms.map(human::rfc3339),
            "deadline": record.deadline_ms.map(human::rfc3339),
            "why": record.why.as_str(),
        }
    });
    let report = Json(Datum::List(report.map(|record| record.0).collect()));
    session.report(&report, |out| {
        records.iter().try_for_each(|record| {
            let op = name_of(record.kind);
            let value = table::cell(&value_of(&table, record));
            writeln!(out, "{}", format!("{:>10}  {op:13}  {value}", record.seq).trim_end())?;
            writeln!(out, "{:10}  in {}{}: {}", "", record.place, times_of(record), record.why)
        })
    })
}

/// The name of an op, as those who write it know it.
fn name_of(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Delete => "delete",
        OpKind::Set | OpKind::SetSeparated => "put",
        OpKind::Insert | OpKind::InsertSeparated => "put-if-absent",
        OpKind::Fold | OpKind::FoldSeparated => "fold",
        OpKind::InsertFold => "put-if-absent, fold",
    }
}

/// When a record was written, and until when what it brings lasts.
fn times_of(record: &Explained) -> String {
    let written = record.written_ms.map(|ms| format!(", written {}", human::utc(ms / 1000)));
    let until = record.deadline_ms.map(|ms| format!(", until {}", human::utc(ms / 1000)));
    written.unwrap_or_default() + &until.unwrap_or_default()
}

/// The value that a record brings; of an `InsertFold`, both.
fn value_of(table: &BytesTable, record: &Explained) -> Datum {
    let show =
        |value: &[u8]| table.rules().show_value(value).unwrap_or_else(|_| Datum::Bytes(value.to_vec()));
    match Op::from_parts(record.kind, &record.payload) {
        Ok(Op::Delete) => Datum::Null,
        Ok(Op::Set(payload) | Op::Insert(payload) | Op::Fold(payload)) => {
            show(table.rules().fold.value_in(payload))
        }
        Ok(Op::InsertFold { absent, present }) => {
            Datum::Map(vec![("absent".to_owned(), show(absent)), ("present".to_owned(), show(present))])
        }
        Ok(Op::SetSeparated(rope) | Op::InsertSeparated(rope) | Op::FoldSeparated(rope)) => {
            where_separated(rope)
        }
        Err(_) => Datum::Bytes(record.payload.clone()),
    }
}

/// Where a value lies that is not beside its key.
fn where_separated(payload: &[u8]) -> Datum {
    let number = |number: u64| Datum::Int(i128::from(number));
    let Ok(rope) = Rope::decode(payload) else { return Datum::Bytes(payload.to_vec()) };
    let Some(pointer) = rope.as_pointer() else {
        let segments: BTreeSet<u32> = rope.pointers().map(|pointer| pointer.place.segment).collect();
        let segments = segments.into_iter().map(|segment| number(segment.into())).collect();
        return Datum::Map(vec![
            ("separated_bytes".to_owned(), number(rope.len)),
            ("pieces".to_owned(), number(rope.pieces.into())),
            ("segments".to_owned(), Datum::List(segments)),
        ]);
    };
    Datum::Map(vec![
        ("separated_bytes".to_owned(), number(pointer.len)),
        ("segment".to_owned(), number(u64::from(pointer.place.segment))),
        ("offset".to_owned(), number(pointer.place.offset())),
    ])
}
