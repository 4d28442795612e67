use super::*;
use proptest::prelude::*;

fn of_all(alpha: f64, numbers: &[f64]) -> Sketch {
    let mut sketch = Sketch::by(Mapping::new(alpha));
    numbers.iter().for_each(|&number| sketch.add(number));
    sketch
}

/// Finite doubles of all sizes.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1000i32..1000).prop_map(f64::from),
        any::<f64>().prop_filter("finite and not tiny", |x| x.is_finite() && (*x == 0.0 || x.abs() > 1e-300)),
    ]
}

/// The number of the nearest rank, by the definition of `percentile_disc`: the first at which the
/// share of the numbers up to it is not less than `q`.
fn exact_quantile(sorted: &[f64], q: f64) -> f64 {
    let share = |index: usize| (index + 1) as f64 / sorted.len() as f64;
    let index = (0..sorted.len()).find(|&index| share(index) >= q);
    index.map_or(sorted[sorted.len() - 1], |index| sorted[index])
}

/// With 1 to 1,000 numbers, each far from the next, at every usual share: a rank next to the right
/// one would be noticed.
#[test]
fn quantiles_are_those_of_the_nearest_rank() {
    let shares: Vec<f64> =
        (0..=100).map(|percent| f64::from(percent) / 100.0).chain([0.001, 0.999]).collect();
    for count in 1..=1000usize {
        let numbers: Vec<f64> = (0..count as u32).map(|number| 1.05f64.powi(number as i32)).collect();
        let sketch = of_all(0.01, &numbers);
        for &q in &shares {
            let (found, exact) = (sketch.quantile(q).unwrap(), exact_quantile(&numbers, q));
            let is_near = (found - exact).abs() <= 0.01 * exact * (1.0 + 1e-9);
            assert!(is_near, "{q} of {count}: {found} and not {exact}");
        }
        assert_eq!((sketch.quantile(0.0), sketch.quantile(1.0)), (Some(numbers[0]), numbers.last().copied()));
    }
    let two = of_all(0.01, &[1.0, 1000.0]);
    assert_eq!([0.5, 0.9, 0.99].map(|q| two.quantile(q).unwrap()), [1.0, 1000.0, 1000.0]);
}

proptest! {
    #[test]
    fn every_quantile_is_within_alpha(
        mut numbers in prop::collection::vec(number(), 1..60),
        q in 0.0..1.0f64,
        alpha in prop_oneof![Just(0.01), Just(0.001), Just(0.2)],
    ) {
        let sketch = of_all(alpha, &numbers);
        numbers.sort_by(f64::total_cmp);
        let exact = exact_quantile(&numbers, q);
        let found = sketch.quantile(q).unwrap();
        prop_assert!((found - exact).abs() <= alpha * exact.abs() * (1.0 + 1e-9), "{found} for {exact}");
        prop_assert_eq!(sketch.count(), numbers.len() as u64);
        prop_assert_eq!((sketch.min(), sketch.max()), (Some(numbers[0]), numbers.last().copied()));
    }

    #[test]
    fn the_bytes_follow_from_the_numbers(
        mut numbers in prop::collection::vec(number(), 0..40),
        cut in 0usize..40,
    ) {
        let all = of_all(0.01, &numbers);
        let cut = cut.min(numbers.len());
        let mut halves = of_all(0.01, &numbers[..cut]);
        halves.merge(&of_all(0.01, &numbers[cut..])).unwrap();
        prop_assert_eq!(&halves, &all);
        numbers.reverse();
        prop_assert_eq!(&of_all(0.01, &numbers), &all);
        prop_assert_eq!(Sketch::from_bytes(Mapping::new(0.01), all.as_bytes()).unwrap(), all);
    }

    #[test]
    fn buckets_rise_with_numbers_and_hold_them(a in any::<f64>(), b in any::<f64>(), alpha in 0.0001..0.5) {
        let mapping = Mapping::new(alpha);
        let (a, b) = (a.abs(), b.abs());
        prop_assume!(a > 1e-300 && b > 1e-300 && a.is_finite() && b.is_finite());
        if a <= b {
            prop_assert!(mapping.bucket(a) <= mapping.bucket(b));
        }
        let bucket = mapping.bucket(a);
        let (low, high) = (mapping.boundary(bucket), mapping.boundary(bucket + 1));
        prop_assert!(low <= a * (1.0 + 1e-12) && a <= high * (1.0 + 1e-12));
        prop_assert!((mapping.middle(bucket) / a - 1.0).abs() <= alpha * (1.0 + 1e-9));
    }
}

#[test]
fn the_series_is_the_logarithm() {
    for alpha in [0.0001, 0.01, 0.1, 0.5] {
        let ln_gamma = ((1.0 + alpha) / (1.0f64 - alpha)).ln();
        assert!((Mapping::new(alpha).buckets_per_unit * ln_gamma - 0.7).abs() < 1e-12);
    }
}

#[test]
fn extremes_have_a_place() {
    let sketch = of_all(0.01, &[f64::INFINITY, f64::NEG_INFINITY, 5e-324, -0.0, 0.0]);
    assert_eq!(
        (sketch.count(), sketch.min(), sketch.max()),
        (5, Some(f64::NEG_INFINITY), Some(f64::INFINITY))
    );
    assert_eq!(sketch.quantile(0.5), Some(0.0));
    assert_eq!(<Quantiles>::new().quantile(0.5), None);
    assert_eq!(<Quantiles>::of(f64::NAN).count(), 0);
}

#[test]
fn the_error_of_a_type_is_that_of_its_spec() {
    let spec_of = |mapping| QuantilesFold { mapping }.spec();
    assert_eq!(spec_of(<Quantiles>::MAPPING), "quantiles");
    for (mapping, spec) in [
        (Quantiles::<1>::MAPPING, "quantiles:0.0001"),
        (Quantiles::<50>::MAPPING, "quantiles:0.005"),
        (Quantiles::<5000>::MAPPING, "quantiles:0.5"),
    ] {
        assert_eq!(spec_of(mapping), spec);
        assert_eq!(super::super::parse(spec).unwrap().spec(), spec);
    }
}

#[test]
fn a_quantile_by_spec_is_that_of_the_sketch_and_of_no_other_fold() {
    let numbers: Vec<f64> = (1..=500).map(f64::from).collect();
    let sketch = of_all(0.02, &numbers);
    for q in [0.0, 0.1, 0.5, 0.999, 1.0] {
        assert_eq!(of_spec("quantiles:0.02", sketch.as_bytes(), q).unwrap(), sketch.quantile(q));
    }
    let usual = of_all(ALPHA_DEFAULT, &numbers);
    assert_eq!(of_spec("quantiles", usual.as_bytes(), 0.25).unwrap(), usual.quantile(0.25));
    assert!(of_spec("stats:f64", usual.as_bytes(), 0.5).is_err());
    assert!(of_spec("quantiles", b"no sketch at all", 0.5).is_err());
}
