#[path = "../../../journal/src/tests/world.rs"]
pub(crate) mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use folddb_base::TableId;
use proptest::prelude::*;

use self::world::{Fail, World};
use super::*;
use crate::state::tests::{changes, part};

pub(crate) fn dir() -> &'static Path {
    Path::new("store")
}

fn numbers(first: u64) -> NumberSource {
    let next = AtomicU64::new(first);
    Arc::new(move || FileNumber(next.fetch_add(1, Ordering::Relaxed)))
}

fn create(world: &World) -> ManifestLog {
    ManifestLog::create(&world.host(), dir(), 42, numbers(1)).unwrap()
}

fn resume(world: &World) -> ManifestLog {
    let loaded = load(&world.host(), dir()).unwrap();
    let first = loaded.next_number;
    ManifestLog::resume(&world.host(), dir(), loaded, numbers(first)).unwrap()
}

fn table(number: u32) -> Change {
    Change::CreateTable {
        table: TableId(number),
        name: format!("t{number}"),
        rules_text: "sum:i64".to_owned(),
    }
}

fn add(file: u64) -> Change {
    let (table, run) = (TableId(1), folddb_base::ids::RunId(9));
    Change::AddPart { table, run, tier: 0, age: 5, part: part(file, 1) }
}

fn only_file(world: &World) -> PathBuf {
    let paths = world.paths();
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths[0].clone()
}

/// A manifest with edits, and the states after each with the length of the file then.
pub(crate) fn with_edits() -> (World, PathBuf, Vec<(usize, State)>) {
    let world = World::default();
    let mut log = create(&world);
    let path = only_file(&world);
    let mut states = vec![(world.get(&path).len(), State::clone(log.state()))];
    for edit in
        [vec![table(1)], vec![add(3), add(4)], vec![Change::Flushed { table: TableId(1), seq: 8 }], vec![]]
    {
        log.append(&edit).unwrap();
        states.push((world.get(&path).len(), State::clone(log.state())));
    }
    (world, path, states)
}

#[test]
fn edits_come_back_on_the_real_disk() {
    let temp = tempfile::tempdir().unwrap();
    let host = Host::real();
    let mut log = ManifestLog::create(&host, temp.path(), 42, numbers(1)).unwrap();
    log.append(&[table(1), table(2)]).unwrap();
    log.append(&[add(3)]).unwrap();
    let state = State::clone(log.state());
    drop(log);
    let loaded = load(&host, temp.path()).unwrap();
    assert_eq!((loaded.state.clone(), loaded.cut_bytes, loaded.number), (state.clone(), 0, FileNumber(1)));
    assert_eq!(loaded.next_number, 33, "numbers that were set aside may have been used");
    let log = ManifestLog::resume(&host, temp.path(), loaded, numbers(33)).unwrap();
    assert_eq!(log.number(), Some(FileNumber(33)));
    assert_eq!(log.state().tables, state.tables);
    let names = host.files.list(temp.path()).unwrap();
    assert_eq!(names, ["MANIFEST-000033"]);
}

#[test]
fn no_manifest_is_no_store() {
    let world = World::default();
    let lost = load(&world.host(), dir()).unwrap_err();
    assert!(lost.kind() == ErrorKind::Corruption && lost.is_lacking(), "{lost}");
}

#[test]
fn numbers_go_past_every_file_that_is_there() {
    let (world, _, _) = with_edits();
    world.put(&dir().join("005000.part"), b"");
    assert_eq!(load(&world.host(), dir()).unwrap().next_number, 5001);
}

#[test]
fn an_edit_is_all_or_nothing() {
    let (world, _, _) = with_edits();
    let mut log = resume(&world);
    let before = State::clone(log.state());
    let error = log.append(&[table(2), table(2)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(**log.state(), before);
    assert_eq!(load(&world.host(), dir()).unwrap().state, before);
    log.append(&[table(2)]).unwrap();
}

#[test]
fn a_cut_at_any_byte_loses_at_most_the_edit_it_cuts() {
    let (world, path, states) = with_edits();
    let pristine = world.get(&path);
    for len in 0..=pristine.len() {
        world.put(&path, &pristine[..len]);
        match states.iter().rev().find(|(end, _)| *end <= len) {
            Some((end, state)) => {
                let loaded = load(&world.host(), dir()).unwrap();
                assert_eq!((&loaded.state, loaded.cut_bytes), (state, (len - end) as u64), "cut at {len}");
            }
            None => assert_eq!(load(&world.host(), dir()).unwrap_err().kind(), ErrorKind::Corruption),
        }
    }
}

#[test]
fn a_flip_before_the_last_edit_is_refused_with_file_and_offset() {
    let (world, path, states) = with_edits();
    let pristine = world.get(&path);
    let (last_begin, before_last) = &states[states.len() - 2];
    for at in 0..pristine.len() {
        let mut bytes = pristine.clone();
        bytes[at] ^= 1 << (at % 8);
        world.put(&path, &bytes);
        let outcome = load(&world.host(), dir());
        if at >= *last_begin {
            assert_eq!(&outcome.unwrap().state, before_last, "as if cut, which it may be");
            continue;
        }
        let error = outcome.unwrap_err();
        let begin = states.iter().map(|(end, _)| *end).filter(|end| *end <= at).max().unwrap_or(0);
        assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}");
        assert!(
            error.message().contains(&format!("MANIFEST-000001 is damaged at offset {begin}:")),
            "{error}"
        );
    }
}

#[test]
fn the_newest_whole_snapshot_counts_and_the_rest_is_removed() {
    let (world, path, states) = with_edits();
    let old = world.get(&path);
    let log = resume(&world);
    let newer = only_file(&world);
    let newer_bytes = world.get(&newer);
    assert_eq!(log.state().tables, states[4].1.tables);
    // The new file was being written when the process died: the old one still counts.
    for len in [0, 1, 20, newer_bytes.len() - 1] {
        world.put(&path, &old);
        world.put(&newer, &newer_bytes[..len]);
        let loaded = load(&world.host(), dir()).unwrap();
        assert_eq!((loaded.number, &loaded.state), (FileNumber(1), &states[4].1));
        resume(&world);
        assert_eq!(world.paths().len(), 1, "leftovers of both kinds go");
        world.disk_remove(&only_file(&world));
    }
    // It was whole, but the old one not yet removed.
    world.put(&path, &old);
    world.put(&newer, &newer_bytes);
    assert_eq!(load(&world.host(), dir()).unwrap().number, FileNumber(33));
}

#[test]
fn changes_of_the_future_are_refused() {
    let (world, path, states) = with_edits();
    let mut bytes = world.get(&path);
    let offset = states[4].0 as u64;
    let mut frame = Vec::new();
    assert!(put_edit(
        &mut frame,
        FileNumber(1),
        offset,
        EditKind::Edit,
        &[Change::DropTable { table: TableId(1) }]
    ));
    frame[14] = 200; // the tag
    let hash = folddb_base::checksum::hash64(folddb_base::checksum::place_seed(1, offset), &frame[8..]);
    frame[..8].copy_from_slice(&hash.to_le_bytes());
    bytes.extend_from_slice(&frame);
    world.put(&path, &bytes);
    assert_eq!(load(&world.host(), dir()).unwrap_err().kind(), ErrorKind::NewerFormat);
}

#[test]
fn a_failed_write_or_sync_poisons_and_removes_nothing() {
    for fail in [Fail::Write, Fail::Sync] {
        let (world, _, _) = with_edits();
        let mut log = resume(&world);
        let before = State::clone(log.state());
        world.fail(Some(fail));
        let first = log.append(&[table(2)]).unwrap_err();
        assert_eq!(first.kind(), ErrorKind::Poisoned);
        world.fail(None);
        let again = log.append(&[table(3)]).unwrap_err();
        assert_eq!((again.kind(), again.message()), (ErrorKind::Poisoned, first.message()));
        assert!(log.check_sound().is_err());
        let state = load(&world.host(), dir()).unwrap().state;
        let with_edit = state.tables.contains_key(&TableId(2));
        assert!(state == before || with_edit && fail == Fail::Sync, "either state may be there");
    }
}

#[test]
fn a_full_disk_changes_nothing_and_edits_go_on_in_a_new_file() {
    let (world, _, _) = with_edits();
    let mut log = resume(&world);
    let before = State::clone(log.state());
    let old = log.number();
    world.set_space(Some(10));
    for _ in 0..3 {
        let error = log.append(&[table(2)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert_eq!(load(&world.host(), dir()).unwrap().state, before);
        assert_eq!(**log.state(), before);
    }
    world.set_space(None);
    log.append(&[table(2)]).unwrap();
    assert!(log.number() > old);
    assert_eq!(load(&world.host(), dir()).unwrap().state, **log.state());
    assert_eq!(load(&world.host(), dir()).unwrap().cut_bytes, 0);
    assert_eq!(world.paths().len(), 1);
}

#[test]
fn a_large_manifest_is_replaced_by_a_new_file() {
    let world = World::default();
    let mut log = create(&world);
    log.append(&[table(1)]).unwrap();
    let rules_text = "x".repeat(1 << 20);
    for number in 2..12 {
        let create = Change::CreateTable {
            table: TableId(number),
            name: "big".to_owned(),
            rules_text: rules_text.clone(),
        };
        log.append(&[create]).unwrap();
        log.append(&[Change::DropTable { table: TableId(number) }]).unwrap();
    }
    assert!(log.number() > Some(FileNumber(1)));
    let file = only_file(&world);
    assert!(world.get(&file).len() < 6 << 20);
    assert_eq!(load(&world.host(), dir()).unwrap().state, **log.state());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Edits, reopenings and power cuts: what is loaded is what the last edit that succeeded left.
    #[test]
    fn an_edit_that_returned_is_there_after_a_power_cut(
        steps in prop::collection::vec((prop::collection::vec(changes(), 1..4), 0u8..10), 1..30),
        mut seed: u64,
    ) {
        let mut world = World::default();
        let mut log = create(&world);
        let mut pick = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 40 & 1 == 1
        };
        for (edit, action) in steps {
            let before = State::clone(log.state());
            if log.append(&edit).is_err() {
                prop_assert_eq!(&**log.state(), &before);
            }
            let state = State::clone(log.state());
            if action < 3 {
                world = if action == 0 { world.after_kill() } else { world.after_power_cut(&mut pick) };
                prop_assert_eq!(&load(&world.host(), dir()).unwrap().state, &state);
                log = resume(&world);
                prop_assert_eq!(&log.state().tables, &state.tables);
            }
        }
    }

    #[test]
    fn no_bytes_panic(at in 0usize..600, noise: Vec<u8>) {
        let (world, path, states) = with_edits();
        let mut bytes = world.get(&path);
        let end = bytes.len().min(at + noise.len());
        let at = at.min(end);
        bytes[at..end].copy_from_slice(&noise[..end - at]);
        world.put(&path, &bytes);
        if let Ok(loaded) = load(&world.host(), dir()) {
            prop_assert!(states.iter().any(|(_, state)| *state == loaded.state));
        }
    }
}
