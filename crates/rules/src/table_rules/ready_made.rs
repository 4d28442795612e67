//! Ready-made rules, for most tables.

use super::choices::Compression;
use super::data::{SEPARATE_BYTES, TableRules};
use crate::codec::{KeyCodec, ValueCodec};

/// The ready-made rules: names, and a line on what each is for.
pub const READY_MADE: [(&str, &str); 6] = [
    ("replace", "bytes to bytes; a later value replaces the earlier one"),
    ("counter", "text to a count that goes up and down"),
    ("stats", "text to count, sum, minimum, maximum, mean and variance of numbers"),
    ("blob", "bytes to large bytes, which are separated from their keys"),
    ("blobs", "bytes to bytes in a hashed table: an index in memory, one read for a get, no order"),
    ("postings", "text to the set of what was put under it"),
];

impl TableRules {
    /// The ready-made rules of this name, see [`READY_MADE`].
    pub fn ready_made(name: &str) -> Option<TableRules> {
        match name {
            "replace" => Some(TableRules::replace()),
            "counter" => Some(TableRules::counter()),
            "stats" => Some(TableRules::stats()),
            "blob" => Some(TableRules::blob()),
            "blobs" => Some(TableRules::blobs()),
            "postings" => Some(TableRules::postings()),
            _ => None,
        }
    }

    /// Bytes to bytes; a later value replaces the earlier one: a plain ordered map.
    pub fn replace() -> TableRules {
        TableRules::new(KeyCodec::Bytes)
    }

    /// Text to a count that goes up and down, `sum:i64`. A key that was never counted is absent;
    /// one that is back at 0 is not.
    pub fn counter() -> TableRules {
        TableRules::new(KeyCodec::Utf8).value(ValueCodec::I64).fold("sum:i64")
    }

    /// Text to statistics of the numbers folded under it, `stats:f64`.
    pub fn stats() -> TableRules {
        TableRules::new(KeyCodec::Utf8).fold("stats:f64")
    }

    /// Bytes to large values: as [`TableRules::replace`], in blocks of 32 KiB, and separated from 2
    /// KiB on.
    pub fn blob() -> TableRules {
        TableRules::new(KeyCodec::Bytes).block_bytes(32 << 10).separate(Some(SEPARATE_BYTES))
    }

    /// Bytes to bytes in a hashed table, for large sets of blobs by id: see
    /// [`TableKind::Hashed`](super::TableKind::Hashed).
    pub fn blobs() -> TableRules {
        TableRules::hashed(KeyCodec::Bytes)
    }

    /// Text to the set of byte strings put under it, `set`: words to the documents that contain
    /// them. Compressed, since members are often similar.
    pub fn postings() -> TableRules {
        TableRules::new(KeyCodec::Utf8).fold("set").compression(Compression::Lz4)
    }
}
