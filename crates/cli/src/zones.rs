//! The zone in which times are shown, and which is meant where one is typed without an offset:
//! that of `--zone`, or UTC. A process has one terminal, and so one such zone.

use std::str::FromStr;
use std::sync::{PoisonError, RwLock};
use std::time::SystemTime;

use folddb::time;
use jiff::civil::{DateTime, date};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

const PEOPLE: &str = "%Y-%m-%d %H:%M:%S%:z";
const PROGRAMS: &str = "%Y-%m-%dT%H:%M:%S.%3f%:z";
const SECONDS: &str = "%Y-%m-%dT%H:%M:%S%:z";

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// Offsets are shorter than a day: no longer one is read.
const OFFSET_S_END: u64 = 86_400;

static PRESENT: RwLock<Option<TimeZone>> = RwLock::new(None);

/// A zone, and the name that it was given by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Zone {
    pub(crate) name: String,
    pub(crate) zone: TimeZone,
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(name: &str) -> Result<Zone, String> {
        Ok(Zone { name: name.to_owned(), zone: zone(name)? })
    }
}

/// A zone by its name: `UTC`, `Europe/Berlin`, `+02:00`.
pub(crate) fn zone(name: &str) -> Result<TimeZone, String> {
    let known = match name {
        "UTC" | "utc" | "Z" => Ok(TimeZone::UTC),
        offset if offset.starts_with(['+', '-']) => offset_zone(offset).ok_or(()),
        name => TimeZone::get(name).map_err(drop),
    };
    known.map_err(|()| {
        format!("there is no time zone `{name}`; zones are called UTC, +02:00, Europe/Berlin, America/New_York, ...")
    })
}

fn offset_zone(offset: &str) -> Option<TimeZone> {
    let at: Timestamp = format!("2000-01-01T00:00:00{offset}").parse().ok()?;
    let utc: Timestamp = "2000-01-01T00:00:00Z".parse().ok()?;
    let east = utc.as_second() - at.as_second();
    if east.unsigned_abs() >= OFFSET_S_END {
        return None;
    }
    Some(Offset::from_seconds(i32::try_from(east).ok()?).ok()?.to_time_zone())
}

/// Sets the zone of the commands that follow.
pub(crate) fn set(zone: Option<&Zone>) {
    let zone = zone.map(|zone| zone.zone.clone()).filter(|zone| *zone != TimeZone::UTC);
    *PRESENT.write().unwrap_or_else(PoisonError::into_inner) = zone;
}

/// The zone, if it is not UTC.
pub(crate) fn other_than_utc() -> Option<TimeZone> {
    PRESENT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The time of a clock in the zone as UTC, both in microseconds since 1970. An error is the first
/// moment that may be meant by a time which the clock shows twice, or never.
pub(crate) fn utc_of(clock: i64) -> Result<i64, i64> {
    other_than_utc().map_or(Ok(clock), |zone| utc_of_clock(clock, &zone))
}

/// The same in this zone. Clocks are reckoned with to the end of the year 9999, which is beyond the
/// last `Timestamp`.
pub(crate) fn utc_of_clock(clock: i64, zone: &TimeZone) -> Result<i64, i64> {
    let shown = EPOCH.checked_add(SignedDuration::from_micros(clock));
    let Ok(shown) = shown else { return Ok(clock) };
    let before = |offset: Offset| clock - i64::from(offset.seconds()) * 1_000_000;
    match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } => Ok(before(offset)),
        AmbiguousOffset::Gap { before: offset, .. } | AmbiguousOffset::Fold { before: offset, .. } => {
            Err(before(offset))
        }
    }
}

/// Why a time of day is not taken.
pub(crate) fn unclear(text: &str) -> String {
    format!(
        "the clocks of the zone are set back or forward, and show {text} twice or never: the moment is said with an \
         offset such as +01:00"
    )
}

/// A time that is shown as ISO 8601 in UTC, as it is shown in the zone.
pub(crate) fn shown(utc: &str) -> String {
    other_than_utc().and_then(|zone| iso_in(&zone, utc)).unwrap_or_else(|| utc.to_owned())
}

/// The same in this zone; none if it is no such time.
pub(crate) fn iso_in(zone: &TimeZone, utc: &str) -> Option<String> {
    let at = utc.parse::<Timestamp>().ok()?.to_zoned(zone.clone());
    let fraction = if at.subsec_nanosecond() == 0 { "" } else { "%.f" };
    Some(at.strftime(&format!("%Y-%m-%dT%H:%M:%S{fraction}%:z")).to_string())
}

/// A moment for people: `2026-11-22 08:30:00Z`, `2026-11-22 09:30:00+01:00`.
pub(crate) fn for_people(at: SystemTime) -> String {
    in_form(at, PEOPLE).unwrap_or_else(|| time::utc(at))
}

/// A moment for programs, as RFC 3339 has it.
pub(crate) fn rfc3339(at: SystemTime) -> String {
    in_form(at, PROGRAMS).unwrap_or_else(|| time::rfc3339(at))
}

/// The same of a time that is known to the second only.
pub(crate) fn rfc3339_seconds(at: SystemTime) -> String {
    in_form(at, SECONDS).unwrap_or_else(|| utc_seconds(at))
}

/// The same in UTC, whatever zone is asked for: to be stored.
pub(crate) fn utc_seconds(at: SystemTime) -> String {
    time::utc(at).replace(' ', "T")
}

/// In the zone, if that is not UTC.
fn in_form(at: SystemTime, form: &str) -> Option<String> {
    in_zone(at, form, &other_than_utc()?)
}

fn in_zone(at: SystemTime, form: &str, zone: &TimeZone) -> Option<String> {
    let at = Timestamp::from_millisecond(i64::try_from(time::unix_ms(at)).ok()?).ok()?;
    Some(at.to_zoned(zone.clone()).strftime(form).to_string())
}

#[cfg(test)]
#[path = "zones/tests.rs"]
mod tests;
