//! `folddb scan STORE TABLE`: the rows of a table, or of a range of it.

use crate::args::ScanArgs;
use crate::failure::Failure;
use crate::render::look::Form;
use crate::render::print_rows;
use crate::session::Session;

pub(crate) fn run(args: &ScanArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let form = Form::of(args.format, session.globals.json, &args.look);
    let form = form.drawn(args.picture.plot.as_ref(), args.picture.spark.as_ref());
    print_rows::print(&mut session.out, &table, &args.rows, form, session.transaction.as_ref()).map(drop)
}
