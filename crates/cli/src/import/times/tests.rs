use super::*;

fn cut_in(text: &str, unit: Unit, zone_name: &str) -> String {
    let zone = zone(zone_name).unwrap();
    parse(text, &zone).map_or("no time".to_owned(), |at| cut(at, unit, &zone))
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
    assert!(named("24/12/2013", "%d.%m.%Y", &TimeZone::UTC).is_none());
    assert!(check_format("%Q %@").is_err());
    assert!(zone("Mars/Olympus").unwrap_err().contains("there is no time zone"));
}
