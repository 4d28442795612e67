//! `folddb delete STORE TABLE KEY...` and `delete --range FROM TO`: makes keys absent.

use std::ops::Bound;

use folddb::{BytesTable, WriteOp};
use serde_json::json;

use crate::args::DeleteArgs;
use crate::failure::Failure;
use crate::keys;
use crate::session::Session;

pub(crate) fn run(args: &DeleteArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.write_keys(&args.store)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    if let Some(begun) = &mut session.transaction {
        if !args.range.is_empty() {
            return Err(Failure::Usage("a transaction deletes keys, and no range".to_owned()));
        }
        let key = keys::key(&table, &args.key, args.hex)?;
        begun.write((&table, WriteOp::Delete), (&key, &[]), args.durability.into());
        return Ok(());
    }
    let seq = match args.range.as_slice() {
        [from, to] => {
            table.delete_range(&range_end(&table, from, args.hex)?, &range_end(&table, to, args.hex)?)?
        }
        _ => table.write(WriteOp::Delete, &keys::key(&table, &args.key, args.hex)?, &[])?,
    };
    session.report(&json!({ "seq": seq }), |_| Ok(()))
}

/// The first key that counts as equal to what was typed: a range takes in its start and stops short
/// of its end.
fn range_end(table: &BytesTable, word: &str, hex: bool) -> Result<Vec<u8>, Failure> {
    match keys::bound(table, &[word.to_owned()], hex)?.from() {
        Bound::Included(key) => Ok(key),
        _ => {
            let name = table.name();
            Err(Failure::Usage(format!(
                "a range of table `{name}`, whose keys run backwards, needs whole keys"
            )))
        }
    }
}
