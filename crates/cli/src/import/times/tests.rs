use super::*;

fn cut_in(text: &str, unit: Unit, zone_name: &str) -> String {
    let zone = zone(zone_name).unwrap();
    let read = settled(parse(text, &zone), |at| cut(at, unit, &zone));
    read.unwrap_or_else(|none| if none == NoTime::Unlike { "no time" } else { "unclear" }.to_owned())
}

#[test]
fn times_are_read_in_the_forms_that_are_common() {
    for (text, time) in [
        ("2013-01-01T05:15:00Z", "2013-01-01T05:15:00Z"),
        ("2013-01-01 05:15:00", "2013-01-01T05:15:00Z"),
        ("2013-01-01T05:15", "2013-01-01T05:15:00Z"),
        ("2013-01-01T05:15:00.5-05:00", "2013-01-01T10:15:00.5Z"),
        ("2013-01-01", "2013-01-01T00:00:00Z"),
        ("10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
        ("Tue, 15 Nov 1994 08:12:31 GMT", "1994-11-15T08:12:31Z"),
        ("2013-01-01 05:15:00 +0000", "2013-01-01T05:15:00Z"),
        ("2013-01-01 05:15:00  -0500", "2013-01-01T10:15:00Z"),
        ("2013-01-01 05:15:00.5 UTC", "2013-01-01T05:15:00.5Z"),
        ("Tue Jan 1 05:15:00 2013 -0500", "2013-01-01T10:15:00Z"),
        ("Tue Jan  1 05:15:00 2013", "2013-01-01T05:15:00Z"),
        ("Tue Jan  1 05:15:00 UTC 2013", "2013-01-01T05:15:00Z"),
        ("Wed Jan  1 05:15:00 2013", "no time"),
        ("2013-01-01 -0500", "no time"),
        ("1357016400", "2013-01-01T05:00:00Z"),
        ("1357016400.25", "2013-01-01T05:00:00.25Z"),
        ("1357016400000", "2013-01-01T05:00:00Z"),
        ("1357016400000000", "2013-01-01T05:00:00Z"),
        ("", "no time"),
        ("-", "no time"),
        ("2013", "no time"),
        ("2013-13-01", "no time"),
        ("yesterday", "no time"),
    ] {
        assert_eq!(cut_in(text, Unit::Time, "UTC"), time, "{text}");
    }
}

#[test]
fn a_leap_day_of_syslog_is_the_last_one() {
    let read = cut_in("Feb 29 10:00:00", Unit::Time, "UTC");
    let year: i16 = read[..4].parse().unwrap();
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    assert_eq!(&read[4..], "-02-29T10:00:00Z");
    assert!(now.year() - 8 <= year && year <= now.year(), "{read}");
    assert_eq!(cut_in("Feb 30 10:00:00", Unit::Time, "UTC"), "no time");
}

#[test]
fn times_are_cut_to_units_in_a_zone() {
    let text = "2013-07-01T03:17:45Z";
    for (unit, of_utc, of_york) in [
        (Unit::Year, "2013", "2013"),
        (Unit::Month, "2013-07", "2013-06"),
        (Unit::Day, "2013-07-01", "2013-06-30"),
        (Unit::Hour, "2013-07-01T03", "2013-06-30T23"),
        (Unit::Minute(5), "2013-07-01T03:15", "2013-06-30T23:15"),
        (Unit::Second, "2013-07-01T03:17:45", "2013-06-30T23:17:45"),
        (Unit::Weekday, "1", "7"),
        (Unit::HourOfDay, "3", "23"),
        (Unit::Epoch, "1372648665", "1372648665"),
        (Unit::Time, "2013-07-01T03:17:45Z", "2013-06-30T23:17:45-04:00"),
    ] {
        assert_eq!(cut_in(text, unit, "UTC"), of_utc, "{unit:?}");
        assert_eq!(cut_in(text, unit, "America/New_York"), of_york, "{unit:?}");
    }
    assert_eq!(cut_in(text, Unit::Hour, "+05:30"), "2013-07-01T08");
}

#[test]
fn a_time_without_an_offset_is_in_the_zone() {
    assert_eq!(cut_in("2013-07-01 00:30", Unit::Epoch, "America/New_York"), "1372653000");
    assert_eq!(cut_in("2013-07-01 00:30", Unit::Day, "America/New_York"), "2013-07-01");
}

#[test]
fn a_form_may_be_named() {
    let at = named("24.12.2013 18:05", "%d.%m.%Y %H:%M", &TimeZone::UTC).unwrap();
    assert_eq!(cut(at, Unit::Minute(1), &TimeZone::UTC), "2013-12-24T18:05");
    let at = named("24.12.2013", "%d.%m.%Y", &zone("+02:00").unwrap()).unwrap();
    assert_eq!(cut(at, Unit::Time, &TimeZone::UTC), "2013-12-23T22:00:00Z");
    assert!(named("24/12/2013", "%d.%m.%Y", &TimeZone::UTC).is_err());
    assert!(check_format("%Q %@").is_err());
    assert!(zone("Mars/Olympus").unwrap_err().contains("there is no time zone"));
}

fn begin_of(text: &str, unit: Unit, zone_name: &str) -> String {
    let zone = zone(zone_name).unwrap();
    begin(text.parse().unwrap(), unit, &zone).unwrap().to_string()
}

#[test]
fn a_unit_begins_at_a_moment_also_where_clocks_are_set() {
    for (text, unit, zone, begins) in [
        // In the autumn the hour from two to three is there twice, and the day has 25 hours.
        ("2026-10-25T00:30:00Z", Unit::Hour, "Europe/Berlin", "2026-10-25T00:00:00Z"),
        ("2026-10-25T01:30:00Z", Unit::Hour, "Europe/Berlin", "2026-10-25T01:00:00Z"),
        ("2026-10-25T01:39:59.5Z", Unit::Minute(15), "Europe/Berlin", "2026-10-25T01:30:00Z"),
        ("2026-10-25T01:30:59.5Z", Unit::Second, "Europe/Berlin", "2026-10-25T01:30:59Z"),
        ("2026-10-25T22:30:00Z", Unit::Day, "Europe/Berlin", "2026-10-24T22:00:00Z"),
        ("2026-10-25T22:30:00Z", Unit::Month, "Europe/Berlin", "2026-09-30T22:00:00Z"),
        ("2026-10-25T22:30:00Z", Unit::Year, "Europe/Berlin", "2025-12-31T23:00:00Z"),
        ("2026-03-29T01:30:00Z", Unit::Hour, "Europe/Berlin", "2026-03-29T01:00:00Z"),
        // A day without a midnight begins at one.
        ("2018-11-04T12:00:00Z", Unit::Day, "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
        // Clocks that are set by half an hour, within an hour: from 02:00 to 01:30, and to 02:30.
        ("2026-04-04T14:45:00Z", Unit::Hour, "Australia/Lord_Howe", "2026-04-04T14:00:00Z"),
        ("2026-04-04T15:15:00Z", Unit::Hour, "Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("2026-04-04T15:45:00Z", Unit::Hour, "Australia/Lord_Howe", "2026-04-04T15:30:00Z"),
        ("2026-10-03T15:45:00Z", Unit::Hour, "Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
        ("1969-12-31T23:59:59.5Z", Unit::Second, "UTC", "1969-12-31T23:59:59Z"),
        ("2026-11-22T05:45:00Z", Unit::Hour, "+05:30", "2026-11-22T05:30:00Z"),
    ] {
        assert_eq!(begin_of(text, unit, zone), begins, "{text} {unit:?} {zone}");
    }
}

#[test]
fn a_time_that_clocks_show_twice_or_never_is_none_where_that_matters() {
    for text in ["2026-10-25T02:30", "2026-10-25 02:30:00", "2026-03-29T02:30"] {
        assert_eq!(cut_in(text, Unit::Time, "Europe/Berlin"), "unclear", "{text}");
        assert_eq!(cut_in(text, Unit::Day, "Europe/Berlin"), text[..10], "of both it is the day");
        assert!(micros(text, &zone("Europe/Berlin").unwrap()).unwrap_err().contains("twice or never"));
    }
    assert_eq!(cut_in("2026-10-25T02:30+01:00", Unit::Time, "Europe/Berlin"), "2026-10-25T02:30:00+01:00");
    assert_eq!(cut_in("2026-10-25T02:30", Unit::Hour, "Europe/Berlin"), "2026-10-25T02");
    assert_eq!(cut_in("2018-11-04T00:00", Unit::Time, "America/Sao_Paulo"), "unclear");
    assert_eq!(cut_in("2018-11-04", Unit::Time, "America/Sao_Paulo"), "2018-11-04T01:00:00-02:00");
    let twice = named("25.10.2026 02:30", "%d.%m.%Y %H:%M", &zone("Europe/Berlin").unwrap());
    assert!(matches!(twice, Err(NoTime::Unclear(..))));
}

#[test]
fn a_time_of_a_key_is_kept_as_one_that_is_typed() {
    let berlin = zone("Europe/Berlin").unwrap();
    let last = 253_402_300_799_999_999;
    assert_eq!(micros("9999-12-31T23:59:59.999999Z", &TimeZone::UTC), Ok(last));
    assert_eq!(micros("9999-12-31T23:59:59.9999999Z", &TimeZone::UTC), Ok(last), "it is cut");
    assert_eq!(micros("9999-12-31T23:59:59.999999", &berlin), Ok(last - 3_600_000_000));
    assert_eq!(micros("2016-12-31T23:59:60Z", &berlin), micros("2016-12-31T23:59:59Z", &berlin));
    assert_eq!(micros("1969-12-31T23:59:59.9999999Z", &berlin), Ok(-1));
    assert!(micros("9999-12-32T23:59:59Z", &berlin).is_err());
    assert!(micros("１２,４５", &berlin).is_err());
}
