use super::*;

#[test]
fn figures_are_short_and_not_less_than_was_stored() {
    for (value, shown) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (7.14159, "7.14159"),
        (0.1 + 0.2, "0.3"),
        (11.548387096774194, "11.548"),
        (-1.23456, "-1.23456"),
        (1234567.891234567, "1234567.891"),
        (0.483870967741935, "0.4839"),
        (0.00123456789, "0.001235"),
        (1e-9, "1e-9"),
        (1.23456789e-12, "1.234568e-12"),
        (9007199254740992.0, "9007199254740992"),
        (1e300, "1e300"),
        (f64::MAX, "1.797693e308"),
        (f64::MIN_POSITIVE, "2.225074e-308"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(rounded(value), shown);
    }
}

#[test]
fn all_digits_are_those_that_lead_back() {
    for value in [0.1 + 0.2, 11.548387096774194, 1e21, 1e20, 1e-7, 1e-8, f64::MAX, f64::MIN_POSITIVE] {
        let text = in_full(value);
        assert_eq!(text.parse::<f64>(), Ok(value), "{text}");
        assert!(text.len() <= 24, "{text}");
    }
}
