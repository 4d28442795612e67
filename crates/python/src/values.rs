//! Values and operands of Python as the bytes of values, and back: what the fold of the table takes
//! and gives.

use folddb::codec::ValueCodec;
use folddb::table_rules::FoldName;
use folddb::{BytesTable, Datum, DynamicRules, Error, Result, datum};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::convert::{bytes, datum_of, shown};
use crate::errors::{invalid, raise};
use crate::strict::Wants;

/// How a table takes and gives its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// As they are.
    Bytes,
    /// Text.
    Text,
    /// JSON: a `str` is a JSON string, not JSON to be parsed.
    Json,
    /// As the fold says, or the codec.
    Fold,
}

/// A value as data, by the rules of its table.
///
/// # Errors
/// The bytes are not a value of the table.
pub(crate) fn show_by(rules: &DynamicRules, value: &[u8]) -> Result<Datum> {
    match Values::by(rules) {
        Values::Bytes => Ok(Datum::Bytes(value.to_vec())),
        _ => rules.show_value(value).map_err(|cause| Error::invalid(cause.to_string())),
    }
}

impl Values {
    pub(crate) fn of(table: &BytesTable) -> Values {
        Values::by(table.rules())
    }

    fn by(rules: &DynamicRules) -> Values {
        let rules = rules.as_table_rules();
        let FoldName::BuiltIn(spec) = &rules.fold else { return Values::Fold };
        match (spec.trim(), rules.value_codec()) {
            ("replace" | "first", ValueCodec::Bytes) => Values::Bytes,
            ("replace" | "first", ValueCodec::Utf8) => Values::Text,
            ("replace" | "first", ValueCodec::Json) | ("json-merge", _) => Values::Json,
            _ => Values::Fold,
        }
    }

    /// Appends the bytes of a value.
    ///
    /// # Errors
    /// InvalidInput, naming the table and the value, and what is expected.
    pub(crate) fn encode(
        self,
        table: &BytesTable,
        wants: &Wants,
        value: &Bound<'_, PyAny>,
        out: &mut Vec<u8>,
    ) -> PyResult<()> {
        let wrong = |why: String| {
            invalid(format!("table `{}`: the value {} does not fit: {why}", table.name(), shown(value)))
        };
        let datum = match self {
            Values::Bytes => match bytes(value)? {
                Some(bytes) => {
                    out.extend_from_slice(&bytes);
                    return Ok(());
                }
                None => return Err(wrong("it is not bytes".to_owned())),
            },
            Values::Text => match value.cast::<PyString>() {
                Ok(text) => Datum::Text(text.to_cow()?.into_owned()),
                Err(_) => return Err(wrong("it is not a str".to_owned())),
            },
            Values::Json => match datum_of(value)? {
                text @ Datum::Text(_) => Datum::Text(datum::json::text_of(&text)),
                other => other,
            },
            Values::Fold => datum_of(value)?,
        };
        wants.check(&datum).map_err(wrong)?;
        table.rules().check_writable().map_err(raise)?;
        table.rules().read_value(&datum, out).map_err(|cause| wrong(cause.to_string()))
    }

    /// A value as data.
    ///
    /// # Errors
    /// The bytes are not a value of the table.
    pub(crate) fn show(self, table: &BytesTable, value: &[u8]) -> Result<Datum> {
        if self == Values::Bytes {
            return Ok(Datum::Bytes(value.to_vec()));
        }
        let shown = table.rules().show_value(value);
        shown.map_err(|cause| Error::invalid(format!("table `{}`: {cause}", table.name())))
    }
}
