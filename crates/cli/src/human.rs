//! Numbers, sizes and times as people write them, and suggestions for mistyped names.

use std::borrow::Cow;
use std::time::SystemTime;

use folddb::AsOf;
pub(crate) use folddb::text::size_text as bytes;
use folddb::time::{moment, unix_ms};

use crate::failure::Failure;
pub(crate) use crate::zones::{for_people as time, rfc3339, rfc3339_seconds};

/// `1234567` as `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `2 rows`.
pub(crate) fn plural(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A text on one line that is only text to a terminal: line ends and cursor movements are escaped,
/// so that a key cannot imitate other output of a command, nor turn around what is behind it.
pub(crate) fn one_line(text: String) -> String {
    if text.chars().any(is_obeyed) { text.escape_debug().to_string() } else { text }
}

/// Whether a terminal, or a program that shows text, does something at a character: controls, line
/// ends of Unicode, and what sets the direction of the text behind it.
pub(crate) fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text with its control characters escaped, except line ends and tabs: nothing in it moves the
/// cursor of a terminal, or changes its colors.
pub(crate) fn spelled(text: &str) -> Cow<'_, str> {
    let is_spelled = |letter: char| is_obeyed(letter) && !matches!(letter, '\n' | '\t');
    if !text.contains(is_spelled) {
        return Cow::Borrowed(text);
    }
    let spell = |letter: char| match is_spelled(letter) {
        true => letter.escape_debug().to_string(),
        false => letter.to_string(),
    };
    Cow::Owned(text.chars().map(spell).collect())
}

/// Reads how long something lasts: `90s`, `15m`, `36h`, `30d`.
pub(crate) fn parse_time(text: &str) -> Result<std::time::Duration, folddb::ParseError> {
    folddb::time::parse_time(text)
}

/// The last millisecond of a second, which is meant by one without a fraction.
const SECOND_END_MS: u64 = 999;

/// Reads a moment: a seq, a time (`2026-11-22T08:30:00Z`, with a fraction of the second or without,
/// with another offset, or the date alone), or how long ago it was (`15m`). A second without a
/// fraction is its end. Without an offset it is in UTC.
pub(crate) fn parse_moment(text: &str) -> Result<AsOf, String> {
    let wrong =
        || format!("`{text}` is not a moment; write a seq, 2026-11-22T08:30:00Z, or 15m for that age");
    if let Ok(seq) = text.parse::<u64>() {
        return Ok(AsOf::Seq(seq.into()));
    }
    if let Ok(ago) = folddb::time::parse_time(text) {
        return Ok(AsOf::Time(SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH)));
    }
    let (clock, east_s) = without_offset(text).ok_or_else(wrong)?;
    let (date, time) = clock.split_once(['T', ' ']).unwrap_or((clock, "0:0:0"));
    let numbers = |text: &str, between: char| {
        let parsed: Option<Vec<u64>> = text.split(between).map(|part| part.parse().ok()).collect();
        parsed.and_then(|parsed| <[u64; 3]>::try_from(parsed).ok()).ok_or_else(wrong)
    };
    let (time, ms) = match time.split_once('.') {
        None => (time, SECOND_END_MS),
        Some((time, fraction)) => (time, milliseconds(fraction).ok_or_else(wrong)?),
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    if !(1970..=9999).contains(&year) || hour > 23 || minute > 59 || second > 59 {
        return Err(wrong());
    }
    // The day is searched for, since the calendar function has only one direction.
    let (mut days, mut end) = (0, (year - 1969) * 366);
    while days < end {
        let middle = days + (end - days) / 2;
        match folddb::time::date(middle) < (year, month, day) {
            true => days = middle + 1,
            false => end = middle,
        }
    }
    if folddb::time::date(days) != (year, month, day) {
        return Err(wrong());
    }
    let clock_s = days * 86_400 + hour * 3600 + minute * 60 + second;
    let unix_s = clock_s.checked_add_signed(-east_s).ok_or_else(wrong)?;
    Ok(AsOf::Time(moment(unix_s * 1000 + ms)))
}

/// A time without its offset, and that offset in seconds to the east: `Z`, `+01:00`, or none.
fn without_offset(text: &str) -> Option<(&str, i64)> {
    let Some(at) = text.rfind(['+', '-']).filter(|at| text[..*at].contains(':')) else {
        return Some((text.strip_suffix('Z').unwrap_or(text), 0));
    };
    let (hours, minutes) = text[at + 1..].split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let east_s = (hours * 60 + minutes) * 60;
    let is_one = (0..24).contains(&hours) && (0..60).contains(&minutes);
    is_one.then(|| (&text[..at], if text[at..].starts_with('-') { -east_s } else { east_s }))
}

/// The milliseconds of a fraction of a second with up to nine digits.
fn milliseconds(digits: &str) -> Option<u64> {
    if !(1..=9).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    format!("{digits:0<3}")[..3].parse().ok()
}

/// Refuses a moment in the future, by the time of the store. Seconds are read as their end, so the
/// present one is allowed, and one that was typed without a fraction is named without one.
pub(crate) fn check_over(at: Option<AsOf>, now: SystemTime) -> Result<(), Failure> {
    match at {
        Some(AsOf::Time(at)) if unix_ms(at).saturating_sub(SECOND_END_MS) > unix_ms(now) => {
            Err(Failure::Usage(format!(
                "{} is in the future: by the clock of the store it is {}",
                if unix_ms(at) % 1000 == SECOND_END_MS { rfc3339_seconds(at) } else { rfc3339(at) },
                rfc3339(now)
            )))
        }
        _ => Ok(()),
    }
}

/// Reads a size: `64MiB`, `64M`, `1.5 GiB`, `65536`. All units are powers of 1024.
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a size; write 64MiB, 1.5GiB or a number of bytes");
    let text_lower = text.trim().to_ascii_lowercase();
    let number_len = text_lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text_lower.len());
    let (number, unit) = text_lower.split_at(number_len);
    let factor: u64 = match unit.trim() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * factor as f64;
    if bytes < usize::MAX as f64 { Ok(bytes as usize) } else { Err(wrong()) }
}

/// The nearest candidate for a mistyped word, if one is near.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().count();
    let distance_max = if letters <= 2 { 0 } else { (letters / 3).clamp(1, 3) };
    let scored = candidates.into_iter().map(|candidate| (edit_distance(word, candidate), candidate));
    scored
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, near)| near)
}

/// How many letters to insert, drop or change (Levenshtein 1966), ignoring case.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// A sentence that names the nearest of the known names, or all of them.
pub(crate) fn suggestion(word: &str, known: &[&str]) -> String {
    match (nearest(word, known.iter().copied()), known) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "there are none".to_owned(),
        (None, [one]) => format!("there is only `{one}`"),
        (None, known) => format!("there are `{}`", known.join("`, `")),
    }
}

#[cfg(test)]
#[path = "human/tests.rs"]
mod tests;
