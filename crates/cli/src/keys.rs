//! Keys and values as they are typed on the command line.

use std::ops::Bound;

use folddb::codec::{CodecError, KeyRange};
use folddb::order::KeyOrder;
use folddb::{BytesTable, Datum, datum};

use crate::failure::Failure;

/// The bytes of a key given in one word, or one word for each element of a tuple.
pub(crate) fn key(table: &BytesTable, words: &[String], hex: bool) -> Result<Vec<u8>, Failure> {
    let codec = table.rules().as_table_rules().key_codec();
    let key = if hex { hex_key(words, |bytes| codec.check(bytes)) } else { codec.parse_text(&parts(words)) };
    key.map_err(|cause| wrong_key(table, words, &cause))
}

/// The keys that count as equal to a bound, in the order of the table.
pub(crate) fn bound(table: &BytesTable, words: &[String], hex: bool) -> Result<KeyRange, Failure> {
    let span = if hex {
        hex_key(words, |_| Ok(())).map(KeyRange::one)
    } else {
        table.rules().as_table_rules().key_codec().parse_bound(&parts(words))
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
pub(crate) fn prefix_bytes(table: &BytesTable, words: &[String], hex: bool) -> Result<Vec<u8>, Failure> {
    match typed_prefix(table, words, hex)?.low {
        Bound::Included(prefix) | Bound::Excluded(prefix) => Ok(prefix),
        Bound::Unbounded => Ok(Vec::new()),
    }
}

fn typed_prefix(table: &BytesTable, words: &[String], hex: bool) -> Result<KeyRange, Failure> {
    let range = match hex {
        true => hex_key(words, |_| Ok(())).map(KeyRange::prefix),
        false => table.rules().as_table_rules().key_codec().parse_prefix(&parts(words)),
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
    let read = datum.and_then(|datum| table.rules().read_value(&datum, &mut bytes));
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
