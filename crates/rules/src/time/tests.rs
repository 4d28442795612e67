use super::*;

#[test]
fn rules_read_as_they_are_written() {
    for text in ["latest", "versions:1", "versions:12", "window:90s", "window:1d", "window:1500ms", "forever"]
    {
        assert_eq!(text.parse::<Keep>().unwrap().to_string(), text);
    }
    for text in ["never", "by-write", "50ms", "15m", "2w"] {
        assert_eq!(text.parse::<Expire>().unwrap().to_string(), text);
    }
    assert_eq!("window:60s".parse::<Keep>().unwrap().to_string(), "window:1m");
}

#[test]
fn what_is_no_rule_is_refused() {
    for text in ["", "versions:0", "versions:", "versions:x", "window:1ms", "window:0s", "window", "Forever"]
    {
        assert!(text.parse::<Keep>().is_err(), "{text:?}");
    }
    for text in ["", "s", "5", "0s", "5 s", "-5s", "5y", "99999999999999999999s", "999999w", "by write"] {
        assert!(text.parse::<Expire>().is_err(), "{text:?}");
    }
}

#[test]
fn moments_are_those_of_the_system_to_the_millisecond() {
    for ms in [0, 1, 999, 1_763_706_328_007, TIME_MS_MAX] {
        assert_eq!(unix_ms(moment(ms)), ms);
        assert_eq!(unix_ms(moment(ms) + Duration::from_nanos(999_999)), ms);
    }
    assert_eq!(unix_ms(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), 0);
    assert!(unix_ms(moment(u64::MAX)) >= TIME_MS_MAX);
}
