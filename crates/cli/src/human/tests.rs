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
    assert_eq!(suggestion("flights", &tables), "there are delays, names, routes");
    assert_eq!(suggestion("flights", &[]), "there are none");
}

#[test]
fn moments_are_dates_of_the_gregorian_calendar() {
    assert_eq!(utc(0), "1970-01-01 00:00:00");
    assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
    assert_eq!(utc(4_107_542_399), "2100-02-28 23:59:59");
    assert_eq!(utc(4_107_542_400), "2100-03-01 00:00:00");
    assert_eq!(utc(1_763_706_328), "2025-11-21 06:25:28");
}
