//! Queries of an index in the form of its terms: a term, a range or a prefix becomes ranges of
//! terms.
//!
//! ```text
//!   Int                 bounds between two whole numbers go to the next one inside: from 2.5 is from 3
//!   Float, Double       whole numbers as these; -0 and 0 are one, and so are all that are no number (NaN)
//!   Any                 numbers by what they are, whatever their type: three ranges, of whole numbers, floats and doubles; of
//!                       fields of JSON those of more than 64 bits as the doubles that they are kept as
//!   Text, Bytes         text is its bytes where terms are bytes
//!   Time                as Int; a part of a time that is typed, such as a day, is all moments of it
//! ```
//!
//! A term that an index of this kind cannot have is an error of the caller, not an empty answer.
//! Called by `find`; what people type is parsed here, too.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Bound;

use crate::codec::tuple::Element;
use crate::datum::json_text::{self, Node};
use crate::datum::{Datum, from_hex, json};
use crate::extract::Extractor;
use crate::term_kind::TermKind;
use crate::time_text;

/// A range of terms.
pub type TermRange<'t> = (Bound<Element<'t>>, Bound<Element<'t>>);

/// Beyond all integers that are terms.
const INT_END: f64 = (1u128 << 127) as f64;

/// Bits of the first and the last NaN, without the sign.
const NAN_BITS: (u64, u64) = (0x7ff0_0000_0000_0001, 0x7fff_ffff_ffff_ffff);
const NAN_BITS_32: (u32, u32) = (0x7f80_0001, 0x7fff_ffff);

impl Extractor {
    /// The terms between two, as ranges that follow one another in the order of terms.
    ///
    /// # Errors
    /// A bound is not of the kind of the index: says which kind that is.
    pub fn ask<'t>(
        &self,
        low: Bound<Element<'t>>,
        high: Bound<Element<'t>>,
    ) -> Result<Vec<TermRange<'t>>, String> {
        let (low, high) = (self.fitting_bound(low)?, self.fitting_bound(high)?);
        let types: &[NumberType] = match self.kind() {
            TermKind::Int | TermKind::Time => &[NumberType::Int],
            TermKind::Float => &[NumberType::Float],
            TermKind::Double | TermKind::Json => &[NumberType::Double],
            TermKind::Any => &[NumberType::Int, NumberType::Float, NumberType::Double],
            TermKind::Bytes | TermKind::Text | TermKind::TextOrBytes => &[],
        };
        Ok(numbers_separated(types, low, high))
    }

    /// The same with bounds that a person typed. Quotes make text of what would otherwise be
    /// something else.
    ///
    /// # Errors
    /// As [`Extractor::ask`].
    pub fn ask_typed(&self, low: Bound<&str>, high: Bound<&str>) -> Result<Vec<TermRange<'static>>, String> {
        if self.kind() == TermKind::Time {
            return self.ask(time_bound(low, true), time_bound(high, false));
        }
        self.ask(low.map(|typed| self.read_term(typed)), high.map(|typed| self.read_term(typed)))
    }

    /// A prefix of terms in the form of the terms: a text or a byte string.
    ///
    /// # Errors
    /// Terms of this kind have no prefixes: says which kind they are.
    pub fn ask_prefix<'t>(&self, prefix: Element<'t>) -> Result<Element<'t>, String> {
        match self.fitting(prefix)? {
            prefix @ (Element::Text(_) | Element::Bytes(_)) => Ok(prefix),
            other => Err(format!(
                "cannot be asked for a prefix of {}: only text and byte strings have prefixes",
                other.show()
            )),
        }
    }

    /// The same for what a person typed: text, or bytes as 0x... if terms are bytes.
    ///
    /// # Errors
    /// As [`Extractor::ask_prefix`].
    pub fn ask_typed_prefix(&self, typed: &str) -> Result<Element<'static>, String> {
        if let (true, Some(bytes)) = (self.heads_are_json(), hexadecimal(typed)) {
            return Ok(Element::Bytes(Cow::Owned(bytes)));
        }
        if self.heads_are_json() {
            let text = head_of_json(&Datum::Text(quoted(typed).unwrap_or_else(|| typed.to_owned())));
            return Ok(Element::Bytes(Cow::Owned(text[..text.len() - 1].to_vec()))); // without the quote at its end
        }
        let read = match self.kind() {
            kind @ (TermKind::Int | TermKind::Float | TermKind::Double | TermKind::Time) => {
                let has = kind.words();
                return Err(format!("has {has}, which have no prefixes: ask for a range"));
            }
            TermKind::Bytes | TermKind::TextOrBytes => self.read_term(typed),
            _ => Element::from(quoted(typed).unwrap_or_else(|| typed.to_owned())),
        };
        self.ask_prefix(read)
    }

    fn fitting_bound<'t>(&self, bound: Bound<Element<'t>>) -> Result<Bound<Element<'t>>, String> {
        Ok(match bound {
            Bound::Included(term) => Bound::Included(self.fitting(term)?),
            Bound::Excluded(term) => Bound::Excluded(self.fitting(term)?),
            Bound::Unbounded => Bound::Unbounded,
        })
    }

    /// A term of the kind that the index has; numbers as they are.
    fn fitting<'t>(&self, term: Element<'t>) -> Result<Element<'t>, String> {
        Ok(match (self.kind(), term) {
            (TermKind::Any, Element::Int(value)) if self.is_widened(value) => Element::Double(value as f64),
            (TermKind::Any, term) => term,
            (TermKind::Json, term) => self.nearest(term),
            (TermKind::Int | TermKind::Float | TermKind::Double | TermKind::Time, term)
                if Number::of(&term).is_some() =>
            {
                self.nearest(term)
            }
            (TermKind::Text | TermKind::TextOrBytes, term @ Element::Text(_)) => shown(term, self.kind()),
            (TermKind::TextOrBytes, term @ Element::Bytes(_)) => shown(term, self.kind()),
            (TermKind::Bytes, Element::Text(text)) => Element::Bytes(match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }),
            (TermKind::Bytes, term @ Element::Bytes(_)) => term,
            (TermKind::Bytes | TermKind::Text | TermKind::TextOrBytes, term) => term, // before or after all terms
            (kind, term) => return Err(format!("has {}, and {} is none", kind.words(), named(&term))),
        })
    }

    /// A term that a person typed.
    fn read_term(&self, typed: &str) -> Element<'static> {
        if self.heads_are_json() {
            let head = match (hexadecimal(typed), json_text::parse(typed)) {
                (Some(bytes), _) => bytes,
                (None, Ok(_)) => head_of_text(typed.as_bytes()),
                (None, Err(_)) => head_of_json(&Datum::Text(typed.to_owned())),
            };
            return Element::Bytes(Cow::Owned(head));
        }
        let text = || Element::from(typed.to_owned());
        if let Some(text) = quoted(typed) {
            return Element::from(text);
        }
        match (self.kind(), typed.parse::<i128>(), typed.parse::<f64>()) {
            (TermKind::Text, ..) => text(),
            (TermKind::Bytes | TermKind::TextOrBytes, ..) => match hexadecimal(typed) {
                Some(bytes) => Element::Bytes(Cow::Owned(bytes)),
                None => text(),
            },
            (_, Ok(whole), _) => Element::Int(whole),
            (TermKind::Int | TermKind::Float | TermKind::Double, _, Ok(number)) => Element::Double(number),
            (TermKind::Json | TermKind::Any, _, Ok(number)) if number.is_finite() => Element::Double(number),
            (TermKind::Json | TermKind::Any, ..) if matches!(typed, "true" | "false") => {
                Element::Bool(typed == "true")
            }
            _ => text(),
        }
    }

    /// If all terms are floating-point numbers: the nearest one, as for a number that is stored.
    fn nearest<'t>(&self, term: Element<'t>) -> Element<'t> {
        match (self.kind(), term) {
            (TermKind::Json | TermKind::Double, Element::Int(value)) => Element::Double(value as f64),
            (TermKind::Float, Element::Int(value)) => Element::Float(value as f32),
            (TermKind::Float, Element::Double(value)) => Element::Float(value as f32),
            (_, term) => term,
        }
    }
}

/// A bound that is typed as a time: at one of the two ends of the moments that it is. What is no
/// time stays text, which is then refused.
fn time_bound(bound: Bound<&str>, is_low: bool) -> Bound<Element<'static>> {
    let (typed, is_included) = match bound {
        Bound::Included(typed) => (typed, true),
        Bound::Excluded(typed) => (typed, false),
        Bound::Unbounded => return Bound::Unbounded,
    };
    let typed = quoted(typed).unwrap_or_else(|| typed.to_owned());
    match time_text::parse_span(&typed, &Ok).unwrap_or_default() {
        None => Bound::Included(Element::from(typed)),
        Some(span) if is_low => {
            Bound::Included(Element::from(if is_included { span.start } else { span.end }))
        }
        Some(span) => Bound::Excluded(Element::from(if is_included { span.end } else { span.start })),
    }
}

fn quoted(typed: &str) -> Option<String> {
    match json_text::parse(typed) {
        Ok(Node::Text(text)) => Some(text.into_owned()),
        _ => None,
    }
}

/// Bytes as people type them.
fn hexadecimal(typed: &str) -> Option<Vec<u8>> {
    typed.strip_prefix("0x").and_then(from_hex)
}

/// A text as it is in heads that are JSON.
fn head_of_text(text: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    json_text::put_at(text, "", &mut head);
    head
}

fn head_of_json(datum: &Datum) -> Vec<u8> {
    let mut head = Vec::new();
    json::put_bytes(datum, &mut head);
    head
}

/// Text that people read as text, bytes otherwise, if terms are taken from shown values.
fn shown(term: Element<'_>, kind: TermKind) -> Element<'_> {
    let bytes = match &term {
        Element::Text(text) => text.as_bytes(),
        Element::Bytes(bytes) => bytes,
        _ => return term,
    };
    match Datum::from_bytes(bytes) {
        _ if kind == TermKind::Text => term,
        Datum::Text(text) => Element::from(text),
        _ => Element::Bytes(Cow::Owned(bytes.to_vec())),
    }
}

fn named(term: &Element<'_>) -> String {
    match term {
        Element::Text(text) => format!("{text:?}"),
        other => other.show().to_string(),
    }
}

// ---- numbers ------------------------------------------------------------------------------------

/// A type of numbers among terms, in the order of terms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberType {
    Int,
    Float,
    Double,
}

#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Other(f64),
}

impl Number {
    fn of(term: &Element<'_>) -> Option<Number> {
        match term {
            Element::Int(value) => Some(Number::Whole(*value)),
            Element::Float(value) => Some(Number::Other(f64::from(*value))),
            Element::Double(value) => Some(Number::Other(*value)),
            _ => None,
        }
    }
}

/// An end of a range that is a number.
#[derive(Clone, Copy)]
struct End {
    number: Number,
    is_included: bool,
    is_low: bool,
}

impl End {
    fn of(bound: &Bound<Element<'_>>, is_low: bool) -> Option<End> {
        let (term, is_included) = match bound {
            Bound::Included(term) => (term, true),
            Bound::Excluded(term) => (term, false),
            Bound::Unbounded => return None,
        };
        Some(End { number: Number::of(term)?, is_included, is_low })
    }

    fn is_nan(self) -> bool {
        self.is_included && matches!(self.number, Number::Other(value) if value.is_nan())
    }

    fn bound(self, term: Element<'static>) -> Bound<Element<'static>> {
        if self.is_included { Bound::Included(term) } else { Bound::Excluded(term) }
    }

    /// The same end at a number that is not the exact one but compares to it as `found`.
    fn rounded(self, found: Ordering) -> End {
        match found {
            Ordering::Equal => self,
            Ordering::Greater => End { is_included: self.is_low, ..self },
            Ordering::Less => End { is_included: !self.is_low, ..self },
        }
    }

    fn among(self, numbers: NumberType) -> Bound<Element<'static>> {
        match numbers {
            NumberType::Int => self.among_ints(),
            NumberType::Float => {
                let (value, found) = match self.number {
                    Number::Whole(whole) => (whole as f32, compare(f64::from(whole as f32), whole)),
                    Number::Other(value) => (value as f32, compare_floats(f64::from(value as f32), value)),
                };
                let end = self.rounded(found);
                let (first, last) = NAN_BITS_32;
                end.bound(Element::Float(match value {
                    _ if value.is_nan() => f32::from_bits(end.outer(first, last)),
                    0.0 => end.outer(-0.0, 0.0),
                    value => value,
                }))
            }
            NumberType::Double => {
                let (value, found) = match self.number {
                    Number::Whole(whole) => (whole as f64, compare(whole as f64, whole)),
                    Number::Other(value) => (value, Ordering::Equal),
                };
                let end = self.rounded(found);
                let (first, last) = NAN_BITS;
                end.bound(Element::Double(match value {
                    _ if value.is_nan() => f64::from_bits(end.outer(first, last)),
                    0.0 => end.outer(-0.0, 0.0),
                    value => value,
                }))
            }
        }
    }

    fn among_ints(self) -> Bound<Element<'static>> {
        let (least, most) = (Element::Int(i128::MIN), Element::Int(i128::MAX));
        match self.number {
            Number::Whole(whole) => self.bound(Element::Int(whole)),
            Number::Other(value) if value.is_nan() || value >= INT_END => match self.is_low {
                true => Bound::Excluded(most),
                false => Bound::Included(most),
            },
            Number::Other(value) if value < -INT_END => match self.is_low {
                true => Bound::Included(least),
                false => Bound::Excluded(least),
            },
            Number::Other(value) => {
                let inside = if self.is_low { value.ceil() } else { value.floor() };
                let end = End { is_included: self.is_included || inside != value, ..self };
                end.bound(Element::Int(inside as i128))
            }
        }
    }

    /// Of several terms that are one number, the outermost for this end.
    fn outer<T>(self, first: T, last: T) -> T {
        if self.is_low == self.is_included { first } else { last }
    }
}

fn compare(value: f64, whole: i128) -> Ordering {
    if value >= INT_END { Ordering::Greater } else { (value as i128).cmp(&whole) }
}

fn compare_floats(value: f64, asked: f64) -> Ordering {
    value.partial_cmp(&asked).unwrap_or(Ordering::Equal)
}

/// The first and the last term of a type.
fn ends_of(numbers: NumberType) -> (Element<'static>, Element<'static>) {
    let last = NAN_BITS.1;
    match numbers {
        NumberType::Int => (Element::Int(i128::MIN), Element::Int(i128::MAX)),
        NumberType::Float => {
            (Element::Float(f32::from_bits(u32::MAX)), Element::Float(f32::from_bits(NAN_BITS_32.1)))
        }
        NumberType::Double => {
            (Element::Double(f64::from_bits(u64::MAX)), Element::Double(f64::from_bits(last)))
        }
    }
}

/// NaN with a sign, which some machines produce: it sorts before all numbers of its type.
fn nan_with_sign(numbers: NumberType) -> Option<TermRange<'static>> {
    let nearest = match numbers {
        NumberType::Int => return None,
        NumberType::Float => Element::Float(f32::from_bits(NAN_BITS_32.0 | 1 << 31)),
        NumberType::Double => Element::Double(f64::from_bits(NAN_BITS.0 | 1 << 63)),
    };
    Some((Bound::Included(ends_of(numbers).0), Bound::Included(nearest)))
}

/// A range with an end that is a number, once for each of these types of numbers.
fn numbers_separated<'t>(
    types: &[NumberType],
    low: Bound<Element<'t>>,
    high: Bound<Element<'t>>,
) -> Vec<TermRange<'t>> {
    let (from, to) = (End::of(&low, true), End::of(&high, false));
    let (least, most) = (ends_of(NumberType::Int).0, ends_of(NumberType::Double).1);
    let is_beyond = matches!(&low, Bound::Included(term) | Bound::Excluded(term) if *term > most)
        || matches!(&high, Bound::Included(term) | Bound::Excluded(term) if *term < least);
    if types.is_empty() || is_beyond || (from.is_none() && to.is_none()) {
        return vec![(low, high)];
    }
    let mut ranges = Vec::new();
    for (at, &numbers) in types.iter().enumerate() {
        if from.is_some_and(End::is_nan) && to.is_some_and(End::is_nan) {
            ranges.extend(nan_with_sign(numbers));
        }
        let (first, last) = ends_of(numbers);
        let begin = match from {
            Some(end) => end.among(numbers),
            None if at == 0 => low.clone(),
            None => Bound::Included(first),
        };
        let end = match to {
            Some(end) => end.among(numbers),
            None if at + 1 == types.len() => high.clone(),
            None => Bound::Included(last),
        };
        ranges.push((begin, end));
    }
    ranges
}

#[cfg(test)]
#[path = "index_query/tests.rs"]
mod tests;
