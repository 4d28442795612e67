//! Keys and values as they are typed and shown on the command line.

use std::ops::Bound;

use folddb::codec::{CodecError, ElementType, KeyCodec, KeyRange, ValueCodec};
use folddb::folds::Record;
use folddb::order::KeyOrder;
use folddb::{BytesTable, Datum, DynamicRules, Fold, datum};

use crate::failure::Failure;
use crate::zones;

/// The bytes of a key given in one word, or one word for each element of a tuple.
pub(crate) fn key(table: &BytesTable, words: &[String], hex: bool) -> Result<Vec<u8>, Failure> {
    let codec = table.rules().as_table_rules().key_codec();
    let key = match hex {
        true => hex_key(words, |bytes| codec.check(bytes)),
        false => codec.typed_in(&zones::utc_of).parse_text(&parts(words)),
    };
    key.map_err(|cause| wrong_key(table, words, &cause))
}

/// The keys that count as equal to a bound, in the order of the table.
pub(crate) fn bound(table: &BytesTable, words: &[String], hex: bool) -> Result<KeyRange, Failure> {
    let span = if hex {
        hex_key(words, |_| Ok(())).map(KeyRange::one)
    } else {
        let codec = table.rules().as_table_rules().key_codec();
        codec.typed_in(&zones::utc_of).parse_bound(&parts(words))
    };
    let span = span.map_err(|cause| wrong_key(table, words, &cause))?;
    Ok(in_order(table, span))
}

/// The keys with a typed prefix, in the order of the table.
pub(crate) fn prefix(table: &BytesTable, words: &[String], hex: bool) -> Result<KeyRange, Failure> {
    if !table.rules().order().has_byte_prefixes() {
        let message = format!(
            "table `{}` has a custom order, in which the keys of a prefix are not a range",
            table.name()
        );
        return Err(Failure::Usage(message));
    }
    Ok(in_order(table, typed_prefix(table, words, hex)?))
}

/// The bytes of a typed prefix, for any key order.
///
/// # Errors
/// It is a part of a time, such as a day: its moments do not begin with the same bytes.
pub(crate) fn prefix_bytes(table: &BytesTable, words: &[String], hex: bool) -> Result<Vec<u8>, Failure> {
    let range = typed_prefix(table, words, hex)?;
    let Bound::Included(prefix) = &range.low else { return Ok(Vec::new()) };
    let is_of_tuple = range.high == Bound::Excluded([prefix, &[0xff][..]].concat());
    let is_prefix = is_of_tuple || range.high == range.low || range == KeyRange::prefix(prefix.clone());
    match is_prefix {
        true => Ok(prefix.clone()),
        false => Err(Failure::Usage(format!(
            "`{}` is a part of a time, and the keys of its moments do not begin alike: name what is before the time, \
             or a whole one",
            words.join(" ")
        ))),
    }
}

/// The keys with a typed prefix, in bytewise order.
pub(crate) fn typed_prefix(table: &BytesTable, words: &[String], hex: bool) -> Result<KeyRange, Failure> {
    let codec = table.rules().as_table_rules().key_codec();
    let range = match hex {
        true => hex_key(words, |_| Ok(())).map(KeyRange::prefix),
        false => codec.typed_in(&zones::utc_of).parse_prefix(&parts(words)),
    };
    range.map_err(|cause| wrong_key(table, words, &cause))
}

fn in_order(table: &BytesTable, range: KeyRange) -> KeyRange {
    match table.rules().order() {
        KeyOrder::Reversed => range.mirrored(),
        _ => range,
    }
}

fn parts(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn hex_key(
    words: &[String],
    check: impl FnOnce(&[u8]) -> Result<(), CodecError>,
) -> Result<Vec<u8>, CodecError> {
    let [word] = words else { return Err(CodecError::new("a key in hex is one word")) };
    let bytes =
        datum::from_hex(word).ok_or_else(|| CodecError::new("expected pairs of hexadecimal digits"))?;
    check(&bytes)?;
    Ok(bytes)
}

fn wrong_key(table: &BytesTable, words: &[String], cause: &CodecError) -> Failure {
    let codec = table.rules().as_table_rules().key_codec();
    let typed = words.join(" ");
    Failure::Usage(format!(
        "`{typed}` is not a key of table `{}`, whose keys are {codec}: {cause}",
        table.name()
    ))
}

/// A key as people read it, with times in the zone that is asked for; bytes that are no key of the
/// table as they are.
pub(crate) fn shown(rules: &DynamicRules, key: &[u8]) -> Datum {
    let codec = rules.as_table_rules().key_codec();
    let Ok(mut shown) = codec.show(key) else { return Datum::Bytes(key.to_vec()) };
    if zones::other_than_utc().is_some() {
        match (codec, &mut shown) {
            (KeyCodec::Time, time) => put_in_zone(time),
            (KeyCodec::TypedTuple(types), Datum::List(items)) => put_elements_in_zone(types, items),
            _ => {}
        }
    }
    shown
}

fn put_elements_in_zone(types: &[ElementType], items: &mut [Datum]) {
    types.iter().zip(items).for_each(|(of, item)| put_element_in_zone(of, item));
}

fn put_element_in_zone(of: &ElementType, item: &mut Datum) {
    match (of, &mut *item) {
        (ElementType::Time, time) => put_in_zone(time),
        (ElementType::Optional(inner), item) => put_element_in_zone(inner, item),
        (ElementType::Tuple(types), Datum::List(items)) => put_elements_in_zone(types, items),
        _ => {}
    }
}

/// A value as people read it, with times in the zone that is asked for; bytes that are no value of
/// the table as they are.
pub(crate) fn shown_value(rules: &DynamicRules, value: &[u8]) -> Datum {
    let Ok(mut shown) = rules.show_value(value) else { return Datum::Bytes(value.to_vec()) };
    if let (ValueCodec::F32, Datum::Float(value)) = (rules.as_table_rules().value_codec(), &mut shown) {
        *value = shortest(*value);
    }
    if zones::other_than_utc().is_some() {
        let done = each_time(rules, &mut shown, &mut |time| {
            put_in_zone(time);
            Ok(())
        });
        debug_assert!(done.is_ok(), "showing a time does not fail");
    }
    shown
}

/// A number of 32 bits as the one with the fewest digits that is stored as the same: 0.1, and not
/// 0.10000000149011612.
fn shortest(value: f64) -> f64 {
    (value as f32).to_string().parse().unwrap_or(value)
}

/// Visits what is a time in a value: the value, or fields of a record.
fn each_time(
    rules: &DynamicRules,
    value: &mut Datum,
    visit: &mut impl FnMut(&mut Datum) -> Result<(), CodecError>,
) -> Result<(), CodecError> {
    let rules = rules.as_table_rules();
    match rules.fold.spec() {
        "replace" | "first" if rules.value_codec() == ValueCodec::Time => visit(value),
        spec => each_folded_time(spec, value, visit),
    }
}

fn each_folded_time(
    spec: &str,
    value: &mut Datum,
    visit: &mut impl FnMut(&mut Datum) -> Result<(), CodecError>,
) -> Result<(), CodecError> {
    match (spec, value) {
        ("min:time" | "max:time", time) => visit(time),
        (spec, Datum::Map(fields)) if spec.contains(":time") => {
            let Ok(record) = spec.parse::<Record>() else { return Ok(()) };
            let folds = (0..).map_while(|index| record.field_fold(index));
            let specs: Vec<(&str, String)> = record.names().zip(folds.map(Fold::spec)).collect();
            fields.iter_mut().try_for_each(|(name, value)| {
                let of_field = specs.iter().find(|(of, _)| of == name);
                let done = of_field.map_or(Ok(()), |(_, spec)| each_folded_time(spec, value, visit));
                done.map_err(|cause| CodecError::new(format!("field `{name}`: {cause}")))
            })
        }
        _ => Ok(()),
    }
}

fn put_in_zone(time: &mut Datum) {
    if let Datum::Text(text) = time {
        *text = zones::shown(text);
    }
}

/// Makes a moment of a typed time, which is in the zone that is asked for where it has no offset.
fn settle(time: &mut Datum) -> Result<(), CodecError> {
    let Datum::Text(text) = &*time else { return Ok(()) };
    let key = KeyCodec::Time.typed_in(&zones::utc_of).parse_text(&[text])?;
    *time = KeyCodec::I64.show(&key)?;
    Ok(())
}

/// The tighter of two lower bounds.
pub(crate) fn higher(order: &KeyOrder, a: Bound<Vec<u8>>, b: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    tighter(a, b, |a, b| order.compare(a, b).is_gt())
}

/// The tighter of two upper bounds.
pub(crate) fn lower(order: &KeyOrder, a: Bound<Vec<u8>>, b: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    tighter(a, b, |a, b| order.compare(a, b).is_lt())
}

fn tighter(
    a: Bound<Vec<u8>>,
    b: Bound<Vec<u8>>,
    is_tighter: impl Fn(&[u8], &[u8]) -> bool,
) -> Bound<Vec<u8>> {
    match (&a, &b) {
        (Bound::Unbounded, _) => b,
        (_, Bound::Unbounded) => a,
        (Bound::Included(x) | Bound::Excluded(x), Bound::Included(y) | Bound::Excluded(y)) => {
            let takes_a = is_tighter(x, y) || (x == y && matches!(a, Bound::Excluded(_)));
            if takes_a { a } else { b }
        }
    }
}

/// Encodes a value or operand that was typed. For folds of lists and of named fields it may be
/// JSON.
pub(crate) fn value(table: &BytesTable, word: &str) -> Result<Vec<u8>, Failure> {
    table.rules().check_writable()?;
    let mut bytes = Vec::new();
    let datum = value_datum(table.rules().as_table_rules().fold.spec(), word).map_err(CodecError::new);
    let read = datum.and_then(|mut datum| {
        each_time(table.rules(), &mut datum, &mut settle)?;
        table.rules().read_value(&datum, &mut bytes)
    });
    read.map_err(|cause| {
        let spec = table.rules().as_table_rules().fold.spec();
        Failure::Usage(format!(
            "`{word}` is not a value of table `{}`, which folds by `{spec}`: {cause}",
            table.name()
        ))
    })?;
    Ok(bytes)
}

/// Folds with operands that may be lists or have named parts.
const STRUCTURED: [&str; 10] =
    ["stats", "quantiles", "set", "intersect", "bitmap", "counters", "top", "hll", "lww", "matmul"];

/// Folds that take a text as a member or a name.
const MEMBERS: [&str; 4] = ["set", "intersect", "counters", "hll"];

/// Folds that show lists or pairs, which are JSON in a column of CSV.
const LISTED: [&str; 7] = ["set", "intersect", "bitmap", "counters", "top", "matmul", "lww"];

/// Whether the fold of this spec takes lists, and maps that are not records.
pub(crate) fn is_structured(spec: &str) -> bool {
    spec.starts_with('{') || STRUCTURED.contains(&stem(spec))
}

/// Whether the fold of this spec takes the elements of a list one by one.
pub(crate) fn takes_members(spec: &str) -> bool {
    MEMBERS.contains(&stem(spec)) || stem(spec) == "bitmap"
}

/// The same, or whether each of them is a number that it takes.
pub(crate) fn takes_elements(spec: &str) -> bool {
    takes_members(spec) || matches!(stem(spec), "quantiles" | "stats")
}

/// A field of CSV, as an export writes it, as a datum for the fold of this spec.
pub(crate) fn csv_datum(spec: &str, text: &str) -> Option<Datum> {
    let of_members = matches!(stem(spec), "set" | "intersect" | "hll");
    if of_members && text.starts_with('{') {
        // Members are exported in lists: an object is bytes, if marked, otherwise the text of one
        // member.
        let read = datum::json::parse(text).ok()?;
        let as_bytes = datum::unwrapped(&read).map(Datum::Bytes);
        return as_bytes.or_else(|| datum::why_not_wrapped(&read).map(|_| read)); // the fold refuses it
    }
    if LISTED.contains(&stem(spec)) && text.starts_with(['[', '{']) {
        return datum::json::parse(text).ok();
    }
    datum::unwrapped_text(text).map(Datum::Bytes)
}

fn stem(spec: &str) -> &str {
    spec.split(':').next().unwrap_or_default()
}

/// Bytes in the form of JSON, `{"$hex": …}`, for a fold of texts or bytes. Where values replace,
/// any text is a value, as in a file of CSV.
fn typed_bytes(spec: &str, word: &str) -> Option<Vec<u8>> {
    if matches!(stem(spec), "replace" | "first" | "json-merge" | "patch") {
        return None;
    }
    match datum::json::parse(word).ok()? {
        Datum::Bytes(bytes) => Some(bytes),
        read => datum::unwrapped(&read),
    }
}

/// A typed value as a datum for the fold of this spec.
///
/// # Errors
/// It begins like JSON, which the fold reads, but is not valid: a mistake in a list is not a
/// member.
pub(crate) fn value_datum(spec: &str, word: &str) -> Result<Datum, String> {
    let text = || Datum::Text(word.to_owned());
    if !word.trim_start().starts_with(['{', '[']) {
        return Ok(text());
    }
    if !is_structured(spec) {
        return Ok(typed_bytes(spec, word).map_or_else(text, Datum::Bytes));
    }
    let listed = || datum::json::text_of(&Datum::List(vec![text()]));
    match datum::json::parse(word) {
        Err(_) if !MEMBERS.contains(&stem(spec)) => Ok(text()), // the fold reads it in its own form, or refuses it
        Err(cause) => {
            let what = "it begins like JSON, but is not JSON";
            Err(format!("{what}: {cause}; to store it as text, put it in a list: {}", listed()))
        }
        // Counters take objects.
        Ok(datum @ Datum::Map(_)) if MEMBERS.contains(&stem(spec)) && stem(spec) != "counters" => {
            let bytes = datum::unwrapped(&datum).map(Datum::Bytes);
            bytes.ok_or_else(|| match datum::why_not_wrapped(&datum) {
                Some(wrong) => wrong,
                None => {
                    format!("an object cannot be a member; to add its text, put it in a list: {}", listed())
                }
            })
        }
        Ok(datum) => Ok(datum),
    }
}
