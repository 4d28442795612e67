use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::world::World;

fn directories(world: &World, bytes_max: u64) -> ValueDirectories {
    let next = AtomicU64::new(10);
    let numbers: NumberSource = Arc::new(move || FileNumber(next.fetch_add(1, Ordering::Relaxed)));
    ValueDirectories::new(&world.host(), Path::new("dir"), bytes_max, numbers)
}

fn put(directories: &ValueDirectories, record: &[u8]) -> ValuePlace {
    loop {
        match directories.append(record).unwrap() {
            Some(place) => return place,
            None => directories.adopt(directories.make(0).unwrap()),
        }
    }
}

#[test]
fn a_value_is_a_file_of_its_own_over_several_directories() {
    let world = World::default();
    let directories = directories(&world, 4096);
    let places: Vec<ValuePlace> = (0..10u8).map(|n| put(&directories, &[n; 1000])).collect();
    assert_eq!(
        places.iter().map(|place| (place.segment, place.unit)).take(6).collect::<Vec<_>>(),
        [(10, 1), (10, 2), (10, 3), (10, 4), (10, 5), (11, 1)]
    );
    for (n, place) in places.iter().enumerate() {
        let path = value_file_path(Path::new("dir"), FileNumber(place.segment.into()), place.unit);
        let file = world.host().files.open(&path).unwrap();
        let mut bytes = [0; 1000];
        file.read_exact_at(0, &mut bytes).unwrap();
        assert_eq!((bytes, file.len_bytes().unwrap()), ([n as u8; 1000], 1000));
    }
    assert!(directories.take_sealed().is_empty(), "nothing is durable yet");
    assert_eq!(directories.unsynced_bytes(), 10_000);
    directories.sync().unwrap();
    assert_eq!(directories.unsynced_bytes(), 0);
    let sealed = directories.take_sealed();
    assert_eq!(sealed, [DirectoryEnd { number: FileNumber(10), bytes: 5000, value_files: 5 }]);
    let (ends, unused) = directories.close().unwrap();
    assert_eq!((ends.len(), unused.len()), (1, 0));
    assert_eq!(directories.append(b"late").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn names_that_are_no_value_files_are_skipped() {
    let world = World::default();
    let directories = directories(&world, 1 << 20);
    put(&directories, b"one");
    let (files, dir) = (world.host().files, Path::new("dir"));
    drop(files.create(&dir.join("000010.shelf/notes.txt")).unwrap());
    assert_eq!(value_files_in(&*files, dir, FileNumber(10)).unwrap(), [1]);
    assert_eq!(count_value_files(&*files, dir, FileNumber(10)).unwrap().value_files, 1);
}
