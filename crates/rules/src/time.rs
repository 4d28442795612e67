//! Rules about time: how much of the past a table keeps, and how long values last.
//!
//! ```text
//!   keep=latest         the present states; older ones only as long as a snapshot needs them
//!   keep=versions:N     the states of each key after its newest N writes
//!   keep=window:TIME    all states within this time
//!   keep=forever        all states
//!
//!   expire=never        values last; records have no stamps
//!   expire=by-write     a value lasts as long as the write that brought it says, or forever
//!   expire=TIME         as by-write; this long if the write says nothing
//!
//!   a TIME is a number and a unit: 50ms 90s 15m 36h 30d 2w
//! ```
//!
//! Whether a table has stamps is fixed when it is created, since they are in its records.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use crate::parse_error::ParseError;

/// Shortest window, in milliseconds: the map from seqs to times is not finer.
pub const WINDOW_MS_MIN: u64 = 1000;

/// Longest time that rules may name, in milliseconds: a thousand years.
pub const TIME_MS_MAX: u64 = 1000 * 365 * 86_400_000;

/// Most versions that a table may keep of a key.
pub const VERSIONS_MAX: u32 = 1 << 20;

/// How much of the past a table keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// The present state of keys.
    #[default]
    Latest,
    /// The states after the newest N writes to each key; N is 1 at least.
    Versions(u32),
    /// All states within this time: whole milliseconds, from one second to a thousand years.
    Window(Duration),
    /// All states.
    Forever,
}

/// [`Keep`] within the store, where a match must name every variant. `Keep` itself may grow for
/// users.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Latest,
    Versions(u32),
    Window(Duration),
    Forever,
}

/// How long values last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expire {
    /// Forever; records have no stamps.
    #[default]
    Never,
    /// As long as the write says, or forever.
    ByWrite,
    /// As long as the write says, or this time: whole milliseconds, from one to a thousand years.
    After(Duration),
}

impl Keep {
    fn read(text: &str) -> Option<Keep> {
        match text.split_once(':') {
            None if text == "latest" => Some(Keep::Latest),
            None if text == "forever" => Some(Keep::Forever),
            Some(("versions", count)) => {
                count.parse().ok().filter(|count| (1..=VERSIONS_MAX).contains(count)).map(Keep::Versions)
            }
            Some(("window", time)) => {
                let time = parse_time(time).ok().filter(|&time| whole_ms(time) >= WINDOW_MS_MIN)?;
                Some(Keep::Window(time))
            }
            _ => None,
        }
    }

    /// Why it cannot be the rule of a table: its stored text cannot be read back.
    pub(crate) fn check(self) -> Result<(), ParseError> {
        self.to_string().parse::<Keep>().map(drop)
    }

    /// Whether past states are kept that no snapshot needs.
    pub fn keeps_past(self) -> bool {
        self != Keep::Latest
    }
}

/// The rule, for matches that must name every one.
pub fn kept(keep: Keep) -> Kept {
    match keep {
        Keep::Latest => Kept::Latest,
        Keep::Versions(count) => Kept::Versions(count),
        Keep::Window(time) => Kept::Window(time),
        Keep::Forever => Kept::Forever,
    }
}

/// The time that all states are kept for, in milliseconds, if that is the rule.
pub fn window_ms(keep: Keep) -> Option<u64> {
    match keep {
        Keep::Window(time) => Some(whole_ms(time)),
        Keep::Latest | Keep::Versions(_) | Keep::Forever => None,
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::Latest => f.write_str("latest"),
            Keep::Versions(count) => write!(f, "versions:{count}"),
            Keep::Window(time) => write!(f, "window:{}", show_time(*time)),
            Keep::Forever => f.write_str("forever"),
        }
    }
}

impl FromStr for Keep {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Keep, ParseError> {
        Keep::read(text).ok_or_else(|| {
            let why = match text.strip_prefix("window:").and_then(|time| parse_time(time).err()) {
                Some(error) => error.message().to_owned(),
                None => format!("there is no rule `{text}`"),
            };
            let choices =
                format!("latest, versions:N (N up to {VERSIONS_MAX}), window:TIME (from 1s), forever");
            ParseError::of(text, format!("{why}; the choices are {choices}"))
                .suggest_word::<Keep>(&["latest", "versions", "window", "forever"])
        })
    }
}

impl FromStr for Expire {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Expire, ParseError> {
        match text {
            "never" => Ok(Expire::Never),
            "by-write" => Ok(Expire::ByWrite),
            time => parse_time(time).map(Expire::After).map_err(|error| {
                ParseError::of(text, format!("{}; or by-write, or never", error.message()))
                    .suggest_word::<Expire>(&["never", "by-write"])
            }),
        }
    }
}

impl Expire {
    /// Why it cannot be the rule of a table: its stored text cannot be read back.
    pub(crate) fn check(self) -> Result<(), ParseError> {
        self.to_string().parse::<Expire>().map(drop)
    }

    /// Whether records have stamps.
    pub fn has_stamps(self) -> bool {
        self != Expire::Never
    }
}

/// How long a value lasts if its write says nothing, in milliseconds; none is forever.
pub fn default_ms(expire: Expire) -> Option<u64> {
    match expire {
        Expire::After(time) => Some(whole_ms(time)),
        Expire::Never | Expire::ByWrite => None,
    }
}

impl fmt::Display for Expire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expire::Never => f.write_str("never"),
            Expire::ByWrite => f.write_str("by-write"),
            Expire::After(time) => f.write_str(&show_time(*time)),
        }
    }
}

const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// The time given by a number with a unit, from a millisecond to a thousand years.
///
/// # Errors
/// Says why it is none, and what to write.
pub fn parse_time(text: &str) -> Result<Duration, ParseError> {
    read_time(text).ok_or_else(|| ParseError::of(text, why_no_time(text)))
}

fn read_time(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, unit_ms) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let time_ms = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    (1..=TIME_MS_MAX).contains(&time_ms).then_some(Duration::from_millis(time_ms))
}

fn why_no_time(text: &str) -> String {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(0);
    let (number, unit) = text.split_at(digits);
    let is_said = !number.is_empty() && UNITS.iter().any(|(name, _)| *name == unit);
    match is_said {
        true if number.bytes().all(|digit| digit == b'0') => {
            format!("`{text}` is too short a time: write 1ms or more")
        }
        true => {
            let days = TIME_MS_MAX / 86_400_000;
            format!("`{text}` is too long a time: write {days}d, which are a thousand years, or less")
        }
        false => format!("`{text}` is not a time; write 90s, 15m, 36h or 30d"),
    }
}

/// A moment as it is stored, in milliseconds since 1970; 0 for earlier ones.
pub fn unix_ms(moment: SystemTime) -> u64 {
    moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, whole_ms)
}

/// The moment that is this many milliseconds after the beginning of 1970; if the system cannot
/// represent it, one that is a thousand years after 1970.
pub fn moment(unix_ms: u64) -> SystemTime {
    let since_1970 = Duration::from_millis(unix_ms);
    let at = |since: Duration| SystemTime::UNIX_EPOCH.checked_add(since);
    at(since_1970).or_else(|| at(Duration::from_millis(TIME_MS_MAX))).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A moment for people, in UTC, which is said: `2026-11-22 08:30:00Z`.
pub fn utc(moment: SystemTime) -> String {
    let unix_s = unix_ms(moment) / 1000;
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// A moment for programs, as RFC 3339 has it: `2026-11-22T08:30:00.250Z`.
pub fn rfc3339(moment: SystemTime) -> String {
    let seconds = utc(moment).replace(' ', "T");
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), unix_ms(moment) % 1000)
}

/// Year, month and day, in UTC, this many days after 1970-01-01, by the Gregorian rules (Hinnant
/// 2013, `civil_from_days`).
pub fn date(days: u64) -> (u64, u64, u64) {
    let from_march_0 = days + 719_468;
    let (era, day_of_era) = (from_march_0 / 146_097, from_march_0 % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// A time as [`parse_time`] reads it, in the largest unit that is exact; if it is not whole
/// milliseconds, in a form that is not read back.
pub fn show_time(time: Duration) -> String {
    if !time.subsec_nanos().is_multiple_of(1_000_000) {
        return format!("{time:?}");
    }
    let time_ms = whole_ms(time);
    let divides = |(_, unit_ms): &(&str, u64)| time_ms.is_multiple_of(*unit_ms);
    let (unit, unit_ms) = UNITS.into_iter().find(divides).unwrap_or(("ms", 1));
    format!("{}{unit}", time_ms / unit_ms)
}

/// The whole milliseconds of a time, or the largest number.
fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "time/tests.rs"]
mod tests;
