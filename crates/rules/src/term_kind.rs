//! The kind of the terms of an index, and whether its rule can give any: both follow from the rules
//! of the table.
//!
//! A query of an index is parsed by the kind of its terms (`index_query.rs`); a rule that can never
//! give a term is refused when the index is made. How terms are taken (`extract.rs`) does not
//! depend on the kinds of fields and of folds of numbers that are given here.

use crate::codec::{ElementType, KeyCodec, ValueCodec};
use crate::folds::Record;
use crate::head::HeadRule;
use crate::table_rules::{BoundRules, FoldName};
use crate::terms::TermRule;

/// The kind of the terms of an index, as far as its rule says: how to parse a term in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// As in JSON: text, numbers as doubles, bools.
    Json,
    /// Byte strings.
    Bytes,
    /// Text.
    Text,
    /// Text, and byte strings if people cannot read them as text.
    TextOrBytes,
    /// Integers.
    Int,
    /// Times, which are integers: microseconds since 1970.
    Time,
    /// Numbers of 32 bits.
    Float,
    /// Doubles.
    Double,
    /// Any kind.
    Any,
}

impl TermKind {
    /// The kind, in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            TermKind::Json => "what JSON has",
            TermKind::Bytes => "byte strings",
            TermKind::Text => "text",
            TermKind::TextOrBytes => "text and byte strings",
            TermKind::Int => "whole numbers",
            TermKind::Time => "times",
            TermKind::Float | TermKind::Double => "numbers",
            TermKind::Any => "terms of any kind",
        }
    }
}

/// What values look like when terms are taken from them.
enum Shape {
    /// A term, or several of a kind.
    Terms(TermKind),
    /// These fields; a field without a kind has no terms.
    Fields(Vec<(String, Option<TermKind>)>),
    /// Fields of any name.
    AnyFields(TermKind),
    /// Nothing that is a term.
    Nothing,
    /// It depends on the values.
    Unknown,
}

fn shape_of(table: &BoundRules) -> Shape {
    match (table.opaque_codec(), &table.rules.fold) {
        (Some(ValueCodec::Bytes), _) => Shape::Terms(TermKind::Bytes),
        (Some(ValueCodec::Utf8), _) => Shape::Terms(TermKind::Text),
        (Some(codec), _) if codec.is_whole_number() => Shape::Terms(TermKind::Int),
        (Some(ValueCodec::F32), _) => Shape::Terms(TermKind::Double), // as they are shown
        (Some(ValueCodec::F64), _) => Shape::Terms(TermKind::Double),
        (Some(ValueCodec::Time), _) => Shape::Terms(TermKind::Time),
        (Some(_), _) | (None, FoldName::Custom { .. }) => Shape::Unknown,
        (None, FoldName::BuiltIn(spec)) => shape_of_fold(spec),
    }
}

fn shape_of_fold(spec: &str) -> Shape {
    if let Ok(record) = spec.parse::<Record>() {
        let kinds = (0..).map_while(|index| record.field_fold(index)).map(|fold| kind_in_field(&fold.spec()));
        return Shape::Fields(record.names().map(str::to_owned).zip(kinds).collect());
    }
    let fields = |whole: &[&str], others: &[&str]| {
        let of =
            |names: &[&str], kind| names.iter().map(move |name| ((*name).to_owned(), Some(kind))).collect();
        let (mut all, rest): (Vec<_>, Vec<_>) = (of(whole, TermKind::Int), of(others, TermKind::Double));
        all.extend(rest);
        Shape::Fields(all)
    };
    let mut words = spec.split(':');
    match (words.next().unwrap_or_default(), words.next()) {
        ("sum" | "min" | "max", Some("i64" | "u64" | "i128")) | ("bitmap" | "hll", _) => {
            Shape::Terms(TermKind::Int)
        }
        ("min" | "max", Some("time")) => Shape::Terms(TermKind::Time),
        ("sum" | "min" | "max", Some("f64")) => Shape::Terms(TermKind::Double),
        ("min" | "max", Some("bytes")) | ("append" | "set" | "intersect" | "replace" | "first", _) => {
            Shape::Terms(TermKind::Bytes)
        }
        ("stats", _) => fields(&["count"], &["sum", "min", "max", "mean", "variance"]),
        ("quantiles", _) => fields(&["count"], &["min", "p50", "p90", "p99", "max"]),
        ("lww", _) => Shape::Fields(vec![
            ("ts".to_owned(), Some(TermKind::Int)),
            ("value".to_owned(), Some(TermKind::TextOrBytes)),
        ]),
        ("counters", _) => Shape::AnyFields(TermKind::Int),
        ("patch", _) => Shape::Terms(TermKind::TextOrBytes),
        ("top" | "matmul", _) => Shape::Nothing,
        _ => Shape::Unknown,
    }
}

/// The kind of the terms of a field with this fold. Byte strings appear as they are shown.
fn kind_in_field(spec: &str) -> Option<TermKind> {
    match shape_of_fold(spec) {
        Shape::Terms(TermKind::Bytes) => Some(TermKind::TextOrBytes),
        Shape::Terms(kind) => Some(kind),
        Shape::Unknown => Some(TermKind::Any),
        Shape::Fields(_) | Shape::AnyFields(_) | Shape::Nothing => None,
    }
}

// ---- kinds --------------------------------------------------------------------------------------

/// The kind of the terms of a rule.
pub(crate) fn kind_of(rule: &TermRule, table: &BoundRules) -> TermKind {
    let fold = table.rules.fold.spec();
    match rule {
        TermRule::Json(_) | TermRule::Head(Some(_)) => TermKind::Json,
        TermRule::Head(None) => TermKind::Bytes,
        TermRule::Key(number) => kind_of_key(table.rules.key_codec(), *number),
        TermRule::Value => match (table.opaque_codec(), shape_of(table)) {
            (Some(ValueCodec::Json), _) => TermKind::Json,
            // These also decide how terms are taken, for all folds with names that begin and end
            // like this.
            (None, _) if fold.starts_with("json-merge") => TermKind::Json,
            (None, _) if ["set", "intersect", "append"].iter().any(|of| fold.starts_with(of)) => {
                TermKind::Bytes
            }
            (None, _) if fold.ends_with(":bytes") => TermKind::Bytes,
            (_, Shape::Terms(kind)) => kind,
            _ => TermKind::Any,
        },
        TermRule::Field(name) => match shape_of(table) {
            Shape::Fields(fields) => {
                fields.iter().find(|(of, _)| of == name).and_then(|(_, kind)| *kind).unwrap_or(TermKind::Any)
            }
            Shape::AnyFields(kind) => kind,
            Shape::Terms(_) | Shape::Nothing | Shape::Unknown => TermKind::Any,
        },
        TermRule::Tuple(_) | TermRule::Custom { .. } => TermKind::Any,
    }
}

fn kind_of_key(codec: &KeyCodec, number: u32) -> TermKind {
    match codec {
        KeyCodec::Bytes => TermKind::Bytes,
        KeyCodec::Utf8 => TermKind::Text,
        KeyCodec::U32 | KeyCodec::U64 | KeyCodec::I64 => TermKind::Int,
        KeyCodec::Time => TermKind::Time,
        KeyCodec::Tuple => TermKind::Any,
        KeyCodec::TypedTuple(types) => types.get(number as usize).map_or(TermKind::Any, kind_of_element),
    }
}

fn kind_of_element(element: &ElementType) -> TermKind {
    match element {
        ElementType::Text => TermKind::Text,
        ElementType::Bytes => TermKind::Bytes,
        ElementType::Int => TermKind::Int,
        ElementType::Time => TermKind::Time,
        ElementType::Float => TermKind::Float,
        ElementType::Double => TermKind::Double,
        ElementType::Optional(inner) => kind_of_element(inner),
        _ => TermKind::Any,
    }
}

// ---- rules that give nothing --------------------------------------------------------------------

/// Why no record of the table can have a term by this rule; none if one can.
pub fn why_no_terms(rule: &TermRule, table: &BoundRules) -> Option<String> {
    match rule {
        TermRule::Key(number) => no_element(table.rules.key_codec(), *number),
        TermRule::Head(_) if table.rules.head == HeadRule::None => Some(
            "the table has no heads, of which terms could be taken; tables have them by a rule `head`"
                .to_owned(),
        ),
        TermRule::Field(name) => no_field(table, name),
        TermRule::Value => no_value(table),
        TermRule::Tuple(_) if !takes(table, Raw::Bytes) => {
            Some(format!("{}, which are not tuples", values_of(table)))
        }
        TermRule::Json(_) if !takes(table, Raw::Text) => {
            Some(format!("{}, which are not JSON", values_of(table)))
        }
        TermRule::Tuple(_) | TermRule::Json(_) | TermRule::Head(_) | TermRule::Custom { .. } => None,
    }
}

fn no_element(codec: &KeyCodec, number: u32) -> Option<String> {
    let count = match codec {
        KeyCodec::Tuple => return None,
        KeyCodec::TypedTuple(types) => types.len(),
        _ => 1,
    };
    let has = match count {
        _ if (number as usize) < count => return None,
        1 => "key:0".to_owned(),
        count => format!("key:0 to key:{}", count - 1),
    };
    Some(format!("there is no element {number} in keys that are {codec}: they have {has}"))
}

fn no_field(table: &BoundRules, name: &str) -> Option<String> {
    match shape_of(table) {
        Shape::AnyFields(_) | Shape::Unknown => None,
        Shape::Terms(_) | Shape::Nothing => Some(format!("{}, which have no fields", values_of(table))),
        Shape::Fields(fields) => match fields.iter().find(|(of, _)| of == name) {
            Some((_, Some(_))) => None,
            Some((_, None)) => Some(format!("what is in field `{name}` has no terms{}", with_terms(&fields))),
            None => Some(format!("there is no field `{name}`{}", with_terms(&fields))),
        },
    }
}

fn no_value(table: &BoundRules) -> Option<String> {
    match shape_of(table) {
        Shape::Terms(_) | Shape::Unknown => None,
        Shape::Nothing => Some(format!("{}, which have no terms", values_of(table))),
        Shape::AnyFields(_) => Some(format!("{}, which have terms by field:NAME only", values_of(table))),
        Shape::Fields(fields) => {
            Some(format!("a value that is a record has no terms itself{}", with_terms(&fields)))
        }
    }
}

fn with_terms(fields: &[(String, Option<TermKind>)]) -> String {
    let names: Vec<&str> =
        fields.iter().filter(|(_, kind)| kind.is_some()).map(|(name, _)| name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("; fields with terms are {}", names.join(", ")),
    }
}

/// What the bytes of values may be, regardless of their meaning.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Raw {
    /// In a form of the fold, or numbers.
    Formed,
    /// Text, JSON maybe.
    Text,
    /// Any.
    Bytes,
}

fn takes(table: &BoundRules, wanted: Raw) -> bool {
    let raw = match (table.opaque_codec(), &table.rules.fold) {
        (Some(ValueCodec::Bytes), _) | (None, FoldName::Custom { .. }) => Raw::Bytes,
        (Some(ValueCodec::Utf8 | ValueCodec::Json), _) => Raw::Text,
        (Some(_), _) => Raw::Formed,
        (None, FoldName::BuiltIn(spec)) => match spec.split(':').next() {
            Some("append") => Raw::Bytes,
            Some("min" | "max") if spec.ends_with(":bytes") => Raw::Bytes,
            Some("json-merge") => Raw::Text,
            _ => Raw::Formed,
        },
    };
    raw >= wanted
}

fn values_of(table: &BoundRules) -> String {
    match table.opaque_codec() {
        Some(codec) => format!("values are {codec}"),
        None => format!("values are those of {}", table.rules.fold.spec()),
    }
}

#[cfg(test)]
#[path = "term_kind/tests.rs"]
mod tests;
