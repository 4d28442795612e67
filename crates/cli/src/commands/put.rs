//! `folddb put STORE TABLE KEY... FILE`: the bytes of a file become the value of a key. Nothing is read from the store.

use std::io::Read;

use folddb::WriteOp;
use folddb::limits::VALUE_BYTES_MAX;
use serde_json::json;

use crate::args::PutArgs;
use crate::failure::Failure;
use crate::keys;
use crate::session::Session;

pub(crate) fn run(args: &PutArgs, session: &mut Session) -> Result<(), Failure> {
    let Some((file, key)) = args.key_and_file.split_last() else {
        return Err(Failure::Usage("name a key and a file".to_owned()));
    };
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let key = keys::key(&table, key, args.hex)?;
    let value = read(file)?;
    let seq = table.write(WriteOp::Set, &key, &value)?;
    session.report(&json!({ "seq": seq, "bytes": value.len() }), |_| Ok(()))
}

/// All of a file; of one that is too long for a value no more than shows that.
fn read(file: &str) -> Result<Vec<u8>, Failure> {
    let of_file = |error| Failure::Usage(format!("cannot read {file}: {error}"));
    let mut source: Box<dyn Read> = match file {
        "-" => Box::new(std::io::stdin().lock()),
        file => Box::new(std::fs::File::open(file).map_err(of_file)?),
    };
    let mut bytes = Vec::new();
    source.by_ref().take(VALUE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(of_file)?;
    if bytes.len() > VALUE_BYTES_MAX {
        return Err(Failure::Usage(format!("{file} is longer than a value may be: {VALUE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
