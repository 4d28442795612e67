//! Parts of the rules of a table, as they are typed.

use folddb::codec::ValueCodec;
use folddb::folds::FoldSpec;
use folddb::table_rules::TableRules;
use folddb::{IndexRule, ParseError};

use crate::failure::Failure;
use crate::messages::STORE_VARIABLE;
use crate::session::is_reserved;

/// Refuses a name that is kept for tables of the command line's own, and one that is most likely
/// that of a store.
pub(crate) fn check_table_name(table: &str) -> Result<(), Failure> {
    if is_reserved(table) {
        let why = format!("folddb keeps its own notes in `{table}` and the like: name another table");
        return Err(Failure::Usage(why));
    }
    let store = std::env::var_os(STORE_VARIABLE).filter(|named| !named.is_empty());
    let why = store.and_then(|store| why_no_table(table, &store.to_string_lossy()));
    why.map_or(Ok(()), |why| Err(Failure::Usage(why)))
}

/// Why a word is no name of a new table where the environment names the store: it looks like a
/// store.
fn why_no_table(table: &str, store: &str) -> Option<String> {
    table.ends_with(".folddb").then(|| {
        format!(
            "{STORE_VARIABLE} names the store, so the line does not: it is {store}, and `{table}` would be a table of \
             it; for the store {table} say {STORE_VARIABLE}={table} (for a table of that name, leave \
             {STORE_VARIABLE} empty and name the store: {STORE_VARIABLE}= folddb create {store} {table})"
        )
    })
}

/// An index as it is typed: `NAME:RULE`.
pub(crate) fn rule(text: &str) -> Result<IndexRule, Failure> {
    text.parse().map_err(|error: ParseError| Failure::Usage(error.to_string()))
}

/// Refuses a lifetime for a value of a table with values that never expire.
pub(crate) fn check_expires(table: &str, rules: &TableRules) -> Result<(), Failure> {
    if rules.expire.has_stamps() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the values of table `{table}` never expire: create it with --expire by-write, or with a time"
    )))
}

/// The types of values that say the same as the fold of this spec, if any do; the first is the
/// usual one. None for a fold that takes values of any type.
fn types_of(spec: &str) -> Option<Vec<&str>> {
    let (stem, of) = spec.split_once(':').unwrap_or((spec, ""));
    match stem {
        "replace" | "first" => None,
        "sum" | "min" | "max" | "stats" => Some(vec![of]),
        "append" => Some(vec!["utf8", "bytes"]),
        "json-merge" | "patch" => Some(vec!["json"]),
        "quantiles" => Some(vec!["f64"]),
        "bitmap" => Some(vec!["u32"]),
        _ => Some(Vec::new()),
    }
}

/// Refuses a type of values that this option gives, if the fold has another one: the option would
/// have no effect.
pub(crate) fn check_value_type(
    option: &str,
    codec: ValueCodec,
    whose: &str,
    spec: &str,
) -> Result<(), Failure> {
    let spec = &spec.parse::<FoldSpec>().map_or(spec.to_owned(), |fold| fold.to_string());
    let Some(types) = types_of(spec).filter(|types| !types.contains(&codec.name())) else { return Ok(()) };
    let takes = match types.first() {
        Some(usual) => format!("takes {usual}, not {codec}"),
        None => format!("has values of a form of its own, not {codec}"),
    };
    let instead = match types.first() {
        Some(usual) if option.ends_with('=') => format!("leave {option} out, or say {option}{usual}"),
        Some(usual) => format!("leave {option} out, or say {option} {usual}"),
        None => format!("leave {option} out"),
    };
    Err(Failure::Usage(format!(
        "in {option}: {whose} `{spec}`, which {takes}; {instead} (only values that replace one another have a type \
         of their own)"
    )))
}

#[cfg(test)]
#[path = "rules_words/tests.rs"]
mod tests;
