//! A store that is opened for every write, as often as a cron job does in a year.
//!
//! `cargo run -p folddb-sim --release --example openings -- --openings 500000`

use std::process::ExitCode;

use folddb_sim::openings::{History, open_for_each_write};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let at = arguments.iter().position(|argument| argument == "--openings");
    let openings = at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(500_000);
    let is_retained = arguments.iter().any(|argument| argument == "--retained");
    let history = if is_retained { History::Retained } else { History::Released };
    match open_for_each_write(openings, history, &mut |seen| println!("{seen}")) {
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
