//! The queries of a player to an index: for everything, forward and backward, and each time in
//! one other way.
//!
//! Keys whose fold fails give errors; an index that was built after the moment asked for refuses.

use std::ops::{Bound, ControlFlow};

use folddb::codec::tuple::{self, Element};
use folddb::{BytesFind, Error, ErrorKind, Hit};

use crate::compare::{Outcome, same};
use crate::model::{Model, ModelRow, Present};
use crate::tables::{Mark, Shape};

/// A term with a key that has it.
type Found = (Mark, Vec<u8>);

/// An index at a moment, and the contents of its table then.
pub(super) struct Asked<'a> {
    pub(super) shape: &'a Shape,
    pub(super) rows: &'a [ModelRow],
    pub(super) find: BytesFind,
    /// Decides about the one other way.
    pub(super) turn: u64,
    /// The moment may be before the index was built.
    pub(super) may_refuse: bool,
}

impl Asked<'_> {
    /// Compares the hits with the rows.
    pub(super) fn compare(&self) -> Outcome {
        let mut expected = Model::found(self.shape, self.rows);
        self.find_and_compare("what is found", self.find.clone(), &expected)?;
        self.compare_otherwise(&expected)?;
        expected.reverse();
        self.find_and_compare("what is found from the end", self.find.clone().reverse(), &expected)
    }

    /// By a term, by ranges, by a prefix, up to a limit, with values, or on several threads.
    fn compare_otherwise(&self, all: &[Found]) -> Outcome {
        let (low, high) = self.two_terms(all);
        let within = |is_in: &dyn Fn(&Mark) -> bool| -> Vec<Found> {
            all.iter().filter(|(mark, _)| is_in(mark)).cloned().collect()
        };
        let find = self.find.clone();
        match self.turn % 7 {
            0 => {
                let expected = within(&|mark| *mark == low);
                self.find_and_compare("what a term finds", find.term(element(&low)), &expected)
            }
            1 => {
                let expected = within(&|mark| low <= *mark && *mark < high);
                self.find_and_compare("a range", find.range(element(&low)..element(&high)), &expected)
            }
            2 => {
                let expected = within(&|mark| low < *mark && *mark <= high);
                let range = (Bound::Excluded(element(&low)), Bound::Included(element(&high)));
                self.find_and_compare("a range from behind a term", find.range(range), &expected)
            }
            3 => {
                let limit = (self.turn / 7 % 4) as usize;
                let expected = &all[..limit.min(all.len())];
                self.find_and_compare("so many", find.limit(limit), expected)
            }
            4 => self.compare_values(all),
            5 => self.compare_threads(all),
            _ => match &low {
                Mark::Number(_) => Ok(()), // it has no prefix
                Mark::Bytes(bytes) => {
                    let prefix = &bytes[..bytes.len().min(1)];
                    let is_in = |mark: &Mark| matches!(mark, Mark::Bytes(bytes) if bytes.starts_with(prefix));
                    let expected = within(&is_in);
                    self.find_and_compare("a prefix", find.prefix(Element::from(prefix)), &expected)
                }
            },
        }
    }

    /// Two terms, the lower one first: existing ones, where there are any.
    fn two_terms(&self, all: &[Found]) -> (Mark, Mark) {
        let nth = |n: u64| all.get(n as usize % all.len().max(1)).map(|(mark, _)| mark.clone());
        let absent = Mark::Number(i128::from(self.turn % 5));
        let one = nth(self.turn / 7).unwrap_or(absent);
        let other = nth(self.turn / 3).unwrap_or_else(|| one.clone());
        if one <= other { (one, other) } else { (other, one) }
    }

    fn compare_values(&self, all: &[Found]) -> Outcome {
        let Some(hits) = self.gather(self.find.clone().hits(true))? else { return Ok(()) };
        let value_of = |key: &[u8]| {
            self.rows.iter().find_map(|(at, present)| match present {
                Present::Value(value) if at == key => Some(value.clone()),
                _ => None,
            })
        };
        let found: Vec<_> = hits.into_iter().map(|hit| (hit.key, Some(hit.value))).collect();
        let expected: Vec<_> = all.iter().map(|(_, key)| (key.clone(), value_of(key))).collect();
        same("what is found with values", &found, &expected)
    }

    fn compare_threads(&self, all: &[Found]) -> Outcome {
        let step = |found: &mut Vec<Hit>, hit: Hit| {
            found.push(hit);
            ControlFlow::Continue(())
        };
        let join = |mut one: Vec<Hit>, mut next: Vec<Hit>| {
            one.append(&mut next);
            one
        };
        let folded = self.find.clone().fold_hits(2, false, Vec::new, step, join);
        let Some(hits) = self.gather(
            folded.map_or_else(|error| vec![Err(error)], |hits| hits.into_iter().map(Ok).collect()),
        )?
        else {
            return Ok(());
        };
        // A key whose fold fails ends such a fold with an error.
        if self.has_failures() {
            return Ok(());
        }
        same("what two threads find", &marked(hits)?, &all.to_vec())
    }

    fn find_and_compare(&self, what: &str, find: BytesFind, expected: &[Found]) -> Outcome {
        match self.gather(find.hits(false))? {
            Some(hits) => same(what, &marked(hits)?, &expected.to_vec()),
            None => Ok(()),
        }
    }

    /// All hits but the errors that must or may occur; none where the index rightly refuses.
    fn gather(&self, hits: impl IntoIterator<Item = Result<Hit, Error>>) -> Result<Option<Vec<Hit>>, String> {
        let mut found = Vec::new();
        for hit in hits {
            match hit {
                Ok(hit) => found.push(hit),
                Err(error) if error.kind() == ErrorKind::FoldFailed => {
                    same("whether a fold fails", &self.has_failures(), &true)?;
                }
                Err(error) if self.may_refuse && error.message().contains("when it was built") => {
                    return Ok(None);
                }
                Err(error) => return Err(format!("{error:?}")),
            }
        }
        Ok(Some(found))
    }

    fn has_failures(&self) -> bool {
        self.rows.iter().any(|(_, present)| *present == Present::Failed)
    }
}

fn marked(hits: Vec<Hit>) -> Result<Vec<Found>, String> {
    hits.into_iter().map(|hit| Ok((mark(&hit.term)?, hit.key))).collect()
}

fn mark(term: &[u8]) -> Result<Mark, String> {
    match tuple::unpack(term).as_deref() {
        Ok([Element::Int(number)]) => Ok(Mark::Number(*number)),
        Ok([Element::Bytes(bytes)]) => Ok(Mark::Bytes(bytes.to_vec())),
        other => Err(format!("a term is {other:?}")),
    }
}

fn element(mark: &Mark) -> Element<'_> {
    match mark {
        Mark::Number(number) => Element::Int(*number),
        Mark::Bytes(bytes) => Element::from(bytes.as_slice()),
    }
}
