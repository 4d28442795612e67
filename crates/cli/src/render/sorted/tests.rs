use super::*;

fn samples() -> Vec<Datum> {
    let text = |text: &str| Datum::Text(text.to_owned());
    let list = |items: &[Datum]| Datum::List(items.to_vec());
    vec![
        Datum::Null,
        Datum::Bool(true),
        Datum::Int(2),
        Datum::Int(10),
        Datum::Int((1 << 53) + 1),
        Datum::Int(1 << 53),
        Datum::Float(9_007_199_254_740_992.0),
        Datum::Float(2.5),
        Datum::Float(f64::NAN),
        Datum::Number("1.10".to_owned()),
        Datum::Number("1e400".to_owned()),
        text("15"),
        text("9"),
        text(""),
        Datum::Bytes(vec![9]),
        list(&[]),
        list(&[Datum::Int(10)]),
        list(&[text("15")]),
        list(&[Datum::Int(2), Datum::Null]),
        Datum::Map(vec![("a".to_owned(), Datum::Int(1))]),
    ]
}

#[test]
fn values_of_any_kinds_have_one_order() {
    let all = samples();
    for one in &all {
        for two in &all {
            assert_eq!(compare(one, two), compare(two, one).reverse(), "{one:?} {two:?}");
            for three in &all {
                let order = compare(one, two);
                if order == compare(two, three) {
                    assert_eq!(compare(one, three), order, "{one:?} {two:?} {three:?}");
                }
            }
        }
    }
}

#[test]
fn numbers_are_in_the_order_of_their_values() {
    let numbers = [
        Datum::Number("-1e400".to_owned()),
        Datum::Int(-3),
        Datum::Number("1.10".to_owned()),
        Datum::Float(1.5),
        Datum::Int(2),
        Datum::Int(10),
        Datum::Int(1 << 53),
        Datum::Int((1 << 53) + 1),
    ];
    assert!(numbers.is_sorted_by(|one, two| compare(one, two).is_lt()));
}
