//! Whether what a Rust type encodes is what the fold of a table takes, and what folding gives can
//! be read as that type.
//!
//! ```text
//!   Always     all values of the type are the table's                 nothing is checked when it is written
//!   Sometimes  bytes that the type encodes may be values of the fold  each is checked, and decoded again
//!   Never      a type that the fold reads as another one              refused, naming both and what fits
//! ```
//!
//! Used when a table is opened for a type.

use crate::codec::{CodecError, Fit, KeyCodec, Value, ValueCodec};
use crate::fold::Fold;
use crate::folds::Record;
use crate::table_rules::{BoundRules, FoldName};

impl BoundRules {
    /// How values of type `V` fit.
    ///
    /// # Errors
    /// They cannot be values of the table: names the type, the fold, and what would fit.
    pub fn fit<V: Value>(&self) -> Result<Fit, CodecError> {
        if let Some(codec) = self.opaque_codec() {
            return fit_by_codec::<V>(codec.without_times());
        }
        if let FoldName::Custom { .. } = &self.rules.fold {
            return fit_custom::<V>(&self.rules.fold);
        }
        let Some(fold) = self.fold.fold() else { return Ok(Fit::Sometimes) };
        match V::fit(&**fold) {
            Fit::Never => Err(unfit::<V>(&**fold)),
            fit => Ok(fit),
        }
    }

    /// How the types of keys and values differ from those of the table, if they do. Values that are
    /// folded are compared by [`BoundRules::fit`].
    pub fn types_differ(&self, key: &KeyCodec, value: &ValueCodec) -> Option<String> {
        let rules = &self.rules;
        if rules.key.without_times() != key.without_times() {
            return Some(format!("its keys are {}, not {}", rules.key.name(), key.name()));
        }
        let has =
            self.opaque_codec().filter(|has| *has != ValueCodec::Bytes && *value != ValueCodec::Bytes)?;
        (has.without_times() != value.without_times()).then(|| format!("its values are {has}, not {value}"))
    }
}

/// How values of a type fit a table that replaces and has values of this codec.
fn fit_by_codec<V: Value>(codec: ValueCodec) -> Result<Fit, CodecError> {
    match (V::codec(), codec) {
        (own, codec) if V::ENCODES_SURELY && (own == codec || codec == ValueCodec::Bytes) => Ok(Fit::Always),
        (_, ValueCodec::Bytes) => Ok(Fit::Sometimes),
        (own, codec) if own == codec || own == ValueCodec::Bytes => Ok(Fit::Sometimes),
        (ValueCodec::Utf8, ValueCodec::Json) => Ok(Fit::Sometimes), // text of JSON
        (_, codec) => Err(CodecError(format!(
            "its values are {codec}, and those of the Rust type `{}` are not; give it values of that type, or \
             `Vec<u8>` that hold its bytes",
            std::any::type_name::<V>()
        ))),
    }
}

/// How values of a type fit a table with a custom fold: by the fold of the type, or, if it has
/// none, by the fold's check of each value.
fn fit_custom<V: Value>(fold: &FoldName) -> Result<Fit, CodecError> {
    let own = V::default_fold();
    if !own.is_custom() {
        return Ok(Fit::Sometimes);
    }
    let own = FoldName::Custom { name: own.to_string(), version: own.as_fold().version() };
    match (own == *fold, V::ENCODES_SURELY) {
        (true, true) => Ok(Fit::Always),
        (true, false) => Ok(Fit::Sometimes),
        (false, _) => Err(CodecError(format!(
            "values of the Rust type `{}` fold by {own}, and the table folds by {fold}: give the table values that \
             fold so, or `Vec<u8>` that hold their bytes",
            std::any::type_name::<V>()
        ))),
    }
}

fn unfit<V: Value>(fold: &dyn Fold) -> CodecError {
    let own = V::default_fold();
    let own = match own.to_string() {
        spec if spec == "replace" => String::new(),
        spec => format!(", which is made for the fold `{spec}`,"),
    };
    CodecError(format!(
        "values of the Rust type `{}`{own} are not values of the fold `{}`, which takes values of type {}: give the \
         table values of that type, or `Vec<u8>` that hold its bytes",
        std::any::type_name::<V>(),
        fold.spec(),
        type_of(&fold.spec()),
    ))
}

/// The Rust type that is made for a fold, as its users write it.
fn type_of(spec: &str) -> String {
    let mut words = spec.split(':');
    let (name, of) = (words.next().unwrap_or_default(), words.next());
    let in_folds = |name: &str| format!("folddb::folds::{name}");
    match (name, of) {
        ("sum", Some("f64")) => in_folds("ExactSum"),
        ("min" | "max", Some("bytes")) | ("append", _) => "String or Vec<u8>".to_owned(),
        ("min" | "max", Some("time")) => "i64".to_owned(), // microseconds since 1970
        ("sum" | "min" | "max", Some(number)) => number.to_owned(),
        ("stats", _) => in_folds("Stats"),
        ("set" | "intersect", _) => in_folds("ByteSet"),
        ("bitmap", _) => in_folds("Bitmap"),
        ("counters", _) => in_folds("Counters"),
        ("patch", _) => in_folds("Patch"),
        ("lww", _) => in_folds("Timed"),
        ("hll", Some(precision)) => in_folds(&format!("Hll<{precision}>")),
        ("quantiles", alpha) => in_folds(&format!("Quantiles<{}>", basis_points(alpha))),
        ("top", Some(kept)) => in_folds(&format!("TopK<{kept}{}>", words.next().map_or("", |_| ", i64"))),
        ("matmul", Some(side)) => in_folds(&format!("Matrix<{side}, {}>", words.next().unwrap_or("f64"))),
        ("json-merge", _) => match cfg!(feature = "json") {
            true => "serde_json::Value, or text of JSON".to_owned(),
            false => "text of JSON".to_owned(),
        },
        _ if spec.starts_with('{') => type_of_record(spec),
        _ => "Vec<u8>".to_owned(),
    }
}

/// A tuple of the types of its fields.
fn type_of_record(spec: &str) -> String {
    let Ok(record) = spec.parse::<Record>() else { return "Vec<u8>".to_owned() };
    let field = |fold: &dyn Fold| {
        let spec = fold.spec();
        match spec.split_once(':') {
            Some((name @ ("sum" | "min" | "max"), number)) if number != "bytes" => {
                let mut letters = name.chars();
                let first = letters.next().map(|letter| letter.to_ascii_uppercase()).unwrap_or_default();
                format!("{first}{}<{}>", letters.as_str(), type_of(&spec))
            }
            _ => type_of(&spec),
        }
    };
    let fields: Vec<String> = (0..).map_while(|index| record.field_fold(index)).map(field).collect();
    format!("({}), or of a struct that derives Record", fields.join(", "))
}

/// The error of a quantile sketch in basis points, the unit of its type.
fn basis_points(alpha: Option<&str>) -> f64 {
    let alpha = alpha.and_then(|alpha| alpha.parse().ok()).unwrap_or(0.01);
    (alpha * 1e4_f64 * 1e6).round() / 1e6
}

#[cfg(test)]
#[path = "fit/tests.rs"]
mod tests;
