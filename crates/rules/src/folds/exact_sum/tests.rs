use super::*;
use proptest::prelude::*;

/// Any double, often of a size that meets others.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()),
        4 => (-1000i32..1000).prop_map(|n| f64::from(n) / 10.0),
        2 => (-1000i32..1000).prop_map(f64::from),
        2 => (any::<i64>(), -80i32..80).prop_map(|(m, e)| m as f64 * 2f64.powi(e)),
        1 => (0u64..4).prop_map(f64::from_bits),
        1 => prop_oneof![Just(f64::MAX), Just(-f64::MAX), Just(f64::MIN_POSITIVE), Just(0.0), Just(-0.0)],
    ]
}

fn sum_of(numbers: &[f64]) -> ExactSum {
    let mut sum = ExactSum::default();
    numbers.iter().for_each(|&number| sum.add(number));
    sum
}

/// Splits |x| = m·2^e into whole multiples of 2^-40, where the test keeps its numbers.
fn in_units(x: f64) -> i128 {
    (x * 2f64.powi(40)) as i128
}

proptest! {
    #[test]
    fn order_and_bracketing_do_not_matter(
        mut numbers in prop::collection::vec(number(), 0..12),
        cut in 0usize..12,
    ) {
        let all = sum_of(&numbers).to_bytes();
        let cut = cut.min(numbers.len());
        let mut halves = sum_of(&numbers[..cut]);
        halves.add_sum(&sum_of(&numbers[cut..]));
        prop_assert_eq!(&halves.to_bytes(), &all);
        numbers.reverse();
        prop_assert_eq!(&sum_of(&numbers).to_bytes(), &all);
        prop_assert_eq!(ExactSum::from_bytes(&all).unwrap().to_bytes(), all);
    }

    #[test]
    fn agrees_with_whole_numbers(numbers in prop::collection::vec((any::<i64>(), 0u32..40), 1..40)) {
        // Multiples of 2^-40 below 2^63: i128 holds their sums exactly, and rounds as IEEE 754
        // says.
        let numbers: Vec<f64> =
            numbers.iter().map(|&(m, shift)| (m >> 12) as f64 / f64::from(2u32.pow(shift.min(30)))).collect();
        let whole: i128 = numbers.iter().map(|&x| in_units(x)).sum();
        prop_assert_eq!(sum_of(&numbers).value(), whole as f64 / 2f64.powi(40));
    }

    #[test]
    fn what_is_added_and_taken_away_leaves_nothing(
        numbers in prop::collection::vec(number(), 0..20),
        rest in number(),
    ) {
        let mut sum = sum_of(&numbers);
        sum.add(rest);
        numbers.iter().for_each(|number| sum.add(-number));
        prop_assert_eq!(sum.value(), rest + 0.0);
        prop_assert_eq!(sum.to_bytes().len(), 8);
    }

    #[test]
    fn one_addition_rounds_as_the_machine_does(a in number(), b in number()) {
        let mut sum = ExactSum::of(a);
        sum.add(b);
        prop_assert_eq!(sum.value(), a + b);
    }

    #[test]
    fn squares_are_exact(x in number(), y in number()) {
        // x² - y² = (x - y)(x + y), and for whole numbers all of it is exact in i128.
        let (x, y) = ((x as i64 >> 11) as f64, (y as i64 >> 11) as f64);
        let mut sum = ExactSum::from_term(Term::square_of(x));
        let mut other = ExactSum::from_term(Term::square_of(y));
        let exact = (x as i128 - y as i128) * (x as i128 + y as i128);
        other.add_sum(&ExactSum::default());
        // Taking away: add the limbs of y² with the other sign.
        if let Term::Long { place, words, .. } = other.term() {
            sum.add_term(Term::Long { negative: true, place, words });
        } else {
            sum.add(-other.value());
        }
        prop_assert_eq!(sum.value(), exact as f64);
    }

    #[test]
    fn squares_of_any_size_round_as_the_machine_does(x in number()) {
        prop_assert_eq!(Term::square_of(x).rounded(), x * x);
        let sum = ExactSum::from_term(Term::square_of(x));
        prop_assert_eq!(sum.value(), x * x);
        prop_assert_eq!(ExactSum::from_bytes(&sum.to_bytes()).unwrap(), sum);
    }

    #[test]
    fn other_forms_of_a_total_are_refused(
        place in 0u16..272,
        sign: bool,
        words in prop::collection::vec(0u32..3, 1..6),
    ) {
        let mut bytes = (place | u16::from(sign) << 15).to_le_bytes().to_vec();
        bytes.push(words.len() as u8);
        words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        let Ok(term) = Term::from_bytes(&bytes) else {
            prop_assert!(usize::from(place) * 2 + words.len() * 4 > SPAN_BYTES);
            return Ok(());
        };
        let mut canonical = Vec::new();
        if let Some(plain) = add(term, Term::Plain(0.0), &mut canonical).unwrap() {
            canonical.extend_from_slice(&plain.to_le_bytes());
        }
        prop_assert_eq!(ExactSum::from_bytes(&bytes).is_ok(), bytes == canonical);
        prop_assert!(ExactSum::from_bytes(&canonical).is_ok());
    }
}

#[test]
fn totals_beyond_doubles_come_back() {
    let mut sum = sum_of(&[f64::MAX, f64::MAX, f64::MAX]);
    assert_eq!(sum.value(), f64::INFINITY);
    sum.add(-f64::MAX);
    sum.add(-f64::MAX);
    assert_eq!(sum.value(), f64::MAX);
    assert_eq!(sum.to_bytes(), f64::MAX.to_le_bytes());
}

#[test]
fn infinities_and_nan_absorb() {
    let value = |numbers: &[f64]| sum_of(numbers).value();
    assert_eq!(value(&[1.0, f64::INFINITY, -1e300]), f64::INFINITY);
    assert_eq!(value(&[f64::NEG_INFINITY, f64::MAX, f64::MAX]), f64::NEG_INFINITY);
    assert!(value(&[f64::INFINITY, f64::NEG_INFINITY, 1.0]).is_nan());
    assert_eq!(sum_of(&[1.0, f64::NAN]).to_bytes(), NAN.to_le_bytes());
}

#[test]
fn ties_round_to_even_wherever_the_half_is() {
    let one_and = |more: &[f64]| {
        let mut sum = sum_of(more);
        sum.add(1.0);
        sum.value()
    };
    let half = f64::EPSILON / 2.0;
    assert_eq!(one_and(&[half]), 1.0);
    assert_eq!(one_and(&[half, 1e-300]), 1.0 + f64::EPSILON);
    assert_eq!(one_and(&[half, -1e-300]), 1.0);
    assert_eq!(one_and(&[f64::EPSILON, half]), 1.0 + 2.0 * f64::EPSILON);
}

/// Not a test of correctness: prints the least cost of a fold over some rounds.
/// `cargo test --release -p folddb-rules -- --ignored --nocapture cost`
#[test]
#[ignore = "prints costs"]
fn cost() {
    for (name, step) in [("plain", 1.5f64), ("long", 0.1), ("mixed sizes", 1e-30)] {
        let operand = step.to_le_bytes();
        crate::folds::tests::print_cost(&crate::folds::sum_f64::SumF64, name, &operand, &operand);
    }
    crate::folds::tests::print_cost(
        &crate::folds::sum_f64::SumF64,
        "far apart",
        &1e30f64.to_le_bytes(),
        &1e-30f64.to_le_bytes(),
    );
}
