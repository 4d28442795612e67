//! Keys of Python as the bytes of keys, and back.
//!
//! A key must have exactly the type that the table says: `bytes`, `str`, `int`, or a tuple of such.
//! Text is not read as a number here, and bytes are not read as text.

use folddb::Datum;
use folddb::codec::tuple::{Element, pack, unpack};
use folddb::codec::{AsElement, KeyRange};
use folddb::codec::{ElementType, KeyCodec};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

use crate::convert::{bytes, datum_of, python_of, shown};
use crate::errors::invalid;

/// Appends the bytes of a key.
///
/// # Errors
/// InvalidInput, naming the table and the key, and what is expected.
pub(crate) fn encode(
    table: &str,
    codec: &KeyCodec,
    key: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
) -> PyResult<()> {
    let fits = match codec {
        KeyCodec::Bytes => bytes(key)?.map(|bytes| out.extend_from_slice(&bytes)).is_some(),
        KeyCodec::Utf8 => match key.cast::<PyString>() {
            Ok(text) => {
                let text = text.to_cow().map_err(|_| wrong(table, codec, key, "it is not text in UTF-8"))?;
                out.extend_from_slice(text.as_bytes());
                true
            }
            Err(_) => false,
        },
        KeyCodec::U32 => number::<u32>(key).map(|n| out.extend_from_slice(&n.to_be_bytes())).is_some(),
        KeyCodec::U64 => number::<u64>(key).map(|n| out.extend_from_slice(&n.to_be_bytes())).is_some(),
        KeyCodec::I64 => number::<i64>(key).map(|n| out.extend_from_slice(&ordered(n))).is_some(),
        KeyCodec::Time => match (number::<i64>(key), key.cast::<PyString>()) {
            (Some(micros), _) => {
                out.extend_from_slice(&ordered(micros));
                true
            }
            (None, Ok(text)) => codec.encode(&Datum::Text(text.to_string()), out).is_ok(),
            _ => false,
        },
        KeyCodec::Tuple => return untyped(table, codec, key, out),
        KeyCodec::TypedTuple(types) => return typed(table, codec, types, key, true, out),
        _ => return Err(wrong(table, codec, key, "this version of the package does not know such keys")),
    };
    if fits { Ok(()) } else { Err(wrong(table, codec, key, "")) }
}

/// A number as bytes in the order of numbers.
pub(crate) fn ordered(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

fn number<'py, T: for<'a> FromPyObject<'a, 'py>>(key: &Bound<'py, PyAny>) -> Option<T> {
    if key.is_instance_of::<PyBool>() { None } else { key.extract().ok() }
}

/// A floating-point number, or a whole number that equals one exactly: otherwise two keys could
/// become the same.
fn float(key: &Bound<'_, PyAny>) -> Option<f64> {
    if !key.is_instance_of::<PyInt>() {
        return number(key);
    }
    number::<i128>(key).and_then(exact)
}

/// The floating-point number that equals this whole number.
pub(crate) fn exact(number: i128) -> Option<f64> {
    let float = number as f64;
    (float as i128 == number).then_some(float)
}

fn wrong(table: &str, codec: &KeyCodec, key: &Bound<'_, PyAny>, why: &str) -> PyErr {
    let expected = match codec {
        KeyCodec::Bytes => "bytes".to_owned(),
        KeyCodec::Utf8 => "a str".to_owned(),
        KeyCodec::U32 | KeyCodec::U64 | KeyCodec::I64 => format!("an int that fits {codec}"),
        KeyCodec::Tuple => "a tuple".to_owned(),
        _ => format!("a {codec}"),
    };
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    invalid(format!("table `{table}`: the key {} is not {expected}{why}", shown(key)))
}

/// The elements of a key that is a tuple; anything else is a tuple of one element.
fn elements<'py>(key: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => Ok(tuple.iter().collect()),
        Err(_) => Ok(vec![key.clone()]),
    }
}

/// Appends a tuple of exactly these types; unless `all` is set, its first elements are enough.
fn typed(
    table: &str,
    codec: &KeyCodec,
    types: &[ElementType],
    key: &Bound<'_, PyAny>,
    all: bool,
    out: &mut Vec<u8>,
) -> PyResult<()> {
    let elements = elements(key)?;
    if elements.len() > types.len() || (all && elements.len() < types.len()) {
        let why = format!("it has {} elements instead of {}", elements.len(), types.len());
        return Err(wrong(table, codec, key, &why));
    }
    for (index, (element, of)) in elements.iter().zip(types).enumerate() {
        let put = put(of, element, out).map_err(|error| error.to_string());
        put.map_err(|why| wrong(table, codec, key, &format!("element {}, {why}", index + 1)))?;
    }
    Ok(())
}

/// Appends an element of a typed tuple.
fn put(of: &ElementType, element: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Result<(), String> {
    let not = |what: &str| format!("{}, is not {what}", shown(element));
    match of {
        ElementType::Text => {
            let text = element.cast::<PyString>().map_err(|_| not("a str"))?;
            let text = text.to_cow().map_err(|_| not("text in UTF-8"))?;
            AsElement::<String>::put(&*text, false, out);
        }
        ElementType::Bytes => {
            let bytes = bytes(element).ok().flatten().ok_or_else(|| not("bytes"))?;
            AsElement::<Vec<u8>>::put(&*bytes, false, out);
        }
        ElementType::Int => match number::<i64>(element) {
            Some(number) => AsElement::<i64>::put(&number, false, out),
            None => {
                let number = number::<i128>(element).ok_or_else(|| not("an int of at most 128 bits"))?;
                AsElement::<i128>::put(&number, false, out);
            }
        },
        ElementType::Double => {
            let number = float(element).ok_or_else(|| not("a float"))?;
            AsElement::<f64>::put(&number, false, out);
        }
        ElementType::Float => {
            let number = float(element).ok_or_else(|| not("a float"))?;
            AsElement::<f32>::put(&(number as f32), false, out);
        }
        ElementType::Bool => {
            let value = element.cast::<PyBool>().map_err(|_| not("a bool"))?;
            AsElement::<bool>::put(&value.is_true(), false, out);
        }
        ElementType::Optional(inner) if !element.is_none() => put(inner, element, out)?,
        ElementType::Optional(_) => AsElement::<Option<bool>>::put(&None::<bool>, false, out),
        other => {
            let datum = datum_of(element).map_err(|error| error.to_string())?;
            let codec = KeyCodec::TypedTuple(vec![other.clone()]);
            let encoded = codec.encode(&Datum::List(vec![plain(datum, element)?]), out);
            encoded.map_err(|cause| cause.to_string())?;
        }
    }
    Ok(())
}

/// A `uuid.UUID` is text here.
fn plain(datum: Datum, element: &Bound<'_, PyAny>) -> Result<Datum, String> {
    match element.getattr("hex") {
        Ok(_) if matches!(datum, Datum::Int(_)) && !element.is_instance_of::<PyInt>() => {
            Ok(Datum::Text(element.str().map_err(|error| error.to_string())?.to_string()))
        }
        _ => Ok(datum),
    }
}

fn untyped(table: &str, codec: &KeyCodec, key: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    let element = |element: Bound<'_, PyAny>| any(&element, 0);
    let elements = elements(key)?.into_iter().map(element).collect::<Result<Vec<_>, _>>();
    let elements = elements.map_err(|why| wrong(table, codec, key, &why))?;
    out.extend_from_slice(&pack(&elements));
    Ok(())
}

/// A term of an index.
///
/// # Errors
/// InvalidInput if it is not a term.
pub(crate) fn element(table: &str, term: &Bound<'_, PyAny>) -> PyResult<Element<'static>> {
    any(term, 0).map_err(|why| invalid(format!("table `{table}`: {why}, nor a term")))
}

/// An element of an untyped tuple.
fn any(element: &Bound<'_, PyAny>, depth: usize) -> Result<Element<'static>, String> {
    let text = |error: PyErr| error.to_string();
    if depth > 16 {
        return Err("it is nested too deep".to_owned());
    }
    if element.is_none() {
        return Ok(Element::Null);
    }
    if let Ok(value) = element.cast::<PyBool>() {
        return Ok(Element::Bool(value.is_true()));
    }
    if let Ok(value) = element.cast::<PyString>() {
        return Ok(Element::from(value.to_cow().map_err(text)?.into_owned()));
    }
    if let Some(value) = bytes(element).map_err(text)? {
        return Ok(Element::from(value.as_slice()).into_owned());
    }
    if let Ok(value) = element.cast::<PyFloat>() {
        return Ok(Element::from(value.value()));
    }
    if let Ok(tuple) = element.cast::<PyTuple>() {
        return tuple.iter().map(|item| any(&item, depth + 1)).collect::<Result<_, _>>().map(Element::Nested);
    }
    match element.extract::<i128>() {
        Ok(value) => Ok(Element::Int(value)),
        Err(_) => Err(format!("{} is no element of a key", shown(element))),
    }
}

/// The bytes that all keys with this prefix begin with. The prefix is the first elements of a
/// tuple, or the beginning of text or bytes.
///
/// # Errors
/// InvalidInput, also for numbers, which have no prefixes.
pub(crate) fn prefix(table: &str, codec: &KeyCodec, key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let mut out = Vec::new();
    match codec {
        KeyCodec::TypedTuple(types) => typed(table, codec, types, key, false, &mut out)?,
        KeyCodec::U32 | KeyCodec::U64 | KeyCodec::I64 | KeyCodec::Time => {
            return Err(invalid(format!(
                "table `{table}`: keys of type {codec} have no prefixes; use start, after, before or through"
            )));
        }
        _ => encode(table, codec, key, &mut out)?,
    }
    Ok(out)
}

/// The keys that count as equal to a bound: all tuples that begin with its elements, or the key.
pub(crate) fn span(table: &str, codec: &KeyCodec, key: &Bound<'_, PyAny>) -> PyResult<KeyRange> {
    if codec.is_tuple() {
        return Ok(KeyRange::prefix(prefix(table, codec, key)?));
    }
    let mut out = Vec::new();
    encode(table, codec, key, &mut out)?;
    Ok(KeyRange::one(out))
}

/// The bytes of a key as a key of Python.
pub(crate) fn decode<'py>(py: Python<'py>, codec: &KeyCodec, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match codec {
        KeyCodec::Bytes => Ok(PyBytes::new(py, key).into_any()),
        KeyCodec::Tuple | KeyCodec::TypedTuple(_) => {
            let elements = unpack(key).map_err(|cause| invalid(cause.to_string()))?;
            let elements = elements.iter().map(|element| of_element(py, element));
            Ok(PyTuple::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        _ => {
            // A time is a number, as in a tuple.
            let codec = if *codec == KeyCodec::Time { &KeyCodec::I64 } else { codec };
            python_of(py, &codec.show(key).map_err(|cause| invalid(cause.to_string()))?)
        }
    }
}

fn of_element<'py>(py: Python<'py>, element: &Element<'_>) -> PyResult<Bound<'py, PyAny>> {
    match element {
        Element::Text(text) => Ok(PyString::new(py, text).into_any()),
        Element::Nested(items) => {
            let items = items.iter().map(|item| of_element(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, items)?.into_any())
        }
        other => python_of(py, &other.show()),
    }
}
