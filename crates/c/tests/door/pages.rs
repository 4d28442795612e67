//! The listing in C of the page is a program, and does what it says.

use std::path::Path;
use std::process::Command;

use crate::compile::{How, compiled_from, succeeded};

/// The listings of a page that are C.
fn listings(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(path).expect("the page");
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
