//! Rows of tables as columns of Arrow.
//!
//! ```text
//!   key (text, text), value {flights: sum:u64, delay: stats:f64}
//!   carrier | origin | flights | delay.count | delay.sum | ...
//! ```
//!
//! A key has a column for each element, by the names that the rules give. A number, text, bytes or
//! a truth value is one column; what the fold shows as named numbers has one for each, as the
//! command line prints them; anything else (sets, documents) is text of JSON.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use folddb::codec::tuple::{Element, unpack};
use folddb::codec::{ElementType, KeyCodec, ValueCodec};
use folddb::folds::Record;
use folddb::table_rules::{FoldName, TableRules};
use folddb::{Datum, Error, Result, datum};

use crate::place::Placed;
use crate::values::Values;

/// The columns of a table: their names and types, and how rows become them.
#[derive(Clone)]
pub(crate) struct Frame {
    table: Placed,
    pub(crate) schema: SchemaRef,
    key_columns: usize,
    value: Shape,
}

/// How a value becomes columns.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// Eight bytes, little-endian.
    Unsigned,
    /// The same, with a sign.
    Signed,
    /// As they are.
    Bytes,
    /// By what is shown: the names of the columns lead to its parts.
    Shown,
    /// All of what is shown, as text of JSON.
    Json,
}

impl Frame {
    pub(crate) fn of(table: &Placed) -> Frame {
        let rules = table.table.rules().as_table_rules();
        let mut fields = key_fields(rules, &table.codec);
        let key_columns = fields.len();
        let (value, shape) = value_fields(table, rules);
        fields.extend(value);
        Frame { table: table.clone(), schema: Arc::new(Schema::new(fields)), key_columns, value: shape }
    }

    /// Room for rows.
    pub(crate) fn rows(&self) -> Rows<'_> {
        let builders = self.schema.fields().iter().map(|field| Builder::of(field.data_type()));
        Rows { frame: self, builders: builders.collect(), len: 0 }
    }
}

fn key_fields(rules: &TableRules, codec: &KeyCodec) -> Vec<Field> {
    let names: Vec<&str> = rules.names_of_key().collect();
    let name =
        |index: usize| names.get(index).map_or_else(|| format!("key_{index}"), |&name| name.to_owned());
    match codec {
        KeyCodec::TypedTuple(types) => {
            let field = |(index, of)| element_field(&name(index), of);
            types.iter().enumerate().map(field).collect()
        }
        _ => {
            let name = names.first().copied().unwrap_or("key");
            let of = match codec {
                KeyCodec::Bytes => DataType::Binary,
                KeyCodec::I64 => DataType::Int64,
                KeyCodec::U32 | KeyCodec::U64 => DataType::UInt64,
                _ => DataType::Utf8,
            };
            vec![Field::new(name, of, true)]
        }
    }
}

fn element_field(name: &str, of: &ElementType) -> Field {
    let of = match of {
        ElementType::Optional(inner) => return element_field(name, inner),
        ElementType::Int => DataType::Int64,
        ElementType::Float | ElementType::Double => DataType::Float64,
        ElementType::Bool => DataType::Boolean,
        ElementType::Bytes | ElementType::Stamp => DataType::Binary,
        _ => DataType::Utf8,
    };
    Field::new(name, of, true) // in what get_many gives, too
}

fn value_fields(table: &Placed, rules: &TableRules) -> (Vec<Field>, Shape) {
    let one = |of, shape| (vec![Field::new("value", of, true)], shape);
    let spec = match &rules.fold {
        FoldName::BuiltIn(spec) => spec.trim(),
        FoldName::Custom { .. } => return one(DataType::Utf8, Shape::Json),
    };
    match (table.values, spec) {
        (Values::Bytes, _) => return one(DataType::Binary, Shape::Bytes),
        (Values::Text, _) => return one(DataType::Utf8, Shape::Shown),
        (Values::Json, _) => return one(DataType::Utf8, Shape::Json),
        (Values::Fold, "sum:u64") => return one(DataType::UInt64, Shape::Unsigned),
        (Values::Fold, "sum:i64") => return one(DataType::Int64, Shape::Signed),
        _ => {}
    }
    if matches!(spec, "replace" | "first") {
        return match rules.value_codec() {
            ValueCodec::U64 => one(DataType::UInt64, Shape::Unsigned),
            ValueCodec::I64 => one(DataType::Int64, Shape::Signed),
            ValueCodec::F32 | ValueCodec::F64 => one(DataType::Float64, Shape::Shown),
            ValueCodec::Bool => one(DataType::Boolean, Shape::Shown),
            ValueCodec::U128 | ValueCodec::I128 => one(DataType::Utf8, Shape::Shown),
            codec if codec.is_whole_number() => one(DataType::Int64, Shape::Shown),
            _ => one(DataType::Utf8, Shape::Json),
        };
    }
    match Record::parse(spec) {
        Ok(record) if spec.starts_with('{') => {
            let mut fields = Vec::new();
            for (index, name) in record.names().enumerate() {
                let Some(fold) = record.field_fold(index) else { continue };
                fields.extend(shown_fields(name, &fold.spec(), sample(fold).as_ref()));
            }
            (fields, Shape::Shown)
        }
        _ => {
            let shown = table.table.rules().fold().and_then(|fold| sample(&**fold));
            match shown {
                Some(Datum::List(_)) | None => one(DataType::Utf8, Shape::Json),
                shown => (shown_fields("value", spec, shown.as_ref()), Shape::Shown),
            }
        }
    }
}

/// What the fold shows of the number 1; none where that is no operand of it.
fn sample(fold: &dyn folddb::Fold) -> Option<Datum> {
    let mut operand = Vec::new();
    fold.read(&Datum::Int(1), &mut operand).ok()?;
    fold.show(&operand).ok()
}

fn shown_fields(name: &str, spec: &str, shown: Option<&Datum>) -> Vec<Field> {
    let of = match shown {
        Some(Datum::Map(parts)) if parts.iter().all(|(_, part)| is_number(part)) => {
            let prefix = if name == "value" { String::new() } else { format!("{name}.") };
            let part = |(part, shown): &(String, Datum)| {
                shown_fields(&format!("{prefix}{part}"), spec, Some(shown)).into_iter()
            };
            return parts.iter().flat_map(part).collect();
        }
        Some(Datum::Int(_)) if spec.ends_with(":u64") => DataType::UInt64,
        Some(Datum::Int(_)) => DataType::Int64,
        Some(Datum::Float(_)) => DataType::Float64,
        _ => DataType::Utf8,
    };
    vec![Field::new(name, of, true)]
}

fn is_number(shown: &Datum) -> bool {
    matches!(shown, Datum::Int(_) | Datum::Float(_) | Datum::Null)
}

/// Rows on their way into columns.
pub(crate) struct Rows<'f> {
    frame: &'f Frame,
    builders: Vec<Builder>,
    pub(crate) len: usize,
}

impl Rows<'_> {
    /// # Errors
    /// Bytes that are no key or value of the table.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.len += 1;
        self.push_key(key)?;
        let builders = &mut self.builders[self.frame.key_columns..];
        let Some(value) = value else {
            builders.iter_mut().for_each(Builder::null);
            return Ok(());
        };
        match self.frame.value {
            Shape::Unsigned | Shape::Signed => {
                let bytes = value.try_into().map_err(|_| wrong(&self.frame.table, "value"))?;
                match &mut builders[0] {
                    Builder::Unsigned(builder) => builder.append_value(u64::from_le_bytes(bytes)),
                    Builder::Int(builder) => builder.append_value(i64::from_le_bytes(bytes)),
                    other => other.null(),
                }
            }
            Shape::Bytes => builders[0].bytes(value),
            Shape::Json => {
                let shown = self.frame.table.values.show(&self.frame.table.table, value)?;
                builders[0].text(&datum::json::text_of(&shown));
            }
            Shape::Shown => {
                let shown = self.frame.table.values.show(&self.frame.table.table, value)?;
                let fields = &self.frame.schema.fields()[self.frame.key_columns..];
                for (field, builder) in fields.iter().zip(builders) {
                    match part(&shown, field.name()) {
                        Some(shown) => builder.datum(shown),
                        None => builder.null(),
                    }
                }
            }
        }
        Ok(())
    }

    fn push_key(&mut self, key: &[u8]) -> Result<()> {
        let table = &self.frame.table;
        let wrong = || wrong(table, "key");
        match (&*table.codec, &mut self.builders[0]) {
            (KeyCodec::Bytes, builder) => builder.bytes(key),
            (KeyCodec::Utf8, builder) => builder.text(std::str::from_utf8(key).map_err(|_| wrong())?),
            (KeyCodec::U64, Builder::Unsigned(builder)) => {
                builder.append_value(u64::from_be_bytes(key.try_into().map_err(|_| wrong())?));
            }
            (KeyCodec::U32, Builder::Unsigned(builder)) => {
                builder.append_value(u32::from_be_bytes(key.try_into().map_err(|_| wrong())?).into());
            }
            (KeyCodec::I64, Builder::Int(builder)) => {
                let number = u64::from_be_bytes(key.try_into().map_err(|_| wrong())?);
                builder.append_value((number ^ (1 << 63)).cast_signed());
            }
            (KeyCodec::TypedTuple(_), _) => {
                let elements = unpack(key).map_err(|_| wrong())?;
                for (element, builder) in elements.iter().zip(&mut self.builders) {
                    builder.element(element);
                }
            }
            (codec, builder) => {
                let shown = codec.show(key).map_err(|_| wrong())?;
                builder.text(&datum::json::text_of(&shown));
            }
        }
        Ok(())
    }

    /// The rows as columns.
    ///
    /// # Errors
    /// Never, but for a mistake in here.
    pub(crate) fn finish(mut self) -> std::result::Result<RecordBatch, ArrowError> {
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        RecordBatch::try_new(Arc::clone(&self.frame.schema), columns)
    }
}

/// The part of what is shown that a column holds.
fn part<'d>(shown: &'d Datum, name: &str) -> Option<&'d Datum> {
    let Datum::Map(_) = shown else { return Some(shown) };
    match shown.field(name) {
        Some(part) => Some(part),
        None => name.split_once('.').and_then(|(field, part)| shown.field(field)?.field(part)),
    }
}

fn wrong(table: &Placed, what: &str) -> Error {
    Error::invalid(format!("table `{}` has a {what} that is not of its type", table.name()))
}

enum Builder {
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Int(Int64Builder),
    Unsigned(UInt64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
}

impl Builder {
    fn of(of: &DataType) -> Builder {
        match of {
            DataType::Binary => Builder::Bytes(BinaryBuilder::new()),
            DataType::Int64 => Builder::Int(Int64Builder::new()),
            DataType::UInt64 => Builder::Unsigned(UInt64Builder::new()),
            DataType::Float64 => Builder::Float(Float64Builder::new()),
            DataType::Boolean => Builder::Bool(BooleanBuilder::new()),
            _ => Builder::Text(StringBuilder::new()),
        }
    }

    fn null(&mut self) {
        match self {
            Builder::Text(builder) => builder.append_null(),
            Builder::Bytes(builder) => builder.append_null(),
            Builder::Int(builder) => builder.append_null(),
            Builder::Unsigned(builder) => builder.append_null(),
            Builder::Float(builder) => builder.append_null(),
            Builder::Bool(builder) => builder.append_null(),
        }
    }

    fn text(&mut self, text: &str) {
        match self {
            Builder::Text(builder) => builder.append_value(text),
            other => other.null(),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match self {
            Builder::Bytes(builder) => builder.append_value(bytes),
            other => other.null(),
        }
    }

    /// What does not fit the column is null: a number of more than 64 bits, say.
    fn datum(&mut self, shown: &Datum) {
        match (self, shown) {
            (Builder::Int(builder), Datum::Int(number)) => builder.append_option(i64::try_from(*number).ok()),
            (Builder::Unsigned(builder), Datum::Int(number)) => {
                builder.append_option(u64::try_from(*number).ok());
            }
            (Builder::Float(builder), Datum::Float(number)) => builder.append_value(*number),
            (Builder::Float(builder), Datum::Int(number)) => builder.append_value(*number as f64),
            (Builder::Bool(builder), Datum::Bool(value)) => builder.append_value(*value),
            (Builder::Bytes(builder), Datum::Bytes(bytes)) => builder.append_value(bytes),
            (Builder::Text(builder), Datum::Text(text)) => builder.append_value(text),
            (Builder::Text(builder), shown) if *shown != Datum::Null => {
                builder.append_value(datum::json::text_of(shown));
            }
            (builder, _) => builder.null(),
        }
    }

    fn element(&mut self, element: &Element<'_>) {
        match (self, element) {
            (Builder::Text(builder), Element::Text(text)) => builder.append_value(text),
            (Builder::Bytes(builder), Element::Bytes(bytes)) => builder.append_value(bytes),
            (builder, other) => builder.datum(&other.show()),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Bytes(builder) => Arc::new(builder.finish()),
            Builder::Int(builder) => Arc::new(builder.finish()),
            Builder::Unsigned(builder) => Arc::new(builder.finish()),
            Builder::Float(builder) => Arc::new(builder.finish()),
            Builder::Bool(builder) => Arc::new(builder.finish()),
        }
    }
}
