//! `folddb freeze STORE` and `thaw STORE`.

use folddb::Store;
use serde_json::json;

use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::session::Session;

pub(crate) fn freeze(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    let was_frozen = Store::is_frozen(&args.store, &session.options());
    session.once_unlocked(|| Store::freeze(&args.store, session.options()))?;
    report(args, session, (was_frozen, true))
}

pub(crate) fn thaw(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    let was_frozen = Store::is_frozen(&args.store, &session.options());
    session.once_unlocked(|| Store::thaw(&args.store, session.options()))?;
    report(args, session, (was_frozen, false))
}

fn report(
    args: &StoreArgs,
    session: &mut Session,
    (was_frozen, is_frozen): (bool, bool),
) -> Result<(), Failure> {
    let path = args.store.display().to_string();
    let report = json!({ "store": path, "frozen": is_frozen, "was_frozen": was_frozen });
    session.report(&report, |out| match (was_frozen, is_frozen) {
        (false, true) => writeln!(out, "frozen {path}: it can only be read from now on"),
        (true, true) => writeln!(out, "{path} was already frozen: it can only be read"),
        (true, false) => writeln!(out, "thawed {path}"),
        (false, false) => writeln!(out, "{path} was not frozen"),
    })
}
