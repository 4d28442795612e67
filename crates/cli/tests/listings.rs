//! The listings of the pages for users, typed as they are printed.
//!
//! A listing is a fenced block of `console`: lines after `$ ` are typed, lines after `# ` are
//! remarks, the lines below a command are what it prints. All listings of a page run in order, in
//! one scratch directory that has the project's samples, with `folddb` on the path and a stand-in
//! for `cargo` that knows the commands of the pages. Every command must end with 0, and print what
//! the page says, where it says something.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{FOLDDB, Place, project, without_settings};

/// `cargo run` is the program that is being tested. Building and testing do nothing here, since
/// this test runs inside them.
const CARGO: &str = r#"#!/bin/sh
case "$*" in
    "run --release -p folddb-cli -- "*) shift 5; exec folddb "$@" ;;
    "install --path crates/cli" | "test --workspace --no-fail-fast") ;;
    *) echo "no page has this: cargo $*" >&2; exit 101 ;;
esac
"#;

/// A command as it is typed, and what the page says that it prints.
#[derive(Debug, PartialEq, Eq)]
struct Typed {
    line: String,
    printed: String,
}

/// A fenced block: the word after the fence, and its lines.
struct Block<'a> {
    language: &'a str,
    lines: Vec<&'a str>,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        match (line.strip_prefix("```"), is_open) {
            (Some(language), false) => blocks.push(Block { language, lines: Vec::new() }),
            (None, true) => blocks.last_mut().expect("it is open").lines.push(line),
            _ => {}
        }
        is_open ^= line.starts_with("```");
    }
    blocks
}

fn typed(lines: &[&str]) -> Vec<Typed> {
    let mut all: Vec<Typed> = Vec::new();
    let (mut goes_on, mut is_remark) = (false, false);
    for line in lines {
        if goes_on {
            let last = all.last_mut().expect("a line that goes on");
            last.line.push_str(&format!("\n{line}"));
        } else if let Some(line) = line.strip_prefix("$ ") {
            all.push(Typed { line: line.to_owned(), printed: String::new() });
            is_remark = false;
        } else if line.starts_with("# ") {
            is_remark = true;
        } else if let Some(last) = all.last_mut().filter(|_| !is_remark) {
            last.printed.push_str(&format!("{line}\n"));
        }
        goes_on = !is_remark && line.ends_with('\\');
    }
    all
}

/// Why a line of a shell listing does something unexpected when it is pasted, if it does.
fn fault(line: &str) -> Option<&'static str> {
    if let Some(remark) = line.strip_prefix("# ") {
        // A shell that accepts no remarks at its prompt finds no command `#`, and must find nothing
        // else in the line.
        let harms = |c: char| "'\"`$!*?()[]{};&|<>\\".contains(c);
        return remark.contains(harms).then_some("a remark has a sign that a shell without remarks minds");
    }
    let command = line.strip_prefix("$ ")?.trim_start();
    let (mut quote, mut blanks) = (None, 0);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') if blanks > 0 => return Some("a remark after a command is typed, too, in zsh"),
            (None, c) if c != ' ' && blanks > 1 => return Some("words after a gap become arguments"),
            _ => {}
        }
        blanks = if c == ' ' { blanks + 1 } else { 0 };
    }
    None
}

/// All pages of the project, except those that other programs have left there.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut left = vec![project()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path())
        {
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if entry.is_dir() && !name.starts_with('.') && name != "target" && name != "results" {
                left.push(entry);
            } else if name.ends_with(".md") {
                pages.push(entry);
            }
        }
    }
    pages
}

/// A scratch directory with the samples, and stand-ins for programs in `bin`.
fn scratch() -> Place {
    let place = Place::new();
    for dir in ["samples", "bin"] {
        std::fs::create_dir(place.path().join(dir)).expect("a directory");
    }
    for sample in std::fs::read_dir(project().join("samples")).expect("the samples") {
        let sample = sample.expect("an entry");
        std::fs::copy(sample.path(), place.path().join("samples").join(sample.file_name())).expect("a copy");
    }
    let cargo = place.path().join("bin/cargo");
    std::fs::write(&cargo, CARGO).expect("the stand-in is written");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("it may be run");
    place
}

/// What is wrong with a command, if something is.
fn type_in(place: &Place, one: &Typed) -> Option<String> {
    let programs = Path::new(FOLDDB).parent().expect("the program is in a directory");
    let stand_ins = place.path().join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = without_settings(&mut Command::new("sh"))
        .args(["-c", &format!("exec 2>&1\n{}", one.line)])
        .current_dir(place.path())
        .env("PATH", format!("{}:{}:{path}", stand_ins.display(), programs.display()))
        .env("HOME", place.path())
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::null())
        .output()
        .expect("sh starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let is_right = one.printed.is_empty() || one.printed.trim_end() == printed.trim_end();
    (!output.status.success() || !is_right).then(|| {
        format!("$ {}\n--- on the page\n{}--- printed, {}\n{printed}", one.line, one.printed, output.status)
    })
}

/// Pages with the least number of their listings, in the order in which a new user reads them.
const PAGES: [(&str, usize); 6] = [
    ("README.md", 3),
    ("docs/GUIDE.md", 7),
    ("docs/OPERATIONS.md", 3),
    ("docs/IMPORT.md", 10),
    ("docs/CLI.md", 5),
    ("docs/REPORTS.md", 7),
];

fn run_page(place: &Place, (name, listings_min): (&str, usize)) {
    let page = std::fs::read_to_string(project().join(name)).expect("the page is there");
    let listings: Vec<_> = blocks(&page).into_iter().filter(|block| block.language == "console").collect();
    assert!(listings.len() >= listings_min, "{name} has only {} listings", listings.len());
    let all = listings.iter().flat_map(|block| typed(&block.lines));
    let wrong: Vec<String> = all.filter_map(|one| type_in(place, &one)).collect();
    assert!(wrong.is_empty(), "{name}:\n\n{}", wrong.join("\n"));
}

#[test]
fn every_listing_of_the_readme_does_what_it_says() {
    run_page(&scratch(), PAGES[0]);
}

#[test]
fn every_listing_of_the_guide_does_what_it_says() {
    run_page(&scratch(), PAGES[1]);
}

#[test]
fn every_listing_of_operations_does_what_it_says() {
    run_page(&scratch(), PAGES[2]);
}

#[test]
fn every_recipe_of_the_import_does_what_it_says() {
    run_page(&scratch(), PAGES[3]);
}

#[test]
fn every_listing_of_the_command_line_does_what_it_says() {
    run_page(&scratch(), PAGES[4]);
}

#[test]
fn every_report_does_what_it_says() {
    run_page(&scratch(), PAGES[5]);
}

/// No page uses the name of a store that another has made with other rules.
#[test]
fn the_listings_of_all_pages_run_one_after_the_other_in_one_directory() {
    let place = scratch();
    PAGES.into_iter().for_each(|page| run_page(&place, page));
}

#[test]
fn no_listing_of_any_page_does_something_else_when_it_is_pasted() {
    let mut wrong = Vec::new();
    for path in pages() {
        let page = std::fs::read_to_string(&path).expect("the page is there");
        for block in blocks(&page) {
            let is_shell = |line: &&str| line.starts_with("$ ") || line.starts_with("cargo ");
            let is_listing = matches!(block.language, "console" | "sh") || block.lines.iter().any(is_shell);
            if block.language.is_empty() && block.lines.iter().any(|line| line.starts_with("$ ")) {
                wrong.push(format!("{}: a listing that is not run: call it console", path.display()));
            }
            for line in block.lines.iter().filter(|_| is_listing) {
                // Without prompts all lines are typed; with prompts, the lines without one are
                // printed.
                let is_typed = line.starts_with("# ") || block.language != "console";
                let whole = if is_typed && !line.starts_with(['$', '#']) {
                    format!("$ {line}")
                } else {
                    (*line).to_owned()
                };
                wrong.extend(fault(&whole).map(|why| format!("{}: {why}: {line}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_listing_that_would_do_something_else_is_found() {
    assert!(fault("$ folddb head s t k      size, hash").is_some());
    assert!(fault("$ folddb head s t k # size").is_some());
    assert!(fault("# the store's size").is_some());
    assert_eq!(fault("$ folddb put s t k 'a  # b'"), None);
    assert_eq!(fault("# Size, hash: no value is read."), None);
    let place = scratch();
    let one = |line: &str, printed: &str| Typed { line: line.to_owned(), printed: printed.to_owned() };
    assert!(type_in(&place, &one("folddb scan none none", "")).is_some());
    assert!(type_in(&place, &one("cargo bench", "")).is_some());
    assert!(type_in(&place, &one("echo a", "b\n")).is_some());
    assert_eq!(
        type_in(&place, &one("cargo run --release -p folddb-cli -- create s t", "created table t in s\n")),
        None
    );
    let read = typed(&["$ a \\", "b", "c", "# d", "e", "$ f"]);
    assert_eq!(read, [one("a \\\nb", "c\n"), one("f", "")]);
}
