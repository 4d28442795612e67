//! The functions of expressions. What can be settled once (a zone, a pattern) is settled when the
//! expression is read.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use regex::Regex;

use super::value::{Value, whole_of};
use crate::human;
use crate::import::times::{self, NoTime, Unit};
use crate::zones;

/// The functions by name, with what they take.
pub(super) const FUNCTIONS: [(&str, &str); 32] = [
    ("year", "time, zone"),
    ("month", "time, zone"),
    ("day", "time, zone"),
    ("hour", "time, zone"),
    ("minute", "time, minutes, zone"),
    ("second", "time, zone"),
    ("weekday", "time, zone"),
    ("hour_of_day", "time, zone"),
    ("epoch", "time, zone"),
    ("epoch_ms", "time, zone"),
    ("time", "text, \"%d.%m.%Y %H:%M\", zone"),
    ("prefix", "text, letters"),
    ("suffix", "text, letters"),
    ("lower", "text"),
    ("upper", "text"),
    ("trim", "text"),
    ("split", "text, separator, number of the piece (from 1, or from -1 at the end)"),
    ("regex", "text, pattern, group"),
    ("matches", "text, pattern"),
    ("contains", "text, part"),
    ("starts_with", "text, part"),
    ("ends_with", "text, part"),
    ("concat", "value, value, ..."),
    ("length", "text"),
    ("abs", "number"),
    ("floor", "number"),
    ("ceil", "number"),
    ("round", "number, digits"),
    ("bucket", "number, width"),
    ("number", "text"),
    ("coalesce", "value, value, ..."),
    ("if", "condition, value, value"),
];

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Whole,
    /// A moment.
    Time,
    /// Text, or what is known row by row only.
    Other,
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) enum Function {
    /// A time, cut.
    Cut {
        unit: Unit,
        zone: TimeZone,
    },
    /// A time in a form that is named.
    Named {
        format: String,
        zone: TimeZone,
    },
    /// The moment of what this function gives, which is a time or the beginning of one: for what is
    /// a time, since the text of an hour may be that of two.
    Begins(Box<Function>),
    /// A time, as what is compared: what this function gives, or the text itself, in its zone.
    Moment {
        of: Box<Function>,
        /// A text that is no time is no mistake.
        is_maybe: bool,
        /// Nothing but the comparison says that it is a time.
        is_guess: bool,
    },
    Prefix,
    Suffix,
    Lower,
    Upper,
    Trim,
    Split,
    /// A group of the first match.
    Regex {
        pattern: Regex,
        group: usize,
    },
    Matches(Regex),
    Contains,
    StartsWith,
    EndsWith,
    Concat,
    Length,
    Abs,
    Floor,
    Ceil,
    Round,
    Bucket,
    Number,
    /// These two are evaluated by `Expr::value`, which leaves out what is not asked for.
    Coalesce,
    If,
}

impl Function {
    /// What it gives.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Function::Cut { unit: Unit::Weekday | Unit::HourOfDay | Unit::Epoch | Unit::EpochMs, .. }
            | Function::Length => Kind::Whole,
            Function::Matches(_) | Function::Contains | Function::StartsWith | Function::EndsWith => {
                Kind::Bool
            }
            Function::Named { .. } | Function::Cut { unit: Unit::Time, .. } | Function::Begins(_) => {
                Kind::Time
            }
            _ => Kind::Other,
        }
    }

    /// Whether it gives a time, or the beginning of one.
    pub(super) fn gives_times(&self) -> bool {
        use Unit::{Epoch, EpochMs, HourOfDay, Weekday};
        match self {
            Function::Cut { unit, .. } => !matches!(unit, Weekday | HourOfDay | Epoch | EpochMs),
            Function::Named { .. } => true,
            _ => false,
        }
    }

    /// Such as it gives, where that is a time, and no number as the year is.
    pub(super) fn sample(&self) -> Option<Value<'static>> {
        let is_year = matches!(self, Function::Cut { unit: Unit::Year, .. });
        (self.gives_times() && !is_year).then_some(Value::Text(Cow::Borrowed("2013-01-01")))
    }

    /// Whether it gives a text that is no time, whatever it looks like.
    pub(super) fn gives_texts(&self) -> bool {
        use Function::{Concat, Lower, Prefix, Suffix, Upper};
        matches!(self, Concat | Lower | Prefix | Suffix | Upper)
    }

    /// The same, of which the times are compared; and the expression that it is called with.
    pub(super) fn compared(of: Option<&Function>, zone: &TimeZone, is_maybe: bool) -> Function {
        let plain = || Function::Cut { unit: Unit::Time, zone: zone.clone() };
        let of = of.filter(|of| of.gives_times()).cloned();
        let is_guess = of.is_none();
        Function::Moment { of: Box::new(of.unwrap_or_else(plain)), is_maybe, is_guess }
    }

    /// The zone of the times that it gives.
    pub(super) fn zone(&self) -> Option<&TimeZone> {
        match self {
            Function::Cut { zone, .. } | Function::Named { zone, .. } => Some(zone),
            Function::Begins(of) => of.zone(),
            _ => None,
        }
    }

    /// Whether it gives numbers only.
    pub(super) fn gives_numbers(&self) -> bool {
        use Function::{Abs, Bucket, Ceil, Floor, Number, Round};
        self.kind() == Kind::Whole || matches!(self, Abs | Floor | Ceil | Round | Bucket | Number)
    }

    /// The function of this name for these arguments, of which the constants are known, and how
    /// many of them it is called with.
    pub(super) fn of(
        name: &str,
        arguments: &[Option<Value<'static>>],
        zone: &TimeZone,
    ) -> Result<(Function, usize), String> {
        let Some((_, takes)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let known = FUNCTIONS.map(|(known, _)| known);
            return Err(format!("there is no function `{name}` ({})", human::suggestion(name, &known)));
        };
        let (least, most) = arity(name);
        if !(least..=most).contains(&arguments.len()) {
            let count = human::plural(arguments.len() as u64, "argument");
            return Err(format!("`{name}` takes ({takes}), not {count}"));
        }
        match (unit(name), name) {
            (Some(unit), _) => Ok((timed(unit, &arguments[1..], zone)?, 1)),
            (None, "regex" | "matches") => Ok((matching(name, arguments)?, 1)),
            (None, _) => Ok((plain(name), arguments.len())),
        }
    }

    /// What it gives for these arguments. What is missing gives null.
    pub(super) fn call<'a>(&self, values: &[Value<'a>]) -> Result<Value<'a>, String> {
        if let Function::Concat = self {
            return concat(values);
        }
        if values.contains(&Value::Null) {
            return Ok(Value::Null);
        }
        if let Some(Value::List(items)) = values.first() {
            return self.of_list(items, &values[1..]);
        }
        match self {
            Function::Moment { of, is_maybe, .. } => of.moment_of(&values[0], *is_maybe),
            Function::Begins(of) => {
                let text = text_of(&values[0])?;
                of.begin(&text).map(Value::Moment).map_err(|none| of.wrong(&text, none))
            }
            Function::Cut { .. } | Function::Named { .. } => self.of_time(&values[0]),
            Function::Abs
            | Function::Floor
            | Function::Ceil
            | Function::Round
            | Function::Bucket
            | Function::Number => self.of_number(values),
            Function::Lower | Function::Upper | Function::Trim => {
                let text = text_of(&values[0])?;
                Ok(Value::Text(Cow::Owned(match self {
                    Function::Lower => text.to_lowercase(),
                    Function::Upper => text.to_uppercase(),
                    _ => text.trim().to_owned(),
                })))
            }
            _ => self.of_text(values),
        }
    }

    /// Whether it takes this field of a row for a time though it is a number that stands in quotes,
    /// which may be anything.
    pub(super) fn guesses(&self, text: &str) -> bool {
        matches!(self, Function::Moment { is_guess: true, .. }) && times::is_epoch(text)
    }

    /// What it gives instead.
    pub(super) fn of_quoted<'a>(&self, text: Cow<'a, str>) -> Result<Value<'a>, String> {
        match self {
            Function::Moment { is_maybe: true, .. } => Ok(Value::Text(text)),
            _ => Err(format!(
                "expected a time (2013-01-01T05:15:00Z), found `{text}` in quotes; a number is made one: time(…)"
            )),
        }
    }

    /// What it gives for a list: for each of its elements, or for all of them. Elements that are
    /// null give none, and are counted.
    fn of_list<'a>(&self, items: &[Value<'a>], rest: &[Value<'a>]) -> Result<Value<'a>, String> {
        if let Function::Length = self {
            return Ok(Value::Whole(items.len() as i64));
        }
        let items = items.iter().filter(|item| **item != Value::Null);
        match (self, rest) {
            (Function::Contains, [part]) => {
                let part = text_of(part)?;
                Ok(Value::Bool(items.filter_map(Value::text).any(|text| text == part)))
            }
            (Function::Matches(_) | Function::Contains | Function::StartsWith | Function::EndsWith, _)
            | (Function::Moment { .. }, _) => Err(NO_LIST.to_owned()),
            _ => {
                let call = |item: &Value<'a>| self.call(&[std::slice::from_ref(item), rest].concat());
                let given: Vec<Value<'a>> = items.map(call).collect::<Result<_, _>>()?;
                Ok(Value::List(given.into_iter().filter(|given| *given != Value::Null).collect()))
            }
        }
    }

    /// The time that a text is, as what is compared.
    fn moment_of<'a>(&self, value: &Value<'_>, is_maybe: bool) -> Result<Value<'a>, String> {
        let text = text_of(value)?;
        match self.begin(&text) {
            Ok(at) => Ok(Value::Moment(at)),
            Err(NoTime::Unlike) if is_maybe => Ok(Value::Text(Cow::Owned(text.into_owned()))),
            Err(none @ NoTime::Unclear(..)) => Err(self.wrong(&text, none)),
            Err(none) => Err(format!(
                "{} (texts that are no times are compared so: concat(…) > \"…\")",
                self.wrong(&text, none)
            )),
        }
    }

    /// The time that a text is, or the beginning of what this function cuts it to.
    fn begin(&self, text: &str) -> Result<Timestamp, NoTime> {
        match self {
            Function::Cut { unit: Unit::Time, zone } => times::moment(text, zone),
            Function::Cut { unit, zone } => {
                let begin = times::settled(times::parse(text, zone), |at| times::begin(at, *unit, zone))?;
                begin.ok_or(NoTime::Unlike)
            }
            Function::Named { format, zone } => times::named(text, format, zone),
            _ => Err(NoTime::Unlike),
        }
    }

    /// Why it takes a text for no time.
    fn wrong(&self, text: &str, none: NoTime) -> String {
        match (none, self) {
            (NoTime::Unclear(..), _) => zones::unclear(text),
            (NoTime::Unlike, Function::Named { format, .. }) => not_like(text, format),
            (NoTime::Unlike, _) => no_time(text),
        }
    }

    fn of_time<'a>(&self, value: &Value<'_>) -> Result<Value<'a>, String> {
        let text = text_of(value)?;
        let (at, unit, zone) = match self {
            Function::Cut { unit, zone } => (times::parse(&text, zone), *unit, zone),
            Function::Named { format, zone } => (times::named(&text, format, zone), Unit::Time, zone),
            _ => return Ok(Value::Null),
        };
        let cut = times::settled(at, |at| times::cut(at, unit, zone));
        cut.map(|cut| Value::Field(Cow::Owned(cut))).map_err(|none| self.wrong(&text, none))
    }

    fn of_number<'a>(&self, values: &[Value<'_>]) -> Result<Value<'a>, String> {
        let whole = |value: f64| whole_of(value).map_or(Value::Float(value), Value::Whole);
        if let (Function::Bucket, Some(width)) = (self, values.get(1)) {
            return match (values[0].whole(), width.whole()) {
                (_, Ok(Some(0))) => Err("a width of 0".to_owned()),
                (Ok(Some(value)), Ok(Some(width))) => Ok(Value::Whole(value - value.rem_euclid(width))),
                _ => {
                    let (value, width) = (values[0].float()?, width.float()?);
                    Ok(value
                        .zip(width)
                        .map_or(Value::Null, |(value, width)| whole((value / width).floor() * width)))
                }
            };
        }
        let digits = values.get(1).map(Value::whole).transpose()?.flatten().unwrap_or(0);
        if let (Ok(Some(value)), true) = (values[0].whole(), digits >= 0) {
            return Ok(Value::Whole(if let Function::Abs = self { value.saturating_abs() } else { value }));
        }
        let Some(value) = values[0].float()? else { return Ok(Value::Null) };
        Ok(match self {
            Function::Abs => Value::Float(value.abs()),
            Function::Floor => whole(value.floor()),
            Function::Ceil => whole(value.ceil()),
            Function::Round => {
                let scale = 10f64.powi(digits.clamp(-300, 300) as i32);
                whole((value * scale).round() / scale)
            }
            _ => Value::Float(value),
        })
    }

    fn of_text<'a>(&self, values: &[Value<'a>]) -> Result<Value<'a>, String> {
        let text = text_of(&values[0])?;
        let owned = |text: &str| Ok(Value::Field(Cow::Owned(text.to_owned())));
        let part = || text_of(values.get(1).unwrap_or(&Value::Null));
        match self {
            Function::Prefix | Function::Suffix => {
                let letters =
                    values[1].whole()?.and_then(|letters| usize::try_from(letters).ok()).unwrap_or(0);
                match self {
                    Function::Prefix => owned(&text[..place_of(&text, letters)]),
                    _ => owned(&text[place_of(&text, text.chars().count().saturating_sub(letters))..]),
                }
            }
            Function::Split => {
                let piece = values[2].whole()?.unwrap_or(1);
                let part = part()?;
                match &values[0] {
                    Value::Field(Cow::Borrowed(text)) => {
                        let piece = piece_of(text, &part, piece);
                        Ok(piece.map_or(Value::Null, |piece| Value::Field(Cow::Borrowed(piece))))
                    }
                    _ => piece_of(&text, &part, piece).map_or(Ok(Value::Null), owned),
                }
            }
            Function::Regex { pattern, group } => {
                let found = pattern.captures(&text).and_then(|found| found.get(*group));
                found.map_or(Ok(Value::Null), |found| owned(found.as_str()))
            }
            Function::Matches(pattern) => Ok(Value::Bool(pattern.is_match(&text))),
            Function::Contains => Ok(Value::Bool(text.contains(&*part()?))),
            Function::StartsWith => Ok(Value::Bool(text.starts_with(&*part()?))),
            Function::EndsWith => Ok(Value::Bool(text.ends_with(&*part()?))),
            Function::Length => Ok(Value::Whole(text.chars().count() as i64)),
            _ => Ok(Value::Null),
        }
    }
}

/// How many arguments a function takes, at least and at most.
fn arity(name: &str) -> (usize, usize) {
    match name {
        "minute" => (1, 3),
        "time" => (1, 3),
        "prefix" | "suffix" | "matches" | "contains" | "starts_with" | "ends_with" | "bucket" => (2, 2),
        "lower" | "upper" | "trim" | "length" | "abs" | "floor" | "ceil" | "number" => (1, 1),
        "split" | "if" => (3, 3),
        "regex" => (2, 3),
        "round" => (1, 2),
        "concat" | "coalesce" => (1, 64),
        _ => (1, 2),
    }
}

fn unit(name: &str) -> Option<Unit> {
    Some(match name {
        "year" => Unit::Year,
        "month" => Unit::Month,
        "day" => Unit::Day,
        "hour" => Unit::Hour,
        "minute" => Unit::Minute(1),
        "second" => Unit::Second,
        "weekday" => Unit::Weekday,
        "hour_of_day" => Unit::HourOfDay,
        "epoch" => Unit::Epoch,
        "epoch_ms" => Unit::EpochMs,
        "time" => Unit::Time,
        _ => return None,
    })
}

/// A function of a time: what follows the time are a zone, a form, and how many minutes.
fn timed(unit: Unit, rest: &[Option<Value<'static>>], zone: &TimeZone) -> Result<Function, String> {
    let (mut unit, mut zone, mut format) = (unit, zone.clone(), None);
    for argument in rest {
        match (argument, unit) {
            (Some(Value::Whole(step @ 1..=60)), Unit::Minute(_)) => unit = Unit::Minute(*step as i8),
            (Some(Value::Text(text)), Unit::Time) if text.contains('%') => {
                times::check_format(text)?;
                format = Some(text.clone().into_owned());
            }
            (Some(Value::Text(name)), _) => zone = times::zone(name)?,
            (_, Unit::Minute(_)) => {
                return Err("`minute` takes 1 to 60 minutes, and a zone in quotes".to_owned());
            }
            _ => return Err("a zone is a text in quotes: \"Europe/Berlin\"".to_owned()),
        }
    }
    Ok(match format {
        Some(format) => Function::Named { format, zone },
        None => Function::Cut { unit, zone },
    })
}

fn plain(name: &str) -> Function {
    match name {
        "prefix" => Function::Prefix,
        "suffix" => Function::Suffix,
        "lower" => Function::Lower,
        "upper" => Function::Upper,
        "trim" => Function::Trim,
        "split" => Function::Split,
        "contains" => Function::Contains,
        "starts_with" => Function::StartsWith,
        "ends_with" => Function::EndsWith,
        "concat" => Function::Concat,
        "length" => Function::Length,
        "abs" => Function::Abs,
        "floor" => Function::Floor,
        "ceil" => Function::Ceil,
        "round" => Function::Round,
        "bucket" => Function::Bucket,
        "number" => Function::Number,
        "coalesce" => Function::Coalesce,
        _ => Function::If,
    }
}

/// A function of a pattern.
fn matching(name: &str, arguments: &[Option<Value<'static>>]) -> Result<Function, String> {
    let Some(Value::Text(pattern)) = &arguments[1] else {
        return Err(format!("the pattern of `{name}` is a text in quotes"));
    };
    let pattern = Regex::new(pattern).map_err(|error| format!("a wrong pattern: {error}"))?;
    let group = match arguments.get(2) {
        None => usize::from(pattern.captures_len() > 1), // the first group, or all of the match
        Some(Some(Value::Whole(group))) if (0..pattern.captures_len() as i64).contains(group) => {
            *group as usize
        }
        Some(_) => return Err(format!("the pattern has {} groups", pattern.captures_len() - 1)),
    };
    Ok(if name == "regex" { Function::Regex { pattern, group } } else { Function::Matches(pattern) })
}

const NO_LIST: &str = "expected a text, found a list (length(list) and contains(list, \"element\") take one)";

fn no_time(text: &str) -> String {
    format!(
        "expected a time (2013-01-01T05:15:00Z, 10/Oct/2000:13:55:36 -0700, or seconds since 1970), found `{text}`; \
         another form is named: time(…, \"%d.%m.%Y %H:%M\")"
    )
}

fn not_like(text: &str, format: &str) -> String {
    format!("expected a time like `{format}`, found `{text}`")
}

fn text_of<'v>(value: &'v Value<'_>) -> Result<Cow<'v, str>, String> {
    value.text().ok_or_else(|| NO_LIST.to_owned())
}

fn concat<'a>(values: &[Value<'_>]) -> Result<Value<'a>, String> {
    match values.iter().any(|value| matches!(value, Value::List(_))) {
        true => Err(NO_LIST.to_owned()),
        false => Ok(Value::Text(Cow::Owned(values.iter().filter_map(Value::text).collect()))),
    }
}

/// The place after so many letters.
fn place_of(text: &str, letters: usize) -> usize {
    text.char_indices().nth(letters).map_or(text.len(), |(at, _)| at)
}

/// A piece between separators, from 1; from the end, if it is negative.
fn piece_of<'t>(text: &'t str, separator: &str, piece: i64) -> Option<&'t str> {
    let index = usize::try_from(piece.unsigned_abs()).ok()?.checked_sub(1)?;
    let mut letters = separator.chars();
    match (letters.next(), letters.next(), piece > 0) {
        (None, _, true) => text.split_whitespace().nth(index),
        (None, _, false) => text.split_whitespace().rev().nth(index),
        (Some(letter), None, true) => text.split(letter).nth(index),
        (Some(_), Some(_), true) => text.split(separator).nth(index),
        (Some(_), _, false) => text.rsplit(separator).nth(index),
    }
}
