//! `folddb bench NAME`: the benchmark programs of the systems that FoldDB unites.
//!
//! A benchmark with a wrong final state ends with the exit code of damage.

use folddb_bench::{BenchOptions, Progress};
use indicatif::ProgressBar;
use serde_json::json;

use crate::args::BenchArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::progress;
use crate::session::Session;

pub(crate) fn run(args: &BenchArgs, session: &mut Session) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        let names = folddb_bench::names();
        return session
            .report(&json!(names), |out| names.iter().try_for_each(|name| writeln!(out, "{name}")));
    };
    if session.shared.is_some() {
        let why =
            "a benchmark does not end at Ctrl-C, as all does in a shell: run it outside of one, folddb bench";
        return Err(Failure::Usage(format!("{why} {name}")));
    }
    let options = BenchOptions {
        scale: args.scale,
        seed: args.seed,
        memory_bytes: session.globals.memory,
        durability: args.durability.into(),
        batch: args.batch,
        rows: args.rows,
        kind: args.kind.parse().map_err(|error| Failure::Usage(format!("in --kind: {error}")))?,
        value_placement: args
            .value_placement
            .parse()
            .map_err(|error| Failure::Usage(format!("in --value-placement: {error}")))?,
        value_bytes: args.value_bytes,
        seconds: args.seconds,
        dir: args.dir.clone(),
        keep: args.keep,
        ..BenchOptions::default()
    };
    let bar = progress::share_bar(name);
    let report = folddb_bench::run(name, &options, &mut |progress| show(&bar, progress))?;
    bar.finish_and_clear();
    session.report(&report.to_json(), |out| writeln!(out, "{report}"))?;
    if report.verified() { Ok(()) } else { Err(Failure::Reported(ExitCode::Refused)) }
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_message(progress.phase);
    if let Some(share) = progress.done.saturating_mul(1000).checked_div(progress.total) {
        bar.set_position(share);
    }
}
