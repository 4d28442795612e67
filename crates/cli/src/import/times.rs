//! Times in the fields of rows: read from the forms that are common, and cut to a unit.
//!
//! ```text
//!   2013-01-01T05:15:00Z   2013-01-01T05:15:00.5-05:00   2013-01-01 05:15   2013-01-01   20130101     ISO 8601
//!   2013-01-01 05:15:00 -0500   2013-01-01 05:15:00 UTC                                              git, Ruby
//!   10/Oct/2000:13:55:36 -0700                                                                       access logs
//!   Tue, 15 Nov 1994 08:12:31 GMT   15 Nov 1994 08:12:31 +0100                                       RFC 5322
//!   Tue Jan 1 05:15:00 2013 -0500   Tue Jan  1 05:15:00 2013   Tue Jan  1 05:15:00 CET 2013          git, C, `date`
//!   Oct 11 22:14:15                                                      syslog: the last such time
//!   1357016400   1357016400.25   1357016400000                        seconds, milli-, micro- or nanoseconds since 1970
//! ```
//!
//! A time without an offset is in the zone that is asked for; one that its clocks show twice or
//! never is refused where that matters. A number has at least nine digits, so that it is not taken
//! for a date.

use folddb::Datum;
use folddb::codec::KeyCodec;
use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::zones;

pub(crate) use crate::zones::zone;

/// What a time is cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Year,
    Month,
    Day,
    Hour,
    /// So many minutes, counted from the hour.
    Minute(i8),
    Second,
    /// 1 is Monday, 7 is Sunday.
    Weekday,
    HourOfDay,
    /// Seconds, and milliseconds, since 1970.
    Epoch,
    EpochMs,
    /// Not cut: in the form of ISO 8601, with the offset of the zone.
    Time,
}

/// Why a text is no moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTime {
    /// It is in none of the forms.
    Unlike,
    /// The clocks of the zone show it twice or never: the moments between which it is not known.
    Unclear(Timestamp, Timestamp),
}

/// Reads a time in one of the common forms.
pub(crate) fn parse(text: &str, zone: &TimeZone) -> Result<Timestamp, NoTime> {
    let text = text.trim();
    if is_epoch(text) {
        return epoch(text).ok_or(NoTime::Unlike);
    }
    let bytes = text.as_bytes();
    if bytes.get(2) == Some(&b'/') && text.len() > 12 {
        return named(text, "%d/%b/%Y:%H:%M:%S %z", zone);
    }
    if bytes.first().is_some_and(u8::is_ascii_alphabetic) {
        let whole = jiff::fmt::rfc2822::parse(text).map(|at| at.timestamp());
        return whole.or_else(|_| match text.len() {
            0..=SYSLOG_LEN_MAX => without_year(text, zone),
            _ => in_words(text, &OF_DATE, zone),
        });
    }
    if begins_with_day_and_month(text) {
        let whole = jiff::fmt::rfc2822::parse(text).map(|at| at.timestamp());
        return whole.or_else(|_| in_words(text, &OF_MAIL, zone));
    }
    if let Some(joined) = with_offset_joined(text) {
        return joined.parse().map_err(|_| NoTime::Unlike);
    }
    let has_offset = text.ends_with(['Z', 'z']) || text.get(10..).is_some_and(|end| end.contains(['+', '-']));
    match has_offset {
        true => text.parse().map_err(|_| NoTime::Unlike),
        false => {
            let is_date = !text.contains(['T', 't', ' ', ':']);
            in_zone(text.parse().map_err(|_| NoTime::Unlike)?, is_date, zone)
        }
    }
}

/// What is made of a time that was read: also of one that is not known between two moments, of
/// which the same is made, such as the day.
pub(crate) fn settled<T: PartialEq>(
    read: Result<Timestamp, NoTime>,
    make: impl Fn(Timestamp) -> T,
) -> Result<T, NoTime> {
    match read {
        Err(NoTime::Unclear(one, other)) => {
            let (of_one, of_other) = (make(one), make(other));
            if of_one == of_other { Ok(of_one) } else { Err(NoTime::Unclear(one, other)) }
        }
        read => read.map(make),
    }
}

/// Whether a text is a number, which is read as a time since 1970.
pub(crate) fn is_epoch(text: &str) -> bool {
    let bytes = text.trim().as_bytes();
    let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    bytes.len() >= 9 && (is_digit(&bytes[0]) || b"+-".contains(&bytes[0])) && bytes[1..].iter().all(is_digit)
}

/// Reads a time, also what a time was cut to, which is its beginning.
pub(crate) fn moment(text: &str, zone: &TimeZone) -> Result<Timestamp, NoTime> {
    let is_cut = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"-T".contains(&byte));
    match (is_cut(text), text.len()) {
        (true, 4) => parse(&format!("{text}-01-01"), zone),
        (true, 7) => parse(&format!("{text}-01"), zone),
        (true, 13) if text.contains('T') => parse(&format!("{text}:00"), zone),
        _ => parse(text, zone),
    }
}

/// Reads a time for a key or a value that is one, in microseconds since 1970; smaller digits are
/// cut off.
pub(crate) fn micros(text: &str, zone: &TimeZone) -> Result<i64, String> {
    match moment(text, zone) {
        Ok(at) => Ok(micros_of(at)),
        Err(NoTime::Unclear(..)) => Err(zones::unclear(text)),
        Err(NoTime::Unlike) => typed(text, zone).ok_or_else(|| {
            format!("expected a time (2013-01-01T05:15:00Z, or seconds since 1970), found `{text}`")
        }),
    }
}

/// The same of a moment.
pub(crate) fn micros_of(at: Timestamp) -> i64 {
    at.as_nanosecond().div_euclid(1000) as i64 // in the years to 9999 it fits
}

/// A time as it may be typed: also of the last day of the year 9999, which stands for never, and is
/// beyond the last `Timestamp`.
fn typed(text: &str, zone: &TimeZone) -> Option<i64> {
    if is_epoch(text) {
        return None;
    }
    let fraction = text.find(['.', ',']).map_or(text.len(), |point| point + 1);
    let digits = text[fraction..].find(|letter: char| !letter.is_ascii_digit());
    let end = digits.map_or(text.len(), |digits| fraction + digits);
    let finer = end.min(fraction + 6);
    let text = [&text[..finer], &text[end..]].concat();
    let key = KeyCodec::Time.typed_in(&|clock| zones::utc_of_clock(clock, zone)).parse_text(&[&text]).ok()?;
    match KeyCodec::I64.show(&key) {
        Ok(Datum::Int(micros)) => i64::try_from(micros).ok(),
        _ => None,
    }
}

/// How long a time of syslog is at most.
const SYSLOG_LEN_MAX: usize = 15;

/// Every leap year has another one at most so many years before it.
const LEAP_YEARS_APART_MAX: i16 = 8;

/// A time of ISO 8601 with blanks before its offset, without them.
fn with_offset_joined(text: &str) -> Option<String> {
    let (time, offset) = text.rsplit_once(' ')?;
    let offset = match offset {
        "UTC" | "GMT" | "Z" => "Z",
        offset if offset.starts_with(['+', '-']) => offset,
        _ => return None,
    };
    Some(format!("{}{offset}", time.trim_end()))
}

/// Times as C, `date` and git write them, without the name of a zone.
const OF_DATE: [&str; 8] = [
    "%a %b %d %H:%M:%S %Y",
    "%a %b %d %H:%M:%S %Y %z",
    "%a %b %d %H:%M:%S %z %Y",
    "%a %b %d %I:%M:%S %p %Y",
    "%a %d %b %H:%M:%S %Y",
    "%a %d %b %I:%M:%S %p %Y",
    "%a %d %b %Y %H:%M:%S",
    "%a %d %b %Y %I:%M:%S %p",
];

/// Those of mails without a day of the week, and without an offset.
const OF_MAIL: [&str; 2] = ["%d %b %Y %H:%M:%S", "%d %b %Y %H:%M"];

/// Zones that have one offset by their names, in hours: those of RFC 5322, and of Europe. Other
/// names have several: `IST` is Irish, Israeli and Indian.
const ZONES: [(&str, i8); 17] = [
    ("UTC", 0),
    ("GMT", 0),
    ("UT", 0),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
    ("WET", 0),
    ("WEST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EEST", 3),
];

fn begins_with_day_and_month(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let (day, month) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_of = |word: &str, lengths: std::ops::RangeInclusive<usize>, is_of: fn(&u8) -> bool| {
        lengths.contains(&word.len()) && word.as_bytes().iter().all(is_of)
    };
    is_of(day, 1..=2, u8::is_ascii_digit) && is_of(month, 3..=3, u8::is_ascii_alphabetic)
}

/// A time in one of some forms, in which the name of its zone may stand besides: that of the zone
/// that is asked for, which also tells the first from the second time that its clocks show, or one
/// that has one offset everywhere.
fn in_words(text: &str, forms: &[&str], zone: &TimeZone) -> Result<Timestamp, NoTime> {
    let is_name = |word: &str| {
        (2..=5).contains(&word.len())
            && word.bytes().all(|letter| letter.is_ascii_uppercase())
            && !matches!(word, "AM" | "PM")
    };
    let (names, words): (Vec<&str>, Vec<&str>) =
        text.split_ascii_whitespace().partition(|word| is_name(word));
    let text = words.join(" ");
    let read_in = |zone: &TimeZone| {
        let mut read = forms.iter().map(|form| named(&text, form, zone));
        read.find(|read| *read != Err(NoTime::Unlike)).unwrap_or(Err(NoTime::Unlike))
    };
    let [name] = names[..] else {
        return if names.is_empty() { read_in(zone) } else { Err(NoTime::Unlike) };
    };
    let is_called_so = |at: &Timestamp| zone.to_offset_info(*at).abbreviation() == name;
    let in_zone = match read_in(zone) {
        Ok(at) => Some(at).filter(is_called_so),
        Err(NoTime::Unclear(one, other)) => [one, other].into_iter().find(is_called_so),
        Err(NoTime::Unlike) => return Err(NoTime::Unlike),
    };
    let hours = ZONES.iter().find(|(known, _)| *known == name).map(|(_, hours)| *hours);
    match (in_zone, hours) {
        (Some(at), _) => Ok(at),
        (None, Some(hours)) => read_in(&TimeZone::fixed(jiff::tz::offset(hours))),
        (None, None) => Err(NoTime::Unlike),
    }
}

/// A time of syslog: it is the last such one, at most a day ahead. That of a leap day is some years
/// ago.
fn without_year(text: &str, zone: &TimeZone) -> Result<Timestamp, NoTime> {
    let now = Timestamp::now();
    let year = now.to_zoned(zone.clone()).year();
    let of_year = |year: i16| named(&format!("{year} {text}"), "%Y %b %d %H:%M:%S", zone);
    let soon = now.as_second() + 86_400;
    match of_year(year) {
        Ok(at) | Err(NoTime::Unclear(at, _)) if at.as_second() >= soon => of_year(year - 1),
        Err(NoTime::Unlike) => {
            let years = if text.starts_with("Feb 29") { LEAP_YEARS_APART_MAX } else { 1 };
            let mut earlier = (1..=years).map(|ago| of_year(year - ago));
            earlier.find(|read| *read != Err(NoTime::Unlike)).unwrap_or(Err(NoTime::Unlike))
        }
        read => read,
    }
}

fn epoch(text: &str) -> Option<Timestamp> {
    if let Some((seconds, fraction)) = text.split_once('.') {
        let nanos: String = fraction.chars().chain("000000000".chars()).take(9).collect();
        return Timestamp::new(seconds.parse().ok()?, nanos.parse().ok()?).ok();
    }
    let number: i64 = text.parse().ok()?;
    match number.unsigned_abs() {
        0..100_000_000_000 => Timestamp::from_second(number).ok(),
        100_000_000_000..100_000_000_000_000 => Timestamp::from_millisecond(number).ok(),
        100_000_000_000_000..100_000_000_000_000_000 => Timestamp::from_microsecond(number).ok(),
        _ => Timestamp::from_nanosecond(number.into()).ok(),
    }
}

/// Reads a time in a form that is named, as of `strptime`: `%d.%m.%Y %H:%M`.
pub(crate) fn named(text: &str, format: &str, zone: &TimeZone) -> Result<Timestamp, NoTime> {
    let broken = strtime::parse(format, text).map_err(|_| NoTime::Unlike)?;
    if let Ok(at) = broken.to_timestamp() {
        return Ok(at);
    }
    let date = broken.to_date().map_err(|_| NoTime::Unlike)?;
    let time = broken.to_time().unwrap_or_default();
    in_zone(date.to_datetime(time), broken.hour().is_none(), zone)
}

/// Whether a form can be the one of times.
pub(crate) fn check_format(format: &str) -> Result<(), String> {
    let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    strtime::format(format, &now)
        .map(drop)
        .map_err(|error| format!("`{format}` is no form of times: {error}"))
}

/// A date, which is its beginning, has one also where the clocks show its midnight twice or never.
fn in_zone(at: DateTime, is_date: bool, zone: &TimeZone) -> Result<Timestamp, NoTime> {
    let moment = zone.to_ambiguous_timestamp(at);
    match (moment.earlier(), moment.later()) {
        (Ok(one), Ok(other)) if moment.is_ambiguous() && !is_date => Err(NoTime::Unclear(one, other)),
        _ => moment.compatible().map_err(|_| NoTime::Unlike),
    }
}

/// The moment at which the unit begins that a time is in. It is reckoned from that moment, and not
/// from the text of the unit: in autumn an hour of the clock is there twice.
pub(crate) fn begin(at: Timestamp, unit: Unit, zone: &TimeZone) -> Option<Timestamp> {
    let shown = at.to_zoned(zone.clone());
    let date = |month: i8, day: i8| {
        let date = Date::new(shown.year(), month, day).ok()?;
        zone.to_timestamp(DateTime::from(date)).ok()
    };
    let nanos = |minutes: i8| {
        let past = i64::from(shown.minute() % minutes) * 60 + i64::from(shown.second());
        past * 1_000_000_000 + i64::from(shown.subsec_nanosecond())
    };
    let past = match unit {
        Unit::Year => return date(1, 1),
        Unit::Month => return date(shown.month(), 1),
        Unit::Day => return date(shown.month(), shown.day()),
        Unit::Hour => nanos(60),
        Unit::Minute(step) => nanos(step),
        Unit::Second => i64::from(shown.subsec_nanosecond()),
        Unit::Weekday | Unit::HourOfDay | Unit::Epoch | Unit::EpochMs | Unit::Time => return Some(at),
    };
    let begin = at.checked_sub(SignedDuration::from_nanos(past)).ok()?;
    if zone.to_offset(begin) == shown.offset() {
        return Some(begin);
    }
    // The clocks were set within the unit: this one of it begins there.
    zone.preceding(at.checked_add(SignedDuration::from_nanos(1)).ok()?).next().map(|set| set.timestamp())
}

/// A time cut to a unit, as text: that of a part is a date, or the beginning of one.
pub(crate) fn cut(at: Timestamp, unit: Unit, zone: &TimeZone) -> String {
    let at = at.to_zoned(zone.clone());
    let (year, month, day, hour) = (at.year(), at.month(), at.day(), at.hour());
    match unit {
        Unit::Year => format!("{year:04}"),
        Unit::Month => format!("{year:04}-{month:02}"),
        Unit::Day => format!("{year:04}-{month:02}-{day:02}"),
        Unit::Hour => format!("{year:04}-{month:02}-{day:02}T{hour:02}"),
        Unit::Minute(step) => {
            let minute = at.minute() / step * step;
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}")
        }
        Unit::Second => at.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        Unit::Weekday => at.weekday().to_monday_one_offset().to_string(),
        Unit::HourOfDay => hour.to_string(),
        Unit::Epoch => at.timestamp().as_second().to_string(),
        Unit::EpochMs => at.timestamp().as_millisecond().to_string(),
        Unit::Time => whole(&at),
    }
}

fn whole(at: &Zoned) -> String {
    let fraction = if at.subsec_nanosecond() == 0 { "" } else { "%.f" };
    let offset = if at.offset().is_zero() { "Z" } else { "%:z" };
    at.strftime(&format!("%Y-%m-%dT%H:%M:%S{fraction}{offset}")).to_string()
}

#[cfg(test)]
#[path = "times/tests.rs"]
mod tests;
