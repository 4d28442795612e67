//! The mark of a process, and files under it.

use std::io::{PipeWriter, Read, Write};
use std::sync::Arc;

use super::*;

/// What a forked child writes.
#[allow(unsafe_code)]
pub(super) fn in_child(work: impl FnOnce(&mut PipeWriter)) -> Vec<u8> {
    let (mut reading, mut writing) = std::io::pipe().expect("a pipe");
    // SAFETY: the child takes no lock that another thread of this process may hold: it looks at
    // marks and files, and ends at once. Waiting takes a number and may get no status.
    let child = unsafe { libc::fork() };
    if child == 0 {
        work(&mut writing);
        unsafe { libc::_exit(0) };
    }
    drop(writing);
    let mut said = Vec::new();
    reading.read_to_end(&mut said).expect("the child speaks");
    assert!(child > 0 && unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } == child);
    said
}

fn said(mark: &ForkMark) -> Vec<u8> {
    in_child(|out| drop(out.write_all(&[u8::from(mark.is_forked()), u8::from(ForkMark::new().is_forked())])))
}

#[test]
fn a_mark_tells_a_child_from_its_parent() {
    let mark = ForkMark::new();
    assert!(mark.page.is_some(), "the system clears pages in a child");
    assert_eq!(said(&mark), [1, 0], "a mark of the child is its own");
    assert!(!mark.is_forked());
}

#[test]
fn without_a_page_the_number_of_the_process_tells() {
    let mark = ForkMark { page: None, ..ForkMark::new() };
    assert_eq!((mark.is_forked(), said(&mark)), (false, vec![1, 0]));
}

#[test]
fn threads_look_at_one_mark() {
    let mark = ForkMark::new();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| assert!((0..1000).all(|_| !mark.is_forked())));
        }
    });
}

#[test]
fn a_child_reads_files_and_changes_none() {
    let dir = tempfile::tempdir().unwrap();
    let (there, new) = (dir.path().join("there"), dir.path().join("new"));
    std::fs::write(&there, b"bytes").unwrap();
    let host = Arc::new(ForkMark::new()).guard(&Host::real());
    let files = &*host.files;
    let changes = || {
        [
            files.create_dir(&new).err(),
            files.create(&new).err(),
            files.create_append(&new, 4096, AppendMode::Written).err(),
            files.rename(&there, &new).err(),
            files.remove(&there).err(),
            files.cut(&there, 1).err(),
            files.write_over(&there, 0, b"B").err(),
            files.sync_file(&there).err(),
            files.remove_dir(dir.path()).err(),
            files.link(&there, &new).err(),
            files.sync_dir(dir.path()).err(),
            files.lock(&there, LockMode::Exclusive).err(),
        ]
    };
    let told = in_child(|out| {
        let refused = changes().iter().flatten().filter(|error| error.to_string().contains("forked")).count();
        let read = files.open(&there).and_then(|file| file.len_bytes()).unwrap_or(0);
        drop(out.write_all(&[refused as u8, read as u8, u8::from(files.is_forked())]));
    });
    assert_eq!((told, files.is_forked()), (vec![12, 5, 1], false));
    assert_eq!((std::fs::read(&there).unwrap(), new.exists()), (b"bytes".to_vec(), false));
    files.rename(&there, &new).unwrap();
}
