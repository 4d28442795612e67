use super::*;

#[test]
fn counts_have_commas() {
    assert_eq!(
        [0, 12, 123, 1234, 336_776, 1_000_000].map(count),
        ["0", "12", "123", "1,234", "336,776", "1,000,000"]
    );
    assert_eq!([plural(1, "row"), plural(2, "row")], ["1 row", "2 rows"]);
}

#[test]
fn sizes_are_short_and_read_back() {
    assert_eq!(
        [0, 1023, 1024, 1536, 64 << 20].map(bytes),
        ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "64.0 MiB"]
    );
    assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
    for (text, size) in
        [("65536", 65536), ("64MiB", 64 << 20), ("64m", 64 << 20), ("1.5 GiB", 3 << 29), ("2kb", 2048)]
    {
        assert_eq!(parse_bytes(text), Ok(size), "{text}");
    }
    for text in ["", "many", "-1", "1.2.3", "5 apples", "99999999999999999999g"] {
        assert!(parse_bytes(text).is_err(), "{text}");
    }
}

#[test]
fn near_misses_are_found() {
    let tables = ["delays", "names", "routes"];
    assert_eq!(nearest("delay", tables), Some("delays"));
    assert_eq!(nearest("Names", tables), Some("names"));
    assert_eq!(nearest("route", tables), Some("routes"));
    assert_eq!(nearest("x", ["y"]), None, "one letter is near to every other");
    assert_eq!(nearest("K", ["k"]), Some("k"));
    assert_eq!(suggestion("flights", &tables), "there are `delays`, `names`, `routes`");
    assert_eq!(suggestion("flights", &[]), "there are none");
}

#[test]
fn a_moment_may_have_an_offset() {
    for text in ["2025-11-21T07:25:28.5+01:00", "2025-11-21 01:25:28.5-05:00", "2025-11-21T06:25:28.5Z"] {
        assert_eq!(parse_moment(text), Ok(AsOf::Time(moment(1_763_706_328_500))), "{text}");
    }
    for text in ["2025-11-21T07:25:28+1", "2025-11-21T07:25:28+24:00", "1970-01-01T00:00:00+01:00"] {
        assert!(parse_moment(text).is_err(), "{text}");
    }
}

#[test]
fn moments_are_dates_of_the_gregorian_calendar() {
    assert_eq!(time(moment(0)), "1970-01-01 00:00:00Z");
    assert_eq!(time(moment(951_782_400_000)), "2000-02-29 00:00:00Z");
    assert_eq!(time(moment(4_107_542_399_000)), "2100-02-28 23:59:59Z");
    assert_eq!(time(moment(4_107_542_400_000)), "2100-03-01 00:00:00Z");
    assert_eq!(time(moment(1_763_706_328_000)), "2025-11-21 06:25:28Z");
}

#[test]
fn moments_may_have_fractions_of_seconds() {
    for (text, ms) in [
        ("2025-11-21T06:25:28Z", 1_763_706_328_999),
        ("2025-11-21 06:25:28", 1_763_706_328_999),
        ("2025-11-21T06:25:28.25Z", 1_763_706_328_250),
        ("2025-11-21T06:25:28.007", 1_763_706_328_007),
        ("2025-11-21T06:25:28.123456789Z", 1_763_706_328_123),
        ("1970-01-01", 999),
    ] {
        assert_eq!(parse_moment(text), Ok(AsOf::Time(moment(ms))), "{text}");
    }
    for text in
        ["2025-11-21T06:25:28.Z", "2025-11-21T06:25:28.1e2", "2025-11-21T06:25:28.1234567890", "2025-11-21.5"]
    {
        assert!(parse_moment(text).is_err(), "{text}");
    }
    assert_eq!(rfc3339(moment(1_763_706_328_007)), "2025-11-21T06:25:28.007Z");
    assert_eq!(rfc3339_seconds(moment(1_763_706_328_007)), "2025-11-21T06:25:28Z");
    assert_eq!(parse_moment(&rfc3339(moment(1_763_706_328_007))), Ok(AsOf::Time(moment(1_763_706_328_007))));
}

#[test]
fn what_is_still_to_come_is_refused_and_this_second_is_not() {
    let now_ms = 1_763_706_328_007;
    let is_over = |ms| check_over(Some(AsOf::Time(moment(ms))), moment(now_ms)).is_ok();
    assert!(is_over(0) && is_over(now_ms) && is_over(1_763_706_328_999));
    assert!(!is_over(1_763_706_329_999) && !is_over(u64::MAX));
    assert!(
        check_over(None, moment(now_ms)).is_ok()
            && check_over(Some(AsOf::Seq(folddb::Seq::MAX)), moment(now_ms)).is_ok()
    );
}

#[test]
fn every_day_up_to_the_last_year_of_four_digits_is_a_moment() {
    let day_ms = 86_400_000;
    for (date, days) in
        [("1970-01-01", 0), ("2000-02-29", 11_016), ("9999-01-01", 2_932_532), ("9999-12-31", 2_932_896)]
    {
        assert_eq!(parse_moment(date), Ok(AsOf::Time(moment(days * day_ms + 999))), "{date}");
    }
    for date in ["2001-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-01-00"] {
        assert!(parse_moment(date).is_err(), "{date}");
    }
}
