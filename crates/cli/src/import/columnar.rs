//! Parquet and Arrow files as lines of JSON, a batch of rows at a time, so that they are read as
//! all other files are: nested columns by pointer, lists by element.
//!
//! ```text
//!   true, 17, 2.5, 12.50 (decimal)      as they are; what is no number: "NaN", "inf", "-inf"
//!   text, a dictionary of values        as they are
//!   bytes                               {"$hex":"00ff"}
//!   a date, a time of day               "2013-01-01", "05:15:00"
//!   a timestamp                         "2013-01-01T05:15:00.25Z"; without the Z if the file names no zone
//!   a list, a struct, a map of texts    as such
//! ```
//!
//! Only a file that is whole is one: both kinds end with the letters that they begin with.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, DataType, Schema, TimeUnit};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::failure::Failure;

const PARQUET: &[u8] = b"PAR1";
const ARROW: &[u8] = b"ARROW1";
/// Rows that are made text together.
const BATCH_ROWS: usize = 1024;
const BUFFER_BYTES: usize = 1 << 18;

/// The rows of a file as lines of JSON.
pub(crate) struct Content {
    pub(crate) reader: Box<dyn BufRead>,
    /// How much of the file they are, so far.
    pub(crate) bytes_read: Arc<AtomicU64>,
}

/// Opens a file of one of these kinds; none if it is of another one.
pub(crate) fn open(file: &File, path: &str, bytes: u64) -> Result<Option<Content>, Failure> {
    let has = |magic: &[u8]| is_between(file, bytes, magic);
    let failed = |error: io::Error| Failure::file("read", path, &error);
    let (is_parquet, is_arrow) = (has(PARQUET).map_err(failed)?, has(ARROW).map_err(failed)?);
    if !is_parquet && !is_arrow {
        return Ok(None);
    }
    let file = file.try_clone().map_err(failed)?;
    let opened = guarded(|| if is_parquet { parquet(file) } else { arrow(file) });
    let Opened { batches, schema, rows } = opened.map_err(|error| damaged(path, &error))?;
    check(path, &schema)?;
    let bytes_read = Arc::new(AtomicU64::new(0));
    let progress = Progress { bytes, rows, rows_read: 0, bytes_read: Arc::clone(&bytes_read) };
    let lines = Lines { batches, text: Vec::new(), at: 0, progress };
    let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, lines));
    Ok(Some(Content { reader, bytes_read }))
}

/// Whether a file begins and ends with these letters.
fn is_between(file: &File, bytes: u64, magic: &[u8]) -> io::Result<bool> {
    let len = magic.len() as u64;
    if bytes < 2 * len {
        return Ok(false);
    }
    let mut found = vec![0; magic.len()];
    for at in [0, bytes - len] {
        file.read_exact_at(&mut found, at)?;
        if found != magic {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a library reads of a file, also where it meets damage that it does not expect.
fn guarded<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    read.unwrap_or_else(|_| Err(ArrowError::ParseError("it has no form that is known".to_owned())))
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

struct Opened {
    batches: Batches,
    schema: Arc<Schema>,
    /// How many there are, if that is known.
    rows: Option<u64>,
}

fn parquet(file: File) -> Result<Opened, ArrowError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?.with_batch_size(BATCH_ROWS);
    let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).ok();
    let schema = Arc::clone(builder.schema());
    Ok(Opened { batches: Box::new(builder.build()?), schema, rows })
}

fn arrow(file: File) -> Result<Opened, ArrowError> {
    let reader = FileReader::try_new(BufReader::with_capacity(BUFFER_BYTES, file), None)?;
    let schema = reader.schema();
    Ok(Opened { batches: Box::new(reader), schema, rows: None })
}

fn damaged(path: &str, error: &ArrowError) -> Failure {
    Failure::Refused(format!("{path} cannot be read: {error}; it is damaged, or of a form that is not known"))
}

/// Refuses a file with columns that have no JSON, before a row of it is taken.
fn check(path: &str, schema: &Schema) -> Result<(), Failure> {
    let odd = schema.fields().iter().find(|field| !has_json(field.data_type()));
    odd.map_or(Ok(()), |field| {
        let (name, kind) = (field.name(), field.data_type());
        Err(Failure::Usage(format!(
            "{path}: column `{name}` is {kind}, which import does not read (leave it out: duckdb -c \"copy (select * \
             exclude (\\\"{name}\\\") from '{path}') to 'other.parquet'\")"
        )))
    })
}

fn has_json(of: &DataType) -> bool {
    use DataType::{
        Dictionary, FixedSizeList, Interval, LargeList, LargeListView, List, ListView, Map, RunEndEncoded,
        Struct, Union,
    };
    match of {
        Interval(_) | Union(..) | RunEndEncoded(..) | ListView(_) | LargeListView(_) => false,
        List(item) | LargeList(item) | FixedSizeList(item, _) => has_json(item.data_type()),
        Struct(fields) => fields.iter().all(|field| has_json(field.data_type())),
        Map(entries, _) => match entries.data_type() {
            Struct(fields) if fields.len() == 2 => {
                is_text(fields[0].data_type()) && has_json(fields[1].data_type())
            }
            _ => false,
        },
        Dictionary(_, value) => has_json(value),
        _ => true,
    }
}

fn is_text(of: &DataType) -> bool {
    matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// How far the file is read.
struct Progress {
    bytes: u64,
    rows: Option<u64>,
    rows_read: u64,
    bytes_read: Arc<AtomicU64>,
}

impl Progress {
    fn add(&mut self, rows: usize) {
        self.rows_read += rows as u64;
        let of = self.rows.unwrap_or(0).max(self.rows_read).max(1);
        let bytes = u128::from(self.bytes) * u128::from(self.rows_read) / u128::from(of);
        let known = if self.rows.is_some() { bytes as u64 } else { 0 };
        self.bytes_read.store(known, Ordering::Relaxed);
    }
}

/// The rows as text.
struct Lines {
    batches: Batches,
    text: Vec<u8>,
    at: usize,
    progress: Progress,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() {
            let batch = guarded(|| self.batches.next().transpose());
            let batch = batch.map_err(|error| io::Error::other(format!("it is damaged: {error}")))?;
            let Some(batch) = batch else { return Ok(0) };
            self.text.clear();
            self.at = 0;
            put_rows(&batch, &mut self.text).map_err(io::Error::other)?;
            self.progress.add(batch.num_rows());
        }
        let rest = &self.text[self.at..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}

fn put_rows(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), String> {
    let schema = batch.schema();
    let names: Vec<String> = schema.fields().iter().map(|field| json_text(field.name())).collect();
    for row in 0..batch.num_rows() {
        for (index, name) in names.iter().enumerate() {
            out.push(if index == 0 { b'{' } else { b',' });
            out.extend_from_slice(name.as_bytes());
            out.push(b':');
            put(batch.column(index).as_ref(), row, out)?;
        }
        out.extend_from_slice(if names.is_empty() { b"{}\n" } else { b"}\n" });
    }
    Ok(())
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Appends a value as JSON.
fn put(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
    if array.is_null(row) {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match array.data_type() {
        DataType::Null => out.extend_from_slice(b"null"),
        DataType::Boolean => put_plain(array.as_boolean().value(row), out),
        DataType::Utf8 => put_text(array.as_string::<i32>().value(row), out),
        DataType::LargeUtf8 => put_text(array.as_string::<i64>().value(row), out),
        DataType::Utf8View => put_text(array.as_string_view().value(row), out),
        DataType::Binary => put_bytes(array.as_binary::<i32>().value(row), out),
        DataType::LargeBinary => put_bytes(array.as_binary::<i64>().value(row), out),
        DataType::BinaryView => put_bytes(array.as_binary_view().value(row), out),
        DataType::FixedSizeBinary(_) => put_bytes(array.as_fixed_size_binary().value(row), out),
        DataType::List(_) => put_list(array.as_list::<i32>().value(row).as_ref(), out)?,
        DataType::LargeList(_) => put_list(array.as_list::<i64>().value(row).as_ref(), out)?,
        DataType::FixedSizeList(..) => put_list(array.as_fixed_size_list().value(row).as_ref(), out)?,
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| field.name().as_str());
            put_object(
                fields.zip(array.as_struct().columns()).map(|(name, of)| (name, of.as_ref(), row)),
                out,
            )?;
        }
        DataType::Map(..) => put_map(array, row, out)?,
        DataType::Dictionary(key, _) => put_of_dictionary(array, key, row, out)?,
        other if other.is_temporal() => put_time(array, row, out)?,
        _ => put_number(array, row, out)?,
    }
    Ok(())
}

fn put_plain(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(json_text(text).as_bytes());
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"$hex":""#);
    bytes.iter().for_each(|byte| out.extend_from_slice(format!("{byte:02x}").as_bytes()));
    out.extend_from_slice(br#""}"#);
}

fn put_list(items: &dyn Array, out: &mut Vec<u8>) -> Result<(), String> {
    out.push(b'[');
    for item in 0..items.len() {
        if item > 0 {
            out.push(b',');
        }
        put(items, item, out)?;
    }
    out.push(b']');
    Ok(())
}

fn put_object<'a>(
    fields: impl Iterator<Item = (&'a str, &'a dyn Array, usize)>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    out.push(b'{');
    for (index, (name, array, row)) in fields.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_text(name, out);
        out.push(b':');
        put(array, row, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn put_map(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let entries = array.as_map().value(row);
    let (names, values) = (entries.column(0), entries.column(1));
    let mut texts = Vec::with_capacity(entries.len());
    for entry in 0..entries.len() {
        texts.push(match names.data_type() {
            DataType::Utf8 => names.as_string::<i32>().value(entry),
            DataType::LargeUtf8 => names.as_string::<i64>().value(entry),
            _ => names.as_string_view().value(entry),
        });
    }
    put_object(texts.into_iter().enumerate().map(|(entry, name)| (name, values.as_ref(), entry)), out)
}

fn put_of_dictionary(array: &dyn Array, key: &DataType, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
    fn place<K: ArrowDictionaryKeyType>(array: &dyn Array, row: usize) -> Option<usize> {
        array.as_dictionary::<K>().key(row)
    }
    let at = match key {
        DataType::Int8 => place::<Int8Type>(array, row),
        DataType::Int16 => place::<Int16Type>(array, row),
        DataType::Int32 => place::<Int32Type>(array, row),
        DataType::Int64 => place::<Int64Type>(array, row),
        DataType::UInt8 => place::<UInt8Type>(array, row),
        DataType::UInt16 => place::<UInt16Type>(array, row),
        DataType::UInt32 => place::<UInt32Type>(array, row),
        _ => place::<UInt64Type>(array, row),
    };
    let values = array.as_any_dictionary().values();
    match at.filter(|at| *at < values.len()) {
        Some(at) => put(values.as_ref(), at, out),
        None => Err("a value is not in the dictionary of its column".to_owned()),
    }
}

fn number<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

fn put_number(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
    match array.data_type() {
        DataType::Int8 => put_plain(number::<Int8Type>(array, row), out),
        DataType::Int16 => put_plain(number::<Int16Type>(array, row), out),
        DataType::Int32 => put_plain(number::<Int32Type>(array, row), out),
        DataType::Int64 => put_plain(number::<Int64Type>(array, row), out),
        DataType::UInt8 => put_plain(number::<UInt8Type>(array, row), out),
        DataType::UInt16 => put_plain(number::<UInt16Type>(array, row), out),
        DataType::UInt32 => put_plain(number::<UInt32Type>(array, row), out),
        DataType::UInt64 => put_plain(number::<UInt64Type>(array, row), out),
        DataType::Float16 => put_float(number::<Float16Type>(array, row).to_f32(), out),
        DataType::Float32 => put_float(number::<Float32Type>(array, row), out),
        DataType::Float64 => put_float(number::<Float64Type>(array, row), out),
        DataType::Decimal32(..) => put_plain(array.as_primitive::<Decimal32Type>().value_as_string(row), out),
        DataType::Decimal64(..) => put_plain(array.as_primitive::<Decimal64Type>().value_as_string(row), out),
        DataType::Decimal128(..) => {
            put_plain(array.as_primitive::<Decimal128Type>().value_as_string(row), out);
        }
        DataType::Decimal256(..) => {
            put_plain(array.as_primitive::<Decimal256Type>().value_as_string(row), out);
        }
        other => return Err(format!("a column is {other}, which import does not read")),
    }
    Ok(())
}

/// A number, in the digits that are exactly this one; what is none as text.
fn put_float(value: impl Into<f64> + std::fmt::Display + Copy, out: &mut Vec<u8>) {
    match value.into().is_finite() {
        true => put_plain(value, out),
        false => put_text(&value.to_string(), out),
    }
}

fn put_time(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
    const DAY_S: i128 = 86_400;
    let nanos = nanos_of(array, row)?;
    let at = || Timestamp::from_nanosecond(nanos).map_err(|_| "a time is beyond the year 9999".to_owned());
    let clock = || at().map(|at| at.to_zoned(TimeZone::UTC).datetime());
    let text = match array.data_type() {
        DataType::Timestamp(_, Some(_)) => at()?.to_string(),
        DataType::Timestamp(_, None) => clock()?.to_string(),
        DataType::Date32 | DataType::Date64 => clock()?.date().to_string(),
        DataType::Time32(_) | DataType::Time64(_) if (0..DAY_S * 1_000_000_000).contains(&nanos) => {
            clock()?.time().to_string()
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            return Err("a time of day is beyond 24 hours".to_owned());
        }
        // A duration is a number of its unit.
        DataType::Duration(unit) => {
            put_plain(nanos / nanos_in(unit), out);
            return Ok(());
        }
        other => return Err(format!("a column is {other}, which import does not read")),
    };
    put_text(&text, out);
    Ok(())
}

fn nanos_in(unit: &TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

/// A date, a time or a duration in nanoseconds.
fn nanos_of(array: &dyn Array, row: usize) -> Result<i128, String> {
    use DataType::{Date32, Date64, Duration, Time32, Time64, Timestamp};
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let (value, unit): (i128, TimeUnit) = match array.data_type() {
        Date32 => (i128::from(number::<Date32Type>(array, row)) * 86_400, Second),
        Date64 => (number::<Date64Type>(array, row).into(), Millisecond),
        Timestamp(Second, _) => (number::<TimestampSecondType>(array, row).into(), Second),
        Timestamp(Millisecond, _) => (number::<TimestampMillisecondType>(array, row).into(), Millisecond),
        Timestamp(Microsecond, _) => (number::<TimestampMicrosecondType>(array, row).into(), Microsecond),
        Timestamp(Nanosecond, _) => (number::<TimestampNanosecondType>(array, row).into(), Nanosecond),
        Time32(Second) => (number::<Time32SecondType>(array, row).into(), Second),
        Time32(_) => (number::<Time32MillisecondType>(array, row).into(), Millisecond),
        Time64(Microsecond) => (number::<Time64MicrosecondType>(array, row).into(), Microsecond),
        Time64(_) => (number::<Time64NanosecondType>(array, row).into(), Nanosecond),
        Duration(Second) => (number::<DurationSecondType>(array, row).into(), Second),
        Duration(Millisecond) => (number::<DurationMillisecondType>(array, row).into(), Millisecond),
        Duration(Microsecond) => (number::<DurationMicrosecondType>(array, row).into(), Microsecond),
        Duration(Nanosecond) => (number::<DurationNanosecondType>(array, row).into(), Nanosecond),
        other => return Err(format!("a column is {other}, which import does not read")),
    };
    Ok(value * nanos_in(&unit))
}
