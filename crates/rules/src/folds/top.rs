//! `top:K`, `top:K:i64`: the K members with the largest scores, each with its largest score.
//!
//! ```text
//!   [score, 8 bytes little-endian][length varint][member] ...
//!                  largest score first, of equal scores the smaller member first; each member once
//! ```
//!
//! Associative and exact: an entry is dropped only when its member has a better score, or when K
//! other members come before it; neither can change later, so no order of merging drops an entry
//! that belongs to the answer. Scores are `f64` (ordered totally, NaN refused) or `i64`; nothing
//! overflows.

use std::cmp::Ordering;
use std::collections::HashSet;

use folddb_base::bytes::{Malformed, Reader, put_slice};

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{BuiltIn, float, integer_i64, malformed, plain_bytes, rows_of_entries, unexpected};

const WHAT: &str = "a ranking";

/// Largest K.
pub(crate) const KEPT_MAX: usize = 10_000;

/// Up to this many members are compared one by one; more are looked up in a set.
const COMPARED_MAX: usize = 48;

/// A score: its number decides, as `f64` or as `i64`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AnyScore {
    /// Of `top:K`.
    Float(f64),
    /// Of `top:K:i64`.
    Int(i64),
}

impl AnyScore {
    fn compare(self, other: AnyScore) -> Ordering {
        match (self, other) {
            (AnyScore::Float(a), AnyScore::Float(b)) => a.total_cmp(&b),
            (AnyScore::Int(a), AnyScore::Int(b)) => a.cmp(&b),
            // A fold has scores of one type.
            (AnyScore::Float(_), AnyScore::Int(_)) => Ordering::Less,
            (AnyScore::Int(_), AnyScore::Float(_)) => Ordering::Greater,
        }
    }

    fn to_le_bytes(self) -> [u8; 8] {
        match self {
            AnyScore::Float(score) => score.to_le_bytes(),
            AnyScore::Int(score) => score.to_le_bytes(),
        }
    }

    fn datum(self) -> Datum {
        match self {
            AnyScore::Float(score) => Datum::Float(score),
            AnyScore::Int(score) => Datum::Int(score.into()),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Entry<'a> {
    score: AnyScore,
    member: &'a [u8],
}

impl Entry<'_> {
    /// Better first.
    fn rank(&self, other: &Entry<'_>) -> Ordering {
        other.score.compare(self.score).then_with(|| self.member.cmp(other.member))
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.score.to_le_bytes());
        put_slice(out, self.member);
    }
}

/// `top:K`.
pub(crate) struct TopFold {
    pub(crate) kept: usize,
    pub(crate) whole_scores: bool,
}

impl TopFold {
    fn next<'a>(&self, reader: &mut Reader<'a>) -> Result<Option<Entry<'a>>, FoldFailure> {
        if reader.is_empty() {
            return Ok(None);
        }
        let bits = reader.u64().map_err(malformed(WHAT))?;
        let member = reader.slice().map_err(malformed(WHAT))?;
        let score = if self.whole_scores {
            AnyScore::Int(bits as i64)
        } else {
            AnyScore::Float(f64::from_bits(bits))
        };
        Ok(Some(Entry { score, member }))
    }

    fn score(&self, datum: &Datum) -> Result<AnyScore, FoldFailure> {
        if self.whole_scores {
            return integer_i64(datum).map(AnyScore::Int);
        }
        let score = float(datum)?;
        if score.is_nan() { unexpected("a score", datum) } else { Ok(AnyScore::Float(score)) }
    }

    fn pair(&self, datum: &Datum) -> Result<(AnyScore, Vec<u8>), FoldFailure> {
        let wanted = "a score and a member, as in `12.5 alice`";
        match datum {
            Datum::List(pair) if pair.len() == 2 => {
                Ok((self.score(&pair[0])?, plain_bytes(&pair[1])?.into_owned()))
            }
            Datum::Map(fields) if fields.len() == 2 => match (datum.field("score"), datum.field("member")) {
                (Some(score), Some(member)) => Ok((self.score(score)?, plain_bytes(member)?.into_owned())),
                _ => unexpected(wanted, datum),
            },
            Datum::Text(text) => match text.trim_start().split_once(' ') {
                Some((score, member)) => Ok((self.score(&Datum::Text(score.to_owned()))?, member.into())),
                None => unexpected(wanted, datum),
            },
            _ => unexpected(wanted, datum),
        }
    }
}

/// Members already taken: a few in place, more in a set.
struct Seen<'a> {
    few: [&'a [u8]; COMPARED_MAX],
    len: usize,
    many: Option<HashSet<&'a [u8]>>,
}

impl<'a> Seen<'a> {
    fn new(kept: usize) -> Seen<'a> {
        Seen { few: [&[]; COMPARED_MAX], len: 0, many: (kept > COMPARED_MAX).then(HashSet::new) }
    }

    /// True the first time.
    fn insert(&mut self, member: &'a [u8]) -> bool {
        if let Some(many) = &mut self.many {
            return many.insert(member);
        }
        let new = !self.few[..self.len].contains(&member);
        if new && let Some(place) = self.few.get_mut(self.len) {
            *place = member;
            self.len += 1;
        }
        new
    }
}

impl Fold for TopFold {
    fn spec(&self) -> String {
        format!("top:{}{}", self.kept, if self.whole_scores { ":i64" } else { "" })
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let (mut left, mut right) = (Reader::new(a), Reader::new(b));
        let (mut x, mut y) = (self.next(&mut left)?, self.next(&mut right)?);
        let mut seen = Seen::new(self.kept);
        let mut kept = 0;
        while kept < self.kept {
            let from_left = match (&x, &y) {
                (None, None) => break,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(x), Some(y)) => x.rank(y).is_le(),
            };
            let (entry, reader) = if from_left { (&mut x, &mut left) } else { (&mut y, &mut right) };
            if let Some(best) = entry
                && seen.insert(best.member)
            {
                best.put(out);
                kept += 1;
            }
            *entry = self.next(reader)?;
        }
        Ok(Outcome::Value)
    }

    /// The best first: what follows them is not better.
    fn pieces(&self, value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        rows_of_entries(value, bytes_max, |entry| {
            entry.u64()?;
            entry.slice().map(drop)
        })
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        let mut reader = Reader::new(value);
        let mut seen = Seen::new(self.kept);
        let mut last: Option<Entry<'_>> = None;
        for rank in 0.. {
            let Some(entry) = self.next(&mut reader)? else {
                return Ok(());
            };
            let in_order = last.is_none_or(|last| last.rank(&entry).is_lt());
            if !in_order || rank >= self.kept || !seen.insert(entry.member) {
                return Err(malformed(WHAT)(Malformed::Order));
            }
            if let AnyScore::Float(score) = entry.score
                && score.is_nan()
            {
                return Err(FoldFailure::new("expected a ranking, a score is NaN"));
            }
            last = Some(entry);
        }
        Ok(())
    }

    /// A list of pairs `[score, member]`, best first.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let mut reader = Reader::new(value);
        let mut items = Vec::new();
        while let Some(entry) = self.next(&mut reader)? {
            items.push(Datum::List(vec![entry.score.datum(), Datum::text_or_bytes(entry.member)]));
        }
        Ok(Datum::List(items))
    }

    /// A pair `[score, member]`, a map of `score` and `member`, the text `SCORE MEMBER`, or a list
    /// of those.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let nested = |item: &Datum| matches!(item, Datum::List(_) | Datum::Map(_));
        let pairs = match datum {
            Datum::List(items) if items.iter().all(nested) => {
                items.iter().map(|item| self.pair(item)).collect::<Result<Vec<_>, _>>()?
            }
            one => vec![self.pair(one)?],
        };
        let mut entries: Vec<Entry<'_>> =
            pairs.iter().map(|(score, member)| Entry { score: *score, member }).collect();
        entries.sort_by(Entry::rank);
        let mut seen = Seen::new(self.kept);
        entries
            .iter()
            .filter(|entry| seen.insert(entry.member))
            .take(self.kept)
            .for_each(|entry| entry.put(out));
        Ok(())
    }
}

impl BuiltIn for TopFold {}

/// A type of scores: `f64`, and `i64` of `top:K:i64`.
pub trait Score: Copy + PartialEq + std::fmt::Debug {
    /// Whether scores are whole numbers.
    #[doc(hidden)]
    const WHOLE: bool;
    /// The score in eight bytes. NaN is the least score.
    #[doc(hidden)]
    fn to_word(self) -> [u8; 8];
    /// What [`Score::to_word`] wrote.
    #[doc(hidden)]
    fn from_word(word: [u8; 8]) -> Self;
}

impl Score for f64 {
    const WHOLE: bool = false;
    fn to_word(self) -> [u8; 8] {
        let score = if self.is_nan() { f64::NEG_INFINITY } else { self };
        score.to_le_bytes()
    }
    fn from_word(word: [u8; 8]) -> f64 {
        f64::from_le_bytes(word)
    }
}

impl Score for i64 {
    const WHOLE: bool = true;
    fn to_word(self) -> [u8; 8] {
        self.to_le_bytes()
    }
    fn from_word(word: [u8; 8]) -> i64 {
        i64::from_le_bytes(word)
    }
}

/// A ranking of `K` members: the value type of `top:K`, or, with scores of `i64`, of `top:K:i64`.
/// An operand is usually one pair, [`TopK::of`].
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::TopK;
/// let mut best = TopK::<2>::of(1.5, "ann");
/// best.merge(&TopK::of(7.0, "bob"));
/// best.merge(&TopK::of(3.0, "cy"));
/// assert_eq!(best.entries(), [(7.0, b"bob".to_vec()), (3.0, b"cy".to_vec())]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TopK<const K: usize = 10, S = f64> {
    entries: Vec<(S, Vec<u8>)>,
}

impl<const K: usize, S> Default for TopK<K, S> {
    fn default() -> Self {
        TopK { entries: Vec::new() }
    }
}

impl<const K: usize, S: Score> TopK<K, S> {
    pub(crate) const FOLD: TopFold = {
        assert!(1 <= K && K <= KEPT_MAX, "a ranking is of 1 to 10000 members");
        TopFold { kept: K, whole_scores: S::WHOLE }
    };

    /// One member with its score. NaN counts as the least score.
    pub fn of(score: S, member: impl Into<Vec<u8>>) -> Self {
        TopK { entries: vec![(S::from_word(score.to_word()), member.into())] }
    }

    /// Adds the members of `other`, and keeps the best.
    pub fn merge(&mut self, other: &Self) {
        let mut out = Vec::new();
        let merged = Self::FOLD.fold(&[], &self.to_bytes(), &other.to_bytes(), &mut out);
        // Both are rankings: nothing can fail.
        if let Ok(Ok(merged)) = merged.map(|_| Self::from_bytes(&out)) {
            *self = merged;
        }
    }

    /// Scores and members, best first.
    pub fn entries(&self) -> &[(S, Vec<u8>)] {
        &self.entries
    }

    /// Appends the value's bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        for (score, member) in &self.entries {
            out.extend_from_slice(&score.to_word());
            put_slice(out, member);
        }
    }

    /// The value's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Reads a value.
    ///
    /// # Errors
    /// When the bytes are not a ranking of at most `K` members with scores of this type.
    pub fn from_bytes(value: &[u8]) -> Result<Self, FoldFailure> {
        Self::FOLD.check(value)?;
        let mut reader = Reader::new(value);
        let mut entries = Vec::new();
        while let Some(Entry { score, member }) = Self::FOLD.next(&mut reader)? {
            entries.push((S::from_word(score.to_le_bytes()), member.to_vec()));
        }
        Ok(TopK { entries })
    }
}
