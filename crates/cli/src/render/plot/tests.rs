use super::*;

#[test]
fn a_bar_is_as_long_as_its_share() {
    assert_eq!(bar(0.0, 4), "");
    assert_eq!(bar(1.0, 4), "████");
    assert_eq!(bar(0.5, 4), "██");
    assert_eq!(bar(0.53125, 4), "██▏");
    assert_eq!(bar(0.0001, 4), "▏");
    assert_eq!(bar(7.0, 4), "████");
    assert_eq!(bar(f64::NAN, 4), "");
}

#[test]
fn bars_stand_under_each_other() {
    let row = |label: &str, value| (label.to_owned(), value);
    let rows = [row("EWR", Some(4.0)), row("a long label", Some(1.0)), row("x", None), row("y", Some(-2.0))];
    let full = "█".repeat(22);
    let shown = [format!("EWR           4  {full}"), "a long label  1  █████▌".to_owned(), "x".to_owned()];
    assert_eq!(bars(&rows[..3], 39), shown);
    assert!(bars(&[], 24).is_empty());
}

#[test]
fn what_is_below_zero_is_to_the_left_of_an_axis() {
    let row = |label: &str, value| (label.to_owned(), Some(value));
    let rows = [row("a", 6.0), row("b", -2.0), row("c", 0.0), row("d", -0.001), row("e", 3.0)];
    let shown =
        ["a       6    │██████", "b      -2  ██│", "c       0    │", "d  -0.001   ▐│", "e       3    │███"];
    assert_eq!(bars(&rows, 20), shown);
    assert_eq!(bars(&rows[1..2], 15), ["b  -2  ██████│"]);
    assert_eq!(bars(&[row("x", f64::MAX), row("y", f64::MIN)], 41)[1].chars().last(), Some('│'));
}

#[test]
fn what_is_infinite_has_an_arrow_and_no_share_in_the_scale() {
    let row = |label: &str, value| (label.to_owned(), Some(value));
    let rows = [row("a", 8.0), row("b", f64::INFINITY), row("c", f64::NAN), row("d", 4.0)];
    assert_eq!(bars(&rows, 16), ["a    8  ████████", "b  inf  ┄┄┄┄┄┄┄▶", "c  NaN", "d    4  ████"]);
    let rows = [row("a", f64::NEG_INFINITY), row("b", f64::INFINITY)];
    assert_eq!(bars(&rows, 18), ["a  -inf  ◀┄┄┄│", "b   inf      │┄┄┄▶"]);
    let values = [Some(1.0), Some(f64::INFINITY), Some(f64::NEG_INFINITY), Some(f64::NAN), Some(7.0)];
    assert_eq!(sparkline(&values, 10), "▂↑↓ █");
    assert_eq!(span(&values), "1 to 7");
    assert_eq!(span(&[Some(f64::INFINITY)]), "inf to inf");
    assert_eq!(sparkline(&[Some(f64::MAX), Some(f64::MAX), Some(f64::MIN), Some(f64::MIN)], 2), "█▁");
}

#[test]
fn a_sparkline_has_a_sign_for_each_value_or_for_a_few() {
    let values = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    assert_eq!(sparkline(&values(&[0.0, 1.0, 2.0, 7.0]), 10), "▁▂▃█");
    assert_eq!(sparkline(&values(&[1.0, 1.0, 7.0, 7.0]), 2), "▂█");
    assert_eq!(sparkline(&[Some(1.0), None, Some(1.0)], 10), "█ █");
    assert_eq!(sparkline(&values(&[-7.0, 0.0]), 10), "▁█");
    assert_eq!(sparkline(&values(&[0.0, 0.0]), 10), "▁▁");
    assert_eq!(sparkline(&[], 10), "");
    assert_eq!(span(&[Some(1.5), None, Some(-2.0)]), "-2 to 1.5");
}

#[test]
fn a_histogram_counts_every_number_once() {
    let numbers: Vec<f64> = (1..=1000).map(f64::from).collect();
    let rank = |q: f64| ((q * 1000.0).ceil() as usize).clamp(1, 1000) - 1;
    let lines = histogram(1000, |q| numbers[rank(q)], 60);
    assert_eq!(lines.len(), BINS);
    let counts: f64 =
        lines.iter().map(|line| line.split_whitespace().nth(3).unwrap().parse::<f64>().unwrap()).sum();
    assert_eq!(counts, 1000.0);
    assert!(lines[0].starts_with("1 to 1.413"), "{}", lines[0]); // bins that grow
    assert_eq!(histogram(3, |_| 5.0, 40), ["5 to 5  3  █████████████████████████████"]);
}

#[test]
fn a_spread_shows_the_mean_and_what_is_around_it() {
    let [line, words] = spread((0.0, 5.0, 10.0), 2.0, 23);
    assert_eq!(line, "├─────████●████─────┤");
    assert_eq!(words, "0 to 10, mean 5, deviation 2");
}

#[test]
fn a_histogram_has_bins_of_their_own_for_what_is_infinite() {
    fn counted(numbers: &[f64]) -> Vec<String> {
        let rank = |q: f64| ((q * numbers.len() as f64).ceil() as usize).clamp(1, numbers.len()) - 1;
        let lines = histogram(numbers.len() as u64, |q| numbers[rank(q)], 40);
        let bare =
            |line: &String| line.replace(['█', '▌'], "").split_whitespace().collect::<Vec<_>>().join(" ");
        lines.iter().map(bare).collect()
    }
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    assert_eq!(counted(&[low, high]), ["-inf 1", "inf 1"]);
    assert_eq!(counted(&[high]), ["inf 1"]);
    let shown = counted(&[low, low, 1.0, 3.0, 3.0, high]);
    assert_eq!(shown, ["-inf 2", "1 to 1.667 1", "1.667 to 2.333 0", "2.333 to 3 2", "inf 1"]);
    // The range of all doubles is more than a double can be.
    assert_eq!(counted(&[f64::MIN, f64::MAX]), ["-1.797693e308 to 0 1", "0 to 1.797693e308 1"]);
}

#[test]
fn a_spread_may_be_as_wide_as_numbers_go() {
    let [line, words] = spread((-1e308, 0.0, 1e308), f64::INFINITY, 23);
    assert_eq!(line, "██████████●██████████");
    assert_eq!(words, "-1e308 to 1e308, mean 0, deviation inf");
    let [line, _] = spread((3.0, f64::INFINITY, f64::INFINITY), f64::NAN, 22);
    assert_eq!(line, "├──────────────────●");
}
