//! Times in the fields of rows: read from the forms that are common, and cut to a unit.
//!
//! ```text
//!   2013-01-01T05:15:00Z   2013-01-01T05:15:00.5-05:00   2013-01-01 05:15   2013-01-01   20130101     ISO 8601
//!   10/Oct/2000:13:55:36 -0700                                                                       access logs
//!   Tue, 15 Nov 1994 08:12:31 GMT                                                                    RFC 2822
//!   Oct 11 22:14:15                                                      syslog: the last such time
//!   1357016400   1357016400.25   1357016400000                        seconds, milli-, micro- or nanoseconds since 1970
//! ```
//!
//! A time without an offset is in the zone that is asked for. A number has at least nine digits, so
//! that it is not taken for a date.

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

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

/// Reads a time in one of the common forms.
pub(crate) fn parse(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let text = text.trim();
    if is_epoch(text) {
        return epoch(text);
    }
    let bytes = text.as_bytes();
    if bytes.get(2) == Some(&b'/') && text.len() > 12 {
        return named(text, "%d/%b/%Y:%H:%M:%S %z", zone);
    }
    if bytes.first()?.is_ascii_alphabetic() {
        let whole = jiff::fmt::rfc2822::parse(text).ok().map(|at| at.timestamp());
        return whole.or_else(|| without_year(text, zone));
    }
    let has_offset = text.ends_with(['Z', 'z']) || text.get(10..)?.contains(['+', '-']);
    match has_offset {
        true => text.parse().ok(),
        false => in_zone(text.parse().ok()?, zone),
    }
}

/// Whether a text is a number, which is read as a time since 1970.
pub(crate) fn is_epoch(text: &str) -> bool {
    let bytes = text.trim().as_bytes();
    let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    bytes.len() >= 9 && (is_digit(&bytes[0]) || b"+-".contains(&bytes[0])) && bytes[1..].iter().all(is_digit)
}

/// Reads a time, also what a time was cut to, which is its beginning.
pub(crate) fn moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let is_cut = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"-T".contains(&byte));
    match (is_cut(text), text.len()) {
        (true, 4) => parse(&format!("{text}-01-01"), zone),
        (true, 7) => parse(&format!("{text}-01"), zone),
        (true, 13) if text.contains('T') => parse(&format!("{text}:00"), zone),
        _ => parse(text, zone),
    }
}

/// Reads a time for a key or a value that is one, in microseconds since 1970.
pub(crate) fn micros(text: &str, zone: &TimeZone) -> Result<i64, String> {
    let nanos = moment(text, zone).map(Timestamp::as_nanosecond).ok_or_else(|| {
        format!("expected a time (2013-01-01T05:15:00Z, or seconds since 1970), found `{text}`")
    })?;
    i64::try_from(nanos.div_euclid(1000)).map_err(|_| format!("`{text}` is too far from 1970"))
}

/// A time of syslog: it is the last such one, at most a day ahead.
fn without_year(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let now = Timestamp::now();
    let year = now.to_zoned(zone.clone()).year();
    let of_year = |year: i16| named(&format!("{year} {text}"), "%Y %b %d %H:%M:%S", zone);
    let soon = now.as_second() + 86_400;
    of_year(year).filter(|at| at.as_second() < soon).or_else(|| of_year(year - 1))
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
pub(crate) fn named(text: &str, format: &str, zone: &TimeZone) -> Option<Timestamp> {
    let broken = strtime::parse(format, text).ok()?;
    if let Ok(at) = broken.to_timestamp() {
        return Some(at);
    }
    let date = broken.to_date().ok()?;
    let time = broken.to_time().unwrap_or_default();
    in_zone(date.to_datetime(time), zone)
}

/// Whether a form can be the one of times.
pub(crate) fn check_format(format: &str) -> Result<(), String> {
    let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    strtime::format(format, &now)
        .map(drop)
        .map_err(|error| format!("`{format}` is no form of times: {error}"))
}

fn in_zone(at: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_ambiguous_timestamp(at).compatible().ok()
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
