//! The rules of a table: what its bytes mean, as the manifest stores it and as the engine uses it.
//!
//! [`TableRules`] is plain data with a canonical text, which the manifest keeps. [`TableRules::bind`] gives
//! the names in it their functions, from the folds that come with FoldDB and from [`Custom`], and makes
//! [`BoundRules`]. A table whose fold is not at hand can still be read, unfolded; it is not written.
//!
//! ```text
//!   rules 1                      the version of the form
//!   block_bytes=8192             the rest sorted by name; values with %XX for what is not printable ASCII
//!   compression=none             none lz4
//!   delete=never                 never equal:BYTES named:NAME
//!   expire=by-write              never by-write or a time, see time.rs; only when given
//!   filter_bits=10
//!   fold=sum:u64                 a fold that comes with it, or else
//!   custom_fold=NAME             a custom one, together with
//!   fold_version=1
//!   head=none                    none first:N json:POINTER named:NAME; only when given
//!   index=NAME:RULE              its indexes, %0a between them, see terms.rs; of an index that one; only when given
//!   index_of=NAME                the table that this is an index of; only of an index
//!   ?key_names=NAMES             names of its elements, %0a between them; only when given
//!   keep=forever                 latest versions:N window:TIME forever, see time.rs; only when given
//!   key=tuple(text,text)
//!   kind=sorted                  sorted hashed
//!   log=forever                  its log is kept, so that its runs can be made anew; only when given
//!   order=bytewise
//!   value_placement=files        where separated values lie: segments files; only when given
//!   separate=2048                values from so many bytes on are separated; only when given
//!   short_circuit=never          as delete
//!   summaries=on                 blocks of the bottom run say what they come to; only when given
//!   value=bytes
//! ```
//!
//! A reader that does not know a name refuses the table, unless the name begins with `?`: those are kept
//! and otherwise ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use folddb_base::{Error, ErrorKind};

use crate::algebra::{FoldRules, Predicate};
use crate::codec::{CodecError, KeyCodec, ValueCodec};
use crate::datum::Datum;
use crate::fold::Fold;
use crate::folds;
use crate::head::{HeadFunction, HeadRule, Heads};
use crate::order::{CustomOrder, KeyOrder};
use crate::terms::{IndexRule, TermFunction};
use crate::time::{Expire, Keep};
use crate::value_placement::ValuePlacement;

const FIRST_LINE: &str = "rules 1";

/// The field of the names of the elements of keys. A reader that does not know it may ignore it.
const KEY_NAMES: &str = "?key_names";

/// Least and largest size of a block, in bytes.
pub const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 512..=65_536;

/// Most filter bits a key.
pub const FILTER_BITS_MAX: u8 = 32;

/// From how many bytes on the values of ready-made rules for large ones are separated.
pub const SEPARATE_BYTES: u32 = 2048;

/// Most versions that a hashed table may keep of a key: each has its slot, and a write looks at all of them.
pub const HASHED_VERSIONS_MAX: u32 = 16;

/// Least bytes from which on a table may keep separated values: less than a pointer and the head of a record gain nothing.
pub const SEPARATE_BYTES_MIN: u32 = 32;

/// What a table means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableRules {
    /// How the table keeps its records.
    pub kind: TableKind,
    /// How keys look as bytes.
    pub key: KeyCodec,
    /// The name of the order of keys: `bytewise`, `reversed`, or a custom one.
    pub order: String,
    /// How values look as bytes, where the fold does not care.
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
    /// Bits of the filters for each key; 0 for no filters.
    pub filter_bits: u8,
    /// Values of so many bytes and more are separated, in the value log; without it none does.
    pub separate: Option<u32>,
    /// Where values separated lie.
    pub value_placement: ValuePlacement,
    /// What of a value is its head, which the index keeps of separated values.
    pub head: HeadRule,
    /// How much of the past is kept.
    pub keep: Keep,
    /// How long values last.
    pub expire: Expire,
    /// Whether its log is kept for ever, so that its runs can be made anew from it.
    pub archives_log: bool,
    /// Whether blocks of the bottom run say how many rows they show and what these fold to.
    pub summaries: bool,
    /// The indexes that a table is created with. Each is a table of its own, which has the one that it is.
    pub indexes: Vec<IndexRule>,
    /// The table that this is an index of.
    pub index_of: Option<String>,
    /// What does not change the meaning, and what a newer version said and this one may ignore, by names that begin
    /// with `?`.
    unknown: BTreeMap<String, Vec<u8>>,
}

/// How a table keeps its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableKind {
    /// In order, in runs.
    #[default]
    Sorted,
    /// In no order: all values in the value log, and an index in memory that says where. A get is one read.
    Hashed,
}

/// How the blocks of runs are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// By LZ4.
    Lz4,
}

/// A fold by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldName {
    /// One that comes with FoldDB, by its spec string.
    BuiltIn(String),
    /// One that the user brings along.
    Custom {
        /// Its name.
        name: String,
        /// Its version; a fold of another version is another fold.
        version: u32,
    },
}

/// Whether a value has a certain meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PredicateRule {
    /// No value has, unless the fold itself says so.
    #[default]
    Never,
    /// The value with these bytes has.
    Equal(Vec<u8>),
    /// A predicate that the user brings along decides.
    Named(String),
}

impl Default for TableRules {
    fn default() -> TableRules {
        TableRules::new(KeyCodec::Bytes)
    }
}

// ---- building -------------------------------------------------------------------------------------------

impl TableRules {
    /// A sorted table with keys of this codec, whose later values replace earlier ones.
    pub fn new(key: KeyCodec) -> TableRules {
        TableRules {
            kind: TableKind::Sorted,
            key,
            order: KeyOrder::Bytewise.name().to_owned(),
            value: ValueCodec::Bytes,
            fold: FoldName::BuiltIn("replace".to_owned()),
            delete: PredicateRule::Never,
            short_circuit: PredicateRule::Never,
            block_bytes: 8192,
            compression: Compression::None,
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

    /// A hashed table with keys of this codec, whose later values replace earlier ones.
    pub fn hashed(key: KeyCodec) -> TableRules {
        TableRules::new(key).kind(TableKind::Hashed)
    }

    /// Kept so.
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
    pub fn delete_equal(mut self, value: &[u8]) -> TableRules {
        self.delete = PredicateRule::Equal(value.to_vec());
        self
    }

    /// A custom predicate says which complete states mean that the key is absent.
    pub fn delete_named(mut self, predicate: &str) -> TableRules {
        self.delete = PredicateRule::Named(predicate.to_owned());
        self
    }

    /// Nothing earlier than a value with these bytes matters.
    pub fn short_circuit_equal(mut self, value: &[u8]) -> TableRules {
        self.short_circuit = PredicateRule::Equal(value.to_vec());
        self
    }

    /// A custom predicate says which values make everything earlier irrelevant.
    pub fn short_circuit_named(mut self, predicate: &str) -> TableRules {
        self.short_circuit = PredicateRule::Named(predicate.to_owned());
        self
    }

    /// Blocks of this size in bytes, see [`BLOCK_BYTES`].
    pub fn block_bytes(mut self, bytes: u32) -> TableRules {
        self.block_bytes = bytes;
        self
    }

    /// Blocks compressed so.
    pub fn compression(mut self, compression: Compression) -> TableRules {
        self.compression = compression;
        self
    }

    /// Filters of so many bits a key, at most [`FILTER_BITS_MAX`].
    pub fn filter_bits(mut self, bits: u8) -> TableRules {
        self.filter_bits = bits;
        self
    }

    /// Values of so many bytes and more are separated, in the value log: merges never write them again, and what looks at keys alone
    /// never reads them. Tables with a delete rule or a short-circuit of their own keep all of them inline.
    pub fn separate(mut self, from_bytes: Option<u32>) -> TableRules {
        self.separate = from_bytes;
        self
    }

    /// Separated values lie here.
    pub fn value_placement(mut self, place: ValuePlacement) -> TableRules {
        self.value_placement = place;
        self
    }

    /// What of a value is its head. Values that were written under another rule keep the heads that they have.
    pub fn head(mut self, rule: HeadRule) -> TableRules {
        self.head = rule;
        self
    }

    /// So much of the past is kept, for [`crate::time`] to say how much.
    pub fn keep(mut self, keep: Keep) -> TableRules {
        self.keep = keep;
        self
    }

    /// Values last so long.
    pub fn expire(mut self, expire: Expire) -> TableRules {
        self.expire = expire;
        self
    }

    /// Its log is kept for ever, with the values that it leads to: whatever becomes of its runs, a repair can make them anew. The
    /// price is space, for all that is ever written to it, and to other tables since it was made.
    pub fn archive_log(mut self, archives_log: bool) -> TableRules {
        self.archives_log = archives_log;
        self
    }

    /// Blocks of the bottom run say how many rows they show and what these fold to, so that counting and aggregating a range reads
    /// little but what was written since the last merge. Merges fold each value once more for it.
    pub fn summaries(mut self, summaries: bool) -> TableRules {
        self.summaries = summaries;
        self
    }

    /// Has this index from the beginning.
    pub fn index(mut self, rule: IndexRule) -> TableRules {
        self.indexes.push(rule);
        self
    }

    /// The rules of the table that is this index of a table.
    pub fn of_index(rule: IndexRule, table: &str) -> TableRules {
        TableRules { index_of: Some(table.to_owned()), ..TableRules::new(KeyCodec::Bytes).index(rule) }
    }

    /// Whether values are asked something when they are written, which separated those could not answer later.
    fn asks_values(&self) -> bool {
        self.delete != PredicateRule::Never || self.short_circuit != PredicateRule::Never
    }

    /// Gives the elements of keys names, under which tools show them. It changes no meaning: tables that differ only
    /// in this are the same.
    pub fn key_names<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> TableRules {
        let names: Vec<&str> = names.into_iter().collect();
        self.unknown.insert(KEY_NAMES.to_owned(), names.join("\n").into_bytes());
        self
    }

    /// The names of the elements of keys, where they have any.
    pub fn names_of_key(&self) -> impl Iterator<Item = &str> {
        let names = self.unknown.get(KEY_NAMES).and_then(|names| std::str::from_utf8(names).ok());
        names.into_iter().flat_map(|names| names.split('\n'))
    }

    /// How keys look as bytes.
    pub fn key_codec(&self) -> &KeyCodec {
        &self.key
    }

    /// How values look as bytes, where the fold does not care.
    pub fn value_codec(&self) -> ValueCodec {
        self.value
    }
}

// ---- ready-made rules -----------------------------------------------------------------------------------

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

    /// Text to a count that goes up and down, `sum:i64`. A key that was never counted is absent; one that is
    /// back at 0 is not.
    pub fn counter() -> TableRules {
        TableRules::new(KeyCodec::Utf8).value(ValueCodec::I64).fold("sum:i64")
    }

    /// Text to statistics of the numbers folded under it, `stats:f64`.
    pub fn stats() -> TableRules {
        TableRules::new(KeyCodec::Utf8).fold("stats:f64")
    }

    /// Bytes to large values: as [`TableRules::replace`], in blocks of 32 KiB, and separated from 2 KiB on.
    pub fn blob() -> TableRules {
        TableRules::new(KeyCodec::Bytes).block_bytes(32 << 10).separate(Some(SEPARATE_BYTES))
    }

    /// Bytes to bytes in a hashed table, for large sets of blobs by id: see [`TableKind::Hashed`].
    pub fn blobs() -> TableRules {
        TableRules::hashed(KeyCodec::Bytes)
    }

    /// Text to the set of byte strings put under it, `set`: words to the documents they stand in. Compressed,
    /// since members tend to look alike.
    pub fn postings() -> TableRules {
        TableRules::new(KeyCodec::Utf8).fold("set").compression(Compression::Lz4)
    }
}

// ---- text -----------------------------------------------------------------------------------------------

impl TableRules {
    /// The rules as text: the same rules are the same text.
    pub fn to_text(&self) -> String {
        let mut fields: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        let mut put = |name: &'static str, value: &str| fields.insert(name, value.as_bytes().to_vec());
        put("block_bytes", &self.block_bytes.to_string());
        put("compression", self.compression.name());
        put("filter_bits", &self.filter_bits.to_string());
        match &self.fold {
            FoldName::BuiltIn(spec) => {
                put("fold", spec);
            }
            FoldName::Custom { name, version } => {
                put("custom_fold", name);
                put("fold_version", &version.to_string());
            }
        }
        if self.head != HeadRule::None {
            put("head", &self.head.to_string());
        }
        if self.expire != Expire::Never {
            put("expire", &self.expire.to_string());
        }
        if self.keep != Keep::Latest {
            put("keep", &self.keep.to_string());
        }
        if !self.indexes.is_empty() {
            let rules: Vec<String> = self.indexes.iter().map(IndexRule::to_string).collect();
            put("index", &rules.join("\n"));
        }
        if let Some(table) = &self.index_of {
            put("index_of", table);
        }
        put("key", &self.key.name());
        put("kind", self.kind.name());
        if self.archives_log {
            put("log", "forever");
        }
        put("order", &self.order);
        if self.value_placement != ValuePlacement::Segments {
            put("value_placement", self.value_placement.name());
        }
        if let Some(bytes) = self.separate {
            put("separate", &bytes.to_string());
        }
        if self.summaries {
            put("summaries", "on");
        }
        put("value", self.value.name());
        fields.insert("delete", self.delete.to_bytes());
        fields.insert("short_circuit", self.short_circuit.to_bytes());
        fields.extend(self.unknown.iter().map(|(name, value)| (name.as_str(), value.clone())));

        let mut text = format!("{FIRST_LINE}\n");
        for (name, value) in fields {
            text.push_str(name);
            text.push('=');
            escape(&value, &mut text);
            text.push('\n');
        }
        text
    }

    /// Reads what [`TableRules::to_text`] writes. What is not said has its default.
    ///
    /// # Errors
    /// [`ErrorKind::NewerFormat`] for what only a newer version can mean, [`ErrorKind::Corruption`] for what
    /// is not of this form at all.
    pub fn from_text(text: &str) -> Result<TableRules, Error> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        if first != FIRST_LINE {
            return Err(wrong_first_line(first));
        }
        let mut fields = Fields::read(lines)?;
        let mut rules = TableRules::default();
        fields.take("kind", TableKind::parse, &mut rules.kind)?;
        fields.take("key", |name| KeyCodec::parse(name).ok(), &mut rules.key)?;
        fields.take("order", |name| Some(name.to_owned()), &mut rules.order)?;
        fields.take("value", |name| ValueCodec::parse(name).ok(), &mut rules.value)?;
        fields.take("block_bytes", |number| number.parse().ok(), &mut rules.block_bytes)?;
        fields.take("compression", Compression::parse, &mut rules.compression)?;
        fields.take("filter_bits", |number| number.parse().ok(), &mut rules.filter_bits)?;
        fields.take("separate", |number| number.parse().ok().map(Some), &mut rules.separate)?;
        fields.take("place", ValuePlacement::parse, &mut rules.value_placement)?; // the word of older versions
        fields.take("value_placement", ValuePlacement::parse, &mut rules.value_placement)?;
        fields.take("head", HeadRule::parse, &mut rules.head)?;
        fields.take("keep", Keep::parse, &mut rules.keep)?;
        fields.take("expire", Expire::parse, &mut rules.expire)?;
        fields.take("log", |word| (word == "forever").then_some(true), &mut rules.archives_log)?;
        fields.take("summaries", |word| (word == "on").then_some(true), &mut rules.summaries)?;
        fields.take("index", parse_indexes, &mut rules.indexes)?;
        fields.take("index_of", |name| Some(Some(name.to_owned())), &mut rules.index_of)?;
        rules.fold = fields.take_fold()?;
        fields.take_predicate("delete", &mut rules.delete)?;
        fields.take_predicate("short_circuit", &mut rules.short_circuit)?;
        rules.unknown = fields.left()?;
        Ok(rules)
    }
}

impl TableKind {
    /// The name that the store keeps.
    pub fn name(self) -> &'static str {
        match self {
            TableKind::Sorted => "sorted",
            TableKind::Hashed => "hashed",
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<TableKind> {
        [TableKind::Sorted, TableKind::Hashed].into_iter().find(|kind| kind.name() == name)
    }
}

impl Compression {
    /// The name that the store keeps.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
        }
    }

    /// The compression with this name.
    pub fn parse(name: &str) -> Option<Compression> {
        [Compression::None, Compression::Lz4].into_iter().find(|compression| compression.name() == name)
    }
}

impl PredicateRule {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            PredicateRule::Never => b"never".to_vec(),
            PredicateRule::Equal(value) => [b"equal:".as_slice(), value].concat(),
            PredicateRule::Named(name) => format!("named:{name}").into_bytes(),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<PredicateRule> {
        if let Some(value) = bytes.strip_prefix(b"equal:") {
            return Some(PredicateRule::Equal(value.to_vec()));
        }
        if let Some(name) = bytes.strip_prefix(b"named:") {
            return Some(PredicateRule::Named(std::str::from_utf8(name).ok()?.to_owned()));
        }
        (bytes == b"never").then_some(PredicateRule::Never)
    }
}

impl std::fmt::Display for PredicateRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PredicateRule::Never => f.write_str("never"),
            PredicateRule::Equal(value) => write!(f, "when equal to {}", crate::datum::hex(value)),
            PredicateRule::Named(name) => write!(f, "by `{name}`"),
        }
    }
}

impl std::fmt::Display for FoldName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FoldName::BuiltIn(spec) => write!(f, "`{spec}`"),
            FoldName::Custom { name, version } => write!(f, "the custom `{name}` version {version}"),
        }
    }
}

/// The fields of a text that have not been taken yet.
struct Fields(BTreeMap<String, Vec<u8>>);

impl Fields {
    fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Fields, Error> {
        let mut fields = BTreeMap::new();
        for line in lines {
            let (name, value) = line.split_once('=').ok_or_else(|| malformed(line))?;
            let value = unescape(value).ok_or_else(|| malformed(line))?;
            if name.is_empty() || fields.insert(name.to_owned(), value).is_some() {
                return Err(malformed(line));
            }
        }
        Ok(Fields(fields))
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Error> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        String::from_utf8(value).map(Some).map_err(|_| malformed(name))
    }

    /// Puts the field of this name, if there is one, where it belongs.
    fn take<T>(&mut self, name: &str, parse: impl Fn(&str) -> Option<T>, to: &mut T) -> Result<(), Error> {
        if let Some(value) = self.text(name)? {
            *to = parse(&value).ok_or_else(|| newer(&format!("{name}={value}")))?;
        }
        Ok(())
    }

    fn take_predicate(&mut self, name: &str, to: &mut PredicateRule) -> Result<(), Error> {
        if let Some(value) = self.0.remove(name) {
            *to = PredicateRule::from_bytes(&value).ok_or_else(|| newer(name))?;
        }
        Ok(())
    }

    fn take_fold(&mut self) -> Result<FoldName, Error> {
        match (self.text("fold")?, self.text("custom_fold")?) {
            (Some(spec), None) => Ok(FoldName::BuiltIn(spec)),
            (None, Some(name)) => {
                let mut version = 1;
                self.take("fold_version", |number| number.parse().ok(), &mut version)?;
                Ok(FoldName::Custom { name, version })
            }
            _ => Err(malformed("fold")),
        }
    }

    /// What nobody took; an error unless all of it may be ignored.
    fn left(self) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        match self.0.keys().find(|name| !name.starts_with('?')) {
            Some(name) => Err(newer(name)),
            None => Ok(self.0),
        }
    }
}

fn parse_indexes(text: &str) -> Option<Vec<IndexRule>> {
    let rules: Vec<IndexRule> = text.split('\n').map(IndexRule::parse).collect::<Option<_>>()?;
    let names: BTreeSet<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    (names.len() == rules.len()).then_some(rules)
}

fn wrong_first_line(first: &str) -> Error {
    let is_newer = first.strip_prefix("rules ").is_some_and(|version| version.parse::<u32>().is_ok());
    if is_newer { newer(first) } else { malformed(first) }
}

fn newer(what: &str) -> Error {
    Error::new(
        ErrorKind::NewerFormat,
        format!("the rules of a table say `{what}`, which this version cannot read"),
    )
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::Corruption, format!("the rules of a table are not readable at {what:?}"))
}

/// Printable ASCII stays as it is, all else and `%` becomes `%` and two digits.
fn escape(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        if (b' '..=b'~').contains(&byte) && byte != b'%' {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// Reads what [`escape`] writes, and only that.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => bytes.push(digit(rest.next()?)? << 4 | digit(rest.next()?)?),
            b' '..=b'~' => bytes.push(byte),
            _ => return None,
        }
    }
    Some(bytes)
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|digit| digit as u8)
}

// ---- comparing ------------------------------------------------------------------------------------------

impl TableRules {
    /// What differs in meaning between the rules that a table has and those it is asked for by, in words;
    /// `None` when it may be opened. How it is stored (blocks, compression, filters) is no difference, and
    /// values of the codec `bytes` are at home anywhere. Who says nothing about time takes what the table says.
    pub fn diff(&self, asked: &TableRules) -> Option<String> {
        let mut differences = Vec::new();
        let mut compare = |what: &str, has: String, wants: String| {
            if has != wants {
                differences.push(format!("{what} {has}, not {wants}"));
            }
        };
        compare("it is", self.kind.name().to_owned(), asked.kind.name().to_owned());
        compare("its keys are", self.key.name(), asked.key.name());
        compare("its order is", self.order.clone(), asked.order.clone());
        compare("it folds by", self.fold.canonical().to_string(), asked.fold.canonical().to_string());
        compare("it deletes", self.delete.to_string(), asked.delete.to_string());
        compare("it short-circuits", self.short_circuit.to_string(), asked.short_circuit.to_string());
        compare("its heads are", self.head.to_string(), asked.head.to_string());
        if asked.keep.keeps_past() {
            compare("it keeps", self.keep.to_string(), asked.keep.to_string());
        }
        if asked.expire.has_stamps() {
            compare("its values last", self.expire.to_string(), asked.expire.to_string());
        }
        if asked.archives_log {
            let says = |archives_log: bool| if archives_log { "for ever" } else { "as long as it is needed" };
            compare("it archives its log", says(self.archives_log).to_owned(), says(true).to_owned());
        }
        for index in &asked.indexes {
            let has = self.indexes.iter().find(|has| has.name == index.name);
            let has = has.map_or("none".to_owned(), |has| has.terms.to_string());
            compare(&format!("its index `{}` is", index.name), has, index.terms.to_string());
        }
        if self.fold.is_opaque() && self.value != ValueCodec::Bytes && asked.value != ValueCodec::Bytes {
            compare("its values are", self.value.to_string(), asked.value.to_string());
        }
        (!differences.is_empty()).then(|| differences.join("; "))
    }

    fn check_separation(&self, bound: &BoundRules) -> Result<(), Error> {
        let keeps_all_inline = self.kind == TableKind::Sorted && self.separate.is_none();
        if keeps_all_inline && self.value_placement == ValuePlacement::Files {
            return Err(Error::invalid(
                "value_placement=files is given, but no value of the table is separated: give `separate` too, or make it hashed",
            ));
        }
        let Some(bytes) = self.separate else { return Ok(()) };
        if bytes < SEPARATE_BYTES_MIN {
            let message = format!("separate is {bytes}, but must be at least {SEPARATE_BYTES_MIN} bytes");
            return Err(Error::invalid(message));
        }
        if self.asks_values() || bound.fold.has_delete() {
            return Err(Error::invalid(
                "separate is given, but a table with a delete rule or a short-circuit keeps all of its values inline",
            ));
        }
        Ok(())
    }

    /// A hashed table keeps all separated values and no order, so some rules cannot be its.
    fn check_kind(&self) -> Result<(), Error> {
        if self.kind == TableKind::Sorted {
            return Ok(());
        }
        let cannot =
            |what: &str, instead: &str| Err(Error::invalid(format!("a hashed table {what}; {instead}")));
        if self.order != KeyOrder::Bytewise.name() {
            return cannot("has no order of keys", "use a sorted table for one");
        }
        if !matches!(self.keep, Keep::Latest | Keep::Versions(1..=HASHED_VERSIONS_MAX)) {
            let instead = format!(
                "give keep=versions:N up to {HASHED_VERSIONS_MAX}, or use a sorted table for more of the past"
            );
            return cannot("keeps of the past the newest versions of each key, and few", &instead);
        }
        if self.summaries {
            return cannot("has no ranges", "leave `summaries` out");
        }
        if self.archives_log {
            return cannot("is made anew from its values", "leave `log` out");
        }
        if self.separate.is_some() {
            return cannot("keeps all of its separated values", "leave `separate` out");
        }
        if self.head != HeadRule::None {
            return cannot(
                "keeps no heads in memory",
                "use a sorted table with `separate` for heads of your own",
            );
        }
        Ok(())
    }

    fn check_summaries(&self) -> Result<(), Error> {
        if self.summaries && (self.keep.keeps_past() || self.expire.has_stamps()) {
            return Err(Error::invalid(
                "summaries are given, but of a table that keeps its past, or whose values expire, a block does not say what it shows; leave \
                 `summaries` out",
            ));
        }
        Ok(())
    }

    fn check_indexes(&self) -> Result<(), Error> {
        let names: BTreeSet<&str> = self.indexes.iter().map(|index| index.name.as_str()).collect();
        if names.len() < self.indexes.len() {
            return Err(Error::invalid("two indexes have the same name"));
        }
        if self.kind == TableKind::Hashed && !self.indexes.is_empty() {
            return Err(Error::invalid("a hashed table has no indexes; use a sorted table for them"));
        }
        Ok(())
    }

    /// Checks that a table may be created by these rules with what is at hand.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`], saying what is wrong or missing.
    pub fn validate(&self, custom: &Custom) -> Result<(), Error> {
        if !BLOCK_BYTES.contains(&self.block_bytes) {
            let (least, most) = BLOCK_BYTES.into_inner();
            let found = self.block_bytes;
            return Err(Error::invalid(format!(
                "block_bytes is {found}, but must be from {least} to {most}"
            )));
        }
        if self.filter_bits > FILTER_BITS_MAX {
            let found = self.filter_bits;
            return Err(Error::invalid(format!(
                "filter_bits is {found}, but must be at most {FILTER_BITS_MAX}"
            )));
        }
        if let FoldName::BuiltIn(spec) = &self.fold {
            folds::parse(spec).map_err(|error| Error::invalid(error.to_string()))?;
        }
        let bound = self.bind(custom).map_err(|error| Error::invalid(error.message()))?;
        self.check_separation(&bound)?;
        self.check_kind()?;
        self.check_summaries()?;
        self.check_indexes()?;
        match bound.missing {
            Some(missing) => Err(Error::invalid(missing)),
            None => Ok(()),
        }
    }
}

impl FoldName {
    /// The same fold, spelled as it spells itself.
    fn canonical(&self) -> FoldName {
        match self {
            FoldName::BuiltIn(spec) => match folds::parse(spec) {
                Ok(fold) => FoldName::BuiltIn(fold.spec()),
                Err(_) => self.clone(),
            },
            FoldName::Custom { .. } => self.clone(),
        }
    }

    /// True when the fold takes any bytes, so that the value codec says what they are.
    fn is_opaque(&self) -> bool {
        matches!(self.canonical(), FoldName::BuiltIn(spec) if spec == "replace" || spec == "first")
    }

    /// The spec string, or the name of a custom fold.
    pub fn spec(&self) -> &str {
        match self {
            FoldName::BuiltIn(spec) => spec,
            FoldName::Custom { name, .. } => name,
        }
    }

    /// The version; folds that come with FoldDB are version 1 for ever.
    pub fn version(&self) -> u32 {
        match self {
            FoldName::BuiltIn(_) => 1,
            FoldName::Custom { version, .. } => *version,
        }
    }
}

// ---- binding --------------------------------------------------------------------------------------------

/// The functions that a user brings along, by their names.
#[derive(Clone, Default)]
pub struct Custom {
    folds: BTreeMap<String, Arc<dyn Fold>>,
    orders: BTreeMap<String, Arc<dyn CustomOrder>>,
    predicates: BTreeMap<String, Predicate>,
    heads: BTreeMap<String, HeadFunction>,
    terms: BTreeMap<String, (u32, TermFunction)>,
}

impl Custom {
    /// Makes a function that takes terms known by this name and version; a later one of the same name takes its place.
    pub fn add_terms(&mut self, name: &str, version: u32, take: TermFunction) {
        self.terms.insert(name.to_owned(), (version, take));
    }

    /// The function that takes terms of this name and version.
    ///
    /// # Errors
    /// Says what is not at hand, in words.
    pub fn terms(&self, name: &str, version: u32) -> Result<TermFunction, String> {
        match self.terms.get(name) {
            Some((known, take)) if *known == version => Ok(Arc::clone(take)),
            Some((known, _)) => Err(format!(
                "its terms are those of the custom `{name}` version {version}; at hand is version {known}"
            )),
            None => Err(format!(
                "its terms are those of the custom `{name}` version {version}, which is not at hand"
            )),
        }
    }

    /// Makes a fold known by its name; a later one of the same name takes its place.
    pub fn add_fold(&mut self, fold: Arc<dyn Fold>) {
        self.folds.insert(fold.spec(), fold);
    }

    /// Makes an order known by its name; a later one of the same name takes its place.
    pub fn add_order(&mut self, order: Arc<dyn CustomOrder>) {
        self.orders.insert(order.name().to_owned(), order);
    }

    /// Makes a predicate known by this name; a later one of the same name takes its place.
    pub fn add_predicate(&mut self, name: &str, predicate: Predicate) {
        self.predicates.insert(name.to_owned(), predicate);
    }

    /// Makes a function that takes heads known by this name; a later one of the same name takes its place.
    pub fn add_head(&mut self, name: &str, take: HeadFunction) {
        self.heads.insert(name.to_owned(), take);
    }
}

impl std::fmt::Debug for Custom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut known = f.debug_struct("Custom");
        known.field("folds", &self.folds.keys()).field("orders", &self.orders.keys());
        known.field("predicates", &self.predicates.keys()).field("heads", &self.heads.keys());
        known.field("terms", &self.terms.keys()).finish()
    }
}

/// Rules with the functions that they name: what the engine uses.
#[derive(Clone)]
pub struct BoundRules {
    /// The rules as they are stored.
    pub rules: TableRules,
    /// The order of keys.
    pub order: KeyOrder,
    /// How values fold. Its fold is missing when anything that folding needs is not at hand.
    pub fold: FoldRules,
    /// What is not at hand, in words. The table is then for reading only, and reading does not fold.
    pub missing: Option<String>,
    /// How heads are taken; none where the function is not at hand.
    pub heads: Heads,
    /// The codec of values, where the fold leaves it to say what they are.
    opaque: Option<ValueCodec>,
}

impl TableRules {
    /// Gives the names in the rules their functions.
    ///
    /// A missing fold or predicate leaves rules that do not fold, see [`BoundRules::missing`].
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`] when the order is not at hand: without it nothing can be found.
    pub fn bind(&self, custom: &Custom) -> Result<BoundRules, Error> {
        let order = self.bind_order(custom)?;
        let (fold, missing) = match self.bind_fold(custom) {
            Ok(fold) => (fold, None),
            Err(missing) => (FoldRules::missing(self.fold.spec(), self.fold.version()), Some(missing)),
        };
        // Records of a hashed table have their times in front of the value, where folds do not see them.
        let fold = fold.with_stamps(self.expire.has_stamps() && self.kind == TableKind::Sorted);
        let opaque = self.fold.is_opaque().then_some(self.value);
        let (heads, missing) = match self.bind_heads(custom) {
            Ok(heads) => (heads, missing),
            Err(no_head) => (Heads::None, missing.or(Some(no_head))),
        };
        let head_bytes = match &heads {
            Heads::None => Some(0),
            Heads::First(bytes) => Some(*bytes),
            Heads::Json(_) | Heads::Function(_) => None,
        };
        let fold = fold.with_head_bytes(head_bytes);
        Ok(BoundRules { rules: self.clone(), order, fold, missing, heads, opaque })
    }

    fn bind_order(&self, custom: &Custom) -> Result<KeyOrder, Error> {
        for known in [KeyOrder::Bytewise, KeyOrder::Reversed] {
            if known.name() == self.order {
                return Ok(known);
            }
        }
        let found = custom.orders.get(&self.order).cloned().map(KeyOrder::Custom);
        found.ok_or_else(|| {
            let message = format!("the keys are in the custom order `{}`, which is not at hand", self.order);
            Error::new(ErrorKind::RulesMismatch, message)
        })
    }

    fn bind_heads(&self, custom: &Custom) -> Result<Heads, String> {
        Ok(match &self.head {
            HeadRule::None => Heads::None,
            HeadRule::First(bytes) => Heads::First(*bytes as usize),
            HeadRule::Json(pointer) => Heads::Json(pointer.clone()),
            HeadRule::Named(name) => {
                Heads::Function(
                    custom.heads.get(name).cloned().ok_or_else(|| {
                        format!("heads are taken by the custom `{name}`, which is not at hand")
                    })?,
                )
            }
        })
    }

    /// The fold with its predicates, or what is missing.
    fn bind_fold(&self, custom: &Custom) -> Result<FoldRules, String> {
        let mut bound = FoldRules::new(self.find_fold(custom)?);
        if let Some(delete) = self.delete.bind(custom)? {
            bound = bound.with_delete(delete);
        }
        if let Some(short_circuit) = self.short_circuit.bind(custom)? {
            bound = bound.with_short_circuit(short_circuit);
        }
        Ok(bound)
    }

    fn find_fold(&self, custom: &Custom) -> Result<Arc<dyn Fold>, String> {
        match &self.fold {
            FoldName::BuiltIn(spec) => folds::parse(spec).map_err(|error| {
                format!("the table folds by `{spec}`, which this version does not know: {error}")
            }),
            FoldName::Custom { name, version } => match custom.folds.get(name) {
                Some(fold) if fold.version() == *version => Ok(Arc::clone(fold)),
                Some(fold) => Err(format!(
                    "the table folds by {}; at hand is `{name}` version {}",
                    self.fold,
                    fold.version()
                )),
                None => Err(format!("the table folds by {}, which is not at hand", self.fold)),
            },
        }
    }
}

impl PredicateRule {
    fn bind(&self, custom: &Custom) -> Result<Option<Predicate>, String> {
        match self {
            PredicateRule::Never => Ok(None),
            PredicateRule::Equal(expected) => {
                let expected = expected.clone();
                Ok(Some(Arc::new(move |_key: &[u8], value: &[u8]| value == expected)))
            }
            PredicateRule::Named(name) => match custom.predicates.get(name) {
                Some(predicate) => Ok(Some(Arc::clone(predicate))),
                None => Err(format!("the table asks the custom predicate `{name}`, which is not at hand")),
            },
        }
    }
}

impl BoundRules {
    /// What of the rules the bytes of keys and values depend on, in words: two tables of which this
    /// is the same mean the same by theirs. Digests keep it. Of the codec of values it speaks only
    /// where the fold leaves it to say what they are.
    pub fn meaning(&self) -> String {
        let TableRules { delete, short_circuit, .. } = &self.rules;
        let mut meaning = format!("key {}, order {}", self.rules.key_codec().name(), self.order.name());
        if let Some(codec) = self.opaque {
            meaning.push_str(&format!(", value {}", codec.name()));
        }
        match self.rules.fold.canonical() {
            FoldName::BuiltIn(spec) => meaning.push_str(&format!(", fold {spec}")),
            FoldName::Custom { name, version } => {
                meaning.push_str(&format!(", custom fold {name} of version {version}"));
            }
        }
        for (what, rule) in [("delete when", delete), ("final", short_circuit)] {
            if *rule != PredicateRule::Never {
                meaning.push_str(&format!(", {what} {rule}"));
            }
        }
        meaning
    }

    /// Checks that the table may be written.
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`], naming what is not at hand.
    pub fn check_writable(&self) -> Result<(), Error> {
        match &self.missing {
            Some(missing) => Err(Error::new(ErrorKind::RulesMismatch, missing.as_str())),
            None => Ok(()),
        }
    }

    /// Checks that the bytes are a value, or an operand, of the table.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn check_value(&self, value: &[u8]) -> Result<(), CodecError> {
        match (self.opaque, self.fold.fold()) {
            (Some(codec), _) => codec.check(value),
            (None, Some(fold)) => fold.check(value).map_err(|failure| CodecError(failure.0)),
            (None, None) => Ok(()),
        }
    }

    /// The codec of values, where the fold leaves it to say what they are.
    pub(crate) fn opaque_codec(&self) -> Option<ValueCodec> {
        self.opaque
    }

    /// True when any bytes are a value, so that nobody need look at all of one at once.
    pub fn takes_any_bytes(&self) -> bool {
        let has_head_of_bytes = matches!(self.heads, Heads::None | Heads::First(_));
        let joins = || self.fold.fold().is_some_and(|fold| fold.joins_with().is_some());
        self.opaque == Some(ValueCodec::Bytes) || (has_head_of_bytes && joins())
    }

    /// A value as people read it. Without the fold of the table, its bytes.
    ///
    /// # Errors
    /// When the bytes are not a value of the table.
    pub fn show_value(&self, value: &[u8]) -> Result<Datum, CodecError> {
        match (self.opaque, self.fold.fold()) {
            (Some(codec), _) => codec.show(value),
            (None, Some(fold)) => fold.show(value).map_err(|failure| CodecError(failure.0)),
            (None, None) => Ok(Datum::Bytes(value.to_vec())),
        }
    }

    /// Encodes what a person typed, or what stood in a file, as a value or operand of the table. Appends the
    /// bytes to `out`.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn read_value(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match (self.opaque, self.fold.fold()) {
            (Some(codec), _) => codec.encode(datum, out),
            (None, Some(fold)) => fold.read(datum, out).map_err(|failure| CodecError(failure.0)),
            (None, None) => Err(CodecError::new("the fold of the table is not at hand")),
        }
    }
}

impl std::fmt::Debug for BoundRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundRules").field("rules", &self.rules).field("missing", &self.missing).finish()
    }
}

#[cfg(test)]
#[path = "table_rules/tests.rs"]
mod tests;
