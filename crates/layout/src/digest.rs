//! A digest tree: the contents of a range of a table in few bytes, so that two stores can compare
//! theirs.
//!
//! Each key belongs to one of 16^depth leaves, by the first bits of its hash; a leaf is the sum of
//! the hashes of its rows, so rows may be added in any order and in several passes. A node above is
//! the hash of its sixteen children. A row is its key, its value and its deadline. In addition, the
//! digest says in words what the bytes mean: the same bytes are different values in tables with
//! other folds, so such digests do not compare. Equal digests mean the same keys, values and
//! deadlines. If they differ, a walk down the differing nodes ends at the leaves whose keys must be
//! compared. After Merkle, "A Digital Signature Based on a Conventional Encryption Function", 1987,
//! with leaves by hash as in TicTac trees of Riak.
//!
//! ```text
//!   a digest as bytes
//!      0  magic        8 bytes  "FDDIGEST"
//!      8  version      u8       2
//!      9  depth        u8       0 to 6
//!     10  scope        u64      hash of the range: two digests compare only where these are equal
//!     18  keys         u64      rows that were taken
//!     26  leaves       16^depth times u64
//!         meaning      UTF-8    what the bytes of keys and values mean, to the checksum
//!         checksum     u64      xxh3-64 with seed 0 of everything before
//! ```
//!
//! Version 1 had neither deadlines nor a meaning. It is refused, since it cannot be compared:
//! tables with equal digests of version 1 may differ.

use folddb_base::bytes::{Malformed, Reader, put_u64};
use folddb_base::checksum::{hash64, key_hash};
use folddb_base::{Error, Result};

/// The first bytes of a digest.
pub const DIGEST_MAGIC: [u8; 8] = *b"FDDIGEST";
/// The version of its form.
pub const DIGEST_VERSION: u8 = 2;
/// The deepest tree: 16 million leaves, 128 MB.
pub const DIGEST_DEPTH_MAX: u8 = 6;

const HEAD_BYTES: usize = 26;
const CHECKSUM_BYTES: usize = 8;
const FAN_OUT: usize = 16;
const FAN_OUT_BITS: u32 = 4;

/// The contents of a range of a table, as a tree of hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    depth: u8,
    scope: u64,
    meaning: String,
    keys: u64,
    leaves: Vec<u64>,
}

impl Digest {
    /// The digest of no rows, of 16^depth leaves; the depth is at most 6.
    /// `meaning` says what the bytes of keys and values mean. Digests of the same scope and meaning
    /// compare.
    pub fn new(depth: u8, scope: u64, meaning: &str) -> Digest {
        let depth = depth.min(DIGEST_DEPTH_MAX);
        Digest { depth, scope, meaning: meaning.to_owned(), keys: 0, leaves: vec![0; leaves_of(depth)] }
    }

    /// Adds all rows of another digest of the same shape, none of which it has already.
    ///
    /// # Errors
    /// If the two do not compare.
    pub fn join(&mut self, other: &Digest) -> Result<()> {
        self.check_compares(other)?;
        self.leaves.iter_mut().zip(&other.leaves).for_each(|(leaf, more)| *leaf = leaf.wrapping_add(*more));
        self.keys += other.keys;
        Ok(())
    }

    /// The leaf that a key belongs to.
    #[inline]
    pub fn leaf_of(&self, key: &[u8]) -> usize {
        match self.depth {
            0 => 0,
            depth => (key_hash(key) >> (64 - FAN_OUT_BITS * u32::from(depth))) as usize,
        }
    }

    /// How many rows were added.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Levels under the root.
    pub fn depth(&self) -> u8 {
        self.depth
    }

    /// What the bytes of its keys and values mean, in words.
    pub fn meaning(&self) -> &str {
        &self.meaning
    }

    /// The hash of everything: of the rows, and of what their bytes mean.
    pub fn root(&self) -> u64 {
        hash64(self.level(0)[0], self.meaning.as_bytes())
    }

    /// The nodes of a level, from the top (0) to the leaves (the depth); a deeper level is that of
    /// the leaves.
    pub fn level(&self, level: u8) -> Vec<u64> {
        let mut nodes = self.leaves.clone();
        for _ in level..self.depth {
            nodes = nodes.chunks_exact(FAN_OUT).map(parent).collect();
        }
        nodes
    }

    /// True if the two have the same range and depth, and their bytes mean the same.
    pub fn compares_with(&self, other: &Digest) -> bool {
        self.is_of_range(other) && self.meaning == other.meaning
    }

    /// True if the two have the same range and depth, regardless of what their bytes mean.
    pub fn is_of_range(&self, other: &Digest) -> bool {
        (self.depth, self.scope) == (other.depth, other.scope)
    }

    fn check_compares(&self, other: &Digest) -> Result<()> {
        let differs = match self {
            _ if self.depth != other.depth => "depths",
            _ if self.scope != other.scope => "ranges",
            _ if self.meaning != other.meaning => "meanings of their bytes",
            _ => return Ok(()),
        };
        let refused = Error::invalid(format!("two digests with different {differs} do not compare"));
        Err(refused.advise("make both with the same depth and range, of tables with the same rules"))
    }

    /// The leaves that differ, ascending: no key of any other leaf differs, except with a chance of
    /// one in 2^32.
    ///
    /// # Errors
    /// If the two do not compare.
    pub fn differing(&self, other: &Digest) -> Result<Vec<usize>> {
        self.check_compares(other)?;
        let pairs = self.leaves.iter().zip(&other.leaves).enumerate();
        Ok(pairs.filter(|(_, (mine, theirs))| mine != theirs).map(|(leaf, _)| leaf).collect())
    }

    /// The digest as bytes, as docs/FORMAT.md draws them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out =
            Vec::with_capacity(HEAD_BYTES + 8 * self.leaves.len() + self.meaning.len() + CHECKSUM_BYTES);
        out.extend_from_slice(&DIGEST_MAGIC);
        out.extend_from_slice(&[DIGEST_VERSION, self.depth]);
        put_u64(&mut out, self.scope);
        put_u64(&mut out, self.keys);
        self.leaves.iter().for_each(|&leaf| put_u64(&mut out, leaf));
        out.extend_from_slice(self.meaning.as_bytes());
        let checksum = hash64(0, &out);
        put_u64(&mut out, checksum);
        out
    }

    /// The version of a digest, by its first bytes; none if they are something else.
    pub fn version_of(bytes: &[u8]) -> Option<u8> {
        bytes.strip_prefix(&DIGEST_MAGIC)?.first().copied()
    }

    /// Reads what [`Digest::to_bytes`] wrote.
    ///
    /// # Errors
    /// If it is of another version ([`Digest::version_of`] says which), if the bytes are not a
    /// digest, or if they were changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Digest> {
        Digest::decode(bytes).map_err(|cause| match Digest::version_of(bytes) {
            Some(version) if cause == Malformed::Version => {
                let message = format!("a digest of version {version} does not compare with {DIGEST_VERSION}");
                Error::invalid(message).advise("make it again with this version of FoldDB")
            }
            _ => Error::invalid(format!("not a digest, or it was changed: {cause}")),
        })
    }

    fn decode(bytes: &[u8]) -> Result<Digest, Malformed> {
        let version = Digest::version_of(bytes).ok_or(Malformed::Tag)?;
        if version != DIGEST_VERSION {
            return Err(Malformed::Version);
        }
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(Malformed::Short)?;
        if hash64(0, body) != u64::from_le_bytes(*checksum) {
            return Err(Malformed::Checksum);
        }
        let mut reader = Reader::new(body);
        reader.take(DIGEST_MAGIC.len() + 1)?;
        let depth = reader.u8()?;
        let (scope, keys) = (reader.u64()?, reader.u64()?);
        // Checked before any memory is allocated.
        if depth > DIGEST_DEPTH_MAX || reader.rest().len() < 8 * leaves_of(depth) {
            return Err(Malformed::Bounds);
        }
        let leaves = (0..leaves_of(depth)).map(|_| reader.u64()).collect::<Result<_, _>>()?;
        let meaning = std::str::from_utf8(reader.rest()).map_err(|_| Malformed::Text)?;
        Ok(Digest { depth, scope, meaning: meaning.to_owned(), keys, leaves })
    }
}

/// Adds a row: its key, the size and the hash of its value, and its deadline (none if it lasts
/// forever).
#[inline]
pub fn add_row(digest: &mut Digest, key: &[u8], size_bytes: u64, value_hash: u32, deadline_ms: Option<u64>) {
    let leaf = digest.leaf_of(key);
    let hash = row_hash(key, size_bytes, value_hash, deadline_ms);
    digest.leaves[leaf] = digest.leaves[leaf].wrapping_add(hash);
    digest.keys += 1;
}

/// What a row adds to its leaf.
#[inline]
fn row_hash(key: &[u8], size_bytes: u64, value_hash: u32, deadline_ms: Option<u64>) -> u64 {
    let mut value = [0; 20];
    value[..8].copy_from_slice(&size_bytes.to_le_bytes());
    value[8..16].copy_from_slice(&deadline_ms.unwrap_or(u64::MAX).to_le_bytes());
    value[16..].copy_from_slice(&value_hash.to_le_bytes());
    hash64(hash64(0, &value), key)
}

fn parent(children: &[u64]) -> u64 {
    let mut bytes = [0; 8 * FAN_OUT];
    bytes
        .chunks_exact_mut(8)
        .zip(children)
        .for_each(|(out, child)| out.copy_from_slice(&child.to_le_bytes()));
    hash64(0, &bytes)
}

fn leaves_of(depth: u8) -> usize {
    1 << (FAN_OUT_BITS * u32::from(depth))
}

#[cfg(test)]
#[path = "digest/tests.rs"]
mod tests;
