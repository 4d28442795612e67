//! Folds as values of Rust that know the type of what they fold: `sum()` of a table of `u64` is
//! `sum:u64`.
//!
//! ```text
//!   FoldSpec       any fold by its spec string: "stats:f64".parse()
//!   FoldOf<V>      a fold of values of type V: stats(), sum(), append(",")
//!   IntoFold<V>    what a table of values V may fold by: a FoldOf<V>, or a spec string
//! ```
//!
//! A `FoldOf<V>` for a type other than that of the table does not compile. A spec string is
//! compared with the type when the table is opened.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use super::append::Append;
#[cfg(feature = "bitmap")]
use super::bitmap::{Bitmap, BitmapFold};
use super::choose::{ExtremeBytes, First, LastWriter, Replace, Timed};
use super::counters::{Counters, CountersFold};
use super::exact_sum::ExactSum;
use super::hll::{Hll, HllFold};
#[cfg(feature = "json")]
use super::json_merge::JsonMerge;
use super::matmul::{Matrix, MatrixNumber};
use super::number::{Extreme, NumberType, SumI64, SumI128, SumU64};
use super::patch::{Patch, PatchFold};
use super::quantiles::{self, Mapping, Quantiles, QuantilesFold};
use super::set::{ByteSet, Keeps, SetFold};
use super::spec;
use super::stats::{Stats, StatsF64};
use super::sum_f64::SumF64;
use super::top::{Score, TopK};
use super::words::quoted_name;
use crate::fold::{Fold, FoldFailure, Outcome};
use crate::parse_error::ParseError;

/// A fold, by its spec string.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::FoldSpec;
/// let spec: FoldSpec = "{flights: sum:u64, delay: stats:f64}".parse().unwrap();
/// assert_eq!(spec.to_string(), "{flights: sum:u64, delay: stats:f64}");
/// let wrong = "sum:int".parse::<FoldSpec>().unwrap_err();
/// assert!(wrong.to_string().ends_with("    ^ did you mean `sum:i64`?"), "{wrong}");
/// ```
#[derive(Clone)]
pub struct FoldSpec {
    fold: Arc<dyn Fold>,
    is_custom: bool,
}

impl FoldSpec {
    /// A fold of your own: tables keep its name and version.
    pub fn custom(fold: Arc<dyn Fold>) -> FoldSpec {
        FoldSpec { fold, is_custom: true }
    }

    pub(crate) fn built_in(fold: impl Fold + 'static) -> FoldSpec {
        FoldSpec { fold: Arc::new(fold), is_custom: false }
    }

    /// The fold.
    pub fn as_fold(&self) -> &Arc<dyn Fold> {
        &self.fold
    }

    /// Any quantile `q` (0 to 1) of a value that folds by `quantiles:ALPHA`, within the relative
    /// error ALPHA; none of a value in which there is no number. For programs that know ALPHA at
    /// run time only: others have [`Quantiles`].
    ///
    /// # Errors
    /// When the fold is another one, or the bytes are no value of it.
    ///
    /// ```
    /// # use folddb_rules as folddb;
    /// use folddb::folds::FoldSpec;
    /// use folddb::{Datum, Fold};
    /// let spec: FoldSpec = "quantiles:0.001".parse().unwrap();
    /// let mut value = Vec::new();
    /// let numbers = (1..=1000).map(Datum::Int).collect();
    /// spec.as_fold().read(&Datum::List(numbers), &mut value).unwrap();
    /// let found = spec.quantile(&value, 0.999).unwrap().unwrap();
    /// assert!((998.0..=1000.0).contains(&found), "{found}");
    /// assert_eq!(spec.quantile(&[], 0.5).unwrap(), None);
    /// ```
    pub fn quantile(&self, value: &[u8], q: f64) -> Result<Option<f64>, FoldFailure> {
        quantiles::of_spec(&self.fold.spec(), value, q)
    }

    /// Whether it is one of your own.
    pub fn is_custom(&self) -> bool {
        self.is_custom
    }
}

impl FromStr for FoldSpec {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<FoldSpec, ParseError> {
        Ok(FoldSpec { fold: spec::parse(text)?, is_custom: false })
    }
}

impl From<FoldSpec> for Arc<dyn Fold> {
    fn from(fold: FoldSpec) -> Arc<dyn Fold> {
        fold.fold
    }
}

impl fmt::Display for FoldSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fold.spec())
    }
}

impl fmt::Debug for FoldSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FoldSpec({})", self.fold.spec())
    }
}

/// The same spec, or name and version.
impl PartialEq for FoldSpec {
    fn eq(&self, other: &FoldSpec) -> bool {
        let of = |spec: &FoldSpec| (spec.is_custom, spec.fold.spec(), spec.fold.version());
        of(self) == of(other)
    }
}

/// A fold of values of type `V`.
pub struct FoldOf<V> {
    spec: FoldSpec,
    values: PhantomData<fn() -> V>,
}

impl<V> FoldOf<V> {
    pub(crate) fn new(fold: impl Fold + 'static) -> FoldOf<V> {
        FoldOf { spec: FoldSpec::built_in(fold), values: PhantomData }
    }

    /// The same without the type.
    pub fn spec(&self) -> &FoldSpec {
        &self.spec
    }

    /// The fold.
    pub fn as_fold(&self) -> &Arc<dyn Fold> {
        &self.spec.fold
    }
}

impl<V> From<FoldOf<V>> for FoldSpec {
    fn from(fold: FoldOf<V>) -> FoldSpec {
        fold.spec
    }
}

impl<V> From<FoldOf<V>> for Arc<dyn Fold> {
    fn from(fold: FoldOf<V>) -> Arc<dyn Fold> {
        fold.spec.fold
    }
}

impl<V> Clone for FoldOf<V> {
    fn clone(&self) -> Self {
        FoldOf { spec: self.spec.clone(), values: PhantomData }
    }
}

impl<V> fmt::Debug for FoldOf<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

/// What a table of values `V` may fold by: a [`FoldOf`] of `V`, or a spec string.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not fold values of type `{V}`",
    label = "the table has values of type `{V}`",
    note = "`folddb::folds` has a function for each fold, which names the types that it folds"
)]
pub trait IntoFold<V> {
    /// The fold.
    ///
    /// # Errors
    /// The spec string is not valid.
    fn into_fold(self) -> Result<FoldSpec, ParseError>;
}

impl<V> IntoFold<V> for FoldOf<V> {
    fn into_fold(self) -> Result<FoldSpec, ParseError> {
        Ok(self.spec)
    }
}

impl<V> IntoFold<V> for FoldSpec {
    fn into_fold(self) -> Result<FoldSpec, ParseError> {
        Ok(self)
    }
}

impl<V> IntoFold<V> for &FoldSpec {
    fn into_fold(self) -> Result<FoldSpec, ParseError> {
        Ok(self.clone())
    }
}

impl<V> IntoFold<V> for &str {
    fn into_fold(self) -> Result<FoldSpec, ParseError> {
        self.parse()
    }
}

impl<V> IntoFold<V> for &String {
    fn into_fold(self) -> Result<FoldSpec, ParseError> {
        self.parse()
    }
}

impl<V> IntoFold<V> for String {
    fn into_fold(self) -> Result<FoldSpec, ParseError> {
        self.parse()
    }
}

/// The fold of a record of these fields. None of them is a custom one.
pub(crate) fn record_of(fields: &[(&str, FoldSpec)]) -> FoldSpec {
    let field = |(name, fold): &(&str, FoldSpec)| format!("{}: {fold}", quoted_name(name));
    let text = format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "));
    match text.parse() {
        Ok(fold) => fold,
        Err(_) => FoldSpec { fold: Arc::new(Unknown(text)), is_custom: false }, // reported later
    }
}

/// A spec string that names no fold.
struct Unknown(String);

impl Fold for Unknown {
    fn spec(&self) -> String {
        self.0.clone()
    }

    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Err(FoldFailure::new(format!("`{}` is no fold", self.0)))
    }
}

// ---- the folds ----------------------------------------------------------------------------------

/// `replace`: the later value wins. The default of a table if its type is made for no fold.
pub fn replace<V>() -> FoldOf<V> {
    FoldOf::new(Replace)
}

/// `first`: the earlier value wins.
pub fn first<V>() -> FoldOf<V> {
    FoldOf::new(First)
}

/// A type that [`sum`] adds: `i64`, `u64`, `i128`, [`ExactSum`].
#[diagnostic::on_unimplemented(
    message = "there is no sum of values of type `{Self}`",
    note = "sums are of `i64`, `u64`, `i128`, and of `f64` as `ExactSum`"
)]
pub trait Summed: Sized {
    /// Its sum.
    #[doc(hidden)]
    fn sum() -> FoldOf<Self>;
    /// The sum of nothing.
    #[doc(hidden)]
    fn zero() -> Self;
    /// The length of every sum, if it is fixed.
    #[doc(hidden)]
    const LEN: Option<usize>;
}

macro_rules! summed {
    ($($number:ty: $fold:ident, $zero:expr, $len:expr;)+) => {$(
        impl Summed for $number {
            const LEN: Option<usize> = $len;
            fn sum() -> FoldOf<$number> {
                FoldOf::new($fold)
            }
            fn zero() -> $number {
                $zero
            }
        }
    )+};
}

summed! {
    i64: SumI64, 0, Some(8);
    u64: SumU64, 0, Some(8);
    i128: SumI128, 0, Some(16);
    ExactSum: SumF64, ExactSum::default(), None;
}

/// The sum: it wraps for `i64` and `i128`, stays at 2^64-1 for `u64`, and is the exact sum of `f64`
/// for [`ExactSum`].
pub fn sum<N: Summed>() -> FoldOf<N> {
    N::sum()
}

/// A type that [`min`] and [`max`] take: `i64`, `u64`, `f64`, and byte strings.
#[diagnostic::on_unimplemented(
    message = "there is no least and no largest of values of type `{Self}`",
    note = "extremes are of `i64`, `u64`, `f64`, `String` and `Vec<u8>`"
)]
pub trait Ordered: Sized {
    /// The fold that keeps the least, or the largest.
    #[doc(hidden)]
    fn extreme(largest: bool) -> FoldOf<Self>;
    /// The length of every value, if it is fixed.
    #[doc(hidden)]
    const LEN: Option<usize>;
    /// The bytes of the value that loses against all others, if the length is fixed.
    #[doc(hidden)]
    fn weakest(_largest: bool) -> [u8; 8] {
        [0; 8]
    }
}

macro_rules! ordered_number {
    ($($number:ty: $name:ident),+) => {$(
        impl Ordered for $number {
            const LEN: Option<usize> = Some(8);
            fn extreme(largest: bool) -> FoldOf<$number> {
                FoldOf::new(Extreme { number: NumberType::$name, largest })
            }
            fn weakest(largest: bool) -> [u8; 8] {
                Extreme { number: NumberType::$name, largest }.weakest()
            }
        }
    )+};
}

ordered_number!(i64: I64, u64: U64, f64: F64);

impl Ordered for Vec<u8> {
    const LEN: Option<usize> = None;
    fn extreme(largest: bool) -> FoldOf<Vec<u8>> {
        FoldOf::new(ExtremeBytes { largest })
    }
}

impl Ordered for String {
    const LEN: Option<usize> = None;
    fn extreme(largest: bool) -> FoldOf<String> {
        FoldOf::new(ExtremeBytes { largest })
    }
}

/// The least value. NaN only if there is nothing else; text by its bytes.
pub fn min<T: Ordered>() -> FoldOf<T> {
    T::extreme(false)
}

/// The largest value. NaN only if there is nothing else; text by its bytes.
pub fn max<T: Ordered>() -> FoldOf<T> {
    T::extreme(true)
}

/// `stats:f64`: count, sum, least, largest, mean, variance.
pub fn stats() -> FoldOf<Stats> {
    FoldOf::new(StatsF64)
}

/// A type that [`append`] joins: `String`, `Vec<u8>`.
#[diagnostic::on_unimplemented(
    message = "values of type `{Self}` are not joined: `String` and `Vec<u8>` are"
)]
pub trait Joined: Sized {}

impl Joined for String {}
impl Joined for Vec<u8> {}

/// `append:SEP`: everything, one after the other, with the separator between. It may be empty.
pub fn append<B: Joined>(separator: &str) -> FoldOf<B> {
    FoldOf::new(Append { separator: separator.as_bytes().to_vec() })
}

/// `set`: the union.
pub fn set() -> FoldOf<ByteSet> {
    FoldOf::new(SetFold { keeps: Keeps::All })
}

/// `intersect`: the members that are in all sets.
pub fn intersect() -> FoldOf<ByteSet> {
    FoldOf::new(SetFold { keeps: Keeps::Common })
}

/// `bitmap`: the union of sets of `u32`.
#[cfg(feature = "bitmap")]
pub fn bitmap() -> FoldOf<Bitmap> {
    FoldOf::new(BitmapFold)
}

/// `counters`: a map of names to counts, which add up.
pub fn counters() -> FoldOf<Counters> {
    FoldOf::new(CountersFold)
}

/// `lww:ts`: the latest by a time inside the value.
pub fn last_writer<V>() -> FoldOf<Timed<V>> {
    FoldOf::new(LastWriter)
}

/// `top:K`: the K members with the largest scores.
pub fn top<const K: usize, S: Score>() -> FoldOf<TopK<K, S>> {
    FoldOf::new(TopK::<K, S>::FOLD)
}

/// `hll:P`: about how many distinct members.
pub fn hll<const P: u32>() -> FoldOf<Hll<P>> {
    let _ = Hll::<P>::new(); // a wrong precision does not compile
    FoldOf::new(HllFold { precision: P })
}

/// `quantiles`: any quantile, within a relative error.
pub fn quantiles<const BASIS_POINTS: u32>() -> FoldOf<Quantiles<BASIS_POINTS>> {
    FoldOf::new(QuantilesFold { mapping: Mapping::new(Quantiles::<BASIS_POINTS>::ALPHA) })
}

/// `matmul:N:T`: the product of matrices, in order.
pub fn matmul<const N: usize, T: MatrixNumber>() -> FoldOf<Matrix<N, T>> {
    FoldOf::new(Matrix::<N, T>::FOLD)
}

/// `json-merge`: documents, name by name.
#[cfg(feature = "json")]
pub fn json_merge() -> FoldOf<serde_json::Value> {
    FoldOf::new(JsonMerge)
}

/// `patch`: an object and edits on it.
pub fn patch() -> FoldOf<Patch> {
    FoldOf::new(PatchFold)
}

#[cfg(test)]
#[path = "typed/tests.rs"]
mod tests;
