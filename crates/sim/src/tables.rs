//! The tables that random programs use: their rules for the store, and a second, naive form of
//! their meaning for the model. Nothing here asks the store's own algebra.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use folddb_base::stamp::NEVER;

use folddb::codec::KeyCodec;
use folddb::codec::tuple::{Element, pack, unpack};
use folddb::order::CustomOrder;
use folddb::table_rules::{Compression, TableKind, TableRules};
use folddb::time::moment;
use folddb::{Expire, Fold, FoldFailure, IndexRule, Keep, Lifetime, Options, Outcome, Terms, ValuePlacement};

/// How the values of a table fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The later value wins.
    Replace,
    /// The earlier value wins.
    First,
    /// `u64` keys and saturating sums of `u64`: blocks of fixed widths.
    SumU64,
    /// Wrapping sums of `i64`; a sum of 0 is absent.
    Balance,
    /// The larger number; the largest of all makes everything earlier irrelevant.
    MaxU64,
    /// The smaller byte string.
    MinBytes,
    /// Byte strings joined by commas.
    Append,
    /// A custom fold: joins, fails where a side holds `!`, and panics where one holds `?`.
    Brittle,
    /// A custom fold: the later value wins, and an empty one is a tombstone, by the fold's own
    /// outcome.
    Tomb,
    /// JSON documents that merge: leaves, objects that merge and objects that replace.
    Json,
}

/// In which order the keys of a table run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By their bytes.
    Bytewise,
    /// The reverse of it.
    Reversed,
    /// A custom order: shorter keys first; the store breaks its ties by bytes.
    ByLength,
    /// In none: the table is hashed. The model has them by their bytes.
    Hashed,
}

/// The rules of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How values fold.
    pub kind: Kind,
    /// How keys run.
    pub order: Order,
    /// How blocks are compressed.
    pub compression: Compression,
    /// How those of the bottom run are, if not as all others.
    pub bottom_compression: Option<Compression>,
    /// Size of a block, in bytes.
    pub block_bytes: u32,
    /// Filter bits a key.
    pub filter_bits: u8,
    /// The length from which values are separated, where the kind permits it.
    pub separate: Option<u32>,
    /// Whether those are in files of their own.
    pub in_files: bool,
    /// How much of the past is kept.
    pub keep: Keep,
    /// How long values last.
    pub expire: Expire,
    /// Whether all of its log is kept.
    pub archives_log: bool,
}

/// An hour, in milliseconds.
pub const HOUR_MS: u64 = 3_600_000;

/// A window of the past. Clocks jump by whole hours, so that nothing is written near its boundary.
pub const WINDOW_MS: u64 = 2 * HOUR_MS + HOUR_MS / 2;

/// How many keys a table may have. Few, so that ops meet on them.
pub const KEYS: u8 = 28;

const NAME_BY_LENGTH: &str = "by-length";
const PREDICATE_FULL: &str = "is-full";

/// The name of the index that a table may have.
pub const INDEX: &str = "idx";

/// A term, in the order of terms as far as one index has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A byte string.
    Bytes(Vec<u8>),
    /// A number.
    Number(i128),
}

impl Shape {
    /// A table whose blocks hold few rows and which lets values are separated early: much happens
    /// with little data.
    pub const fn small(kind: Kind, order: Order) -> Shape {
        Shape {
            kind,
            order,
            compression: Compression::None,
            bottom_compression: None,
            block_bytes: 512,
            filter_bits: 10,
            separate: Some(32),
            in_files: false,
            keep: Keep::Latest,
            expire: Expire::Never,
            archives_log: false,
        }
    }

    /// The rules in the form of the store.
    pub fn rules(&self) -> TableRules {
        let key = match () {
            () if self.has_number_keys() => KeyCodec::U64,
            () if self.has_tuple_keys() => KeyCodec::Tuple,
            () => KeyCodec::Bytes,
        };
        let rules = TableRules::new(key).block_bytes(self.block_bytes).filter_bits(self.filter_bits);
        let rules = match self.order {
            Order::Bytewise => rules,
            Order::Reversed => rules.order("reversed"),
            Order::ByLength => rules.order(NAME_BY_LENGTH),
            Order::Hashed => rules.kind(TableKind::Hashed),
        };
        let rules = rules.keep(self.keep).expire(self.expire).summaries(self.has_summaries());
        let rules = rules.archive_log(self.archives_log);
        let rules = rules.compression(self.compression).bottom_compression(self.bottom_compression);
        let separate = self.separate.filter(|_| self.order != Order::Hashed);
        let rules = match (self.kind, separate) {
            (Kind::Replace | Kind::First | Kind::MinBytes | Kind::Append, separate) => {
                rules.separate(separate)
            }
            _ => rules,
        };
        let has_separated = rules.separate.is_some() || self.order == Order::Hashed;
        let rules =
            if self.in_files && has_separated { rules.value_placement(ValuePlacement::Files) } else { rules };
        match self.kind {
            Kind::Replace => rules,
            Kind::First => rules.fold("first"),
            Kind::SumU64 => rules.fold("sum:u64"),
            Kind::Balance => rules.fold("sum:i64").delete_when(&0i64.to_le_bytes()),
            Kind::MaxU64 => rules.fold("max:u64").short_circuit_by(PREDICATE_FULL),
            Kind::MinBytes => rules.fold("min:bytes"),
            Kind::Append => rules.fold("append:\",\""),
            Kind::Brittle => rules.custom_fold(&Brittle.spec(), Brittle.version()),
            Kind::Tomb => rules.custom_fold(&Tomb.spec(), Tomb.version()).delete_when(b""),
            Kind::Json => rules.fold("json-merge"),
        }
    }

    /// How long the value with this number lasts, and its deadline, when it is written at this time
    /// to a store that began at `epoch_ms`. Deadlines are in the middle between whole hours since
    /// then, and clocks jump by whole hours: so the time of a write need not be known to the
    /// millisecond.
    pub fn lifetime(&self, number: u8, write_ms: u64, epoch_ms: u64) -> (Lifetime, u64) {
        let hours = |hours: u64| hours * HOUR_MS + HOUR_MS / 2;
        let until = |hours_on: u64| {
            let whole = write_ms.saturating_sub(epoch_ms) / HOUR_MS;
            (epoch_ms + hours(whole + hours_on)).saturating_sub(HOUR_MS)
        };
        match (self.expire, number % 4) {
            (Expire::Never, _) => (Lifetime::Default, NEVER),
            (Expire::After(time), 0 | 1) => (Lifetime::Default, write_ms + time.as_millis() as u64),
            (Expire::ByWrite, 0) => (Lifetime::Default, NEVER),
            (_, 1) => (Lifetime::For(Duration::from_millis(hours(0))), write_ms + hours(0)),
            (_, 2) => {
                (Lifetime::Until(moment(until(u64::from(number) / 4 % 3))), until(u64::from(number) / 4 % 3))
            }
            _ => (Lifetime::Forever, NEVER),
        }
    }

    /// The same table with other rules, chosen by a number, under which its data mean the same.
    /// Values that were in files of their own stay there, and so does the threshold.
    #[must_use]
    pub fn altered(&self, how: u8) -> Shape {
        let [blocks, compressed, filters, values] = [how % 3, how / 3 % 2, how / 6 % 3, how / 18];
        let (compression, bottom_compression) = match (compressed, filters) {
            (0, _) => (Compression::None, None),
            (_, 0) => (Compression::Lz4, None),
            (_, 1) => (Compression::Zstd, Some(Compression::None)),
            (_, _) => (Compression::None, Some(Compression::Zstd)),
        };
        Shape {
            block_bytes: [512, 1024, 8192][usize::from(blocks)],
            compression,
            bottom_compression,
            filter_bits: [0, 10, 16][usize::from(filters)],
            separate: if values % 2 == 0 {
                self.separate
            } else {
                Some([32, 100][usize::from(values / 2 % 2)])
            },
            in_files: self.in_files || (values % 5 == 0 && self.order != Order::Hashed),
            ..*self
        }
    }

    /// Whether blocks have summaries: where they are small, in tables that may have them.
    fn has_summaries(&self) -> bool {
        let is_of_now = self.keep == Keep::Latest && self.expire == Expire::Never;
        self.block_bytes == 512 && is_of_now && self.order != Order::Hashed
    }

    /// Whether a secondary shows the same rows of the table as long as it is open: values in files
    /// of their own are opened when they are read, and may be gone.
    pub fn lasts_in_secondary(&self) -> bool {
        !self.in_files && self.lasts()
    }

    /// Whether a store notes the times of writes.
    pub fn is_timed(&self) -> bool {
        self.keep != Keep::Latest || self.expire != Expire::Never
    }

    /// Whether its rows stay the same as time passes.
    pub fn lasts(&self) -> bool {
        self.expire == Expire::Never
    }

    /// Whether its keys are numbers.
    pub fn has_number_keys(&self) -> bool {
        matches!(self.kind, Kind::SumU64)
    }

    /// Whether its keys are tuples of any number of elements: filters know the first of these.
    pub fn has_tuple_keys(&self) -> bool {
        matches!(self.kind, Kind::First | Kind::MinBytes)
    }

    /// Whether these bytes can be a key of it.
    pub(crate) fn takes_key(&self, key: &[u8]) -> bool {
        (!self.has_number_keys() || key.len() == 8) && (!self.has_tuple_keys() || unpack(key).is_ok())
    }

    /// The key with this number, below [`KEYS`].
    pub fn key(&self, number: u8) -> Vec<u8> {
        if self.has_number_keys() {
            return (u64::from(number) * 0x0101_0101).to_be_bytes().to_vec();
        }
        if self.has_tuple_keys() {
            return pack(&elements(number));
        }
        const ODD: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"a", b"ab", b"b", b"\xff", b"\xff\xff"];
        match ODD.get(usize::from(number)) {
            Some(odd) => odd.to_vec(),
            None => format!("key/{:02}", number - ODD.len() as u8).into_bytes(),
        }
    }

    /// The value or operand with this number; where values may be of any length, about `len_bytes`
    /// long.
    pub fn value(&self, number: u8, len_bytes: u16) -> Vec<u8> {
        match self.kind {
            Kind::SumU64 | Kind::MaxU64 => {
                let value = if number == 255 { u64::MAX } else { u64::from(number) };
                value.to_le_bytes().to_vec()
            }
            Kind::Balance => (i64::from(number % 5) - 2).to_le_bytes().to_vec(),
            Kind::Brittle => match number % 16 {
                0 => b"!".to_vec(),
                1 => b"?".to_vec(),
                other => vec![b'a' + other; usize::from(len_bytes % 5)],
            },
            Kind::Tomb if number.is_multiple_of(3) => Vec::new(),
            Kind::Json => document(number),
            Kind::Replace | Kind::First | Kind::MinBytes | Kind::Append | Kind::Tomb => {
                let mut bytes = vec![0; usize::from(len_bytes)];
                let mut chance = crate::chance::Seeded::new(u64::from(number));
                bytes.iter_mut().for_each(|byte| *byte = b'a' + (chance.next_u64() % 26) as u8);
                bytes
            }
        }
    }

    /// The index that the table may have; none where it is hashed.
    pub fn index(&self) -> Option<IndexRule> {
        let rule = match self.kind {
            _ if self.order == Order::Hashed => return None,
            Kind::SumU64 | Kind::Balance | Kind::Json => "key:0",
            _ => "custom:marks@1",
        };
        format!("{INDEX}:{rule}").parse::<IndexRule>().ok()
    }

    /// The terms of a record in that index.
    pub fn marks(&self, key: &[u8], value: &[u8]) -> BTreeSet<Mark> {
        match self.kind {
            Kind::SumU64 => {
                let number = key.iter().fold(0, |number, &byte| number << 8 | i128::from(byte));
                BTreeSet::from([Mark::Number(number)])
            }
            Kind::Balance | Kind::Json => BTreeSet::from([Mark::Bytes(key.to_vec())]),
            _ => marks(value).into_iter().map(|mark| Mark::Number(i128::from(mark))).collect(),
        }
    }

    /// Compares two keys as the table does.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.order {
            Order::Bytewise | Order::Hashed => a.cmp(b),
            Order::Reversed => b.cmp(a),
            Order::ByLength => (a.len(), a).cmp(&(b.len(), b)),
        }
    }

    /// The fold of `later` onto `earlier`; none where it fails.
    pub fn fold(&self, earlier: &[u8], later: &[u8]) -> Option<Vec<u8>> {
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or(0);
        Some(match self.kind {
            Kind::Replace | Kind::Tomb => later.to_vec(),
            Kind::First => earlier.to_vec(),
            Kind::SumU64 => number(earlier).saturating_add(number(later)).to_le_bytes().to_vec(),
            Kind::Balance => number(earlier).wrapping_add(number(later)).to_le_bytes().to_vec(),
            Kind::MaxU64 => number(earlier).max(number(later)).to_le_bytes().to_vec(),
            Kind::MinBytes => earlier.min(later).to_vec(),
            Kind::Append => [earlier, b",", later].concat(),
            Kind::Brittle => {
                let breaks = |side: &[u8]| side.contains(&b'!') || side.contains(&b'?');
                if breaks(earlier) || breaks(later) {
                    return None;
                }
                [earlier, later].concat()
            }
            Kind::Json => merged(earlier, later),
        })
    }

    /// Whether a complete state of this value counts as absent.
    pub fn is_deleted(&self, value: &[u8]) -> bool {
        match self.kind {
            Kind::Balance => value.iter().all(|byte| *byte == 0),
            Kind::Tomb => value.is_empty(),
            _ => false,
        }
    }
}

/// The elements of the key with this number: none, one, or up to three, of which the first is one
/// of four. Strings continue others behind a zero.
fn elements(number: u8) -> Vec<Element<'static>> {
    const TEXTS: [&str; 4] = ["", "a", "a\0", "a\0b"];
    let text = |at: u8| Element::from(TEXTS[usize::from(at) % TEXTS.len()]);
    let Some(rest) = number.checked_sub(8) else {
        return match number {
            0 => Vec::new(),
            1..=4 => vec![text(number - 1)],
            5 => vec![Element::Null],
            6 => vec![Element::Nested(vec![Element::Null])],
            _ => vec![Element::from(255u32)],
        };
    };
    let more = match rest % 5 {
        0 => vec![Element::from(0u32)],
        1 => vec![Element::from(255u32)],
        2 => vec![text(1)],
        third => vec![text(1), Element::from(u32::from(third))],
    };
    [vec![text(rest / 5)], more].concat()
}

// ---- JSON ---------------------------------------------------------------------------------------

/// Values of names, and documents: each as it is stored, digit for digit. None has a comma or a
/// colon.
const LEAVES: [&str; 8] = ["17", "1.10", "-0.0", "18446744073709551617", "1e400", "\"text\"", "true", "\"\""];

/// The document with this number: a leaf, an object that replaces, or, mostly, one that merges.
fn document(number: u8) -> Vec<u8> {
    let (form, rest) = (number % 8, usize::from(number / 8));
    match form {
        0 if rest % 4 == 0 => b"[1,{\"b\":1.0},null]".to_vec(),
        0 if rest % 4 == 1 => b"null".to_vec(),
        0 => LEAVES[rest % LEAVES.len()].as_bytes().to_vec(),
        form => {
            let leaf = |at: usize| match (rest + 3 * at) % (LEAVES.len() + 2) {
                at if at < LEAVES.len() => LEAVES[at],
                _ if form == 1 => "0",
                _ => "null",
            };
            let names = (0..3).filter(|at| rest >> at & 1 == 1 || *at == rest % 3);
            let fields: Fields =
                names.map(|at| (vec![b'a' + at as u8], leaf(at).as_bytes().to_vec())).collect();
            text_of(form == 1, &fields)
        }
    }
}

/// Names and values of an object, as their text.
type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

/// An object as it is stored: one that replaces says so.
fn text_of(replaces: bool, fields: &Fields) -> Vec<u8> {
    let fields: Vec<Vec<u8>> =
        fields.iter().map(|(name, value)| [b"\"", &name[..], b"\":", value].concat()).collect();
    let object = [b"{", &fields.join(&b',')[..], b"}"].concat();
    if replaces { [b"{\"$set\":", &object[..], b"}"].concat() } else { object }
}

/// The object of a stored text, and whether it replaces; none where it is a leaf.
fn object_of(text: &[u8]) -> Option<(bool, Fields)> {
    let inner = |text: &[u8]| {
        let fields = text.split(|byte| *byte == b',').filter(|field| !field.is_empty());
        let pair = |field: &[u8]| Some((field.get(1..2)?.to_vec(), field.get(4..)?.to_vec()));
        fields.filter_map(pair).collect()
    };
    match text.strip_prefix(b"{\"$set\":{") {
        Some(rest) => Some((true, inner(rest.strip_suffix(b"}}")?))),
        None => Some((false, inner(text.strip_prefix(b"{")?.strip_suffix(b"}")?))),
    }
}

/// A document with a later one on it: leaves and objects that replace win, others merge name by
/// name.
fn merged(earlier: &[u8], later: &[u8]) -> Vec<u8> {
    let Some((false, changes)) = object_of(later) else { return later.to_vec() };
    let (replaces, mut fields) = object_of(earlier).unwrap_or((true, Fields::new()));
    fields.extend(changes);
    if replaces {
        fields.retain(|_, value| value != b"null"); // a merge keeps removals, for earlier documents
    }
    text_of(replaces, &fields)
}

/// The letters of a value, roughly: a join or choice of two values has only theirs.
fn marks(value: &[u8]) -> BTreeSet<u8> {
    let mut is_there = [false; 5];
    value.iter().filter(|byte| **byte != b',').for_each(|byte| is_there[usize::from(byte % 5)] = true);
    (0..5).filter(|mark| is_there[usize::from(*mark)]).collect()
}

/// Registers the custom folds, orders, predicates and terms of all shapes.
pub fn with_customs(options: Options) -> Options {
    options
        .custom_fold(Arc::new(Brittle))
        .custom_fold(Arc::new(Tomb))
        .custom_order(Arc::new(ByLength))
        .custom_predicate(PREDICATE_FULL, |_key, value| value == u64::MAX.to_le_bytes())
        .custom_terms("marks", 1, |_key, value, terms: &mut Terms| {
            marks(value).iter().for_each(|mark| terms.push(&Element::from(u32::from(*mark))));
        })
}

struct ByLength;

impl CustomOrder for ByLength {
    fn name(&self) -> &str {
        NAME_BY_LENGTH
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len())
    }
}

/// Joins byte strings, unless one has a character that it refuses. Associative: a failure inside
/// any bracketing is a failure of all.
struct Brittle;

impl Fold for Brittle {
    fn spec(&self) -> String {
        "brittle".to_owned()
    }
    fn version(&self) -> u32 {
        3
    }
    fn fold(
        &self,
        _key: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        for side in [earlier, later] {
            if side.contains(&b'?') {
                // As a panic does, but without a line on standard error.
                std::panic::resume_unwind(Box::new("the fold met a question mark"));
            }
            if side.contains(&b'!') {
                return Err(FoldFailure::new("the fold met an exclamation mark"));
            }
        }
        out.extend_from_slice(earlier);
        out.extend_from_slice(later);
        Ok(Outcome::Value)
    }
}

/// The later value, or absence where it is empty. Associative: only the last of a row of values
/// counts.
struct Tomb;

impl Fold for Tomb {
    fn spec(&self) -> String {
        "tomb".to_owned()
    }
    fn fold(
        &self,
        _key: &[u8],
        _earlier: &[u8],
        later: &[u8],
        _out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        Ok(if later.is_empty() { Outcome::Delete } else { Outcome::KeepLater })
    }
}
