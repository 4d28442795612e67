//! `folddb get STORE TABLE KEY...`: the value of a key.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use folddb::Datum;
use serde_json::json;

use crate::args::GetArgs;
use crate::failure::Failure;
use crate::keys;
use crate::render::columns;
use crate::render::{json, table};
use crate::session::Session;

pub(crate) fn run(args: &GetArgs, session: &mut Session) -> Result<(), Failure> {
    let of = &args.of;
    let store = session.read(&of.store)?;
    let table = store.known_table(&of.table)?;
    let rules = table.rules();
    let key = keys::key(&table, &of.key, of.hex)?;
    let Some(value) = table.get(&key)? else {
        let shown = of.key.join(" ");
        return Err(Failure::NotFound(format!("table `{}` has no value for {shown}", table.name())));
    };
    if let Some(file) = &args.to {
        return write_to(file, &value);
    }
    if args.raw {
        return Ok(session.out.write_all(&value)?);
    }
    let shown = rules.show_value(&value).unwrap_or_else(|_| Datum::Bytes(value.clone()));
    let key = rules.rules.key_codec().show(&key).unwrap_or(Datum::Bytes(key));
    let report = json!({ "key": json::from_datum(&key), "value": json::from_datum(&shown) });
    session.report(&report, |out| match columns::value_paths(rules.rules.fold.spec()).as_slice() {
        [columns::Path { fields }] if fields.is_empty() => writeln!(out, "{shown}"),
        paths => {
            let pair = |path: &columns::Path| (path.name(), path.find(&shown).clone());
            table::write_pairs(out, &paths.iter().map(pair).collect::<Vec<_>>())
        }
    })
}

/// Writes a value to a file that is not there yet.
fn write_to(file: &Path, value: &[u8]) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| Failure::Usage(format!("cannot write {}: {error}", file.display()));
    let mut made = File::create_new(file).map_err(wrong)?;
    made.write_all(value).map_err(wrong)
}
