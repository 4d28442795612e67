//! `folddb scan STORE TABLE`: the rows of a table, or of a range of it.

use crate::args::{OutputFormat, ScanArgs};
use crate::failure::Failure;
use crate::render::print_rows;
use crate::session::Session;

pub(crate) fn run(args: &ScanArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let usual = if session.globals.json { OutputFormat::Ndjson } else { OutputFormat::Table };
    let (format, begun) = (args.format.unwrap_or(usual), session.transaction.as_ref());
    print_rows::print(&mut session.out, &table, &args.rows, format, begun).map(drop)
}
