//! `folddb put STORE TABLE KEY... FILE`: the bytes of a file become the value of a key. Nothing is read from the store.

use serde_json::json;

use crate::args::PutArgs;
use crate::commands::write;
use crate::failure::Failure;
use crate::session::Session;
use crate::{blobs, keys, progress};

pub(crate) fn run(args: &PutArgs, session: &mut Session) -> Result<(), Failure> {
    let Some((file, key)) = args.key_and_file.split_last() else {
        return Err(Failure::Usage("name a key and a file".to_owned()));
    };
    if file == "-" && session.shared.is_some() {
        return Err(Failure::Usage("in a shell stdin holds the commands; name a file".to_owned()));
    }
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let key = keys::key(&table, key, args.hex)?;
    if args.ttl.ttl.is_some() {
        write::check_expires(&args.table, &table.rules().rules)?; // before any of it is read
    }
    let (from, len_bytes) = blobs::open(file)?;
    let bar = progress::bytes_bar(len_bytes, "storing");
    let put = blobs::put(&table, &key, from, (file, args.ttl.lifetime()), &bar);
    bar.finish_and_clear();
    let (seq, bytes) = put?;
    session.report(&json!({ "seq": seq, "bytes": bytes }), |_| Ok(()))
}
