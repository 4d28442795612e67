//! What a datum is as plain bytes: a member of a set, a name, a payload.
//!
//! Numbers and bools are the text that they are written as, so that 17 and "17" are one
//! member, as in CSV. Nothing else becomes text: what cannot be bytes is refused, with a hint how
//! to write it.

use std::borrow::Cow;

use super::json::text_of;
use super::{Datum, unwrapped};

/// Why a datum that looks like [`wrapped`](super::wrapped) bytes cannot be read as such, as a
/// message; none for anything else.
pub fn why_not_wrapped(datum: &Datum) -> Option<String> {
    let is_mistaken = datum.field(super::WRAPPED_NAME).is_some() && unwrapped(datum).is_none();
    let wanted = "bytes as {\"$hex\":\"00ff\"}, pairs of hexadecimal digits and no other name";
    is_mistaken.then(|| expected(wanted, datum))
}

/// The message that `wanted` was expected, and `found` was given; if text is meant, how that would
/// be written.
pub fn expected(wanted: &str, found: &Datum) -> String {
    let text = brief(&Datum::Text(text_of(found)));
    format!("expected {wanted}, found {}; if text is meant, write it as text: {text}", brief(found))
}

/// The JSON of a datum, as much as fits into a message.
pub(crate) fn brief(datum: &Datum) -> String {
    let mut text = text_of(datum);
    if let Some((at, _)) = text.char_indices().nth(60) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// The bytes of a member, a name or a payload: text and bytes as they are; numbers and bools
/// as they are written.
///
/// # Errors
/// A null, a list and a map have none: their JSON would be mistaken for text.
pub(crate) fn bytes(datum: &Datum) -> Result<Cow<'_, [u8]>, String> {
    Ok(match datum {
        Datum::Text(text) => Cow::Borrowed(text.as_bytes()),
        Datum::Bytes(bytes) => Cow::Borrowed(bytes),
        Datum::Number(text) => Cow::Borrowed(text.as_bytes()),
        Datum::Float(value) if !value.is_finite() => Cow::Owned(value.to_string().into_bytes()),
        Datum::Bool(_) | Datum::Int(_) | Datum::Float(_) => Cow::Owned(text_of(datum).into_bytes()),
        Datum::Null | Datum::List(_) | Datum::Map(_) => match unwrapped(datum) {
            Some(bytes) => Cow::Owned(bytes),
            None => {
                return Err(
                    why_not_wrapped(datum).unwrap_or_else(|| expected("text, a number or bytes", datum))
                );
            }
        },
    })
}
