//! `folddb seal STORE` and `unseal STORE`.

use folddb::Store;
use serde_json::json;

use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::session::Session;

pub(crate) fn seal(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    Store::seal(&args.store, session.options())?;
    tell(args, session, true)
}

pub(crate) fn unseal(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    Store::unseal(&args.store, session.options())?;
    tell(args, session, false)
}

fn tell(args: &StoreArgs, session: &mut Session, sealed: bool) -> Result<(), Failure> {
    let path = args.store.display().to_string();
    session.report(&json!({ "store": path, "sealed": sealed }), |out| match sealed {
        true => writeln!(out, "sealed {path}: it is only read from now on"),
        false => writeln!(out, "unsealed {path}"),
    })
}
