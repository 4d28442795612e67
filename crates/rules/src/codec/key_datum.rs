//! Keys from data, such as a row of JSON: the bytes of a codec, or what was expected instead.

use super::CodecError;
use super::given::{
    read_bool, read_bytes, read_float, read_int, read_number, read_stamp, read_text, read_time, read_uuid,
    wrong,
};
use super::key::{ElementType, KeyCodec, encode_i64, in_element, wrong_count};
use super::tuple;
use crate::datum::{Datum, unwrapped};

impl KeyCodec {
    /// Encodes a key; a tuple is given as the list of its elements. Numbers, bools, uuids
    /// and bytes (`0x...`) may also be given as text. Appends the bytes to `out`, which is
    /// unchanged after an error.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn encode(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let start = out.len();
        self.encode_parts(datum, out).inspect_err(|_| out.truncate(start))
    }

    fn encode_parts(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match self {
            KeyCodec::Bytes => out.extend_from_slice(&read_bytes(datum)?),
            KeyCodec::Utf8 => out.extend_from_slice(read_text(datum)?.as_bytes()),
            KeyCodec::U32 => out.extend_from_slice(&read_int::<u32>(datum, "u32")?.to_be_bytes()),
            KeyCodec::U64 => out.extend_from_slice(&read_int::<u64>(datum, "u64")?.to_be_bytes()),
            KeyCodec::I64 => out.extend_from_slice(&encode_i64(read_int(datum, "i64")?)),
            KeyCodec::Time => out.extend_from_slice(&encode_i64(read_time(datum)?)),
            KeyCodec::Tuple => match datum {
                Datum::List(items) => {
                    items.iter().try_for_each(|item| put_datum(out, &ElementType::Any, item, false, 0))?;
                }
                one => put_datum(out, &ElementType::Any, one, false, 0)?,
            },
            KeyCodec::TypedTuple(types) => {
                let items = match datum {
                    Datum::List(items) => items.as_slice(),
                    one => std::slice::from_ref(one),
                };
                if items.len() != types.len() {
                    return Err(wrong_count(types, &items.len().to_string()));
                }
                put_items(types, items, out)?;
            }
        }
        Ok(())
    }
}

/// Appends these elements, at most as many as there are types.
pub(super) fn put_items(types: &[ElementType], items: &[Datum], out: &mut Vec<u8>) -> Result<(), CodecError> {
    for (index, (element, item)) in types.iter().zip(items).enumerate() {
        put_datum(out, element, item, false, 0).map_err(|error| in_element(types, index, &error))?;
    }
    Ok(())
}

fn put_datum(
    out: &mut Vec<u8>,
    element: &ElementType,
    datum: &Datum,
    nested: bool,
    depth: usize,
) -> Result<(), CodecError> {
    match element {
        ElementType::Any => put_any(out, datum, nested, depth)?,
        ElementType::Bytes => tuple::put_bytes(out, &read_bytes(datum)?),
        ElementType::Text => tuple::put_text(out, read_text(datum)?),
        ElementType::Int => tuple::put_i128(out, read_int(datum, "int")?),
        ElementType::Float => tuple::put_float(out, read_float(datum, "float")?),
        ElementType::Double => tuple::put_double(out, read_number(datum, "double")?),
        ElementType::Bool => tuple::put_bool(out, read_bool(datum)?),
        ElementType::Uuid => tuple::put_element(out, &read_uuid(datum)?, nested),
        ElementType::Stamp => tuple::put_element(out, &read_stamp(datum)?, nested),
        ElementType::Time => tuple::put_i64(out, read_time(datum)?),
        ElementType::AnyTuple => match datum {
            Datum::List(_) => put_any(out, datum, nested, depth)?,
            other => return Err(wrong("a list", other)),
        },
        ElementType::Tuple(types) => put_nested(out, types, datum, depth)?,
        ElementType::Optional(_) if *datum == Datum::Null => tuple::put_null(out, nested),
        ElementType::Optional(inner) => put_datum(out, inner, datum, nested, depth)?,
    }
    Ok(())
}

/// An element that is what it looks like.
fn put_any(out: &mut Vec<u8>, datum: &Datum, nested: bool, depth: usize) -> Result<(), CodecError> {
    match datum {
        Datum::Null => tuple::put_null(out, nested),
        Datum::Bool(value) => tuple::put_bool(out, *value),
        Datum::Int(value) => tuple::put_i128(out, *value),
        Datum::Float(value) => tuple::put_double(out, *value),
        Datum::Number(text) if text.contains(['.', 'e', 'E']) || text == "-0" => {
            tuple::put_double(out, read_number(datum, "double")?);
        }
        Datum::Number(_) => return Err(wrong("a whole number of 128 bits", datum)),
        Datum::Text(text) => tuple::put_text(out, text),
        Datum::Bytes(bytes) => tuple::put_bytes(out, bytes),
        Datum::List(items) => {
            tuple::check_depth(depth)?;
            tuple::begin_nested(out);
            items.iter().try_for_each(|item| put_any(out, item, true, depth + 1))?;
            tuple::end_nested(out);
        }
        Datum::Map(_) => match unwrapped(datum) {
            Some(bytes) => tuple::put_bytes(out, &bytes),
            None => return Err(wrong("an element of a tuple", datum)),
        },
    }
    Ok(())
}

fn put_nested(
    out: &mut Vec<u8>,
    types: &[ElementType],
    datum: &Datum,
    depth: usize,
) -> Result<(), CodecError> {
    let Datum::List(items) = datum else { return Err(wrong("a list", datum)) };
    if items.len() != types.len() {
        return Err(wrong_count(types, &items.len().to_string()));
    }
    tuple::check_depth(depth)?;
    tuple::begin_nested(out);
    for (element, item) in types.iter().zip(items) {
        put_datum(out, element, item, true, depth + 1)?;
    }
    tuple::end_nested(out);
    Ok(())
}
