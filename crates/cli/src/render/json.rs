//! Values as JSON, and back.
//!
//! ```text
//!   Null Bool Text List Map     as JSON has them
//!   Int                         a number; as text beyond 64 bits
//!   Float                       a number; "NaN", "inf", "-inf" as text
//!   Bytes                       {"$hex":"00ff"}, which no text is
//! ```

use folddb::{Datum, datum};
use serde_json::{Number, Value};

/// The value as JSON.
pub(crate) fn from_datum(datum: &Datum) -> Value {
    match datum {
        Datum::Null => Value::Null,
        Datum::Bool(value) => Value::Bool(*value),
        Datum::Int(value) => {
            let narrow =
                u64::try_from(*value).map(Number::from).or_else(|_| i64::try_from(*value).map(Number::from));
            narrow.map_or_else(|_| Value::String(value.to_string()), Value::Number)
        }
        Datum::Float(value) => {
            Number::from_f64(*value).map_or_else(|| Value::String(value.to_string()), Value::Number)
        }
        Datum::Text(text) => Value::String(text.clone()),
        Datum::Bytes(bytes) => from_datum(&datum::wrapped(bytes)),
        Datum::List(items) => items.iter().map(from_datum).collect(),
        Datum::Map(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), from_datum(value))).collect())
        }
    }
}

/// The JSON as a value.
pub(crate) fn to_datum(value: &Value) -> Datum {
    match value {
        Value::Null => Datum::Null,
        Value::Bool(value) => Datum::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Datum::Int(value.into()),
            (_, Some(value)) => Datum::Int(value.into()),
            _ => Datum::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Datum::Text(text.clone()),
        Value::Array(items) => Datum::List(items.iter().map(to_datum).collect()),
        Value::Object(fields) => {
            Datum::Map(fields.iter().map(|(name, value)| (name.clone(), to_datum(value))).collect())
        }
    }
}
