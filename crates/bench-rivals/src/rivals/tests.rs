use super::*;
use crate::rivals::entries::locked_version;

#[test]
fn versions_come_from_the_lock_file() {
    assert_eq!(locked_version("folddb"), "0.1.0");
    assert_eq!(locked_version("no-such-package"), "unknown");
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    assert_eq!(entry("folddb").expect("it is always there").name, "folddb");
    let refused = entry("foldb").err().expect("no such store").to_string();
    assert!(refused.contains("choose of folddb"), "{refused}");
}
