//! Writes values of any length in a form that their table takes. All code that may write long
//! values uses this: `load`, `synchronize`, `import`.
//!
//! ```text
//!   up to 16 MiB                        one op
//!   longer, and the table streams       one op, its value in separated pieces (`stream.rs`)
//!   longer, made by folding             operands that fold to the same bytes (`Fold::pieces`), in as many batches as they take:
//!                                       between two of them a reader sees, and a crash leaves, the beginning of the value
//!   else                                an error that names the key
//! ```

use std::sync::Arc;

use folddb_base::limits::{BATCH_BYTES_MAX, VALUE_BYTES_MAX};
use folddb_base::{Error, Result};

use crate::batch::Batch;
use crate::table::bytes::BytesTable;
use folddb_engine::seq::Seq;
use folddb_engine::write::encoded_batch::WriteOp;
use folddb_engine::write::stream::whole_because;

/// Room in a batch in addition to the value of an op.
const BESIDE_BYTES: usize = 128 << 10;

impl BytesTable {
    /// Writes one op whose value may have any length: as [`BytesTable::write`] up to 16 MiB; as a
    /// stream if it is longer and the table takes streams; otherwise as operands that fold to it,
    /// if the fold can produce them ([`folddb_rules::Fold::pieces`]). Operands of more than 32 MiB
    /// together are several batches: after a crash between two the key has the beginning of the
    /// value.
    ///
    /// # Errors
    /// As [`BytesTable::write`]; [`crate::ErrorKind::InvalidInput`], naming the key, for a value
    /// that the table takes in none of these ways. Then nothing is written.
    pub fn write_whole(&self, op: WriteOp, key: &[u8], value: &[u8]) -> Result<Seq> {
        if value.len() <= VALUE_BYTES_MAX || op == WriteOp::Delete {
            return self.write(op, key, value);
        }
        self.check(op, key, value)?;
        if self.takes_streams()
            && let Ok(mut writer) = self.writer(op, key)
        {
            writer.write_from(&mut &value[..])?;
            return writer.finish();
        }
        let pieces = match op {
            // A hashed table folds when it is written to, and has no longer folded values.
            _ if self.core.hashed.is_some() => None,
            WriteOp::Put | WriteOp::Fold => self.core.rules.fold.pieces(key, value, VALUE_BYTES_MAX),
            WriteOp::PutIfAbsent | WriteOp::Delete => None, // a later piece cannot know what the first has found
        };
        let pieces = pieces.ok_or_else(|| self.too_long(key, value.len()))?;
        self.write_pieces(op, key, &pieces)
    }

    fn write_pieces(&self, op: WriteOp, key: &[u8], pieces: &[Vec<u8>]) -> Result<Seq> {
        let mut batch = Batch::new(Arc::clone(self.engine()));
        for (index, piece) in pieces.iter().enumerate() {
            if !batch.is_empty() && batch.len_bytes() + piece.len() + BESIDE_BYTES > BATCH_BYTES_MAX {
                batch.commit(self.durability)?;
            }
            let op = if index == 0 { op } else { WriteOp::Fold };
            batch.write(self, op, key, piece);
        }
        batch.commit(self.durability)
    }

    fn too_long(&self, key: &[u8], bytes: usize) -> Error {
        let key = self.core.rules.rules.key_codec().show_line(key);
        Error::invalid(format!(
            "the value of key {key}, of {bytes} bytes, cannot be written to table `{}`: it takes values of at most {VALUE_BYTES_MAX} bytes, \
             and its fold cannot split a longer one into operands",
            self.name()
        ))
        .advise(whole_because(&self.core).map_or("put it instead of folding it", |(_, instead)| instead))
    }
}
