use super::*;
use proptest::prelude::*;

fn of_all(numbers: &[f64]) -> Stats {
    let mut stats = Stats::default();
    numbers.iter().for_each(|&number| stats.add(number));
    stats
}

proptest! {
    #[test]
    fn agrees_with_whole_numbers(numbers in prop::collection::vec(-1_000_000i64..1_000_000, 1..50)) {
        let stats = of_all(&numbers.iter().map(|&n| n as f64).collect::<Vec<_>>());
        let n = numbers.len() as i128;
        let sum: i128 = numbers.iter().map(|&n| i128::from(n)).sum();
        let squares: i128 = numbers.iter().map(|&n| i128::from(n) * i128::from(n)).sum();
        prop_assert_eq!(stats.count(), n as u64);
        prop_assert_eq!(stats.sum(), sum as f64);
        prop_assert_eq!(stats.mean(), sum as f64 / n as f64);
        prop_assert_eq!(stats.min(), numbers.iter().min().map(|&n| n as f64));
        prop_assert_eq!(stats.max(), numbers.iter().max().map(|&n| n as f64));
        let variance = (n * squares - sum * sum) as f64 / (n * n) as f64;
        prop_assert!((stats.variance() - variance).abs() <= 1e-15 * variance);
    }

    #[test]
    fn a_large_offset_does_not_cancel(numbers in prop::collection::vec(0u32..1000, 2..20)) {
        let near: Vec<f64> = numbers.iter().map(|&n| f64::from(n)).collect();
        let far: Vec<f64> = near.iter().map(|x| x + 1e12).collect();
        let (near, far) = (of_all(&near).variance(), of_all(&far).variance());
        prop_assert!((near - far).abs() <= 1e-14 * near);
    }

    #[test]
    fn the_variance_is_the_same_in_few_bits_and_in_many(
        numbers in prop::collection::vec((-1_000_000i64..1_000_000, -40i32..40), 1..20),
        same_size in any::<bool>(),
    ) {
        let size = |exponent: i32| if same_size { -2 } else { exponent };
        let of = |&(number, exponent): &(i64, i32)| number as f64 * 2f64.powi(size(exponent));
        let stats = of_all(&numbers.iter().map(of).collect::<Vec<_>>());
        let short = short_variance(stats.count, stats.sum.term(), stats.squares.term());
        prop_assert!(short.is_some() || !same_size);
        prop_assert_eq!(stats.variance().to_bits(), stats.long_variance().to_bits());
    }

    #[test]
    fn bytes_come_back(numbers in prop::collection::vec(any::<f64>(), 0..6)) {
        let stats = of_all(&numbers);
        let bytes = stats.to_bytes();
        prop_assert_eq!(Stats::from_bytes(&bytes).unwrap().to_bytes(), bytes);
    }

    #[test]
    fn folding_bytes_is_merging_values(
        a in prop::collection::vec(any::<f64>(), 0..4),
        b in prop::collection::vec(any::<f64>(), 0..4),
    ) {
        let (mut a, b) = (of_all(&a), of_all(&b));
        let mut out = Vec::new();
        let folded = match StatsF64.fold(b"", &a.to_bytes(), &b.to_bytes(), &mut out).unwrap() {
            Outcome::KeepEarlier => a.to_bytes(),
            Outcome::KeepLater => b.to_bytes(),
            _ => out,
        };
        a.merge(&b);
        prop_assert_eq!(folded, a.to_bytes());
    }
}

#[test]
fn common_numbers_are_short() {
    assert_eq!(Stats::of(12.5).to_bytes(), [0xf2, 0x40, 0x29]);
    assert_eq!(Stats::of(0.0).to_bytes(), [0xf0]);
    assert!(Stats::default().to_bytes().is_empty());
    assert!(of_all(&[1.0, 2.0, 3.0]).to_bytes().len() <= 12);
}

#[test]
fn sums_beyond_doubles_have_a_mean() {
    let stats = of_all(&[f64::MAX, f64::MAX, f64::MAX / 2.0]);
    assert_eq!(stats.sum(), f64::INFINITY);
    assert!((stats.mean() / f64::MAX - 2.5 / 3.0).abs() < 1e-15);
    assert_eq!(stats.variance(), f64::INFINITY);
    let tiny = of_all(&[1e-200, 3e-200]);
    assert_eq!((tiny.mean(), tiny.variance()), (2e-200, 0.0));
    let small = of_all(&[1e-150, 3e-150]);
    assert!((small.variance() / 1e-300 - 1.0).abs() < 1e-15);
}

#[test]
fn nan_is_counted_but_no_extreme() {
    let stats = of_all(&[1.0, f64::NAN, 3.0]);
    assert_eq!((stats.count(), stats.min(), stats.max()), (3, Some(1.0), Some(3.0)));
    assert!(stats.mean().is_nan() && stats.variance().is_nan());
    assert!(of_all(&[f64::INFINITY, 1.0]).variance().is_nan());
    assert!(Stats::default().mean().is_nan());
}
