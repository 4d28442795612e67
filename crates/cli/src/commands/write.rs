//! `folddb set`, `insert` and `fold STORE TABLE KEY... VALUE`: one op on one key. None of them reads, but `fold --get`.

use folddb::{Datum, Lifetime, WriteOp};
use serde_json::json;

use crate::args::{FoldArgs, SetArgs, WriteArgs};
use crate::failure::Failure;
use crate::keys;
use crate::render::{json, value};
use crate::session::Session;

pub(crate) fn run(op: WriteOp, args: &WriteArgs, session: &mut Session) -> Result<(), Failure> {
    write(op, args, None, session)
}

/// `set`, whose value may be told how long it lasts.
pub(crate) fn set(args: &SetArgs, session: &mut Session) -> Result<(), Failure> {
    write(WriteOp::Set, &args.write, args.ttl.map(Lifetime::For), session)
}

/// `fold`, which may ask what the value comes to.
pub(crate) fn fold(args: &FoldArgs, session: &mut Session) -> Result<(), Failure> {
    let of = &args.write;
    if !args.get {
        return write(WriteOp::Fold, of, None, session);
    }
    if session.transaction.is_some() {
        return Err(Failure::Usage("in a transaction fold first, and then get".to_owned()));
    }
    let Some((operand, key)) = of.key_and_value.split_last() else {
        return Err(Failure::Usage("name a key and a value".to_owned()));
    };
    let store = session.write(&of.store)?;
    let table = store.known_table(&of.table)?;
    let (key, operand) = (keys::key(&table, key, of.hex)?, keys::value(&table, operand)?);
    let found = store.transact(of.durability.into(), |transaction| {
        transaction.write(&table, WriteOp::Fold, &key, &operand).get_bytes(&table, &key)
    })?;
    let shown = match &found {
        None => Datum::Null, // folding it deleted it
        Some(found) => table.rules().show_value(found).unwrap_or_else(|_| Datum::Bytes(found.clone())),
    };
    session
        .report(&json!({ "value": json::from_datum(&shown) }), |out| value::write(out, table.rules(), &shown))
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
    let store = session.write_keys(&args.store)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let key = keys::key(&table, key, args.hex)?;
    let value = keys::value(&table, value)?;
    if let Some(begun) = &mut session.transaction {
        if lifetime.is_some() {
            return Err(Failure::Usage(
                "in a transaction values last as long as their table says".to_owned(),
            ));
        }
        begun.write((&table, op), &key, &value, args.durability.into());
        return Ok(());
    }
    let seq = match lifetime {
        None => table.write(op, &key, &value)?,
        Some(lifetime) => table.write_expiring(op, &key, &value, lifetime)?,
    };
    session.report(&json!({ "seq": seq }), |_| Ok(()))
}
