//! Command lines that do not name the store: in the shell, and where the environment variable
//! `FOLDDB_STORE` names it.
//!
//! One rule holds for both: a line is typed without the store, which is put after the verb. No word
//! is guessed to be a store, so it does not depend on what a directory holds what a line does.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use crate::args::Cli;
use crate::messages::STORE_VARIABLE;

/// A command line of the program, with the store that the environment names, if it names one.
pub(crate) fn of_environment(words: Vec<OsString>) -> (Vec<OsString>, Option<PathBuf>) {
    let named = std::env::var_os(STORE_VARIABLE).filter(|named| !named.is_empty()).map(PathBuf::from);
    match (named, words.split_first()) {
        (Some(store), Some((_, rest))) => (put_into(rest, &store), Some(store)),
        _ => (words, None),
    }
}

/// A line without the name of the program, as a command line: the store comes after the verb.
pub(crate) fn put_into<W: Clone + Into<OsString>>(words: &[W], store: &Path) -> Vec<OsString> {
    let words: Vec<OsString> = words.iter().cloned().map(Into::into).collect();
    let verb_at = verb_of(&words);
    let word = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let (verb, next) = (word(verb_at), word(verb_at + 1));
    let is_of_two = matches!(verb, "index" | "feed") || (verb, next) == ("backup", "list");
    let after_verb = (verb_at + 1 + usize::from(is_of_two)).min(words.len());
    let mut line: Vec<OsString> = vec!["folddb".into()];
    line.extend_from_slice(&words[..after_verb]);
    line.extend(store_for((verb, next), &words, store));
    line.extend_from_slice(&words[after_verb..]);
    line
}

/// Whether a line asks for JSON, whatever else may be wrong with it.
pub(crate) fn asks_json<W: AsRef<OsStr>>(words: &[W]) -> bool {
    let mut options = words.iter().map(AsRef::as_ref).take_while(|word| *word != "--");
    options.any(|word| word == "--json")
}

/// The store of a line that is typed, behind the name of the program, and the line from its verb on
/// without the store; none if it names no store.
pub(crate) fn taken_from(words: &[String]) -> Option<(PathBuf, Vec<String>)> {
    let os_words: Vec<OsString> = words.iter().map(Into::into).collect();
    let mut line = words[verb_of(&os_words)..].to_vec();
    if let Some(store) = std::env::var_os(STORE_VARIABLE).filter(|named| !named.is_empty()) {
        return Some((store.into(), line));
    }
    let verb = line.first().map_or("", String::as_str);
    if matches!(verb, "bench" | "restore" | "completions" | "man" | "help") {
        return None;
    }
    let after_verb = 1 + usize::from(matches!(verb, "index" | "feed"));
    let at = after_verb + line.iter().skip(after_verb).position(|word| !word.starts_with('-'))?;
    Some((line.remove(at).into(), line))
}

/// The words that name the store to a verb.
fn store_for((verb, next): (&str, &str), words: &[OsString], store: &Path) -> Vec<OsString> {
    let has = |option: &str| {
        let is = |word: &str| {
            word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        words.iter().any(|word| word.to_str().is_some_and(is))
    };
    match verb {
        "" | "bench" | "restore" | "completions" | "man" | "help" => Vec::new(),
        "backup" if next == "list" => Vec::new(),
        "check-fold" if !has("--table") || has("--store") => Vec::new(),
        "check-fold" => vec!["--store".into(), store.into()],
        _ => vec![store.into()],
    }
}

/// The place of the verb: the first word that is no option for all verbs, nor the value of one.
fn verb_of(words: &[OsString]) -> usize {
    let command = Cli::command();
    let takes_value = |word: &OsString| {
        let name = word.to_str().and_then(|word| word.strip_prefix("--"));
        let option = command.get_arguments().find(|option| name.is_some() && option.get_long() == name);
        option.is_some_and(|option| option.get_action().takes_values())
    };
    let mut at = 0;
    while words.get(at).is_some_and(|word| word.to_string_lossy().starts_with('-')) {
        at += 1 + usize::from(takes_value(&words[at]));
    }
    at.min(words.len())
}

#[cfg(test)]
#[path = "store_word/tests.rs"]
mod tests;
