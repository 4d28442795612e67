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

#[test]
fn space_over_time_is_reported_at_ten_moments() {
    let of = |rival: &str, run: serde_json::Value| Standing { rival: rival.to_owned(), runs: Ok(vec![run]) };
    let bytes: Vec<u64> = (1..=40).map(|second| second * 1_000_000).collect();
    let told = space_over_time(&of("a", serde_json::json!({ "serve": { "disk_bytes_by_second": bytes } })));
    assert_eq!(told.as_deref(), Some("space of a over 40 s, MB: 4, 8, 12, 16, 20, 24, 28, 32, 36, 40"));
    let told = space_over_time(&of("b", serde_json::json!({ "disk_bytes_by_second": [3e6, 5e6] })));
    assert_eq!(told.as_deref(), Some("space of b over 2 s, MB: 3, 5"));
    assert_eq!(space_over_time(&of("c", serde_json::json!({}))), None);
}
