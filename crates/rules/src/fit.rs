//! Whether what a Rust type encodes is what the fold of a table takes, as far as that is known before anything is written.
//!
//! ```text
//!   Always     the type is that of the fold, or the fold takes any bytes     nothing is checked when it is written
//!   Sometimes  bytes that the type encodes may be values of the fold         each is checked
//!   refused    a type of values that the fold reads as another one, or that encodes none of its values
//! ```
//!
//! Used by whoever opens a table for a type.

use crate::codec::{CodecError, KeyCodec, Value, ValueCodec};
use crate::table_rules::{BoundRules, FoldName};

/// How the values of a Rust type fit a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// All are values of the table.
    Always,
    /// Some may be.
    Sometimes,
}

impl BoundRules {
    /// How values of type `V` fit.
    ///
    /// # Errors
    /// They cannot be values of the table: says what would fit.
    pub fn fit<V: Value>(&self) -> Result<Fit, CodecError> {
        let codec = V::codec();
        if let Some(opaque) = self.opaque_codec() {
            let fits = opaque == codec || opaque == ValueCodec::Bytes;
            return Ok(if fits { Fit::Always } else { Fit::Sometimes });
        }
        let FoldName::BuiltIn(_) = &self.rules.fold else { return Ok(Fit::Sometimes) };
        let spec = self.fold.spec();
        if self.fold.joins().is_some() || V::is_operand_of(spec) {
            return Ok(Fit::Always);
        }
        let samples = samples(codec);
        let taken = samples.iter().filter(|sample| self.check_value(sample).is_ok()).count();
        match (taken_by(spec), codec) {
            (_, ValueCodec::Bytes) => Ok(Fit::Sometimes),
            (Some(taken_codec), codec) if taken_codec == codec && taken == samples.len() => Ok(Fit::Always),
            (Some(ValueCodec::Json), ValueCodec::Utf8) => Ok(Fit::Sometimes), // text of JSON
            (Some(taken_codec), codec) if taken_codec != codec => {
                Err(unfit::<V>(spec, &format!("values of type {taken_codec}")))
            }
            _ if taken == 0 => Err(unfit::<V>(spec, "the operands of the fold, which `folds` has")),
            _ => Ok(Fit::Sometimes),
        }
    }

    /// How types of keys and values differ from those of the table, where they do. Values that are folded are compared by
    /// [`BoundRules::fit`].
    pub fn types_differ(&self, key: &KeyCodec, value: &ValueCodec) -> Option<String> {
        let rules = &self.rules;
        if rules.key != *key {
            return Some(format!("its keys are {}, not {}", rules.key.name(), key.name()));
        }
        let has =
            self.opaque_codec().filter(|has| *has != ValueCodec::Bytes && *value != ValueCodec::Bytes)?;
        (has != *value).then(|| format!("its values are {has}, not {value}"))
    }
}

fn unfit<V>(spec: &str, takes: &str) -> CodecError {
    CodecError(format!(
        "values of the Rust type `{}` are none of the fold `{spec}`, which takes {takes}: give the table values of that type, \
         or `Vec<u8>` that hold its bytes",
        std::any::type_name::<V>()
    ))
}

/// The type of values that a fold reads its own as, where that is one that Rust types have.
fn taken_by(spec: &str) -> Option<ValueCodec> {
    if spec == "json-merge" {
        return Some(ValueCodec::Json);
    }
    let (fold, number) = spec.split_once(':')?;
    let is_of_numbers = matches!(fold, "sum" | "min" | "max");
    let codec = ValueCodec::parse(number).ok().filter(|codec| codec.fixed_len().is_some());
    codec.filter(|_| is_of_numbers)
}

/// Some values of a codec, usual and unusual ones.
fn samples(codec: ValueCodec) -> Vec<Vec<u8>> {
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let numbers = || [0, 1, 2, 7, 255, 256, 1 << 32, u64::MAX >> 1, u64::MAX].map(u64::to_le_bytes);
    let floats = || [0.0, 1.0, -1.5, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].map(f64::to_le_bytes);
    match codec {
        ValueCodec::Bytes => Vec::new(),
        ValueCodec::Utf8 => {
            texts(&["", "a", "hello", "1", "12.5", "{}", "[1]", "more letters than a number has"])
        }
        ValueCodec::Json => texts(&["null", "1", "-2.5", "\"text\"", "[1,2]", "{}", "{\"a\":{\"b\":null}}"]),
        ValueCodec::U64 | ValueCodec::I64 => numbers().map(|number| number.to_vec()).to_vec(),
        ValueCodec::F64 => floats().map(|number| number.to_vec()).to_vec(),
    }
}

#[cfg(test)]
#[path = "fit/tests.rs"]
mod tests;
