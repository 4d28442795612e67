use super::*;

#[test]
fn files_in_folders_are_counted_synced_and_dropped() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("inner")).expect("a folder");
    std::fs::write(dir.path().join("inner/a"), vec![1u8; 100_000]).expect("a file");
    std::fs::write(dir.path().join("b"), vec![1u8; 100_000]).expect("a file");
    drop_from_page_cache(dir.path()).expect("all are dropped");
    let bytes = allocated_bytes(dir.path()).expect("they are there");
    assert!((200_000..300_000).contains(&bytes), "{bytes}");
}
