//! The rules of a typed table: key type, value type, and how values fold.

pub(crate) mod dynamic;

use std::marker::PhantomData;

use folddb_base::{Error, Result};
use folddb_rules::codec::{Key, Value};
use folddb_rules::folds::{FoldSpec, IntoFold};
use folddb_rules::head::HeadRule;
use folddb_rules::table_rules::{Compression, TableRules};
use folddb_rules::value_placement::ValuePlacement;
use folddb_rules::{Expire, Fold, IndexRule, Keep};

/// What a table of keys `K` and values `V` means. Begin with [`Rules::sorted`] or
/// [`Rules::hashed`].
///
/// ```
/// use folddb::{Rules, folds};
/// let visits = Rules::sorted::<String, u64>().fold(folds::sum());
/// assert!(visits.as_table_rules().to_string().contains("sum:u64"));
/// ```
#[derive(Debug)]
#[must_use = "rules do nothing until a table is opened with them"]
pub struct Rules<K, V> {
    rules: TableRules,
    /// The mistake in the rules, in words.
    mistake: Option<String>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for Rules<K, V> {
    fn clone(&self) -> Self {
        Rules { rules: self.rules.clone(), mistake: self.mistake.clone(), types: PhantomData }
    }
}

impl Rules<(), ()> {
    /// A sorted table. Values made for a fold use that ([`folds::Stats`](crate::folds::Stats) uses
    /// `stats:f64`, and so on); for other values, a later one replaces the earlier.
    pub fn sorted<K: Key, V: Value>() -> Rules<K, V> {
        Rules::of(TableRules::new(K::codec()))
    }

    /// A hashed table: for large sets of values by key that are not read in order. An index in
    /// memory, of about fourteen bytes per key, has the place of each value, and a get is one read.
    /// Scans cover the whole table, in no key order. A write looks its key up: the value that a
    /// fold is applied to is read at the write.
    pub fn hashed<K: Key, V: Value>() -> Rules<K, V> {
        Rules::of(TableRules::hashed(K::codec()))
    }
}

fn with_fold(rules: TableRules, fold: &FoldSpec) -> TableRules {
    match fold.is_custom() {
        false => rules.fold(&fold.to_string()),
        true => rules.custom_fold(&fold.to_string(), fold.as_fold().version()),
    }
}

impl<K: Key, V: Value> Rules<K, V> {
    fn of(rules: TableRules) -> Rules<K, V> {
        let rules = with_fold(rules.value(V::codec()), &V::default_fold());
        Rules { rules, mistake: None, types: PhantomData }
    }

    /// Adds an index from the beginning, named `name`, by a rule of terms ([`crate::TermRule`]):
    /// `json:/city`. A wrong rule is an error when the table is opened. Indexes of an existing
    /// table are added by [`Table::add_index`](crate::Table::add_index).
    pub fn index(mut self, name: &str, rule: &str) -> Self {
        match format!("{name}:{rule}").parse::<IndexRule>() {
            Ok(index) => self.rules = self.rules.index(index),
            Err(error) => self.mistake = Some(error.to_string()),
        }
        self
    }

    /// How values fold: one of [`crate::folds`], which has the type that it folds, or its spec
    /// string.
    ///
    /// ```
    /// use folddb::{Rules, folds};
    /// let visits = Rules::sorted::<String, u64>().fold(folds::sum());
    /// let visits_by_spec = Rules::sorted::<String, u64>().fold("sum:u64");
    /// assert_eq!(visits.as_table_rules(), visits_by_spec.as_table_rules());
    /// ```
    ///
    /// A fold of other values does not compile. A wrong spec string, or one of a fold of other
    /// values, is an error when the table is opened.
    ///
    /// ```compile_fail
    /// use folddb::{Rules, folds};
    /// Rules::sorted::<String, String>().fold(folds::sum());
    /// ```
    pub fn fold(mut self, fold: impl IntoFold<V>) -> Self {
        self.rules = match fold.into_fold() {
            Ok(fold) => with_fold(self.rules, &fold),
            Err(error) => self.rules.fold(error.text()), // reported when the table is opened
        };
        self
    }

    /// A fold of your own. Its name and version are stored; it must be registered in the store's
    /// options, too ([`crate::Options::custom_fold`]).
    pub fn custom_fold(mut self, fold: &dyn Fold) -> Self {
        self.rules = self.rules.custom_fold(&fold.spec(), fold.version());
        self
    }

    /// Keys in reverse order.
    pub fn reversed(mut self) -> Self {
        self.rules = self.rules.order("reversed");
        self
    }

    /// Keys in an order of your own, which must be registered in the store's options
    /// ([`crate::Options::custom_order`]).
    pub fn order(mut self, name: &str) -> Self {
        self.rules = self.rules.order(name);
        self
    }

    /// Names of the elements of keys, under which tools show them. They change no meaning.
    pub fn key_names<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.rules = self.rules.key_names(names);
        self
    }

    /// A complete state equal to `value` means that the key is absent: 0 for a sum. Law: `value`·y
    /// = y.
    pub fn delete_when(mut self, value: &V) -> Self {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        self.rules = self.rules.delete_when(&bytes);
        self
    }

    /// The named predicate decides which complete states mean that the key is absent.
    pub fn delete_by(mut self, predicate: &str) -> Self {
        self.rules = self.rules.delete_by(predicate);
        self
    }

    /// Nothing earlier than a value equal to `value` matters. Law: x·`value` = `value`.
    pub fn short_circuit_when(mut self, value: &V) -> Self {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        self.rules = self.rules.short_circuit_when(&bytes);
        self
    }

    /// The named predicate decides which values make everything earlier irrelevant. Law: x·v = v.
    pub fn short_circuit_by(mut self, predicate: &str) -> Self {
        self.rules = self.rules.short_circuit_by(predicate);
        self
    }

    /// Size of a block, the unit of reading, in bytes. Default 4096, from 512 to 65,536. Larger
    /// blocks compress better, smaller ones read less for one key.
    pub fn block_bytes(mut self, bytes: u32) -> Self {
        self.rules = self.rules.block_bytes(bytes);
        self
    }

    /// Values of this many bytes and more are separated, in the value log, and are written there
    /// once. Off by default; at least 32. Worth it from about 2 KiB on, for values that are set
    /// rather than folded.
    pub fn separate(mut self, from_bytes: impl Into<Option<u32>>) -> Self {
        self.rules = self.rules.separate(from_bytes);
        self
    }

    /// Where separated values are: many in one file, or each in a file of its own.
    /// [`ValuePlacement::Segments`] by default.
    pub fn value_placement(mut self, place: ValuePlacement) -> Self {
        self.rules = self.rules.value_placement(place);
        self
    }

    /// Blocks of the bottom run store how many rows they have and what these fold to, so that
    /// [`crate::Scan::count`] and [`crate::Scan::aggregate`] read little except what was written
    /// since the last merge. Off by default; if on, merges fold each value once more.
    pub fn summaries(mut self, summaries: bool) -> Self {
        self.rules = self.rules.summaries(summaries);
        self
    }

    /// The log is archived forever, with its values, so that [`crate::Store::repair`] can rebuild
    /// the runs from it ([`crate::maintenance::RepairOptions::rebuild_index`]). Off by default; if
    /// on, it costs the space of everything that is ever written.
    pub fn archive_log(mut self, archives_log: bool) -> Self {
        self.rules = self.rules.archive_log(archives_log);
        self
    }

    /// Which part of a value is its head, which [`crate::Table::head`] gives without reading a
    /// separated value. None by default.
    pub fn head(mut self, rule: HeadRule) -> Self {
        self.rules = self.rules.head(rule);
        self
    }

    /// How much of the past the table keeps, for [`crate::Store::snapshot_at`],
    /// [`Table::get_at`](crate::Table::get_at) and [`Table::history`](crate::Table::history).
    /// [`Keep::Latest`] by default, which costs nothing. A hashed table keeps up to 16 versions of
    /// each key: each has its place in the index, and a write to a key with all versions reads the
    /// fronts of all; a delete of a present value is a version, all ops of a batch on a key are
    /// one, and `get_at` uses times.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.rules = self.rules.keep(keep);
        self
    }

    /// How long values last. [`Expire::Never`] by default, which costs nothing; otherwise each
    /// record has 12 bytes more. Whether they may expire is fixed when the table is created; the
    /// time may be altered ([`Table::alter`](crate::Table::alter)).
    pub fn expire(mut self, expire: Expire) -> Self {
        self.rules = self.rules.expire(expire);
        self
    }

    /// How the blocks of runs are compressed. [`Compression::None`] by default.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.rules = self.rules.compression(compression);
        self
    }

    /// Compresses the blocks of runs with LZ4. Off by default.
    #[cfg(feature = "lz4")]
    pub fn lz4(mut self) -> Self {
        self.rules = self.rules.compression(Compression::Lz4);
        self
    }

    /// How the blocks of the bottom run are compressed, if not as those of all others. Most data
    /// are there, and are rewritten least: so `Compression::Zstd` costs little there, while what
    /// was just written stays fast to read. None by default.
    ///
    /// ```
    /// use folddb::Rules;
    /// use folddb::table_rules::Compression;
    /// let rules = Rules::sorted::<String, String>().bottom_compression(Some(Compression::Lz4));
    /// ```
    pub fn bottom_compression(mut self, compression: Option<Compression>) -> Self {
        self.rules = self.rules.bottom_compression(compression);
        self
    }

    /// Filter bits a key. Default 10 (1 % false positives), 0 for none.
    pub fn filter_bits(mut self, bits: u8) -> Self {
        self.rules = self.rules.filter_bits(bits);
        self
    }

    /// The stored form, if the rules are valid.
    pub(crate) fn checked(&self, table: &str) -> Result<&TableRules> {
        match &self.mistake {
            Some(mistake) => Err(Error::invalid(format!("table `{table}`: {mistake}"))),
            None => Ok(&self.rules),
        }
    }

    /// The stored form.
    pub fn as_table_rules(&self) -> &TableRules {
        &self.rules
    }
}
