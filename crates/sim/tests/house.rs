//! Floors: a crate uses only crates of lower floors, never of its own floor or above.
//!
//! Each crate states its floor under `[package.metadata.folddb]` in its `Cargo.toml`; `sim`,
//! `bench` and other crates outside the floors state none and may use any. No crate with a floor
//! uses them, except the command line, which offers the benches.

#[path = "house/columns.rs"]
mod columns;
#[path = "house/spelling.rs"]
mod spelling;
#[path = "house/seen.rs"]
mod seen;
#[path = "house/links.rs"]
mod links;
#[path = "house/names.rs"]
mod names;
#[path = "house/evidence.rs"]
mod evidence;
#[path = "house/functions.rs"]
mod functions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

struct Crate {
    floor: Option<i64>,
    uses: Vec<String>,
}

/// The crates of the workspace, and those of Python and Java outside it, with their dependencies in
/// normal builds.
fn workspace() -> BTreeMap<String, Crate> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    [crates.to_owned(), crates.join("../python"), crates.join("../jni")]
        .iter()
        .flat_map(|folder| crates_at(folder))
        .collect()
}

fn crates_at(folder: &Path) -> BTreeMap<String, Crate> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(folder)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let read = |package: &Value| {
        let normal = |dependency: &&Value| dependency["kind"].is_null();
        let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
        let uses = dependencies.iter().filter(normal).map(|dependency| text(&dependency["name"])).collect();
        (text(&package["name"]), Crate { floor: package["metadata"]["folddb"]["floor"].as_i64(), uses })
    };
    packages.iter().map(read).collect()
}

/// The arrows that do not run down, as sentences.
fn wrong_arrows(crates: &BTreeMap<String, Crate>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, user) in crates {
        let Some(floor) = user.floor else { continue };
        for used_name in &user.uses {
            let Some(used) = crates.get(used_name) else { continue };
            match used.floor {
                Some(below) if below < floor => {}
                Some(level) => wrong.push(format!("{name} (floor {floor}) uses {used_name} (floor {level})")),
                None if name == "folddb-cli" && used_name == "folddb-bench" => {}
                None => wrong
                    .push(format!("{name} (floor {floor}) uses {used_name}, which stands beside the house")),
            }
        }
    }
    wrong
}

#[test]
fn every_arrow_runs_down() {
    let crates = workspace();
    assert!(crates.len() >= 14, "all crates are seen: {:?}", crates.keys());
    let wrong = wrong_arrows(&crates);
    assert!(wrong.is_empty(), "arrows that do not run down:\n{}", wrong.join("\n"));
}

#[test]
fn an_arrow_that_runs_up_or_sideways_is_found() {
    let house = |name: &str, floor, uses: &[&str]| {
        (name.to_owned(), Crate { floor, uses: uses.iter().map(|&used| used.to_owned()).collect() })
    };
    let crates = BTreeMap::from([
        house("low", Some(0), &["high"]),
        house("high", Some(2), &["low", "peer", "beside"]),
        house("peer", Some(2), &["elsewhere"]),
        house("beside", None, &["low", "high"]),
    ]);
    assert_eq!(
        wrong_arrows(&crates),
        [
            "high (floor 2) uses peer (floor 2)",
            "high (floor 2) uses beside, which stands beside the house",
            "low (floor 0) uses high (floor 2)",
        ]
    );
}

#[test]
fn a_door_knows_only_what_is_public() {
    let crates = workspace();
    let doors = crates.iter().filter(|(_, door)| door.floor == Some(5));
    for (name, door) in doors {
        let ours = door.uses.iter().filter(|used| crates.contains_key(*used));
        let inner: Vec<&String> =
            ours.filter(|used| !["folddb", "folddb-bench"].contains(&used.as_str())).collect();
        assert!(inner.is_empty(), "{name} uses {inner:?}; what it needs of them is missing in folddb");
    }
}

#[test]
fn the_library_needs_no_async_runtime_and_no_c() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", "folddb", "-e", "normal,build", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    for name in names {
        assert!(
            !["tokio", "async-std", "smol", "futures", "cc", "cmake", "bindgen"].contains(&name),
            "{name}"
        );
    }
}

/// The sources of the library crates, without their tests and examples.
fn library_sources() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = [
        "base",
        "rules",
        "layout",
        "host",
        "journal",
        "value-log",
        "memtable",
        "run",
        "hash",
        "merge",
        "manifest",
        "engine",
        "folddb",
        "c",
        "jni",
        "python",
    ];
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = library.iter().map(|name| crates.join(name).join("src")).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a source folder") {
            let path = entry.expect("a source file").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "tests.rs") {
                let text = std::fs::read_to_string(&path).expect("sources are text");
                found.push((path, text));
            }
        }
    }
    found
}

/// Users meet types of the inner crates as `folddb::..`, and with them their examples.
#[test]
fn examples_in_the_documentation_import_folddb_alone() {
    let imports = |line: &str| {
        let line = line.trim_start();
        let shown = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        shown.is_some_and(|shown| shown.trim_start().starts_with("use folddb_"))
    };
    assert!(imports("    /// use folddb_rules::folds::Stats;"));
    assert!(!imports("/// # use folddb_rules as folddb;") && !imports("use folddb_rules::folds::Stats;"));
    let all = library_sources();
    let found = all.iter().flat_map(|(path, text)| text.lines().map(move |line| (path, line)));
    let wrong: Vec<_> = found.filter(|(_, line)| imports(line)).collect();
    assert!(wrong.is_empty(), "hide `use folddb_x as folddb;` behind `# `, and import folddb: {wrong:#?}");
}

#[test]
fn the_library_prints_nothing_and_reads_no_environment() {
    let sources = library_sources();
    assert!(sources.len() > 100, "all sources are seen");
    for (path, text) in &sources {
        if path.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (number, line) in code.enumerate() {
            for banned in ["println!", "eprintln!", "print!(", "dbg!(", "env::var", "env::args"] {
                assert!(
                    !line.contains(banned),
                    "{}: line {number} of code has `{banned}`: {line}",
                    path.display()
                );
            }
        }
    }
}

/// The tests that the comment right above line `index` names, if it also gives a reason.
fn reason_and_tests(lines: &[&str], index: usize) -> Option<Vec<String>> {
    let is_comment =
        |line: &&&str| line.trim_start().starts_with("//") || line.trim_start().starts_with("#[");
    let above: Vec<&str> = lines[..index].iter().rev().take_while(is_comment).copied().collect();
    let words = above.iter().rev().flat_map(|line| line.split_whitespace());
    let comment = words.filter(|word| *word != "//").collect::<Vec<_>>().join(" ");
    let quoted = |part: &str| Some(part.strip_prefix('`')?.split_once('`')?.0.to_owned());
    let tests: Vec<String> = comment.split("Tested by ").skip(1).filter_map(quoted).collect();
    let has_reason = comment.contains("SAFETY:");
    (has_reason && !tests.is_empty()).then_some(tests)
}

/// The files with blocks of unsafe code, how many each has, and where the tests are that its
/// comments name.
const UNSAFE: [(&str, usize, Tests); 11] = [
    ("host/src/arena.rs", 5, Tests::NextDoor),
    ("host/src/mapped.rs", 9, Tests::NextDoor),
    ("host/src/forks/page.rs", 6, Tests::NextDoor),
    ("host/src/system/unix.rs", 2, Tests::NextDoor),
    ("host/src/system/windows.rs", 2, Tests::NextDoor),
    ("host/src/heap.rs", 3, Tests::NextDoor),
    ("host/src/prefetch.rs", 1, Tests::NextDoor),
    ("c/src/memory.rs", 11, Tests::Programs),
    ("c/src/callbacks.rs", 2, Tests::Programs),
    ("c/src/forks.rs", 1, Tests::Programs),
    ("jni/src/memory.rs", 2, Tests::Java),
];

enum Tests {
    /// Functions of `tests.rs` in the folder of the file's name.
    NextDoor,
    /// Programs in C, in `tests/programs` of the crate.
    Programs,
    /// Classes of the tests of `java/folddb`.
    Java,
}

#[test]
fn unsafe_is_in_named_files_and_every_block_has_its_reason_and_its_test() {
    let mut blocks = [0; UNSAFE.len()];
    for (path, text) in library_sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let is_block = line.contains("unsafe {") || line.trim_start().starts_with("unsafe ");
            if !is_block || line.trim_start().starts_with("//") {
                continue;
            }
            let file = UNSAFE.iter().position(|(file, ..)| path.ends_with(file));
            let file = file.unwrap_or_else(|| panic!("unsafe in {}", path.display()));
            blocks[file] += 1;
            let place = format!("{}:{}", path.display(), index + 1);
            let named = reason_and_tests(&lines, index);
            let named = named.unwrap_or_else(|| panic!("{place} says no reason, or names no test"));
            for name in named {
                let is_there = match UNSAFE[file].2 {
                    Tests::NextDoor => {
                        let tests = path.with_extension("").join("tests.rs");
                        let tests = std::fs::read_to_string(tests).expect("its tests stand next door");
                        tests.contains(&format!("fn {name}()"))
                    }
                    Tests::Java => {
                        let tests = path.with_file_name("../../../java/folddb/src/test/java/org/folddb");
                        tests.join(format!("{name}.java")).canonicalize().is_ok()
                    }
                    Tests::Programs => {
                        path.with_file_name(format!("../tests/programs/{name}.c")).canonicalize().is_ok()
                    }
                };
                assert!(is_there, "{place} names {name}, which is no test");
            }
        }
    }
    let meant = UNSAFE.map(|(_, blocks, _)| blocks);
    assert_eq!(
        blocks,
        meant,
        "blocks of unsafe code in {:?}; if that is meant, say so there",
        UNSAFE.map(|(file, ..)| file)
    );
}

#[test]
fn the_paths_name_files_that_are_there() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let walks = std::fs::read_to_string(crates.join("../docs/PATHS.md")).expect("the walks");
    let names: Vec<&str> = walks.split('`').filter(|name| name.ends_with(".rs")).collect();
    assert!(names.len() > 40, "files are seen: {names:?}");
    for name in names {
        let of_crate = name.split_once('/').map(|(of, file)| crates.join(of).join("src").join(file));
        let is_there =
            crates.join("engine/src").join(name).exists() || of_crate.is_some_and(|path| path.exists());
        assert!(is_there, "PATHS names `{name}`, which is in no crate of that name, and not in the engine");
    }
}
