//! Which files an import reads: those that are named, those below directories that are named, and
//! those that patterns match, in a stable order and each once.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// What a command line names.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) files: Vec<String>,
    /// What is not there, or cannot be read below a directory or a pattern, and why: by its name.
    pub(crate) refused: Vec<(String, Failure)>,
}

/// The files of a command line. `-` is stdin. Those of the store that takes their rows are none of
/// a directory in which it is. What names no file is refused as a file is that cannot be read: the
/// only word ends the command, and one of several does not keep the others out.
pub(crate) fn named(words: &[String], store: &Path) -> Result<Named, Failure> {
    let (mut named, but) = (Named::default(), store.canonicalize().ok());
    for word in words {
        match add(word, but.as_slice(), &mut named) {
            Err(failure @ (Failure::NoFile(_) | Failure::Refused(_))) if words.len() > 1 => {
                named.refused.push((word.clone(), failure));
            }
            added => added?,
        }
    }
    let mut seen = std::collections::HashSet::new();
    named.files.retain(|file| seen.insert(file.clone()));
    if named.len() > 1 && named.files.iter().any(|file| file == "-") {
        return Err(Failure::Usage("stdin (`-`) is read alone, not beside files".to_owned()));
    }
    Ok(named)
}

fn add(word: &str, but: &[PathBuf], named: &mut Named) -> Result<(), Failure> {
    if word == "-" {
        named.files.push(word.to_owned());
        return Ok(());
    }
    let path = Path::new(word);
    match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => below(path, but, named),
        Ok(_) => {
            named.files.push(word.to_owned());
            Ok(())
        }
        Err(_) if word.contains(['*', '?', '[']) => matching(word, named),
        Err(error) => Err(Failure::file("open", word, &error)),
    }
}

impl Named {
    /// Adds a file that was found, if its name is a text.
    fn push(&mut self, path: &Path) {
        match path.to_str() {
            Some(name) => self.files.push(name.to_owned()),
            None => {
                let name = path.display().to_string();
                let message = format!("the name of {name} is not UTF-8 text: rename the file");
                self.refused.push((name, Failure::Refused(message)));
            }
        }
    }

    fn len(&self) -> usize {
        self.files.len() + self.refused.len()
    }
}

/// The files below a directory, by the order of their paths. Hidden ones are left out, and what is
/// no file: nobody may ever write to a pipe. What cannot be looked at is among them, so that it is
/// named when its turn comes. Directories that are read already are left out: one may be within
/// itself, by a link.
fn below(dir: &Path, but: &[PathBuf], named: &mut Named) -> Result<(), Failure> {
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
    let before = named.len();
    for path in paths {
        let is_dir = match fs::metadata(&path) {
            Ok(facts) if facts.is_dir() => fs::read_dir(&path).is_ok(),
            Ok(facts) if !facts.is_file() => continue,
            _ => false,
        };
        match is_dir {
            true if path.canonicalize().is_ok_and(|path| but.contains(&path)) => {}
            true => below_or_empty(&path, &but, named)?,
            false => named.push(&path),
        }
    }
    match named.len() == before {
        true => Err(Failure::NoFile(format!("{} is a directory without files", dir.display()))),
        false => Ok(()),
    }
}

fn below_or_empty(dir: &Path, but: &[PathBuf], named: &mut Named) -> Result<(), Failure> {
    match below(dir, but, named) {
        Err(Failure::NoFile(_)) => Ok(()),
        other => other,
    }
}

/// The files that match a pattern, by the order of their paths. As in a shell, hidden ones are
/// those of a pattern that names the dot. A directory that cannot be looked into may have some: it
/// is refused. A link to nothing is named when its turn comes.
fn matching(pattern: &str, named: &mut Named) -> Result<(), Failure> {
    let wrong = |error: glob::PatternError| Failure::Usage(format!("{pattern} is no pattern: {error}"));
    let (dots, before) = (hidden_in(pattern), named.len());
    let mut found: Vec<PathBuf> = Vec::new();
    for path in glob::glob(pattern).map_err(wrong)? {
        match path {
            Ok(path) => found.push(path),
            Err(error) => {
                let name = error.path().display().to_string();
                let failure = Failure::file("read", &name, error.error());
                named.refused.push((name, failure));
            }
        }
    }
    found.retain(|path| {
        let is_link_to_nothing = || fs::metadata(path).is_err() && path.is_symlink();
        hidden_in(&path.to_string_lossy()) <= dots && (path.is_file() || is_link_to_nothing())
    });
    found.sort();
    found.iter().for_each(|path| named.push(path));
    match named.len() == before {
        true => Err(Failure::NoFile(format!("no file matches {pattern}"))),
        false => Ok(()),
    }
}

/// How many of the names in a path are hidden.
fn hidden_in(path: &str) -> usize {
    path.split('/').filter(|name| name.starts_with('.') && !matches!(*name, "." | "..")).count()
}
