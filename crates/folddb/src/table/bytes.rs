//! A table of plain bytes: the handle of tools and other languages, and the base of the typed
//! handle.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::SystemTime;

use folddb_base::{Error, ErrorKind, OpKind, Result};
use folddb_rules::codec::{CodecError, KeyRange, Value};
use folddb_rules::table_rules::TableRules;
use folddb_rules::time::moment;

use crate::rules::dynamic::DynamicRules;
use crate::scan::bytes::BytesScan;
use crate::scan::cursor::{Cursor, Resume};
use crate::table::prefix_delete::PrefixDelete;
use crate::table::record_op::RecordOp;
use folddb_engine::background::state::Background;
use folddb_engine::options::Durability;
use folddb_engine::read::get::TakeValue;
use folddb_engine::read::history::HistoryEntry;
use folddb_engine::read::locate::{Locate, Located};
use folddb_engine::read::scan::ScanPlan;
use folddb_engine::read::{get, get_many, head, history, locate};
use folddb_engine::seq::Seq;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::clock;
use folddb_engine::state::clock::AsOf;
use folddb_engine::state::engine::Engine;
use folddb_engine::values::head::Head;
use folddb_engine::write::encoded_batch::{Encoded, WriteOp, kind_of};
use folddb_engine::write::ops::Lifetime;
use folddb_engine::write::stream::{ValueReader, ValueWriter, whole_because};
use folddb_engine::write::{commit, stream};

thread_local! {
    /// The buffers of a single write, kept from one to the next.
    static SINGLE: RefCell<(Encoded, Vec<u8>, Vec<u8>)> = RefCell::default();
}

pub(crate) fn with_buffers<R>(write: impl FnOnce(&mut (Encoded, Vec<u8>, Vec<u8>)) -> R) -> R {
    SINGLE.with(|single| match single.try_borrow_mut() {
        Ok(mut buffers) => write(&mut buffers),
        // A key or value that itself writes while it is encoded finds the buffers in use and gets
        // its own.
        Err(_) => write(&mut <_>::default()),
    })
}

/// A table as bytes: keys and values are as stored. For tools and other languages.
#[derive(Clone)]
pub struct BytesTable {
    background: Arc<Background>,
    pub(crate) core: Arc<TableCore>,
    pub(crate) durability: Durability,
    /// The lifetime of values written by this handle.
    pub(crate) lifetime: Lifetime,
    rules: DynamicRules,
}

impl BytesTable {
    /// A handle of a table, with the durability of the store's options.
    pub(crate) fn new(background: &Arc<Background>, core: Arc<TableCore>) -> BytesTable {
        let rules = DynamicRules::of(core.present());
        let (background, durability) = (Arc::clone(background), background.engine.options.durability);
        BytesTable { background, core, durability, lifetime: Lifetime::Default, rules }
    }

    pub(crate) fn core(&self) -> &Arc<TableCore> {
        &self.core
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.background.engine
    }

    pub(crate) fn background(&self) -> &Background {
        &self.background
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The rules of the table, with its codecs and fold: they parse and show keys and values. Those
    /// that were altered since the handle was made are as they were then.
    pub fn rules(&self) -> &DynamicRules {
        &self.rules
    }

    /// Itself, if these are its rules and indexes.
    pub(crate) fn with_rules(self, wanted: &TableRules) -> Result<BytesTable> {
        match self.core.rules_with_indexes().diff(wanted) {
            None => Ok(self),
            Some(difference) => {
                let message = format!("table `{}` has different rules: {difference}", self.name());
                Err(Error::new(ErrorKind::RulesMismatch, message))
            }
        }
    }

    /// The same table, with this durability for single writes.
    #[must_use = "it is another handle that has this durability"]
    pub fn with_durability(&self, durability: Durability) -> Self {
        BytesTable { durability, ..self.clone() }
    }

    /// The same table, with this lifetime for values that are written: see
    /// [`Table::with_lifetime`](crate::Table::with_lifetime).
    #[must_use = "it is another handle whose values last this long"]
    pub fn with_lifetime(&self, lifetime: Lifetime) -> Self {
        BytesTable { lifetime, ..self.clone() }
    }

    /// Writes one op. The value of a `Delete` is ignored.
    ///
    /// # Errors
    /// As [`Table::put`](crate::Table::put); and [`crate::ErrorKind::InvalidInput`] if the key or
    /// value is not of the table's types.
    pub fn write(&self, op: WriteOp, key: &[u8], value: &[u8]) -> Result<Seq> {
        let value = if op == WriteOp::Delete { &[][..] } else { value };
        self.check(op, key, value)?;
        self.push(kind_of(op), key, value)
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// As [`BytesTable::write`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<Seq> {
        self.write(WriteOp::Put, key, value)
    }

    /// Gives `key` this value unless it has one: see
    /// [`Table::put_if_absent`](crate::Table::put_if_absent).
    ///
    /// # Errors
    /// As [`BytesTable::write`].
    pub fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Seq> {
        self.write(WriteOp::PutIfAbsent, key, value)
    }

    /// Folds `operand` onto the value of `key`: see [`Table::fold`](crate::Table::fold).
    ///
    /// # Errors
    /// As [`BytesTable::write`].
    pub fn fold(&self, key: &[u8], operand: &[u8]) -> Result<Seq> {
        self.write(WriteOp::Fold, key, operand)
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`BytesTable::write`].
    pub fn delete(&self, key: &[u8]) -> Result<Seq> {
        self.write(WriteOp::Delete, key, &[])
    }

    fn push(&self, kind: OpKind, key: &[u8], value: &[u8]) -> Result<Seq> {
        with_buffers(|(encoded, ..)| self.write_encoded(encoded, kind, (key, value)))
    }

    /// The time of its store: see [`crate::Store::now`].
    pub fn now(&self) -> SystemTime {
        moment(clock::now_ms(self.engine()))
    }

    /// The value that `key` had at a past moment, copied.
    ///
    /// # Errors
    /// As [`Table::get_at`](crate::Table::get_at).
    pub fn get_at(&self, key: &[u8], as_of: AsOf) -> Result<Option<Vec<u8>>> {
        history::get_at(self.engine(), &self.core, key, as_of)
    }

    /// A scan of the table at a past moment; iterating it fails if the table does not keep that.
    pub fn scan_at(&self, as_of: AsOf) -> BytesScan {
        let (held, asked) = clock::hold_at(self.engine(), as_of);
        let scan = BytesScan::new(self.engine(), &self.core, ScanPlan::everything(Some(held.at)));
        let kept = clock::check_written(self.engine(), as_of);
        match kept.and_then(|()| clock::check_kept(self.engine(), &self.core, held.at, asked)) {
            Ok(()) => scan.holding(Arc::new(held)),
            Err(mistake) => scan.failing(mistake),
        }
    }

    /// The states of `key`, newest first, as far as the table keeps them, at most `limit`.
    ///
    /// # Errors
    /// As [`Table::history`](crate::Table::history).
    pub fn history(&self, key: &[u8], limit: usize) -> Result<Vec<HistoryEntry<Option<Vec<u8>>>>> {
        history::history(self.engine(), &self.core, key, limit)
    }

    /// Checks that key and value are of the table's types, as [`BytesTable::write`] does.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`], naming the table and what is wrong.
    pub fn check(&self, op: WriteOp, key: &[u8], value: &[u8]) -> Result<()> {
        BytesTable::check_row(&self.core, kind_of(op), key, value)
    }

    pub(crate) fn check_row(table: &TableCore, kind: OpKind, key: &[u8], value: &[u8]) -> Result<()> {
        table.rules.rules.key_codec().check(key).map_err(|cause| wrong(table, "key", &cause))?;
        if kind == OpKind::Delete {
            return Ok(());
        }
        table.rules.check_value(value).map_err(|cause| wrong(table, "value", &cause))
    }

    /// Commits one op by itself.
    #[inline]
    pub(crate) fn write_encoded(
        &self,
        encoded: &mut Encoded,
        kind: OpKind,
        (key, value): (&[u8], &[u8]),
    ) -> Result<Seq> {
        encoded.clear();
        encoded.push_lasting(&self.core, kind, key, value, self.lifetime)?;
        let committed = commit::commit(self.engine(), encoded, self.durability);
        encoded.recycle(); // keeps no table alive
        committed.map(Seq::from)
    }

    /// Deletes all keys from `from` up to, but not including, `to`, in the order of the table.
    ///
    /// # Errors
    /// As [`Table::delete_range`](crate::Table::delete_range).
    pub fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<Seq> {
        let mut encoded = Encoded::default();
        encoded.clear();
        encoded.push_range_delete(&self.core, from, to)?;
        commit::commit(self.engine(), &mut encoded, self.durability).map(Seq::from)
    }

    /// Deletes all keys whose bytes have this prefix: see
    /// [`Table::delete_prefix`](crate::Table::delete_prefix).
    ///
    /// # Errors
    /// As [`Table::delete_prefix`](crate::Table::delete_prefix).
    pub fn delete_prefix(&self, prefix: &[u8]) -> Result<Seq> {
        self.delete_within(KeyRange::prefix(prefix.to_vec()))
    }

    /// Deletes all keys in the range of a prefix.
    pub(crate) fn delete_within(&self, range: KeyRange) -> Result<Seq> {
        let deletes = self.prefix_delete(range)?;
        let mut encoded = Encoded::default();
        encoded.clear();
        if let Some((from, to)) = &deletes.range {
            encoded.push_range_delete(&self.core, from, to)?;
        }
        if let Some(last) = &deletes.last {
            encoded.push(&self.core, OpKind::Delete, last, &[])?;
        }
        commit::commit(self.engine(), &mut encoded, self.durability).map(Seq::from)
    }

    /// The ops that delete the keys of a prefix.
    pub(crate) fn prefix_delete(&self, range: KeyRange) -> Result<PrefixDelete> {
        let (name, order) = (self.name(), &self.core.rules.order);
        if !order.has_byte_prefixes() {
            let message =
                format!("table `{name}` has a custom order, in which the keys of a prefix are not a range");
            return Err(Error::invalid(message).advise("delete its keys, or ranges of them in its order"));
        }
        let mut deletes = PrefixDelete::of(order, range);
        let codec = self.core.rules.rules.key_codec();
        deletes.last = deletes.last.filter(|last| codec.check(last).is_ok()); // a bound that is not a key does not exist
        Ok(deletes)
    }

    /// Passes the value of `key` to `take` without copying it.
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn get_with<R>(&self, key: &[u8], take: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        get::get(self.engine(), &self.core, key, None, |value| Ok(take(value)))
    }

    pub(crate) fn get_many_with(&self, keys: &[&[u8]], take: &mut TakeValue<'_>) -> Result<()> {
        get_many::get_many(self.engine(), &self.core, keys, None, take)
    }

    /// True if `key` has a value.
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        get::contains(self.engine(), &self.core, key, None)
    }

    /// The head of the value of `key`.
    ///
    /// # Errors
    /// As [`Reader::head`](crate::Reader::head).
    pub fn head(&self, key: &[u8]) -> Result<Option<Head>> {
        head::head(self.engine(), &self.core, key, None)
    }

    /// A writer of a value of any length, or of an operand if folding joins operands. See
    /// [`Table::writer`](crate::Table::writer).
    ///
    /// # Errors
    /// As [`Table::writer`](crate::Table::writer); a key that is not of the table's type.
    pub fn writer(&self, op: WriteOp, key: &[u8]) -> Result<ValueWriter> {
        self.check(WriteOp::Delete, key, &[])?;
        stream::writer(self.engine(), &self.core, kind_of(op), key, (self.durability, self.lifetime))
    }

    /// A reader of the value of `key`. See [`Reader::read`](crate::Reader::read).
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn read(&self, key: &[u8]) -> Result<Option<ValueReader>> {
        stream::read_value(self.engine(), &self.core, key, None)
    }

    /// Whether the table takes values piece by piece, and so of any length: see
    /// [`Table::writer`](crate::Table::writer).
    pub fn takes_streams(&self) -> bool {
        whole_because(&self.core).is_none()
    }

    /// Where the value of `key` is.
    ///
    /// # Errors
    /// As [`Reader::locate`](crate::Reader::locate).
    pub fn locate(&self, key: &[u8], how: Locate) -> Result<Option<Located>> {
        locate::locate(self.engine(), &self.core, key, None, how)
    }

    /// The operands of `key` as far as they fold, newest first: useful if the table's fold is not
    /// available.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub fn operands(&self, key: &[u8]) -> Result<Vec<RecordOp>> {
        let operands = get::operands(self.engine(), &self.core, key, None)?;
        Ok(operands.iter().map(|(kind, payload)| RecordOp::plain(*kind, payload)).collect())
    }

    /// A scan of the table as it is when the scan starts.
    pub fn scan(&self) -> BytesScan {
        BytesScan::new(self.engine(), &self.core, ScanPlan::everything(None))
    }

    /// Resumes a scan at its cursor, in its range and direction, with values; it can be narrowed to
    /// keys, or to a number of rows, like any scan.
    ///
    /// # Errors
    /// [`crate::ErrorKind::SnapshotTooOld`] if it must see what it saw, and cannot;
    /// [`crate::ErrorKind::InvalidInput`] for the cursor of another table or store.
    pub fn resume(&self, cursor: &Cursor, how: Resume) -> Result<BytesScan> {
        BytesScan::resume(self.engine(), &self.core, cursor, how)
    }

    /// Itself, for code that is generic over handles.
    pub(crate) fn table(&self) -> &BytesTable {
        self
    }

    /// A value of a key, as its type.
    pub(crate) fn decoded<V: Value>(&self, key: &[u8], value: Option<&[u8]>) -> Result<Option<V>> {
        value.map(|value| V::decode(value).map_err(|cause| self.undecodable(key, &cause))).transpose()
    }

    pub(crate) fn undecodable(&self, key: &[u8], cause: &dyn std::fmt::Display) -> folddb_base::Error {
        let key = self.core.rules.rules.key_codec().show_line(key);
        let message =
            format!("the value of key {key} in table `{}` is not of its type: {cause}", self.core.name);
        Error::new(ErrorKind::RulesMismatch, message)
    }
}

impl std::fmt::Debug for BytesTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table `{}`", self.core.name)
    }
}

#[cold]
pub(crate) fn wrong(table: &TableCore, what: &str, cause: &CodecError) -> Error {
    Error::invalid(format!("this is not a {what} of table `{}`: {cause}", table.name))
}
