//! Values of types that serde knows, as JSON: tools show them, indexes find them by what is in
//! them, and fields may be added later.
//!
//! Written by `serde_json`, read by the one reader of JSON here. So what is read does not depend on
//! the features of that crate that a program enables: features unify, so the store enables none.

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;

use super::CodecError;
use super::value::{AsValue, Fit, Value, ValueCodec, parse_json};
use crate::fold::Fold;
use read::Piece;

mod read;

/// A value of a type that serde knows, kept as JSON.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::codec::{AsValue, Json, Value};
///
/// #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
/// struct Person {
///     name: String,
///     #[serde(default)]
///     age: u32,
/// }
///
/// let mut bytes = Vec::new();
/// Json(Person { name: "Ann".to_owned(), age: 28 }).encode(&mut bytes);
/// assert_eq!(bytes, br#"{"name":"Ann","age":28}"#);
/// let Json(person) = Json::<Person>::decode(br#"{"name":"Bob"}"#).unwrap();
/// assert_eq!(person, Person { name: "Bob".to_owned(), age: 0 });
/// ```
///
/// What JSON cannot express is refused when it is written: a map with keys that are neither text
/// nor numbers nor bools; a NaN, which would become `null` (but an `Option<f64>` reads that
/// as `None`, so there it is not refused).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json<T>(pub T);

/// Appends nothing if the value cannot be written as JSON. Tables refuse that, since it does not
/// decode.
impl<T: Serialize> AsValue<Json<T>> for Json<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        if serde_json::to_writer(&mut *out, &self.0).is_err() {
            out.truncate(start);
        }
    }
}

impl<T: Serialize + DeserializeOwned> Value for Json<T> {
    fn codec() -> ValueCodec {
        ValueCodec::Json
    }

    /// Merged documents need not be of the type: [`serde_json::Value`] takes them.
    fn fit(_fold: &dyn Fold) -> Fit {
        Fit::Never
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        if bytes.is_empty() {
            return Err(CodecError::new("expected JSON; a value that JSON cannot express is not written"));
        }
        decode(bytes).map(Json)
    }
}

/// A document as the program holds it: the order of its names is that of [`serde_json::Map`], which
/// depends on the features of that crate, and a number that is neither of 64 bits nor a double is
/// rounded to one.
impl AsValue<serde_json::Value> for serde_json::Value {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }
}

impl Value for serde_json::Value {
    fn codec() -> ValueCodec {
        ValueCodec::Json
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        decode(bytes)
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let document = parse_json(bytes)?;
    T::deserialize(Piece(document)).map_err(|error| CodecError(format!("expected JSON of the type: {error}")))
}

#[cfg(test)]
#[path = "json/tests.rs"]
mod tests;
