//! `top:K`, `top:K:i64`: the K members with the largest scores, each with its largest score.
//!
//! ```text
//!   [score, 8 bytes little-endian][length varint][member] ...
//!                  largest score first, of equal scores the smaller member first; each member once
//! ```
//!
//! Associative and exact: an entry is dropped only when its member has a better score, or when K other
//! members stand before it; both stay so whatever comes along, so no bracketing drops an entry that belongs
//! to the answer. Scores are `f64` (ordered totally, NaN refused) or `i64`; nothing overflows.

use std::cmp::Ordering;
use std::collections::HashSet;

use folddb_base::bytes::{Malformed, Reader, put_slice};

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{BuiltIn, float, integer_i64, malformed, plain_bytes, rows_of_entries, unexpected};

const WHAT: &str = "a ranking";

/// Largest K.
pub(crate) const KEPT_MAX: usize = 10_000;

/// So many members are compared one by one; more are looked up.
const COMPARED_MAX: usize = 48;

/// A score: its number decides, as `f64` or as `i64`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Score {
    /// Of `top:K`.
    Float(f64),
    /// Of `top:K:i64`.
    Int(i64),
}

impl Score {
    fn compare(self, other: Score) -> Ordering {
        match (self, other) {
            (Score::Float(a), Score::Float(b)) => a.total_cmp(&b),
            (Score::Int(a), Score::Int(b)) => a.cmp(&b),
            // One fold has scores of one type.
            (Score::Float(_), Score::Int(_)) => Ordering::Less,
            (Score::Int(_), Score::Float(_)) => Ordering::Greater,
        }
    }

    fn to_le_bytes(self) -> [u8; 8] {
        match self {
            Score::Float(score) => score.to_le_bytes(),
            Score::Int(score) => score.to_le_bytes(),
        }
    }

    fn datum(self) -> Datum {
        match self {
            Score::Float(score) => Datum::Float(score),
            Score::Int(score) => Datum::Int(score.into()),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Entry<'a> {
    score: Score,
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
        let score =
            if self.whole_scores { Score::Int(bits as i64) } else { Score::Float(f64::from_bits(bits)) };
        Ok(Some(Entry { score, member }))
    }

    fn score(&self, datum: &Datum) -> Result<Score, FoldFailure> {
        if self.whole_scores {
            return integer_i64(datum).map(Score::Int);
        }
        let score = float(datum)?;
        if score.is_nan() { unexpected("a score", datum) } else { Ok(Score::Float(score)) }
    }

    fn pair(&self, datum: &Datum) -> Result<(Score, Vec<u8>), FoldFailure> {
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

    /// The best first: what comes behind them is not better.
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
            if let Score::Float(score) = entry.score
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

    /// A pair `[score, member]`, a map of `score` and `member`, the text `SCORE MEMBER`, or a list of those.
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

/// A ranking: the value type of `top:K`. An operand is usually one pair, [`TopK::of`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopK {
    entries: Vec<(f64, Vec<u8>)>,
}

impl TopK {
    /// One member with its score. NaN counts as the least score.
    pub fn of(score: f64, member: impl Into<Vec<u8>>) -> TopK {
        let score = if score.is_nan() { f64::NEG_INFINITY } else { score };
        TopK { entries: vec![(score, member.into())] }
    }

    /// Scores and members, best first.
    pub fn entries(&self) -> &[(f64, Vec<u8>)] {
        &self.entries
    }

    /// Appends the value's bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        for (score, member) in &self.entries {
            Entry { score: Score::Float(*score), member }.put(out);
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
    /// When the bytes are not a ranking with scores of `f64`.
    pub fn from_bytes(value: &[u8]) -> Result<TopK, FoldFailure> {
        let fold = TopFold { kept: usize::MAX, whole_scores: false };
        fold.check(value)?;
        let mut reader = Reader::new(value);
        let mut entries = Vec::new();
        while let Some(Entry { score: Score::Float(score), member }) = fold.next(&mut reader)? {
            entries.push((score, member.to_vec()));
        }
        Ok(TopK { entries })
    }
}
