//! One column of rows: its cells as elements of keys, and as data.
//!
//! Arrow has many types for text, bytes and whole numbers; each becomes the one of its sort here. A
//! type without a sort (a date, a decimal) is refused by name: its meaning would be a guess.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, StringArray, StructArray,
    UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::DataType;
use folddb::Datum;
use folddb::codec::{AsElement, ElementType, KeyCodec};

use crate::keys::exact;

/// The cells of a column.
pub(crate) enum Cells {
    Text(StringArray),
    Bytes(BinaryArray),
    Int(Int64Array),
    Unsigned(UInt64Array),
    Float(Float64Array),
    Bool(BooleanArray),
    List(ArrayRef),
    Struct(StructArray),
    /// One value for all rows.
    Constant(Datum),
}

/// The type that represents the sort of a type; none if it has no sort.
pub(crate) fn sort_of(of: &DataType) -> Option<DataType> {
    Some(match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => DataType::Int64,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::UInt64,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Float64,
        DataType::Boolean => DataType::Boolean,
        DataType::Dictionary(_, values) => sort_of(values)?,
        DataType::List(field) | DataType::LargeList(field) => {
            sort_of(field.data_type())?;
            DataType::List(Arc::clone(field))
        }
        DataType::Struct(_) | DataType::Null => of.clone(),
        _ => return None,
    })
}

impl Cells {
    /// # Errors
    /// A type that has no sort.
    pub(crate) fn of(array: &ArrayRef) -> Result<Cells, String> {
        let of = array.data_type();
        let sort = sort_of(of).ok_or_else(|| {
            format!("a column of type {of} is neither text, bytes, a number nor a bool: cast it to one")
        })?;
        if sort == DataType::Null {
            return Ok(Cells::Constant(Datum::Null));
        }
        let array =
            if *of == sort { Arc::clone(array) } else { cast(array, &sort).map_err(|e| e.to_string())? };
        Ok(match sort {
            DataType::Utf8 => Cells::Text(array.as_string().clone()),
            DataType::Binary => Cells::Bytes(array.as_binary().clone()),
            DataType::Int64 => Cells::Int(array.as_primitive::<Int64Type>().clone()),
            DataType::UInt64 => Cells::Unsigned(array.as_primitive::<UInt64Type>().clone()),
            DataType::Float64 => Cells::Float(array.as_primitive::<Float64Type>().clone()),
            DataType::Boolean => Cells::Bool(array.as_boolean().clone()),
            DataType::Struct(_) => Cells::Struct(array.as_struct().clone()),
            _ => Cells::List(array),
        })
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Cells::Text(cells) => cells.is_null(row),
            Cells::Bytes(cells) => cells.is_null(row),
            Cells::Int(cells) => cells.is_null(row),
            Cells::Unsigned(cells) => cells.is_null(row),
            Cells::Float(cells) => cells.is_null(row),
            Cells::Bool(cells) => cells.is_null(row),
            Cells::List(cells) => cells.is_null(row),
            Cells::Struct(cells) => cells.is_null(row),
            Cells::Constant(value) => *value == Datum::Null,
        }
    }

    /// A cell as data.
    ///
    /// # Errors
    /// Something nested in it has no sort.
    pub(crate) fn datum(&self, row: usize) -> Result<Datum, String> {
        if self.is_null(row) {
            return Ok(Datum::Null);
        }
        Ok(match self {
            Cells::Text(cells) => Datum::Text(cells.value(row).to_owned()),
            Cells::Bytes(cells) => Datum::Bytes(cells.value(row).to_vec()),
            Cells::Int(cells) => Datum::Int(cells.value(row).into()),
            Cells::Unsigned(cells) => Datum::Int(cells.value(row).into()),
            Cells::Float(cells) => Datum::Float(cells.value(row)),
            Cells::Bool(cells) => Datum::Bool(cells.value(row)),
            Cells::List(cells) => {
                let items = cells.as_list::<i32>().value(row);
                let cells = Cells::of(&items)?;
                Datum::List((0..items.len()).map(|item| cells.datum(item)).collect::<Result<_, _>>()?)
            }
            Cells::Struct(cells) => {
                let field = |(field, column): (&arrow_schema::FieldRef, &ArrayRef)| {
                    Ok::<_, String>((field.name().clone(), Cells::of(column)?.datum(row)?))
                };
                Datum::Map(cells.fields().iter().zip(cells.columns()).map(field).collect::<Result<_, _>>()?)
            }
            Cells::Constant(value) => value.clone(),
        })
    }

    /// The bytes of a cell, if it has bytes.
    pub(crate) fn bytes(&self, row: usize) -> Option<&[u8]> {
        match self {
            Cells::Bytes(cells) if cells.is_valid(row) => Some(cells.value(row)),
            Cells::Constant(Datum::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The text of a cell, if it is text.
    pub(crate) fn text(&self, row: usize) -> Option<&str> {
        match self {
            Cells::Text(cells) if cells.is_valid(row) => Some(cells.value(row)),
            Cells::Constant(Datum::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The whole number of a cell, if it is one.
    pub(crate) fn int(&self, row: usize) -> Option<i128> {
        match self {
            Cells::Int(cells) if cells.is_valid(row) => Some(cells.value(row).into()),
            Cells::Unsigned(cells) if cells.is_valid(row) => Some(cells.value(row).into()),
            Cells::Constant(Datum::Int(number)) => Some(*number),
            _ => None,
        }
    }

    /// The floating-point number of a cell, if it is one.
    pub(crate) fn float(&self, row: usize) -> Option<f64> {
        match self {
            Cells::Float(cells) if cells.is_valid(row) => Some(cells.value(row)),
            Cells::Constant(Datum::Float(number)) => Some(*number),
            _ => None,
        }
    }

    fn bool(&self, row: usize) -> Option<bool> {
        match self {
            Cells::Bool(cells) if cells.is_valid(row) => Some(cells.value(row)),
            Cells::Constant(Datum::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// Appends a cell as an element of a tuple. False if it is not of this type.
    #[inline]
    pub(crate) fn put(&self, of: &ElementType, row: usize, out: &mut Vec<u8>) -> bool {
        match of {
            ElementType::Text => self.text(row).map(|text| AsElement::<String>::put(text, false, out)),
            ElementType::Bytes => self.bytes(row).map(|bytes| AsElement::<Vec<u8>>::put(bytes, false, out)),
            ElementType::Int => match self {
                Cells::Int(cells) if cells.is_valid(row) => {
                    AsElement::<i64>::put(&cells.value(row), false, out);
                    return true;
                }
                _ => self.int(row).map(|number| AsElement::<i128>::put(&number, false, out)),
            },
            ElementType::Double => self.number(row).map(|number| AsElement::<f64>::put(&number, false, out)),
            ElementType::Float => {
                self.number(row).map(|number| AsElement::<f32>::put(&(number as f32), false, out))
            }
            ElementType::Bool => self.bool(row).map(|value| AsElement::<bool>::put(&value, false, out)),
            ElementType::Optional(_) if self.is_null(row) => {
                AsElement::<Option<bool>>::put(&None::<bool>, false, out);
                return true;
            }
            ElementType::Optional(inner) => return self.put(inner, row, out),
            ElementType::Any => return self.put_any(row, out),
            other => return self.put_other(other, row, out),
        }
        .is_some()
    }

    /// A cell as a floating-point number, if it is one, or a whole number that equals one exactly.
    fn number(&self, row: usize) -> Option<f64> {
        self.float(row).or_else(|| self.int(row).and_then(exact))
    }

    /// Appends a cell by the codec of keys: a UUID, for example.
    #[cold]
    fn put_other(&self, of: &ElementType, row: usize, out: &mut Vec<u8>) -> bool {
        let Some(datum) = self.present(row) else { return false };
        KeyCodec::TypedTuple(vec![of.clone()]).encode(&Datum::List(vec![datum]), out).is_ok()
    }

    /// Appends a cell as a whole key of this codec: a time, for example. False if it is none.
    #[cold]
    pub(crate) fn put_key(&self, codec: &KeyCodec, row: usize, out: &mut Vec<u8>) -> bool {
        self.present(row).is_some_and(|datum| codec.encode(&datum, out).is_ok())
    }

    /// A cell that is not null.
    fn present(&self, row: usize) -> Option<Datum> {
        self.datum(row).ok().filter(|datum| *datum != Datum::Null)
    }

    /// Appends a cell as an element of its own type.
    fn put_any(&self, row: usize, out: &mut Vec<u8>) -> bool {
        let of = match self {
            Cells::Text(_) | Cells::Constant(Datum::Text(_)) => ElementType::Text,
            Cells::Bytes(_) | Cells::Constant(Datum::Bytes(_)) => ElementType::Bytes,
            Cells::Int(_) | Cells::Unsigned(_) | Cells::Constant(Datum::Int(_)) => ElementType::Int,
            Cells::Float(_) | Cells::Constant(Datum::Float(_)) => ElementType::Double,
            Cells::Bool(_) | Cells::Constant(Datum::Bool(_) | Datum::Null) => ElementType::Bool,
            _ => return false,
        };
        self.put(&ElementType::Optional(Box::new(of)), row, out)
    }
}
