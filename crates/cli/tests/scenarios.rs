//! Scenarios: scripts of commands with what they print, in `tests/scenarios/*.txt`, as a person
//! would see them.
//!
//! ```text
//! ## a remark
//! $ folddb get s t key
//! what it prints, on both outputs
//! [exit 1]
//! ```
//!
//! Each script runs in a directory of its own, with the project's samples under `$SAMPLES`. A store
//! notes the path of a file that is imported, so a script that prints its exact bytes imports from
//! a pipe.
//! `UPDATE=1 cargo test -p folddb-cli --test scenarios` writes what is printed now into the
//! scripts; read the difference before you commit it.

mod support;

use std::path::Path;
use std::process::Command;

use support::{FOLDDB, Place, project, without_settings};

/// A piece of a script.
enum Piece {
    Remark(String),
    Command { line: String, expected: String },
}

fn read(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(command) = line.strip_prefix("$ ") {
            let mut command = command.to_owned();
            while command.ends_with('\\') {
                command.push('\n');
                command.push_str(lines.next().unwrap_or_default());
            }
            pieces.push(Piece::Command { line: command, expected: String::new() });
        } else if line.starts_with("## ") {
            pieces.push(Piece::Remark(line.to_owned()));
        } else if let Some(Piece::Command { expected, .. }) = pieces.last_mut() {
            expected.push_str(line);
            expected.push('\n');
        }
    }
    pieces
}

/// What a line prints; the system's shell runs it, for pipes and quotes.
fn run(place: &Place, line: &str) -> String {
    let bin = Path::new(FOLDDB).parent().expect("the program is in a directory");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = without_settings(&mut Command::new("sh"))
        .arg("-c")
        .arg(format!("exec 2>&1\n{line}"))
        .current_dir(place.path())
        .env("PATH", path)
        .env("HOME", place.path())
        .env("SAMPLES", project().join("samples"))
        .env_remove("XDG_DATA_HOME")
        .output()
        .expect("sh starts");
    let mut text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    match output.status.code() {
        Some(0) => {}
        code => text.push_str(&format!("\n[exit {}]", code.unwrap_or(-1))),
    }
    text.trim_start_matches('\n').to_owned()
}

fn play(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(name);
    let script = std::fs::read_to_string(&file).expect("the script is there");
    let place = Place::new();
    let (mut played, mut different) = (String::new(), Vec::new());
    for piece in read(&script) {
        match piece {
            Piece::Remark(remark) => played.push_str(&format!("{remark}\n")),
            Piece::Command { line, expected } => {
                let printed = run(&place, &line);
                played.push_str(&format!(
                    "$ {line}\n{printed}{}\n",
                    if printed.is_empty() { "" } else { "\n" }
                ));
                if printed.trim_end() != expected.trim_end() {
                    different.push(format!(
                        "$ {line}\n--- expected\n{}\n--- printed\n{printed}",
                        expected.trim_end()
                    ));
                }
            }
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, played.trim_end().to_owned() + "\n").expect("the script is written");
        return;
    }
    assert!(different.is_empty(), "{name}:\n\n{}\n", different.join("\n\n"));
}

macro_rules! scenarios {
    ($($test:ident: $file:literal),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                play($file);
            }
        )+

        #[test]
        fn every_script_is_played() {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
            let mut scripts: Vec<String> = std::fs::read_dir(dir)
                .expect("the scripts are there")
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name of text"))
                .collect();
            scripts.sort();
            let mut played = vec![$($file.to_owned()),+];
            played.sort();
            assert_eq!(scripts, played);
        }
    };
}

scenarios! {
    the_first_steps: "first_steps.txt",
    flights_are_imported: "flights.txt",
    rows_come_in_many_forms: "import_forms.txt",
    bad_rows_are_never_dropped_silently: "bad_rows.txt",
    quotes_are_escaped_in_two_ways: "escapes.txt",
    what_was_made_for_no_row_is_taken_back: "unfilled.txt",
    bash_completes_names: "completions.txt",
    ranges_are_scanned: "scan.txt",
    keys_ranges_and_prefixes_are_deleted: "deletes.txt",
    ranges_are_aggregated: "aggregate.txt",
    sorted_rows_make_a_table: "bulk.txt",
    records_are_explained: "explain.txt",
    folds_are_checked: "check_fold.txt",
    the_shell_runs_lines: "shell.txt",
    backups_are_made_and_gone_back_to: "backup.txt",
    rules_are_altered: "alter.txt",
    stores_are_dumped_and_loaded: "dump.txt",
    mistakes_are_answered: "mistakes.txt",
    stores_are_maintained: "maintenance.txt",
    stores_are_compared: "compare.txt",
    stores_are_compared_that_do_not_agree: "compare_rules.txt",
    what_keys_have_been_is_told: "past.txt",
    separated_values: "values.txt",
    dead_values_of_a_hashed_table_are_given_back: "reclaim.txt",
    feeds_are_followed: "feeds.txt",
    values_lie_in_files_of_their_own_and_stores_are_frozen: "place.txt",
    files_become_values_and_values_files: "files.txt",
    records_are_found_by_what_is_in_them: "indexes.txt",
    values_of_any_length_come_back_by_every_way_out_and_in: "long.txt",
    json_keeps_what_it_says: "json.txt",
    files_are_imported_exactly_once: "exactly_once.txt",
    keys_and_operands_are_computed: "computed.txt",
    files_are_caught_in_mid_line: "open_lines.txt",
    files_that_do_not_fit_are_named_and_the_others_are_read: "unfit_files.txt",
    what_is_meant_is_asked_for: "import_meant.txt",
    times_are_keys_and_shown_in_a_zone: "times.txt",
    files_come_in_many_formats: "formats.txt",
    the_environment_names_the_store: "store_word.txt",
    answers_are_read_without_tools: "answer.txt",
    rows_go_out_in_many_forms: "export_forms.txt",
    ranges_are_estimated_and_merged: "ranges.txt",
    metrics_are_scraped: "metrics.txt",
}
