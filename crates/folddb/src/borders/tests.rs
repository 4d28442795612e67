use super::*;

#[test]
fn a_border_stands_while_any_holder_lives() {
    let borders = Arc::new(Borders::default());
    let at = Duration::from_secs;
    let hold = |seq, time_ms, now| borders.hold(At { seq, time_ms }, at(now));
    let (first, second) = (hold(7, 20, 1), hold(7, 30, 2));
    let third = hold(3, 10, 3);
    assert_eq!(borders.oldest_ms(), Some(10));
    assert_eq!(borders.all(), [3, 7]);
    assert_eq!(borders.summary(), (3, Some(at(1))));
    let version = borders.version();
    drop(first);
    assert_eq!(borders.all(), [3, 7]);
    drop(second);
    drop(third);
    assert!(borders.all().is_empty());
    assert!(borders.version() > version, "who caches the borders learns of the change");
}
