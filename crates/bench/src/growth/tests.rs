use super::*;

#[test]
fn the_model_counts_merges_of_full_tiers() {
    let of = |flushes| {
        let model = model(flushes, 8);
        (model["writes_to_parts"].as_f64().unwrap_or(0.0), model["runs"].as_u64().unwrap_or(99))
    };
    assert_eq!(of(0), (0.0, 0));
    assert_eq!(of(7), (1.0, 7), "no tier is full");
    assert_eq!(of(8), (2.0, 1), "all were merged once");
    assert_eq!(of(12), (round(20.0 / 12.0, 3), 5));
    assert_eq!(of(64), (3.0, 1), "all were merged twice");
}
