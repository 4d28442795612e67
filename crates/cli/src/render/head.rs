//! Heads of values, for people and for programs.

use std::time::SystemTime;

use folddb::{Datum, Head};

use crate::human;
use crate::render::columns::HEAD_FIELDS;

/// A head as people read it.
pub(crate) fn shown(head: &Head) -> Datum {
    fields_of(head, human::time)
}

/// A head as programs read it.
pub(crate) fn exact(head: &Head) -> Datum {
    fields_of(head, human::rfc3339)
}

fn fields_of(head: &Head, time: impl Fn(SystemTime) -> String) -> Datum {
    let written = head.written.map_or(Datum::Null, |at| Datum::Text(time(at)));
    let deadline = head.deadline.map_or(Datum::Null, |at| Datum::Text(time(at)));
    let bytes = if head.bytes.is_empty() { Datum::Null } else { Datum::from_bytes(&head.bytes) };
    let values = [
        Datum::Int(head.size_bytes.into()),
        Datum::Text(format!("{:08x}", head.hash)),
        head.version.map_or(Datum::Null, |version| Datum::Text(format!("{version:016x}"))),
        Datum::Bool(head.is_separated),
        written,
        deadline,
        bytes,
    ];
    Datum::Map(HEAD_FIELDS.iter().map(|name| (*name).to_owned()).zip(values).collect())
}
