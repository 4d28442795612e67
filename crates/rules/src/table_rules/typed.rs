//! Rules as a person types them: the name of ready-made ones, or one line `name=value` for each
//! that is not the default. A mistake names its line, with a caret under the place.
//!
//! What a store keeps is read by [`TableRules::from_stored`] instead: there, text that cannot be
//! read is damaged, or of a newer version.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::choices::{Compression, PredicateRule, TableKind};
use super::data::TableRules;
use super::escape::{ESCAPES, unescape};
use super::ready_made::READY_MADE;
use crate::codec::{KeyCodec, ValueCodec};
use crate::folds::FoldSpec;
use crate::head::HeadRule;
use crate::parse_error::{ParseError, nearest};
use crate::terms::IndexRule;
use crate::time::{Expire, Keep};
use crate::value_placement::ValuePlacement;

/// The first line of rules as a store keeps them, which is allowed here, too.
const STORED: &str = "rules 1";

/// The names of rules.
const NAMES: [&str; 22] = [
    "archive_log",
    "block_bytes",
    "bottom_compression",
    "compression",
    "custom_fold",
    "delete",
    "expire",
    "filter_bits",
    "fold",
    "fold_version",
    "head",
    "index",
    "index_of",
    "keep",
    "key",
    "kind",
    "order",
    "separate",
    "short_circuit",
    "summaries",
    "value",
    "value_placement",
];

impl FromStr for TableRules {
    type Err = ParseError;

    /// Also reads what `to_string` writes. Empty text means all defaults: bytes to bytes, a later
    /// value replaces the earlier one.
    fn from_str(text: &str) -> Result<TableRules, ParseError> {
        if let Some(rules) = TableRules::ready_made(text.trim()) {
            return Ok(rules);
        }
        let is_stored = text.lines().next() == Some(STORED); // blanks at the end of a value count
        let trimmed = |line| if is_stored { str::trim_start(line) } else { str::trim(line) };
        let lines: Vec<&str> = text.lines().map(trimmed).filter(|line| !line.is_empty()).collect();
        let lines = lines.strip_prefix(&[STORED]).unwrap_or(&lines);
        let mut met = BTreeSet::new();
        for line in lines {
            let name = check(line)?;
            if !met.insert(name) {
                return Err(mistake(line, 0, format!("`{name}` is said twice")));
            }
        }
        let has_fold = met.contains("fold") || met.contains("custom_fold");
        let default = (!has_fold).then_some("fold=replace");
        let stored: Vec<&str> = std::iter::once(STORED).chain(lines.iter().copied()).chain(default).collect();
        // The remaining checks concern several lines: two folds, for instance.
        TableRules::from_stored(&stored.join("\n"))
            .map_err(|error| mistake(lines.last().unwrap_or(&""), 0, error.message().to_owned()))
    }
}

/// Checks a line; returns the name of its rule.
fn check(line: &str) -> Result<&str, ParseError> {
    let Some((name, value)) = line.split_once('=') else {
        let ready_made = READY_MADE.map(|(name, _)| name);
        let message = format!(
            "expected a rule such as `key=utf8` or `fold=sum:u64`, or one of {}",
            ready_made.join(", ")
        );
        let suggestion = nearest(line, ready_made.into_iter()).map(str::to_owned);
        return Err(mistake(line, 0, message).suggest(suggestion));
    };
    let at = name.len() + 1;
    let wrong = |why: String| mistake(line, at, why);
    let one_of = |is_one: bool, known: &str| {
        if is_one {
            Ok(())
        } else {
            Err(wrong(format!("there is no {name} `{value}`; the choices are {known}")))
        }
    };
    match name {
        "key" => check_part::<KeyCodec>(line, at, value)?,
        "value" => check_part::<ValueCodec>(line, at, value)?,
        "kind" => check_part::<TableKind>(line, at, value)?,
        "bottom_compression" | "compression" => check_part::<Compression>(line, at, value)?,
        "value_placement" | "place" => check_part::<ValuePlacement>(line, at, value)?,
        "keep" => check_part::<Keep>(line, at, value)?,
        "expire" => check_part::<Expire>(line, at, value)?,
        "delete" | "short_circuit" => check_part::<PredicateRule>(line, at, value)?,
        "fold" => check_escaped::<FoldSpec>(line, at, value)?,
        "head" => check_escaped::<HeadRule>(line, at, value)?,
        "log" => one_of(value == "forever", "forever, which is now written `archive_log=on`")?,
        "archive_log" | "summaries" => one_of(value == "on", "on, or no such line")?,
        "block_bytes" | "filter_bits" | "separate" | "fold_version" if value.parse::<u32>().is_err() => {
            return Err(wrong(format!("expected a whole number, at most {}", u32::MAX)));
        }
        "index" => check_indexes(line, at, value)?,
        _ if name.starts_with('?') => {
            unescape(value).map(drop).ok_or_else(|| wrong(ESCAPES.to_owned()))?;
        }
        _ if NAMES.contains(&name) => {
            unescaped(value).map(drop).ok_or_else(|| wrong(ESCAPES.to_owned()))?;
        }
        _ => {
            let message = format!("there is no rule `{name}`; the choices are {}", NAMES.join(", "));
            let suggestion = nearest(name, NAMES.into_iter()).map(|name| format!("{name}={value}"));
            return Err(mistake(line, 0, message).suggest(suggestion));
        }
    }
    Ok(name)
}

/// Checks the value of a line, which begins at this byte of it.
fn check_part<T: FromStr<Err = ParseError>>(line: &str, at: usize, value: &str) -> Result<(), ParseError> {
    value.parse::<T>().map(drop).map_err(|error| error.within(line, at))
}

/// As [`check_part`], for a value with escapes: there, the place of a mistake is not its place in
/// the line.
fn check_escaped<T: FromStr<Err = ParseError>>(line: &str, at: usize, value: &str) -> Result<(), ParseError> {
    let text = unescaped(value).ok_or_else(|| mistake(line, at, ESCAPES.to_owned()))?;
    if text == value {
        return check_part::<T>(line, at, value);
    }
    text.parse::<T>().map(drop).map_err(|error| mistake(line, at, error.message().to_owned()))
}

/// Rules of indexes, separated by `%0a`, an escaped line end.
fn check_indexes(line: &str, mut at: usize, value: &str) -> Result<(), ParseError> {
    let mut names = BTreeSet::new();
    for rule in value.split("%0a") {
        check_escaped::<IndexRule>(line, at, rule)?;
        let parsed = unescaped(rule).and_then(|rule| rule.parse::<IndexRule>().ok());
        let Some(parsed) = parsed else { continue };
        if !names.insert(parsed.name.clone()) {
            return Err(mistake(line, at, format!("there are two indexes `{}`", parsed.name)));
        }
        at += rule.len() + "%0a".len();
    }
    Ok(())
}

fn unescaped(value: &str) -> Option<String> {
    String::from_utf8(unescape(value)?).ok()
}

fn mistake(line: &str, at: usize, message: String) -> ParseError {
    ParseError::at_byte(line, at, message)
}
