//! How two ops on one key become one.
//!
//! Every op is a function on states in the normal form ⟨result on absent | action on a present x⟩
//! (see `folddb_base::op`), and [`FoldRules::compose`] computes the normal form of "first the
//! older, then the newer". Function composition is associative, so merges may happen in any order,
//! and each branch is made of the same products, grouped differently, so the bytes are the same
//! too:
//!
//! ```text
//!   older \ newer    Delete   Set w   Insert w         Fold n               InsertFold b n
//!   Delete           Delete   Set w   Set w            Set n                Set b
//!   Set v            Delete   Set w   Set v            Set v·n              Set v·n
//!   Insert v         Delete   Set w   Insert v         InsertFold v·n n     InsertFold v·n n
//!   Fold m           Delete   Set w   Fold m           Fold m·n             Fold m·n
//!   InsertFold a m   Delete   Set w   InsertFold a m   InsertFold a·n m·n   InsertFold a·n m·n
//! ```
//!
//! It corrects HugeDB's draft of the same idea: an insert under a delta needs no search on disk, a
//! delete followed by an insert does not bring an old value back, and a delete followed by a delta
//! is the delta.
//!
//! `compose` may *decline*: then the two ops stay two records, and readers apply them one by one.
//! It declines if the user's function fails or panics, if the fold is not available, if an `Insert`
//! follows a state that may count as deleted, if a fold's `Delete` outcome leaves a function that
//! has no normal form, and if the result would be longer than a record may be, since folding grows
//! values without bound. Declining costs only space.
//!
//! `SetSeparated`, `InsertSeparated` and `FoldSeparated` compose as `Set`, `Insert` and `Fold` do
//! wherever no value is examined. If folding is joining, separated values are joined as lists of
//! pieces, and no value is examined either (`rope.rs`). Otherwise a later operand has nothing to be
//! folded onto while the value is separated, so these two decline; a reader loads the value and
//! folds. A separated value never counts as deleted: tables in which a value may count as deleted
//! keep all values inline.
//!
//! In tables with values that expire, ops have stamps; `expiry.rs` says how these change the table
//! above.

mod fold_rules;
mod plain;
mod expiry;

use folddb_base::limits::FOLDED_BYTES_MAX;
use folddb_base::{Op, OpBuf};

pub(crate) use fold_rules::Product;
pub use fold_rules::{Composed, Decline, FoldRules, Predicate, State};

impl FoldRules {
    /// Composes two neighboring ops of one key. On [`Composed::Out`] the result is in `out`. The
    /// former content of `out` is lost in either case. Both ops must have been normalized.
    #[inline]
    pub fn compose(&self, key: &[u8], older: Op<'_>, newer: Op<'_>, out: &mut OpBuf) -> Composed {
        let composed = match self.has_stamps {
            false => self.compose_plain(key, older, newer, out),
            true => self.compose_stamped(key, older, newer, out),
        };
        match composed {
            Composed::Out if out.payload.len() > FOLDED_BYTES_MAX => Composed::Both(Decline::TooLong),
            composed => composed,
        }
    }

    /// Applies one op to a state, in place. Composing must agree with it.
    ///
    /// # Errors
    /// The fold is missing or fails, or the value of the op is separated; the state is then
    /// unchanged.
    pub fn apply(&self, key: &[u8], state: &mut Option<Vec<u8>>, op: Op<'_>) -> Result<(), Decline> {
        match self.has_stamps {
            false => self.apply_unstamped(key, state, op),
            true => self.apply_stamped(key, state, op),
        }
    }
}

#[cfg(test)]
#[path = "algebra/tests.rs"]
pub(crate) mod tests;
