//! `crates/folddb/public-api.txt` lists the public API: each name that a user can write, with its
//! signature. A difference is a decision: `UPDATE=1 cargo test -p folddb-sim --test public_api`
//! accepts it, and the diff of the file is read before it is committed.
//!
//! The sources are read, not the output of a compiler. Names are followed through re-exports to
//! their definitions. The output of a macro is listed by the macro, and by the places where it is
//! called.

mod listing;
mod source;

use std::collections::BTreeSet;
use std::path::Path;

use listing::listing;
use source::Sources;

#[test]
fn the_public_api_is_the_one_that_is_listed() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let found = listing(&Sources::read(&crates), "folddb").lines;
    let path = crates.join("folddb/public-api.txt");
    if std::env::var_os("UPDATE").is_some() {
        let text: String = found.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, text).expect("it is written");
    }
    let listed = std::fs::read_to_string(&path).expect("the listing");
    let (found, listed): (BTreeSet<&str>, BTreeSet<&str>) =
        (found.iter().map(String::as_str).collect(), listed.lines().collect());
    let come = found.difference(&listed).map(|line| format!("+ {line}"));
    let gone = listed.difference(&found).map(|line| format!("- {line}"));
    let differences: Vec<String> = come.chain(gone).collect();
    assert!(differences.is_empty(), "UPDATE=1 takes over what is meant:\n{}", differences.join("\n"));
}

#[test]
fn names_are_followed_to_where_they_are_defined() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let found = listing(&Sources::read(&crates), "folddb").lines;
    for begins in [
        "struct folddb::Store",                  // of the crate itself
        "  folddb::Store::fn open(",             // a method
        "enum folddb::Durability",               // of another crate
        "  folddb::Durability::Sync",            // a variant
        "trait folddb::Fold:",                   // a trait,
        "  folddb::Fold: fn spec(",              // and what it asks for
        "fn folddb::folds::sum fn sum<",         // a function behind two re-exports
        "const folddb::limits::VALUE_BYTES_MAX", // a constant of a chosen module
        "  folddb::Error is std::error::Error",  // a trait that a type has
    ] {
        assert!(
            found.iter().any(|line| line.starts_with(begins)),
            "no `{begins}` among {} lines",
            found.len()
        );
    }
    for inner in ["folddb_engine::", "OpKind", "ReclaimPlan", "struct folddb::table_rules::BoundRules"] {
        let named: Vec<&String> = found.iter().filter(|line| line.contains(inner)).collect();
        assert!(named.is_empty(), "`{inner}` is none of a user's business:\n{named:#?}");
    }
}

#[test]
fn every_type_in_a_public_signature_can_be_named() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let unreachable = listing(&Sources::read(&crates), "folddb").unreachable;
    assert!(unreachable.is_empty(), "re-export it, or use a type that is public already:\n{unreachable:#?}");
}

#[test]
fn what_a_builder_returns_must_be_used() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = listing(&Sources::read(&crates), "folddb").lines;
    let must_be_used: BTreeSet<&str> = listed
        .iter()
        .filter(|line| line.contains("#[must_use]"))
        .filter_map(|line| line.strip_prefix("struct ")?.split([' ', '<']).next())
        .collect();
    let forgets = |line: &&String| {
        let Some((path, method)) = line.trim().split_once("::fn ") else { return false };
        let own = path.rsplit("::").next().expect("a name");
        let Some((_, returned)) = method.split_once("-> ") else { return false };
        let returned = returned.split([' ', '<']).next().expect("a type");
        let takes_self = method.contains("(self") || method.contains("(mut self");
        takes_self
            && (returned == "Self" || returned == own)
            && !line.contains("#[must_use]")
            && !must_be_used.contains(path)
    };
    let forgotten: Vec<&String> = listed.iter().filter(forgets).collect();
    assert!(forgotten.is_empty(), "#[must_use] is missing on:\n{forgotten:#?}");
}
