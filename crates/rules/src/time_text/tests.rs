use proptest::prelude::*;

use std::ops::Range;

use super::{shown, text};
use crate::datum::Datum;

/// 2026-11-22T08:30:00Z.
const AT: i64 = 1_795_336_200_000_000;

fn parse(text: &str) -> Option<i64> {
    super::parse(text, &Ok).unwrap_or_default()
}

fn parse_span(text: &str) -> Option<Range<i64>> {
    super::parse_span(text, &Ok).unwrap_or_default()
}

#[test]
fn a_time_is_shown_in_utc_with_a_fraction_where_there_is_one() {
    assert_eq!(text(0).as_deref(), Some("1970-01-01T00:00:00Z"));
    assert_eq!(text(AT).as_deref(), Some("2026-11-22T08:30:00Z"));
    assert_eq!(text(AT + 250_000).as_deref(), Some("2026-11-22T08:30:00.25Z"));
    assert_eq!(text(AT + 1).as_deref(), Some("2026-11-22T08:30:00.000001Z"));
    assert_eq!(text(-1).as_deref(), Some("1969-12-31T23:59:59.999999Z"));
    assert_eq!(text(951_782_400_000_000).as_deref(), Some("2000-02-29T00:00:00Z"));
}

#[test]
fn the_forms_that_people_type_are_one_moment() {
    let forms = [
        "2026-11-22T08:30:00Z",
        "2026-11-22t08:30:00z",
        "2026-11-22 08:30:00",
        " 2026-11-22T08:30 ",
        "2026-11-22T08:30:00.000000000Z",
        "2026-11-22T08:30:00,0",
        "2026-11-22T09:30:00+01:00",
        "2026-11-22T09:30+0100",
        "2026-11-22 03:30:00.0-05",
        "1795336200000000",
    ];
    for form in forms {
        assert_eq!(parse(form), Some(AT), "{form}");
    }
    assert_eq!(parse("2026-11-22"), Some(AT - AT.rem_euclid(86_400_000_000)));
}

#[test]
fn digits_beyond_the_microsecond_are_refused_unless_they_are_zeros() {
    assert_eq!(parse("2026-11-22T08:30:00.123456Z"), Some(AT + 123_456));
    assert_eq!(parse("2026-11-22T08:30:00.123456000Z"), Some(AT + 123_456));
    for finer in ["2026-11-22T08:30:00.1234567Z", "2026-11-22T08:30:00.000000001"] {
        assert!(super::parse(finer, &Ok).unwrap_err().contains("microsecond"), "{finer}");
        assert!(super::parse_span(finer, &Ok).unwrap_err().contains("microsecond"), "{finer}");
    }
}

#[test]
fn a_leap_second_is_the_second_before_it() {
    assert_eq!(parse("2016-12-31T23:59:60Z"), parse("2016-12-31T23:59:59Z"));
    assert_eq!(parse("2016-12-31T23:59:60.5Z"), parse("2016-12-31T23:59:59.5Z"));
}

#[test]
fn what_is_no_time_is_refused() {
    let wrong = [
        "",
        "2026",
        "2026-11",
        "20261122",
        "1795336200",
        "2026-13-01",
        "2026-02-29",
        "2026-11-00",
        "2026-11-22T24:00:00Z",
        "2026-11-22T08:60:00Z",
        "2026-11-22T08:30:61Z",
        "2026-11-22T08:30:00.",
        "2026-11-22T08.5",
        "2026-11T08:30:00Z",
        "2026-11-22T08:30:00+1",
        "2026-11-22T08:30:00+24:00",
        "2026-1-2",
        "26-11-22",
        "2026-11-22T8:30",
        "-2026-11-22",
        "2026-11-22-01",
        "noon",
        "２026-11-22",
        "2026-11-22T08:30:00+é1:00",
        "2026-11-22T08:30:00.12345678901Z",
    ];
    for form in wrong {
        assert_eq!(parse(form), None, "{form}");
    }
}

#[test]
fn a_part_of_a_time_is_a_span() {
    let len = |form: &str| parse_span(form).map(|span| (span.end - span.start) / 60_000_000);
    assert_eq!(len("2026-11-22T08:30"), Some(1));
    assert_eq!(len("2026-11-22T08"), Some(60));
    assert_eq!(len("2026-11-22"), Some(24 * 60));
    assert_eq!(len("2026-11"), Some(30 * 24 * 60));
    assert_eq!(len("2026-12"), Some(31 * 24 * 60));
    assert_eq!(len("2028-02"), Some(29 * 24 * 60));
    assert_eq!(len("2026"), Some(365 * 24 * 60));
    assert_eq!(len("2028"), Some(366 * 24 * 60));
    assert_eq!(len("9999"), Some(365 * 24 * 60));
    assert_eq!(parse_span("2026-11-22T08:30:00"), Some(AT..AT + 1));
    assert_eq!(parse_span("2026-11-22T09:30+01:00").map(|span| span.start), Some(AT));
}

#[test]
fn a_time_without_an_offset_is_of_the_clock_that_is_given() {
    let hour = 3_600_000_000;
    let berlin = |clock: i64| Ok(clock - hour);
    assert_eq!(super::parse("2026-11-22T09:30", &berlin), Ok(Some(AT)));
    assert_eq!(super::parse("2026-11-22T08:30Z", &berlin), Ok(Some(AT)));
    assert_eq!(super::parse("2026-11-22T03:30-05:00", &berlin), Ok(Some(AT)));
    let day = super::parse_span("2026-11-22", &berlin).unwrap().expect("a day");
    assert_eq!((day.start, day.end - day.start), (AT - 9 * hour - hour / 2, 24 * hour));
    // On the day on which clocks are put back, it has 25 hours.
    let back = |clock: i64| Ok(if clock > AT { clock + hour } else { clock });
    let day = super::parse_span("2026-11-22", &back).unwrap().expect("a day");
    assert_eq!(day.end - day.start, 25 * hour);
}

#[test]
fn a_minute_that_a_clock_shows_twice_or_never_is_no_span() {
    let (hour, minute) = (3_600_000_000, 60_000_000);
    let two = AT - AT.rem_euclid(24 * hour) + 2 * hour;
    // At three the clock, an hour before UTC, is set back to two.
    let back = |clock: i64| match clock - two {
        before if before < 0 => Ok(clock - hour),
        twice if twice < hour => Err(clock - hour),
        _ => Ok(clock),
    };
    let span = |text: &str| super::parse_span(text, &back).map(Option::unwrap);
    assert_eq!(span("2026-11-22T02").unwrap(), two - hour..two + hour, "both of them");
    assert_eq!(span("2026-11-22T01:59").unwrap(), two - hour - minute..two - hour);
    for twice in ["2026-11-22T02:00", "2026-11-22T02:30", "2026-11-22T02:59", "2026-11-22T02:30:00"] {
        assert!(span(twice).unwrap_err().contains("twice or never"), "{twice}");
        assert!(super::parse(twice, &back).unwrap_err().contains("twice or never"), "{twice}");
    }
    assert!(super::parse("2026-11-22T02", &back).is_err(), "the beginning of which of them");
    assert_eq!(span("2026-11-22T02:59+01:00").unwrap(), two - minute..two);
    assert_eq!(span("2026-11-22T03:00").unwrap(), two + hour..two + hour + minute);
    // At two it is set forward to three.
    let forth = |clock: i64| match clock - two {
        before if before < 0 => Ok(clock),
        never if never < hour => Err(clock),
        _ => Ok(clock - hour),
    };
    let span = |text: &str| super::parse_span(text, &forth).map(Option::unwrap);
    for never in ["2026-11-22T02", "2026-11-22T02:30"] {
        assert!(span(never).is_err(), "{never}");
        assert!(super::parse(never, &forth).is_err(), "{never}");
    }
    // A date is its beginning, also where its midnight is left out.
    let late = |clock: i64| if clock == two - 2 * hour { Err(clock + hour) } else { Ok(clock) };
    assert_eq!(super::parse("2026-11-22", &late), Ok(Some(two - hour)));
    let day = span("2026-11-22").unwrap();
    assert_eq!(day.end - day.start, 23 * hour);
}

#[test]
fn beyond_the_years_of_texts_a_time_is_its_number() {
    for micros in [i64::MIN, i64::MAX, 253_402_300_800_000_000, -62_167_219_200_000_001] {
        assert_eq!(shown(micros), Datum::Int(micros.into()));
        assert_eq!(parse(&micros.to_string()), Some(micros));
    }
    assert_eq!(text(253_402_300_799_999_999).as_deref(), Some("9999-12-31T23:59:59.999999Z"));
    assert_eq!(text(-62_167_219_200_000_000).as_deref(), Some("0000-01-01T00:00:00Z"));
}

proptest! {
    #[test]
    fn what_is_shown_is_typed_as_the_same_time(micros: i64) {
        prop_assert_eq!(parse(&shown(micros).to_string()), Some(micros));
    }

    #[test]
    fn a_shown_date_is_typed_as_the_same_time(micros in -62_167_219_200_000_000i64..253_402_300_800_000_000) {
        let text = text(micros).expect("within the years of texts");
        prop_assert_eq!(parse(&text), Some(micros));
        prop_assert_eq!(parse_span(&text), Some(micros..micros + 1));
        let day = parse_span(&text[..10]).expect("a day");
        prop_assert!(day.contains(&micros));
    }

    #[test]
    fn no_text_panics(text: String) {
        let _ = (parse(&text), parse_span(&text));
    }

    #[test]
    fn no_text_of_these_signs_panics(text in "[0-9TZ:+.\\- ]{0,32}") {
        let _ = (parse(&text), parse_span(&text));
    }
}
