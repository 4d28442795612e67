use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use super::MemoryFiles;
use crate::files::{AppendFile, AppendMode, AppendSync, Files, LockMode, ReadFile, WriteFile};
use crate::real::RealFiles;

/// What a call answers, as text: the two file systems must say the same.
fn said<T: std::fmt::Debug>(answer: io::Result<T>) -> String {
    match answer {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

/// Numbers that follow from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Names in three directories, of which one is in another; `f` may also be a file.
const NAMES: [&str; 10] = ["a", "b", "f", "d", "d/a", "d/b", "d/e", "d/e/a", "f/x", "g"];

fn whole(file: &dyn ReadFile) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.len_bytes()? as usize];
    file.read_exact_at(0, &mut bytes)?;
    Ok(bytes)
}

fn written(mut file: Box<dyn WriteFile>, bytes: &[u8]) -> io::Result<()> {
    file.append(bytes)?;
    file.sync()
}

fn appended(mut file: Box<dyn AppendFile>, bytes: &[u8]) -> io::Result<u64> {
    file.append(bytes)?;
    file.syncer().prepare()?;
    file.syncer().sync()?;
    Ok(file.end())
}

/// Whether there is a file of at least this length.
fn file_has(files: &dyn Files, path: &Path, len_bytes: u64) -> bool {
    files.list(path).is_err() && files.len_bytes(path).is_ok_and(|len| len >= len_bytes)
}

/// One call, chosen by the draws, and its answer. Directories are created only where the one above
/// exists: the file system in memory would make it.
fn call(files: &dyn Files, root: &Path, draws: &mut Draws) -> String {
    let (name, other) = (draws.pick(&NAMES), draws.pick(&NAMES));
    let (path, to) = (root.join(name), root.join(other));
    let (at, bytes) = (draws.below(9), vec![draws.below(256) as u8; draws.below(7) as usize]);
    let what = draws.below(13);
    let answer = match what {
        0 if files.list(path.parent().unwrap()).is_err() => "no directory above".to_owned(),
        0 => said(files.create_dir(&path)),
        1 => said(files.list(&path).map(|mut names| {
            names.sort();
            names
        })),
        2 => match files.list(&path) {
            Ok(_) => "a directory has no length to compare".to_owned(),
            Err(_) => said(files.len_bytes(&path)),
        },
        3 | 4 => said(files.create(&path).and_then(|file| written(file, &bytes))),
        5 => {
            let mode = draws.pick(&[AppendMode::Mapped, AppendMode::Written]);
            said(files.create_append(&path, at + 1, mode).and_then(|file| appended(file, &bytes)))
        }
        6 => match files.list(&path) {
            Ok(_) => "a directory opens, and has no bytes".to_owned(),
            Err(_) => said(files.open(&path).and_then(|file| whole(&*file))),
        },
        7 => said(files.rename(&path, &to)),
        8 => said(files.remove(&path)),
        9 if file_has(files, &path, at) => said(files.cut(&path, at)),
        10 if file_has(files, &path, at + bytes.len() as u64) => said(files.write_over(&path, at, &bytes)),
        11 => said(files.remove_dir(&path)),
        12 => said(files.link(&path, &to)),
        _ => "nothing to shorten or write over".to_owned(),
    };
    format!("{what} {name} {other}: {answer}")
}

/// Any calls in any order answer as those of the operating system do.
#[test]
fn it_answers_as_the_operating_system_does() {
    for seed in 0..150 {
        let temp = tempfile::tempdir().unwrap();
        let (real, memory) = (RealFiles::default(), MemoryFiles::default());
        let root = Path::new("/some/where");
        memory.create_dir(root).unwrap();
        let (mut mine, mut theirs) = (Draws(seed), Draws(seed));
        for step in 0..60 {
            let answers = (call(&memory, root, &mut mine), call(&real, temp.path(), &mut theirs));
            assert_eq!(answers.0, answers.1, "seed {seed}, step {step}: memory, and the real one");
        }
    }
}

#[test]
fn a_removed_file_is_read_as_long_as_it_is_open() {
    let files = MemoryFiles::default();
    let path = Path::new("a");
    written(files.create(path).unwrap(), b"bytes").unwrap();
    let open = files.open(path).unwrap();
    files.remove(path).unwrap();
    assert_eq!(files.open(path).err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(whole(&*open).unwrap(), b"bytes");
}

#[test]
fn a_preallocated_file_reads_as_zeros_and_takes_no_memory() {
    let files = MemoryFiles::default();
    let path = Path::new("./log");
    let mut file = files.create_append(path, 1 << 40, AppendMode::Mapped).unwrap();
    file.append(b"ab").unwrap();
    assert_eq!(files.len_bytes(Path::new("log")).unwrap(), 1 << 40);
    let mut buf = [9; 4];
    files.open(path).unwrap().read_exact_at(1, &mut buf).unwrap();
    assert_eq!(&buf, b"b\0\0\0");
    files.open(path).unwrap().read_exact_at((1 << 40) - 4, &mut buf).unwrap();
    assert_eq!(buf, [0; 4]);
}

#[test]
fn a_directory_is_created_with_those_above_it() {
    let files = MemoryFiles::default();
    files.create_dir(Path::new("/tmp/tests/store")).unwrap();
    assert_eq!(files.list(Path::new("/tmp")).unwrap(), ["tests"]);
    assert_eq!(files.list(Path::new("/")).unwrap(), ["tmp"]);
    assert_eq!(files.list(Path::new("")).unwrap(), [""; 0], "relative names are others");
    written(files.create(Path::new("/tmp/tests/file")).unwrap(), b"").unwrap();
    let below = files.create_dir(Path::new("/tmp/tests/file/store")).unwrap_err();
    assert_eq!(below.kind(), ErrorKind::NotADirectory);
}

#[test]
fn locks_exclude_each_other_until_they_are_dropped() {
    let files = MemoryFiles::default();
    let take = |mode| files.lock(Path::new("LOCK"), mode).map_err(|error| error.kind());
    let alone = take(LockMode::Exclusive).unwrap();
    assert_eq!(take(LockMode::Exclusive).err(), Some(ErrorKind::WouldBlock));
    assert_eq!(take(LockMode::Shared).err(), Some(ErrorKind::WouldBlock));
    drop(alone);
    let (one, two) = (take(LockMode::Shared).unwrap(), take(LockMode::Shared).unwrap());
    drop(one);
    assert_eq!(take(LockMode::Exclusive).err(), Some(ErrorKind::WouldBlock));
    drop(two);
    assert!(take(LockMode::Exclusive).is_ok());
}

#[test]
fn one_appends_while_others_read_and_sync() {
    let files = Arc::new(MemoryFiles::default());
    let path = Path::new("log");
    let mut file = files.create_append(path, 4000, AppendMode::Mapped).unwrap();
    let (reader, syncer) = (files.open(path).unwrap(), file.syncer());
    std::thread::scope(|scope| {
        scope.spawn(move || (0..1000_u32).for_each(|i| file.append(&i.to_le_bytes()).unwrap()));
        scope.spawn(move || (0..100).for_each(|_| AppendSync::sync(&*syncer).unwrap()));
    });
    let bytes = whole(&*reader).unwrap();
    assert!((0..1000_u32).all(|i| bytes[4 * i as usize..][..4] == i.to_le_bytes()));
}
