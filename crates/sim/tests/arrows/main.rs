//! In each crate, a file uses only modules whose `mod` line is above its own, so that the list in
//! `lib.rs` reads from the ground up, and no two files use each other.
//!
//! An arrow leads from a file to the file of everything that a path in it names, and to the file of
//! a method that is called on a struct whose `impl` blocks are in several files:
//! `self.flush_step()` is an arrow that no `use` shows. Re-exports are not arrows: they are
//! followed to their targets. Tests are left out.
//!
//! `exceptions.txt` lists the arrows that do not run down today, one a line: a file, and the file
//! that it uses. The list only shrinks.

mod arrow;
mod file;
mod resolve;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arrow::upward;
use file::Crate;

/// The crates of the workspace, by the names of their folders.
fn crates() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let named = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let root =
            ["src/lib.rs", "src/main.rs"].map(|file| path.join(file)).into_iter().find(|file| file.exists());
        root.map(|root| (name, root))
    };
    let mut crates: Vec<_> = entries.filter_map(named).collect();
    crates.sort();
    crates
}

#[test]
fn in_each_crate_a_file_uses_only_modules_below_it() {
    let found = crates();
    assert!(found.len() >= 15, "all crates are seen");
    let mut wrong = BTreeSet::new();
    for (name, root) in &found {
        let house = Crate::read(root);
        wrong.extend(upward(&house).into_iter().map(|(from, to)| format!("{name}: {from} -> {to}")));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/arrows/exceptions.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, wrong.iter().map(|line| format!("{line}\n")).collect::<String>())
            .expect("it is written");
    }
    let known = std::fs::read_to_string(&path).expect("the list of exceptions");
    let known: BTreeSet<String> = known.lines().map(str::to_owned).collect();
    let new: Vec<&str> = wrong.difference(&known).map(String::as_str).collect();
    let gone: Vec<&str> = known.difference(&wrong).map(String::as_str).collect();
    assert!(new.is_empty(), "arrows that run up; put what is used below what uses it:\n{}", new.join("\n"));
    assert!(gone.is_empty(), "no exceptions any more; take them off the list:\n{}", gone.join("\n"));
}

#[test]
fn arrows_are_seen_through_whatever_they_are_written_with() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/arrows/sample/lib.rs");
    let found: Vec<String> =
        upward(&Crate::read(&samples)).into_iter().map(|(from, to)| format!("{from} -> {to}")).collect();
    let wanted = [
        "engine -> above",         // a method of another file, by its name
        "engine -> sibling",       // what is compiled for a feature only
        "floor::child -> floor",   // a child uses its parent, which uses the child
        "floor::child -> sibling", // a path in the midst of code
        "ground -> above",         // a `use`, renamed
        "ground -> engine",        // a type behind a re-export
        "ground -> sibling",       // in the tokens of a macro
        "sibling -> above",        // in the rules of a macro
    ];
    assert_eq!(found, wanted);
}
