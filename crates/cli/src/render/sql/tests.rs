use super::*;

#[test]
fn every_value_is_a_literal_that_says_all_of_it() {
    let text = |text: &str| Datum::Text(text.to_owned());
    for (datum, said) in [
        (Datum::Null, "null"),
        (Datum::Bool(true), "true"),
        (Datum::Int(i128::MAX), "170141183460469231731687303715884105727"),
        (Datum::Float(0.1 + 0.2), "0.30000000000000004"),
        (Datum::Float(f64::MAX), "1.7976931348623157e308"),
        (Datum::Float(f64::NEG_INFINITY), "'-Infinity'"),
        (Datum::Float(f64::NAN), "'NaN'"),
        (text("it's; \"so\""), "'it''s; \"so\"'"),
        (text("a\0'"), "cast(X'610027' as text)"),
        (Datum::Bytes(vec![0, 255]), "X'00ff'"),
        (Datum::List(vec![text("a'b"), Datum::Int(1)]), "'[\"a''b\",1]'"),
    ] {
        assert_eq!(literal(&datum), said);
    }
    let mut out = Vec::new();
    write_insert(&mut out, "a\"b", &["delay.mean".to_owned()], &[&Datum::Int(1)]).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "insert into \"a\"\"b\" (\"delay.mean\") values (1);\n");
}
