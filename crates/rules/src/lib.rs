//! Floor 1 of FoldDB: what a table means.
//! Internal, no promises: `folddb` is the public API.
//!
//! The order of its keys, how keys and values look as bytes, how the values of one key fold, when a
//! value stops mattering. Everything is pure: no I/O, no clock, no threads. The modules are in
//! bottom-up order.

#![forbid(unsafe_code)]

pub mod parse_error;
pub mod order;
pub mod datum;
pub mod words;
pub mod fold;
pub mod rope;
pub mod time;
pub mod time_text;
pub mod algebra;
mod aggregate;
pub mod resolve;
pub mod folds;
pub mod codec;
pub mod law;
mod updates;
pub mod head;
pub mod value_placement;
pub mod terms;
pub mod table_rules;
mod fit;
pub mod term_kind;
pub mod extract;
pub mod index_query;
pub mod term_law;

pub use aggregate::Aggregate;
pub use algebra::{Composed, FoldRules, State};
pub use codec::Fit;
pub use datum::Datum;
pub use extract::Extractor;
pub use fold::{Fold, FoldFailure, Outcome};
pub use order::KeyOrder;
pub use parse_error::ParseError;
pub use rope::Joins;
pub use terms::{IndexRule, TermRule, Terms};
pub use time::{Expire, Keep};
pub use updates::{Update, Updated};
