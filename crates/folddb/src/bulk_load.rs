//! Bulk load: rows in the order of their keys become the bottom run of a new table, bypassing the
//! log and the memtables.
//!
//! Each row is written once. One edit of the manifest creates the table with all of its rows, while
//! the store serves everything else; until then nobody sees it, and written files are removed if
//! the load is given up or the process dies. Rows of one key are folded at once, so the table has
//! the complete state of the key: a `Set`, or nothing. All of them have the seq that was published
//! when the load began, which belongs to some other table: seqs are not compared across tables.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use folddb_base::limits::FOLDED_BYTES_MAX;
use folddb_base::{Error, ErrorKind, Op, OpBuf, OpKind, Record, RecordSink, Result, Seq, TableId};
use folddb_merge::Times;
use folddb_rules::algebra::Decline;
use folddb_rules::codec::{AsKey, AsValue, Key, Value};
use folddb_rules::table_rules::{BoundRules, TableKind, TableRules};
use folddb_rules::{Composed, Fit, State};
use folddb_run::PartFacts;

use crate::rules::Rules;
use crate::rules::dynamic::DynamicRules;
use crate::store::Store;
use crate::table::bytes::BytesTable;
use crate::table::edits::Content;
use crate::table::typed::{Table, check_value, fit};
use folddb_engine::background::output::Output;
use folddb_engine::edit::feeds;
use folddb_engine::read::get;
use folddb_engine::read::get::damaged_record;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::clock;
use folddb_engine::state::disk_quota::SpaceUser;
use folddb_engine::state::view::{PartFile, TableView};
use folddb_engine::write::encoded_batch::{WriteOp, check_lengths, kind_of};

/// A running load, of keys and values as bytes. If it is dropped without [`BytesBulkLoad::finish`],
/// it leaves nothing.
#[must_use = "nothing is loaded before it is finished"]
pub struct BytesBulkLoad {
    store: Store,
    /// The table for writing its parts; it gets its number when it is created.
    table: Arc<TableCore>,
    seq: Seq,
    output: Output,
    parts: Vec<(Arc<PartFile>, PartFacts)>,
    /// The last key, and its folded rows: a `Set`, or a `Delete`.
    pending: Option<(Vec<u8>, OpBuf)>,
    scratch: OpBuf,
    rows: u64,
    /// A write failed, and rows were lost with it.
    is_broken: bool,
}

/// A running load of a table with keys `K` and values `V`.
#[must_use = "nothing is loaded before it is finished"]
pub struct BulkLoad<K, V> {
    bytes: BytesBulkLoad,
    /// Whether each value is checked, as in a [`Table`].
    checks: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    types: PhantomData<fn(K, V)>,
}

impl std::fmt::Debug for BytesBulkLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a load of table `{}`, {} rows so far", self.table.name, self.rows)
    }
}

impl<K, V> std::fmt::Debug for BulkLoad<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes.fmt(f)
    }
}

impl Store {
    /// Begins to load a new table with these rules from rows in the order of their keys. It exists
    /// once [`BulkLoad::finish`] returns, with all rows or not at all. To a snapshot, its rows are
    /// as old as the last write before this call, no matter whether the snapshot was taken before
    /// or after the load. Reads as of a time see them from this call on.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if there is such a table; [`ErrorKind::InvalidInput`] for rules
    /// that a load does not support: hashed tables, separated values or expiry; or if a feed covers
    /// the table.
    pub fn bulk_load<K: Key, V: Value>(&self, name: &str, rules: Rules<K, V>) -> Result<BulkLoad<K, V>> {
        let bytes = self.bulk_load_bytes(name, rules.checked(name)?.clone())?;
        let checks = fit::<V>(name, &bytes.table.rules)? == Fit::Sometimes;
        Ok(BulkLoad { bytes, checks, key: Vec::new(), value: Vec::new(), types: PhantomData })
    }

    /// As [`Store::bulk_load`], for a table whose rules are known only at run time.
    ///
    /// # Errors
    /// As [`Store::bulk_load`].
    pub fn bulk_load_bytes(&self, name: &str, rules: TableRules) -> Result<BytesBulkLoad> {
        let engine = self.engine();
        let bound = self.check_new_table(name, &rules)?;
        check_rules(name, &bound)?;
        if engine.catalog().by_name(name).is_some() {
            return Err(exists(name));
        }
        feeds::check_no_feed_of(engine.manifest.lock().state(), name)?;
        let table = Arc::new(TableCore::new(TableId(0), name, bound, None, TableView::of));
        // It has no past to fold.
        let shape = (table.keeps_past, true, Times { since: 0, ..Times::default() });
        Ok(BytesBulkLoad {
            store: self.clone(),
            seq: clock::seq_of_load(engine, &table),
            output: Output::new(engine, &table, shape, SpaceUser::Values),
            table,
            parts: Vec::new(),
            pending: None,
            scratch: OpBuf::default(),
            rows: 0,
            is_broken: false,
        })
    }
}

fn exists(name: &str) -> Error {
    let message = format!("the store has a table `{name}` already, and a bulk load creates a new one");
    Error::new(ErrorKind::AlreadyExists, message)
}

/// Checks for rules that a directly written run cannot support: pointers into the value log, and
/// times of writes.
fn check_rules(name: &str, bound: &BoundRules) -> Result<()> {
    let why = match &bound.rules {
        rules if rules.kind == TableKind::Hashed => "it is hashed, and has no runs",
        rules if rules.separate.is_some() => "its values are separated",
        rules if rules.archives_log => "it archives its log, and a bulk load does not write to the log",
        rules if rules.expire.has_stamps() => "its values expire",
        rules if !rules.indexes.is_empty() => "it has indexes, which may be added to it afterwards",
        _ => return bound.check_writable(),
    };
    Err(Error::invalid(format!("table `{name}` cannot be bulk loaded, since {why}; write it in batches")))
}

impl BytesBulkLoad {
    /// Takes the next row. Its key equals the last one, or comes after it in the order of the
    /// table.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a key before the last one, or bytes that are not a key or
    /// value of the table; [`ErrorKind::FoldFailed`]. Such a row is not taken, and the load may
    /// continue without it. After a failed write the load can only be given up.
    pub fn push(&mut self, op: WriteOp, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.engine().check_here()?;
        self.check_whole()?;
        let value = if op == WriteOp::Delete { &[][..] } else { value };
        BytesTable::check_row(&self.table, kind_of(op), key, value)?;
        check_lengths(&self.table, key, &[])?;
        if value.len() > FOLDED_BYTES_MAX {
            return Err(self.too_long(key, value.len()));
        }
        let kind = self.table.rules.fold.normalize(key, kind_of(op), value);
        let row = row_of(&self.table, kind, value)?;
        match &self.pending {
            None => self.begin_key(key, row),
            Some((last, _)) => match self.table.rules.order.compare(last, key) {
                Ordering::Less => {
                    self.end_key().inspect_err(|_| self.is_broken = true)?;
                    self.begin_key(key, row);
                }
                Ordering::Equal => self.fold_in(row)?,
                Ordering::Greater => return Err(self.disorder(key)),
            },
        }
        self.rows += 1;
        Ok(())
    }

    /// How many rows it has taken.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The rules of the table.
    pub fn rules(&self) -> DynamicRules {
        DynamicRules::of(Arc::clone(&self.table.rules))
    }

    /// Creates the table, with all rows. They are on the disk when this returns.
    ///
    /// # Errors
    /// A failed write; [`ErrorKind::AlreadyExists`] if a table of this name was created in the
    /// meantime. Then nothing is loaded.
    pub fn finish(mut self) -> Result<BytesTable> {
        self.store.engine().check_here()?;
        self.check_whole()?;
        self.end_key()?;
        let engine = Arc::clone(self.store.engine());
        self.parts.extend(self.output.close_part(&engine, &self.table)?);
        // The log up to the seq of the rows must be at least as durable as they are.
        self.store.sync()?;
        let content = Content { parts: mem::take(&mut self.parts), seq: self.seq };
        self.store.make_table(&self.table.name, self.table.rules.rules.clone(), content)
    }

    /// Fails after a failed write, which has lost rows.
    fn check_whole(&self) -> Result<()> {
        match self.is_broken {
            false => Ok(()),
            true => Err(Error::invalid(format!(
                "a write of the bulk load of table `{}` failed, and rows are lost: drop this load and start again",
                self.table.name
            ))),
        }
    }

    fn begin_key(&mut self, key: &[u8], row: Op<'_>) {
        let (last, state) = self.pending.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        match self.table.rules.fold.at_bottom(key, row) {
            Some(State::Value(value)) => state.assign(Op::Set(value)),
            _ => state.assign(Op::Delete),
        }
    }

    /// Another row of the last key. The earlier ones are a state, onto which every row folds.
    fn fold_in(&mut self, row: Op<'_>) -> Result<()> {
        let (Some((key, state)), fold) = (&mut self.pending, &self.table.rules.fold) else { return Ok(()) };
        let older = state.op().map_err(|cause| damaged_record(&self.table, cause))?;
        match fold.compose(key, older, row, &mut self.scratch) {
            Composed::Older => {}
            Composed::Newer(OpKind::Delete) => state.assign(Op::Delete),
            Composed::Newer(kind) => {
                state.assign(row);
                state.kind = kind;
            }
            Composed::Out => mem::swap(state, &mut self.scratch),
            Composed::Both(Decline::TooLong) => {
                let (key, bytes) = (key.clone(), state.payload.len() + row.payload_len());
                return Err(self.too_long(&key, bytes));
            }
            Composed::Both(cause) => {
                return Err(get::fold_failed(self.store.engine(), &self.table, key, &cause));
            }
        }
        Ok(())
    }

    /// Writes the state of the last key.
    fn end_key(&mut self) -> Result<()> {
        let Some((key, state)) = &self.pending else { return Ok(()) };
        if state.kind == OpKind::Delete {
            return Ok(());
        }
        let engine = self.store.engine();
        let record = Record { key, seq: self.seq, kind: OpKind::Set, payload: &state.payload };
        self.output.writer(engine)?.push(record)?;
        if self.output.bytes_written() >= engine.options.part_bytes {
            engine.check_open()?;
            engine.health.check_writable(false)?;
            self.parts.extend(self.output.close_part(engine, &self.table)?);
        }
        Ok(())
    }

    fn too_long(&self, key: &[u8], bytes: usize) -> Error {
        let key = self.table.rules.rules.key_codec().show_line(key);
        Error::invalid(format!(
            "row {}: the value of key {key} is {bytes} bytes long, and a bulk load of table `{}` takes values of at most \
             {FOLDED_BYTES_MAX}; write that key in batches, once the table exists",
            self.rows + 1,
            self.table.name
        ))
    }

    fn disorder(&self, key: &[u8]) -> Error {
        let codec = self.table.rules.rules.key_codec();
        let last = self.pending.as_ref().map_or(&[][..], |(last, _)| last);
        Error::invalid(format!(
            "row {}: key {} is before key {} of the previous row, and a bulk load of table `{}` takes rows in the order of their keys",
            self.rows + 1,
            codec.show_line(key),
            codec.show_line(last),
            self.table.name
        ))
    }
}

/// A row as an op of its key.
fn row_of<'v>(table: &TableCore, kind: OpKind, value: &'v [u8]) -> Result<Op<'v>> {
    let payload = if kind == OpKind::Delete { &[][..] } else { value };
    Op::from_parts(kind, payload).map_err(|cause| damaged_record(table, cause))
}

impl Drop for BytesBulkLoad {
    fn drop(&mut self) {
        self.output.discard(self.store.engine());
        self.parts.iter().for_each(|(part, _)| part.retire());
    }
}

impl<K: Key, V: Value> BulkLoad<K, V> {
    /// Takes the next row: `value` is the value of `key`.
    ///
    /// # Errors
    /// As [`BytesBulkLoad::push`].
    pub fn put<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(&mut self, key: &Q, value: &W) -> Result<()> {
        self.push(WriteOp::Put, key, value)
    }

    /// Takes the next row: `operand` is folded onto the value of `key`, or becomes it.
    ///
    /// # Errors
    /// As [`BytesBulkLoad::push`].
    pub fn fold<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(&mut self, key: &Q, operand: &W) -> Result<()> {
        self.push(WriteOp::Fold, key, operand)
    }

    /// How many rows it has taken.
    pub fn rows(&self) -> u64 {
        self.bytes.rows()
    }

    /// Creates the table, with all rows. They are on the disk when this returns.
    ///
    /// # Errors
    /// As [`BytesBulkLoad::finish`].
    pub fn finish(self) -> Result<Table<K, V>> {
        self.bytes.finish().and_then(Table::new)
    }

    fn push<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        op: WriteOp,
        key: &Q,
        value: &W,
    ) -> Result<()> {
        self.key.clear();
        key.encode_key(&mut self.key);
        self.value.clear();
        value.encode(&mut self.value);
        if self.checks {
            check_value::<V>(&self.bytes.table, &self.value)?;
        }
        self.bytes.push(op, &self.key, &self.value)
    }
}
