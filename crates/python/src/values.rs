//! How a table takes its values from Python, and their bytes as data.

use folddb::codec::ValueCodec;
use folddb::table_rules::FoldName;
use folddb::{BytesTable, Datum, DynamicRules, Error, Result, datum};

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
    let values = Values::by(rules);
    match values {
        Values::Bytes => Ok(Datum::Bytes(value.to_vec())),
        _ => values.data(rules, value).map_err(Error::invalid),
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

    /// A value as data.
    ///
    /// # Errors
    /// The bytes are not a value of the table.
    pub(crate) fn show(self, table: &BytesTable, value: &[u8]) -> Result<Datum> {
        if self == Values::Bytes {
            return Ok(Datum::Bytes(value.to_vec()));
        }
        let data = self.data(table.rules(), value);
        data.map_err(|cause| Error::invalid(format!("table `{}`: {cause}", table.name())))
    }

    fn data(self, rules: &DynamicRules, value: &[u8]) -> std::result::Result<Datum, String> {
        let shown = rules.show_value(value).map_err(|cause| cause.to_string())?;
        let is_merged =
            matches!(&rules.as_table_rules().fold, FoldName::BuiltIn(spec) if spec.trim() == "json-merge");
        match &shown {
            // A merged document that is text or null is shown as JSON.
            Datum::Text(text) if is_merged => datum::json::parse(text),
            _ => Ok(shown),
        }
    }
}
