//! Which files an import reads: those that are named, those below directories that are named, and
//! those that patterns match, in a stable order and each once.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The files of a command line. `-` is stdin. Those of the store that takes their rows are none of
/// a directory in which it is.
pub(crate) fn named(words: &[String], store: &Path) -> Result<Vec<String>, Failure> {
    let (mut files, but) = (Vec::new(), store.canonicalize().ok());
    for word in words {
        add(word, but.as_slice(), &mut files)?;
    }
    let mut unique: Vec<String> = Vec::with_capacity(files.len());
    let mut seen = std::collections::HashSet::new();
    for file in files {
        if seen.insert(file.clone()) {
            unique.push(file);
        }
    }
    if unique.len() > 1 && unique.iter().any(|file| file == "-") {
        return Err(Failure::Usage("stdin (`-`) is read alone, not beside files".to_owned()));
    }
    Ok(unique)
}

fn add(word: &str, but: &[PathBuf], files: &mut Vec<String>) -> Result<(), Failure> {
    if word == "-" {
        files.push(word.to_owned());
        return Ok(());
    }
    let path = Path::new(word);
    match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => below(path, but, files),
        Ok(_) => {
            files.push(word.to_owned());
            Ok(())
        }
        Err(_) if word.contains(['*', '?', '[']) => matching(word, files),
        Err(error) => Err(Failure::file("open", word, &error)),
    }
}

/// The files below a directory, by the order of their paths. Hidden ones are left out, and what is
/// no file: nobody may ever write to a pipe. What cannot be looked at is among them, so that it is
/// named when its turn comes. Directories that are read already are left out: one may be within
/// itself, by a link.
fn below(dir: &Path, but: &[PathBuf], files: &mut Vec<String>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file("read", &dir.display().to_string(), &error);
    let but = [but, &[dir.canonicalize().map_err(failed)?]].concat();
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let before = files.len();
    for path in paths {
        let is_dir = match fs::metadata(&path) {
            Ok(facts) if facts.is_dir() => fs::read_dir(&path).is_ok(),
            Ok(facts) if !facts.is_file() => continue,
            _ => false,
        };
        match (is_dir, path.to_str()) {
            (true, _) if path.canonicalize().is_ok_and(|path| but.contains(&path)) => {}
            (true, _) => below_or_empty(&path, &but, files)?,
            (false, Some(name)) => files.push(name.to_owned()),
            (false, None) => {
                let message = format!("the name of {} is not UTF-8 text: rename the file", path.display());
                return Err(Failure::Refused(message));
            }
        }
    }
    match files.len() == before {
        true => Err(Failure::NoFile(format!("{} is a directory without files", dir.display()))),
        false => Ok(()),
    }
}

fn below_or_empty(dir: &Path, but: &[PathBuf], files: &mut Vec<String>) -> Result<(), Failure> {
    match below(dir, but, files) {
        Err(Failure::NoFile(_)) => Ok(()),
        other => other,
    }
}

/// The files that match a pattern, by the order of their paths. As in a shell, hidden ones are
/// those of a pattern that names the dot.
fn matching(pattern: &str, files: &mut Vec<String>) -> Result<(), Failure> {
    let wrong = |error: glob::PatternError| Failure::Usage(format!("{pattern} is no pattern: {error}"));
    let named = hidden_in(pattern);
    let mut found: Vec<String> = Vec::new();
    for path in glob::glob(pattern).map_err(wrong)?.flatten() {
        let name = path.to_string_lossy();
        if path.is_file() && hidden_in(&name) <= named {
            found.push(name.into_owned());
        }
    }
    if found.is_empty() {
        return Err(Failure::NoFile(format!("no file matches {pattern}")));
    }
    found.sort();
    files.append(&mut found);
    Ok(())
}

/// How many of the names in a path are hidden.
fn hidden_in(path: &str) -> usize {
    path.split('/').filter(|name| name.starts_with('.') && !matches!(*name, "." | "..")).count()
}
