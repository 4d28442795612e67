use std::io;

use super::space_free_bytes;

#[test]
fn free_space_is_told_of_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    assert!(space_free_bytes(dir.path()).unwrap() > 0);
    let missing = space_free_bytes(&dir.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}
