use std::path::Path;

use folddb_layout::manifest_edit::put_edit;

use super::*;
use crate::log::load;
use crate::log::tests::{dir, with_edits};

#[test]
fn it_finds_faults_exactly_where_loading_refuses_and_the_state_is_one_that_was() {
    let (world, path, states) = with_edits();
    let whole = world.get(&path);
    let number = load(&world.host(), dir()).unwrap().number;
    for at in 0..whole.len() {
        for flip in [0xff, 1 << (at % 8)] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            world.put(&path, &bytes);
            let found = examine(&world.host(), dir()).unwrap();
            let [examined] = &found[..] else { panic!("{found:?}") };
            assert_eq!(examined.number, number);
            match load(&world.host(), dir()) {
                Ok(loaded) => {
                    assert!(examined.faults.is_empty(), "byte {at}: {:?}", examined.faults);
                    assert_eq!(examined.state.as_ref(), Some(&loaded.state));
                    assert_eq!(examined.cut_bytes, loaded.cut_bytes);
                }
                Err(error) if examined.state.is_none() && examined.faults.is_empty() => {
                    assert!(examined.cut_bytes > 0, "byte {at}: {error:?}"); // nothing of it is whole
                }
                Err(error) => {
                    let first = examined.faults.first().unwrap_or_else(|| panic!("byte {at}: {error:?}"));
                    assert_eq!(first.to_error(&path).message(), error.message(), "byte {at}");
                    let before = states.iter().rev().find(|(end, _)| *end as u64 <= first.offset);
                    assert_eq!(examined.state.as_ref(), before.map(|(_, state)| state), "byte {at}");
                }
            }
        }
    }
}

#[test]
fn the_edits_beyond_a_fault_are_heeded_too() {
    let (world, path, states) = with_edits();
    let mut bytes = world.get(&path);
    bytes[states[2].0 + 15] ^= 1; // the edit that says up to which seq all is flushed
    world.put(&path, &bytes);
    let found = examine(&world.host(), Path::new("store")).unwrap();
    assert_eq!(found[0].faults.len(), 1, "{:?}", found[0].faults);
    assert_eq!(found[0].state.as_ref(), Some(&states[2].1));
    assert!(found[0].patched.is_some());
    assert_eq!(found[0].created.len(), 1);
}

/// If a snapshot was cut, the tables before the cut are named, and no others.
#[test]
fn a_snapshot_that_was_cut_still_names_the_tables_before_the_cut() {
    let (world, path, states) = with_edits();
    let names = |bytes: &[u8]| -> Vec<String> {
        world.put(&path, bytes);
        let found = examine(&world.host(), dir()).unwrap();
        let [examined] = &found[..] else { panic!("{found:?}") };
        assert!(examined.state.is_none() && examined.edits == 0, "{examined:?}");
        let name = |change: &Change| match change {
            Change::CreateTable { name, .. } => name.clone(),
            other => panic!("{other:?}"),
        };
        examined.claimed.iter().map(name).collect()
    };
    let (_, state) = states.last().unwrap();
    let mut whole = Vec::new();
    assert!(put_edit(&mut whole, FileNumber(1), 0, EditKind::Snapshot, &state.snapshot()));
    let all: Vec<String> = state.tables.values().map(|table| table.name.clone()).collect();
    assert!(!all.is_empty());
    let mut most = 0;
    for len in 0..whole.len() {
        let found = names(&whole[..len]);
        assert_eq!(found, all[..found.len()], "cut to {len}");
        assert!(found.len() >= most, "cut to {len}");
        most = found.len();
    }
    assert_eq!(most, all.len());
}
