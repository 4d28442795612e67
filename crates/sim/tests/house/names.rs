//! Files, folders and tests that pages and the heads of files name are there.
//!
//! A path may leave out its first folders and `src`: `table/typed.rs` is
//! `crates/folddb/src/table/typed.rs`. A decision tells history, so of its paths only those from
//! the root are checked.

use std::collections::{BTreeMap, BTreeSet};

use crate::columns::{files_ending, project};
use crate::links::unfenced;

/// What is named without being in the project: examples, and what a program makes.
const NOT_KEPT: [&str; 3] = ["foo.rs", "foo/tests.rs", "found/"];

/// An identifier with so many underscores is a name of the code, most often that of a test.
const UNDERSCORES_MIN: usize = 3;

/// What is between the names of a list.
const SEPARATORS: [&str; 3] = [", ", " and ", ", and "];

/// The files of the project.
pub(crate) struct Project {
    /// The sources, by their paths from the root.
    sources: BTreeMap<String, String>,
    /// The paths of all files and folders from the root.
    paths: BTreeSet<String>,
    /// The ends of those, with and without `src`.
    ends: BTreeSet<String>,
    /// The words of the code, and the names of files without their endings.
    words: BTreeSet<String>,
}

impl Project {
    pub(crate) fn read() -> Project {
        let root = project();
        let files = files_ending("").into_iter();
        let files: Vec<String> = files
            .filter_map(|file| Some(file.strip_prefix(&root).ok()?.to_string_lossy().into_owned()))
            .collect();
        let is_source = |file: &&String| file.ends_with(".rs") || file.ends_with(".py");
        let text = |file: &String| std::fs::read_to_string(root.join(file)).expect("a source");
        let sources: BTreeMap<String, String> =
            files.iter().filter(is_source).map(|file| (file.clone(), text(file))).collect();
        Project::of(sources, &files)
    }

    fn of(sources: BTreeMap<String, String>, files: &[String]) -> Project {
        let paths: BTreeSet<String> = files.iter().flat_map(|file| beginnings(file)).collect();
        let short = paths.iter().map(|path| without_src(path));
        let ends = paths.iter().cloned().chain(short).flat_map(|path| endings(&path)).collect();
        let code = sources.values().flat_map(|text| text.lines()).filter(|line| !is_comment(line));
        let words = code.flat_map(words_of).map(str::to_owned);
        let stem = |file: &String| file.rsplit('/').next()?.split('.').next().map(str::to_owned);
        let words = words.chain(files.iter().filter_map(stem)).collect();
        Project { sources, paths, ends, words }
    }

    /// Why this name, between backticks, is wrong, if it is.
    fn fault(&self, name: &str, is_history: bool) -> Option<&'static str> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-…".contains(c);
        if NOT_KEPT.contains(&name) || !name.chars().all(is_plain) {
            return None;
        }
        if name.starts_with("crates/") || name.starts_with("docs/") {
            return (!self.paths.contains(name.trim_end_matches('/'))).then_some("there is no such path");
        }
        if is_history {
            return None;
        }
        let is_folder = name.ends_with('/') && name.split_terminator('/').all(is_name_of_folder);
        if name.ends_with(".rs") || is_folder {
            let path = name.trim_start_matches("../").trim_end_matches('/');
            return (!self.ends.contains(path)).then_some("no path ends so");
        }
        let is_of_code = is_identifier(name) && name.matches('_').count() >= UNDERSCORES_MIN;
        (is_of_code && !self.has_word(name)).then_some("no code has this name")
    }

    fn has_word(&self, name: &str) -> bool {
        match name.strip_suffix('…') {
            Some(begin) => {
                self.words.range(begin.to_owned()..).next().is_some_and(|word| word.starts_with(begin))
            }
            None => self.words.contains(name),
        }
    }

    /// Whether a source of this path, or in a folder of this path, has this test. Modules before
    /// its name do not count.
    fn has_test(&self, path: &str, test: &str) -> bool {
        self.sources_at(path).any(|text| text.contains(&function(test)))
    }

    /// Whether that is a test, and is run with all others.
    pub(crate) fn has_run_test(&self, path: &str, test: &str) -> bool {
        let is_run = |text: &str| {
            let (above, _) = text.split_once(&function(test))?;
            let attributes = above.lines().rev().map(str::trim).skip_while(|line| line.is_empty());
            let attributes: Vec<&str> =
                attributes.take_while(|line| line.starts_with("#[") || line.starts_with("//")).collect();
            let is_ignored = attributes.iter().any(|line| line.starts_with("#[ignore"));
            Some(attributes.contains(&"#[test]") && !is_ignored)
        };
        self.sources_at(path).any(|text| is_run(text).unwrap_or(false))
    }

    /// The sources of this path, or in a folder of this path.
    fn sources_at(&self, path: &str) -> impl Iterator<Item = &str> {
        let path = format!("/{}", path.trim_end_matches('/'));
        let is_there = move |file: &str| {
            let file = format!("/{file}");
            file.ends_with(&path) || file.contains(&format!("{path}/"))
        };
        let sources = self.sources.iter();
        let of_path = sources.filter(move |(file, _)| is_there(file) || is_there(&without_src(file)));
        of_path.map(|(_, text)| text.as_str())
    }

    /// The pages, and the heads of the sources: what they are, and their text.
    fn pages(&self) -> Vec<(String, String)> {
        let root = project();
        let page = |path: std::path::PathBuf| {
            let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
            (name, unfenced(&std::fs::read_to_string(&path).expect("a page")))
        };
        let pages = files_ending(".md").into_iter().map(page).filter(|(name, _)| name != "CHANGELOG.md");
        let head = |text: &String| {
            let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
            unfenced(&lines.map(|line| format!("{}\n", line.trim())).collect::<String>())
        };
        let heads = self.sources.iter().map(|(file, text)| (file.clone(), head(text)));
        pages.chain(heads).collect()
    }
}

/// How the function of a test begins.
fn function(test: &str) -> String {
    let name = test.rsplit("::").next().unwrap_or(test);
    match name.strip_suffix('…') {
        Some(begin) => format!("fn {begin}"),
        None => format!("fn {name}("),
    }
}

/// The path, and those of its folders.
fn beginnings(path: &str) -> Vec<String> {
    let ends = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
    ends.chain([path.to_owned()]).collect()
}

/// The path, and what is left of it without its first folders.
fn endings(path: &str) -> Vec<String> {
    let begins = path.match_indices('/').map(|(at, _)| path[at + 1..].to_owned());
    begins.chain([path.to_owned()]).collect()
}

fn without_src(path: &str) -> String {
    path.replacen("/src/", "/", 1)
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn words_of(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn is_identifier(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_…".contains(c))
}

/// Placeholders are in capitals, and names of files of a store begin with a digit.
fn is_name_of_folder(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
    name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_plain)
}

fn is_name_of_test(name: &str) -> bool {
    name.contains('_') && is_identifier(&name.replace("::", "_"))
}

/// The names between backticks.
pub(crate) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The first names of `parts`, which alternate with what is between them, as long as they are a
/// list.
fn list<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    let is_first_or_next = |pair: &&[&str]| SEPARATORS.contains(&pair[0]);
    let first = parts.first().copied();
    let rest = parts.get(1..).unwrap_or_default().chunks_exact(2).take_while(is_first_or_next);
    first.into_iter().chain(rest.map(|pair| pair[1])).collect()
}

/// The tests that are listed behind a path and a colon, with the path.
pub(crate) fn tests_of_paths(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.replace('\n', " ");
        let parts: Vec<&str> = paragraph.split('`').collect();
        for at in (1..parts.len().saturating_sub(2)).step_by(2) {
            let is_path = parts[at].ends_with(".rs") || parts[at].ends_with('/');
            if is_path && parts[at + 1] == ": " {
                let tests = list(&parts[at + 2..]).into_iter().filter(|name| is_name_of_test(name));
                found.extend(tests.map(|test| (parts[at].to_owned(), test.to_owned())));
            }
        }
    }
    found
}

/// The lists of names at the beginnings of the clauses of a cell, except those with paths.
fn leading(cell: &str) -> Vec<&str> {
    let clauses = cell.split("; ").filter_map(|clause| clause.trim().strip_prefix('`'));
    let lists = clauses.map(|clause| list(&clause.split('`').collect::<Vec<_>>()));
    lists.filter(|list| list.iter().all(|name| is_identifier(name))).flatten().collect()
}

#[test]
fn paths_and_names_on_pages_and_in_heads_of_files_are_there() {
    let project = Project::read();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (page, text) in project.pages() {
        let is_history = page.starts_with("docs/decisions/");
        for name in quoted(&text) {
            count += 1;
            wrong.extend(project.fault(name, is_history).map(|why| format!("{page}: `{name}`: {why}")));
        }
    }
    assert!(count > 2000, "names are seen: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tests_that_pages_name_with_their_files_are_in_these() {
    let project = Project::read();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (page, text) in project.pages() {
        for (path, test) in tests_of_paths(&text) {
            count += 1;
            if !project.has_test(&path, &test) {
                wrong.push(format!("{page}: `{path}` has no test `{test}`"));
            }
        }
    }
    assert!(count > 10, "tests are seen: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_tests_that_answer_a_worry_are_there() {
    let page = std::fs::read_to_string(project().join("docs/TESTING.md")).expect("a page");
    let (_, section) = page.split_once("## Which test answers which worry").expect("a section");
    let (section, _) = section.split_once("\n## ").expect("another one");
    let cells = section.lines().filter_map(|line| line.strip_prefix('|')?.split(" | ").nth(1));
    let names: Vec<&str> = cells.flat_map(leading).collect();
    assert!(names.len() > 30, "tests are seen: {names:?}");
    let tests = project().join("crates/sim/tests");
    let is_there =
        |name: &&&str| tests.join(format!("{name}.rs")).exists() || tests.join(name).join("main.rs").exists();
    let wrong: Vec<&&str> = names.iter().filter(|name| !is_there(name)).collect();
    assert!(wrong.is_empty(), "TESTING names tests without a path that are not in sim/tests: {wrong:?}");
}

#[test]
fn a_name_of_nothing_is_found() {
    let file = "crates/x/src/scan/rows.rs";
    let text = "//! As `one_name_that_is_gone` said.\nfn a_test_of_these_rows() {}\n";
    let project = Project::of([(file.to_owned(), text.to_owned())].into(), &[file.to_owned()]);
    let right =
        ["scan/rows.rs", "x/scan/rows.rs", "rows.rs", "scan/", "crates/x/src", "a_test_of_these_rows"];
    let prose = ["a_test_of…", "two_words", "segments/TARGET/", "000031.shelf/", "Rows", "a b.rs", "found/"];
    for name in right.into_iter().chain(prose) {
        assert_eq!(project.fault(name, false), None, "{name}");
    }
    for name in ["scan/row.rs", "scans/", "crates/x/scan", "one_name_that_is_gone", "a_test_of_those…"] {
        assert!(project.fault(name, false).is_some(), "{name}");
    }
    assert!(project.fault("gone.rs", true).is_none() && project.fault("crates/gone.rs", true).is_some());
    let page = "| x | `scan/rows.rs`: `a_test_of_these_rows`, `no_test`; `rows.rs`: `watch --wait` |";
    let pair = |test: &str| ("scan/rows.rs".to_owned(), test.to_owned());
    assert_eq!(tests_of_paths(page), [pair("a_test_of_these_rows"), pair("no_test")]);
    assert!(project.has_test("scan/rows.rs", "tests::a_test_of…") && !project.has_test("scan/", "no_test"));
    let tests =
        "fn helper() {}\n#[test]\n// Why.\nfn is_run() {}\n#[test]\n#[ignore = \"slow\"]\nfn is_not() {}\n";
    let project = Project::of([(file.to_owned(), tests.to_owned())].into(), &[]);
    let run = ["helper", "is_run", "is_not", "gone"].map(|test| project.has_run_test("scan/rows.rs", test));
    assert_eq!(run, [false, true, false, false]);
    assert_eq!(
        leading("`model`, `power`: of `it`; `x/y.rs`, `z`; and `a`; `b` (c)"),
        ["model", "power", "b"]
    );
}
