//! Looks for counter-examples to the law of terms: terms(x·m) ⊆ terms(x) ∪ terms(m).
//!
//! A search, not a proof: values of a table, and some that are made up for folds that take numbers or text, are folded in pairs.
//! Called when an index is made, and by `folddb check-fold`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::datum::Datum;
use crate::extract::Extractor;
use crate::fold::Outcome;
use crate::table_rules::BoundRules;
use crate::terms::{TermRule, Terms, show_term};

/// Values that break the law.
#[derive(Clone, Debug, PartialEq)]
pub struct TermsBroken {
    /// The earlier value.
    pub earlier: Datum,
    /// The later one.
    pub later: Datum,
    /// A term that they have together, and neither by itself.
    pub term: Datum,
}

impl fmt::Display for TermsBroken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "folding brings about a term that is in neither value, so it would not be found: {} and {} have {} together",
            self.earlier, self.later, self.term
        )
    }
}

/// Looks for a counter-example among these records, and some that are made up.
pub fn check_terms(
    table: &BoundRules,
    extractor: &Extractor,
    samples: &[(Vec<u8>, Vec<u8>)],
) -> Option<TermsBroken> {
    let replaces = matches!(table.rules.fold.spec(), "replace" | "first");
    if replaces || extractor.is_of_key() || table.fold.fold().is_none() {
        return None;
    }
    let mut pool: Vec<(Vec<u8>, Vec<u8>)> = samples.to_vec();
    let key = samples.first().map(|(key, _)| key.clone()).unwrap_or_default();
    pool.extend(made_up(table, extractor).into_iter().map(|value| (key.clone(), value)));
    for pair in pool.clone().windows(2) {
        let folded = fold(table, &key, &pair[0].1, &pair[1].1);
        pool.extend(folded.map(|value| (key.clone(), value)));
    }
    let breaks =
        |(key, x): &(Vec<u8>, Vec<u8>)| pool.iter().find_map(|(_, m)| try_pair(table, extractor, key, x, m));
    pool.iter().find_map(breaks)
}

fn try_pair(
    table: &BoundRules,
    extractor: &Extractor,
    key: &[u8],
    x: &[u8],
    m: &[u8],
) -> Option<TermsBroken> {
    let together = fold(table, key, x, m)?;
    let (mut before, mut after) = (Terms::default(), Terms::default());
    extractor.take(table, key, x, &mut before);
    extractor.take(table, key, m, &mut before);
    extractor.take(table, key, &together, &mut after);
    let term = show_term(after.iter().find(|term| !before.has(term))?);
    let shown = |value: &[u8]| table.show_value(value).unwrap_or_else(|_| Datum::from_bytes(value));
    Some(TermsBroken { earlier: shown(x), later: shown(m), term })
}

/// What two values fold to; none where they do not.
fn fold(table: &BoundRules, key: &[u8], x: &[u8], m: &[u8]) -> Option<Vec<u8>> {
    let fold = table.fold.fold()?;
    let mut out = Vec::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| fold.fold(key, x, m, &mut out))).ok()?.ok()?;
    match outcome {
        Outcome::Value => Some(out),
        Outcome::KeepEarlier => Some(x.to_vec()),
        Outcome::KeepLater => Some(m.to_vec()),
        Outcome::Delete => None,
    }
}

/// Values that the fold of the table takes, as far as it takes numbers or text.
fn made_up(table: &BoundRules, extractor: &Extractor) -> Vec<Vec<u8>> {
    let text = |text: &str| Datum::Text(text.to_owned());
    let seeds =
        [Datum::Int(1), Datum::Int(2), Datum::Int(5), Datum::Float(0.25), text("a"), text("b"), text("1")];
    let wrapped = |datum: Datum| match extractor.rule() {
        TermRule::Field(name) => Datum::Map(vec![(name.clone(), datum)]),
        _ => datum,
    };
    let read = |datum| {
        let mut value = Vec::new();
        table.read_value(&wrapped(datum), &mut value).ok().map(|()| value)
    };
    seeds.into_iter().filter_map(read).collect()
}

#[cfg(test)]
#[path = "term_law/tests.rs"]
mod tests;
