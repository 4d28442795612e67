//! The list of deliberate faults: reading it, and what must hold of it before anything is built.
//!
//! A file of `crates/sim/mutations/` holds the mutations of one part of the engine:
//!
//! ```toml
//! [[mutation]]
//! name = "read-error-ends-the-log"        # what goes wrong, in a few words
//! why = "Everything after an unreadable sector would be lost silently."
//! file = "crates/journal/src/segment_reader.rs"
//! find = '''text that is in the file exactly once'''
//! replace = '''what is there instead'''
//! package = "folddb-journal"              # where the test is that must fail then
//! target = "lib"                          # `lib`, or the name of a file in `tests/`
//! test = "tests::recovering::a_read_error_is_never_an_end"
//! ```
//!
//! A test in a module `schedules` is built as `.ci/races schedules` builds it.
//!
//! The program `mutations` and the test of the same name read it.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the list is, from the root of the workspace.
const LIST_DIR: &str = "crates/sim/mutations";

/// A deliberate fault, and the test that must notice it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutation {
    /// What goes wrong, in a few words.
    pub(crate) name: String,
    /// What a store with this fault would do to its user.
    pub(crate) why: String,
    /// The source file, from the root of the workspace.
    pub(crate) file: String,
    /// Text that the file contains exactly once.
    pub(crate) find: String,
    /// The text instead of it.
    pub(crate) replace: String,
    /// The test that must fail.
    pub(crate) test: Test,
}

/// A test, as cargo and its harness name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    /// The package.
    pub(crate) package: String,
    /// `lib`, or the name of a file in `tests/`.
    pub(crate) target: String,
    /// The name, with its modules.
    pub(crate) name: String,
}

impl std::fmt::Display for Test {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.package, self.target, self.name)
    }
}

impl Test {
    /// The directory of the package, from the root of the workspace.
    pub(crate) fn package_dir(&self) -> PathBuf {
        let short = self.package.strip_prefix("folddb-").unwrap_or(&self.package);
        Path::new("crates").join(short)
    }

    /// Why no source of the target has a test of this name, modules included, if none has.
    fn fault(&self, root: &Path) -> Option<String> {
        let package = root.join(self.package_dir());
        let (dir, main) = match self.target.as_str() {
            "lib" => (package.join("src"), package.join("src/lib.rs")),
            target => {
                let tests = package.join("tests");
                (tests.join(target), tests.join(format!("{target}.rs")))
            }
        };
        let mut sources = sources_below(&dir);
        sources.push(main.clone());
        let is_here = |path: &PathBuf| {
            let modules = if *path == main { Vec::new() } else { modules_of(&dir, path) };
            fs::read_to_string(path).is_ok_and(|text| has_test(&text, &modules, &self.name))
        };
        (!sources.iter().any(is_here)).then(|| format!("there is no test `{self}`"))
    }
}

/// The modules that lead to a file below the root of its crate: `a/b.rs` and `a/b/mod.rs` are
/// `a::b`, and `lib.rs` and `main.rs` are the crate.
fn modules_of(dir: &Path, path: &Path) -> Vec<String> {
    let below = path.strip_prefix(dir).unwrap_or(path).with_extension("");
    let mut names: Vec<String> =
        below.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    names.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
    names
}

/// Whether a file of these modules has a test of this name, with `#[test]` among the lines right
/// above it.
fn has_test(text: &str, modules: &[String], name: &str) -> bool {
    let head = format!("fn {}(", name.rsplit("::").next().unwrap_or_default());
    text.match_indices(&head).any(|(at, _)| {
        let above = text[..at].trim_end().lines().rev().map(str::trim);
        let is_test = above
            .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
            .any(|line| line == "#[test]");
        let mut path = modules.to_vec();
        path.extend(inline_modules(text, at));
        path.push(head["fn ".len()..head.len() - 1].to_owned());
        is_test && path.join("::") == name
    })
}

/// The modules in the file itself that hold what is at `at`, outermost first: the text is
/// formatted, so what encloses a line has a smaller indentation.
fn inline_modules(text: &str, at: usize) -> Vec<String> {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let mut found = Vec::new();
    let mut inner = indentation(&text[start..]);
    for line in text[..start].lines().rev().filter(|line| !line.trim().is_empty()) {
        if indentation(line) >= inner {
            continue;
        }
        inner = indentation(line);
        let name =
            line.trim().strip_suffix(" {").and_then(|open| open.rsplit_once("mod ")).map(|(_, name)| name);
        found.extend(name.map(str::to_owned));
    }
    found.reverse();
    found
}

fn sources_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { sources_below(&path) } else { vec![path] }).collect()
}

impl Mutation {
    /// Its fault, if it has one, in a workspace at `root`.
    pub(crate) fn fault(&self, root: &Path) -> Option<String> {
        let name_fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.name.is_empty() || !self.name.bytes().all(name_fits) {
            return Some("its name is not lower case words and hyphens".to_owned());
        }
        if self.why.is_empty() || self.find == self.replace {
            return Some("it says not why, or changes nothing".to_owned());
        }
        match self.mutated(root) {
            Err(why) => Some(why),
            Ok(_) => self.test.fault(root),
        }
    }

    /// The text of its file with the fault in it.
    ///
    /// # Errors
    /// The file cannot be read, or does not contain the text to replace exactly once.
    pub(crate) fn mutated(&self, root: &Path) -> Result<String, String> {
        let text =
            fs::read_to_string(root.join(&self.file)).map_err(|error| format!("{}: {error}", self.file))?;
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            times => Err(format!("{} holds what it looks for {times} times, not once", self.file)),
        }
    }
}

/// Reads the whole list of a workspace, file by file in the order of their names.
///
/// # Errors
/// Says which file is not as the head of this module describes, and why.
pub(crate) fn read(root: &Path) -> Result<Vec<Mutation>, String> {
    let dir = root.join(LIST_DIR);
    let entries = fs::read_dir(&dir).map_err(|error| format!("{LIST_DIR}: {error}"))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "toml"));
    paths.sort();
    let mut all: Vec<Mutation> = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        all.extend(parse(&text).map_err(|why| format!("{}: {why}", path.display()))?);
    }
    for (index, mutation) in all.iter().enumerate() {
        if all[..index].iter().any(|earlier| earlier.name == mutation.name) {
            return Err(format!("two mutations are named {}", mutation.name));
        }
    }
    Ok(all)
}

/// Reads one file of the list.
fn parse(text: &str) -> Result<Vec<Mutation>, String> {
    let document: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    if let Some(other) = document.keys().find(|key| *key != "mutation") {
        return Err(format!("`{other}` means nothing here"));
    }
    let entries = document.get("mutation").and_then(toml::Value::as_array).ok_or("it lists no mutation")?;
    entries.iter().map(mutation).collect()
}

const FIELDS: [&str; 8] = ["name", "why", "file", "find", "replace", "package", "target", "test"];

fn mutation(entry: &toml::Value) -> Result<Mutation, String> {
    let table = entry.as_table().ok_or("a mutation is no table")?;
    let name = table.get("name").and_then(toml::Value::as_str).unwrap_or("without a name");
    if let Some(other) = table.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(format!("{name}: `{other}` means nothing here"));
    }
    let field = |key: &str| {
        let value = table.get(key).and_then(toml::Value::as_str);
        value.map(str::to_owned).ok_or_else(|| format!("{name}: `{key}` is missing, or no text"))
    };
    let test = Test { package: field("package")?, target: field("target")?, name: field("test")? };
    Ok(Mutation {
        name: field("name")?,
        why: field("why")?,
        file: field("file")?,
        find: field("find")?,
        replace: field("replace")?,
        test,
    })
}
