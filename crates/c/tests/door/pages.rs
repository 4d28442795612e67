//! The listings in C of the README and of the page run and do what they say, and every line of the
//! page's tour compiles.

use std::path::Path;
use std::process::Command;

use crate::compile::{How, compiled_from, installed, succeeded};
use crate::programs::run;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(path).expect("a file of the project")
}

/// The listings of a page that are C.
fn listings(page: &str) -> Vec<String> {
    let text = text(page);
    let blocks = text.split("```c\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// Compiles and runs a listing, and gives what it prints.
fn printed(name: &str, listing: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join(format!("{name}.c"));
    std::fs::write(&source, listing).expect("the listing is written");
    let program = compiled_from(&source, name, How::Shared);
    let output = Command::new(program).arg(folder.path().join("library.folddb")).output().expect("it runs");
    succeeded(name, &output);
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_program_of_the_page_runs_as_it_stands() {
    let [program] = &listings("docs/C.md")[..] else { panic!("the page has one program") };
    let printed = printed("page", program);
    assert!(printed.starts_with(r#"{"count":2,"sum":25.0,"min":12.5,"max":12.5,"mean":12.5,"#), "{printed}");
}

#[test]
fn the_listing_of_the_readme_is_in_a_program_and_prints_what_it_says() {
    let [listing] = &listings("README.md")[..] else { panic!("the README has one listing in C") };
    let program = text("crates/c/tests/programs/readme.c");
    let indented: String = listing.lines().map(|line| format!("    {line}\n")).collect();
    assert!(program.contains(&indented), "readme.c has other lines than the README:\n{listing}");
    let said = listing.lines().find_map(|line| line.strip_prefix("/* ")?.strip_suffix(" */"));
    let said = said.expect("what it prints");
    assert_eq!(run("readme", How::Shared), format!("{said}\n"));
}

/// The rows of the page's tour: what Rust has, and the pieces of C beside it.
fn tour() -> Vec<(String, Vec<String>)> {
    let page = text("docs/C.md");
    let table = page.split("| Rust | C |").nth(1).expect("the tour").split("\n\n").next().unwrap_or_default();
    let rows = table.lines().filter_map(|row| row.strip_prefix("| ")?.split_once(" | "));
    let pieces = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    rows.map(|(rust, c)| (rust.to_owned(), pieces(c))).collect()
}

#[test]
fn each_line_of_the_tour_compiles() {
    let rows = tour();
    assert!(rows.len() > 15, "{}", rows.len());
    let mut program = "#include <folddb.h>\nvoid tour(TYPES) {\n    size_t value_len = 0;\n".replace(
        "TYPES",
        "folddb_store *store, folddb_options *options, folddb_table *delays, folddb_table *table,\n    \
         folddb_batch *batch, folddb_scan *scan, const char *path, const char *key, size_t key_len,\n    \
         const char *value, int durability, folddb_transact_function work, folddb_row_function visit,\n    \
         void *context, size_t bytes, char *err",
    );
    for (rust, pieces) in &rows {
        assert!(!pieces.is_empty(), "{rust} has no line in C");
        for piece in pieces {
            assert!(piece.starts_with("folddb_"), "{rust}: `{piece}` is not the whole name of a function");
            let statement = if piece.contains('(') { piece.clone() } else { format!("&{piece}") };
            program += &format!("    (void)({statement});\n");
        }
    }
    program += "}\n";
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("tour.c");
    std::fs::write(&source, &program).expect("the program is written");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fsyntax-only", "-I"]);
    let output =
        cc.arg(installed().join("include")).arg(&source).output().expect("a C compiler is needed: cc");
    succeeded(&program, &output);
}

/// What the README's listing in Rust calls, but for what is Rust's own.
fn called_by_the_readme() -> Vec<String> {
    let page = text("README.md");
    let listing =
        page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a listing");
    let begins = listing.match_indices('(').map(|(at, _)| &listing[..at]);
    let is_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let names = begins.map(|before| before.rsplit(|letter| !is_of_a_name(letter)).next().unwrap_or_default());
    let others = ["", "default", "map", "mean", "of", "Some"];
    names.filter(|name| !others.contains(name)).map(str::to_owned).collect()
}

#[test]
fn every_call_of_the_readme_in_rust_has_its_line_in_c_and_in_python() {
    let called = called_by_the_readme();
    assert!(called.len() > 8, "{called:?}");
    for (page, heading) in [("docs/C.md", "| Rust | C |"), ("docs/PYTHON.md", "| Rust | Python |")] {
        let page_text = text(page);
        let table = page_text.split(heading).nth(1).expect("a tour").split("\n\n").next().unwrap_or_default();
        for name in &called {
            let is_there =
                |row: &str| row.split(" | ").next().is_some_and(|rust| rust.contains(name.as_str()));
            assert!(table.lines().any(is_there), "{page} has no line for `{name}` of the README");
        }
    }
}
