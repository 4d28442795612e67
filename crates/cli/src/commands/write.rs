//! `folddb fold STORE TABLE KEY... VALUE`, and what `put` shares with it: one op on one key. Only
//! `fold --get` reads.

use folddb::{Datum, WriteOp};
use serde_json::json;

use crate::args::{FoldArgs, WriteArgs};
use crate::failure::Failure;
use crate::keys;
use crate::render::json::{self, object};
use crate::render::value;
use crate::rules_words;
use crate::session::Session;

pub(crate) fn run(op: WriteOp, args: &WriteArgs, session: &mut Session) -> Result<(), Failure> {
    write(op, args, session)
}

/// `fold`, which may return the resulting value.
pub(crate) fn fold(args: &FoldArgs, session: &mut Session) -> Result<(), Failure> {
    let of = &args.write;
    if !args.get {
        return write(WriteOp::Fold, of, session);
    }
    if session.transaction.is_some() {
        return Err(Failure::Usage("in a transaction fold first, and then get".to_owned()));
    }
    let Some((operand, key)) = of.key_and_value.split_last() else {
        return Err(Failure::Usage("name a key and a value".to_owned()));
    };
    let store = session.write(&of.store)?;
    let table = store.known_table(&of.table)?.with_lifetime(of.ttl.lifetime());
    let (key, operand) = (keys::key(&table, key, of.hex)?, keys::value(&table, operand)?);
    let found = store.transact(of.durability.into(), |transaction| {
        transaction.write(&table, WriteOp::Fold, &key, &operand);
        transaction.get(&table, &key)
    })?;
    let shown = match &found {
        None => Datum::Null, // folding it deleted it
        Some(found) => keys::shown_value(table.rules(), found),
    };
    session.report(&object! { "value": json::from_datum(&shown) }, |out| {
        value::write(out, table.rules(), &shown, None, false)
    })
}

pub(crate) fn write(op: WriteOp, args: &WriteArgs, session: &mut Session) -> Result<(), Failure> {
    let (value, key) = match args.key_and_value.split_last() {
        Some((value, key)) if !key.is_empty() => (value, key),
        _ => {
            let message = "name a key and a value: the last word is the value (`put` also takes --file FILE)";
            return Err(Failure::Usage(message.to_owned()));
        }
    };
    let store = session.write_keys(&args.store)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let table = table.with_lifetime(args.ttl.lifetime());
    let key = keys::key(&table, key, args.hex)?;
    let value = keys::value(&table, value)?;
    if let Some(begun) = &mut session.transaction {
        if args.ttl.ttl.is_some() {
            rules_words::check_expires(&args.table, table.rules().as_table_rules())?; // now, not at the commit
        }
        begun.write((&table, op), (&key, &value), args.durability.into());
        return Ok(());
    }
    let seq = table.write(op, &key, &value)?;
    session.report(&json!({ "seq": u64::from(seq) }), |_| Ok(()))
}
