//! Steps of time: where rows have times, a sparkline has a sign for each step, and gaps where there
//! are none.

use std::ops::RangeInclusive;

use jiff::civil::{Date, DateTime};

/// Most steps of a line.
const STEPS_MAX: i64 = 100_000;

/// Which numbers are taken for years.
const YEARS: RangeInclusive<u16> = 1900..=2100;

/// A value for each step of time, from the first time to the last; none if these texts are no times
/// of one kind, or in no order. A step is the smallest one between two of them; of several values
/// in one it is their mean.
pub(crate) fn of(times: &[String], values: &[Option<f64>]) -> Option<Vec<Option<f64>>> {
    let places: Vec<i64> = places(times)?;
    let (first, last) = (*places.first()?, *places.last()?);
    let gaps = || places.windows(2).map(|two| two[1].abs_diff(two[0])).filter(|gap| *gap > 0);
    let is_ordered = places.is_sorted() || places.iter().rev().is_sorted();
    let smallest = i64::try_from(gaps().min()?).ok()?;
    let span = i64::try_from(last.abs_diff(first)).ok()?;
    if !is_ordered || values.len() != places.len() {
        return None;
    }
    let step = smallest.max(span / STEPS_MAX + 1);
    let mut sums = vec![(0.0, 0_u32); usize::try_from(span / step).ok()? + 1];
    for (place, value) in places.iter().zip(values) {
        let at = usize::try_from(place.abs_diff(first) / step.unsigned_abs()).ok()?;
        if let (Some(value), Some((sum, count))) = (value, sums.get_mut(at)) {
            (*sum, *count) = (*sum + value, *count + 1);
        }
    }
    Some(sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect())
}

/// Where times are, by the clock that they show: years, months, or milliseconds.
fn places(times: &[String]) -> Option<Vec<i64>> {
    let kind = kind_of(times.first()?)?;
    times.iter().map(|text| place_of(text, kind).filter(|_| kind_of(text) == Some(kind))).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Year,
    Month,
    Moment,
}

fn kind_of(text: &str) -> Option<Kind> {
    match text.len() {
        // Other numbers of four digits are counts, or codes.
        4 if text.parse().is_ok_and(|year: u16| YEARS.contains(&year)) => Some(Kind::Year),
        7 if text.as_bytes()[4] == b'-' => Some(Kind::Month),
        10.. if text.as_bytes()[4] == b'-' => Some(Kind::Moment),
        _ => None,
    }
}

fn place_of(text: &str, kind: Kind) -> Option<i64> {
    match kind {
        Kind::Year => text.parse().ok(),
        Kind::Month => {
            let (year, month) = text.split_once('-')?;
            let (year, month): (i64, i64) = (year.parse().ok()?, month.parse().ok()?);
            (1..=12).contains(&month).then_some(year * 12 + month - 1)
        }
        Kind::Moment => {
            let at: DateTime = match text.get(..10)?.parse::<Date>().ok()? {
                date if text.len() == 10 => date.at(0, 0, 0, 0),
                _ => clock_of(text)?,
            };
            let since = at.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0));
            i64::try_from(since.as_millis()).ok()
        }
    }
}

/// The clock of a time, whatever its offset is.
fn clock_of(text: &str) -> Option<DateTime> {
    let end = text.get(11..)?.find(['Z', '+', '-']).map_or(text.len(), |at| at + 11);
    match end {
        13 => format!("{}:00", text.get(..13)?).parse().ok(),
        end => text.get(..end)?.parse().ok(),
    }
}

#[cfg(test)]
#[path = "steps/tests.rs"]
mod tests;
