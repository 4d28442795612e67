use super::*;

#[test]
fn a_thread_is_never_early() {
    let mut pace = Pace::of(Some(10_000));
    for done in 1..=50u64 {
        pace.done(2);
        assert!(pace.started.elapsed() >= Duration::from_micros(200 * done));
    }
}

#[test]
fn without_a_rate_nothing_is_counted() {
    let mut pace = Pace::of(None);
    pace.done(u64::MAX);
    pace.done(1);
    assert_eq!(pace.done, 0);
}
