//! The rules of a table: what its bytes mean, as the manifest stores it and as the engine uses it.
//!
//! [`TableRules`] is plain data with a canonical text, which the manifest keeps.
//! [`StoredRules::bind`] gives the names in it their functions, from the folds that come with
//! FoldDB and from [`Custom`], and makes [`BoundRules`]. If the fold of a table is not available,
//! the table can still be read, unfolded, but not written.
//!
//! ```text
//!   rules 1                      the version of the form
//!   archive_log=on               its log is archived, so that its runs can be rebuilt; only when given
//!   block_bytes=4096             the lines are sorted by name; values with %XX for what is not printable ASCII
//!   bottom_compression=zstd      only when given; as compression
//!   compression=none             none lz4 zstd
//!   delete=never                 never equal:BYTES named:NAME
//!   expire=by-write              never by-write or a time, see time.rs; only when given
//!   filter_bits=10
//!   fold=sum:u64                 a fold that comes with FoldDB, or else
//!   custom_fold=NAME             a custom one, together with
//!   fold_version=1
//!   head=none                    none first:N json:POINTER named:NAME; only when given
//!   index=NAME:RULE              its indexes, %0a between them, see terms.rs; in the rules of an index, itself; only when given
//!   index_of=NAME                the table that this is an index of; only of an index
//!   ?key_names=NAMES             names of its elements, %0a between them; only when given
//!   keep=forever                 latest versions:N window:TIME forever, see time.rs; only when given
//!   key=tuple(text,text)
//!   kind=sorted                  sorted hashed
//!   order=bytewise
//!   value_placement=files        where separated values are: segments files; only when given
//!   separate=2048                values from this many bytes on are separated; only when given
//!   short_circuit=never          as delete
//!   summaries=on                 blocks of the bottom run have summaries; only when given
//!   value=bytes
//! ```
//!
//! A reader that does not know a name refuses the table, unless the name begins with `?`: those are
//! kept and otherwise ignored.

mod escape;
mod choices;
mod data;
mod ready_made;
mod text;
mod typed;
mod diff;
mod alter;
mod custom;
mod bound;
mod check;
mod stored;

pub use alter::{Applies, RuleChange};
pub use bound::BoundRules;
pub use choices::{Compression, FoldName, PredicateRule, TableKind};
pub use custom::Custom;
pub use data::{
    BLOCK_BYTES, FILTER_BITS_MAX, HASHED_VERSIONS_MAX, SEPARATE_BYTES, SEPARATE_BYTES_MIN, TableRules,
};
pub use ready_made::READY_MADE;
pub use stored::StoredRules;

#[cfg(test)]
#[path = "table_rules/tests.rs"]
mod tests;
