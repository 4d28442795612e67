use super::*;

fn failure(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed(why) => why,
        Outcome::Done(figures) => panic!("it is done: {figures}"),
    }
}

#[test]
fn only_verified_figures_count() {
    let outcome = judge(true, "", Some(r#"{"verified": true, "rows": 3}"#), "");
    assert!(matches!(outcome, Outcome::Done(figures) if figures["rows"] == 3));
    let wrong = r#"{"verified": false, "checksum": "1", "checksum_expected": "2"}"#;
    assert!(failure(judge(true, "", Some(wrong), "")).starts_with("refused: its state is wrong"));
    assert_eq!(failure(judge(true, "", Some("done"), "")), "its last line is no JSON");
    assert_eq!(failure(judge(false, "exit status: 1", None, "no space")), "exit status: 1: no space");
}

#[test]
fn a_child_that_takes_too_long_is_stopped() {
    let outcome = run(Command::new("sleep").arg("60"), Duration::from_millis(50)).expect("it starts");
    assert!(failure(outcome).starts_with("not done within"));
}

#[test]
fn the_last_line_is_what_counts() {
    assert_eq!(last_line("a\nb\n\n".as_bytes()).as_deref(), Some("b"));
    assert_eq!(last_line("".as_bytes()), None);
}
