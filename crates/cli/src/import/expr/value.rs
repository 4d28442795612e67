//! What an expression gives for a row, and how such values are compared and reckoned with.
//!
//! A field of a file is text, and a number where a number is needed. Null is what is missing: what
//! is reckoned from it is null, too. Whole numbers are exact, or an error beyond 64 bits.

use std::borrow::Cow;
use std::cmp::Ordering;

use jiff::Timestamp;

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// It is missing.
    Null,
    Bool(bool),
    Whole(i64),
    Float(f64),
    /// Text that is meant as text.
    Text(Cow<'a, str>),
    /// The text of a field, which may be meant as a number.
    Field(Cow<'a, str>),
    /// A time, where times are compared.
    Moment(Timestamp),
    List(Vec<Value<'a>>),
}

/// A number.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Float(f64),
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Number::Whole(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    fn of_text(text: &str) -> Option<Number> {
        let text = text.trim();
        match text.parse() {
            Ok(value) => Some(Number::Whole(value)),
            // `inf` and `nan` are words here.
            Err(_) if text.ends_with(|last: char| last.is_ascii_digit() || last == '.') => {
                text.parse().ok().map(Number::Float)
            }
            Err(_) => None,
        }
    }
}

impl<'a> Value<'a> {
    /// The same one, without a copy of its text.
    pub(crate) fn borrowed(&self) -> Value<'_> {
        match self {
            Value::Text(text) => Value::Text(Cow::Borrowed(text)),
            Value::Field(text) => Value::Field(Cow::Borrowed(text)),
            other => other.clone(),
        }
    }

    /// Its text; none of null, nor of a list.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Value::Null | Value::List(_) => None,
            Value::Bool(truth) => Some(Cow::Borrowed(if *truth { "true" } else { "false" })),
            Value::Whole(value) => Some(Cow::Owned(value.to_string())),
            Value::Float(value) => Some(Cow::Owned(value.to_string())),
            Value::Moment(at) => Some(Cow::Owned(at.to_string())),
            Value::Text(text) | Value::Field(text) => Some(Cow::Borrowed(text)),
        }
    }

    /// Whether it is true; none if it is missing.
    pub(crate) fn truth(&self) -> Result<Option<bool>, String> {
        match self {
            Value::Null => Ok(None),
            Value::Bool(truth) => Ok(Some(*truth)),
            Value::Field(text) | Value::Text(text) => match &**text {
                "true" | "TRUE" | "True" | "1" => Ok(Some(true)),
                "false" | "FALSE" | "False" | "0" => Ok(Some(false)),
                _ => Err(format!("expected true or false, found `{text}`")),
            },
            Value::Whole(value) => Ok(Some(*value != 0)),
            Value::Float(value) => Ok(Some(*value != 0.0)),
            Value::Moment(at) => Err(format!("expected true or false, found the time {at}")),
            Value::List(_) => Err("expected true or false, found a list".to_owned()),
        }
    }

    fn number(&self) -> Result<Option<Number>, String> {
        match self {
            Value::Null => Ok(None),
            Value::Bool(truth) => Ok(Some(Number::Whole((*truth).into()))),
            Value::Whole(value) => Ok(Some(Number::Whole(*value))),
            Value::Float(value) => Ok(Some(Number::Float(*value))),
            Value::Field(text) | Value::Text(text) => match Number::of_text(text) {
                Some(number) => Ok(Some(number)),
                None => Err(format!("expected a number, found `{text}`")),
            },
            Value::Moment(at) => Err(format!("expected a number, found the time {at}")),
            Value::List(_) => Err("expected a number, found a list".to_owned()),
        }
    }

    /// As a floating-point number.
    pub(crate) fn float(&self) -> Result<Option<f64>, String> {
        Ok(self.number()?.map(Number::float))
    }

    /// As a whole number, if it is one.
    pub(crate) fn whole(&self) -> Result<Option<i64>, String> {
        match self.number()? {
            None => Ok(None),
            Some(Number::Whole(value)) => Ok(Some(value)),
            Some(Number::Float(value)) => whole_of(value).map(Some),
        }
    }

    fn reckon(
        self,
        other: Value<'_>,
        whole: impl Fn(i64, i64) -> Option<i64>,
        float: impl Fn(f64, f64) -> f64,
    ) -> Result<Value<'a>, String> {
        match (self.number()?, other.number()?) {
            (Some(Number::Whole(one)), Some(Number::Whole(two))) => match whole(one, two) {
                Some(value) => Ok(Value::Whole(value)),
                None => Err(format!("the result of {one} and {two} is no whole number of 64 bits")),
            },
            (Some(one), Some(two)) => Ok(Value::Float(float(one.float(), two.float()))),
            _ => Ok(Value::Null),
        }
    }

    pub(crate) fn plus(self, other: Value<'_>) -> Result<Value<'a>, String> {
        self.reckon(other, i64::checked_add, |one, two| one + two)
    }

    /// Of two times, the seconds between them.
    pub(crate) fn minus(self, other: Value<'_>) -> Result<Value<'a>, String> {
        if let (Value::Moment(one), Value::Moment(two)) = (&self, &other) {
            let nanos = one.as_nanosecond() - two.as_nanosecond();
            return Ok(match i64::try_from(nanos / 1_000_000_000) {
                Ok(seconds) if nanos % 1_000_000_000 == 0 => Value::Whole(seconds),
                _ => Value::Float(nanos as f64 / 1e9),
            });
        }
        self.reckon(other, i64::checked_sub, |one, two| one - two)
    }

    pub(crate) fn times(self, other: Value<'_>) -> Result<Value<'a>, String> {
        self.reckon(other, i64::checked_mul, |one, two| one * two)
    }

    /// Whole where it can be. Nothing if it is divided by zero.
    pub(crate) fn over(self, other: Value<'_>) -> Result<Value<'a>, String> {
        match (self.number()?, other.number()?) {
            (Some(_), Some(by)) if by.float() == 0.0 => Ok(Value::Null),
            (Some(Number::Whole(one)), Some(Number::Whole(two))) if one.checked_rem(two) == Some(0) => {
                Ok(Value::Whole(one / two))
            }
            (Some(one), Some(two)) => Ok(Value::Float(one.float() / two.float())),
            _ => Ok(Value::Null),
        }
    }

    /// What remains; not negative for a positive divisor.
    pub(crate) fn modulo(self, other: Value<'_>) -> Result<Value<'a>, String> {
        match other.number()? {
            Some(by) if by.float() == 0.0 => Ok(Value::Null),
            _ => self.reckon(other, i64::checked_rem_euclid, f64::rem_euclid),
        }
    }

    pub(crate) fn among(self, list: Value<'_>) -> Result<Value<'a>, String> {
        if self == Value::Null {
            return Ok(Value::Null);
        }
        let Value::List(items) = list else { return Err("`in` needs a list: [a, b]".to_owned()) };
        for item in items {
            if self.clone().compare(Operator::Equal, item)? == Value::Bool(true) {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }

    /// Compares two values.
    ///
    /// # Errors
    /// A number is compared with a text that is none: false would leave the row out, and say
    /// nothing.
    pub(crate) fn compare(self, how: Operator, other: Value<'_>) -> Result<Value<'a>, String> {
        if let (Value::Moment(_), Value::Text(_)) | (Value::Text(_), Value::Moment(_)) = (&self, &other) {
            return Ok(Value::Bool(how == Operator::NotEqual)); // a text that is no time
        }
        let Some(order) = self.order(&other)? else { return Ok(Value::Null) };
        Ok(Value::Bool(match how {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            _ => order.is_ge(),
        }))
    }

    /// How two values compare: as texts where one is meant as text, or two fields are no numbers.
    fn order(&self, other: &Value<'_>) -> Result<Option<Ordering>, String> {
        let numbers = |one: Number, two: Number| match (one, two) {
            (Number::Whole(one), Number::Whole(two)) => Some(one.cmp(&two)),
            (one, two) => one.float().partial_cmp(&two.float()),
        };
        match (self, other) {
            (Value::Null, _) | (_, Value::Null) => Ok(None),
            (Value::Moment(one), Value::Moment(two)) => Ok(Some(one.cmp(two))),
            (Value::Text(_), Value::Text(_) | Value::Field(_)) | (Value::Field(_), Value::Text(_)) => {
                Ok(self.text().zip(other.text()).map(|(one, two)| one.cmp(&two)))
            }
            (Value::Field(one), Value::Field(two)) => match (Number::of_text(one), Number::of_text(two)) {
                (Some(one), Some(two)) => Ok(numbers(one, two)),
                _ => Ok(Some(one.cmp(two))),
            },
            (Value::Bool(truth), other) | (other, Value::Bool(truth)) if other.truth().is_ok() => {
                let order = other.truth()?.map(|other| truth.cmp(&other));
                Ok(if matches!(self, Value::Bool(_)) { order } else { order.map(Ordering::reverse) })
            }
            // The one that is no number is no truth either.
            (Value::Bool(_), other) | (other, Value::Bool(_)) => other.truth().map(|_| None),
            (one, two) => {
                let (of_one, of_two) = (one.compared()?, two.compared()?);
                Ok(of_one.zip(of_two).and_then(|(one, two)| numbers(one, two)))
            }
        }
    }

    /// The number that is compared with another one.
    fn compared(&self) -> Result<Option<Number>, String> {
        self.number().map_err(|wrong| match self {
            Value::Field(_) | Value::Text(_) => {
                format!("{wrong} (texts are compared with a text in quotes: code == \"7\")")
            }
            _ => wrong,
        })
    }
}

/// A floating-point number as a whole one.
pub(crate) fn whole_of(value: f64) -> Result<i64, String> {
    // 2^63 is the first that is too large.
    match value.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value)
    {
        true => Ok(value as i64),
        false => Err(format!("{value} is no whole number of 64 bits")),
    }
}
