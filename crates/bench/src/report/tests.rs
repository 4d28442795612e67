use super::*;

fn sample() -> Report {
    let mut report = Report::new("sample");
    report.put("rows", 1_234_567u64);
    report.put("load", json!({ "seconds": 1.5, "tenths": [10, 2000] }));
    report.put("peak", Value::Null);
    report
}

#[test]
fn text_is_aligned_and_says_when_it_is_wrong() {
    let expected = "\
sample
  rows                        1,234,567
  load
    seconds                   1.5
    tenths                    10  2,000
  peak                        -
  verified                    NO: the final state is wrong";
    assert_eq!(sample().to_string(), expected);
}

#[test]
fn json_keeps_the_order_and_ends_with_the_verdict() {
    let mut report = sample();
    report.verify(true);
    let names: Vec<String> =
        report.to_json().as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default();
    assert_eq!(names, ["bench", "rows", "load", "peak", "verified"]);
    assert_eq!(report.figure(&["load", "seconds"]), Some(&json!(1.5)));
    assert_eq!(report.figure(&["load", "nothing"]), None);
}
