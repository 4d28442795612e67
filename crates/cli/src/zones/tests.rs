use super::*;

const AT_MS: u64 = 1_763_706_328_007; // 2025-11-21T06:25:28.007Z

/// The zone of the process is left alone: other tests show times, too.
#[test]
fn times_are_shown_in_a_zone() {
    let at = time::moment(AT_MS);
    assert_eq!(for_people(at), "2025-11-21 06:25:28Z");
    assert_eq!(rfc3339(at), "2025-11-21T06:25:28.007Z");
    assert_eq!(rfc3339_seconds(at), "2025-11-21T06:25:28Z");
    let berlin = "Europe/Berlin".parse::<Zone>().unwrap().zone;
    let shown = |form| in_zone(at, form, &berlin).unwrap();
    assert_eq!(shown(PEOPLE), "2025-11-21 07:25:28+01:00");
    assert_eq!(shown(PROGRAMS), "2025-11-21T07:25:28.007+01:00");
    assert_eq!(shown(SECONDS), "2025-11-21T07:25:28+01:00");
}

#[test]
fn a_shown_time_is_the_same_moment_in_each_zone() {
    let york = zone("America/New_York").unwrap();
    assert_eq!(iso_in(&york, "2025-07-01T03:00:00Z").as_deref(), Some("2025-06-30T23:00:00-04:00"));
    assert_eq!(iso_in(&york, "2025-07-01T03:00:00.25Z").as_deref(), Some("2025-06-30T23:00:00.25-04:00"));
    let half = zone("+05:30").unwrap();
    let before_1970 = iso_in(&half, "1969-12-31T23:59:59.999999Z");
    assert_eq!(before_1970.as_deref(), Some("1970-01-01T05:29:59.999999+05:30"));
    assert_eq!(iso_in(&half, "noon"), None);
    assert!(zone("-23:59").is_ok());
    for long in ["+24:00", "-25:00"] {
        assert!(zone(long).unwrap_err().contains("there is no time zone"), "{long}");
    }
    assert!(zone("Mars/Olympus").unwrap_err().contains("there is no time zone"));
}

#[test]
fn the_time_of_a_clock_is_a_moment() {
    let berlin = zone("Europe/Berlin").unwrap();
    let micros = |text: &str| text.parse::<Timestamp>().unwrap().as_microsecond();
    assert_eq!(utc_of_clock(micros("2025-11-21T07:25:28.007Z"), &berlin), Ok(AT_MS as i64 * 1000));
    // The hour that is left out on the last Sunday of March.
    assert_eq!(utc_of_clock(micros("2025-03-30T02:30:00Z"), &berlin), Err(micros("2025-03-30T01:30:00Z")));
    // The hour that is there twice on the last Sunday of October.
    assert_eq!(utc_of_clock(micros("2025-10-26T02:30:00Z"), &berlin), Err(micros("2025-10-26T00:30:00Z")));
    // Beyond the last `Timestamp`.
    let never = 253_402_300_799_999_999;
    assert_eq!(utc_of_clock(never, &berlin), Ok(never - 3_600_000_000));
    assert_eq!(utc_of(1_000_000), Ok(1_000_000), "UTC, if no zone is asked for");
}
