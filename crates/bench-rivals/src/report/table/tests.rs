use serde_json::json;

use super::*;

#[test]
fn a_failed_rival_is_a_line_and_a_column_that_say_so() {
    let run = json!({ "version": "1", "settings": "s", "load": { "rows_per_s": 1_234_567 } });
    let standings = [
        Standing { rival: "folddb".to_owned(), runs: Ok(vec![run.clone()]) },
        Standing { rival: "other".to_owned(), runs: Ok(vec![run]) },
        Standing { rival: "slow".to_owned(), runs: Err("not done within 5 s".to_owned()) },
    ];
    let text = render("hugedb", &json!({}), &standings);
    assert!(text.contains("slow: FAILED: not done within 5 s"), "{text}");
    assert!(text.contains("1.00x (other)"), "{text}");
    assert!(text.contains("1235 K"), "{text}");
    assert!(!text.contains("reopen"), "a figure that none has is no line: {text}");
}

#[test]
fn numbers_have_three_digits_that_count() {
    let texts = [0.5, 3.25159, 42.0, 42.123, 9_999.0, 123_456.0, 12_345_678.0].map(number);
    assert_eq!(texts, ["0.50", "3.25", "42", "42.1", "9999", "123 K", "12.3 M"]);
}
