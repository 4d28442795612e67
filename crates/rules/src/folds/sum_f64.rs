//! `sum:f64`: a sum of doubles without rounding error, in the form of `exact_sum.rs`.

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome, fold_in_pairs};

use super::built_in::{self, BuiltIn, SEVERAL};
use super::exact_sum::{Term, add};
use super::exact_total::Total;

/// `sum:f64`.
pub(crate) struct SumF64;

impl Fold for SumF64 {
    fn spec(&self) -> String {
        "sum:f64".to_owned()
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        if let Some(plain) = add(Term::from_bytes(a)?, Term::from_bytes(b)?, out)? {
            out.extend_from_slice(&plain.to_le_bytes());
        }
        Ok(Outcome::Value)
    }

    fn fold_all(&self, key: &[u8], values: &[&[u8]], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let mut total = Total::new();
        for value in values {
            if values.len() < SEVERAL || !total.add(Term::from_bytes(value)?) {
                return fold_in_pairs(self, key, values, out);
            }
        }
        if !values.is_empty()
            && let Some(plain) = total.put(out)?
        {
            out.extend_from_slice(&plain.to_le_bytes());
        }
        Ok(())
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        Term::from_bytes(value)?.check_canonical()
    }

    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::Float(Term::from_bytes(value)?.rounded()))
    }

    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        out.extend_from_slice(&built_in::float(datum)?.to_le_bytes());
        Ok(())
    }
}

impl BuiltIn for SumF64 {}
