//! `folddb set`, `insert` and `fold STORE TABLE KEY... VALUE`: one op on one key. None of them reads.

use folddb::{Lifetime, WriteOp};
use serde_json::json;

use crate::args::{SetArgs, WriteArgs};
use crate::failure::Failure;
use crate::keys;
use crate::session::Session;

pub(crate) fn run(op: WriteOp, args: &WriteArgs, session: &mut Session) -> Result<(), Failure> {
    write(op, args, None, session)
}

/// `set`, whose value may be told how long it lasts.
pub(crate) fn set(args: &SetArgs, session: &mut Session) -> Result<(), Failure> {
    write(WriteOp::Set, &args.write, args.ttl.map(Lifetime::For), session)
}

fn write(
    op: WriteOp,
    args: &WriteArgs,
    lifetime: Option<Lifetime>,
    session: &mut Session,
) -> Result<(), Failure> {
    let Some((value, key)) = args.key_and_value.split_last() else {
        return Err(Failure::Usage("name a key and a value".to_owned()));
    };
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let key = keys::key(&table, key, args.hex)?;
    let value = keys::value(&table, value)?;
    let seq = match lifetime {
        None => table.write(op, &key, &value)?,
        Some(lifetime) => table.write_expiring(op, &key, &value, lifetime)?,
    };
    session.report(&json!({ "seq": seq }), |_| Ok(()))
}
