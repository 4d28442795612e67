//! `matmul:N:i64` and `matmul:N:f64`: the product of N x N matrices, earlier times later.
//!
//! ```text
//!   N·N numbers of 8 bytes, little-endian, row by row
//! ```
//!
//! Matrix products are associative and not commutative, which makes this the fold that shows whether a merge
//! keeps the order of operands. Whole numbers **wrap** at 2^63 (arithmetic modulo 2^64 is a ring, so the
//! product stays associative). Floating-point products are rounded: `matmul:N:f64` is **approximate**. Two
//! bracketings agree within about N·2^-52 per product of the product of the matrices' norms; checks use 1e-9
//! of the largest number in the result.

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{self, BuiltIn, wrong_length};

/// Largest N: such a matrix takes half a megabyte.
pub(crate) const SIDE_MAX: usize = 256;

/// `matmul:N:T`.
pub(crate) struct Matmul {
    pub(crate) side: usize,
    pub(crate) whole: bool,
}

#[inline]
fn cell(matrix: &[u8], index: usize) -> [u8; 8] {
    match matrix.get(8 * index..).and_then(<[u8]>::first_chunk::<8>) {
        Some(word) => *word,
        None => [0; 8],
    }
}

impl Matmul {
    fn len_bytes(&self) -> usize {
        8 * self.side * self.side
    }

    fn check_length(&self, value: &[u8]) -> Result<(), FoldFailure> {
        if value.len() == self.len_bytes() {
            Ok(())
        } else {
            Err(wrong_length(self.len_bytes(), value.len()))
        }
    }

    fn datum(&self, word: [u8; 8]) -> Datum {
        if self.whole {
            Datum::Int(i64::from_le_bytes(word).into())
        } else {
            Datum::Float(f64::from_le_bytes(word))
        }
    }

    fn numbers(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        match datum {
            Datum::List(items) => items.iter().try_for_each(|item| self.numbers(item, out)),
            Datum::Text(text) => {
                let between = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '[' | ']');
                for word in text.split(between).filter(|word| !word.is_empty()) {
                    self.number(&Datum::Text(word.to_owned()), out)?;
                }
                Ok(())
            }
            one => self.number(one, out),
        }
    }

    fn number(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        out.extend_from_slice(&if self.whole {
            built_in::integer_i64(datum)?.to_le_bytes()
        } else {
            built_in::float(datum)?.to_le_bytes()
        });
        Ok(())
    }
}

impl Fold for Matmul {
    fn spec(&self) -> String {
        format!("matmul:{}:{}", self.side, if self.whole { "i64" } else { "f64" })
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        self.check_length(a)?;
        self.check_length(b)?;
        out.reserve(self.len_bytes());
        for row in 0..self.side {
            for column in 0..self.side {
                let pairs =
                    (0..self.side).map(|i| (cell(a, row * self.side + i), cell(b, i * self.side + column)));
                out.extend_from_slice(&if self.whole {
                    let product = |(x, y)| i64::from_le_bytes(x).wrapping_mul(i64::from_le_bytes(y));
                    pairs.map(product).fold(0, i64::wrapping_add).to_le_bytes()
                } else {
                    let total: f64 = pairs.map(|(x, y)| f64::from_le_bytes(x) * f64::from_le_bytes(y)).sum();
                    // One NaN and one zero, so that equal results are equal bytes.
                    let total = if total.is_nan() { built_in::NAN } else { total + 0.0 };
                    total.to_le_bytes()
                });
            }
        }
        Ok(Outcome::Value)
    }

    fn is_approximate(&self) -> bool {
        !self.whole
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        self.check_length(value)
    }

    /// A list of rows.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        self.check_length(value)?;
        let row = |row: usize| (0..self.side).map(|i| self.datum(cell(value, row * self.side + i))).collect();
        Ok(Datum::List((0..self.side).map(row).map(Datum::List).collect()))
    }

    /// N·N numbers row by row: in lists, or as text such as `1 2; 3 4`.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let start = out.len();
        self.numbers(datum, out)?;
        let found = (out.len() - start) / 8;
        if found == self.side * self.side {
            return Ok(());
        }
        out.truncate(start);
        Err(FoldFailure::new(format!("expected {} numbers, found {found}", self.side * self.side)))
    }

    fn fixed_len(&self) -> Option<usize> {
        Some(self.len_bytes())
    }
}

impl BuiltIn for Matmul {
    fn identity(&self, out: &mut Vec<u8>) -> bool {
        for index in 0..self.side * self.side {
            let number = u8::from(index.is_multiple_of(self.side + 1));
            out.extend_from_slice(&if self.whole {
                i64::from(number).to_le_bytes()
            } else {
                f64::from(number).to_le_bytes()
            });
        }
        true
    }
}
