//! `folddb drop STORE TABLE`: removes a table and everything in it.

use serde_json::json;

use crate::args::DropArgs;
use crate::failure::Failure;
use crate::import::ledger;
use crate::session::Session;

pub(crate) fn run(args: &DropArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?;
    store.drop_table(table.name())?;
    ledger::forget(&store, table.name())?; // what was imported into it
    let name = table.name();
    session.report(&json!({ "dropped": name }), |out| writeln!(out, "dropped table {name}"))
}
