//! Varints and fixed little-endian numbers: how every number on disk is written.
//!
//! A varint is unsigned LEB128: seven bits a byte, lowest first, the high bit set on all bytes
//! except the last; at most ten bytes, and only the shortest form is accepted, so equal numbers are
//! equal bytes. Decoders never panic and never allocate by a length that they read.

/// Appends `value` as a varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that [`put_varint`] writes for `value`.
#[inline]
pub fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends a length as a varint, then the bytes.
#[inline]
pub fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends four bytes, little-endian.
#[inline]
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends eight bytes, little-endian.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Why bytes could not be decoded. The caller adds file and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes end inside a value.
    Short,
    /// A varint is longer than ten bytes, over 64 bits, or not in its shortest form.
    Varint,
    /// A tag, kind or flag has a value that this format does not know.
    Tag,
    /// A length, count or offset points outside of the bytes that contain it.
    Bounds,
    /// Bytes that must be text are not UTF-8, or text does not parse.
    Text,
    /// A checksum does not match.
    Checksum,
    /// Numbers that must agree do not, or numbers that must be in order are not.
    Order,
    /// The bytes appear intact, but are in another version of the format.
    Version,
    /// The bytes appear intact, but reading them needs a feature with which this library was not
    /// built.
    Feature,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Malformed::Short => "the bytes end inside a value",
            Malformed::Varint => "a number is not a valid varint",
            Malformed::Tag => "an unknown tag",
            Malformed::Bounds => "a length points outside of what holds it",
            Malformed::Text => "text is not valid",
            Malformed::Checksum => "the checksum does not match",
            Malformed::Order => "numbers do not agree or are out of order",
            Malformed::Version => "it is of another version than this one reads",
            Malformed::Feature => {
                "it is compressed by LZ4 or zstd: that needs the feature `lz4` or `zstd` of folddb, which is off"
            }
        })
    }
}

impl std::error::Error for Malformed {}

/// Reads values from the front of a slice, and never panics.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader over all of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What has not been read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// True when everything has been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(head)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        let (&byte, rest) = self.rest.split_first().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(byte)
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<4>().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*head))
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<8>().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*head))
    }

    /// A varint.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            if index == 9 && byte > 1 {
                return Err(Malformed::Varint);
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                if byte == 0 && index > 0 {
                    return Err(Malformed::Varint);
                }
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 { Malformed::Short } else { Malformed::Varint })
    }

    /// A varint that must fit a `usize`.
    #[inline]
    pub fn length(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.varint()?).map_err(|_| Malformed::Bounds)
    }

    /// A length as a varint, then this many bytes.
    #[inline]
    pub fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.length()?;
        self.take(len)
    }

    /// A slice that must be UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.slice()?).map_err(|_| Malformed::Text)
    }

    /// Fails unless all has been read.
    pub fn finish(&self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(Malformed::Bounds) }
    }
}

/// How many leading bytes `a` and `b` share.
#[inline]
pub fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    let limit = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= limit {
        let x = load_u64_le(a, at) ^ load_u64_le(b, at);
        if x != 0 {
            return at + (x.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < limit && a[at] == b[at] {
        at += 1;
    }
    at
}

/// Whether two slices are equal. Keys next to one another mostly differ in their last bytes: these
/// are compared first, without a call.
#[inline]
pub fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.split_last_chunk::<8>(), b.split_last_chunk::<8>()) {
        (Some((head_a, tail_a)), Some((head_b, tail_b))) => {
            u64::from_le_bytes(*tail_a) == u64::from_le_bytes(*tail_b)
                && match head_a.len() {
                    0 => true,
                    1..=8 => a.first_chunk::<8>() == b.first_chunk::<8>(),
                    _ => head_a == head_b,
                }
        }
        _ => a == b,
    }
}

/// Replaces what a buffer holds. Of 8 to 16 bytes in place of as many, as from key to key, it is
/// two words, without a call.
#[inline]
pub fn replace_bytes(held: &mut Vec<u8>, bytes: &[u8]) {
    if held.len() == bytes.len()
        && bytes.len() <= 16
        && let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>())
    {
        held.first_chunk_mut::<8>().into_iter().for_each(|held| *held = *first);
        held.last_chunk_mut::<8>().into_iter().for_each(|held| *held = *last);
        return;
    }
    held.clear();
    held.extend_from_slice(bytes);
}

#[inline]
fn load_u64_le(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0u8; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// The first eight bytes of `bytes` from `skip` on as a big-endian number, padded with zeros: its
/// order is the order of the bytes, as far as it reaches. Zero when `skip` is past the end.
#[inline]
pub fn prefix_u64(bytes: &[u8], skip: usize) -> u64 {
    let tail = bytes.get(skip..).unwrap_or(&[]);
    match (tail.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(word), _) => u64::from_be_bytes(*word),
        // The last eight bytes, without those of them that are skipped.
        (None, Some(last)) => u64::from_be_bytes(*last).checked_shl(8 * (8 - tail.len() as u32)).unwrap_or(0),
        (None, None) => short_prefix_u64(tail),
    }
}

/// As [`prefix_u64`], of fewer than eight bytes. What is put together byte by byte in memory and
/// then loaded as a word waits for its stores; so the word is put together in a register.
#[inline]
fn short_prefix_u64(bytes: &[u8]) -> u64 {
    let up = 8 * (8 - bytes.len() as u32);
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return u64::from(u32::from_be_bytes(*first)) << 32 | u64::from(u32::from_be_bytes(*last)) << up;
    }
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)).checked_shl(up).unwrap_or(0)
}

#[cfg(test)]
#[path = "bytes/tests.rs"]
mod tests;
