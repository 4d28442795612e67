//! Each crate can be published, or says that it cannot: its manifest has the fields that a registry
//! requires, its package has its readme and the licenses, and it depends on no unpublished crate.
//!
//! `cargo package --workspace` makes the packages themselves; `.ci/run` has it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Crates for testing only, which are in no registry.
const AT_HOME: [&str; 2] = ["folddb-fuzz", "folddb-sim"];

/// The crates that make promises. All others say that they make none.
const PUBLIC: [&str; 3] = ["folddb", "folddb-c", "folddb-cli"];

const NO_PROMISES: &str = "Internal, no promises";

/// The manifests of the workspace, by the names of the crates.
fn packages() -> BTreeMap<String, Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages.iter().map(|package| (text(&package["name"]).to_owned(), package.clone())).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn folder(package: &Value) -> PathBuf {
    Path::new(text(&package["manifest_path"])).parent().expect("a folder").to_owned()
}

fn is_published(package: &Value) -> bool {
    package["publish"].is_null() // an empty list of registries says that it is not
}

/// The fields that are missing for a registry, as sentences.
fn lacks(package: &Value, packages: &BTreeMap<String, Value>) -> Vec<String> {
    let name = text(&package["name"]);
    let mut lacks = Vec::new();
    let mut ask = |holds: bool, what: &str| {
        if !holds {
            lacks.push(format!("{name} {what}"));
        }
    };
    ask(!text(&package["description"]).is_empty(), "has no description");
    ask(!text(&package["license"]).is_empty(), "has no license");
    ask(text(&package["documentation"]) == format!("https://docs.rs/{name}"), "has no documentation link");
    ask(package["metadata"]["docs"]["rs"].is_object(), "has no [package.metadata.docs.rs]");
    ask(folder(package).join(text(&package["readme"])).is_file(), "has no readme");
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        ask(folder(package).join(license).is_file(), &format!("has no {license} in its folder"));
    }
    for dependency in package["dependencies"].as_array().expect("a list") {
        let used = text(&dependency["name"]);
        let Some(other) = packages.get(used) else { continue };
        let is_bare = text(&dependency["req"]) == "*";
        ask(is_bare || is_published(other), &format!("depends on {used}, which is not published"));
        ask(!is_bare || dependency["kind"] == "dev", &format!("depends on {used} without a version"));
    }
    lacks
}

#[test]
fn each_crate_has_what_a_registry_asks_for_or_stays_at_home() {
    let packages = packages();
    let at_home: Vec<&str> = packages
        .values()
        .filter(|package| !is_published(package))
        .map(|package| text(&package["name"]))
        .collect();
    assert_eq!(at_home, AT_HOME, "crates with `publish = false`");
    let lacks: Vec<String> = packages
        .values()
        .filter(|package| is_published(package))
        .flat_map(|package| lacks(package, &packages))
        .collect();
    assert!(lacks.is_empty(), "not fit to be published:\n{}", lacks.join("\n"));
}

#[test]
fn the_inner_crates_say_that_they_promise_nothing() {
    let packages = packages();
    for (name, package) in packages.iter().filter(|(_, package)| is_published(package)) {
        if PUBLIC.contains(&name.as_str()) {
            continue;
        }
        let read = |file: PathBuf| std::fs::read_to_string(&file).unwrap_or_default();
        let readme = read(folder(package).join(text(&package["readme"])));
        let crate_doc = read(folder(package).join("src/lib.rs"));
        let crate_doc = crate_doc.lines().take_while(|line| line.starts_with("//!")).collect::<String>();
        for (place, said) in [
            ("readme", readme.as_str()),
            ("crate doc", &crate_doc),
            ("description", text(&package["description"])),
        ] {
            assert!(said.contains(NO_PROMISES), "the {place} of {name} does not say `{NO_PROMISES}`");
        }
    }
}
