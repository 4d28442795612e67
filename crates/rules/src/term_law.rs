//! Looks for counter-examples to the law of terms: terms(x·m) ⊆ terms(x) ∪ terms(m).
//!
//! A search, not a proof: values of a table, and some that are made up for what its fold takes
//! (numbers, text, pairs, edits, fields of records, documents if the rule needs them), are folded
//! in pairs. If no two of them fold, nothing was tried: the index is refused until the table has
//! records to try it with. Called when an index is made, and by `verify`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::codec::tuple::{self, Element};
use crate::datum::Datum;
use crate::datum::{json, json_text};
use crate::extract::Extractor;
use crate::fold::Outcome;
use crate::folds::Record;
use crate::head::HeadRule;
use crate::table_rules::BoundRules;
use crate::terms::{TermRule, Terms, show_term};

/// How many fields of a record are made up, if the rule names none.
const FIELDS_MADE_UP_MAX: usize = 8;

/// Why an index is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum TermsDoubt {
    /// Values break the law.
    Broken(TermsBroken),
    /// The fold takes no two of the values.
    NotTried,
}

impl fmt::Display for TermsDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TermsDoubt::Broken(case) => case.fmt(f),
            TermsDoubt::NotTried => f.write_str(
                "there are no values with which to check that folding makes no new terms: \
                 add the index when the table has records",
            ),
        }
    }
}

/// Values that break the law.
#[derive(Clone, Debug, PartialEq)]
pub struct TermsBroken {
    /// The earlier value.
    pub earlier: Datum,
    /// The later one.
    pub later: Datum,
    /// A term that their fold has, but neither of them.
    pub term: Datum,
}

impl fmt::Display for TermsBroken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "folding makes a term that is in neither value, so it would not be found: {} and {} have {} together",
            self.earlier, self.later, self.term
        )
    }
}

/// Looks for a counter-example among these records, and some that are made up.
///
/// # Errors
/// The counter-example, or that there was nothing to try.
pub fn check_terms(
    table: &BoundRules,
    extractor: &Extractor,
    samples: &[(Vec<u8>, Vec<u8>)],
) -> Result<(), TermsDoubt> {
    let replaces = matches!(table.rules.fold.spec(), "replace" | "first");
    if replaces || extractor.is_of_key() || table.fold.fold().is_none() {
        return Ok(());
    }
    let mut pool: Vec<(Vec<u8>, Vec<u8>)> = samples.to_vec();
    let key = samples.first().map(|(key, _)| key.clone()).unwrap_or_default();
    pool.extend(made_up(table, extractor).into_iter().map(|value| (key.clone(), value)));
    for pair in pool.clone().windows(2) {
        let folded = fold(table, &key, &pair[0].1, &pair[1].1);
        pool.extend(folded.map(|value| (key.clone(), value)));
    }
    let mut folded = 0;
    for (key, x) in &pool {
        for (_, m) in &pool {
            let Some(together) = fold(table, key, x, m) else { continue };
            folded += 1;
            if let Some(case) = try_pair(table, extractor, (key, x, m), &together) {
                return Err(TermsDoubt::Broken(case));
            }
        }
    }
    if folded == 0 { Err(TermsDoubt::NotTried) } else { Ok(()) }
}

fn try_pair(
    table: &BoundRules,
    extractor: &Extractor,
    (key, x, m): (&[u8], &[u8], &[u8]),
    together: &[u8],
) -> Option<TermsBroken> {
    let (mut before, mut after) = (Terms::default(), Terms::default());
    extractor.take(table, key, x, &mut before);
    extractor.take(table, key, m, &mut before);
    extractor.take(table, key, together, &mut after);
    let term = show_term(after.iter().find(|term| !before.has(term))?);
    let shown = |value: &[u8]| table.show_value(value).unwrap_or_else(|_| Datum::from_bytes(value));
    Some(TermsBroken { earlier: shown(x), later: shown(m), term })
}

/// What two values fold to; none if they do not fold.
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

/// Made-up values. The fold of the table may take some of them.
fn made_up(table: &BoundRules, extractor: &Extractor) -> Vec<Vec<u8>> {
    let mut seeds = seeds();
    let fields = fields_to_fill(table, extractor);
    let wrapped: Vec<Datum> = fields
        .iter()
        .flat_map(|name| seeds.iter().map(|seed| Datum::Map(vec![(name.clone(), seed.clone())])))
        .collect();
    seeds.extend(wrapped);
    seeds.extend(shaped(table, extractor));
    let read = |datum: &Datum| {
        let mut value = Vec::new();
        table.read_value(datum, &mut value).ok().map(|()| value)
    };
    let mut values: Vec<Vec<u8>> = seeds.iter().filter_map(read).collect();
    // For a fold that reads none of these, but has values of a fixed length.
    let len = table.fold.fold().and_then(|fold| fold.fixed_len()).unwrap_or(0);
    let plain = [1u8, 2, 5].map(|low| (0..len).map(|at| if at == 0 { low } else { 0 }).collect::<Vec<u8>>());
    values.extend(plain.into_iter().filter(|value| len > 0 && table.check_value(value).is_ok()));
    // A fold that appends tuples appends whole ones: other bytes that happen to be a tuple prove
    // nothing.
    let joins_tuples = matches!(extractor.rule(), TermRule::Tuple(_))
        && table.fold.fold().is_some_and(|fold| fold.joins_with().is_some());
    values.retain(|value| !joins_tuples || tuple::check(value).is_ok());
    let mut seen = std::collections::BTreeSet::new();
    values.retain(|value| seen.insert(value.clone()));
    values
}

/// Numbers, text, pairs of a number and a text, numbers together, an edit.
fn seeds() -> Vec<Datum> {
    let text = |text: &str| Datum::Text(text.to_owned());
    vec![
        Datum::Int(1),
        Datum::Int(2),
        Datum::Int(5),
        Datum::Float(0.25),
        text("a"),
        text("b"),
        text("1"),
        Datum::List(vec![Datum::Int(1), text("a")]),
        Datum::List(vec![Datum::Int(2), text("b")]),
        Datum::List(vec![Datum::Int(2), Datum::Int(3), Datum::Float(40.5)]),
        Datum::Map(vec![("append".to_owned(), text("c"))]),
        // Many, and some far above them: a rank near the end is another number only among many.
        Datum::List((1..=150).map(Datum::Int).collect()),
        Datum::List([1000, 2000, 4000].map(Datum::Int).to_vec()),
    ]
}

/// The fields that values are given, one at a time.
fn fields_to_fill(table: &BoundRules, extractor: &Extractor) -> Vec<String> {
    match extractor.rule() {
        TermRule::Field(name) => vec![name.clone()],
        _ => match table.rules.fold.spec().parse::<Record>() {
            Ok(record) => record.names().take(FIELDS_MADE_UP_MAX).map(str::to_owned).collect(),
            Err(_) => Vec::new(),
        },
    }
}

/// Documents and tuples that have something at the place that the rule names; for documents that
/// are made of pieces, the pieces.
fn shaped(table: &BoundRules, extractor: &Extractor) -> Vec<Datum> {
    let pointer = match (extractor.rule(), &table.rules.head) {
        (TermRule::Json(pointer), _) => pointer.clone(),
        (TermRule::Head(Some(inner)), HeadRule::Json(outer)) => format!("{outer}{inner}"),
        (TermRule::Head(None), HeadRule::Json(outer)) => outer.clone(),
        (TermRule::Head(Some(inner)), _) => inner.clone(),
        (TermRule::Tuple(number), _) => return tuples(*number),
        _ => return Vec::new(),
    };
    let mut documents = Vec::new();
    for leaf in ["1", "2", "\"a\"", "[1,2]"] {
        let whole = json_text::steps(&pointer).iter().rev().fold(leaf.to_owned(), |inner, name| {
            let mut text = Vec::new();
            json::put_bytes(&Datum::Text(name.clone()), &mut text);
            format!("{{{}:{inner}}}", String::from_utf8_lossy(&text))
        });
        if let Some(between) = table.fold.fold().and_then(|fold| fold.joins_with()) {
            let between = String::from_utf8_lossy(between).into_owned();
            let cut = match whole.find(&between).filter(|_| !between.is_empty()) {
                Some(at) => Some((at, at + between.len())),
                None => whole.find([':', '[']).map(|at| (at + 1, at + 1)),
            };
            documents.extend(
                cut.into_iter().flat_map(|(end, start)| [whole[..end].to_owned(), whole[start..].to_owned()]),
            );
        }
        documents.push(whole);
    }
    documents.into_iter().map(Datum::Text).collect()
}

fn tuples(number: u32) -> Vec<Datum> {
    let lone = [1, 2].map(|last| vec![Element::Int(last)]);
    let long = [1, 2].map(|last| (0..=number.min(64)).map(|_| Element::Int(last)).collect());
    lone.into_iter()
        .chain(long)
        .map(|elements: Vec<Element<'_>>| Datum::Bytes(tuple::pack(&elements)))
        .collect()
}

#[cfg(test)]
#[path = "term_law/tests.rs"]
mod tests;
