//! `folddb seal STORE` and `unseal STORE`.

use folddb::Store;
use serde_json::json;

use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::session::Session;

pub(crate) fn seal(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    let was_sealed = Store::is_sealed(&args.store, &session.options());
    Store::seal(&args.store, session.options())?;
    tell(args, session, (was_sealed, true))
}

pub(crate) fn unseal(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    let was_sealed = Store::is_sealed(&args.store, &session.options());
    Store::unseal(&args.store, session.options())?;
    tell(args, session, (was_sealed, false))
}

fn tell(
    args: &StoreArgs,
    session: &mut Session,
    (was_sealed, is_sealed): (bool, bool),
) -> Result<(), Failure> {
    let path = args.store.display().to_string();
    let report = json!({ "store": path, "sealed": is_sealed, "was_sealed": was_sealed });
    session.report(&report, |out| match (was_sealed, is_sealed) {
        (false, true) => writeln!(out, "sealed {path}: it is only read from now on"),
        (true, true) => writeln!(out, "{path} was sealed already: it is only read"),
        (true, false) => writeln!(out, "unsealed {path}"),
        (false, false) => writeln!(out, "{path} was not sealed"),
    })
}
