use super::*;

#[test]
fn each_time_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
    for bucket in 0..BUCKETS - 1 {
        let bound_ns = bound_of(bucket).as_nanos() as u64;
        assert_eq!(bucket_of(bound_ns), bucket);
        assert_eq!(bucket_of(bound_ns + 1), bucket + 1);
    }
    assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
}

#[test]
fn counts_add_up_and_quantiles_are_bounds() {
    let histogram = Histogram::default();
    for us in 1..=1000 {
        histogram.note(Duration::from_micros(us));
    }
    histogram.note(Duration::from_secs(3600));
    let now = histogram.now();
    assert_eq!(now.count(), 1001);
    assert_eq!(now.sum(), Duration::from_micros(500_500) + Duration::from_secs(3600));
    assert_eq!(now.buckets().last().map(|(_, so_far)| so_far), Some(1000));
    assert_eq!(now.quantile(0.5), Some(Duration::from_nanos(1 << 19))); // 524 us
    assert_eq!(now.quantile(1.0), None);
    assert_eq!(Histogram::default().now().quantile(0.5), None);
}
