//! Typed records: tuples of values that each fold by themselves, and structs that derive `Record`.
//!
//! ```text
//!   (Sum<u64>, Stats, Hll<12>)     {0: sum:u64, 1: stats:f64, 2: hll:12}
//! ```
//!
//! Their bytes are those of the records of `folds/record.rs`. A field of `Option` may be absent.
//! Any other field that was left out (by a program without types) reads as the identity of its
//! fold, 0 for a sum; it is an error if the fold has none. In a record of fields of fixed length
//! nothing is absent: there an identity reads as `None`.

use folddb_base::bytes::{Reader, put_varint, varint_len};

use super::CodecError;
use super::operands::FieldOf;
use super::value::{AsValue, Fit, Value};
use crate::fold::Fold;
use crate::folds::{self, FoldSpec, record_of};

/// The length of every value of a field, if that is fixed.
pub type FieldLen = Option<usize>;

/// The length of a record of such fields, if it is fixed.
pub const fn len_of(fields: &[FieldLen]) -> FieldLen {
    let (mut total, mut index) = (0, 0);
    while index < fields.len() {
        match fields[index] {
            Some(len) => total += len,
            None => return None,
        }
        index += 1;
    }
    Some(total)
}

/// The fold of a record of these fields: `replace` if none of them has another one.
pub fn fold_of(fields: &[(&str, FoldSpec)]) -> FoldSpec {
    let is_plain = |spec: &FoldSpec| spec.to_string() == "replace";
    match fields.iter().all(|(_, fold)| is_plain(fold)) {
        true => folds::replace::<()>().into(),
        false => record_of(fields),
    }
}

/// How a record of these fields fits a fold: its own, or one with other names.
pub fn fit_of(fold: &dyn Fold, fields: &[(&str, FoldSpec)], encodes_surely: bool) -> Fit {
    let Ok(record) = fold.spec().parse::<folds::Record>() else { return Fit::Never };
    let own = fields.iter().map(|(_, fold)| fold.to_string());
    let others = (0..record.names().count()).filter_map(|index| record.field_fold(index).map(Fold::spec));
    match (own.eq(others), encodes_surely) {
        (false, _) => Fit::Never,
        (true, true) => Fit::Always,
        (true, false) => Fit::Sometimes,
    }
}

/// Appends the fields of a record, one after the other.
#[derive(Debug)]
pub struct RecordWriter<'o> {
    out: &'o mut Vec<u8>,
    presence_at: usize,
    is_fixed: bool,
    index: usize,
}

impl<'o> RecordWriter<'o> {
    /// Begins a record of these fields.
    pub fn new(fields: &[FieldLen], out: &'o mut Vec<u8>) -> RecordWriter<'o> {
        let (presence_at, is_fixed) = (out.len(), len_of(fields).is_some());
        if !is_fixed {
            out.resize(presence_at + fields.len().div_ceil(8), 0);
        }
        RecordWriter { out, presence_at, is_fixed, index: 0 }
    }

    /// The next field.
    pub fn put<V: Value>(&mut self, value: &V) {
        self.put_with::<V>(|out| value.put_field(out));
    }

    /// The next field, which folds as a `W` does.
    pub fn put_as<W: FieldOf<T>, T>(&mut self, value: &T) {
        self.put_with::<W>(|out| W::put_field_of(value, out));
    }

    fn put_with<V: Value>(&mut self, put: impl FnOnce(&mut Vec<u8>) -> bool) {
        let (index, start) = (self.index, self.out.len());
        self.index += 1;
        if !put(self.out) {
            self.out.truncate(start);
            if self.is_fixed {
                V::put_nothing(self.out);
            }
            return;
        }
        if !self.is_fixed {
            self.out[self.presence_at + index / 8] |= 1 << (index % 8);
        }
        if V::FIELD_LEN.is_none() {
            let len_bytes = (self.out.len() - start) as u64;
            put_varint(self.out, len_bytes);
            self.out[start..].rotate_right(varint_len(len_bytes));
        }
    }
}

/// Takes the fields of a record, one after the other.
#[derive(Debug)]
pub struct RecordReader<'a> {
    reader: Reader<'a>,
    presence: &'a [u8],
    is_fixed: bool,
    index: usize,
}

impl<'a> RecordReader<'a> {
    /// Begins to read a record of these fields.
    ///
    /// # Errors
    /// The bytes are too short, or too long, for one.
    pub fn new(fields: &[FieldLen], bytes: &'a [u8]) -> Result<RecordReader<'a>, CodecError> {
        let mut reader = Reader::new(bytes);
        let (mut presence, len) = (&[][..], len_of(fields));
        match len {
            Some(len) if len != bytes.len() => {
                let found = bytes.len();
                return Err(CodecError(format!("expected a record of {len} bytes, found {found}")));
            }
            Some(_) => {}
            None => presence = reader.take(fields.len().div_ceil(8)).map_err(in_record)?,
        }
        Ok(RecordReader { reader, presence, is_fixed: len.is_some(), index: 0 })
    }

    /// The next field, which has this name.
    ///
    /// # Errors
    /// It is not of its type, or is absent and may not be.
    pub fn take<V: Value>(&mut self, name: &str) -> Result<V, CodecError> {
        let index = self.index;
        self.index += 1;
        let in_field = |cause: CodecError| CodecError(format!("field `{name}`: {cause}"));
        let is_present = self.is_fixed || self.presence[index / 8] >> (index % 8) & 1 == 1;
        if !is_present {
            return V::take_field(None).map_err(in_field);
        }
        let bytes = match V::FIELD_LEN {
            Some(len) => self.reader.take(len),
            None => self.reader.slice(),
        };
        V::take_field(Some((bytes.map_err(in_record)?, self.is_fixed))).map_err(in_field)
    }

    /// The next field, which folds as a `W` does.
    ///
    /// # Errors
    /// As [`RecordReader::take`].
    pub fn take_as<W: FieldOf<T>, T>(&mut self, name: &str) -> Result<T, CodecError> {
        self.take::<W>(name).map(W::into_field)
    }

    /// The end of the record.
    ///
    /// # Errors
    /// More bytes than the fields have.
    pub fn finish(self) -> Result<(), CodecError> {
        let used_bits = self.index % 8;
        if self.presence.last().is_some_and(|last| used_bits > 0 && last >> used_bits != 0) {
            return Err(CodecError::new("expected a record, which has more fields"));
        }
        self.reader.finish().map_err(in_record)
    }
}

fn in_record(cause: folddb_base::bytes::Malformed) -> CodecError {
    CodecError(format!("expected a record: {cause}"))
}

macro_rules! tuple_value {
    ($($field:ident $index:tt),+) => {
        impl<$($field: Value),+> AsValue<($($field,)+)> for ($($field,)+) {
            fn encode(&self, out: &mut Vec<u8>) {
                let mut record = RecordWriter::new(&[$($field::FIELD_LEN),+], out);
                $(record.put(&self.$index);)+
            }
        }

        impl<$($field: Value),+> Value for ($($field,)+) {
            const ENCODES_SURELY: bool = $($field::ENCODES_SURELY)&&+;
            const FIELD_LEN: FieldLen = len_of(&[$($field::FIELD_LEN),+]);

            fn default_fold() -> FoldSpec {
                fold_of(&[$((stringify!($index), $field::field_fold())),+])
            }

            fn fit(fold: &dyn Fold) -> Fit {
                fit_of(fold, &[$((stringify!($index), $field::field_fold())),+], Self::ENCODES_SURELY)
            }

            fn put_nothing(out: &mut Vec<u8>) {
                $($field::put_nothing(out);)+
            }

            fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
                let mut record = RecordReader::new(&[$($field::FIELD_LEN),+], bytes)?;
                let fields = ($(record.take::<$field>(stringify!($index))?,)+);
                record.finish()?;
                Ok(fields)
            }
        }
    };
}

tuple_value!(A 0);
tuple_value!(A 0, B 1);
tuple_value!(A 0, B 1, C 2);
tuple_value!(A 0, B 1, C 2, D 3);
tuple_value!(A 0, B 1, C 2, D 3, E 4);
tuple_value!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple_value!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple_value!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// As a field of a record it may be absent. Alone it is a byte, 0 or 1, and after a 1 the value.
impl<V: Value> AsValue<Option<V>> for Option<V> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            None => out.push(0),
            Some(value) => {
                out.push(1);
                value.encode(out);
            }
        }
    }
}

impl<V: Value> Value for Option<V> {
    const ENCODES_SURELY: bool = V::ENCODES_SURELY;
    const FIELD_LEN: FieldLen = V::FIELD_LEN;

    fn fit(_fold: &dyn Fold) -> Fit {
        Fit::Never
    }

    fn field_fold() -> FoldSpec {
        V::field_fold()
    }

    fn put_field(&self, out: &mut Vec<u8>) -> bool {
        self.as_ref().is_some_and(|value| value.put_field(out))
    }

    fn put_nothing(out: &mut Vec<u8>) {
        V::put_nothing(out);
    }

    fn take_field(field: Option<(&[u8], bool)>) -> Result<Self, CodecError> {
        let Some((bytes, is_fixed)) = field else { return Ok(None) };
        let mut nothing = Vec::new();
        if is_fixed {
            V::put_nothing(&mut nothing);
            if nothing == bytes {
                return Ok(None);
            }
        }
        V::take_field(field).map(Some)
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        match bytes {
            [0] => Ok(None),
            [1, value @ ..] => V::decode(value).map(Some),
            _ => Err(CodecError::new("expected a byte that is 0, or 1 and a value after it")),
        }
    }
}

#[cfg(test)]
#[path = "record/tests.rs"]
mod tests;
