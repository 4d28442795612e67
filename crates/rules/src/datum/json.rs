//! A datum as JSON text, and back.
//!
//! ```text
//!   Null Bool Text List Map     as JSON has them
//!   Int                         a number; as text beyond 64 bits
//!   Float                       the shortest number that reads back as it; "NaN", "inf", "-inf" as text
//!   Bytes                       text: 0x and hexadecimal digits
//! ```
//!
//! Reading gives text where bytes were written: what that means is up to the codec that reads the datum.

use serde_json::{Number, Value};

use super::{Datum, hex};

/// Appends the datum as JSON, on one line.
pub fn put(datum: &Datum, out: &mut String) {
    out.push_str(&value_of(datum).to_string());
}

/// Reads one JSON text.
///
/// # Errors
/// Says what is wrong with it, and where.
pub fn parse(text: &str) -> Result<Datum, String> {
    serde_json::from_str(text).map(datum_of).map_err(|error| error.to_string())
}

fn value_of(datum: &Datum) -> Value {
    match datum {
        Datum::Null => Value::Null,
        Datum::Bool(value) => Value::Bool(*value),
        Datum::Int(value) => {
            Number::from_i128(*value).map_or_else(|| Value::String(value.to_string()), Value::Number)
        }
        Datum::Float(value) => {
            Number::from_f64(*value).map_or_else(|| Value::String(value.to_string()), Value::Number)
        }
        Datum::Text(text) => Value::String(text.clone()),
        Datum::Bytes(bytes) => Value::String(hex(bytes)),
        Datum::List(items) => items.iter().map(value_of).collect(),
        Datum::Map(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), value_of(value))).collect())
        }
    }
}

fn datum_of(value: Value) -> Datum {
    match value {
        Value::Null => Datum::Null,
        Value::Bool(value) => Datum::Bool(value),
        Value::Number(number) => match number.as_i128() {
            Some(value) => Datum::Int(value),
            None => Datum::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Datum::Text(text),
        Value::Array(items) => Datum::List(items.into_iter().map(datum_of).collect()),
        Value::Object(fields) => {
            Datum::Map(fields.into_iter().map(|(name, value)| (name, datum_of(value))).collect())
        }
    }
}

#[cfg(test)]
#[path = "json/tests.rs"]
mod tests;
