//! `folddb reclaim STORE [--dry-run]`: frees the space of dead values, by copying live values out
//! of files with few of them. May be stopped at any moment; space that is freed by then stays free.
//! Damaged files stay, and are reported.

use std::ops::ControlFlow;

use folddb::ReclaimStep;
use serde_json::{Value, json};

use crate::args::ReclaimArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::session::Session;

/// Hidden values of less than this share of all are not reported.
const HIDDEN_SHARE: u64 = 50;

pub(crate) fn run(args: &ReclaimArgs, session: &mut Session) -> Result<(), Failure> {
    if args.dry_run {
        return plans(args, session);
    }
    let store = session.write(&args.store)?;
    let mut plans = Vec::new();
    let done = store.reclaim_with(|plan| {
        plans.push(plan.clone());
        ControlFlow::Continue(())
    })?;
    store.close()?;
    let given_back = done.bytes_before.saturating_sub(done.bytes_after);
    let report = json!({
        "plans": plans.iter().map(as_json).collect::<Value>(),
        "bytes_before": done.bytes_before,
        "bytes_after": done.bytes_after,
        "bytes_copied": done.bytes_copied,
        "hidden_bytes": done.hidden_bytes,
        "left_alone": done.left_alone,
    });
    session.report(&report, |out| {
        plans.iter().try_for_each(|plan| writeln!(out, "{plan}"))?;
        done.left_alone.iter().try_for_each(|why| writeln!(out, "left alone: {why}"))?;
        let (given, copied) = (human::bytes(given_back), human::bytes(done.bytes_copied));
        writeln!(out, "freed {given}, and copied {copied} for it")?;
        if done.hidden_bytes > done.bytes_after / HIDDEN_SHARE {
            let (hidden, store) = (human::bytes(done.hidden_bytes), args.store.display());
            writeln!(
                out,
                "about {hidden} more are dead, but no merge has seen them yet: folddb compact {store}"
            )?;
        }
        Ok(())
    })?;
    match done.left_alone.is_empty() {
        true => Ok(()),
        false => Err(Failure::Reported(ExitCode::Damaged)),
    }
}

/// Reports what would be done, without doing it.
fn plans(args: &ReclaimArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let plans = store.reclaim_plans();
    let report = json!({ "plans": plans.iter().map(as_json).collect::<Value>() });
    session.report(&report, |out| {
        if plans.is_empty() {
            return writeln!(out, "nothing is worth the work");
        }
        plans.iter().try_for_each(|plan| writeln!(out, "{plan}"))
    })
}

fn as_json(plan: &ReclaimStep) -> Value {
    json!({
        "files": plan.files,
        "bytes": plan.bytes,
        "live_bytes": plan.live_bytes,
        "new_bytes": plan.new_bytes,
        "reason": plan.reason,
    })
}
