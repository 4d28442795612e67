//! `folddb head STORE TABLE KEY...`: what is known of the value of a key without reading it, if it
//! is separated.

use folddb::Datum;

use crate::args::HeadArgs;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::json::Json;
use crate::render::{head, table};
use crate::session::Session;

pub(crate) fn run(args: &HeadArgs, session: &mut Session) -> Result<(), Failure> {
    let of = &args.of;
    let store = session.read(&of.store)?;
    let table = store.known_table(&of.table)?;
    let key = keys::key(&table, &of.key, of.hex)?;
    human::check_over(args.at, store.now())?;
    let head = match (args.at, &session.transaction) {
        (None, None) => table.head(&key)?,
        (None, Some(begun)) => begun.transaction.table(&table).head(&key)?,
        (Some(as_of), _) => store.snapshot_at(as_of)?.table(&table).head(&key)?,
    };
    let Some(head) = head else {
        let shown = of.key.join(" ");
        return Err(Failure::Absent(format!("table `{}` has no value for {shown}", table.name())));
    };
    let (Datum::Map(fields), Datum::Map(exact)) = (head::shown(&head), head::exact(&head)) else {
        return Ok(());
    };
    let key = keys::shown(table.rules(), &key);
    let report = [("key".to_owned(), key)].into_iter().chain(exact).collect();
    session.report(&Json(Datum::Map(report)), |out| {
        let told: Vec<_> = fields.into_iter().filter(|(_, value)| *value != Datum::Null).collect();
        table::write_pairs(out, &told, false)
    })
}
