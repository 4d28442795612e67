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
        vec![Datum::Text("hawaiian".to_owned()), Datum::Float(-1.23456789)],
        vec![Datum::Text("x".to_owned()), Datum::Null],
    ];
    assert_eq!(text(&rows), "key         mean\n─────────────────\nUA          12.5\nhawaiian  -1.235\nx\n");
    assert_eq!(text(&[]), "key  mean\n──────────\n");
}
