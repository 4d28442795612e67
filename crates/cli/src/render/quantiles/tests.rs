use super::*;

#[test]
fn a_quantile_is_named_by_its_share_of_a_hundred() {
    for (q, named) in [(0.999, "p99.9"), (0.5, "p50"), (0.0, "p0"), (1.0, "p100"), (0.12345, "p12.345")] {
        assert_eq!(name(q), named);
    }
    for (q, named) in [(0.999999999, "p99.9999999"), (1e-9, "p0.0000001"), (0.05, "p5"), (0.101, "p10.1")] {
        assert_eq!(name(q), named);
    }
}
