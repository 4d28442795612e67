//! The verbs of writes that are gathered before they are committed: the same in a batch and in a transaction.
//!
//! How an op is encoded and checked is said here, once. Who gathers says what becomes of it.

use folddb_base::{OpKind, Result};
use folddb_rules::codec::{AsKey, AsValue, Key, Value};

use crate::bytes_table::BytesTable;
use crate::table::Table;
use folddb_engine::write::encoded_batch::WriteOp;

/// One op as bytes.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) kind: OpKind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Gathers ops.
pub(crate) trait Gather {
    /// Room for the bytes of a key and of a value, kept from one op to the next.
    fn buffers(&mut self) -> &mut (Vec<u8>, Vec<u8>);

    /// Takes an op on a table, or notes why it is none of that table.
    fn take(&mut self, table: &BytesTable, op: Written<'_>, checked: Result<()>);
}

/// Gathers an op on a typed table.
#[inline]
pub(crate) fn gather<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
    to: &mut impl Gather,
    table: &Table<K, V>,
    kind: OpKind,
    (key, value): (&Q, Option<&W>),
) {
    // Taken out meanwhile: a key or value that itself writes while it is encoded gets its own.
    let (mut key_bytes, mut value_bytes) = std::mem::take(to.buffers());
    key_bytes.clear();
    value_bytes.clear();
    key.encode_key(&mut key_bytes);
    if let Some(value) = value {
        value.encode(&mut value_bytes);
    }
    let checked = table.check_written(kind, &value_bytes);
    to.take(table.as_bytes(), Written { kind, key: &key_bytes, value: &value_bytes }, checked);
    *to.buffers() = (key_bytes, value_bytes);
}

/// Gathers an op on a table of bytes.
pub(crate) fn gather_bytes(
    to: &mut impl Gather,
    table: &BytesTable,
    op: WriteOp,
    (key, value): (&[u8], &[u8]),
) {
    let value = if op == WriteOp::Delete { &[][..] } else { value };
    let checked = table.check(op, key, value);
    to.take(table, Written { kind: op.kind(), key, value }, checked);
}

/// Gives a type that gathers ops its verbs.
macro_rules! gathering_verbs {
    ($gathers:ty) => {
        impl $gathers {
            /// Makes the value of `key` this one, whatever it was.
            pub fn put<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
                &mut self,
                table: &Table<K, V>,
                key: &Q,
                value: &W,
            ) -> &mut Self {
                gather(self, table, OpKind::Set, (key, Some(value)));
                self
            }

            /// Gives `key` this value unless it has one. Reads nothing.
            pub fn put_if_absent<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
                &mut self,
                table: &Table<K, V>,
                key: &Q,
                value: &W,
            ) -> &mut Self {
                gather(self, table, OpKind::Insert, (key, Some(value)));
                self
            }

            /// Folds `operand` onto the value of `key`. Reads nothing.
            pub fn fold<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
                &mut self,
                table: &Table<K, V>,
                key: &Q,
                operand: &W,
            ) -> &mut Self {
                gather(self, table, OpKind::Fold, (key, Some(operand)));
                self
            }

            /// Makes `key` absent.
            pub fn delete<K: Key, V: Value, Q: AsKey<K> + ?Sized>(
                &mut self,
                table: &Table<K, V>,
                key: &Q,
            ) -> &mut Self {
                gather(self, table, OpKind::Delete, (key, None::<&V>));
                self
            }

            /// Any op on a table of bytes. `value` is ignored by a delete. A key or value that is not of the table's types
            /// is a mistake, as in [`BytesTable::write`], which the commit returns.
            pub fn write(&mut self, table: &BytesTable, op: WriteOp, key: &[u8], value: &[u8]) -> &mut Self {
                gather_bytes(self, table, op, (key, value));
                self
            }
        }
    };
}

pub(crate) use gathering_verbs;
