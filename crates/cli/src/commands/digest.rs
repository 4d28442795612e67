//! `folddb digest STORE TABLE`: the digest of a table, or of a range of it: to keep, and to compare with that of another store.

use std::io::Read;
use std::num::NonZero;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use folddb::{BytesTable, Datum, Digest};
use serde_json::json;

use crate::args::DigestArgs;
use crate::commands::scan;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::import::source;
use crate::out_file;
use crate::render::json;
use crate::session::Session;

pub(crate) fn run(args: &DigestArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let against = args.against.as_deref().map(read).transpose()?;
    let depth = against.as_ref().map_or(args.depth, Digest::depth);
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let digest = scan::narrow(&table, &args.range)?.digest(depth, threads)?;
    if let Some(file) = &args.to {
        out_file::write_new(file, |out| Ok(out.write_all(&digest.to_bytes())?))?;
    }
    match against {
        Some(other) => compare(&digest, &other, &table, args, session),
        None => {
            let line = json!({ "table": table.name(), "root": hex(digest.root()), "keys": digest.keys(), "depth": depth });
            session.report(&line, |out| {
                writeln!(out, "{}  {}", hex(digest.root()), human::plural(digest.keys(), "key"))
            })
        }
    }
}

fn hex(root: u64) -> String {
    format!("{root:016x}")
}

fn read(file: &Path) -> Result<Digest, Failure> {
    let name = file.display().to_string();
    let mut bytes = std::fs::read(file).map_err(|error| Failure::file("read", &name, &error))?;
    if bytes.starts_with(&source::GZIP_MAGIC) {
        let mut whole = Vec::new();
        let read = MultiGzDecoder::new(&bytes[..]).read_to_end(&mut whole);
        read.map_err(|error| Failure::file("read", &name, &error))?;
        bytes = whole;
    }
    Digest::from_bytes(&bytes)
        .map_err(|cause| Failure::Refused(format!("{name} is no digest, or it was changed: {cause}")))
}

/// Prints the keys of the leaves that differ: those that differ are among them.
fn compare(
    digest: &Digest,
    other: &Digest,
    table: &BytesTable,
    args: &DigestArgs,
    session: &mut Session,
) -> Result<(), Failure> {
    let leaves = digest.differing(other).map_err(|_| {
        Failure::Refused(
            "the two digests are of other ranges, or of tables whose keys come in another order".to_owned(),
        )
    })?;
    if leaves.is_empty() {
        let line = json!({ "table": table.name(), "same": true, "keys": digest.keys() });
        return session
            .report(&line, |out| writeln!(out, "the same, {}", human::plural(digest.keys(), "key")));
    }
    let mut rows = scan::narrow(table, &args.range)?.keys_only().rows()?;
    let mut suspects = 0u64;
    while let Some((key, _)) = rows.next_row()? {
        if leaves.binary_search(&digest.leaf_of(key)).is_ok() {
            suspects += 1;
            let shown = table.rules().rules.key_codec().show(key).unwrap_or(Datum::from_bytes(key));
            session.report(&json!({ "key": json::from_datum(&shown) }), |out| writeln!(out, "{shown}"))?;
        }
    }
    let line = json!({ "table": table.name(), "same": false, "leaves": leaves.len(), "keys": suspects });
    session.report(&line, |out| {
        let differ = match leaves.len() {
            1 => "1 leaf differs".to_owned(),
            leaves => format!("{} leaves differ", human::count(leaves as u64)),
        };
        writeln!(out, "{differ}: what differs is among these {}", human::plural(suspects, "key"))
    })?;
    Err(Failure::Told(ExitCode::Damaged))
}
