//! Digests: what a range of a table holds, in so few bytes that two stores can compare theirs.
//!
//! A digest is built from keys and heads: no value that lies apart is read, but for hashed tables with versions or expiry, whose heads
//! tell of the time of the write, too. [`Digest`] says how it is made; `care/compare.rs` goes from
//! what differs to the rows.

use std::ops::ControlFlow;

use folddb_base::Result;
use folddb_base::checksum::hash64;
use folddb_base::pointer::value_hash;
use folddb_layout::cursor_token::put_bound;
pub use folddb_layout::digest::Digest;

use crate::head::Head;
use crate::scans::BytesScan;

impl BytesScan {
    /// The digest of the range, with 16^depth leaves; a depth over 6 is as 6. Digests compare where range, key order and depth are the
    /// same, whatever the stores. `threads` share the work.
    ///
    /// What it knows of a value is its size and a hash of 32 bits: two other values of a key pass for the same in one case of 2^32.
    /// Of deadlines it knows nothing: what expires at another time passes for the same. Of a value in several pieces the hash is that
    /// of its pieces ([`Head::hash`]), so the same bytes in other pieces pass for another.
    ///
    /// Of hashed tables with versions or expiry values are read, each whole.
    ///
    /// # Errors
    /// As [`BytesScan::fold_rows`].
    pub fn digest(self, depth: u8, threads: usize) -> Result<Digest> {
        let scope = self.scope();
        let empty = || Digest::new(depth, scope);
        let take = |digest: &mut Digest, key: &[u8], head: &Head| {
            digest.take(key, head.size_bytes, head.hash);
            ControlFlow::Continue(())
        };
        let joined = |mut sum: Digest, more: Digest| {
            let alike = sum.join(&more);
            debug_assert!(alike.is_ok(), "the pieces of one scan are of one scope");
            sum
        };
        if self.table.hashed.is_some() && self.table.is_timed {
            let take_row = |digest: &mut Digest, key: &[u8], value: &[u8]| {
                digest.take(key, value.len() as u64, value_hash(key, value));
                ControlFlow::Continue(())
            };
            return self.fold_rows(threads, empty, take_row, joined);
        }
        self.fold_heads(threads, empty, take, joined)
    }

    /// The hash of what a digest of this scan is of: the order of the keys, and the range.
    fn scope(&self) -> u64 {
        let mut text = self.table.rules.order.name().as_bytes().to_vec();
        put_bound(&mut text, self.plan.low.as_ref());
        put_bound(&mut text, self.plan.high.as_ref());
        hash64(0, &text)
    }
}
