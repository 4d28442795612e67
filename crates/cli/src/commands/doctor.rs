//! `folddb doctor STORE`: what is wrong, what it costs, what to do; most severe first.

use folddb::Store;
use folddb::maintenance::{Advice, Weight};
use serde_json::{Value, json};

use crate::args::StoreArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::session::Session;

pub(crate) fn run(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    let advice = match &session.shared {
        Some(store) => store.doctor()?,
        None => Store::diagnose(&args.store, &session.options())?,
    };
    let report = json!({ "deep": false, "advice": advice.iter().map(as_json).collect::<Value>() });
    let is_open = session.shared.is_some();
    session.report(&report, |out| {
        if advice.is_empty() {
            return writeln!(out, "nothing is wrong{}", so_far(args, is_open));
        }
        advice.iter().try_for_each(|one| writeln!(out, "{one}"))
    })?;
    match advice.iter().any(|one| one.weight == Weight::Broken) {
        true => Err(Failure::Reported(ExitCode::Damaged)),
        false => Ok(()),
    }
}

/// What was checked.
fn so_far(args: &StoreArgs, is_open: bool) -> String {
    match is_open {
        true => ", as far as an open store knows; on a closed one, folddb verify reads the files".to_owned(),
        false => format!(
            " in what was read, which is not every block; folddb verify {} --deep reads every record",
            args.store.display()
        ),
    }
}

fn as_json(advice: &Advice) -> Value {
    let weight = match advice.weight {
        Weight::Broken => "broken",
        Weight::Costly => "costly",
        Weight::Minor => "minor",
    };
    json!({ "weight": weight, "what": advice.what, "costs": advice.costs, "do": advice.todo })
}
