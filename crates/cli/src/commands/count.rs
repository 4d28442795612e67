//! `folddb count STORE TABLE`: the number of keys.

use serde_json::json;

use crate::args::CountArgs;
use crate::failure::Failure;
use crate::ranges;
use crate::session::Session;

pub(crate) fn run(args: &CountArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let keys = ranges::narrow_inside(&table, &args.range, session.transaction.as_ref())?.count()?;
    session.report(&json!({ "keys": keys }), |out| writeln!(out, "{keys}"))
}
