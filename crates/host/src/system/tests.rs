//! What every system must do, whichever it is.

use std::fs::OpenOptions;
use std::io;

use super::*;

#[test]
fn bytes_are_written_and_read_at_offsets() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    preallocate(&file, 10).unwrap();
    write_all_at(&file, b"xyz", 7).unwrap();
    write_all_at(&file, b"abc", 0).unwrap();
    let mut all = [0; 10];
    read_exact_at(&file, &mut all, 0).unwrap();
    assert_eq!(&all, b"abc\0\0\0\0xyz");
    let mut end = [0; 5];
    assert_eq!(read_at(&file, &mut end, 8).unwrap(), 2);
    assert_eq!(&end, b"yz\0\0\0");
    assert_eq!(read_exact_at(&file, &mut end, 8).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    drop(file);
    sync_file(&path).unwrap();
    sync_dir(dir.path()).unwrap();
    assert_eq!(sync_dir(&dir.path().join("b")).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn hints_change_nothing_and_a_file_has_a_handle() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::fs::write(&path, b"0123456789").unwrap();
    let file = std::fs::File::open(&path).unwrap();
    for hint in [Hint::Scattered, Hint::WillNeed, Hint::WontNeed] {
        for (offset, len_bytes) in [(0, 0), (3, 4), (0, 100), (u64::MAX, u64::MAX)] {
            advise(&file, offset, len_bytes, hint);
        }
    }
    let again = std::fs::File::from(handle_of(&file).try_clone_to_owned().unwrap());
    let mut bytes = [0; 10];
    read_exact_at(&again, &mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"0123456789");
}
