//! `folddb backup list PLACE`: the backups in a directory of them, and the seqs at which each can
//! be restored.

use folddb::maintenance::Generation;
use folddb::{Datum, Store};
use serde_json::{Value, json};

use crate::args::BackupListArgs;
use crate::failure::Failure;
use crate::human;
use crate::render::table;
use crate::session::Session;

pub(crate) fn run(args: &BackupListArgs, session: &mut Session) -> Result<(), Failure> {
    let backups = Store::backups(&args.place, &session.options())?;
    let report: Value = backups.iter().map(report).collect();
    session.report(&report, |out| {
        if backups.is_empty() {
            return writeln!(out, "no finished backup yet");
        }
        let header = ["backup", "made", "first seq", "last seq", "files", "size", "damage"];
        let header = if backups.iter().any(|one| one.damage.is_some()) { &header[..] } else { &header[..6] };
        let header: Vec<String> = header.iter().map(|&name| name.to_owned()).collect();
        table::write(out, &header, &backups.iter().map(row).collect::<Vec<_>>())
    })
}

fn row(one: &Generation) -> Vec<Datum> {
    let number = |number: u64| Datum::Int(number.into());
    match &one.damage {
        None => vec![
            number(one.number),
            Datum::Text(human::time(one.made)),
            number(one.first_seq.into()),
            number(one.last_seq.into()),
            number(one.files),
            Datum::Text(human::bytes(one.bytes)),
            Datum::Null,
        ],
        Some(damage) => {
            let unknown = std::iter::repeat_n(Datum::Null, 5);
            let ends = [Datum::Text(damage.clone())];
            std::iter::once(number(one.number)).chain(unknown).chain(ends).collect()
        }
    }
}

fn report(one: &Generation) -> Value {
    json!({
        "generation": one.number,
        "path": one.path.display().to_string(),
        "made": human::rfc3339(one.made),
        "first_seq": u64::from(one.first_seq),
        "last_seq": u64::from(one.last_seq),
        "files": one.files,
        "bytes": one.bytes,
        "damage": one.damage,
    })
}
