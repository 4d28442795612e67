//! Completion at the prompt: verbs, options, tables, keys, files.

use clap::{Command, CommandFactory};
use folddb::{BytesTable, Datum, Store};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::line::{self, Typing};
use crate::args::{Cli, RangeArgs};
use crate::human;
use crate::ranges;
use crate::render::columns::Columns;
use crate::session::is_reserved;

/// Verbs that do not apply in a shell.
const OUTSIDE: [&str; 9] =
    ["shell", "completions", "man", "help", "verify", "repair", "freeze", "thaw", "bench"];

/// Most elements of keys that are looked up for one completion.
const SEEKS_MAX: usize = 200;

/// The verbs of a shell.
pub(crate) fn verbs() -> Vec<String> {
    let command = Cli::command();
    let names = command.get_subcommands().map(|verb| verb.get_name().to_owned());
    let own = ["help", "exit", "use", "begin", "commit", "abort"].map(str::to_owned);
    names.filter(|name| !OUTSIDE.contains(&name.as_str())).chain(own).collect()
}

/// What completes the word that is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Verb,
    Option,
    Table,
    /// Element of a key of this table, after these.
    Key {
        table: String,
        before: Vec<String>,
    },
    /// Column of this table; several stand between commas.
    Column(String),
    /// Index of this table.
    Index(String),
    File,
}

/// What takes a column.
pub(crate) const OF_COLUMNS: [&str; 5] = ["--sort", "--columns", "--by", "--plot", "--spark"];

/// What takes a key, or its first elements.
pub(crate) const OF_KEYS: [&str; 5] = ["--prefix", "--from", "--after", "--before", "--through"];

/// What a word after these is to be.
pub(crate) fn wanted(words: &[String], word: &str, is_table: impl Fn(&str) -> bool) -> Wanted {
    let Some(verb) = words.first() else { return Wanted::Verb };
    let is_target = |word: &String| matches!(word.as_str(), "|" | ">" | ">>");
    if words.iter().any(is_target) || verb == "use" {
        return Wanted::File;
    }
    if word.starts_with('-') {
        return Wanted::Option;
    }
    if verb == "help" {
        return Wanted::Verb;
    }
    let Some(at) = words.iter().skip(1).position(|word| is_table(word)) else {
        let names_file = matches!(verb.as_str(), "backup" | "diff" | "sync" | "load" | "restore");
        return if names_file { Wanted::File } else { Wanted::Table };
    };
    let rest = &words[at + 2..];
    if words.last().is_some_and(|last| OF_COLUMNS.contains(&last.as_str())) {
        return Wanted::Column(words[at + 1].clone());
    }
    if rest.is_empty() && (verb == "find" || verb == "index" && words[1] == "drop") {
        return Wanted::Index(words[at + 1].clone());
    }
    let takes_file = ["import", "export", "import-dir", "export-dir"].contains(&verb.as_str());
    let last = rest.iter().rposition(|word| word.starts_with("--")).map_or("", |at| &rest[at][2..]);
    if takes_file && last.is_empty() || ["to", "file", "against", "bad-rows"].contains(&last) {
        return Wanted::File;
    }
    let is_word = |word: &&String| !word.starts_with('-');
    let begin = rest.iter().rposition(|word| word.starts_with("--")).map_or(0, |at| at + 1);
    Wanted::Key {
        table: words[at + 1].clone(),
        before: rest[begin..].iter().filter(is_word).cloned().collect(),
    }
}

/// The words before the one that is typed, and how much of that is an option before its value, as
/// in `--columns=a,b`: the option is the last of the words then.
pub(crate) fn behind_equals(words: &[String], typed: &str) -> (Vec<String>, usize) {
    match typed.split_once('=') {
        Some((option, _)) if option.starts_with("--") => {
            let words = words.iter().cloned().chain([option.to_owned()]).collect();
            (words, option.len() + 1)
        }
        _ => (words.to_vec(), 0),
    }
}

/// The values that an option takes which is typed last, if it takes one that names nothing in a
/// store; none are known if they are no few words.
pub(crate) fn values(program: &Command, words: &[String]) -> Option<Vec<String>> {
    let (verb, last) = (words.first()?, words.last()?.as_str());
    if last == "--table" || OF_COLUMNS.contains(&last) || OF_KEYS.contains(&last) {
        return None;
    }
    let name = last.strip_prefix("--").filter(|name| !name.is_empty())?;
    let mut options = program.find_subcommand(verb)?.get_arguments().chain(program.get_arguments());
    let option = options.find(|option| option.get_long() == Some(name))?;
    let shown = option.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    option.get_action().takes_values().then(|| shown.map(|value| value.get_name().to_owned()).collect())
}

/// Completes words at the prompt.
pub(super) struct Words {
    verbs: Vec<String>,
    command: Command,
    files: FilenameCompleter,
    pub(super) store: Store,
}

impl Words {
    pub(super) fn of(store: Store) -> Words {
        Words { verbs: verbs(), command: Cli::command(), files: FilenameCompleter::new(), store }
    }

    /// The options of a verb, and those of all.
    fn options(&self, verb: &str) -> Vec<String> {
        let of_verb = self.command.find_subcommand(verb).into_iter().flat_map(Command::get_arguments);
        let all = of_verb.chain(self.command.get_arguments()).filter(|option| !option.is_hide_set());
        all.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect()
    }
}

fn tables(store: &Store) -> Vec<String> {
    store.tables().into_iter().filter(|name| !is_reserved(name)).collect()
}

/// What a word after these is to be, with this store.
pub(crate) fn wanted_in(store: &Store, words: &[String], typed: &str) -> Wanted {
    let tables = tables(store);
    wanted(words, typed, |word| tables.iter().any(|table| table == word))
}

/// What a word may be that names something in a store.
pub(crate) fn names(store: &Store, wanted: Wanted, typed: &str) -> Vec<String> {
    let open = |table: &str| store.bytes_table(table).ok();
    match wanted {
        Wanted::File | Wanted::Verb | Wanted::Option => Vec::new(),
        Wanted::Table => tables(store),
        Wanted::Column(table) => {
            let names = open(&table).map(|table| Columns::of(table.rules(), false, false).names());
            behind_commas(names.unwrap_or_default(), typed)
        }
        Wanted::Index(table) => open(&table).map(|table| index_names(&table)).unwrap_or_default(),
        Wanted::Key { table, before } => {
            open(&table).and_then(|table| elements(&table, &before, typed)).unwrap_or_default()
        }
    }
}

/// Whether a word completes what is typed. What a terminal would obey, and not show, is not shown.
pub(crate) fn is_shown(word: &str, typed: &str) -> bool {
    word.starts_with(typed) && !word.contains(human::is_obeyed)
}

/// The elements of keys that are there after some others, each found by one seek.
fn elements(table: &BytesTable, before: &[String], typed: &str) -> Option<Vec<String>> {
    let codec = table.rules().as_table_rules().key_codec();
    if before.len() >= codec.element_types().map_or(1, <[_]>::len) {
        return None; // the key is whole
    }
    let with = |element: &str| before.iter().cloned().chain([element.to_owned()]).collect();
    let mut range = RangeArgs { prefix: before.to_vec(), ..RangeArgs::default() };
    if !typed.is_empty()
        && ranges::narrow(table, &RangeArgs { from: with(typed), ..RangeArgs::default() }).is_ok()
    {
        range.from = with(typed);
    }
    let mut found = Vec::new();
    for _ in 0..SEEKS_MAX {
        let mut rows = ranges::narrow(table, &range).ok()?.keys_only().limit(1).rows().ok()?;
        let Some((key, _)) = rows.next_row().ok()? else { break };
        let element = match codec.show(key).ok()? {
            Datum::List(items) => items.get(before.len())?.to_string(),
            one => one.to_string(),
        };
        (range.from, range.after) = (Vec::new(), with(&element));
        if element.starts_with(typed) {
            found.push(element);
        }
    }
    Some(found)
}

/// Names, behind those that are typed already.
fn behind_commas(names: Vec<String>, typed: &str) -> Vec<String> {
    let before = typed.rfind(',').map_or("", |comma| &typed[..=comma]);
    names.iter().map(|name| format!("{before}{name}")).collect()
}

fn index_names(table: &BytesTable) -> Vec<String> {
    table.indexes().iter().map(|index| index.rule.name.clone()).collect()
}

/// A word as it is typed.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:@%+,=".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let begun = line::commands_of(&line[..at]).pop().unwrap_or_default();
        let typing = Typing::of(begun, "");
        let (words, value_at) = behind_equals(&typing.before, &typing.word);
        let (option, typed) = typing.word.split_at(value_at);
        let known = match (wanted_in(&self.store, &words, typed), values(&self.command, &words)) {
            (Wanted::Table | Wanted::Key { .. }, Some(values)) => values,
            (Wanted::File, _) => return self.files.complete(line, at, context),
            (Wanted::Verb, _) => self.verbs.clone(),
            (Wanted::Option, _) => self.options(&words[0]),
            (of_store, _) => names(&self.store, of_store, typed),
        };
        let fits = known.into_iter().filter(|word| is_shown(word, typed));
        Ok((
            at - begun.len() + typing.begin,
            fits.map(|word| Pair { replacement: format!("{option}{} ", quoted(&word)), display: word })
                .collect(),
        ))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}

#[cfg(test)]
#[path = "words/tests.rs"]
mod tests;
