//! Signals are raised while they are handled and before the work begins, so that even quick work
//! meets the flag at its first row. One test, since a process has only one such signal.

use std::path::Path;

use clap::Parser;
use folddb::{Options, Store};
use signal_hook::consts::SIGINT;
use signal_hook::low_level::raise;

use super::*;
use crate::args::Cli;
use crate::commands;
use crate::exit_code::ExitCode;
use crate::session::Session;

fn session() -> Session {
    let cli = Cli::try_parse_from(["folddb", "man"]).expect("a line");
    let mut session = Session::on_stdout(cli.globals);
    session.out = Box::new(std::io::sink());
    session
}

/// Runs a line, as the shell does.
fn run(words: &[&str], session: &mut Session) -> Result<(), Failure> {
    let cli = Cli::try_parse_from(std::iter::once(&"folddb").chain(words)).expect("a line");
    let done = commands::run(cli.verb, session);
    session.end(done)
}

/// A store with tables of every kind that has its own way of counting.
fn fill(path: &Path) {
    let path = path.to_str().expect("a plain name");
    let tables: [(&str, &[&str]); 5] = [
        ("plain", &[]),
        ("summed", &["--summaries"]),
        ("hashed", &["--kind", "hashed"]),
        ("hashed_expiring", &["--kind", "hashed", "--expire", "1h"]),
        ("indexed", &[]),
    ];
    let mut session = session();
    for (table, rules) in tables {
        let create = [&["create", path, table, "--fold", "sum:u64"], rules].concat();
        run(&create, &mut session).expect("a table");
        for key in ["a", "b", "c"] {
            run(&["fold", path, table, key, "7"], &mut session).expect("a row");
        }
    }
}

#[test]
fn a_signal_stops_what_goes_over_a_table_in_one_call_and_not_the_next_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, other) = (dir.path().join("s"), dir.path().join("other"));
    fill(&path);
    fill(&other);
    let dump = dir.path().join("dump");
    let (at, other, dump) = [&path, &other, &dump].map(|path| path.to_str().expect("a plain name")).into();
    let mut shell = session();
    run(&["dump", at, "--to", dump], &mut shell).expect("a dump");
    shell.shared = Some(Store::open(&path, Options::default()).expect("it opens"));
    let lines: [&[&str]; 11] = [
        &["count", at, "plain"],
        &["count", at, "summed"],
        &["count", at, "hashed"],
        &["count", at, "hashed_expiring"],
        &["aggregate", at, "plain"],
        &["aggregate", at, "summed"],
        &["digest", at, "plain"],
        &["diff", at, other, "plain"],
        &["sync", at, other, "plain"],
        &["compact", at],
        &["load", at, dump, "--over"],
    ];
    for line in lines {
        let hearing = hear();
        raise(SIGINT).expect("it is raised");
        let stopped = run(line, &mut shell);
        let code = stopped.as_ref().err().map(Failure::exit_code);
        assert_eq!(code, Some(ExitCode::Interrupted), "{line:?}: {stopped:?}");
        drop(hearing);
        let hearing = hear();
        run(line, &mut shell).unwrap_or_else(|failure| panic!("{line:?}: {failure}"));
        drop(hearing);
    }
}
