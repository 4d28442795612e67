//! The rules of a table as data, and their builder.

use std::collections::BTreeMap;

use super::choices::{Compression, FoldName, PredicateRule, TableKind};
use crate::codec::{KeyCodec, ValueCodec};
use crate::head::HeadRule;
use crate::order::KeyOrder;
use crate::terms::IndexRule;
use crate::time::{Expire, Keep};
use crate::value_placement::ValuePlacement;

/// The field of the names of the elements of keys. A reader that does not know it may ignore it.
pub(super) const KEY_NAMES: &str = "?key_names";

/// Least and largest size of a block, in bytes.
pub const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 512..=65_536;

/// Most filter bits a key.
pub const FILTER_BITS_MAX: u8 = 32;

/// Values of this many bytes and more are separated by the ready-made rules for large values.
pub const SEPARATE_BYTES: u32 = 2048;

/// Most versions that a hashed table may keep of a key: each has its slot, and a write examines all
/// of them.
pub const HASHED_VERSIONS_MAX: u32 = 16;

/// Least length at which a table may separate values: separating anything shorter than a pointer
/// and the head of a record saves nothing.
pub const SEPARATE_BYTES_MIN: u32 = 32;

/// What a table means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct TableRules {
    /// How the table keeps its records.
    pub kind: TableKind,
    /// How keys look as bytes.
    pub key: KeyCodec,
    /// The name of the order of keys: `bytewise`, `reversed`, or a custom one.
    pub order: String,
    /// How values look as bytes, if the fold takes any bytes.
    pub value: ValueCodec,
    /// How values fold.
    pub fold: FoldName,
    /// Which complete states mean that the key is absent. Law: d·y = y.
    pub delete: PredicateRule,
    /// Which values make everything earlier irrelevant. Law: x·v = v.
    pub short_circuit: PredicateRule,
    /// Size of a block, the unit of reading, in bytes.
    pub block_bytes: u32,
    /// How blocks of runs are compressed.
    pub compression: Compression,
    /// How blocks of the bottom run are compressed, if not as all others. Most data are there, and
    /// are rewritten least.
    pub bottom_compression: Option<Compression>,
    /// Bits of the filters for each key; 0 for no filters.
    pub filter_bits: u8,
    /// Values of this many bytes and more are separated, in the value log; none if not set.
    pub separate: Option<u32>,
    /// Where separated values are.
    pub value_placement: ValuePlacement,
    /// Which part of a value is its head, which the index keeps of separated values.
    pub head: HeadRule,
    /// How much of the past is kept.
    pub keep: Keep,
    /// How long values last.
    pub expire: Expire,
    /// Whether its log is archived: kept forever, so that its runs can be rebuilt from it.
    pub archives_log: bool,
    /// Whether blocks of the bottom run have summaries: how many rows they have, and what these
    /// fold to.
    pub summaries: bool,
    /// The indexes that a table is created with. Each is a table of its own. The rules of that
    /// table hold one index: itself.
    pub indexes: Vec<IndexRule>,
    /// The table that this is an index of.
    pub index_of: Option<String>,
    /// Fields that do not change the meaning, and fields of newer versions that this one may
    /// ignore; their names begin with `?`.
    pub(super) unknown: BTreeMap<String, Vec<u8>>,
}

impl Default for TableRules {
    fn default() -> TableRules {
        TableRules::new(KeyCodec::Bytes)
    }
}

impl TableRules {
    /// A sorted table with keys of this codec. Later values replace earlier ones.
    pub fn new(key: KeyCodec) -> TableRules {
        TableRules {
            kind: TableKind::Sorted,
            key,
            order: KeyOrder::Bytewise.name().to_owned(),
            value: ValueCodec::Bytes,
            fold: FoldName::BuiltIn("replace".to_owned()),
            delete: PredicateRule::Never,
            short_circuit: PredicateRule::Never,
            block_bytes: 4096,
            compression: Compression::None,
            bottom_compression: None,
            filter_bits: 10,
            separate: None,
            value_placement: ValuePlacement::Segments,
            head: HeadRule::None,
            keep: Keep::Latest,
            expire: Expire::Never,
            archives_log: false,
            summaries: false,
            indexes: Vec::new(),
            index_of: None,
            unknown: BTreeMap::new(),
        }
    }

    /// A hashed table with keys of this codec. Later values replace earlier ones.
    pub fn hashed(key: KeyCodec) -> TableRules {
        TableRules::new(key).kind(TableKind::Hashed)
    }

    /// Records kept in this way.
    pub fn kind(mut self, kind: TableKind) -> TableRules {
        self.kind = kind;
        self
    }

    /// Keys of this codec.
    pub fn key(mut self, key: KeyCodec) -> TableRules {
        self.key = key;
        self
    }

    /// Keys in this order: `bytewise`, `reversed`, or the name of a custom one.
    pub fn order(mut self, name: &str) -> TableRules {
        name.clone_into(&mut self.order);
        self
    }

    /// Keys in reverse order.
    pub fn reversed(self) -> TableRules {
        self.order(KeyOrder::Reversed.name())
    }

    /// Values of this codec.
    pub fn value(mut self, value: ValueCodec) -> TableRules {
        self.value = value;
        self
    }

    /// Values fold by this spec string of a fold that comes with FoldDB.
    pub fn fold(mut self, spec: &str) -> TableRules {
        self.fold = FoldName::BuiltIn(spec.to_owned());
        self
    }

    /// Values fold by this custom fold.
    pub fn custom_fold(mut self, name: &str, version: u32) -> TableRules {
        self.fold = FoldName::Custom { name: name.to_owned(), version };
        self
    }

    /// A complete state with these bytes means that the key is absent.
    pub fn delete_when(mut self, value: &[u8]) -> TableRules {
        self.delete = PredicateRule::Equal(value.to_vec());
        self
    }

    /// A custom predicate says which complete states mean that the key is absent.
    pub fn delete_by(mut self, predicate: &str) -> TableRules {
        self.delete = PredicateRule::Named(predicate.to_owned());
        self
    }

    /// Nothing earlier than a value with these bytes matters.
    pub fn short_circuit_when(mut self, value: &[u8]) -> TableRules {
        self.short_circuit = PredicateRule::Equal(value.to_vec());
        self
    }

    /// A custom predicate says which values make everything earlier irrelevant.
    pub fn short_circuit_by(mut self, predicate: &str) -> TableRules {
        self.short_circuit = PredicateRule::Named(predicate.to_owned());
        self
    }

    /// Blocks of this size in bytes: 512 to 65,536.
    pub fn block_bytes(mut self, bytes: u32) -> TableRules {
        self.block_bytes = bytes;
        self
    }

    /// Blocks compressed in this way.
    pub fn compression(mut self, compression: Compression) -> TableRules {
        self.compression = compression;
        self
    }

    /// Blocks of the bottom run compressed in this way; none: as all others.
    pub fn bottom_compression(mut self, compression: Option<Compression>) -> TableRules {
        self.bottom_compression = compression;
        self
    }

    /// How blocks are compressed at the bottom or above it.
    pub fn compression_at(&self, is_bottom: bool) -> Compression {
        self.bottom_compression.filter(|_| is_bottom).unwrap_or(self.compression)
    }

    /// Blocks compressed with LZ4.
    pub fn lz4(self) -> TableRules {
        self.compression(Compression::Lz4)
    }

    /// Filters of this many bits a key, at most 32.
    pub fn filter_bits(mut self, bits: u8) -> TableRules {
        self.filter_bits = bits;
        self
    }

    /// Values of this many bytes and more are separated, in the value log: merges never write them
    /// again, and reads of keys alone never read them. Tables with a delete rule or a short-circuit
    /// of their own keep all of them inline.
    pub fn separate(mut self, from_bytes: impl Into<Option<u32>>) -> TableRules {
        self.separate = from_bytes.into();
        self
    }

    /// Where separated values are.
    pub fn value_placement(mut self, place: ValuePlacement) -> TableRules {
        self.value_placement = place;
        self
    }

    /// Which part of a value is its head. Values that were written under another rule keep their
    /// heads.
    pub fn head(mut self, rule: HeadRule) -> TableRules {
        self.head = rule;
        self
    }

    /// How much of the past is kept: see [`crate::time`].
    pub fn keep(mut self, keep: Keep) -> TableRules {
        self.keep = keep;
        self
    }

    /// Values last this long.
    pub fn expire(mut self, expire: Expire) -> TableRules {
        self.expire = expire;
        self
    }

    /// Archives its log: it is kept forever, with the values that it leads to. Even if the runs of
    /// the table are lost, a repair can rebuild them. The price is space, for everything that is
    /// ever written to it, and to other tables since it was created.
    pub fn archive_log(mut self, archives_log: bool) -> TableRules {
        self.archives_log = archives_log;
        self
    }

    /// Blocks of the bottom run say how many rows they have and what these fold to, so that
    /// counting and aggregating a range read little except what was written since the last merge.
    /// In return, merges fold each value once more.
    pub fn summaries(mut self, summaries: bool) -> TableRules {
        self.summaries = summaries;
        self
    }

    /// Has this index from the beginning.
    pub fn index(mut self, rule: IndexRule) -> TableRules {
        self.indexes.push(rule);
        self
    }

    /// The rules of the table that holds this index of `table`.
    pub fn of_index(rule: IndexRule, table: &str) -> TableRules {
        TableRules { index_of: Some(table.to_owned()), ..TableRules::new(KeyCodec::Bytes).index(rule) }
    }

    /// Whether rules examine values, which is not possible once these are separated.
    pub(super) fn asks_values(&self) -> bool {
        self.delete != PredicateRule::Never || self.short_circuit != PredicateRule::Never
    }

    /// Gives the elements of keys names, under which tools show them. It changes no meaning: tables
    /// that differ only in this are the same.
    pub fn key_names<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> TableRules {
        let names: Vec<&str> = names.into_iter().collect();
        self.unknown.insert(KEY_NAMES.to_owned(), names.join("\n").into_bytes());
        self
    }

    /// The names of the elements of keys, if they have any.
    pub fn names_of_key(&self) -> impl Iterator<Item = &str> {
        let names = self.unknown.get(KEY_NAMES).and_then(|names| std::str::from_utf8(names).ok());
        names.into_iter().flat_map(|names| names.split('\n'))
    }

    /// How keys look as bytes.
    pub fn key_codec(&self) -> &KeyCodec {
        &self.key
    }

    /// How values look as bytes, if the fold takes any bytes.
    pub fn value_codec(&self) -> ValueCodec {
        self.value
    }
}
