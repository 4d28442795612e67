//! Codecs of keys and values, dynamic and typed.
//!
//! ```text
//!   an input     codec u8 | the bytes of a key or value
//! ```

use folddb_rules::codec::tuple::{Element, unpack};
use folddb_rules::codec::{CodecError, ElementType, Key, KeyCodec, Value, ValueCodec};
use folddb_rules::datum::{Datum, from_hex, hex};
use folddb_rules::folds::{
    Bitmap, ByteSet, Counters, ExactSum, Hll, Matrix, Max, Patch, Quantiles, Stats, Sum, Timed, TopK,
};
use folddb_rules::terms::{before_entries, behind_entries, put_entry, show_term, split_entry};

use crate::carve::Carver;
use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    Target::new("key", key, key_seeds).words(&["0x", "0x41", "null"]).heap(1024, 64 << 10),
    Target::new("key-typed", key_typed, key_typed_seeds).heap(1024, 64 << 10),
    Target::new("value", value, value_seeds).words(VALUE_WORDS).heap(1024, 64 << 10),
    Target::new("value-typed", value_typed, value_typed_seeds).heap(1024, 128 << 10),
];

const VALUE_WORDS: &[&str] =
    &["0x", "0x41", "{", "}", "[", "]", "\"", ":", ",", "null", "true", "-0", "1e400", "\\ud83d"];

/// Codecs of keys by their names.
const CODECS: [&str; 14] = [
    "bytes",
    "utf8",
    "u32",
    "u64",
    "i64",
    "tuple",
    "tuple(any,any?)",
    "tuple(text,text)",
    "tuple(bytes,int?,double)",
    "tuple(float,bool?,uuid)",
    "tuple(versionstamp,text?)",
    "tuple(tuple(text,int),tuple)",
    "tuple(tuple(bytes?,tuple(int)?)?)",
    "tuple(int)",
];

fn key(input: &[u8]) {
    let mut carver = Carver::new(input);
    let codec = carver.choice(&CODECS).parse::<KeyCodec>().expect("the name of a codec");
    let bytes = carver.rest();
    entry(bytes);
    let line = codec.show_line(bytes);
    assert!(!line.is_empty() || bytes.is_empty());
    let is_key = codec.check(bytes).is_ok();
    let shown = codec.show(bytes);
    assert_eq!(shown.is_ok(), is_key);
    assert_eq!(codec.columns(bytes).is_ok(), is_key);
    let Ok(shown) = shown else { return };
    if codec.is_tuple() && loses(&codec, bytes) {
        return;
    }
    let mut again = Vec::new();
    assert_eq!(codec.encode(&shown, &mut again), Ok(()));
    assert_eq!(again, bytes, "{shown} encodes to another key");
    let typed = codec.parse_text(&[&shown.to_string()]);
    if codec == KeyCodec::Tuple || codec.element_types().is_some_and(|types| types.iter().any(is_open)) {
        return; // without a type, what is typed is what it looks like: 1 may have been 1.0
    }
    assert_eq!(typed.as_deref(), Ok(bytes), "{shown} typed is another key");
}

/// What is an entry of an index is made of its term and its key, and of nothing else.
fn entry(bytes: &[u8]) {
    let Some((term, key)) = split_entry(bytes) else { return };
    let mut again = Vec::new();
    put_entry(&mut again, term, key);
    assert_eq!(again, bytes);
    assert!(before_entries(term)[..] <= *bytes && *bytes < behind_entries(term)[..]);
    assert!(!show_term(term).to_string().is_empty() || term.len() == 2);
}

/// True when showing a tuple leaves something out: which of the types that look alike it was, or
/// the bits of a NaN.
fn loses(codec: &KeyCodec, bytes: &[u8]) -> bool {
    let is_typed = codec.element_types().is_some_and(|types| !types.iter().any(is_open));
    unpack(bytes).is_ok_and(|elements| elements.iter().any(|element| loses_element(element, is_typed)))
}

fn loses_element(element: &Element<'_>, is_typed: bool) -> bool {
    match element {
        Element::Float(number) => number.is_nan() || !is_typed,
        Element::Double(number) => number.is_nan(),
        Element::Uuid(_) | Element::Stamp80(_) | Element::Stamp96(_) => !is_typed,
        Element::Nested(items) => items.iter().any(|item| loses_element(item, is_typed)),
        _ => false,
    }
}

/// True when the type leaves open what an element is.
fn is_open(element: &ElementType) -> bool {
    match element {
        ElementType::Any | ElementType::AnyTuple => true,
        ElementType::Tuple(types) => types.iter().any(is_open),
        ElementType::Optional(inner) => is_open(inner),
        _ => false,
    }
}

fn key_seeds() -> Vec<Vec<u8>> {
    let texts: [&[&str]; 14] = [
        &["0x00ff"],
        &["text"],
        &["7"],
        &["18446744073709551615"],
        &["-5"],
        &["a,1,2.5,null"],
        &["a", "null"],
        &["UA", "EWR"],
        &["0x01", "-300", "2.5"],
        &["1.5", "true", "00112233-4455-6677-8899-aabbccddeeff"],
        &["0x00112233445566778899", "x"],
        &["[[\"a\", 1], [1, [2]]]"],
        &["[[0x01, [5]]]"],
        &["170141183460469231731687303715884105727"],
    ];
    let seed = |(number, parts): (usize, &&[&str])| {
        let codec = CODECS[number].parse::<KeyCodec>().expect("the name of a codec");
        let key = codec.parse_text(parts).expect("a key of the codec");
        [&[number as u8][..], &key].concat()
    };
    texts.iter().enumerate().map(seed).collect()
}

/// A key of a Rust type: what decodes encodes to the same, and the codec of the type takes it.
fn key_of<K: Key>(bytes: &[u8]) {
    let Ok(key) = K::decode(bytes) else { return };
    assert!(K::codec().check(bytes).is_ok(), "{} does not take what its type does", K::codec());
    let mut again = Vec::new();
    key.encode_key(&mut again);
    assert_eq!(again, bytes);
}

const KEY_TYPES: [fn(&[u8]); 11] = [
    key_of::<Vec<u8>>,
    key_of::<String>,
    key_of::<[u8; 4]>,
    key_of::<u32>,
    key_of::<u64>,
    key_of::<i64>,
    key_of::<(String, u64)>,
    key_of::<(Vec<u8>, i64, Option<f64>)>,
    key_of::<(Option<String>, (i32, bool), u32)>,
    key_of::<((Option<i128>, (f32,)), String)>,
    key_of::<Vec<Element<'static>>>,
];

fn key_typed(input: &[u8]) {
    let mut carver = Carver::new(input);
    carver.choice(&KEY_TYPES)(carver.rest());
}

fn key_typed_seeds() -> Vec<Vec<u8>> {
    fn seed<K: Key>(number: u8, key: &K) -> Vec<u8> {
        let mut out = vec![number];
        key.encode_key(&mut out);
        out
    }
    vec![
        seed(0, &vec![0u8, 255]),
        seed(1, &"text".to_owned()),
        seed(2, &[1, 2, 3, 4]),
        seed(3, &7u32),
        seed(4, &u64::MAX),
        seed(5, &i64::MIN),
        seed(6, &("a\0b".to_owned(), 300u64)),
        seed(7, &(vec![0u8, 1], -300i64, Some(2.5f64))),
        seed(8, &(None::<String>, (-1i32, true), 5u32)),
        seed(9, &((Some(i128::MAX), (1.5f32,)), String::new())),
        seed(10, &vec![Element::Null, Element::Int(5)]),
    ]
}

/// Codecs of values by their names.
const VALUE_CODECS: [&str; 16] = [
    "bytes", "utf8", "u64", "i64", "f64", "json", "u8", "u16", "u32", "u128", "i8", "i16", "i32", "i128",
    "f32", "bool",
];

fn value(input: &[u8]) {
    assert_eq!(from_hex(&hex(input)).as_deref(), Some(input));
    let mut carver = Carver::new(input);
    let codec = carver.choice(&VALUE_CODECS).parse::<ValueCodec>().expect("the name of a codec");
    let bytes = carver.rest();
    let shown = codec.show(bytes);
    assert_eq!(shown.is_ok(), codec.check(bytes).is_ok());
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(typed) = codec.parse_text(text)
    {
        assert!(codec.check(&typed).is_ok(), "{text:?} is taken for a value and is none");
    }
    let Ok(shown) = shown else { return };
    let _ = shown.to_string();
    let mut again = Vec::new();
    let encoded = codec.encode(&shown, &mut again);
    if codec == ValueCodec::Json {
        check_json(&shown, encoded, &again);
    } else {
        assert_eq!((encoded, &again[..]), (Ok(()), bytes), "{shown} encodes to another value");
    }
}

/// JSON is kept as it was written, so only what it says comes back. Text by itself would be read as
/// JSON again.
fn check_json(shown: &Datum, encoded: Result<(), CodecError>, again: &[u8]) {
    if !matches!(shown, Datum::Text(_)) && encoded.is_ok() {
        assert_eq!(ValueCodec::Json.show(again).as_ref(), Ok(shown));
    }
}

fn value_seeds() -> Vec<Vec<u8>> {
    let values: [&[u8]; 6] = [
        b"\x00\xff",
        b"text",
        &[5, 0, 0, 0, 0, 0, 0, 0],
        &[0xff; 8],
        &[0, 0, 0, 0, 0, 0, 0xf8, 0x3f],
        br#"{"a":[1,2.5,-3e10,null,true,"t\u00e9\n"],"b":{"c":{}}}"#,
    ];
    let seed = |(number, value): (usize, &&[u8])| [&[number as u8][..], value].concat();
    values.iter().enumerate().map(seed).collect()
}

/// A value of a Rust type: what decodes encodes to the same.
fn value_of<V: Value>(bytes: &[u8]) {
    let Ok(value) = V::decode(bytes) else { return };
    assert!(V::codec().check(bytes).is_ok());
    let mut again = Vec::new();
    value.encode(&mut again);
    assert_eq!(again, bytes);
}

const VALUE_TYPES: [fn(&[u8]); 22] = [
    value_of::<Vec<u8>>,
    value_of::<String>,
    value_of::<[u8; 4]>,
    value_of::<u64>,
    value_of::<i64>,
    value_of::<f64>,
    value_of::<Bitmap>,
    value_of::<ByteSet>,
    value_of::<Counters>,
    value_of::<ExactSum>,
    value_of::<Patch>,
    value_of::<Stats>,
    value_of::<TopK<10>>,
    value_of::<TopK<2, i64>>,
    value_of::<Hll<4>>,
    value_of::<Hll>,
    value_of::<Quantiles>,
    value_of::<Matrix<1>>,
    value_of::<Timed<String>>,
    value_of::<Sum<i128>>,
    value_of::<Max<String>>,
    value_of::<bool>,
];

fn value_typed(input: &[u8]) {
    let mut carver = Carver::new(input);
    carver.choice(&VALUE_TYPES)(carver.rest());
}

fn value_typed_seeds() -> Vec<Vec<u8>> {
    fn seed<V: Value>(number: u8, value: &V) -> Vec<u8> {
        let mut out = vec![number];
        value.encode(&mut out);
        out
    }
    let mut stats = Stats::of(0.1);
    stats.add(1e100);
    let mut sum = ExactSum::of(0.1);
    sum.add(1e100);
    vec![
        seed(0, &vec![1u8]),
        seed(1, &"text".to_owned()),
        seed(2, &[1, 2, 3, 4]),
        seed(3, &7u64),
        seed(4, &-7i64),
        seed(5, &f64::NAN),
        seed(6, &[1, 5, 70_000].into_iter().collect::<Bitmap>()),
        seed(7, &[b"a".to_vec(), b"b".to_vec()].into_iter().collect::<ByteSet>()),
        seed(8, &Counters::of("name", 5)),
        seed(9, &sum),
        seed(10, &Patch::object(b"object")),
        seed(11, &stats),
        seed(12, &TopK::<10>::of(1.5, "member")),
    ]
}
