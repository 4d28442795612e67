//! `folddb head STORE TABLE KEY...`: what is known of the value of a key without reading it, where it is separated.

use folddb::{Datum, Head};

use crate::args::HeadArgs;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::columns::HEAD_FIELDS;
use crate::render::json::Json;
use crate::render::table;
use crate::session::Session;

pub(crate) fn run(args: &HeadArgs, session: &mut Session) -> Result<(), Failure> {
    let of = &args.of;
    let store = session.read(&of.store)?;
    let table = store.known_table(&of.table)?;
    let key = keys::key(&table, &of.key, of.hex)?;
    human::check_over(args.at, store.unix_millis())?;
    let head = match args.at {
        None => table.head(&key)?,
        Some(as_of) => store.snapshot_at(as_of)?.head(&table, &key)?,
    };
    let Some(head) = head else {
        let shown = of.key.join(" ");
        return Err(Failure::NotFound(format!("table `{}` has no value for {shown}", table.name())));
    };
    let (Datum::Map(fields), Datum::Map(exact)) = (shown(&head), exact(&head)) else { return Ok(()) };
    let key = table.rules().rules.key_codec().show(&key).unwrap_or(Datum::Bytes(key));
    let report = [("key".to_owned(), key)].into_iter().chain(exact).collect();
    session.report(&Json(Datum::Map(report)), |out| {
        let told: Vec<_> = fields.into_iter().filter(|(_, value)| *value != Datum::Null).collect();
        table::write_pairs(out, &told)
    })
}

/// A head as people read it.
pub(crate) fn shown(head: &Head) -> Datum {
    fields_of(head, |ms| human::utc(ms / 1000))
}

/// A head as programs read it.
pub(crate) fn exact(head: &Head) -> Datum {
    fields_of(head, human::rfc3339)
}

fn fields_of(head: &Head, time: impl Fn(u64) -> String) -> Datum {
    let written = head.written_ms.map_or(Datum::Null, |ms| Datum::Text(time(ms)));
    let deadline = head.deadline_ms.map_or(Datum::Null, |ms| Datum::Text(time(ms)));
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
