//! Parquet and Arrow files: written here with the libraries that others use, and imported. Needs
//! the feature `parquet`.

mod support;

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::builder::{
    ArrayBuilder, Int64Builder, ListBuilder, MapBuilder, StringBuilder, StringDictionaryBuilder,
    StructBuilder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DurationMillisecondArray,
    Float64Array, Int64Array, IntervalYearMonthArray, RecordBatch, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use support::{Place, Random};

/// 2026-11-22T08:30:00Z, in microseconds.
const AT: i64 = 1_795_336_200_000_000;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).expect("a batch")
}

fn write_parquet(place: &Place, name: &str, batch: &RecordBatch, packed: Compression) {
    let rows = (batch.num_rows() / 2).max(1); // two row groups
    let how =
        WriterProperties::builder().set_compression(packed).set_max_row_group_row_count(Some(rows)).build();
    let file = File::create(place.path().join(name)).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(how)).expect("a writer");
    writer.write(batch).expect("the batch is written");
    writer.close().expect("the file is written");
}

fn write_arrow(place: &Place, name: &str, batch: &RecordBatch) {
    let file = File::create(place.path().join(name)).expect("a file");
    let mut writer = FileWriter::try_new(file, &batch.schema()).expect("a writer");
    writer.write(batch).expect("the batch is written");
    writer.finish().expect("the file is written");
}

/// Three rows with a column of each kind, the last of nulls.
fn all_kinds() -> RecordBatch {
    let mut tags = ListBuilder::new(StringBuilder::new());
    tags.append_value([Some("x"), Some("y")]);
    tags.append_value([Some("y"), None]);
    tags.append_null();
    let mut counts = MapBuilder::new(None, StringBuilder::new(), UInt64Builder::new());
    counts.keys().append_value("a");
    counts.values().append_value(2);
    counts.append(true).expect("as many keys as values");
    counts.append(true).expect("as many keys as values");
    counts.append(false).expect("as many keys as values");
    let mut kind = StringDictionaryBuilder::<Int32Type>::new();
    ["one", "other"].iter().for_each(|value| kind.append_value(value));
    kind.append_null();
    let (id, name) = (Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, true));
    let parts: Vec<Box<dyn ArrayBuilder>> =
        vec![Box::new(Int64Builder::new()), Box::new(StringBuilder::new())];
    let mut user = StructBuilder::new(vec![id, name], parts);
    for (id, name) in [(Some(7), Some("ann \"a\"")), (Some(8), Some("bob")), (None, None)] {
        user.field_builder::<Int64Builder>(0).expect("numbers").append_option(id);
        user.field_builder::<StringBuilder>(1).expect("texts").append_option(name);
        user.append(id.is_some());
    }
    let decimals = Decimal128Array::from(vec![Some(1250), Some(-5), None]);
    batch(vec![
        ("n", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("x", Arc::new(Float64Array::from(vec![Some(0.1), Some(f64::NAN), None]))),
        ("is", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        (
            "at",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(AT), Some(AT + 250_000), None])
                    .with_timezone("UTC"),
            ),
        ),
        ("clock", Arc::new(TimestampMillisecondArray::from(vec![Some(AT / 1000), Some(0), None]))),
        ("day", Arc::new(Date32Array::from(vec![Some(20_779), Some(-1), None]))),
        ("of_day", Arc::new(Time64MicrosecondArray::from(vec![Some(30_600_000_000), Some(1), None]))),
        ("price", Arc::new(decimals.with_precision_and_scale(10, 2).expect("a scale"))),
        ("raw", Arc::new(BinaryArray::from(vec![Some(&b"\x00\xff"[..]), Some(b""), None]))),
        ("ms", Arc::new(DurationMillisecondArray::from(vec![Some(1500), Some(0), None]))),
        ("tags", Arc::new(tags.finish())),
        ("counts", Arc::new(counts.finish())),
        ("kind", Arc::new(kind.finish())),
        ("user", Arc::new(user.finish())),
    ])
}

/// What each column is as JSON.
const AS_JSON: [&str; 3] = [
    r#"{"n":1,"x":0.1,"is":true,"at":"2026-11-22T08:30:00Z","clock":"2026-11-22T08:30:00","day":"2026-11-22","of_day":"08:30:00","price":12.50,"raw":{"$hex":"00ff"},"ms":1500,"tags":["x","y"],"counts":{"a":2},"kind":"one","user":{"id":7,"name":"ann \"a\""}}"#,
    r#"{"n":2,"x":"NaN","is":false,"at":"2026-11-22T08:30:00.25Z","clock":"1970-01-01T00:00:00","day":"1969-12-31","of_day":"00:00:00.000001","price":-0.05,"raw":{"$hex":""},"ms":0,"tags":["y",null],"counts":{},"kind":"other","user":{"id":8,"name":"bob"}}"#,
    r#"{"n":3,"x":null,"is":null,"at":null,"clock":null,"day":null,"of_day":null,"price":null,"raw":null,"ms":null,"tags":null,"counts":null,"kind":null,"user":null}"#,
];

#[test]
fn each_column_of_a_file_is_what_it_is_in_json() {
    let place = Place::new();
    let batch = all_kinds();
    write_parquet(&place, "a.parquet", &batch, Compression::SNAPPY);
    write_parquet(&place, "b.parquet", &batch, Compression::ZSTD(ZstdLevel::default()));
    write_parquet(&place, "c.parquet", &batch, Compression::GZIP(Default::default()));
    write_parquet(&place, "d.data", &batch, Compression::LZ4_RAW);
    write_arrow(&place, "e.arrow", &batch);
    for (table, file) in ["a.parquet", "b.parquet", "c.parquet", "d.data", "e.arrow"].iter().enumerate() {
        let table = format!("t{table}");
        // The same rows as a file of JSON.
        place.write("rows.ndjson", AS_JSON.join("\n"));
        for (store, file) in [("s", *file), ("json", "rows.ndjson")] {
            place.done(&["import", store, &table, file, "--create", "--key", "n", "--value-json", "--again"]);
        }
        let of_file = place.done(&["export", "s", &table, "--format", "ndjson"]);
        assert_eq!(of_file, place.done(&["export", "json", &table, "--format", "ndjson"]), "{file}");
        assert_eq!(of_file.lines().count(), 3);
    }
}

#[test]
fn columns_in_columns_are_named_and_computed_with_and_lists_feed_sets() {
    let place = Place::new();
    write_parquet(&place, "a.parquet", &all_kinds(), Compression::SNAPPY);
    let fold = "n: sum:u64 = 1, tags: set = tags, last: max:time = clock, high: sum:u64 = price > 1";
    let shown = place.done(&[
        "import",
        "s",
        "t",
        "a.parquet",
        "--create",
        "--key",
        "/user/id, time(at)",
        "--fold",
        fold,
        "--where",
        "n < 2",
        "--zone",
        "Europe/Berlin",
        "--show",
        "--json",
    ]);
    let rows: Vec<&str> = shown.lines().skip(1).collect();
    assert_eq!(
        rows,
        [
            r#"{"key":["7","2026-11-22T09:30:00+01:00"],"value":{"n":1,"tags":["x","y"],"last":"2026-11-22T08:30:00+01:00","high":1}}"#,
        ]
    );
}

/// Rows of which each is known by its number.
fn many(rows: i64) -> RecordBatch {
    let mut random = Random(7);
    let words: Vec<String> = (0..rows).map(|_| format!("{:016x}", random.below(1 << 40))).collect();
    batch(vec![
        ("n", Arc::new(Int64Array::from((0..rows).collect::<Vec<_>>()))),
        ("of", Arc::new(Int64Array::from((0..rows).map(|n| n % 97).collect::<Vec<_>>()))),
        ("word", Arc::new(StringArray::from(words))),
    ])
}

#[test]
fn a_file_is_in_once_also_after_kills_and_under_another_name() {
    const ROWS: i64 = 400_000;
    let place = Place::new();
    write_parquet(&place, "many.parquet", &many(ROWS), Compression::SNAPPY);
    let words = [
        "import",
        "s",
        "t",
        "many.parquet",
        "--create",
        "--key",
        "of",
        "--fold",
        "rows: sum:u64 = 1, sum: sum:u64 = n",
    ];
    let began = Instant::now();
    place.done(&[&words[..1], &["quick"], &words[2..]].concat());
    let whole = began.elapsed();
    let mut kills = 0;
    for tenth in 1..10 {
        let mut child = place.command(&words).spawn().expect("the program starts");
        std::thread::sleep(whole * tenth / 20 + Duration::from_millis(1));
        kills += u64::from(child.try_wait().expect("it is there").is_none());
        child.kill().expect("a signal"); // also if it has ended
        child.wait().expect("it ends");
    }
    assert!(kills > 0, "each import had ended before it was killed");
    place.done(&words);
    for store in ["s", "quick"] {
        let rows = place.done(&["scan", store, "t", "--format", "ndjson"]);
        assert_eq!(rows.lines().count(), 97);
        let total = place.json(&["aggregate", store, "t"]);
        assert_eq!(total["value"]["rows"], ROWS);
        assert_eq!(total["value"]["sum"], ROWS * (ROWS - 1) / 2);
    }
    assert_eq!(
        place.done(&["export", "s", "t"]),
        place.done(&["export", "quick", "t"]),
        "with kills as without them"
    );
    std::fs::rename(place.path().join("many.parquet"), place.path().join("renamed")).expect("renamed");
    let again = place.run(&[&words[..3], &["renamed"], &words[4..]].concat());
    let said = again.out + &again.err;
    assert!(
        again.code == 0 && said.contains("is in already as many.parquet, with 400,000 rows"),
        "{}: {said}",
        again.code
    );
}

#[test]
fn what_cannot_be_read_is_named_and_nothing_is_made() {
    let place = Place::new();
    let odd = batch(vec![
        ("n", Arc::new(Int64Array::from(vec![1]))),
        ("every", Arc::new(IntervalYearMonthArray::from(vec![1]))),
    ]);
    write_arrow(&place, "odd.arrow", &odd);
    write_parquet(&place, "whole.parquet", &many(20_000), Compression::ZSTD(ZstdLevel::default()));
    let bytes = std::fs::read(place.path().join("whole.parquet")).expect("it is read");
    place.write("cut.parquet", &bytes[..bytes.len() / 2]);
    let mut bad_footer = bytes.clone();
    let end = bad_footer.len();
    bad_footer[end - 60..end - 8].fill(0x55);
    place.write("footer.parquet", &bad_footer);
    let import = |file: &str| {
        place.run(&["import", "s", "t", file, "--create", "--key", "n", "--fold", "sum:u64 = 1"])
    };
    for (file, code, why) in [
        ("odd.arrow", 2, "column `every` is Interval(YearMonth), which import does not read"),
        ("cut.parquet", 2, "is a Parquet file, and no text with rows (it is cut off"),
        ("footer.parquet", 3, "cannot be read"),
    ] {
        let ran = import(file);
        assert_eq!(ran.code, code, "{file}: {}", ran.err);
        assert!(ran.err.contains(why), "{file}: {}", ran.err);
        assert!(!place.path().join("s").exists(), "{file}");
    }
    // A header of CSV may begin with the same letters.
    place.write("PAR1.csv", "PAR1,n\nx,1\n");
    assert_eq!(import("PAR1.csv").code, 0);
}

#[test]
fn a_damaged_page_stops_the_import_and_a_whole_copy_goes_on() {
    let place = Place::new();
    write_parquet(&place, "whole.parquet", &many(200_000), Compression::ZSTD(ZstdLevel::default()));
    let whole = std::fs::read(place.path().join("whole.parquet")).expect("it is read");
    let mut bad = whole.clone();
    let at = bad.len() * 3 / 4; // in the second row group
    bad[at..at + 4000].fill(0x55);
    place.write("in.parquet", &bad);
    let words = [
        "import",
        "s",
        "t",
        "in.parquet",
        "--create",
        "--key",
        "of",
        "--fold",
        "n: sum:u64 = 1, sum: sum:u64 = n",
    ];
    let ran = place.run(&words);
    assert_eq!(ran.code, 3, "{}", ran.err);
    let before = place.json(&["aggregate", "s", "t"])["value"]["n"].as_u64().expect("a count");
    assert!((1..200_000).contains(&before), "{before}");
    place.write("in.parquet", &whole);
    place.done(&words);
    let total = place.json(&["aggregate", "s", "t"]);
    assert_eq!((&total["value"]["n"], &total["value"]["sum"]), (&200_000.into(), &19_999_900_000u64.into()));
}
