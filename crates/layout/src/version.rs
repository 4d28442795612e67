//! The file `FORMAT`: the format of the store, and what a reader must know.
//!
//! ```text
//!   folddb format 1 required 0000000000000000 optional 0000000000000000 store 0123...cdef sum 89ab...4567\n
//! ```
//!
//! One line of text, so that `cat` answers the first question of every support case. Numbers are
//! hexadecimal, except the format's; the sum is xxh3-64 of everything before ` sum`.
//!
//! The story of the formats:
//!
//! - 1: the first.
//!
//! A reader that does not know a *required* feature, which is a bit, must refuse the store; an
//! *optional* one may be ignored. A store is upgraded to a newer format only on request, never by
//! opening it.

use folddb_base::bytes::Malformed;
use folddb_base::checksum::hash64;

/// The format that this version of FoldDB writes, and the newest that it reads.
pub const FORMAT_MAJOR: u32 = 1;

/// The required features that this version knows.
pub const FEATURES_KNOWN: u64 = 0;

/// Longest `FORMAT` file that is examined, in bytes.
pub const FORMAT_FILE_BYTES_MAX: usize = 4096;

/// The contents of `FORMAT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The format of the whole store.
    pub major: u32,
    /// Features that a reader must know.
    pub required: u64,
    /// Features that a reader may ignore.
    pub optional: u64,
    /// The identity of the store.
    pub store_id: u128,
}

impl Version {
    /// What this version of FoldDB writes into a new store.
    pub fn current(store_id: u128) -> Version {
        Version { major: FORMAT_MAJOR, required: 0, optional: 0, store_id }
    }

    /// True when this version of FoldDB can read the store.
    pub fn is_readable(&self) -> bool {
        (1..=FORMAT_MAJOR).contains(&self.major) && self.required & !FEATURES_KNOWN == 0
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let Version { major, required, optional, store_id } = *self;
        let mut line = format!(
            "folddb format {major} required {required:016x} optional {optional:016x} store {store_id:032x}"
        );
        let sum = hash64(0, line.as_bytes());
        line.push_str(&format!(" sum {sum:016x}\n"));
        line.into_bytes()
    }

    /// Reads the bytes of the file. Only the major number is read in a line of a newer format,
    /// since everything after it may have changed.
    ///
    /// # Errors
    /// `Text` if there is no such line, `Checksum` if the sum differs.
    pub fn decode(bytes: &[u8]) -> Result<Version, Malformed> {
        let text = std::str::from_utf8(bytes).map_err(|_| Malformed::Text)?;
        let line = text.strip_suffix('\n').ok_or(Malformed::Short)?;
        let major: u32 = field(line, "folddb format ")?.parse().map_err(|_| Malformed::Text)?;
        if major > FORMAT_MAJOR {
            return Ok(Version { major, required: 0, optional: 0, store_id: 0 });
        }
        let (said, _) = line.rsplit_once(" sum ").ok_or(Malformed::Text)?;
        if u64::from_str_radix(field(line, " sum ")?, 16) != Ok(hash64(0, said.as_bytes())) {
            return Err(Malformed::Checksum);
        }
        let hex = |name| u64::from_str_radix(field(said, name)?, 16).map_err(|_| Malformed::Text);
        let (required, optional) = (hex(" required ")?, hex(" optional ")?);
        let store_id = u128::from_str_radix(field(said, " store ")?, 16).map_err(|_| Malformed::Text)?;
        let version = Version { major, required, optional, store_id };
        // The same sum could be spelled in other ways, which are refused.
        if version.encode() == bytes { Ok(version) } else { Err(Malformed::Text) }
    }
}

/// The word after `name`.
fn field<'a>(line: &'a str, name: &str) -> Result<&'a str, Malformed> {
    let (_, after) = line.split_once(name).ok_or(Malformed::Text)?;
    Ok(after.split(' ').next().unwrap_or(after))
}

#[cfg(test)]
#[path = "version/tests.rs"]
mod tests;
