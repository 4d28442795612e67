//! The changes of the index of a hashed table after its checkpoint, as an opening saves them:
//! changes in the order of their seqs, and a footer.
//!
//! ```text
//!   changes   of each: distance of its seq varint (of the first from zero, of the others from the one before), point 5 bytes LE,
//!             the old slot 7 bytes LE, the new slot 7 bytes LE; zero for no slot, and not both are zero
//!             then xxh3-64 of that, u64 LE, seeded with file and offset
//!   footer    64 bytes
//! ```
//!
//! Points and slots are those of `hash_checkpoint.rs`. The checkpoint and all changes after the
//! seqs of its pieces are the index. Written and read by `folddb-hash`.

use folddb_base::Seq;
use folddb_base::bytes::{Malformed, Reader, put_u32, put_u64, put_varint};

use crate::hash_checkpoint::{ADDRESS_BITS, POINT_BITS, SLOT_BITS, SLOT_BYTES, body_of, put_sum};
use crate::part::FooterFault;

/// Bytes of the footer.
pub const CHANGES_FOOTER_BYTES: usize = 64;

/// The version of changes that is written, and the newest that is read.
pub const CHANGES_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"FoldHchg";
const POINT_BYTES: usize = POINT_BITS as usize / 8;

/// Bytes that a change takes, without the distance of its seq.
const FIXED_BYTES: usize = POINT_BYTES + 2 * SLOT_BYTES;

/// Fewest bytes that a change takes.
pub const CHANGE_BYTES_MIN: usize = 1 + FIXED_BYTES;

/// A change of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The seq of the record that made it.
    pub seq: Seq,
    /// The point of its key.
    pub point: u64,
    /// The slot that is removed; zero for none.
    pub old: u64,
    /// The slot that is added; zero for none.
    pub new: u64,
}

/// Appends these changes, whose seqs ascend, to the empty file of this number.
pub fn put_changes(out: &mut Vec<u8>, changes: &[Changed], number: u64) {
    let start = out.len();
    out.reserve(changes.len() * (CHANGE_BYTES_MIN + 1) + CHANGES_FOOTER_BYTES);
    let mut before = 0;
    for change in changes {
        put_varint(out, change.seq.wrapping_sub(before));
        out.extend_from_slice(&change.point.to_le_bytes()[..POINT_BYTES]);
        out.extend_from_slice(&change.old.to_le_bytes()[..SLOT_BYTES]);
        out.extend_from_slice(&change.new.to_le_bytes()[..SLOT_BYTES]);
        before = change.seq;
    }
    put_sum(out, start, number, 0);
}

/// Reads this many changes: everything that the file of this number holds before its footer.
///
/// # Errors
/// The checksum does not match, or the bytes are not those changes.
pub fn read_changes(stored: &[u8], count: u64, number: u64) -> Result<Vec<Changed>, Malformed> {
    let body = body_of(stored, number, 0)?;
    let count = usize::try_from(count).map_err(|_| Malformed::Bounds)?;
    if count > body.len() / CHANGE_BYTES_MIN {
        return Err(Malformed::Bounds);
    }
    let mut reader = Reader::new(body);
    let mut changes: Vec<Changed> = Vec::with_capacity(count);
    let mut before = 0u64;
    for _ in 0..count {
        let distance = reader.varint()?;
        let seq = before.checked_add(distance).filter(|_| distance > 0).ok_or(Malformed::Order)?;
        let point = little(&mut reader, POINT_BYTES)?;
        let (old, new) = (little(&mut reader, SLOT_BYTES)?, little(&mut reader, SLOT_BYTES)?);
        if !is_slot(old) || !is_slot(new) || old == new {
            return Err(Malformed::Bounds);
        }
        changes.push(Changed { seq, point, old, new });
        before = seq;
    }
    reader.finish()?;
    Ok(changes)
}

fn little(reader: &mut Reader<'_>, bytes: usize) -> Result<u64, Malformed> {
    let mut number = [0; 8];
    number[..bytes].copy_from_slice(reader.take(bytes)?);
    Ok(u64::from_le_bytes(number))
}

/// Whether this is a valid slot, or zero.
fn is_slot(number: u64) -> bool {
    number == 0 || (number & ((1 << ADDRESS_BITS) - 1) != 0 && number < 1 << SLOT_BITS)
}

/// The last [`CHANGES_FOOTER_BYTES`] of such a file.
///
/// ```text
///    0  magic       8 B    "FoldHchg"
///    8  version     u32
///   12  (zero)      u32
///   16  number      u64    the file's number
///   24  file_bytes  u64    the footer included
///   32  count       u64    how many changes there are
///   40  checkpoint  u64    the number of the checkpoint that they come after
///   48  salt        u64    seeds the hashes of the keys
///   56  checksum    u64    xxh3-64 of the 56 bytes before, seeded with file and offset
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesFooter {
    /// The file's number.
    pub number: u64,
    /// The length of the file, the footer included.
    pub file_bytes: u64,
    /// How many changes there are.
    pub count: u64,
    /// The number of the checkpoint that they come after.
    pub checkpoint: u64,
    /// What the hashes of the keys are seeded with.
    pub salt: u64,
}

impl ChangesFooter {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        put_u32(out, CHANGES_VERSION);
        put_u32(out, 0);
        for number in [self.number, self.file_bytes, self.count, self.checkpoint, self.salt] {
            put_u64(out, number);
        }
        put_sum(out, start, self.number, self.file_bytes.saturating_sub(CHANGES_FOOTER_BYTES as u64));
    }

    /// Reads the footer of the file of this number and length.
    ///
    /// # Errors
    /// The bytes are not a footer, or are of a newer version.
    pub fn read(
        bytes: &[u8; CHANGES_FOOTER_BYTES],
        number: u64,
        file_bytes: u64,
    ) -> Result<ChangesFooter, FooterFault> {
        let mut reader = Reader::new(bytes);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(Malformed::Tag.into());
        }
        let version = reader.u32()?;
        let footer_at = file_bytes.checked_sub(CHANGES_FOOTER_BYTES as u64).ok_or(Malformed::Short)?;
        body_of(bytes, number, footer_at)?; // before the version: a damaged one is no newer one
        if version > CHANGES_VERSION {
            return Err(FooterFault::Newer(version));
        }
        if version == 0 || reader.u32()? != 0 {
            return Err(Malformed::Tag.into());
        }
        if reader.u64()? != number || reader.u64()? != file_bytes {
            return Err(Malformed::Order.into());
        }
        let (count, checkpoint, salt) = (reader.u64()?, reader.u64()?, reader.u64()?);
        if count > footer_at / CHANGE_BYTES_MIN as u64 {
            return Err(Malformed::Bounds.into());
        }
        Ok(ChangesFooter { number, file_bytes, count, checkpoint, salt })
    }
}

#[cfg(test)]
#[path = "hash_changes/tests.rs"]
mod tests;
