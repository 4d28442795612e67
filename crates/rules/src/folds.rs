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
//! All except `matmul:N:f64` are associative byte for byte, under any merge schedule. Each module
//! draws its bytes, says what happens at overflow, and why it is associative.
//!
//! Each fold has a function that names it for a type ([`sum()`], [`stats()`], ...), and a type of
//! its values: [`Stats`], [`ExactSum`], [`Hll`], [`Quantiles`], [`TopK`], [`ByteSet`],
//! [`Counters`], [`Bitmap`], [`Patch`], [`Timed`], [`Matrix`]. A table of one of these types has
//! that fold by default. [`Sum`], [`Min`], [`Max`] and [`First`] do the same for numbers and text.

mod built_in;
mod words;
mod choose;
mod number;
mod exact_sum;
mod exact_total;
mod sum_f64;
mod stats;
pub(crate) mod append;
mod set;
mod counters;
#[cfg(feature = "bitmap")]
mod bitmap;
mod top;
mod hll;
mod quantiles;
mod json_merge;
mod matmul;
mod patch;
mod record;
mod spec;
mod named;
mod typed;

#[cfg(feature = "bitmap")]
pub use bitmap::Bitmap;
pub use choose::Timed;
pub use counters::Counters;
pub use exact_sum::ExactSum;
pub use hll::Hll;
pub use matmul::{Matrix, MatrixNumber};
pub use named::{First, Max, Min, Sum};
pub use patch::{Edit, Patch};
pub use quantiles::Quantiles;
pub use record::Record;
pub use set::ByteSet;
pub(crate) use spec::parse;
pub use spec::{Columns, SPECS, Source};
pub use stats::Stats;
pub use top::{Score, TopK};
pub use typed::{
    FoldOf, FoldSpec, IntoFold, Joined, Ordered, Summed, append, counters, first, hll, intersect,
    last_writer, matmul, max, min, patch, quantiles, replace, set, stats, sum, top,
};

#[cfg(feature = "bitmap")]
pub use typed::bitmap;
#[cfg(feature = "json")]
pub use typed::json_merge;

pub(crate) use typed::record_of;

#[cfg(test)]
#[path = "folds/tests.rs"]
mod tests;
