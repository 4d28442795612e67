use std::path::{Path, PathBuf};
use std::time::SystemTime;

use folddb_base::ErrorKind;

use super::{Generation, RestoreOptions, pick};

fn generation(number: u64, first_seq: u64, last_seq: u64) -> Generation {
    let path = PathBuf::from(format!("{number:06}"));
    Generation {
        number,
        path,
        made: SystemTime::UNIX_EPOCH,
        first_seq: first_seq.into(),
        last_seq: last_seq.into(),
        files: 3,
        bytes: 100,
        damage: None,
    }
}

fn picked(all: &[Generation], what: &RestoreOptions) -> Result<u64, (ErrorKind, String)> {
    let picked = pick(all, what, Path::new("place"));
    picked.map(|one| one.number).map_err(|error| (error.kind(), error.message().to_owned()))
}

#[test]
fn the_newest_that_has_the_seq_is_picked() {
    let all = [generation(1, 0, 50), generation(2, 40, 80), generation(4, 90, 120)];
    let at = |seq: u64| RestoreOptions::default().at_seq(Some(seq.into()));
    assert_eq!(picked(&all, &RestoreOptions::default()), Ok(4));
    assert_eq!(picked(&all, &at(45)), Ok(2));
    assert_eq!(picked(&all, &at(0)), Ok(1));
    assert_eq!(picked(&all, &at(120)), Ok(4));
    assert_eq!(picked(&all, &at(45).generation(Some(1))), Ok(1));
    let (kind, message) = picked(&all, &at(85)).unwrap_err();
    assert_eq!(kind, ErrorKind::InvalidInput);
    assert_eq!(
        message,
        "seq 85 cannot be restored; possible are 0 to 50 (backup 1), 40 to 80 (backup 2), 90 to 120 (backup 4)"
    );
    let (kind, message) = picked(&all, &RestoreOptions::default().generation(Some(3))).unwrap_err();
    assert_eq!((kind, &*message), (ErrorKind::InvalidInput, "place has no backup 3; it has 1, 2, 4"));
}

#[test]
fn a_damaged_backup_is_not_skipped_silently() {
    let damaged = Generation { damage: Some("its list is damaged".to_owned()), ..generation(5, 0, 0) };
    let all = [generation(4, 90, 120), damaged];
    let (kind, message) = picked(&all, &RestoreOptions::default()).unwrap_err();
    assert_eq!((kind, &*message), (ErrorKind::Corruption, "backup 5: its list is damaged"));
    assert_eq!(picked(&all, &RestoreOptions::default().generation(Some(4))), Ok(4));
    assert_eq!(picked(&[], &RestoreOptions::default()).unwrap_err().0, ErrorKind::StoreNotFound);
}
