//! The verbs, one file each or in the file of a sibling, and the way from the command line to them.
//! A verb that another one uses is above it.

mod aggregate;
mod alter;
mod backup_list;
mod backup;
mod bench;
mod check_fold;
mod count;
mod create;
mod delete;
mod diff;
mod digest;
mod doctor;
mod drop;
mod dump;
mod explain;
mod export;
mod export_dir;
mod feed;
mod find;
mod get;
mod head;
mod history;
mod import;
mod import_dir;
mod imports;
mod index;
mod load;
mod compact;
mod write;
mod put;
mod reclaim;
mod repair;
mod restore;
mod runs;
mod scan;
mod freeze;
mod shell;
mod generate;
mod stats;
mod sync;
mod tables;
mod values;
mod verify;
mod watch;

use crate::args::Verb;
use crate::failure::Failure;
use crate::session::Session;

/// Runs a verb.
pub(crate) fn run(verb: Verb, session: &mut Session) -> Result<(), Failure> {
    match verb {
        Verb::Create(args) => create::run(&args, session),
        Verb::Alter(args) => alter::run(&args, session),
        Verb::Tables(args) => tables::run(&args, session),
        Verb::Import(args) => import::run(&args, session),
        Verb::Imports(args) => imports::run(&args, session),
        Verb::Export(args) => export::run(&args, session),
        Verb::ImportDir(args) => import_dir::run(&args, session),
        Verb::ExportDir(args) => export_dir::run(&args, session),
        Verb::Scan(args) => scan::run(&args, session),
        Verb::Get(args) => get::run(&args, session),
        Verb::Head(args) => head::run(&args, session),
        Verb::History(args) => history::run(&args, session),
        Verb::Put(args) => put::run(args, session),
        Verb::Fold(args) => write::fold(&args, session),
        Verb::Delete(args) => delete::run(&args, session),
        Verb::Count(args) => count::run(&args, session),
        Verb::Aggregate(args) => aggregate::run(&args, session),
        Verb::Stats(args) => stats::run(&args, session),
        Verb::Runs(args) => runs::run(&args, session),
        Verb::Values(args) => values::run(&args, session),
        Verb::Watch(args) => watch::run(&args, session),
        Verb::Feed(args) => feed::run(&args, session),
        Verb::Reclaim(args) => reclaim::run(&args, session),
        Verb::Compact(args) => compact::run(&args, session),
        Verb::Explain(args) => explain::run(&args, session),
        Verb::CheckFold(args) => check_fold::run(&args, session),
        Verb::Verify(args) => verify::run(&args, session),
        Verb::Repair(args) => repair::run(&args, session),
        Verb::Doctor(args) => doctor::run(&args, session),
        Verb::Drop(args) => drop::run(&args, session),
        Verb::Freeze(args) => freeze::freeze(&args, session),
        Verb::Thaw(args) => freeze::thaw(&args, session),
        Verb::Find(args) => find::run(&args, session),
        Verb::Index(args) => index::run(&args, session),
        Verb::Backup(args) => backup::run(&args, session),
        Verb::Restore(args) => restore::run(&args, session),
        Verb::Dump(args) => dump::run(&args, session),
        Verb::Load(args) => load::run(&args, session),
        Verb::Digest(args) => digest::run(&args, session),
        Verb::Diff(args) => diff::run(&args, session),
        Verb::Sync(args) => sync::run(&args, session),
        Verb::Bench(args) => bench::run(&args, session),
        Verb::Shell(args) => shell::run(&args, session, run),
        Verb::Completions(args) => generate::completions(&args, session),
        Verb::Man(args) => generate::man(&args, session),
    }
}
