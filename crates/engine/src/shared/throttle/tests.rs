use super::*;

fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn bucket() -> Bucket {
    Bucket { bytes_per_s: Some(1000), ..Bucket::default() }
}

#[test]
fn without_a_limit_nobody_waits() {
    let throttle = Throttle::default();
    throttle.take(1 << 40);
    assert_eq!((throttle.due(), throttle.bytes_per_s()), (s(0.0), None));
    throttle.set(Some(1000));
    throttle.take(1 << 40);
    assert!(throttle.due() > s(1e6));
    throttle.set(None);
    assert_eq!(throttle.due(), s(0.0));
}

#[test]
fn over_any_time_no_more_is_written_than_the_rate_gives_and_a_second_more() {
    let (mut bucket, mut now, mut written) = (bucket(), 0.0, 0);
    while now < 60.0 {
        match bucket.due(s(now)) {
            Duration::ZERO => {
                bucket.take(300, s(now));
                written += 300;
            }
            due => now += due.as_secs_f64(),
        }
    }
    assert!((59_000..62_000).contains(&written), "{written}");
}

#[test]
fn what_flushes_take_is_waited_for_by_others() {
    let mut bucket = bucket();
    bucket.take(5000, s(10.0));
    assert_eq!(bucket.due(s(10.0)), s(4.0), "a second's worth was there");
    assert_eq!(bucket.due(s(13.0)), s(1.0));
    assert_eq!(bucket.due(s(14.0)), s(0.0));
}
