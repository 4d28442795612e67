//! The folds that come with FoldDB, each named by a spec string.
//!
//! | spec | folds | length |
//! |---|---|---|
//! | `replace`, `first` | the later, the earlier value | any |
//! | `sum:i64` | whole numbers; wraps beyond 2^63 | 8 |
//! | `sum:u64` | whole numbers; stays at 2^64-1 once it is there | 8 |
//! | `sum:i128` | whole numbers; wraps beyond 2^127 | 16 |
//! | `sum:f64` | floating-point numbers, exactly | 8 or more |
//! | `min:T`, `max:T` | T is `i64`, `u64`, `f64` or `bytes` | 8, or any |
//! | `stats:f64` | count, sum, least, largest; mean and variance | 3 or more |
//! | `append`, `append:SEP` | bytes one after the other | any |
//! | `set`, `intersect` | byte strings; union, intersection | any |
//! | `bitmap` | `u32`; union | any |
//! | `counters` | a map of sums | any |
//! | `lww:ts` | the latest by a time inside the value | any |
//! | `top:K`, `top:K:i64` | the K members with the largest scores | any |
//! | `hll:P` | how many distinct members, about | up to 2^P |
//! | `quantiles`, `quantiles:ALPHA` | a distribution, within a relative error | any |
//! | `json-merge` | JSON documents, name by name | any |
//! | `matmul:N:f64`, `matmul:N:i64` | products of matrices; the first is approximate | 8 N² |
//! | `patch` | an object, or edits on it | any |
//! | `{name: spec, ...}` | a record: each field by its own fold | |
//!
//! All but `matmul:N:f64` are associative byte for byte, whatever the merge schedule. Each module draws its
//! bytes, says what happens at overflow, and why it is associative. Beside each fold stands a small type that
//! makes and reads its values: [`Stats`], [`ExactSum`], [`Hll`], [`Quantiles`], [`TopK`], [`ByteSet`],
//! [`Counters`], [`Bitmap`], [`Patch`], [`Timed`], [`Record`].

mod built_in;
mod words;
mod choose;
mod number;
mod exact_sum;
mod stats;
mod append;
mod set;
mod counters;
mod bitmap;
mod top;
mod hll;
mod quantiles;
mod json_merge;
mod matmul;
mod patch;
mod record;
mod spec;

pub use bitmap::Bitmap;
pub use choose::Timed;
pub use counters::Counters;
pub use exact_sum::ExactSum;
pub use hll::Hll;
pub use patch::{Edit, Patch};
pub use quantiles::Quantiles;
pub use record::Record;
pub use set::ByteSet;
pub use spec::{Columns, SPECS, Source, SpecError, parse, parse_columns};
pub use stats::Stats;
pub use top::{Score, TopK};

use std::sync::Arc;

use crate::fold::Fold;

/// `replace`: the later value wins.
pub fn replace() -> Arc<dyn Fold> {
    Arc::new(choose::Replace)
}

/// `first`: the earlier value wins.
pub fn first() -> Arc<dyn Fold> {
    Arc::new(choose::First)
}

/// `sum:i64`: wraps at 2^63.
pub fn sum_i64() -> Arc<dyn Fold> {
    Arc::new(number::SumI64)
}

/// `sum:u64`: saturates at 2^64-1.
pub fn sum_u64() -> Arc<dyn Fold> {
    Arc::new(number::SumU64)
}

/// `sum:i128`: wraps at 2^127.
pub fn sum_i128() -> Arc<dyn Fold> {
    Arc::new(number::SumI128)
}

/// `sum:f64`: exact. See [`ExactSum`].
pub fn sum_f64() -> Arc<dyn Fold> {
    Arc::new(exact_sum::SumF64)
}

/// `stats:f64`. See [`Stats`].
pub fn stats() -> Arc<dyn Fold> {
    Arc::new(stats::StatsF64)
}

/// `append` with a separator, which may be empty.
pub fn append(separator: &[u8]) -> Arc<dyn Fold> {
    Arc::new(append::Append { separator: separator.to_vec() })
}

/// `set`: union. See [`ByteSet`].
pub fn set() -> Arc<dyn Fold> {
    Arc::new(set::SetFold { keeps: set::Keeps::All })
}

/// `counters`. See [`Counters`].
pub fn counters() -> Arc<dyn Fold> {
    Arc::new(counters::CountersFold)
}

/// `bitmap`. See [`Bitmap`].
pub fn bitmap() -> Arc<dyn Fold> {
    Arc::new(bitmap::BitmapFold)
}

/// `lww:ts`. See [`Timed`].
pub fn last_writer() -> Arc<dyn Fold> {
    Arc::new(choose::LastWriter)
}

/// `json-merge`.
pub fn json_merge() -> Arc<dyn Fold> {
    Arc::new(json_merge::JsonMerge)
}

/// `patch`. See [`Patch`].
pub fn patch() -> Arc<dyn Fold> {
    Arc::new(patch::PatchFold)
}

#[cfg(test)]
#[path = "folds/tests.rs"]
mod tests;
