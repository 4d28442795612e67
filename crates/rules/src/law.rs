//! Looks for counter-examples to the laws that a fold promises.
//!
//! Called by `folddb check-fold` with operands from a file or from a table, by [`crate::Updated`],
//! by the library for Python, and by the tests of every fold. It is a search, not a proof: triples
//! of operands, and of values folded from them, are tried in an order that depends on a seed, so a
//! finding can be repeated. A fold that panics is caught and reported.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

/// Most triples tried by [`check`].
pub const TRIPLES_MAX: u64 = 20_000;

/// Relative difference that an approximate fold is allowed.
pub const TOLERANCE: f64 = 1e-9;

/// What a fold promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// Folding two values gives a value.
    WellFormed,
    /// Folding the same twice gives the same bytes.
    Deterministic,
    /// (a·b)·c = a·(b·c).
    Associative,
    /// Where `short_circuit(v)` holds, x·v = v.
    ShortCircuit,
    /// Where `is_deleted(d)` holds, d·y = y; and it holds only where `has_delete` says so.
    Delete,
}

impl Law {
    /// Every law, in the order of a report.
    pub const ALL: [Law; 5] =
        [Law::WellFormed, Law::Deterministic, Law::Associative, Law::ShortCircuit, Law::Delete];
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Law::WellFormed => "well-formed",
            Law::Deterministic => "deterministic",
            Law::Associative => "associative",
            Law::ShortCircuit => "short-circuit",
            Law::Delete => "delete",
        })
    }
}

/// Operands that break a law, as people read them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CounterExample {
    /// The operands, by the names that the law calls them.
    pub operands: Vec<(&'static str, Datum)>,
    /// What came out, and what should have.
    pub finding: String,
}

/// The result for one law.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LawResult {
    /// The law.
    pub law: Law,
    /// How many cases were tried. Zero says nothing about the law.
    pub tried: u64,
    /// The first case that breaks it.
    pub counter_example: Option<CounterExample>,
}

/// The results for all laws.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LawReport {
    /// The fold's spec or name.
    pub spec: String,
    /// True when results were compared within [`TOLERANCE`].
    pub approximate: bool,
    /// How many samples were values of the fold.
    pub samples: usize,
    /// How many were not, and are left out.
    pub samples_malformed: usize,
    /// What is wrong with the first of those.
    pub first_malformed: Option<String>,
    /// The laws.
    pub laws: Vec<LawResult>,
}

impl LawReport {
    /// True when no counter-example was found.
    pub fn holds(&self) -> bool {
        self.laws.iter().all(|law| law.counter_example.is_none())
    }

    /// The result for one law.
    pub fn law(&self, law: Law) -> Option<&LawResult> {
        self.laws.iter().find(|result| result.law == law)
    }
}

impl fmt::Display for LawReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let approximate = if self.approximate { ", approximate" } else { "" };
        writeln!(f, "{} ({} samples{approximate})", self.spec, self.samples)?;
        if let Some(what) = &self.first_malformed {
            writeln!(f, "  {} samples are not values of this fold: {what}", self.samples_malformed)?;
        }
        for LawResult { law, tried, counter_example } in &self.laws {
            match counter_example {
                None if *tried == 0 => writeln!(f, "  {law:<14} no case among the samples")?,
                None => writeln!(f, "  {law:<14} holds in {tried} cases")?,
                Some(case) => {
                    writeln!(f, "  {law:<14} BROKEN: {}", case.finding)?;
                    for (name, operand) in &case.operands {
                        writeln!(f, "  {:<14}   {name} = {}", "", brief(operand))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// One line of at most 200 characters.
fn brief(datum: &Datum) -> String {
    let mut text = datum.to_string();
    if let Some((at, _)) = text.char_indices().nth(200) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// Looks for counter-examples among `samples` under the key `key`.
pub fn check(fold: &dyn Fold, key: &[u8], samples: &[Vec<u8>]) -> LawReport {
    check_with(fold, key, samples, TRIPLES_MAX, 1)
}

/// As [`check`], with at most `triples_max` triples in the order that `seed` decides.
pub fn check_with(
    fold: &dyn Fold,
    key: &[u8],
    samples: &[Vec<u8>],
    triples_max: u64,
    seed: u64,
) -> LawReport {
    let mut search = Search::new(fold, key, samples, seed);
    search.grow();
    search.try_triples(triples_max);
    search.try_special(triples_max);
    search.report
}

/// A fold's result, with deletion as a value: `Deleted` then y is y, and x then `Deleted` is
/// `Deleted`.
#[derive(Clone, Debug, PartialEq)]
enum State {
    Value(Vec<u8>),
    Deleted,
}

struct Search<'a> {
    fold: &'a dyn Fold,
    key: &'a [u8],
    /// Samples, and values folded from them.
    pool: Vec<Vec<u8>>,
    chance: u64,
    report: LawReport,
}

impl<'a> Search<'a> {
    fn new(fold: &'a dyn Fold, key: &'a [u8], samples: &[Vec<u8>], seed: u64) -> Search<'a> {
        let mut pool = Vec::new();
        let mut first_malformed = None;
        for sample in samples {
            match contained(|| fold.check(sample)) {
                Ok(()) => pool.push(sample.clone()),
                Err(failure) => {
                    first_malformed.get_or_insert(failure.to_string());
                }
            }
        }
        let laws = Law::ALL.map(|law| LawResult { law, tried: 0, counter_example: None });
        let report = LawReport {
            spec: fold.spec(),
            approximate: fold.is_approximate(),
            samples: pool.len(),
            samples_malformed: samples.len() - pool.len(),
            first_malformed,
            laws: laws.into(),
        };
        Search { fold, key, pool, chance: seed, report }
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn random(&mut self, below: usize) -> usize {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % below.max(1) as u64) as usize
    }

    fn fold(&self, a: &State, b: &State) -> Result<State, FoldFailure> {
        let (a, b) = match (a, b) {
            (_, State::Deleted) => return Ok(State::Deleted),
            (State::Deleted, later) => return Ok(later.clone()),
            (State::Value(a), State::Value(b)) => (a, b),
        };
        let mut out = Vec::new();
        Ok(match contained(|| self.fold.fold(self.key, a, b, &mut out))? {
            Outcome::Value => State::Value(out),
            Outcome::KeepEarlier => State::Value(a.clone()),
            Outcome::KeepLater => State::Value(b.clone()),
            Outcome::Delete => State::Deleted,
        })
    }

    fn datum(&self, value: &[u8]) -> Datum {
        contained(|| self.fold.show(value)).unwrap_or_else(|_| Datum::Bytes(value.to_vec()))
    }

    fn describe(&self, state: &State) -> String {
        match state {
            State::Value(value) => brief(&self.datum(value)),
            State::Deleted => "(deleted)".to_owned(),
        }
    }

    fn same(&self, a: &State, b: &State) -> bool {
        if a == b {
            return true;
        }
        match (a, b) {
            (State::Value(a), State::Value(b)) if self.report.approximate => {
                close(&self.datum(a), &self.datum(b))
            }
            _ => false,
        }
    }

    fn tried(&mut self, law: Law) {
        if let Some(result) = self.report.laws.iter_mut().find(|result| result.law == law) {
            result.tried += 1;
        }
    }

    fn broken(&mut self, law: Law, operands: &[(&'static str, &[u8])], finding: String) {
        let operands = operands.iter().map(|(name, value)| (*name, self.datum(value))).collect();
        if let Some(result) = self.report.laws.iter_mut().find(|result| result.law == law) {
            result.counter_example.get_or_insert(CounterExample { operands, finding });
        }
    }

    /// Folds two values, and checks the laws that concern one fold.
    fn step(&mut self, a: &[u8], b: &[u8]) -> Option<State> {
        let (x, y) = (State::Value(a.to_vec()), State::Value(b.to_vec()));
        let operands = [("a", a), ("b", b)];
        self.tried(Law::WellFormed);
        let once = match self.fold(&x, &y) {
            Ok(once) => once,
            Err(failure) => {
                self.broken(Law::WellFormed, &operands, format!("a·b fails: {failure}"));
                return None;
            }
        };
        if let State::Value(value) = &once
            && let Err(failure) = contained(|| self.fold.check(value))
        {
            self.broken(Law::WellFormed, &operands, format!("a·b is not a value: {failure}"));
        }
        self.tried(Law::Deterministic);
        if self.fold(&x, &y).as_ref() != Ok(&once) {
            self.broken(Law::Deterministic, &operands, "a·b gives other bytes the second time".to_owned());
        }
        Some(once)
    }

    /// Adds values folded from samples. They may look different from single samples.
    fn grow(&mut self) {
        let samples = self.pool.len();
        if samples == 0 {
            return;
        }
        for _ in 0..samples.min(200) {
            let (a, b) = (self.random(self.pool.len()), self.random(samples));
            let (a, b) = (self.pool[a].clone(), self.pool[b].clone());
            if let Some(State::Value(value)) = self.step(&a, &b)
                && contained(|| self.fold.check(&value)).is_ok()
            {
                self.pool.push(value);
            }
        }
    }

    /// Tries all triples if they are few, random ones if they are many.
    fn try_triples(&mut self, triples_max: u64) {
        let n = self.pool.len();
        let all = (n as u64).saturating_pow(3);
        for turn in 0..all.min(triples_max) {
            let (i, j, k) = if all <= triples_max {
                let turn = turn as usize;
                (turn / (n * n), turn / n % n, turn % n)
            } else {
                (self.random(n), self.random(n), self.random(n))
            };
            let (a, b, c) = (self.pool[i].clone(), self.pool[j].clone(), self.pool[k].clone());
            self.try_triple(&a, &b, &c);
        }
    }

    fn try_triple(&mut self, a: &[u8], b: &[u8], c: &[u8]) {
        let (Some(ab), Some(bc)) = (self.step(a, b), self.step(b, c)) else {
            return;
        };
        let left = self.fold(&ab, &State::Value(c.to_vec()));
        let right = self.fold(&State::Value(a.to_vec()), &bc);
        self.tried(Law::Associative);
        let finding = match (&left, &right) {
            (Ok(left), Ok(right)) if self.same(left, right) => return,
            (Err(_), Err(_)) => return,
            (Ok(left), Ok(right)) => {
                let (shown_left, shown_right) = (self.describe(left), self.describe(right));
                let bytes = if shown_left == shown_right { " in other bytes" } else { "" };
                format!("(a·b)·c = {shown_left} but a·(b·c) = {shown_right}{bytes}")
            }
            (Err(failure), Ok(_)) => format!("(a·b)·c fails and a·(b·c) does not: {failure}"),
            (Ok(_), Err(failure)) => format!("a·(b·c) fails and (a·b)·c does not: {failure}"),
        };
        self.broken(Law::Associative, &[("a", a), ("b", b), ("c", c)], finding);
    }

    /// The laws of values that are decisive or deleted.
    fn try_special(&mut self, cases_max: u64) {
        let pool = std::mem::take(&mut self.pool);
        let mut left = cases_max;
        for special in &pool {
            let decisive = contained(|| Ok(self.fold.short_circuit(self.key, special))).unwrap_or(false);
            let deleted = contained(|| Ok(self.fold.is_deleted(self.key, special))).unwrap_or(false);
            if deleted && !self.fold.has_delete() {
                let finding = "is_deleted(d) holds, though has_delete says that it never does".to_owned();
                self.broken(Law::Delete, &[("d", special)], finding);
            }
            if !decisive && !deleted {
                continue;
            }
            for other in &pool {
                if left == 0 {
                    return;
                }
                left -= 1;
                if decisive {
                    self.try_equal(Law::ShortCircuit, ("x", other), ("v", special), special);
                }
                if deleted {
                    self.try_equal(Law::Delete, ("d", special), ("y", other), other);
                }
            }
        }
    }

    fn try_equal(
        &mut self,
        law: Law,
        earlier: (&'static str, &[u8]),
        later: (&'static str, &[u8]),
        expected: &[u8],
    ) {
        self.tried(law);
        let folded = self.fold(&State::Value(earlier.1.to_vec()), &State::Value(later.1.to_vec()));
        let expected = State::Value(expected.to_vec());
        let finding = match folded {
            Ok(folded) if self.same(&folded, &expected) => return,
            Ok(folded) => {
                let (folded, expected) = (self.describe(&folded), self.describe(&expected));
                format!("{}·{} = {folded}, expected {expected}", earlier.0, later.0)
            }
            Err(failure) => format!("{}·{} fails: {failure}", earlier.0, later.0),
        };
        self.broken(law, &[earlier, later], finding);
    }
}

/// Calls the user's code; a panic is a failure.
fn contained<T>(call: impl FnOnce() -> Result<T, FoldFailure>) -> Result<T, FoldFailure> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(FoldFailure::new("the fold panicked")))
}

/// Equal within [`TOLERANCE`] of the largest number around: of a list as a whole, of a map field by
/// field.
fn close(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Map(a), Datum::Map(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0 == y.0 && close(&x.1, &y.1))
        }
        _ => close_within(a, b, TOLERANCE * magnitude(a).max(magnitude(b))),
    }
}

fn close_within(a: &Datum, b: &Datum, difference_max: f64) -> bool {
    match (a, b) {
        (Datum::Float(a), Datum::Float(b)) => {
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= difference_max
        }
        (Datum::List(a), Datum::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close_within(a, b, difference_max))
        }
        _ => a == b,
    }
}

/// The largest finite number inside.
fn magnitude(datum: &Datum) -> f64 {
    match datum {
        Datum::Float(value) if value.is_finite() => value.abs(),
        Datum::List(items) => items.iter().map(magnitude).fold(0.0, f64::max),
        _ => 0.0,
    }
}

#[cfg(test)]
#[path = "law/tests.rs"]
mod tests;
