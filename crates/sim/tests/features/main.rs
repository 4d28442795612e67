//! `third-party.txt` lists the third-party crates that `folddb` uses, and which features of each.
//! Features unify: each feature that is enabled here is enabled for a program's own use of the same
//! crate, too.
//!
//! `UPDATE=1 cargo test -p folddb-sim --test features` accepts a difference, which is to be read.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Features of `serde_json` that change its behavior for the whole program.
const CHANGES_OTHERS: [&str; 4] =
    ["preserve_order", "float_roundtrip", "arbitrary_precision", "unbounded_depth"];

/// The third-party crates in a build of `folddb`, each with its features.
fn taken(arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", "folddb", "-e", "normal,build", "--prefix", "none"])
        .args(["--format", "{p}|{f}", "--target", "x86_64-unknown-linux-gnu"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| {
        let (package, features) = line.split_once('|')?;
        let name = package.split(' ').next()?;
        let features = features.trim_end_matches(" (*)").replace(',', ", ");
        Some(format!("{name}: {features}").trim_end().to_owned())
    };
    let lines = tree.lines().filter_map(line);
    lines.filter(|line| !line.starts_with("folddb")).collect()
}

#[test]
fn the_crates_of_others_and_their_features_are_those_that_are_listed() {
    let mut found = String::new();
    for (what, arguments) in
        [("by default", &[][..]), ("without default features", &["--no-default-features"])]
    {
        found.push_str(&format!("{what}\n"));
        found.extend(taken(arguments).into_iter().map(|line| format!("  {line}\n")));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/features/third-party.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &found).expect("it is written");
    }
    let listed = std::fs::read_to_string(&path).expect("the list");
    assert_eq!(found, listed, "what is taken of the crates of others has changed; UPDATE=1 if that is meant");
}

#[test]
fn an_application_keeps_the_json_that_it_has() {
    for features in [&[][..], &["--all-features"]] {
        for line in taken(features).iter().filter(|line| line.starts_with("serde_json:")) {
            let asked: Vec<_> = CHANGES_OTHERS.iter().filter(|feature| line.contains(**feature)).collect();
            assert!(asked.is_empty(), "{line}: {asked:?} would change the JSON of whoever uses folddb");
        }
    }
}

#[test]
fn without_default_features_their_crates_are_not_taken() {
    let bare = taken(&["--no-default-features"]);
    for name in ["serde_json", "serde_core", "roaring", "lz4_flex", "syn"] {
        assert!(!bare.iter().any(|line| line.starts_with(&format!("{name}:"))), "{name} is taken");
        assert!(taken(&[]).iter().any(|line| line.starts_with(&format!("{name}:"))), "{name} is not taken");
    }
}
