//! The programs of `tests/programs`, which check what they do themselves: with the shared and the
//! static library, each plain and with AddressSanitizer, and with the shared one under valgrind.

use std::process::Command;

use crate::compile::{How, compiled, not_checked, succeeded};
use crate::header::functions;

/// Runs a program, and gives what it prints.
pub(crate) fn run(name: &str, how: How) -> String {
    let program = compiled(name, how);
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = match how {
        How::Valgrind => {
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--quiet", "--error-exitcode=99", "--leak-check=full"]);
            valgrind.args(["--show-leak-kinds=definite,indirect,possible"]);
            valgrind.arg("--errors-for-leak-kinds=definite,indirect,possible").arg(&program);
            valgrind
        }
        _ => Command::new(&program),
    };
    let output = command.arg(folder.path()).output().expect("the program runs");
    succeeded(name, &output);
    assert!(output.stderr.is_empty(), "{name} says: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Runs a program in all ways that there are on this machine.
fn run_all(name: &str) {
    run(name, How::Shared);
    run(name, How::Static);
    match Command::new("valgrind").arg("--version").output() {
        Ok(_) => drop(run(name, How::Valgrind)),
        Err(_) => not_checked(&format!("there is no valgrind here, so {name} did not run under it")),
    }
    run(name, How::Sanitized);
    run(name, How::StaticSanitized);
}

#[test]
fn a_store_is_written_read_closed_and_opened_again() {
    run_all("basics");
}

#[test]
fn the_tour_of_the_readme_has_its_lines_in_c() {
    run_all("readme");
}

#[test]
fn a_misused_handle_is_an_error() {
    run_all("misuse");
}

#[test]
fn iterators_go_both_ways_within_their_bounds() {
    run_all("iterators");
}

#[test]
fn batches_and_transactions_are_whole_and_threads_share_a_store() {
    run_all("atomic");
}

#[test]
fn folds_and_orders_and_listeners_are_functions_of_c() {
    run_all("custom");
}

#[test]
fn large_values_are_written_and_read_piece_by_piece() {
    run_all("streams");
}

#[test]
fn indexes_feeds_backups_and_figures() {
    run_all("keeping");
}

#[test]
fn a_forked_child_gets_errors_and_writes_nothing() {
    run_all("forks");
}

#[test]
fn stores_share_a_budget_of_memory() {
    run_all("shared");
}

#[test]
fn the_store_is_read_as_it_was() {
    run_all("past");
}

#[test]
fn damage_is_told_by_a_check_and_by_readers() {
    run_all("damaged");
}

#[test]
fn a_feed_gives_every_kind_of_event() {
    run_all("feeds");
}

#[test]
fn hashed_tables_heads_and_events() {
    run_all("kinds");
}

#[test]
fn a_listener_is_told_of_reclaims_and_poison() {
    run_all("events");
}

#[test]
fn a_listener_is_told_of_writers_that_wait_and_of_events_that_it_has_missed() {
    run("missed", How::Shared); // more than a thousand flushes; and a writer must be faster than the disk
}

#[test]
fn every_function_of_the_header_is_called_by_a_program() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let files = std::fs::read_dir(folder).expect("the folder of the programs");
    let texts = files.map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a program"));
    let programs: String = texts.collect();
    let is_called = |name: &String| programs.contains(&format!("{name}("));
    let uncalled: Vec<String> = functions().into_iter().filter(|name| !is_called(name)).collect();
    assert!(uncalled.is_empty(), "{uncalled:?}");
}
