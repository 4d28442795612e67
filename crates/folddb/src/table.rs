//! What users hold of a table: typed handles, and handles of plain bytes.

use std::cell::RefCell;
use std::io::Read;
use std::marker::PhantomData;
use std::sync::Arc;

use folddb_base::{Error, OpKind, Result, Seq};
use folddb_rules::Fit;
use folddb_rules::codec::{AsKey, AsValue, CodecError, Key, Value};
use folddb_rules::table_rules::BoundRules;

use crate::cursor::{Cursor, Resume};
use crate::scans::{BytesScan, Scan};
use folddb_engine::options::Durability;
use folddb_engine::read::history::HistoryEntry;
use folddb_engine::read::locate::{Locate, Located};
use folddb_engine::read::scan::ScanPlan;
use folddb_engine::read::{get, head, history, locate};
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::clock;
use folddb_engine::state::clock::AsOf;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::At;
use folddb_engine::values::head::Head;
use folddb_engine::write::encoded_batch::{Encoded, RECYCLED_BYTES_MAX, WriteOp};
use folddb_engine::write::ops::Lifetime;
use folddb_engine::write::stream::{ValueReader, ValueWriter, whole_because};
use folddb_engine::write::{commit, stream};

thread_local! {
    /// The buffers of a single write, kept from one to the next.
    static SINGLE: RefCell<(Encoded, Vec<u8>, Vec<u8>)> = RefCell::default();
}

fn with_buffers<R>(write: impl FnOnce(&mut (Encoded, Vec<u8>, Vec<u8>)) -> R) -> R {
    SINGLE.with(|single| match single.try_borrow_mut() {
        Ok(mut buffers) => write(&mut buffers),
        // A key or value that itself writes while it is encoded finds the buffers in use and gets its own.
        Err(_) => write(&mut <_>::default()),
    })
}

/// A table of keys `K` and values `V`. Cheap to clone; any number of threads may use it.
///
/// Writes never read: they append, and the value of a key is the fold of all that was written to it.
pub struct Table<K, V> {
    bytes: BytesTable,
    /// Whether each value is looked at when it is written: not all that the type encodes need be values of the table.
    checks: bool,
    types: PhantomData<fn() -> (K, V)>,
}

/// How values of a type fit a table by these rules.
///
/// # Errors
/// They do not, naming the table and what would.
pub(crate) fn fit<V: Value>(name: &str, rules: &BoundRules) -> Result<Fit> {
    rules.fit::<V>().map_err(|cause| Error::invalid(format!("table `{name}`: {cause}")))
}

#[cold]
fn check_value(table: &TableCore, value: &[u8]) -> Result<()> {
    table.rules.check_value(value).map_err(|cause| wrong(table, "value", &cause))
}

fn wrong(table: &TableCore, what: &str, cause: &CodecError) -> Error {
    Error::invalid(format!("this is no {what} of table `{}`: {cause}", table.name))
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Table { bytes: self.bytes.clone(), checks: self.checks, types: PhantomData }
    }
}

/// Values of any length, of tables that separate and hold bytes, and of hashed ones.
impl<K: Key> Table<K, Vec<u8>> {
    /// A writer of the value of `key`, up to 4 GiB long, which takes it piece by piece and holds no more than a piece, in a hashed table four: see
    /// [`ValueWriter`]. The key has its former value until it is finished. A batch holds no such value.
    ///
    /// Where the table cannot keep a value in pieces ([`BytesTable::takes_streams`]: it keeps
    /// values beside their keys, or they are checked as a whole) the writer holds all of it, and it
    /// is up to 16 MiB long ([`VALUE_BYTES_MAX`](crate::limits::VALUE_BYTES_MAX)); a longer one
    /// fails before it is finished, saying why and what to do.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn writer<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<ValueWriter> {
        self.bytes.writer(WriteOp::Put, &encoded_key(key))
    }

    /// Makes all that `from` gives the value of `key`, up to 4 GiB, holding no more than a few pieces of it in memory.
    ///
    /// # Errors
    /// `from` fails: nothing is written then; as [`Table::writer`].
    pub fn put_from<Q: AsKey<K> + ?Sized>(&self, key: &Q, from: &mut impl Read) -> Result<Seq> {
        let mut writer = self.writer(key)?;
        writer.write_from(from)?;
        writer.finish()
    }

    /// As [`Table::writer`], of a value that lasts so long, counted from when it is finished.
    ///
    /// # Errors
    /// As [`Table::put_expiring`].
    pub fn writer_expiring<Q: AsKey<K> + ?Sized>(&self, key: &Q, lifetime: Lifetime) -> Result<ValueWriter> {
        self.bytes.writer_expiring(WriteOp::Put, &encoded_key(key), lifetime)
    }

    /// A reader of the value of `key`, which holds no more than a piece of it: see [`ValueReader`].
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn read<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<ValueReader>> {
        self.bytes.read(&encoded_key(key))
    }
}

impl<K: Key, V: Value> Table<K, V> {
    /// # Errors
    /// Values of the type cannot be values of the table.
    pub(crate) fn new(bytes: BytesTable) -> Result<Table<K, V>> {
        let checks = fit::<V>(bytes.name(), &bytes.core.rules)? == Fit::Sometimes;
        Ok(Table { bytes, checks, types: PhantomData })
    }

    /// Fails where an op brings what is no value of the table. Nothing is to be looked at where all values of the type are.
    #[inline]
    pub(crate) fn check_written(&self, kind: OpKind, value: &[u8]) -> Result<()> {
        match self.checks && kind != OpKind::Delete {
            true => check_value(&self.bytes.core, value),
            false => Ok(()),
        }
    }

    pub(crate) fn core(&self) -> &Arc<TableCore> {
        &self.bytes.core
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.bytes.engine
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        self.bytes.name()
    }

    /// The same table without types.
    pub fn as_bytes(&self) -> &BytesTable {
        &self.bytes
    }

    /// The same table, whose single writes are as durable as this says.
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.bytes.durability = durability;
        self
    }

    /// Makes the value of `key` this one, whatever it was.
    ///
    /// # Errors
    /// A key or value that is too long; [`crate::ErrorKind::NoSpace`] on a full disk; any failed write.
    pub fn put<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(&self, key: &Q, value: &W) -> Result<Seq> {
        self.write(OpKind::Set, key, Some(value))
    }

    /// Gives `key` this value unless it has one. Reads nothing: the first one wins when it is read.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn put_if_absent<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &self,
        key: &Q,
        value: &W,
    ) -> Result<Seq> {
        self.write(OpKind::Insert, key, Some(value))
    }

    /// Folds `operand` onto the value of `key`, or makes it the value of an absent key. Reads nothing.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn fold<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(&self, key: &Q, operand: &W) -> Result<Seq> {
        self.write(OpKind::Fold, key, Some(operand))
    }

    /// Makes `key` absent.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn delete<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Seq> {
        self.write(OpKind::Delete, key, None::<&V>)
    }

    fn write<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &self,
        kind: OpKind,
        key: &Q,
        value: Option<&W>,
    ) -> Result<Seq> {
        with_buffers(|(encoded, key_bytes, value_bytes)| {
            key_bytes.clear();
            value_bytes.clear();
            key.encode_key(key_bytes);
            if let Some(value) = value {
                value.encode(value_bytes);
            }
            let checked = self.check_written(kind, value_bytes);
            let written =
                checked.and_then(|()| self.bytes.write_encoded(encoded, kind, key_bytes, value_bytes));
            value_bytes.clear();
            value_bytes.shrink_to(RECYCLED_BYTES_MAX);
            written
        })
    }

    /// Makes all keys from `from` on and below `to`, in the order of the table, absent; as dear as one write.
    ///
    /// # Errors
    /// When `from` is not before `to`; otherwise as [`Table::put`].
    pub fn delete_range<Q: AsKey<K> + ?Sized>(&self, from: &Q, to: &Q) -> Result<Seq> {
        self.bytes.delete_range(&encoded_key(from), &encoded_key(to))
    }

    /// The value of `key`: the fold of everything written to it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::FoldFailed`] when the table's fold fails on this key; damage; a failed read.
    pub fn get<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        self.get_seen(key, None)
    }

    /// The value that `key` had at a moment that is over, as far as the table keeps that.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] where the table does not keep it, saying since when it does; otherwise as [`Table::get`].
    pub fn get_at<Q: AsKey<K> + ?Sized>(&self, key: &Q, as_of: AsOf) -> Result<Option<V>> {
        let key = encoded_key(key);
        let value = self.bytes.get_at(&key, as_of)?;
        value.map(|value| V::decode(&value).map_err(|cause| self.bytes.undecodable(&key, &cause))).transpose()
    }

    /// What `key` has been, newest first, as far as the table keeps that, at most `limit` states of it.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn history<Q: AsKey<K> + ?Sized>(
        &self,
        key: &Q,
        limit: usize,
    ) -> Result<Vec<HistoryEntry<Option<V>>>> {
        let key = encoded_key(key);
        let decode = |value: Vec<u8>| V::decode(&value).map_err(|cause| self.bytes.undecodable(&key, &cause));
        let typed =
            |version: HistoryEntry<Option<Vec<u8>>>| version.try_map(|value| value.map(decode).transpose());
        self.bytes.history(&key, limit)?.into_iter().map(typed).collect()
    }

    /// Makes the value of `key` this one, for so long.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] in a table whose values last for ever; otherwise as [`Table::put`].
    pub fn put_expiring<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<Seq> {
        self.write_lasting(OpKind::Set, key, value, lifetime)
    }

    /// Gives `key` this value unless it has one, for so long. A value that is there stays, and lasts as long as it did.
    ///
    /// # Errors
    /// As [`Table::put_expiring`].
    pub fn put_if_absent_expiring<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<Seq> {
        self.write_lasting(OpKind::Insert, key, value, lifetime)
    }

    /// Folds `operand` onto the value of `key`, which from now on lasts so long. [`Table::fold`] is as [`Lifetime::Default`]:
    /// in a table of [`crate::Expire::ByWrite`] the value lasts for ever then, also one that had a deadline.
    ///
    /// # Errors
    /// As [`Table::put_expiring`].
    pub fn fold_expiring<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &self,
        key: &Q,
        operand: &W,
        lifetime: Lifetime,
    ) -> Result<Seq> {
        self.write_lasting(OpKind::Fold, key, operand, lifetime)
    }

    fn write_lasting<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &self,
        kind: OpKind,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<Seq> {
        let (key, mut bytes) = (encoded_key(key), Vec::new());
        value.encode(&mut bytes);
        self.check_written(kind, &bytes)?;
        self.bytes.push_expiring(kind, &key, &bytes, lifetime)
    }

    pub(crate) fn get_seen<Q: AsKey<K> + ?Sized>(&self, key: &Q, at: Option<At>) -> Result<Option<V>> {
        let key = encoded_key(key);
        get::get(&self.bytes.engine, &self.bytes.core, &key, at, |value| {
            value
                .map(|value| V::decode(value).map_err(|cause| self.bytes.undecodable(&key, &cause)))
                .transpose()
        })
    }

    /// True when `key` has a value.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn contains<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
        self.bytes.contains(&encoded_key(key))
    }

    /// The head of the value of `key`: its size, its hash, and what the table's rules take out of it. A separated value is
    /// not read, unless an operand waits to be folded onto it.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn head<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<Head>> {
        self.bytes.head(&encoded_key(key))
    }

    /// Where the value of `key` lies, to be handed to the system (`sendfile`) or read piece by piece: see [`Located`].
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn locate<Q: AsKey<K> + ?Sized>(&self, key: &Q, how: Locate) -> Result<Option<Located>> {
        self.bytes.locate(&encoded_key(key), how)
    }

    /// A scan of the table as it is when the scan starts. Narrow it, then iterate.
    pub fn scan(&self) -> Scan<K, V> {
        Scan::new(self.bytes.scan())
    }

    /// Goes on with a scan where its cursor stood.
    ///
    /// # Errors
    /// As [`BytesTable::resume`].
    pub fn resume(&self, cursor: &Cursor, how: Resume) -> Result<Scan<K, V>> {
        Ok(Scan::new(self.bytes.resume(cursor, how)?))
    }
}

fn encoded_key<K: Key, Q: AsKey<K> + ?Sized>(key: &Q) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode_key(&mut bytes);
    bytes
}

/// A table as bytes: keys and values stand as they are stored. What tools and other languages use.
#[derive(Clone)]
pub struct BytesTable {
    pub(crate) engine: Arc<Engine>,
    pub(crate) core: Arc<TableCore>,
    pub(crate) durability: Durability,
}

impl BytesTable {
    pub(crate) fn core(&self) -> &Arc<TableCore> {
        &self.core
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// The rules of the table, with its codecs and fold: they parse and show keys and values.
    pub fn rules(&self) -> &BoundRules {
        &self.core.rules
    }

    /// The same table, whose single writes are as durable as this says.
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Writes one op. The value of a `Delete` is ignored.
    ///
    /// # Errors
    /// As [`Table::put`]; and [`crate::ErrorKind::InvalidInput`] when key or value are not of the table's types.
    pub fn write(&self, op: WriteOp, key: &[u8], value: &[u8]) -> Result<Seq> {
        let value = if op == WriteOp::Delete { &[][..] } else { value };
        self.check(op, key, value)?;
        with_buffers(|buffers| self.write_encoded(&mut buffers.0, op.kind(), key, value))
    }

    /// Writes one op whose value lasts so long. The value and the lifetime of a `Delete` are ignored.
    ///
    /// # Errors
    /// As [`Table::put_expiring`] and [`BytesTable::write`].
    pub fn write_expiring(&self, op: WriteOp, key: &[u8], value: &[u8], lifetime: Lifetime) -> Result<Seq> {
        self.check(op, key, value)?;
        self.push_expiring(op.kind(), key, value, lifetime)
    }

    fn push_expiring(&self, kind: OpKind, key: &[u8], value: &[u8], lifetime: Lifetime) -> Result<Seq> {
        with_buffers(|(encoded, ..)| {
            encoded.clear();
            encoded.push_lasting(&self.core, kind, key, value, lifetime)?;
            let committed = commit::commit(&self.engine, encoded, self.durability);
            encoded.recycle();
            committed
        })
    }

    /// The time of its store: see [`crate::Store::unix_millis`].
    pub fn unix_millis(&self) -> u64 {
        clock::now_ms(&self.engine)
    }

    /// The value that `key` had at a moment that is over, copied.
    ///
    /// # Errors
    /// As [`Table::get_at`].
    pub fn get_at(&self, key: &[u8], as_of: AsOf) -> Result<Option<Vec<u8>>> {
        history::get_at(&self.engine, &self.core, key, as_of)
    }

    /// A scan of the table as it was at a moment that is over; an error when it is iterated where the table does not keep that.
    pub fn scan_at(&self, as_of: AsOf) -> BytesScan {
        let (held, asked) = clock::hold_at(&self.engine, as_of);
        let scan = BytesScan::new(&self.engine, &self.core, ScanPlan::everything(Some(held.at)));
        let kept = clock::check_written(&self.engine, as_of);
        match kept.and_then(|()| clock::check_kept(&self.engine, &self.core, held.at, asked)) {
            Ok(()) => scan.holding(Arc::new(held)),
            Err(mistake) => scan.failing(mistake),
        }
    }

    /// What `key` has been, newest first, as far as the table keeps that, at most `limit` states of it.
    ///
    /// # Errors
    /// As [`Table::history`].
    pub fn history(&self, key: &[u8], limit: usize) -> Result<Vec<HistoryEntry<Option<Vec<u8>>>>> {
        history::history(&self.engine, &self.core, key, limit)
    }

    /// Checks that key and value are of the table's types, as [`BytesTable::write`] does.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`], naming the table and what is wrong.
    pub fn check(&self, op: WriteOp, key: &[u8], value: &[u8]) -> Result<()> {
        BytesTable::check_row(&self.core, op, key, value)
    }

    pub(crate) fn check_row(table: &TableCore, op: WriteOp, key: &[u8], value: &[u8]) -> Result<()> {
        table.rules.rules.key_codec().check(key).map_err(|cause| wrong(table, "key", &cause))?;
        if op == WriteOp::Delete {
            return Ok(());
        }
        check_value(table, value)
    }

    #[inline]
    fn write_encoded(&self, encoded: &mut Encoded, kind: OpKind, key: &[u8], value: &[u8]) -> Result<Seq> {
        encoded.clear();
        encoded.push(&self.core, kind, key, value)?;
        let committed = commit::commit(&self.engine, encoded, self.durability);
        encoded.recycle(); // holds no table back
        committed
    }

    /// Makes all keys from `from` on and below `to`, in the order of the table, absent.
    ///
    /// # Errors
    /// As [`Table::delete_range`].
    pub fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<Seq> {
        let mut encoded = Encoded::default();
        encoded.clear();
        encoded.push_range_delete(&self.core, from, to)?;
        commit::commit(&self.engine, &mut encoded, self.durability)
    }

    /// The value of `key`, copied.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, |value| value.map(<[u8]>::to_vec))
    }

    /// Hands the value of `key` to `take` without copying it.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_with<R>(&self, key: &[u8], take: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        get::get(&self.engine, &self.core, key, None, |value| Ok(take(value)))
    }

    /// True when `key` has a value.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        get::contains(&self.engine, &self.core, key, None)
    }

    /// The head of the value of `key`.
    ///
    /// # Errors
    /// As [`Table::head`].
    pub fn head(&self, key: &[u8]) -> Result<Option<Head>> {
        head::head(&self.engine, &self.core, key, None)
    }

    /// A writer of a value that lasts so long. See [`Table::writer_expiring`].
    ///
    /// # Errors
    /// As [`Table::writer_expiring`]; a key that is not of the table's type.
    pub fn writer_expiring(&self, op: WriteOp, key: &[u8], lifetime: Lifetime) -> Result<ValueWriter> {
        self.writer(op, key)?.lasting(lifetime)
    }

    /// A writer of a value of any length, or of an operand where folding joins them. See [`Table::writer`].
    ///
    /// # Errors
    /// As [`Table::writer`]; a key that is not of the table's type.
    pub fn writer(&self, op: WriteOp, key: &[u8]) -> Result<ValueWriter> {
        self.check(WriteOp::Delete, key, &[])?;
        ValueWriter::new(&self.engine, &self.core, op.kind(), key, self.durability)
    }

    /// A reader of the value of `key`. See [`Table::read`].
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn read(&self, key: &[u8]) -> Result<Option<ValueReader>> {
        stream::read_value(&self.engine, &self.core, key, None)
    }

    /// Whether the table takes values piece by piece, and so of any length: see [`Table::writer`].
    pub fn takes_streams(&self) -> bool {
        whole_because(&self.core).is_none()
    }

    /// Where the value of `key` lies.
    ///
    /// # Errors
    /// As [`Table::locate`].
    pub fn locate(&self, key: &[u8], how: Locate) -> Result<Option<Located>> {
        locate::locate(&self.engine, &self.core, key, None, how)
    }

    /// What is written to `key` as far as it folds, newest first: of use where the table's fold is not at hand.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub fn operands(&self, key: &[u8]) -> Result<Vec<(OpKind, Vec<u8>)>> {
        get::operands(&self.engine, &self.core, key, None)
    }

    /// A scan of the table as it is when the scan starts.
    pub fn scan(&self) -> BytesScan {
        BytesScan::new(&self.engine, &self.core, ScanPlan::everything(None))
    }

    /// Goes on with a scan where its cursor stood, in its range and direction, with values; narrow it to keys, or to so many rows, as
    /// any scan.
    ///
    /// # Errors
    /// [`crate::ErrorKind::SnapshotTooOld`] when that must see what it saw, and cannot; [`crate::ErrorKind::InvalidInput`] for the cursor of
    /// another table or another store.
    pub fn resume(&self, cursor: &Cursor, how: Resume) -> Result<BytesScan> {
        BytesScan::resume(&self.engine, &self.core, cursor, how)
    }

    pub(crate) fn undecodable(&self, key: &[u8], cause: &dyn std::fmt::Display) -> folddb_base::Error {
        let key = self.core.rules.rules.key_codec().show_line(key);
        let message =
            format!("the value of key {key} in table `{}` is not of its type: {cause}", self.core.name);
        Error::new(folddb_base::ErrorKind::RulesMismatch, message)
    }
}

impl std::fmt::Debug for BytesTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table `{}`", self.core.name)
    }
}

impl<K, V> std::fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes.fmt(f)
    }
}
