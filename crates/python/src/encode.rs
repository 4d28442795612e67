//! Rows of columns as the bytes of keys and operands, without a row of Python in between.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use folddb::codec::{ElementType, KeyCodec};
use folddb::folds::Record;
use folddb::table_rules::FoldName;
use folddb::{Datum, datum};

use crate::cells::{Cells, sort_of};
use crate::columns::{Column, Source};
use crate::keys::ordered;
use crate::place::Placed;
use crate::values::Values;

/// How a row becomes a key and a value.
pub(crate) struct Encoder<'t> {
    table: &'t Placed,
    keys: Keys,
    values: Shape,
    /// The columns of values begin here; those of keys come before.
    first_value: usize,
}

enum Keys {
    Encoded,
    One,
    Tuple,
}

enum Shape {
    Encoded,
    One,
    /// Documents. Their members are the columns of values by these names.
    Documents(Vec<String>),
    /// For each field of the record, the index of its column.
    Record(Record, Vec<Option<usize>>),
    /// There are no values.
    Nothing,
}

/// A row, encoded.
pub(crate) enum Row {
    /// It has a key and a value.
    Whole,
    /// Its value is null: there is nothing to fold.
    Nothing,
}

impl<'t> Encoder<'t> {
    /// # Errors
    /// More columns than the table can have, or names that it cannot have.
    pub(crate) fn new(
        table: &'t Placed,
        keys: &Source,
        values: Option<&Source>,
    ) -> Result<Encoder<'t>, String> {
        let (keys, first_value) = key_shape(&table.codec, keys)?;
        let values = values.map_or(Ok(Shape::Nothing), |values| value_shape(table, values))?;
        Ok(Encoder { table, keys, values, first_value })
    }

    /// True when the types of the columns ensure that every row fits. Constants are not checked
    /// here: the first rows show whether they fit.
    pub(crate) fn is_total(&self, keys: &[&Column], values: &[&Column]) -> bool {
        let are_keys = match (&self.keys, &*self.table.codec) {
            (Keys::Encoded, _) => return false,
            (Keys::Tuple, KeyCodec::TypedTuple(types)) => {
                types.iter().zip(keys).all(|(of, column)| is_of_element(of, column))
            }
            (Keys::Tuple, _) => false,
            (Keys::One, codec) => is_of_codec(codec, keys[0]),
        };
        are_keys && matches!((&self.values, values), (Shape::One, [column]) if self.is_of_fold(column))
    }

    /// Whether values are a column of numbers.
    pub(crate) fn takes_numbers(&self, values: &Source) -> bool {
        match (&self.values, values.columns().as_slice()) {
            (Shape::One, [Column::Arrays { of, .. }]) => {
                matches!(sort_of(of), Some(DataType::Int64 | DataType::UInt64 | DataType::Float64))
            }
            _ => false,
        }
    }

    /// The number that is the value of a row; none if it is null.
    pub(crate) fn number(&self, cells: &[Cells], row: usize) -> Option<f64> {
        let cells = &cells[self.first_value];
        cells.float(row).or_else(|| cells.int(row).map(|number| number as f64))
    }

    fn is_of_fold(&self, column: &Column) -> bool {
        let Column::Arrays { of, .. } = column else { return true };
        let is_signed = matches!(of, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64);
        let is_unsigned =
            matches!(of, DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64);
        let is_float = matches!(of, DataType::Float16 | DataType::Float32 | DataType::Float64);
        let FoldName::BuiltIn(spec) = &self.table.table.rules().as_table_rules().fold else { return false };
        match spec.trim() {
            "stats:f64" | "sum:f64" | "min:f64" | "max:f64" => is_signed || is_unsigned || is_float,
            "sum:i64" | "min:i64" | "max:i64" => is_signed,
            "sum:u64" | "min:u64" | "max:u64" => is_unsigned,
            _ => false,
        }
    }

    /// Appends the bytes of the key of a row.
    ///
    /// # Errors
    /// It is not a key of the table; says why.
    #[inline]
    pub(crate) fn key(&self, cells: &[Cells], row: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let fits = match (&self.keys, &*self.table.codec) {
            (Keys::Encoded, _) => {
                return cells[0].bytes(row).map(|b| out.extend_from_slice(b)).ok_or_else(null);
            }
            (Keys::Tuple, KeyCodec::TypedTuple(types)) => {
                types.iter().zip(cells).all(|(of, cells)| cells.put(of, row, out))
            }
            (Keys::Tuple, _) => {
                let any = ElementType::Any;
                cells[..self.first_value].iter().all(|cells| cells.put(&any, row, out))
            }
            (Keys::One, codec) => put_key(codec, &cells[0], row, out),
        };
        if fits { Ok(()) } else { Err(self.wrong_key(cells, row)) }
    }

    #[cold]
    fn wrong_key(&self, cells: &[Cells], row: usize) -> String {
        let elements = cells[..self.first_value].iter().map(|cells| cells.datum(row).unwrap_or(Datum::Null));
        let shown = Datum::List(elements.collect());
        format!("the key {} is not of type {}", datum::json::text_of(&shown), self.table.codec)
    }

    /// Appends the bytes of the value of a row, which has the key that was given last.
    ///
    /// # Errors
    /// It is not a value of the table; says why.
    #[inline]
    pub(crate) fn value(&self, cells: &[Cells], row: usize, out: &mut Vec<u8>) -> Result<Row, String> {
        let cells = &cells[self.first_value..];
        match &self.values {
            Shape::Nothing => Ok(Row::Nothing),
            Shape::Encoded => match cells[0].bytes(row) {
                Some(bytes) => {
                    out.extend_from_slice(bytes);
                    Ok(Row::Whole)
                }
                None => Ok(Row::Nothing),
            },
            Shape::One => self.one(&cells[0], row, out),
            Shape::Documents(names) => {
                let member = |(name, cells): (&String, &Cells)| Ok((name.clone(), cells.datum(row)?));
                let members = names.iter().zip(cells).map(member).collect::<Result<_, String>>()?;
                self.document(Datum::Map(members), out)
            }
            Shape::Record(record, columns) => {
                let is_null = |column: &Option<usize>| column.is_none_or(|column| cells[column].is_null(row));
                if columns.iter().all(is_null) {
                    return Ok(Row::Nothing);
                }
                let mut unfit = None;
                let field = |index: usize| {
                    let cells = columns[index].map(|column| &cells[column])?;
                    let datum = cells.datum(row).and_then(|datum| {
                        self.table.wants.check_field(index, &datum)?;
                        Ok(datum)
                    });
                    datum.map_err(|why| unfit.get_or_insert(why)).ok()
                };
                let read = record.read_columns(field, out).map_err(|cause| cause.to_string());
                unfit.map_or(read, Err).map(|()| Row::Whole)
            }
        }
    }

    fn document(&self, datum: Datum, out: &mut Vec<u8>) -> Result<Row, String> {
        let read = self.table.table.rules().read_value(&datum, out);
        read.map_err(|cause| format!("the value {datum} does not fit: {cause}"))?;
        Ok(Row::Whole)
    }

    #[inline]
    fn one(&self, cells: &Cells, row: usize, out: &mut Vec<u8>) -> Result<Row, String> {
        if cells.is_null(row) {
            return Ok(Row::Nothing);
        }
        match (self.table.values, cells) {
            (Values::Bytes, _) => match cells.bytes(row) {
                Some(bytes) => out.extend_from_slice(bytes),
                None => return Err("the value is not bytes".to_owned()),
            },
            (Values::Text, _) => match cells.text(row) {
                Some(text) => out.extend_from_slice(text.as_bytes()),
                None => return Err("the value is not text".to_owned()),
            },
            _ => {
                let datum = cells.datum(row)?;
                if self.table.wants.is_null(&datum) {
                    return Ok(Row::Nothing);
                }
                let datum = match (self.table.values, datum) {
                    (Values::Json, text @ Datum::Text(_)) => Datum::Text(datum::json::text_of(&text)),
                    (_, datum) => datum,
                };
                let unfit = |why: String| format!("the value {datum} does not fit: {why}");
                self.table.wants.check(&datum).map_err(unfit)?;
                let read = self.table.table.rules().read_value(&datum, out);
                read.map_err(|cause| unfit(cause.to_string()))?;
            }
        }
        Ok(Row::Whole)
    }
}

fn null() -> String {
    "the key is null".to_owned()
}

/// A longer element may make a key too long.
const TEXT_BYTES_MAX: usize = 1_000;

fn is_of_element(of: &ElementType, column: &Column) -> bool {
    let Column::Arrays { arrays, of: column } = column else { return true };
    let fits = match (of, column) {
        (ElementType::Optional(inner), _) => return is_of_sort(inner, column) && arrays.iter().all(is_short),
        (of, column) => is_of_sort(of, column),
    };
    fits && arrays.iter().all(|array| array.logical_null_count() == 0 && is_short(array))
}

fn is_of_sort(of: &ElementType, column: &DataType) -> bool {
    let Some(sort) = sort_of(column) else { return false };
    match of {
        ElementType::Text => sort == DataType::Utf8,
        ElementType::Bytes => sort == DataType::Binary,
        ElementType::Int => sort == DataType::Int64 || sort == DataType::UInt64,
        ElementType::Double => sort == DataType::Float64,
        ElementType::Bool => sort == DataType::Boolean,
        _ => false,
    }
}

/// Whether nothing in the array is long. False if that is not known without reading the cells.
fn is_short(array: &ArrayRef) -> bool {
    let fits = |bytes: i64| usize::try_from(bytes).is_ok_and(|bytes| bytes <= TEXT_BYTES_MAX);
    match array.data_type() {
        DataType::Utf8 => {
            array.as_string::<i32>().offsets().windows(2).all(|ends| fits((ends[1] - ends[0]).into()))
        }
        DataType::LargeUtf8 => {
            array.as_string::<i64>().offsets().windows(2).all(|ends| fits(ends[1] - ends[0]))
        }
        DataType::Dictionary(..) => is_short(array.as_any_dictionary().values()),
        of => !matches!(sort_of(of), Some(DataType::Utf8 | DataType::Binary)),
    }
}

fn is_of_codec(codec: &KeyCodec, column: &Column) -> bool {
    match codec {
        KeyCodec::Utf8 => is_of_element(&ElementType::Text, column),
        KeyCodec::I64 => {
            is_of_element(&ElementType::Int, column)
                && !matches!(column, Column::Arrays { of: DataType::UInt64, .. })
        }
        KeyCodec::U64 => {
            let is_unsigned = |of: &DataType| {
                matches!(of, DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64)
            };
            is_of_element(&ElementType::Int, column)
                && matches!(column, Column::Arrays { of, .. } if is_unsigned(of))
        }
        _ => false,
    }
}

/// Appends a key that is not a tuple. False if the cell is not a key of this codec.
#[inline]
fn put_key(codec: &KeyCodec, cells: &Cells, row: usize, out: &mut Vec<u8>) -> bool {
    match codec {
        KeyCodec::Bytes => cells.bytes(row).map(|bytes| out.extend_from_slice(bytes)),
        KeyCodec::Utf8 => cells.text(row).map(|text| out.extend_from_slice(text.as_bytes())),
        KeyCodec::U32 => number::<u32>(cells, row).map(|n| out.extend_from_slice(&n.to_be_bytes())),
        KeyCodec::U64 => number::<u64>(cells, row).map(|n| out.extend_from_slice(&n.to_be_bytes())),
        KeyCodec::I64 => number::<i64>(cells, row).map(|n| out.extend_from_slice(&ordered(n))),
        KeyCodec::Time => return cells.put_key(codec, row, out),
        _ => None, // no column of numbers, text or bytes is such a key
    }
    .is_some()
}

fn number<T: TryFrom<i128>>(cells: &Cells, row: usize) -> Option<T> {
    T::try_from(cells.int(row)?).ok()
}

/// Puts columns of keys into the order of the elements, if both have names.
///
/// # Errors
/// A column has a name that no element has, or an element has no column.
pub(crate) fn by_name(table: &Placed, keys: Source) -> Result<Source, String> {
    let rules = table.table.rules().as_table_rules();
    let wanted: Vec<&str> = rules.names_of_key().collect();
    let mut columns = match keys {
        Source::Columns(columns) if columns.len() > 1 && columns.len() == wanted.len() => columns,
        other => return Ok(other),
    };
    if columns.iter().any(|(name, _)| name.is_none()) {
        return Ok(Source::Columns(columns));
    }
    let place = |name: &Option<String>| wanted.iter().position(|wanted| Some(*wanted) == name.as_deref());
    let mut places: Vec<Option<usize>> = columns.iter().map(|(name, _)| place(name)).collect();
    places.sort_unstable();
    if places.iter().enumerate().any(|(index, place)| *place != Some(index)) {
        let given: Vec<&str> = columns.iter().filter_map(|(name, _)| name.as_deref()).collect();
        return Err(format!(
            "its keys are made of the columns {}, not of {}: rename these, or give a tuple of columns, which go by their order",
            wanted.join(", "),
            given.join(", ")
        ));
    }
    columns.sort_by_key(|(name, _)| place(name));
    Ok(Source::Columns(columns))
}

fn key_shape(codec: &KeyCodec, keys: &Source) -> Result<(Keys, usize), String> {
    let Source::Columns(columns) = keys else { return Ok((Keys::Encoded, 1)) };
    if let [(None, Column::Arrays { of: DataType::Struct(_), .. })] = columns.as_slice() {
        return Err("a row of keys is null as a whole: give its columns".to_owned());
    }
    let wanted = match codec {
        KeyCodec::TypedTuple(types) => types.len(),
        KeyCodec::Tuple => columns.len(),
        _ => 1,
    };
    if columns.len() != wanted {
        return Err(format!("keys of type {codec} are made of {wanted} columns, not of {}", columns.len()));
    }
    Ok((if codec.is_tuple() { Keys::Tuple } else { Keys::One }, wanted))
}

fn value_shape(table: &Placed, values: &Source) -> Result<Shape, String> {
    let Source::Columns(columns) = values else { return Ok(Shape::Encoded) };
    let record = match &table.table.rules().as_table_rules().fold {
        FoldName::BuiltIn(spec) if spec.trim_start().starts_with('{') => spec.parse::<Record>().ok(),
        _ => None,
    };
    if table.values == Values::Json && columns.iter().all(|(name, _)| name.is_some()) {
        return Ok(Shape::Documents(columns.iter().filter_map(|(name, _)| name.clone()).collect()));
    }
    let Some(record) = record else {
        return match columns.as_slice() {
            [_] => Ok(Shape::One),
            several => Err(format!("a value is made of one column, not of {}", several.len())),
        };
    };
    if let [
        (
            None,
            Column::Constant(Datum::Map(_) | Datum::Null) | Column::Arrays { of: DataType::Struct(_), .. },
        ),
    ] = columns.as_slice()
    {
        return Ok(Shape::One);
    }
    let names: Vec<&str> = record.names().collect();
    let is_field = |name: &Option<String>| name.as_ref().is_some_and(|name| names.contains(&name.as_str()));
    if let Some((name, _)) = columns.iter().find(|(name, _)| !is_field(name)) {
        let name = name.as_deref().unwrap_or("one without a name");
        return Err(format!("the record has no field `{name}`; its fields are {}", names.join(", ")));
    }
    let place = |field: &&str| columns.iter().position(|(name, _)| name.as_deref() == Some(*field));
    let places = names.iter().map(place).collect();
    Ok(Shape::Record(record, places))
}
