use super::*;

#[test]
fn a_border_stands_while_any_holder_lives() {
    let borders = Arc::new(Borders::default());
    let at = Duration::from_secs;
    let (first, second) = (borders.hold(7, at(1)), borders.hold(7, at(2)));
    let third = borders.hold(3, at(3));
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
