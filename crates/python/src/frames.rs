//! Rows of tables as columns of Arrow.
//!
//! ```text
//!   key (text, text), value {flights: sum:u64, delay: stats:f64}
//!   carrier | origin | flights | delay.count | delay.sum | ...
//! ```
//!
//! A key has a column for each element, by the names that the rules give. A number, text, bytes or
//! a bool is one column; what the fold shows as named numbers has one column for each, as
//! the command line prints them; anything else (sets, documents, numbers of 128 bits) is JSON text.
//! What fits no column is an error, and never null.

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
    /// As [`Shape::Unsigned`], with a sign.
    Signed,
    /// As they are.
    Bytes,
    /// As shown: the names of the columns lead to the parts.
    Shown,
    /// All of what is shown, as JSON text.
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

    /// Empty columns for rows.
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
                KeyCodec::I64 | KeyCodec::Time => DataType::Int64, // a time: microseconds since 1970
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
        ElementType::Int | ElementType::Time => DataType::Int64,
        ElementType::Float | ElementType::Double => DataType::Float64,
        ElementType::Bool => DataType::Boolean,
        ElementType::Bytes | ElementType::Stamp => DataType::Binary,
        _ => DataType::Utf8,
    };
    Field::new(name, of, true) // null in the results of get_many, too
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
    match spec.parse::<Record>() {
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

/// What the fold shows for the number 1. None if that is not an operand of the fold, or if the
/// names shown depend on the value, as with counters.
fn sample(fold: &dyn folddb::Fold) -> Option<Datum> {
    let shown = |number| {
        let mut operand = Vec::new();
        fold.read(&Datum::Int(number), &mut operand).ok()?;
        fold.show(&operand).ok()
    };
    let names = |shown: &Datum| match shown {
        Datum::Map(parts) => parts.iter().map(|(name, _)| name.clone()).collect(),
        _ => Vec::new(),
    };
    let (one, two) = (shown(1)?, shown(2)?);
    (names(&one) == names(&two)).then_some(one)
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
        Some(Datum::Int(_)) if spec.ends_with("128") => DataType::Utf8,
        Some(Datum::Int(_)) => DataType::Int64,
        Some(Datum::Float(_)) => DataType::Float64,
        _ => DataType::Utf8,
    };
    vec![Field::new(name, of, true)]
}

fn is_number(shown: &Datum) -> bool {
    matches!(shown, Datum::Int(_) | Datum::Float(_) | Datum::Null)
}

/// The most rows of a batch.
const BATCH_ROWS: usize = 65_536;

/// A batch ends with the row that fills this many bytes. An array of text or bytes holds 2 GiB.
const BATCH_BYTES: usize = 64 << 20;

/// Rows on their way into columns.
pub(crate) struct Rows<'f> {
    frame: &'f Frame,
    builders: Vec<Builder>,
    pub(crate) len: usize,
}

impl Rows<'_> {
    /// Whether the batch is full.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= BATCH_ROWS || self.builders.iter().map(Builder::len_bytes).sum::<usize>() >= BATCH_BYTES
    }

    /// # Errors
    /// The bytes are not a key or value of the table, or no column can hold the value.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.len += 1;
        self.push_key(key)?;
        let Some(value) = value else {
            self.builders[self.frame.key_columns..].iter_mut().for_each(Builder::null);
            return Ok(());
        };
        self.push_value(value).map_err(|cause| {
            let shown = self.frame.table.codec.show(key).map(|key| datum::json::text_of(&key));
            cause.context(format!("the key {}", shown.unwrap_or_default()))
        })
    }

    fn push_value(&mut self, value: &[u8]) -> Result<()> {
        let (frame, table) = (self.frame, &self.frame.table);
        let builders = &mut self.builders[frame.key_columns..];
        let fields = &frame.schema.fields()[frame.key_columns..];
        match frame.value {
            Shape::Unsigned | Shape::Signed => {
                let bytes = value.try_into().map_err(|_| wrong(table, "value"))?;
                match &mut builders[0] {
                    Builder::Unsigned(builder) => builder.append_value(u64::from_le_bytes(bytes)),
                    Builder::Int(builder) => builder.append_value(i64::from_le_bytes(bytes)),
                    other => other.null(),
                }
            }
            Shape::Bytes => builders[0].bytes(value).map_err(|unfit| unfit.of(table, fields[0].name()))?,
            Shape::Json => {
                let shown = table.values.show(&table.table, value)?;
                let text = datum::json::text_of(&shown);
                builders[0].text(&text).map_err(|unfit| unfit.of(table, fields[0].name()))?;
            }
            Shape::Shown => {
                let shown = table.values.show(&table.table, value)?;
                for (field, builder) in fields.iter().zip(builders) {
                    let shown = part(&shown, field.name()).unwrap_or(&Datum::Null);
                    builder.datum(shown).map_err(|unfit| unfit.of(table, field.name()))?;
                }
            }
        }
        Ok(())
    }

    fn push_key(&mut self, key: &[u8]) -> Result<()> {
        let table = &self.frame.table;
        let fields = self.frame.schema.fields();
        let wrong = || wrong(table, "key");
        let pushed = match (&*table.codec, &mut self.builders[0]) {
            (KeyCodec::Bytes, builder) => builder.bytes(key),
            (KeyCodec::Utf8, builder) => builder.text(std::str::from_utf8(key).map_err(|_| wrong())?),
            (KeyCodec::U64, Builder::Unsigned(builder)) => {
                builder.append_value(u64::from_be_bytes(key.try_into().map_err(|_| wrong())?));
                Ok(())
            }
            (KeyCodec::U32, Builder::Unsigned(builder)) => {
                builder.append_value(u32::from_be_bytes(key.try_into().map_err(|_| wrong())?).into());
                Ok(())
            }
            (KeyCodec::I64 | KeyCodec::Time, Builder::Int(builder)) => {
                let number = u64::from_be_bytes(key.try_into().map_err(|_| wrong())?);
                builder.append_value((number ^ (1 << 63)).cast_signed());
                Ok(())
            }
            (KeyCodec::TypedTuple(_), _) => {
                let elements = unpack(key).map_err(|_| wrong())?;
                for ((element, builder), field) in elements.iter().zip(&mut self.builders).zip(fields) {
                    builder.element(element).map_err(|unfit| unfit.of(table, field.name()))?;
                }
                Ok(())
            }
            (codec, builder) => {
                let shown = codec.show(key).map_err(|_| wrong())?;
                builder.text(&datum::json::text_of(&shown))
            }
        };
        pushed.map_err(|unfit| unfit.of(table, fields[0].name()))
    }

    /// The rows as columns.
    ///
    /// # Errors
    /// Only if this module has a mistake.
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

/// Why a column cannot hold something.
#[derive(Debug)]
enum Unfit {
    TooLong(usize),
    Other(String),
}

impl Unfit {
    fn of(self, table: &Placed, column: &str) -> Error {
        let name = table.name();
        match self {
            Unfit::TooLong(bytes) => Error::invalid(format!(
                "table `{name}`: {bytes} bytes are too long for the column `{column}` of Arrow"
            ))
            .advise("read it by `get` or `reader`"),
            Unfit::Other(shown) => {
                Error::invalid(format!("table `{name}`: {shown} does not fit the column `{column}` of Arrow"))
                    .advise("read the rows by `items`")
            }
        }
    }
}

type Fit = std::result::Result<(), Unfit>;

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

    /// How many bytes its text or byte strings have.
    fn len_bytes(&self) -> usize {
        match self {
            Builder::Text(builder) => builder.values_slice().len(),
            Builder::Bytes(builder) => builder.values_slice().len(),
            _ => 0,
        }
    }

    fn room(&self, bytes: usize) -> Fit {
        if self.len_bytes() + bytes > i32::MAX as usize { Err(Unfit::TooLong(bytes)) } else { Ok(()) }
    }

    fn text(&mut self, text: &str) -> Fit {
        self.room(text.len())?;
        match self {
            Builder::Text(builder) => builder.append_value(text),
            _ => return Err(Unfit::Other("text".to_owned())),
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Fit {
        self.room(bytes.len())?;
        match self {
            Builder::Bytes(builder) => builder.append_value(bytes),
            _ => return Err(Unfit::Other("bytes".to_owned())),
        }
        Ok(())
    }

    fn datum(&mut self, shown: &Datum) -> Fit {
        let unfit = || Unfit::Other(datum::json::text_of(shown));
        match (&mut *self, shown) {
            (_, Datum::Null) => self.null(),
            (Builder::Int(builder), Datum::Int(number)) => {
                builder.append_value(i64::try_from(*number).map_err(|_| unfit())?);
            }
            (Builder::Unsigned(builder), Datum::Int(number)) => {
                builder.append_value(u64::try_from(*number).map_err(|_| unfit())?);
            }
            (Builder::Float(builder), Datum::Float(number)) => builder.append_value(*number),
            (Builder::Float(builder), Datum::Int(number)) => builder.append_value(*number as f64),
            (Builder::Float(builder), Datum::Number(text)) => {
                builder.append_value(text.parse().map_err(|_| unfit())?);
            }
            (Builder::Bool(builder), Datum::Bool(value)) => builder.append_value(*value),
            (Builder::Bytes(_), Datum::Bytes(bytes)) => return self.bytes(bytes),
            (Builder::Text(_), Datum::Text(text)) => return self.text(text),
            (Builder::Text(_), shown) => return self.text(&datum::json::text_of(shown)),
            _ => return Err(unfit()),
        }
        Ok(())
    }

    fn element(&mut self, element: &Element<'_>) -> Fit {
        match (&mut *self, element) {
            (Builder::Text(_), Element::Text(text)) => self.text(text),
            (Builder::Bytes(_), Element::Bytes(bytes)) => self.bytes(bytes),
            (_, other) => self.datum(&other.show()),
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
