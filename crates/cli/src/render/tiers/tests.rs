use super::*;

#[test]
fn bars_are_as_long_as_runs_are_large() {
    assert_eq!(bar(&[100], 100), "▆".repeat(BAR_WIDTH));
    assert_eq!(bar(&[50], 100), "▆".repeat(BAR_WIDTH / 2));
    assert_eq!(bar(&[50, 50], 100), format!("{}▏{}", "▆".repeat(20), "▆".repeat(19)));
    assert_eq!(bar(&[0], 100), "▆", "even the smallest is seen");
    assert_eq!(bar(&[], 0), "");
    assert_eq!(bar(&[0, 0], 0), "▆");
}

#[test]
fn no_bar_is_wider_than_the_widest() {
    let many = vec![1u64; 1000];
    assert!(bar(&many, 1000).chars().count() <= BAR_WIDTH);
    assert!(bar(&[u64::MAX, u64::MAX], 1).chars().count() <= BAR_WIDTH);
}
