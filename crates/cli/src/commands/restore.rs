//! `folddb restore BACKUP STORE`: creates a new store from a backup, which is checked first.

use folddb::maintenance::RestoreOptions;
use folddb::{Seq, Store};
use serde_json::json;

use crate::args::RestoreArgs;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::progress;
use crate::session::Session;

pub(crate) fn run(args: &RestoreArgs, session: &mut Session) -> Result<(), Failure> {
    let bar = progress::bytes_bar(Some(0), "restoring");
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let what = RestoreOptions::default()
        .generation(args.generation)
        .at_seq(args.at_seq.map(Seq::from))
        .copy(args.copy);
    let restored = Store::restore_with(&args.backup, &args.store, &what, &session.options(), |at| {
        progress::show_bytes(&bar, at);
        interrupt::flow()
    });
    bar.finish_and_clear();
    let restored = restored?;
    let report = json!({
        "store": args.store.display().to_string(),
        "generation": restored.generation,
        "last_seq": u64::from(restored.last_seq),
        "store_id": format!("{:032x}", restored.store_id),
        "linked_bytes": restored.linked_bytes,
        "copied_bytes": restored.copied_bytes,
    });
    session.report(&report, |out| {
        let (store, seq) = (args.store.display(), human::count(restored.last_seq.into()));
        let (linked, copied) = (human::bytes(restored.linked_bytes), human::bytes(restored.copied_bytes));
        writeln!(out, "restored {store} from backup {} at seq {seq}", restored.generation)?;
        writeln!(out, "  {linked} linked, {copied} copied")
    })
}
