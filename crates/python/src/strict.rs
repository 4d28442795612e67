//! Which types of Python the parts of a value may have: text is never taken for a number, nor a
//! number for text.
//!
//! The folds themselves take numbers as text, and bools as numbers, since people type them.
//! Values from Python have a type already.

use folddb::codec::ValueCodec;
use folddb::folds::Record;
use folddb::table_rules::{FoldName, TableRules};
use folddb::{Datum, datum};

/// What the parts of a value may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// What the fold takes.
    Anything,
    Whole,
    /// A whole or a floating-point number.
    Number,
    Bool,
    /// Text or bytes, or a list of them.
    Texts,
    /// For each field.
    Fields(Vec<(String, Wants)>),
}

impl Wants {
    pub(crate) fn of(rules: &TableRules) -> Wants {
        let FoldName::BuiltIn(spec) = &rules.fold else { return Wants::Anything };
        let spec = spec.trim();
        match (spec, rules.value_codec()) {
            ("replace" | "first", ValueCodec::F32 | ValueCodec::F64) => Wants::Number,
            ("replace" | "first", ValueCodec::Bool) => Wants::Bool,
            ("replace" | "first", codec) if codec.is_whole_number() => Wants::Whole,
            _ => Wants::of_fold(spec),
        }
    }

    fn of_fold(spec: &str) -> Wants {
        if let Some(record) = spec.parse::<Record>().ok().filter(|_| spec.starts_with('{')) {
            let specs = (0..).map_while(|index| record.field_fold(index).map(|fold| fold.spec()));
            let fields =
                record.names().zip(specs).map(|(name, spec)| (name.to_owned(), Wants::of_fold(&spec)));
            return Wants::Fields(fields.collect());
        }
        let (name, of) = spec.split_once(':').unwrap_or((spec, ""));
        match (name, of) {
            ("sum" | "min" | "max", "i64" | "u64" | "i128") => Wants::Whole,
            ("sum" | "min" | "max" | "stats", "f64") | ("quantiles", _) => Wants::Number,
            ("min" | "max", "bytes") | ("append" | "set" | "intersect", _) => Wants::Texts,
            _ => Wants::Anything,
        }
    }

    /// # Errors
    /// A part is of another type; says which.
    pub(crate) fn check(&self, value: &Datum) -> Result<(), String> {
        let fits = match (self, value) {
            (Wants::Fields(fields), Datum::Map(given)) => {
                for (name, wants) in fields {
                    let Some((_, value)) = given.iter().rfind(|(given, _)| given == name) else { continue };
                    wants.check(value).map_err(|why| format!("field `{name}`: {why}"))?;
                }
                true
            }
            (_, Datum::Null) => true, // the fold says
            (Wants::Whole, Datum::Bool(_) | Datum::Float(_) | Datum::Text(_)) => false,
            (Wants::Number, Datum::Bool(_) | Datum::Text(_)) => false,
            (Wants::Fields(_), value) => !matches!(value, Datum::Text(_)), // which may be that of a record
            (Wants::Bool, value) => matches!(value, Datum::Bool(_)),
            (Wants::Texts, Datum::List(items)) => {
                return items.iter().try_for_each(|item| self.check(item));
            }
            (Wants::Texts, value) => !matches!(value, Datum::Bool(_) | Datum::Int(_) | Datum::Float(_)),
            _ => true,
        };
        if fits { Ok(()) } else { Err(format!("{} is not {}", datum::json::text_of(value), self.expected())) }
    }

    /// Whether a value is a record without a field that is not null, which folds nothing.
    pub(crate) fn is_null(&self, value: &Datum) -> bool {
        match (self, value) {
            (Wants::Fields(_), Datum::Map(given)) => given.iter().all(|(_, value)| *value == Datum::Null),
            (_, value) => *value == Datum::Null,
        }
    }

    /// As [`Wants::check`], for a field of a record, by its index.
    ///
    /// # Errors
    /// As [`Wants::check`].
    pub(crate) fn check_field(&self, index: usize, value: &Datum) -> Result<(), String> {
        let Wants::Fields(fields) = self else { return Ok(()) };
        let Some((name, wants)) = fields.get(index) else { return Ok(()) };
        wants.check(value).map_err(|why| format!("field `{name}`: {why}"))
    }

    fn expected(&self) -> &'static str {
        match self {
            Wants::Whole => "a whole number",
            Wants::Number => "a number",
            Wants::Bool => "a bool",
            Wants::Texts => "text or bytes",
            Wants::Fields(_) => "a record",
            Wants::Anything => "a value of the table",
        }
    }
}
