//! SEEDS and COMPARISON say of each promise and each feature what shows it.
//!
//! Paths, names and links are checked as on all pages (`names.rs`, `links.rs`). Here: each claim
//! names something, what is named as a test is one, and commands are of benches, workloads,
//! examples and verbs that exist.

use std::collections::BTreeSet;

use crate::columns::{files_ending, project};
use crate::names::{Project, quoted, tests_of_paths};

/// The promises of all seeds.
const PROMISES: usize = 100;

/// The stores beside FoldDB in COMPARISON.
const OTHER_STORES: usize = 10;

/// How a reason begins why a promise is not shown, or not as a whole.
const REASONS: [&str; 4] = ["by decision: ", "by nature: ", "not reached: ", "not run: "];

/// Pages whose claims name what shows them.
const PAGES: [&str; 2] = ["docs/SEEDS.md", "docs/COMPARISON.md"];

fn text_of(path: &str) -> String {
    std::fs::read_to_string(project().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of all tables of a page by their cells, without the heads of the tables.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let tables = page.split("\n\n").filter(|paragraph| paragraph.starts_with('|'));
    let lines = tables.flat_map(|table| table.lines().skip(2));
    lines
        .filter_map(|line| {
            Some(line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect())
        })
        .collect()
}

/// Whether a cell names a test with its file, a command or a page.
fn names_evidence(cell: &str) -> bool {
    let has_command = quoted(cell).any(|name| name.starts_with("folddb ") || name.starts_with("contest "));
    !tests_of_paths(cell).is_empty() || cell.contains("](") || has_command
}

/// Why a row of SEEDS is wrong, if it is.
fn fault_of_promise(row: &[&str]) -> Option<&'static str> {
    let &[_, state, shown_by, missing] = row else { return Some("a row has four cells") };
    let (is_shown, is_whole) = (names_evidence(shown_by), missing.is_empty());
    match state {
        "shown" | "better" if !is_shown => Some("it names nothing that shows it"),
        "shown" | "better" if !is_whole => Some("something is missing"),
        "in part" if !is_shown => Some("it names nothing that shows a part of it"),
        "in part" | "not yet" if is_whole => Some("it does not say what is missing"),
        "in part" | "not yet" if !REASONS.iter().any(|reason| missing.starts_with(reason)) => {
            Some("it gives no reason")
        }
        "shown" | "better" | "in part" | "not yet" => None,
        _ => Some("there is no such state"),
    }
}

/// Why a row of COMPARISON is wrong, if it is: FoldDB and ten others, and what FoldDB has is shown.
fn fault_of_feature(row: &[&str]) -> Option<&'static str> {
    match row {
        [_, folddb, others @ ..] if others.len() == OTHER_STORES => {
            let has_none = *folddb == "no" || folddb.starts_with("no: ");
            let is_silent = others.iter().any(|cell| cell.is_empty());
            let fault = if is_silent { "a cell is empty" } else { "it names nothing that shows it" };
            (is_silent || !(has_none || names_evidence(folddb))).then_some(fault)
        }
        _ => Some("a row has a cell for each store"),
    }
}

/// The word behind `begin` in a command.
fn word_behind<'a>(command: &'a str, begin: &str) -> Option<&'a str> {
    command.split_once(begin)?.1.split_whitespace().next()
}

/// What commands may name.
struct Commands {
    verbs: BTreeSet<String>,
    workloads: String,
}

impl Commands {
    /// The verbs are those that the scenarios of the command line run.
    fn read() -> Commands {
        let is_scenario = |path: &std::path::PathBuf| path.to_string_lossy().contains("cli/tests/scenarios/");
        let scenarios = files_ending(".txt").into_iter().filter(is_scenario);
        let texts = scenarios.map(|path| std::fs::read_to_string(path).expect("a scenario"));
        let verbs = texts.flat_map(|text| {
            let run = text.lines().filter_map(|line| word_behind(line, "$ folddb ").map(str::to_owned));
            run.collect::<Vec<_>>()
        });
        Commands { verbs: verbs.collect(), workloads: text_of("crates/bench-rivals/src/work/job.rs") }
    }

    fn knows(&self, command: &str) -> bool {
        let is_in = |names: &[&str], name: Option<&str>| name.is_some_and(|name| names.contains(&name));
        if command.starts_with("folddb bench") {
            return is_in(folddb_bench::names(), word_behind(command, "folddb bench "));
        }
        if command.starts_with("contest") {
            let workload = word_behind(command, "--workload ");
            return workload.is_some_and(|name| self.workloads.contains(&format!("=> \"{name}\"")));
        }
        if let Some(example) = word_behind(command, "--example ") {
            let package = word_behind(command, "-p ").unwrap_or_default();
            let folder = package.strip_prefix("folddb-").unwrap_or(package);
            let examples = project().join(format!("crates/{folder}/examples"));
            let names = [format!("{example}.rs"), format!("{example}/main.rs")];
            return names.iter().any(|name| examples.join(name).exists());
        }
        word_behind(command, "folddb ").is_some_and(|verb| self.verbs.contains(verb))
    }
}

fn is_command(name: &str) -> bool {
    ["folddb ", "contest ", "cargo run "].iter().any(|begin| name.starts_with(begin))
}

#[test]
fn each_promise_of_the_seeds_has_its_state_and_what_shows_it() {
    let page = text_of("docs/SEEDS.md");
    let rows = rows(&page);
    assert_eq!(rows.len(), PROMISES);
    let fault = |row: &Vec<&str>| Some(format!("«{}»: {}", row[0], fault_of_promise(row)?));
    let wrong: Vec<String> = rows.iter().filter_map(fault).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let count = |state: &str| rows.iter().filter(|row| row[1] == state).count();
    let [shown, better, part, not_yet] = ["shown", "better", "in part", "not yet"].map(count);
    let sum =
        format!("Of the hundred, {shown} are shown, {better} better, {part} in part, {not_yet} not yet.");
    assert!(page.contains(&sum), "SEEDS does not say: {sum}");
}

#[test]
fn each_feature_of_the_comparison_has_what_shows_it() {
    let page = text_of("docs/COMPARISON.md");
    let rows = rows(&page);
    assert!(rows.len() > 40, "features are seen: {}", rows.len());
    let fault = |row: &Vec<&str>| Some(format!("«{}»: {}", row[0], fault_of_feature(row)?));
    let wrong: Vec<String> = rows.iter().filter_map(fault).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_shows_a_claim_is_a_test_or_a_command_that_is_there() {
    let (project, commands) = (Project::read(), Commands::read());
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in PAGES {
        let text = text_of(page);
        for (path, test) in tests_of_paths(&text) {
            count += 1;
            if !project.has_run_test(&path, &test) {
                wrong.push(format!("{page}: `{test}` of `{path}` is no test, or is ignored"));
            }
        }
        for command in quoted(&text).filter(|name| is_command(name)) {
            count += 1;
            if !commands.knows(command) {
                wrong.push(format!("{page}: `{command}` cannot be run"));
            }
        }
    }
    assert!(count > 100, "tests and commands are seen: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_claim_without_evidence_is_found() {
    let test = "`x.rs`: `a_test`";
    for row in [
        ["a", "shown", test, ""],
        ["a", "better", "[JSON](x.json)", ""],
        ["a", "in part", "`folddb bench osmos`", "not run: it takes a day"],
        ["a", "not yet", "", "by decision: there is no server"],
    ] {
        assert_eq!(fault_of_promise(&row), None, "{row:?}");
    }
    for row in [
        ["a", "shown", "surely", ""],
        ["a", "shown", test, "why"],
        ["a", "in part", test, ""],
        ["a", "in part", "", "not run: it takes a day"],
        ["a", "in part", test, "somehow"],
        ["a", "not yet", "", "somehow"],
        ["a", "not yet", test, ""],
        ["a", "soon", test, ""],
    ] {
        assert!(fault_of_promise(&row).is_some(), "{row:?}");
    }
    let feature = |folddb| fault_of_feature(&[&["a", folddb][..], &["yes"; OTHER_STORES]].concat());
    assert!(feature("no").is_none() && feature("no: rules").is_none() && feature("[C](C.md)").is_none());
    assert!(feature("yes").is_some() && feature("now").is_some() && fault_of_feature(&["a", "no"]).is_some());
    let page = "Text.\n\n| a | b |\n|---|---|\n| c | |\n| `d` | e |\n\n| f |\n|---|\n| g |\n";
    assert_eq!(rows(page), [vec!["c", ""], vec!["`d`", "e"], vec!["g"]]);
    let commands = Commands::read();
    for known in
        ["folddb bench osmos --rows 5", "contest --workload ydb-rmw", "folddb explain STORE TABLE KEY"]
    {
        assert!(commands.knows(known), "{known}");
    }
    for unknown in ["folddb bench osmosis", "contest --workload ydb2", "contest", "folddb fly STORE"] {
        assert!(!commands.knows(unknown), "{unknown}");
    }
    let example = |package: &str, name: &str| format!("cargo run -p {package} --example {name} -- 1");
    assert!(
        commands.knows(&example("folddb", "flights")) && commands.knows(&example("folddb-bench", "bench"))
    );
    assert!(!commands.knows(&example("folddb", "flights_of_fancy")));
    assert!(!commands.knows(&example("folddb-bench", "flights")));
}
