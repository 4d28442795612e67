//! Digests: the contents of a range of a table in few bytes, so that two stores can compare theirs.
//!
//! A digest is built from keys, heads and deadlines. Separated values are not read, except those in
//! several pieces, whose heads depend on the pieces, and those of hashed tables with versions or
//! expiry, whose heads depend on the time of the write. It also includes the meaning of the bytes
//! by the rules of the table: the types of keys and values, the order, the fold and its version,
//! and the rules of delete and short-circuit. It does not include how a table stores its rows, how
//! much of its past it keeps or how long future values last, since none of this changes the present
//! contents. [`Digest`] describes its form; `maintenance/compare.rs` finds the rows that differ.

use std::io::Read;

use folddb_base::checksum::{GrowingHash, hash64, key_hash};
use folddb_base::pointer::value_hash;
use folddb_base::{Error, Result};
use folddb_engine::write::stream;
use folddb_layout::cursor_token::put_bound;
use folddb_layout::digest::add_row;
pub use folddb_layout::digest::{DIGEST_VERSION, Digest};
use folddb_rules::time::unix_ms;

use crate::aggregate::parallel::{END, GO_ON, Step};
use crate::scan::bytes::{BytesScan, LentRows};

/// Bytes of a value in several pieces that are held at once.
const PIECE_BYTES: usize = 64 << 10;

impl BytesScan {
    /// The digest of the range, with 16^depth leaves; the depth is at most 6. Digests compare if
    /// their range, depth and the meaning of the bytes are the same, also between stores. `threads`
    /// share the work.
    ///
    /// It uses the size, a 32-bit hash and the deadline of a value: two different values of a key
    /// appear equal in one of 2^32 cases. Of separated values only those in several pieces are
    /// read, piece by piece, and those of hashed tables with versions or expiry, as a whole.
    ///
    /// # Errors
    /// As [`BytesScan::fold_rows`]; if a transaction has written to the table and its values may
    /// expire, since their deadlines depend on the time of the commit.
    pub fn digest(self, depth: u8, threads: usize) -> Result<Digest> {
        self.check_deadlines_known()?;
        let (scope, meaning) = (self.scope(), self.table.rules.meaning());
        let empty = || Digest::new(depth, scope, &meaning);
        let joined = |mut sum: Digest, more: Digest| {
            let alike = sum.join(&more);
            debug_assert!(alike.is_ok(), "the pieces of one scan are of one scope");
            sum
        };
        match self.table.hashed.is_some() && self.table.is_timed {
            true => self.fold_parallel(threads, &empty, &take_value, joined),
            false => self.with_heads().fold_parallel(threads, &empty, &take_head, joined),
        }
    }

    /// Writes of a transaction to a table whose values expire have no deadline yet.
    fn check_deadlines_known(&self) -> Result<()> {
        let table = &self.table;
        let writes = self.inside.as_ref().is_some_and(|inside| inside.has_written(table));
        if !(writes && table.expires) {
            return Ok(());
        }
        let message = format!(
            "a transaction that has written to table `{}`, whose values expire, makes no digest of it",
            table.name
        );
        Err(Error::invalid(message).advise("commit first, or make it at the transaction's snapshot"))
    }

    /// The hash of the range of a digest of this scan.
    fn scope(&self) -> u64 {
        let mut bounds = Vec::new();
        put_bound(&mut bounds, self.plan.low.as_ref());
        put_bound(&mut bounds, self.plan.high.as_ref());
        hash64(0, &bounds)
    }
}

/// Takes the next row by its head.
fn take_head(rows: &mut LentRows, digest: &mut Digest) -> Result<Step> {
    let Some((key, head)) = rows.next_head()? else { return Ok(END) };
    if head.pieces == 1 {
        add_row(digest, key, head.size_bytes, head.hash, head.deadline.map(unix_ms));
        return Ok(GO_ON);
    }
    let hash = hash_of_pieces(rows)?;
    add_row(digest, rows.key(), head.size_bytes, hash, head.deadline.map(unix_ms));
    Ok(GO_ON)
}

/// The hash of the bytes of a value in several pieces, independent of the pieces: the hash in the
/// head depends on them.
fn hash_of_pieces(rows: &LentRows) -> Result<u32> {
    let ((engine, table), (_, at), key) = rows.rows.cursor_parts();
    let mut hash = GrowingHash::new(key_hash(key));
    let Some(mut value) = stream::read_value(engine, table, key, Some(at))? else { return Ok(hash.hash32()) };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match value.read(&mut piece).map_err(Error::from)? {
            0 => return Ok(hash.hash32()),
            read => hash.push(&piece[..read]),
        }
    }
}

/// Takes the next row by its value.
fn take_value(rows: &mut LentRows, digest: &mut Digest) -> Result<Step> {
    if rows.next_row()?.is_none() {
        return Ok(END);
    }
    let ((key, value), deadline_ms) = (rows.rows.row(), rows.rows.deadline_ms());
    add_row(digest, key, value.len() as u64, value_hash(key, value), deadline_ms);
    Ok(GO_ON)
}
