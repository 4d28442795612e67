//! Rules as a person types them: the name of ready-made ones, or one line `name=value` for each
//! that is not the default. A mistake names its line, with a caret under the place.
//!
//! What a store keeps is read by [`TableRules::from_text`] instead: there, text that cannot be read
//! is damaged, or of a newer version.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use super::choices::{Compression, PredicateRule, TableKind};
use super::data::TableRules;
use super::ready_made::READY_MADE;
use super::text::unescape;
use crate::codec::{KeyCodec, ValueCodec};
use crate::folds::{self, SpecError, nearest};
use crate::head::HeadRule;
use crate::terms::IndexRule;
use crate::time::{Expire, Keep};
use crate::value_placement::ValuePlacement;

/// The first line of rules as a store keeps them, which is allowed here, too.
const STORED: &str = "rules 1";

/// The names of rules.
const NAMES: [&str; 21] = [
    "block_bytes",
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
    "log",
    "order",
    "separate",
    "short_circuit",
    "summaries",
    "value",
    "value_placement",
];

impl FromStr for TableRules {
    type Err = SpecError;

    /// Empty text means all defaults: bytes to bytes, a later value replaces the earlier one.
    fn from_str(text: &str) -> Result<TableRules, SpecError> {
        if let Some(rules) = TableRules::ready_made(text.trim()) {
            return Ok(rules);
        }
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
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
        TableRules::from_text(&stored.join("\n"))
            .map_err(|error| mistake(lines.last().unwrap_or(&""), 0, error.message().to_owned()))
    }
}

/// Checks a line; returns the name of its rule.
fn check(line: &str) -> Result<&str, SpecError> {
    let Some((name, value)) = line.split_once('=') else {
        let ready_made = READY_MADE.map(|(name, _)| name);
        let message = format!(
            "expected a rule such as `key=utf8` or `fold=sum:u64`, or one of {}",
            ready_made.join(", ")
        );
        let suggestion = nearest(line, ready_made.into_iter()).map(str::to_owned);
        return Err(SpecError { suggestion, ..mistake(line, 0, message) });
    };
    let at = name.len() + 1;
    let wrong = |why: String| mistake(line, at, why);
    let one_of = |is_one: bool, known: &str| {
        if is_one { Ok(()) } else { Err(wrong(format!("there is no {name} `{value}`; there are {known}"))) }
    };
    let shown = |cause: &dyn Display| wrong(cause.to_string());
    match name {
        "key" => KeyCodec::parse(value).map(drop).map_err(|cause| shown(&cause))?,
        "value" => ValueCodec::parse(value).map(drop).map_err(|cause| shown(&cause))?,
        "fold" => {
            let spec = unescaped(value).ok_or_else(|| wrong(ESCAPES.to_owned()))?;
            if let Err(error) = folds::parse(&spec) {
                let inside = if spec == value { error.at } else { 0 };
                return Err(SpecError { text: line.to_owned(), at: at + inside, ..error });
            }
        }
        "kind" => one_of(TableKind::parse(value).is_some(), "sorted, hashed")?,
        "compression" => one_of(Compression::parse(value).is_some(), "none, lz4")?,
        "value_placement" | "place" => one_of(ValuePlacement::parse(value).is_some(), "segments, files")?,
        "keep" if Keep::parse(value).is_none() => return Err(wrong(Keep::why_no_rule(value))),
        "expire" if Expire::parse(value).is_none() => return Err(wrong(Expire::why_no_rule(value))),
        "head" => {
            let unescaped = unescaped(value).ok_or_else(|| wrong(ESCAPES.to_owned()))?;
            one_of(HeadRule::parse(&unescaped).is_some(), "none, first:N (N up to 1024), json:/POINTER")?;
        }
        "log" => one_of(value == "forever", "forever, or no such line")?,
        "summaries" => one_of(value == "on", "on, or no such line")?,
        "block_bytes" | "filter_bits" | "separate" | "fold_version" if value.parse::<u32>().is_err() => {
            return Err(wrong(format!("expected a whole number, at most {}", u32::MAX)));
        }
        "index" => check_indexes(line, at, value)?,
        "delete" | "short_circuit" => {
            let bytes = unescape(value).ok_or_else(|| wrong(ESCAPES.to_owned()))?;
            one_of(PredicateRule::from_bytes(&bytes).is_some(), "never, equal:BYTES, named:NAME")?;
        }
        _ if NAMES.contains(&name) || name.len() > 1 && name.starts_with('?') => {
            unescaped(value).map(drop).ok_or_else(|| wrong(ESCAPES.to_owned()))?;
        }
        _ => {
            let message = format!("there is no rule `{name}`; there are {}", NAMES.join(", "));
            let suggestion = nearest(name, NAMES.into_iter()).map(|name| format!("{name}={value}"));
            return Err(SpecError { suggestion, ..mistake(line, 0, message) });
        }
    }
    Ok(name)
}

/// How `%`, and bytes that are not printable ASCII, are written.
const ESCAPES: &str = "expected printable ASCII, and %XX for any other byte and for %";

/// Rules of indexes, between which a line ends: `%0a`.
fn check_indexes(line: &str, mut at: usize, value: &str) -> Result<(), SpecError> {
    let mut names = BTreeSet::new();
    for rule in value.split("%0a") {
        let parsed = unescaped(rule).and_then(|rule| IndexRule::parse(&rule));
        let Some(parsed) = parsed else {
            let message =
                "expected NAME:RULE, such as `by_city:json:/address/city`, and %0a before another one";
            return Err(mistake(line, at, message.to_owned()));
        };
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

fn mistake(line: &str, at: usize, message: String) -> SpecError {
    SpecError { text: line.to_owned(), at, message, suggestion: None }
}
