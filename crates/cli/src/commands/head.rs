//! `folddb head STORE TABLE KEY...`: what is known of the value of a key without reading it, where it lies apart.

use folddb::{Datum, Head};
use serde_json::json;

use crate::args::KeyArgs;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::columns::HEAD_FIELDS;
use crate::render::{json, table};
use crate::session::Session;

pub(crate) fn run(args: &KeyArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let key = keys::key(&table, &args.key, args.hex)?;
    let Some(head) = table.head(&key)? else {
        let shown = args.key.join(" ");
        return Err(Failure::NotFound(format!("table `{}` has no value for {shown}", table.name())));
    };
    let Datum::Map(fields) = shown(&head) else { return Ok(()) };
    let key = table.rules().rules.key_codec().show(&key).unwrap_or(Datum::Bytes(key));
    let mut report = json!({ "key": json::from_datum(&key) });
    for (name, value) in &fields {
        report[name] = json::from_datum(value);
    }
    session.report(&report, |out| {
        let told: Vec<_> = fields.into_iter().filter(|(_, value)| *value != Datum::Null).collect();
        table::write_pairs(out, &told)
    })
}

/// A head as people read it.
pub(crate) fn shown(head: &Head) -> Datum {
    let written = head.written_ms.map_or(Datum::Null, |ms| Datum::Text(human::utc(ms / 1000)));
    let deadline = head.deadline_ms.map_or(Datum::Null, |ms| Datum::Text(human::utc(ms / 1000)));
    let bytes = if head.bytes.is_empty() { Datum::Null } else { Datum::from_bytes(&head.bytes) };
    let values = [
        Datum::Int(head.size_bytes.into()),
        Datum::Text(format!("{:08x}", head.hash)),
        head.version.map_or(Datum::Null, |version| Datum::Text(format!("{version:016x}"))),
        Datum::Bool(head.is_apart),
        written,
        deadline,
        bytes,
    ];
    Datum::Map(HEAD_FIELDS.iter().map(|name| (*name).to_owned()).zip(values).collect())
}
