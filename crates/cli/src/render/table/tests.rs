use super::*;

fn text(rows: &[Vec<Datum>]) -> String {
    let mut out = Vec::new();
    write(&mut out, &["key".to_owned(), "mean".to_owned()], rows).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn numbers_stand_to_the_right_under_a_rule() {
    let rows = [
        vec![Datum::Text("UA".to_owned()), Datum::Float(12.5)],
        vec![Datum::Text("hawaiian".to_owned()), Datum::Float(-1.23456)],
        vec![Datum::Text("x".to_owned()), Datum::Null],
    ];
    assert_eq!(text(&rows), "key         mean\n─────────────────\nUA          12.5\nhawaiian  -1.235\nx\n");
    assert_eq!(text(&[]), "key  mean\n──────────\n");
}

#[test]
fn cells_are_one_short_line() {
    assert_eq!(cell(&Datum::Text("a\nb".to_owned())), "a\\nb");
    assert_eq!(cell(&Datum::Text("é".repeat(200))).chars().count(), CELL_CHARS_MAX + 1);
    let floats = [0.0, -0.0, 1.0, 0.1 + 0.2, 1e-9, 1e300, f64::NAN, f64::NEG_INFINITY].map(Datum::Float);
    let shown: Vec<String> = floats.iter().map(cell).collect();
    assert_eq!(shown[..5], ["0", "-0", "1", "0.3", "0.000000001"]);
    assert_eq!(shown[6..], ["NaN", "-inf"]);
}
