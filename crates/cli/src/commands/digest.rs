//! `folddb digest STORE TABLE`: the digest of a table, or of a range of it: to save, and to compare
//! with that of another store.

use std::io::Read;
use std::num::NonZero;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use folddb::{BytesTable, DIGEST_VERSION, Digest, Error};
use serde_json::json;

use crate::args::DigestArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::import::source;
use crate::keys;
use crate::out_file;
use crate::ranges;
use crate::render::json::{self, object};
use crate::session::Session;

pub(crate) fn run(args: &DigestArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let against = args.against.as_deref().map(read).transpose()?;
    let depth = against.as_ref().map_or(args.depth, Digest::depth);
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let digest = ranges::narrow(&table, &args.range)?.digest(depth, threads)?;
    if let Some(file) = &args.to {
        out_file::write_new(file, |out| Ok(out.write_all(&digest.to_bytes())?))?;
    }
    match against {
        Some(other) => compare(&digest, &other, &table, args, session),
        None => {
            let root = root_of(&digest);
            let line = json!({ "table": table.name(), "root": root, "keys": digest.keys(), "depth": depth });
            session.report(&line, |out| writeln!(out, "{root}  {}", human::plural(digest.keys(), "key")))
        }
    }
}

/// The root as it is printed: with the version in front, since roots of different versions do not
/// compare. Version 1 printed none.
fn root_of(digest: &Digest) -> String {
    format!("{DIGEST_VERSION}:{:016x}", digest.root())
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
    Digest::from_bytes(&bytes).map_err(|cause| no_digest(&name, &bytes, &cause))
}

/// Why a file is not a comparable digest, and what to do.
fn no_digest(name: &str, bytes: &[u8], cause: &Error) -> Failure {
    let again = "make it again with `folddb digest STORE TABLE --to FILE`";
    if printed_version(bytes).is_some_and(|version| version == DIGEST_VERSION) {
        let message = format!("{name} is the root of a digest as it is printed, which has no keys ({again})");
        return Failure::Refused(message);
    }
    let version = match Digest::version_of(bytes).or(printed_version(bytes)) {
        Some(1) => "version 1, which knew neither deadlines nor rules".to_owned(),
        Some(version) if version != DIGEST_VERSION => format!("version {version}"),
        _ => return Failure::Refused(format!("{name} is {}", cause.message())),
    };
    Failure::Refused(format!(
        "{name} is a digest of {version}: it does not compare with version {DIGEST_VERSION} ({again})"
    ))
}

/// The version of a root that was saved as it is printed: `2:` and 16 hexadecimal digits; for
/// version 1 the digits alone.
fn printed_version(bytes: &[u8]) -> Option<u8> {
    let word = std::str::from_utf8(bytes).ok()?.split_whitespace().next()?;
    let (version, digits) = word.split_once(':').unwrap_or(("1", word));
    let is_root = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    version.parse().ok().filter(|_| is_root)
}

/// Prints the keys of the leaves that differ, which include all keys that differ.
fn compare(
    digest: &Digest,
    other: &Digest,
    table: &BytesTable,
    args: &DigestArgs,
    session: &mut Session,
) -> Result<(), Failure> {
    if !digest.is_of_range(other) {
        return Err(Failure::Refused("the two digests are of different ranges".to_owned()));
    }
    if digest.meaning() != other.meaning() {
        return report_meanings(digest, other, table, session);
    }
    let leaves = digest.differing(other)?;
    if leaves.is_empty() {
        let line = json!({ "table": table.name(), "same": true, "keys": digest.keys() });
        return session
            .report(&line, |out| writeln!(out, "the same, {}", human::plural(digest.keys(), "key")));
    }
    let told = report_leaves(digest, &leaves, table, args, session);
    told.map_err(|failure| failure.with_answer(ExitCode::Damaged))?;
    Err(Failure::Reported(ExitCode::Damaged))
}

/// Prints the keys of these leaves.
fn report_leaves(
    digest: &Digest,
    leaves: &[usize],
    table: &BytesTable,
    args: &DigestArgs,
    session: &mut Session,
) -> Result<(), Failure> {
    let mut rows = ranges::narrow(table, &args.range)?.keys_only().rows()?;
    let mut suspects = 0u64;
    while let Some((key, _)) = rows.next_row()? {
        if leaves.binary_search(&digest.leaf_of(key)).is_ok() {
            suspects += 1;
            let shown = keys::shown(table.rules(), key);
            session.report(&object! { "key": json::from_datum(&shown) }, |out| {
                writeln!(out, "{}", human::one_line(shown.to_string()))
            })?;
        }
    }
    let line = json!({ "table": table.name(), "same": false, "leaves": leaves.len(), "keys": suspects });
    session.report(&line, |out| {
        let differ = match leaves.len() {
            1 => "1 leaf differs".to_owned(),
            leaves => format!("{} leaves differ", human::count(leaves as u64)),
        };
        let others = "keys that only the saved digest has";
        match suspects {
            0 => writeln!(out, "{differ}: the table has no keys there, so what differs are {others}"),
            1 => writeln!(out, "{differ}: what differs is this key, or {others}"),
            _ => writeln!(
                out,
                "{differ}: what differs is among these {} keys, or {others}",
                human::count(suspects)
            ),
        }
    })
}

/// Reports that the bytes of the two have different meanings, so they cannot be compared.
fn report_meanings(
    digest: &Digest,
    other: &Digest,
    table: &BytesTable,
    session: &mut Session,
) -> Result<(), Failure> {
    let (here, there) = (digest.meaning(), other.meaning());
    let line = json!({ "table": table.name(), "same": false, "means": { "first": here, "second": there } });
    let told = session.report(&line, |out| {
        writeln!(
            out,
            "table {}: has rules with another meaning: here {here}; in the saved digest {there}",
            table.name()
        )
    });
    told.map_err(|failure| failure.with_answer(ExitCode::Damaged))?;
    Err(Failure::Reported(ExitCode::Damaged))
}
