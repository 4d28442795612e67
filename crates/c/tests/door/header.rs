//! `include/folddb.h` is what the sources say.
//!
//! The modules are in it one after the other, as their `mod` lines do, each under the first line of
//! its own page. `UPDATE=1 cargo test -p folddb-c --test door header` writes it anew.

use std::path::{Path, PathBuf};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rooms, bottom-up: their names and their sources.
fn rooms() -> Vec<(String, PathBuf)> {
    let lib = text(&here().join("src/lib.rs"));
    let names = lib
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    names.map(|name| (name.to_owned(), here().join("src").join(format!("{name}.rs")))).collect()
}

/// The functions that a room exports.
fn exported(source: &str) -> Vec<&str> {
    source
        .lines()
        .filter_map(|line| line.strip_prefix("pub extern \"C\" fn ")?.split(['(', '<']).next())
        .collect()
}

/// The names of all functions of the header, sorted.
pub(crate) fn functions() -> Vec<String> {
    let mut names = Vec::new();
    for (_, path) in rooms() {
        names.extend(exported(&text(&path)).into_iter().map(str::to_owned));
    }
    names.sort_unstable();
    names
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(here().join("cbindgen.toml")).expect("its settings");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for (_, path) in rooms() {
        builder = builder.with_src(path);
    }
    let mut bytes = Vec::new();
    builder.generate().expect("the sources are read").write(&mut bytes);
    let header = String::from_utf8(bytes).expect("text");
    // Types that stand for others in cbindgen.toml end with the star, which belongs to the name.
    let mut header = header.replace("*const* ", " *const *");
    for of in ["char", "void", "size_t", "folddb_value"] {
        header = header
            .replace(&format!("{of}** "), &format!("{of} **"))
            .replace(&format!("{of}* "), &format!("{of} *"));
    }
    for (_, path) in rooms() {
        let source = text(&path);
        if let Some(first) = exported(&source).first() {
            header = with_heading(&header, first, &source);
        }
    }
    header
}

/// The header with the first line of a room's page above its first function.
fn with_heading(header: &str, function: &str, source: &str) -> String {
    let heading = source.lines().next().and_then(|line| line.strip_prefix("//! ")).expect("a page");
    let at =
        header.find(&format!("{function}(")).unwrap_or_else(|| panic!("{function} is not in the header"));
    let begin = header[..at].rfind("\n\n").expect("an empty line before its comment") + 2;
    let rule = "-".repeat(96usize.saturating_sub(heading.chars().count()));
    format!("{}// {heading} {rule}\n\n{}", &header[..begin], &header[begin..])
}

#[test]
fn the_header_is_what_the_sources_say() {
    let path = here().join("include/folddb.h");
    let generated = generated();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &generated).expect("the header is written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == generated,
        "include/folddb.h is not what the sources say: UPDATE=1 cargo test -p folddb-c --test door header"
    );
}

#[test]
fn every_function_says_what_it_returns_and_is_in_the_header() {
    let header = text(&here().join("include/folddb.h"));
    let mut functions = 0;
    for (_, path) in rooms() {
        for function in exported(&text(&path)) {
            functions += 1;
            let at =
                header.find(&format!("{function}(")).unwrap_or_else(|| panic!("{function} is not there"));
            let before = header[..at].trim_end_matches(|letter| letter != '\n').trim_end();
            let comment: Vec<&str> = before.lines().rev().take_while(|line| line.starts_with("//")).collect();
            assert!(!comment.is_empty(), "{function} has no comment");
            let said = comment.iter().rev().map(|line| &line[2..]).collect::<String>();
            let takes_errors = header[at..].split(");").next().unwrap_or_default().contains("char **errptr");
            let names_errors = [" Errors: ", " Otherwise as "].iter().any(|at| said.contains(at));
            assert!(names_errors || !takes_errors, "{function} names no errors: \"Errors: ...\"");
        }
    }
    assert!(functions > 40, "functions are seen: {functions}");
}
