//! The write verbs of a batch and of a transaction (`put`, `fold`, `delete` and so on), on tables
//! with and without types.
//!
//! Ops are encoded and checked here. What implements the trait decides where they go.

use folddb_base::{OpKind, Result};
use folddb_rules::codec::{AsKey, AsValue, KeyPrefix};

use crate::reader::AnyTable;
use crate::table::bytes::BytesTable;
use crate::table::typed::encoded_key;

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

    /// Takes an op on a table, or notes why it does not fit that table.
    fn take(&mut self, table: &BytesTable, op: Written<'_>, checked: Result<()>);

    /// Takes a range delete.
    fn take_range(&mut self, table: &BytesTable, from: &[u8], to: &[u8]);
}

/// Gathers an op.
#[inline]
pub(crate) fn gather<T: AnyTable, Q: AsKey<T::Key> + ?Sized, W: AsValue<T::Value> + ?Sized>(
    to: &mut impl Gather,
    table: &T,
    kind: OpKind,
    (key, value): (&Q, Option<&W>),
) {
    // Taken out of its place: encoding a key or value may itself write, and then gets its own
    // buffers.
    let (mut key_bytes, mut value_bytes) = std::mem::take(to.buffers());
    key_bytes.clear();
    value_bytes.clear();
    key.encode_key(&mut key_bytes);
    if let Some(value) = value {
        value.encode(&mut value_bytes);
    }
    let checked = table.check_op(kind, &key_bytes, &value_bytes);
    to.take(table.of_bytes(), Written { kind, key: &key_bytes, value: &value_bytes }, checked);
    *to.buffers() = (key_bytes, value_bytes);
}

/// Gathers the ops that delete all keys of a prefix.
pub(crate) fn gather_prefix<T: AnyTable, P: KeyPrefix<T::Key> + ?Sized>(
    to: &mut impl Gather,
    table: &T,
    prefix: &P,
) {
    let bytes = table.of_bytes();
    match bytes.prefix_delete(prefix.key_range()) {
        Err(mistake) => to.take(bytes, Written { kind: OpKind::Delete, key: &[], value: &[] }, Err(mistake)),
        Ok(deletes) => {
            if let Some((from, until)) = &deletes.range {
                to.take_range(bytes, from, until);
            }
            if let Some(last) = &deletes.last {
                to.take(bytes, Written { kind: OpKind::Delete, key: last, value: &[] }, Ok(()));
            }
        }
    }
}

/// Gathers a range delete.
pub(crate) fn gather_range<T: AnyTable, Q: AsKey<T::Key> + ?Sized, R: AsKey<T::Key> + ?Sized>(
    to: &mut impl Gather,
    table: &T,
    (from, until): (&Q, &R),
) {
    to.take_range(table.of_bytes(), &encoded_key(from), &encoded_key(until));
}

/// Generates the verbs of a type that gathers ops.
macro_rules! gathering_verbs {
    ($gathers:ty) => {
        impl $gathers {
            /// Sets the value of `key`.
            pub fn put<T: AnyTable, Q: AsKey<T::Key> + ?Sized, W: AsValue<T::Value> + ?Sized>(
                &mut self,
                table: &T,
                key: &Q,
                value: &W,
            ) -> &mut Self {
                gather(self, table, OpKind::Set, (key, Some(value)));
                self
            }

            /// Gives `key` this value unless it has one. Reads nothing.
            pub fn put_if_absent<T: AnyTable, Q: AsKey<T::Key> + ?Sized, W: AsValue<T::Value> + ?Sized>(
                &mut self,
                table: &T,
                key: &Q,
                value: &W,
            ) -> &mut Self {
                gather(self, table, OpKind::Insert, (key, Some(value)));
                self
            }

            /// Folds `operand` onto the value of `key`. Reads nothing.
            pub fn fold<T: AnyTable, Q: AsKey<T::Key> + ?Sized, W: AsValue<T::Value> + ?Sized>(
                &mut self,
                table: &T,
                key: &Q,
                operand: &W,
            ) -> &mut Self {
                gather(self, table, OpKind::Fold, (key, Some(operand)));
                self
            }

            /// Deletes `key`.
            pub fn delete<T: AnyTable, Q: AsKey<T::Key> + ?Sized>(
                &mut self,
                table: &T,
                key: &Q,
            ) -> &mut Self {
                gather(self, table, OpKind::Delete, (key, None::<&T::Value>));
                self
            }

            /// Deletes all keys from `from` up to, but not including, `to`, in the order of the
            /// table. Costs as much as one write.
            pub fn delete_range<T: AnyTable, Q: AsKey<T::Key> + ?Sized, R: AsKey<T::Key> + ?Sized>(
                &mut self,
                table: &T,
                from: &Q,
                to: &R,
            ) -> &mut Self {
                gather_range(self, table, (from, to));
                self
            }

            /// Deletes all keys with this prefix: see
            /// [`Table::delete_prefix`](crate::Table::delete_prefix).
            pub fn delete_prefix<T: AnyTable, P: KeyPrefix<T::Key> + ?Sized>(
                &mut self,
                table: &T,
                prefix: &P,
            ) -> &mut Self {
                gather_prefix(self, table, prefix);
                self
            }

            /// Any op, known only at run time. A delete ignores `value`. A key or value that is not
            /// of the table's types is a mistake, as in [`BytesTable::write`], which the commit
            /// returns.
            pub fn write<T: AnyTable, Q: AsKey<T::Key> + ?Sized, W: AsValue<T::Value> + ?Sized>(
                &mut self,
                table: &T,
                op: WriteOp,
                key: &Q,
                value: &W,
            ) -> &mut Self {
                let kind = folddb_engine::write::encoded_batch::kind_of(op);
                gather(self, table, kind, (key, (op != WriteOp::Delete).then_some(value)));
                self
            }
        }
    };
}

pub(crate) use gathering_verbs;
