use super::*;

#[test]
fn what_is_kept_is_there_when_resumed_and_else_gone() {
    let parent = tempfile::tempdir().expect("a directory");
    let open = |rows: u64, resume| {
        Kept::open(parent.path().join("a.rounds"), json!({ "rows": rows }), resume).expect("it opens")
    };
    let figures = json!({ "load": { "seconds": 1.5 } });
    let kept = open(3, false);
    assert_eq!(kept.get(0, "folddb"), None);
    kept.put(0, "folddb", &figures).expect("it is written");
    let resumed = open(3, true);
    assert_eq!(resumed.get(0, "folddb"), Some(figures));
    assert_eq!(resumed.get(1, "folddb"), None);
    assert_eq!(open(4, true).get(0, "folddb"), None, "another contest");
    assert_eq!(open(3, false).get(0, "folddb"), None, "begun anew");
}

#[test]
fn half_a_file_is_no_run() {
    let parent = tempfile::tempdir().expect("a directory");
    let kept = Kept::open(parent.path().join("a.rounds"), json!({}), false).expect("it opens");
    std::fs::write(kept.path(0, "folddb"), "{\"contest\": {}, \"ru").expect("it is written");
    assert_eq!(kept.get(0, "folddb"), None);
    kept.forget().expect("it is removed");
    assert!(!parent.path().join("a.rounds").exists());
}
