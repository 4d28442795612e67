use super::*;

#[test]
fn another_begins_each_round() {
    assert_eq!(order(3, 0).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(order(3, 1).collect::<Vec<_>>(), [1, 2, 0]);
    assert_eq!(order(3, 5).collect::<Vec<_>>(), [2, 0, 1]);
}
