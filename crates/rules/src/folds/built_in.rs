//! What the built-in folds share: their trait, reading numbers and bytes out of a [`Datum`], and
//! describing malformed bytes.

use folddb_base::bytes::{Malformed, Reader, put_varint};

use crate::datum::{Datum, json, parse_float};
pub(crate) use crate::fold::plain_bytes;
use crate::fold::{Fold, FoldFailure};
use crate::time_text;

/// So many values at least are folded at once, where that has a way of its own.
pub(crate) const SEVERAL: usize = 4;

/// A fold of this crate.
///
/// In addition to the contract of [`Fold`], `fold` *appends* to the output. It ignores what the
/// output already has, so a record folds its fields directly into its own output.
pub(crate) trait BuiltIn: Fold {
    /// Appends the value e with e·x = x·e = x, where there is one of the fixed length. It
    /// represents an absent field in a record of fixed length.
    fn identity(&self, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// True when `value` is an identity that people read as nothing at all.
    fn is_nothing(&self, _value: &[u8]) -> bool {
        false
    }
}

/// Splits a value that is a row of entries into values of some entries each, of at most `bytes_max`
/// bytes unless a single entry is longer. `skip` skips one entry.
pub(crate) fn rows_of_entries(
    value: &[u8],
    bytes_max: usize,
    skip: impl Fn(&mut Reader<'_>) -> Result<(), Malformed>,
) -> Option<Vec<Vec<u8>>> {
    let (mut pieces, mut begin, mut end) = (Vec::new(), 0, 0);
    let mut reader = Reader::new(value);
    while !reader.is_empty() {
        skip(&mut reader).ok()?;
        let after = value.len() - reader.rest().len();
        if after - begin > bytes_max && end > begin {
            pieces.push(value[begin..end].to_vec());
            begin = end;
        }
        end = after;
    }
    pieces.push(value[begin..].to_vec());
    Some(pieces)
}

/// `expected WHAT: CAUSE`.
pub(crate) fn malformed(what: &'static str) -> impl Fn(Malformed) -> FoldFailure {
    move |cause| FoldFailure::new(format!("expected {what}: {cause}"))
}

/// A failure that names what was expected and shows what was found.
pub(crate) fn unexpected<T>(what: &str, found: &Datum) -> Result<T, FoldFailure> {
    let mut text = match found {
        Datum::List(_) | Datum::Map(_) => json::text_of(found),
        other => other.to_string(),
    };
    if let Some((at, _)) = text.char_indices().nth(60) {
        text.truncate(at);
        text.push('…');
    }
    match text.as_str() {
        "" => Err(FoldFailure::new(format!("expected {what}, found nothing"))),
        _ => Err(FoldFailure::new(format!("expected {what}, found `{text}`"))),
    }
}

/// The eight bytes of a number.
#[inline]
pub(crate) fn word(value: &[u8]) -> Result<[u8; 8], FoldFailure> {
    value.try_into().map_err(|_| wrong_length(8, value.len()))
}

#[cold]
pub(crate) fn wrong_length(expected_bytes: usize, found_bytes: usize) -> FoldFailure {
    FoldFailure::new(format!("expected {expected_bytes} bytes, found {found_bytes}"))
}

/// A whole number: as such, as a float without a fraction, as a bool, or as text.
pub(crate) fn integer(datum: &Datum) -> Result<i128, FoldFailure> {
    let read = match datum {
        Datum::Int(value) => Some(*value),
        Datum::Bool(value) => Some(i128::from(*value)),
        Datum::Float(value) => whole(&json::float_text(*value)),
        Datum::Text(text) | Datum::Number(text) => whole(text.trim()),
        _ => None,
    };
    match (read, datum) {
        (Some(value), _) => Ok(value),
        (None, Datum::Text(text) | Datum::Number(text)) if is_digits(text.trim()) => {
            let found = unexpected("a whole number", datum);
            found.map_err(|failure| FoldFailure(failure.0 + ", which is beyond 128 bits: only text keeps it"))
        }
        (None, _) => unexpected("a whole number", datum),
    }
}

fn is_digits(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// The whole number that the text is, also with a fraction of zeros or an exponent. Nothing is
/// rounded.
fn whole(text: &str) -> Option<i128> {
    const DIGITS_MAX: i64 = 39;
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    text.parse::<f64>().ok()?; // it has the form of a number
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix(['-', '+']) {
        Some(rest) => (&mantissa[..1], rest),
        None => ("", mantissa),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{before}{after}");
    if !is_digits(&digits) {
        return None; // an infinity, or no number
    }
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let shift = exponent.parse::<i64>().ok()?.checked_sub(after.len() as i64)?.checked_add(zeros as i64)?;
    let shift = usize::try_from(shift).ok().filter(|shift| *shift as i64 <= DIGITS_MAX)?;
    format!("{sign}{significant}{}", "0".repeat(shift)).parse().ok()
}

/// A whole number of 64 bits, signed.
pub(crate) fn integer_i64(datum: &Datum) -> Result<i64, FoldFailure> {
    if let Datum::Text(text) = datum
        && let Ok(value) = text.parse()
    {
        return Ok(value); // as most are, in files
    }
    i64::try_from(integer(datum)?).or_else(|_| unexpected("a whole number of 64 bits", datum))
}

/// A whole number of 64 bits, not negative.
pub(crate) fn integer_u64(datum: &Datum) -> Result<u64, FoldFailure> {
    if let Datum::Text(text) = datum
        && let Ok(value) = text.parse()
    {
        return Ok(value); // as most are, in files
    }
    u64::try_from(integer(datum)?).or_else(|_| unexpected("a whole number from 0 to 2^64-1", datum))
}

/// A floating-point number.
pub(crate) fn float(datum: &Datum) -> Result<f64, FoldFailure> {
    match datum {
        Datum::Float(value) => Ok(*value),
        Datum::Int(value) => Ok(*value as f64),
        Datum::Bool(value) => Ok(f64::from(u8::from(*value))),
        Datum::Text(text) | Datum::Number(text) => match parse_float(text) {
            Some(value) => Ok(value),
            None if text.trim().parse::<f64>().is_ok() => {
                let found = unexpected::<f64>("a number", datum);
                found.map_err(|failure| {
                    FoldFailure(failure.0 + ", which is beyond ±1.8e308: only text keeps it")
                })
            }
            None => unexpected("a number", datum),
        },
        _ => unexpected("a number", datum),
    }
}

/// A time, in microseconds since 1970.
pub(crate) fn time(datum: &Datum) -> Result<i64, FoldFailure> {
    let read = time_text::of_datum(datum).map_err(FoldFailure)?;
    read.map_or_else(|| unexpected(time_text::EXPECTED, datum), Ok)
}

/// Writes a varint to `at`, where a byte was left for it: a length, or a number, that is known only
/// when what follows is written. If it takes more than that byte, what follows is moved.
#[inline]
pub(crate) fn fill_varint(out: &mut Vec<u8>, at: usize, value: u64) {
    if value < 0x80 {
        out[at] = value as u8;
        return;
    }
    let end = out.len();
    put_varint(out, value);
    let varint_bytes = out.len() - end;
    out[at..].rotate_right(varint_bytes);
    out.remove(at + varint_bytes);
}

/// The one NaN that folds write, so that equal results are equal bytes.
pub(crate) const NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0000);

/// The smaller number by the total order (-0 before +0); NaN only when both are.
#[inline]
pub(crate) fn least(a: f64, b: f64) -> f64 {
    pick(a, b, a.total_cmp(&b).is_le())
}

/// The larger number by the total order (-0 before +0); NaN only when both are.
#[inline]
pub(crate) fn greatest(a: f64, b: f64) -> f64 {
    pick(a, b, a.total_cmp(&b).is_ge())
}

#[inline]
fn pick(a: f64, b: f64, first: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if first {
                a
            } else {
                b
            }
        }
    }
}
