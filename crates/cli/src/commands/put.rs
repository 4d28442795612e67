//! `folddb put STORE TABLE KEY... VALUE`, or with `--file FILE`: sets the value of a key, or with
//! `--if-absent` only if it has none. Nothing is read from the store.

use folddb::WriteOp;
use serde_json::json;

use crate::args::{PutArgs, WriteArgs};
use crate::commands::write;
use crate::failure::Failure;
use crate::rules_words;
use crate::session::Session;
use crate::{blobs, keys, progress};

pub(crate) fn run(args: PutArgs, session: &mut Session) -> Result<(), Failure> {
    let op = if args.if_absent { WriteOp::PutIfAbsent } else { WriteOp::Put };
    match &args.file {
        Some(file) => put_file(op, &args, file, session),
        None => {
            let PutArgs { store, table, key_and_value, hex, ttl, durability, .. } = args;
            write::run(op, &WriteArgs { store, table, key_and_value, hex, ttl, durability }, session)
        }
    }
}

fn put_file(op: WriteOp, args: &PutArgs, file: &str, session: &mut Session) -> Result<(), Failure> {
    if file == "-" && session.shared.is_some() {
        return Err(Failure::Usage("in a shell, stdin has the commands; name a file".to_owned()));
    }
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let table = table.with_lifetime(args.ttl.lifetime());
    let key = keys::key(&table, &args.key_and_value, args.hex)?;
    if args.ttl.ttl.is_some() {
        rules_words::check_expires(&args.table, table.rules().as_table_rules())?; // before any of it is read
    }
    let (from, len_bytes) = blobs::open(file)?;
    let bar = progress::bytes_bar(len_bytes, "storing");
    let put = blobs::put(&table, (op, &key), from, file, &bar);
    bar.finish_and_clear();
    let (seq, bytes) = put?;
    session.report(&json!({ "seq": u64::from(seq), "bytes": bytes }), |_| Ok(()))
}
