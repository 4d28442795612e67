//! Elements of tuples, out of their bytes. Strict: each tuple has one form.

use std::borrow::Cow;

use folddb_base::bytes::{Reader, prefix_u64};

use super::super::CodecError;
use super::codes::{
    BYTES, DEPTH_MAX, DOUBLE, ESCAPE, FALSE, FLOAT, INT_LONG, INT_LONG_NEGATIVE, INT_ZERO, NESTED, NULL,
    STAMP_80, STAMP_96, TEXT, TRUE, UUID, code_name, mismatch, unknown_code,
};
use super::element::Element;

/// The next element; `nested` says whether it is inside another one, `depth` how deep.
pub(super) fn take_element<'a>(
    reader: &mut Reader<'a>,
    nested: bool,
    depth: usize,
) -> Result<Element<'a>, CodecError> {
    let code = reader.u8()?;
    Ok(match code {
        NULL => {
            finish_null(reader, nested)?;
            Element::Null
        }
        BYTES => Element::Bytes(take_escaped(reader)?),
        TEXT => Element::Text(take_utf8(reader)?),
        NESTED => Element::Nested(take_nested(reader, depth)?),
        INT_LONG_NEGATIVE..=INT_LONG => Element::Int(finish_int(reader, code)?),
        FLOAT => Element::Float(finish_float(reader)?),
        DOUBLE => Element::Double(finish_double(reader)?),
        FALSE | TRUE => Element::Bool(code == TRUE),
        UUID => Element::Uuid(take_array(reader)?),
        STAMP_80 => Element::Stamp80(take_array(reader)?),
        STAMP_96 => Element::Stamp96(take_array(reader)?),
        _ => return Err(unknown_code(code)),
    })
}

fn take_nested<'a>(reader: &mut Reader<'a>, depth: usize) -> Result<Vec<Element<'a>>, CodecError> {
    check_depth(depth)?;
    let mut items = Vec::new();
    while !take_nested_end(reader)? {
        items.push(take_element(reader, true, depth + 1)?);
    }
    Ok(items)
}

/// Skips the next element, which is at the top level, and checks it.
///
/// # Errors
/// If there is no valid element.
pub fn skip(reader: &mut Reader<'_>) -> Result<(), CodecError> {
    skip_element(reader, false, 0).map(|_| ())
}

/// Skips the next element, checks it, and returns its code.
pub(in crate::codec) fn skip_element(
    reader: &mut Reader<'_>,
    nested: bool,
    depth: usize,
) -> Result<u8, CodecError> {
    let code = reader.u8()?;
    match code {
        NULL => finish_null(reader, nested)?,
        BYTES => skip_escaped(reader, |_| Ok(()))?,
        TEXT => skip_escaped(reader, |piece| utf8(piece).map(|_| ()))?,
        NESTED => {
            check_depth(depth)?;
            while !take_nested_end(reader)? {
                skip_element(reader, true, depth + 1)?;
            }
        }
        INT_LONG_NEGATIVE..=INT_LONG => {
            finish_int(reader, code)?;
        }
        FALSE | TRUE => {}
        FLOAT | DOUBLE | UUID | STAMP_80 | STAMP_96 => {
            reader.take(fixed_len(code))?;
        }
        _ => return Err(unknown_code(code)),
    }
    Ok(code)
}

fn fixed_len(code: u8) -> usize {
    match code {
        FLOAT => 4,
        DOUBLE => 8,
        UUID => 16,
        STAMP_80 => 10,
        _ => 12,
    }
}

pub(in crate::codec) fn check_depth(depth: usize) -> Result<(), CodecError> {
    if depth < DEPTH_MAX {
        return Ok(());
    }
    Err(CodecError::new(format!("a tuple nests deeper than {DEPTH_MAX}")))
}

/// True, and the end is read, when a nested tuple ends here.
#[inline]
pub(in crate::codec) fn take_nested_end(reader: &mut Reader<'_>) -> Result<bool, CodecError> {
    match reader.rest() {
        [] => Err(CodecError::new("a nested tuple does not end")),
        [NULL, ESCAPE, ..] => Ok(false),
        [NULL, ..] => {
            reader.u8()?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// True, and the null is read, when the next element is null.
#[inline]
pub fn take_null(reader: &mut Reader<'_>, nested: bool) -> Result<bool, CodecError> {
    match (nested, reader.rest()) {
        (false, [NULL, ..]) => {
            reader.u8()?;
            Ok(true)
        }
        (true, [NULL, ESCAPE, ..]) => {
            reader.take(2)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The next element, which must be a byte string.
#[inline]
pub fn take_bytes<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, CodecError> {
    expect_code(reader, BYTES)?;
    take_escaped(reader)
}

/// The next element, which must be text.
#[inline]
pub fn take_text<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, CodecError> {
    expect_code(reader, TEXT)?;
    take_utf8(reader)
}

/// Reads the code of a nested tuple.
#[inline]
pub fn take_nested_begin(reader: &mut Reader<'_>) -> Result<(), CodecError> {
    expect_code(reader, NESTED)
}

/// The next element, which must be an integer.
#[inline]
pub fn take_int(reader: &mut Reader<'_>) -> Result<i128, CodecError> {
    match reader.u8()? {
        code @ INT_LONG_NEGATIVE..=INT_LONG => finish_int(reader, code),
        code => Err(mismatch("an integer", code)),
    }
}

/// The next element, which must be an integer that fits.
#[inline]
pub fn take_i64(reader: &mut Reader<'_>) -> Result<i64, CodecError> {
    let code = reader.u8()?;
    let value = match code {
        INT_ZERO..INT_LONG => i64::try_from(finish_short_int(reader, code)?).ok(),
        INT_LONG_NEGATIVE | INT_LONG => None,
        INT_LONG_NEGATIVE..INT_ZERO => 0i64.checked_sub_unsigned(finish_short_int(reader, code)?),
        _ => return Err(mismatch("an integer", code)),
    };
    value.ok_or_else(|| does_not_fit("i64"))
}

/// The next element, which must be an integer that fits.
#[inline]
pub fn take_u64(reader: &mut Reader<'_>) -> Result<u64, CodecError> {
    match reader.u8()? {
        code @ INT_ZERO..INT_LONG => finish_short_int(reader, code),
        INT_LONG_NEGATIVE..=INT_LONG => Err(does_not_fit("u64")),
        code => Err(mismatch("an integer", code)),
    }
}

/// The next element, which must be a float.
#[inline]
pub fn take_float(reader: &mut Reader<'_>) -> Result<f32, CodecError> {
    expect_code(reader, FLOAT)?;
    finish_float(reader)
}

/// The next element, which must be a double.
#[inline]
pub fn take_double(reader: &mut Reader<'_>) -> Result<f64, CodecError> {
    expect_code(reader, DOUBLE)?;
    finish_double(reader)
}

/// The next element, which must be a bool.
#[inline]
pub fn take_bool(reader: &mut Reader<'_>) -> Result<bool, CodecError> {
    match reader.u8()? {
        FALSE => Ok(false),
        TRUE => Ok(true),
        code => Err(mismatch("true or false", code)),
    }
}

#[inline]
fn expect_code(reader: &mut Reader<'_>, expected: u8) -> Result<(), CodecError> {
    match reader.u8()? {
        code if code == expected => Ok(()),
        code => Err(mismatch(code_name(expected), code)),
    }
}

fn finish_null(reader: &mut Reader<'_>, nested: bool) -> Result<(), CodecError> {
    if nested && reader.u8()? != ESCAPE {
        return Err(CodecError::new("a null in a nested tuple is not marked as one"));
    }
    Ok(())
}

fn finish_float(reader: &mut Reader<'_>) -> Result<f32, CodecError> {
    let bits = u32::from_be_bytes(take_array(reader)?);
    let mask = if bits >> 31 == 0 { u32::MAX } else { 1 << 31 };
    Ok(f32::from_bits(bits ^ mask))
}

fn finish_double(reader: &mut Reader<'_>) -> Result<f64, CodecError> {
    let bits = u64::from_be_bytes(take_array(reader)?);
    let mask = if bits >> 63 == 0 { u64::MAX } else { 1 << 63 };
    Ok(f64::from_bits(bits ^ mask))
}

fn take_array<const N: usize>(reader: &mut Reader<'_>) -> Result<[u8; N], CodecError> {
    let mut array = [0u8; N];
    array.copy_from_slice(reader.take(N)?);
    Ok(array)
}

/// The integer after its code, which is one of `INT_LONG_NEGATIVE..=INT_LONG`.
#[inline]
fn finish_int(reader: &mut Reader<'_>, code: u8) -> Result<i128, CodecError> {
    if code == INT_LONG || code == INT_LONG_NEGATIVE {
        return finish_long_int(reader, code == INT_LONG_NEGATIVE);
    }
    let magnitude = i128::from(finish_short_int(reader, code)?);
    Ok(if code < INT_ZERO { -magnitude } else { magnitude })
}

/// The magnitude of an integer of at most 8 bytes; its sign is in the code.
#[inline]
fn finish_short_int(reader: &mut Reader<'_>, code: u8) -> Result<u64, CodecError> {
    let len = usize::from(code.abs_diff(INT_ZERO));
    if len == 0 {
        return Ok(0);
    }
    let unused = 64 - 8 * len as u32;
    let flip = if code < INT_ZERO { u64::MAX } else { 0 };
    // Reading eight bytes at once, if there are eight, costs less than a copy with a length that is
    // known only at run time.
    let word = match reader.rest().first_chunk::<8>() {
        Some(word) => u64::from_be_bytes(*word),
        None => prefix_u64(reader.rest(), 0),
    };
    reader.take(len)?;
    let magnitude = (word ^ flip) >> unused;
    if magnitude.leading_zeros() >= unused + 8 { Err(not_shortest()) } else { Ok(magnitude) }
}

fn finish_long_int(reader: &mut Reader<'_>, negative: bool) -> Result<i128, CodecError> {
    let flip = if negative { 0xff } else { 0 };
    let len = usize::from(reader.u8()? ^ flip);
    let bytes = reader.take(len)?;
    if len <= 8 || bytes[0] ^ flip == 0 {
        return Err(not_shortest());
    }
    if len > 16 {
        return Err(too_wide());
    }
    let mut word = [flip; 16];
    word[16 - len..].copy_from_slice(bytes);
    let bits = u128::from_be_bytes(word);
    let value = if negative { 0i128.checked_sub_unsigned(!bits) } else { i128::try_from(bits).ok() };
    value.ok_or_else(too_wide)
}

#[cold]
fn does_not_fit(number: &str) -> CodecError {
    CodecError::new(format!("an integer in a tuple does not fit {number}"))
}

#[cold]
fn not_shortest() -> CodecError {
    CodecError::new("an integer in a tuple is not in its shortest form")
}

#[cold]
fn too_wide() -> CodecError {
    CodecError::new("an integer in a tuple has more than 128 bits")
}

#[inline]
fn take_utf8<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, CodecError> {
    Ok(match take_escaped(reader)? {
        Cow::Borrowed(bytes) => Cow::Borrowed(utf8(bytes)?),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).map_err(|_| not_utf8())?),
    })
}

fn utf8(bytes: &[u8]) -> Result<&str, CodecError> {
    std::str::from_utf8(bytes).map_err(|_| not_utf8())
}

#[cold]
fn not_utf8() -> CodecError {
    CodecError::new("text in a tuple is not UTF-8")
}

/// The bytes up to the end of a string, unescaped; copies only what was escaped.
#[inline]
fn take_escaped<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, CodecError> {
    let (piece, escaped) = take_piece(reader)?;
    if !escaped {
        return Ok(Cow::Borrowed(piece));
    }
    let mut bytes = piece.to_vec();
    loop {
        bytes.push(NULL);
        let (piece, escaped) = take_piece(reader)?;
        bytes.extend_from_slice(piece);
        if !escaped {
            return Ok(Cow::Owned(bytes));
        }
    }
}

/// Passes the pieces between the zeros of a string to `look`. Text may be checked piece by piece,
/// since a zero is a whole character.
fn skip_escaped(
    reader: &mut Reader<'_>,
    look: impl Fn(&[u8]) -> Result<(), CodecError>,
) -> Result<(), CodecError> {
    loop {
        let (piece, escaped) = take_piece(reader)?;
        look(piece)?;
        if !escaped {
            return Ok(());
        }
    }
}

/// The bytes up to the next zero, and whether that zero is escaped, so that more of the string
/// follows.
#[inline]
fn take_piece<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], bool), CodecError> {
    let rest = reader.rest();
    let Some(len) = zero_at(rest) else {
        return Err(CodecError::new("a string in a tuple does not end"));
    };
    let escaped = rest.get(len + 1) == Some(&ESCAPE);
    reader.take(len + 1 + usize::from(escaped))?;
    Ok((&rest[..len], escaped))
}

/// The place of the first zero byte. Eight bytes at a time: the lowest set bit of `word - 1s &
/// !word & 0x80s` marks the first zero of a little-endian word (Warren, Hacker's Delight, 6-1).
#[inline]
pub(in crate::codec) fn zero_at(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(8 * index + zeros.trailing_zeros() as usize / 8);
        }
    }
    tail.iter().position(|&byte| byte == NULL).map(|at| 8 * words.len() + at)
}
