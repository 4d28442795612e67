//! `folddb drop STORE TABLE`: removes a table and everything in it.

use std::io::IsTerminal;

use folddb::BytesTable;
use serde_json::json;

use crate::args::DropArgs;
use crate::failure::Failure;
use crate::human;
use crate::import::ledger;
use crate::interrupt;
use crate::session::Session;

pub(crate) fn run(args: &DropArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?;
    if !args.yes && std::io::stdin().is_terminal() {
        ask(&table, session)?;
    }
    store.drop_table(table.name())?;
    ledger::forget(&store, table.name())?; // what was imported into it
    let name = table.name();
    session.report(&json!({ "dropped": name }), |out| writeln!(out, "dropped table {name}"))
}

/// Asks whether a table is to be dropped.
fn ask(table: &BytesTable, session: &Session) -> Result<(), Failure> {
    let records = human::plural(table.stats()?.records, "record");
    let question = format!("drop table {} with {records}? [y/N] ", table.name());
    let answer = session.ask(&question).map_err(|error| Failure::file("read", "stdin", &error))?;
    interrupt::check()?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Refused(format!("table {} is not dropped", table.name()))),
    }
}
