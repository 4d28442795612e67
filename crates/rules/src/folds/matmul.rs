//! `matmul:N:i64` and `matmul:N:f64`: the product of N x N matrices, earlier times later.
//!
//! ```text
//!   N·N numbers of 8 bytes, little-endian, row by row
//! ```
//!
//! Matrix products are associative and not commutative, which makes this the fold that shows
//! whether a merge keeps the order of operands. Whole numbers **wrap** at 2^63 (arithmetic modulo
//! 2^64 is a ring, so the product stays associative). Floating-point products are rounded:
//! `matmul:N:f64` is **approximate**. Two ways to group the products agree within about N·2^-52 for
//! each product, relative to the product of the norms of the matrices; checks use 1e-9 of the
//! largest number in the result.

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

/// A type of the numbers in a [`Matrix`]: `f64`, `i64`.
pub trait MatrixNumber: Copy + Default + PartialEq + std::fmt::Debug {
    /// Whether it is whole.
    #[doc(hidden)]
    const WHOLE: bool;
    /// Its eight bytes.
    #[doc(hidden)]
    fn to_word(self) -> [u8; 8];
    /// What [`MatrixNumber::to_word`] wrote.
    #[doc(hidden)]
    fn from_word(word: [u8; 8]) -> Self;
}

macro_rules! matrix_number {
    ($($number:ty: $whole:expr),+) => {$(
        impl MatrixNumber for $number {
            const WHOLE: bool = $whole;
            fn to_word(self) -> [u8; 8] {
                self.to_le_bytes()
            }
            fn from_word(word: [u8; 8]) -> $number {
                <$number>::from_le_bytes(word)
            }
        }
    )+};
}

matrix_number!(f64: false, i64: true);

/// A matrix of `N` rows and columns: the value type of `matmul:N:f64`, and of `matmul:N:i64`.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::Matrix;
/// let turn = Matrix::of([[0, -1], [1, 0]]);
/// assert_eq!(turn.get(0, 1), Some(-1));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<const N: usize, T = f64> {
    numbers: Vec<T>,
}

impl<const N: usize, T: MatrixNumber> Matrix<N, T> {
    pub(crate) const FOLD: Matmul = {
        assert!(1 <= N && N <= SIDE_MAX, "a matrix has 1 to 256 rows");
        Matmul { side: N, whole: T::WHOLE }
    };

    /// The matrix of these rows.
    pub fn of(rows: [[T; N]; N]) -> Self {
        Matrix { numbers: rows.into_iter().flatten().collect() }
    }

    /// The number in this row and column, both from 0.
    pub fn get(&self, row: usize, column: usize) -> Option<T> {
        if column < N { self.numbers.get(row.checked_mul(N)?.checked_add(column)?).copied() } else { None }
    }

    /// The rows, one after the other.
    pub fn rows(&self) -> impl Iterator<Item = &[T]> {
        self.numbers.chunks_exact(N)
    }

    /// Appends the value's bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.numbers.iter().for_each(|number| out.extend_from_slice(&number.to_word()));
    }

    /// Reads a value.
    ///
    /// # Errors
    /// When the bytes are not a matrix of this size.
    pub fn from_bytes(value: &[u8]) -> Result<Self, FoldFailure> {
        Self::FOLD.check_length(value)?;
        Ok(Matrix { numbers: (0..N * N).map(|index| T::from_word(cell(value, index))).collect() })
    }
}
