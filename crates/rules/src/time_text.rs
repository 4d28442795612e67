//! Times in keys and values: whole microseconds since 1970, and their text, which is ISO 8601.
//!
//! ```text
//!   shown    2026-11-22T08:30:00Z   2026-11-22T08:30:00.25Z     in UTC, a fraction only where there is one
//!   typed    2026-11-22T08:30:00.25+01:00   2026-11-22 08:30    UTC if no offset is given
//!   spans    2026   2026-11   2026-11-22   2026-11-22T08   2026-11-22T08:30
//! ```
//!
//! A time that is typed without all of its parts is the beginning of a span: as a key it is that
//! moment, as a prefix or a bound the whole span. Years are 0 to 9999; what is beyond them, which
//! only programs can write, is shown and typed as the number of microseconds.
//!
//! What would be another moment than the one that is said is refused: digits beyond the
//! microsecond, unless they are zeros, and an hour or a minute that a clock shows twice or never.
//! A leap second, `:60`, is the second before it, as there are none in the seconds since 1970.

use std::ops::Range;

use crate::datum::Datum;

/// What is expected where a time is.
pub(crate) const EXPECTED: &str = "a time, such as 2026-11-22T08:30:00Z";

const DAY: i64 = 86_400_000_000;
const HOUR: i64 = 3_600_000_000;
const MINUTE: i64 = 60_000_000;
const SECOND: i64 = 1_000_000;

/// Digits from which on a whole number is typed for a time: shorter ones may be meant as years or
/// dates.
const NUMBER_DIGITS_MIN: usize = 15;

/// The smallest part that a typed time has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    /// All of them: it is a moment.
    Second,
}

/// A year, a month and a day.
#[derive(Clone, Copy)]
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

/// A time of a key or a value as people read it.
pub fn shown(micros: i64) -> Datum {
    text(micros).map_or(Datum::Int(micros.into()), Datum::Text)
}

/// The text of a time; none of one beyond the years 0 to 9999.
pub fn text(micros: i64) -> Option<String> {
    let (days, of_day) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let Date { year, month, day } = date_of(days);
    if !(0..=9999).contains(&year) {
        return None;
    }
    let (hour, minute, second) = (of_day / HOUR, of_day / MINUTE % 60, of_day / SECOND % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if of_day % SECOND != 0 {
        let fraction = format!("{:06}", of_day % SECOND);
        text.push('.');
        text.push_str(fraction.trim_end_matches('0'));
    }
    text.push('Z');
    Some(text)
}

/// A time from data: its text, or the number of microseconds. None if it is no time.
///
/// # Errors
/// It is one that is finer than those that are kept.
pub(crate) fn of_datum(datum: &Datum) -> Result<Option<i64>, String> {
    match datum {
        Datum::Int(micros) => Ok(i64::try_from(*micros).ok()),
        Datum::Text(text) => parse(text, &Ok),
        _ => Ok(None),
    }
}

/// Makes the time of a clock UTC, both in microseconds since 1970. An error is the moment that is
/// taken for a time which that clock shows twice, or never, as it is set back or forward.
pub(crate) type UtcOf<'a> = &'a dyn Fn(i64) -> Result<i64, i64>;

/// The moment that a person typed: a date is its beginning. None if it is no time. `utc_of` is for
/// times without an offset.
///
/// # Errors
/// It has more digits than are kept, or the clock shows it twice or never.
pub(crate) fn parse(text: &str, utc_of: UtcOf<'_>) -> Result<Option<i64>, String> {
    let text = text.trim();
    let Some(read) = read(text) else { return Ok(whole_number(text)) };
    read.check_digits(text)?;
    match read.part {
        Part::Year | Part::Month => Ok(None), // too little for a moment
        Part::Day => Ok(Some(read.utc(read.clock, utc_of))),
        _ => read.utc_or(read.clock, utc_of).map(Some).map_err(|_| unclear(text)),
    }
}

/// The moments that a person typed: a date is a day, a time without seconds a minute. None if it
/// is no time.
///
/// # Errors
/// It has more digits than are kept. Or the clock shows no such hour, or not just once such a
/// minute or second: these are no one span.
pub(crate) fn parse_span(text: &str, utc_of: UtcOf<'_>) -> Result<Option<Range<i64>>, String> {
    let text = text.trim();
    let Some(read) = read(text) else {
        let micros = whole_number(text);
        return Ok(micros.and_then(|micros| Some(micros..micros.checked_add(1)?)));
    };
    read.check_digits(text)?;
    let begin = read.utc_or(read.clock, utc_of);
    let taken = begin.unwrap_or_else(|taken| taken);
    let span = match read.part {
        Part::Second => taken..taken + 1,
        Part::Minute => taken..taken + MINUTE,
        _ => taken..read.utc(read.clock + read.micros(), utc_of),
    };
    let is_short = matches!(read.part, Part::Minute | Part::Second);
    if span.is_empty() || (is_short && begin.is_err()) {
        return Err(unclear(text));
    }
    Ok(Some(span))
}

fn unclear(text: &str) -> String {
    format!(
        "the clocks of the zone are set back or forward, and show {text} twice or never: say which moments, with an \
         offset such as +01:00"
    )
}

/// What a typed time says.
struct Read {
    date: Date,
    /// The smallest part that is given.
    part: Part,
    /// Where it begins, by the clock that it is of.
    clock: i64,
    /// How far that clock is before UTC, if that is said.
    east: Option<i64>,
    /// It has digits beyond the microsecond that are not zeros.
    is_finer: bool,
}

impl Read {
    fn check_digits(&self, text: &str) -> Result<(), String> {
        match self.is_finer {
            true => Err(format!("times are kept to the microsecond, and {text} has more digits")),
            false => Ok(()),
        }
    }

    fn utc(&self, clock: i64, utc_of: UtcOf<'_>) -> i64 {
        self.utc_or(clock, utc_of).unwrap_or_else(|taken| taken)
    }

    fn utc_or(&self, clock: i64, utc_of: UtcOf<'_>) -> Result<i64, i64> {
        self.east.map_or_else(|| utc_of(clock), |east| Ok(clock - east))
    }

    /// How long its smallest part is.
    fn micros(&self) -> i64 {
        let next_month = match self.date.month {
            12 => Date { year: self.date.year + 1, month: 1, day: 1 },
            month => Date { month: month + 1, ..self.date },
        };
        match self.part {
            Part::Year => {
                DAY * (days_of(Date { year: self.date.year + 1, ..self.date }) - days_of(self.date))
            }
            Part::Month => DAY * (days_of(next_month) - days_of(self.date)),
            Part::Day => DAY,
            Part::Hour => HOUR,
            Part::Minute => MINUTE,
            Part::Second => 1,
        }
    }
}

/// Microseconds that are typed as a number, as those beyond all texts are shown.
fn whole_number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    (digits.len() >= NUMBER_DIGITS_MIN).then(|| text.parse().ok())?
}

fn read(text: &str) -> Option<Read> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let Some(time) = time else {
        let (date, east) = date.strip_suffix(['Z', 'z']).map_or((date, None), |date| (date, Some(0)));
        let (date, part) = read_date(date)?;
        return Some(Read { date, part, clock: days_of(date) * DAY, east, is_finer: false });
    };
    let (date, part) = read_date(date)?;
    let (time, east) = split_offset(time)?;
    let OfDay { micros, part: smaller, is_finer } = read_time(time)?;
    let clock = days_of(date) * DAY + micros;
    (part == Part::Day).then_some(Read { date, part: smaller, clock, east, is_finer })
}

fn read_date(text: &str) -> Option<(Date, Part)> {
    let mut parts = text.split('-');
    let year = digits(parts.next()?, 4)?;
    let (month, day) = (parts.next(), parts.next());
    if parts.next().is_some() {
        return None;
    }
    let part = match (month, day) {
        (None, _) => Part::Year,
        (_, None) => Part::Month,
        _ => Part::Day,
    };
    let [month, day] = [month, day].map(|part| part.map_or(Some(1), |part| digits(part, 2)));
    let date = Date { year, month: month?, day: day? };
    let again = date_of(days_of(date));
    let is_one = (1..=12).contains(&date.month) && (again.month, again.day) == (date.month, date.day);
    is_one.then_some((date, part))
}

/// A time of day, as [`Read`] has it.
struct OfDay {
    micros: i64,
    part: Part,
    is_finer: bool,
}

fn read_time(text: &str) -> Option<OfDay> {
    let (text, fraction) = text.split_once(['.', ',']).map_or((text, None), |(text, of)| (text, Some(of)));
    let mut parts = text.split(':');
    let hour = digits(parts.next()?, 2)?;
    let (minute, second) = (parts.next(), parts.next());
    let part = match (minute, second) {
        (None, _) => Part::Hour,
        (_, None) => Part::Minute,
        _ => Part::Second,
    };
    if parts.next().is_some() || (fraction.is_some() && part != Part::Second) {
        return None;
    }
    let [minute, second] = [minute, second].map(|part| part.map_or(Some(0), |part| digits(part, 2)));
    let (minute, second) = (minute?, second?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let second = second.min(59); // a leap second
    let nanos = fraction.map_or(Some(0), read_fraction)?;
    let micros = hour * HOUR + minute * MINUTE + second * SECOND + nanos / 1000;
    Some(OfDay { micros, part, is_finer: nanos % 1000 != 0 })
}

/// The nanoseconds of a fraction of a second.
fn read_fraction(text: &str) -> Option<i64> {
    if !(1..=9).contains(&text.len()) {
        return None;
    }
    digits(text, text.len())?;
    format!("{text:0<9}").parse().ok()
}

/// A time of day without its offset, and that offset in microseconds to the east, if there is one.
fn split_offset(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, Some(0)));
    }
    let Some(at) = text.rfind(['+', '-']) else { return Some((text, None)) };
    let (time, offset) = text.split_at(at);
    let (sign, offset) = (if offset.starts_with('-') { -1 } else { 1 }, &offset[1..]);
    let (hours, minutes) = match offset.len() {
        2 => (digits(offset, 2)?, 0),
        4 => (digits(offset.get(..2)?, 2)?, digits(offset.get(2..)?, 2)?),
        _ => {
            let (hours, minutes) = offset.split_once(':')?;
            (digits(hours, 2)?, digits(minutes, 2)?)
        }
    };
    (hours < 24 && minutes < 60).then_some((time, Some(sign * (hours * HOUR + minutes * MINUTE))))
}

fn digits(text: &str, len: usize) -> Option<i64> {
    let fits = text.len() == len && text.bytes().all(|digit| digit.is_ascii_digit());
    fits.then(|| text.parse().ok())?
}

/// The days from 1970-01-01 to a date, by the Gregorian rules (Hinnant 2013, `days_from_civil`).
fn days_of(Date { year, month, day }: Date) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The date that is this many days after 1970-01-01 (`civil_from_days`).
fn date_of(days: i64) -> Date {
    let from_march_0 = days + 719_468;
    let (era, day_of_era) = (from_march_0.div_euclid(146_097), from_march_0.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    Date { year: era * 400 + year_of_era + i64::from(month <= 2), month, day }
}

#[cfg(test)]
#[path = "time_text/tests.rs"]
mod tests;
