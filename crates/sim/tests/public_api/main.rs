//! `crates/folddb/public-api.txt` lists the public API: each name that a user can write, with its
//! signature. A difference is a decision: `UPDATE=1 cargo test -p folddb-sim --test public_api`
//! accepts it, and the diff of the file is read before it is committed.
//!
//! The sources are read, not the output of a compiler. Names are followed through re-exports to
//! their definitions, which no `pub use` with a `*` may hide. Calls of macros are replaced by what
//! they write. What is hidden from the documentation is listed, too, and says so.
//!
//! Not listed: the values of constants, lifetimes that the compiler adds, and `Send` and `Sync`,
//! which `threads_and_traits` of the crate `folddb` checks.

mod expand;
mod listing;
mod source;

use std::collections::{BTreeMap, BTreeSet};
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
    let mut times: BTreeMap<&str, i64> = BTreeMap::new();
    found.iter().for_each(|line| *times.entry(line).or_default() += 1);
    listed.lines().for_each(|line| *times.entry(line).or_default() -= 1);
    let differences: Vec<String> = times
        .iter()
        .filter(|(_, times)| **times != 0)
        .map(|(line, times)| format!("{} {line}", if *times > 0 { '+' } else { '-' }))
        .collect();
    assert!(differences.is_empty(), "UPDATE=1 takes over what is meant:\n{}", differences.join("\n"));
}

/// With a `*`, what a crate below makes public would be public here, and unseen.
#[test]
fn no_star_brings_names_from_one_file_to_another() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = Sources::read(&crates);
    let with_star: Vec<String> = sources
        .crates()
        .flat_map(|name| sources.modules_of(name))
        .filter(|(_, module)| module.has_star())
        .map(|(place, _)| place.join("::"))
        .collect();
    assert!(with_star.is_empty(), "name what is used: {with_star:#?}");
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
        "  folddb::Table::fn scan(",             // a method that a macro writes
        "  folddb::Table is Reader",             // an `impl` that a macro in a macro writes
        "struct folddb::folds::Sum<T>",          // a type that a macro writes
        "  folddb::WriteStats.commits: u64",     // and a field of one
    ] {
        assert!(
            found.iter().any(|line| line.starts_with(begins)),
            "no `{begins}` among {} lines",
            found.len()
        );
    }
    for inner in ["folddb_engine::", "OpKind", "ReclaimPlan", "struct folddb::table_rules::BoundRules"] {
        let is_named = |line: &&String| line.contains(inner) && !line.contains("#[doc(hidden)]");
        let named: Vec<&String> = found.iter().filter(is_named).collect();
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

/// Public types that programs may build or match as a whole, so that nothing can ever be added to
/// them, each with the reason for that.
const EXHAUSTIVE: [(&str, &str); 17] = [
    ("Columns", "a fold is of plain values or of records"),
    ("Datum", "the kinds of values that JSON, tuples and folds have; conversions match all of them"),
    ("Element", "the types of FoundationDB's tuples"),
    ("First", "a value is wrapped by hand"),
    ("FoldName", "a fold comes with FoldDB, or the user brings it along"),
    ("Json", "a value is wrapped by hand"),
    ("KeyRange", "two bounds"),
    ("Max", "a value is wrapped by hand"),
    ("Min", "a value is wrapped by hand"),
    ("Outcome", "what a fold may answer; whoever wraps a fold must pass on each"),
    ("Severity", "three steps, which programs compare"),
    ("Source", "an operand is in a column, or is the same for all rows"),
    ("StartsWith", "a key is wrapped by hand"),
    ("Sum", "a value is wrapped by hand"),
    ("Timed", "a time and a value, both of which are stored"),
    ("Weight", "the steps of advice, which programs compare"),
    ("WriteOp", "the four ops"),
];

#[test]
fn a_type_that_can_never_grow_has_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = listing(&Sources::read(&crates), "folddb").lines;
    let with_fields: BTreeSet<&str> = listed
        .iter()
        .filter(|line| !line.contains("#[doc(hidden)]"))
        .filter_map(|line| line.trim().split_once(": ")?.0.rsplit_once('.'))
        .map(|(path, _)| path)
        .collect();
    let exhaustive = |line: &String| {
        let (kind, rest) = line.split_once(' ')?;
        let path = rest.split([' ', '<']).next()?;
        let can_grow = match kind {
            "enum" => line.contains("#[non_exhaustive]"),
            "struct" => line.contains("#[non_exhaustive]") || !with_fields.contains(path),
            _ => true,
        };
        (!can_grow).then(|| path.rsplit("::").next().expect("a name").to_owned())
    };
    let found: BTreeSet<String> = listed.iter().filter_map(exhaustive).collect();
    let reasons: BTreeSet<String> = EXHAUSTIVE.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, reasons, "#[non_exhaustive] or private fields, or a reason in `EXHAUSTIVE`");
    assert!(EXHAUSTIVE.iter().all(|(_, reason)| !reason.is_empty()));
}

#[test]
fn every_type_can_be_printed_and_every_iterator_says_that_it_waits() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = listing(&Sources::read(&crates), "folddb").lines;
    let has = |path: &str, wanted: &str| {
        let of_type = |line: &&String| line.starts_with(&format!("  {path} is "));
        listed
            .iter()
            .filter(of_type)
            .any(|line| line.split(" #[").next().is_some_and(|l| l.ends_with(wanted)))
    };
    let types = listed.iter().filter(|line| line.starts_with("struct ") || line.starts_with("enum "));
    for line in types {
        let path = line.split([' ', '<']).nth(1).expect("a path");
        let derives = line.split("derive(").nth(1).is_some_and(|of| of.contains("Debug"));
        assert!(derives || has(path, "Debug"), "no Debug: {line}");
        let waits = has(path, " Iterator") && !line.contains("#[must_use]");
        assert!(!waits, "an iterator that does nothing unless it is iterated: #[must_use] on {line}");
    }
}

/// The rules of a typed table and those of data say the same by the same names.
#[test]
fn rules_with_types_and_without_have_the_same_methods() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = listing(&Sources::read(&crates), "folddb").lines;
    let methods = |of: &str| -> BTreeSet<String> {
        let taking_self = listed.iter().filter_map(|line| line.trim().strip_prefix(of)).filter(|method| {
            method.contains("self") && (method.contains("-> Self") || method.contains("-> TableRules"))
        });
        taking_self.filter_map(|method| method.split(['(', '<']).next()).map(str::to_owned).collect()
    };
    let typed = methods("folddb::Rules::fn ");
    let mut plain = methods("folddb::table_rules::TableRules::fn ");
    for said_by_types in ["key", "kind", "value"] {
        assert!(plain.remove(said_by_types), "{said_by_types}");
    }
    assert_eq!(typed, plain);
    assert!(typed.len() > 15, "{typed:?}");
}
