//! Floor 5 of FoldDB: the command line, one binary `folddb`, verb first.
//!
//! `main` parses the arguments, runs one command and turns its outcome into an exit code.
//! Everything that a command needs (the output, the stores) comes through a [`session::Session`].
//! Modules are in bottom-up order.

#![forbid(unsafe_code)]

mod exit_code;
mod failure;
mod interrupt;
mod pipe;
mod zones;
mod human;
mod messages;
mod args;
mod help;
mod store_word;
mod session;
mod progress;
mod keys;
mod ranges;
mod rules_words;
mod blobs;
mod file_names;
mod column_names;
mod out_file;
mod render;
mod import;
mod commands;

use exit_code::ExitCode;
use session::Session;

fn main() -> std::process::ExitCode {
    run(std::env::args_os()).into()
}

fn run(words: std::env::ArgsOs) -> ExitCode {
    let words: Vec<_> = words.collect();
    let asks_json = store_word::asks_json(&words);
    let (line, store) = store_word::of_environment(words);
    let cli = match help::parse(line) {
        Ok(cli) => cli,
        Err(error) => return messages::of_usage_with(error, store.as_deref(), asks_json),
    };
    let is_json = cli.globals.json;
    let mut session = Session::on_stdout(cli.globals);
    if cli.verb.is_paged() {
        session.page();
    }
    let done = commands::run(cli.verb, &mut session);
    let ended = session.end(done);
    let flushed = session.end_output();
    messages::report_as(ended.and(flushed), is_json)
}
