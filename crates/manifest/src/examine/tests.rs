use std::path::Path;

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
