//! The content of a file up to where it is read, as something to recognize it by: its length, the
//! hash of all of it, and the hash of its beginning, by which candidates are found.

use std::io::{self, BufRead};

use twox_hash::xxhash3_128::Hasher;

/// How much of a file is its beginning.
pub(crate) const BEGIN_BYTES: usize = 4096;

/// The content of a file up to some place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// How many bytes that are, unpacked.
    pub(crate) bytes: u64,
    /// Their hash (XXH3, 128 bits).
    pub(crate) hash: u128,
    /// The hash of the first [`BEGIN_BYTES`] of them, or of all if they are fewer.
    pub(crate) begin: u128,
}

impl Content {
    /// How many bytes its beginning has.
    pub(crate) fn begin_bytes(&self) -> usize {
        self.bytes.min(BEGIN_BYTES as u64) as usize
    }
}

/// A place behind a row of a file, where reading may go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// What is before it.
    pub(crate) content: Content,
    /// The line there.
    pub(crate) line: u64,
}

/// Hashes content as it is read.
#[derive(Clone)]
pub(crate) struct Tape {
    hasher: Hasher,
    bytes: u64,
    begin: Vec<u8>,
    last: Option<u8>,
}

impl Tape {
    pub(crate) fn new() -> Tape {
        Tape { hasher: Hasher::new(), bytes: 0, begin: Vec::new(), last: None }
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.bytes += bytes.len() as u64;
        let wanted = BEGIN_BYTES - self.begin.len();
        self.begin.extend_from_slice(&bytes[..bytes.len().min(wanted)]);
        self.last = bytes.last().copied().or(self.last);
    }

    /// Takes what a reader gives, up to a length; false if that ends before.
    pub(crate) fn feed_from(&mut self, reader: &mut impl BufRead, bytes: u64) -> io::Result<bool> {
        while self.bytes < bytes {
            let read = match reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if read.is_empty() {
                return Ok(false);
            }
            let wanted = usize::try_from(bytes - self.bytes).unwrap_or(usize::MAX).min(read.len());
            self.feed(&read[..wanted]);
            reader.consume(wanted);
        }
        Ok(true)
    }

    /// How many bytes it took.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it took nothing, or ended with a line.
    pub(crate) fn ends_line(&self) -> bool {
        self.last.is_none_or(|byte| matches!(byte, b'\n' | b'\r'))
    }

    /// All that it took.
    pub(crate) fn content(&self) -> Content {
        let begin = Hasher::oneshot(&self.begin);
        Content { bytes: self.bytes, hash: self.hasher.finish_128(), begin }
    }
}

/// The hash of a text at once.
pub(crate) fn hash(bytes: &[u8]) -> u128 {
    Hasher::oneshot(bytes)
}

#[cfg(test)]
#[path = "tape/tests.rs"]
mod tests;
