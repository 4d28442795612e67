//! `folddb backup STORE PLACE`: adds a backup to a directory of them. The store is opened for
//! reading: nothing in it changes. `folddb backup list PLACE` is in `backup_list.rs`.

use folddb::Seq;
use folddb::maintenance::{BackupOptions, BackupReport, FileTotals};
use serde_json::{Value, json};

use crate::args::{BackupArgs, BackupVerb};
use crate::commands::backup_list;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::progress;
use crate::session::Session;

pub(crate) fn run(args: &BackupArgs, session: &mut Session) -> Result<(), Failure> {
    if let Some(BackupVerb::List(of)) = &args.verb {
        return backup_list::run(of, session);
    }
    let (Some(store), Some(place)) = (&args.store, &args.place) else {
        return Err(Failure::Usage("name a store and the directory of its backups".to_owned()));
    };
    let store = session.read(store)?;
    let bar = progress::bytes_bar(Some(0), "backing up");
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let how = BackupOptions::default().copy(args.copy).keep(args.keep).check_all(args.check_all);
    let made = store.backup_with(place, &how, |at| {
        progress::show_bytes(&bar, at);
        interrupt::flow()
    });
    bar.finish_and_clear();
    let made = made?;
    session.report(&report(&made), |out| {
        let BackupReport { generation, first_seq, last_seq, .. } = made;
        let path = made.path.display();
        writeln!(out, "backup {generation} at {path}: {}", seqs(first_seq, last_seq))?;
        let ways = [("linked", made.linked), ("reused", made.reused), ("copied", made.copied)];
        for (way, moved) in ways.into_iter().filter(|(_, moved)| moved.files > 0) {
            writeln!(out, "  {} {way}, {}", human::plural(moved.files, "part"), human::bytes(moved.bytes))?;
        }
        if made.log.files > 0 {
            writeln!(out, "  {} of the log copied", human::bytes(made.log.bytes))?;
        }
        let removed: Vec<String> = made.removed.iter().map(u64::to_string).collect();
        if removed.is_empty() { Ok(()) } else { writeln!(out, "  removed backup {}", removed.join(", ")) }
    })
}

/// The seqs that can be restored, in words.
pub(crate) fn seqs(first_seq: Seq, last_seq: Seq) -> String {
    if first_seq == last_seq {
        return format!("seq {}", human::count(last_seq.into()));
    }
    format!("seq {} to {}", human::count(first_seq.into()), human::count(last_seq.into()))
}

fn report(made: &BackupReport) -> Value {
    let moved = |moved: FileTotals| json!({ "files": moved.files, "bytes": moved.bytes });
    json!({
        "generation": made.generation,
        "path": made.path.display().to_string(),
        "first_seq": u64::from(made.first_seq),
        "last_seq": u64::from(made.last_seq),
        "linked": moved(made.linked),
        "reused": moved(made.reused),
        "copied": moved(made.copied),
        "log": moved(made.log),
        "removed": made.removed,
        "writers_held_us": made.writers_held.as_secs_f64() * 1e6,
    })
}
