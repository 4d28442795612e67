//! `folddb set`, `insert` and `fold STORE TABLE KEY... VALUE`: one op on one key. None of them reads.

use folddb::WriteOp;
use serde_json::json;

use crate::args::WriteArgs;
use crate::failure::Failure;
use crate::keys;
use crate::session::Session;

pub(crate) fn run(op: WriteOp, args: &WriteArgs, session: &mut Session) -> Result<(), Failure> {
    let Some((value, key)) = args.key_and_value.split_last() else {
        return Err(Failure::Usage("name a key and a value".to_owned()));
    };
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let key = keys::key(&table, key, args.hex)?;
    let value = keys::value(&table, value)?;
    let seq = table.write(op, &key, &value)?;
    session.report(&json!({ "seq": seq }), |_| Ok(()))
}
