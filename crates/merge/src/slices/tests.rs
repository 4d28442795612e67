use std::collections::BTreeMap;

use folddb_rules::KeyOrder;
use proptest::prelude::*;

use super::*;

fn marks<'a>(keys: &'a [(&'a str, u64)]) -> Vec<Mark<'a>> {
    keys.iter().map(|(key, bytes)| Mark { key: key.as_bytes(), bytes: *bytes }).collect()
}

fn cut_at(keys: &[(&str, u64)], slice_bytes: u64) -> Vec<String> {
    let borders = cut(&KeyOrder::Bytewise, marks(keys), slice_bytes);
    borders.keys.into_iter().map(|key| String::from_utf8(key).unwrap()).collect()
}

#[test]
fn a_merge_is_cut_where_enough_bytes_are_gathered() {
    let even = [("b", 10), ("d", 10), ("f", 10), ("h", 10), ("j", 10), ("l", 10)];
    assert_eq!(cut_at(&even, 20), ["d", "h"]);
    assert_eq!(cut_at(&even, 30), ["f"]);
    assert_eq!(cut_at(&even, 60), [""; 0], "one slice needs no border");
    assert_eq!(cut_at(&even, 45), [""; 0], "what would be left is not worth a slice");
    assert_eq!(cut_at(&[], 10), [""; 0]);
    // Those of several files are one sequence, in which a key that two of them have is one border.
    let two = [("b", 10), ("m", 10), ("z", 10), ("a", 10), ("m", 10), ("y", 10)];
    assert_eq!(cut_at(&two, 10), ["a", "b", "m", "y"]);
    let borders = cut(&KeyOrder::Bytewise, marks(&even), 20);
    assert_eq!(borders.to_string(), "3 slices of about 20 B");
    assert_eq!((borders.low(0), borders.high(0)), (None, Some(&b"d"[..])));
    assert_eq!((borders.low(2), borders.high(2)), (Some(&b"h"[..]), None));
}

/// What the threads of a merge do, in any order.
#[derive(Clone, Copy, Debug)]
enum Act {
    Begin,
    /// This one of the running slices is done.
    Finish(usize),
    Stop,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Begin),
        4 => any::<usize>().prop_map(Act::Finish),
        1 => Just(Act::Stop),
    ]
}

proptest! {
    #[test]
    fn borders_ascend_and_every_key_has_one_slice(
        parts in prop::collection::vec(prop::collection::vec((0u8..40, 0u64..50), 1..20), 0..5),
        slice_bytes in 0u64..200,
    ) {
        let keys: Vec<(Vec<u8>, u64)> =
            parts.into_iter().flatten().map(|(key, bytes)| (vec![key], bytes)).collect();
        let marks: Vec<Mark<'_>> = keys.iter().map(|(key, bytes)| Mark { key, bytes: *bytes }).collect();
        let borders = cut(&KeyOrder::Bytewise, marks, slice_bytes);
        prop_assert!(borders.keys.windows(2).all(|pair| pair[0] < pair[1]));
        for key in 0..40u8 {
            let key = [key];
            let has = |slice: &usize| {
                borders.low(*slice).is_none_or(|low| low <= &key[..])
                    && borders.high(*slice).is_none_or(|high| &key[..] < high)
            };
            prop_assert_eq!((0..borders.slices()).filter(has).count(), 1);
        }
    }

    /// Whatever the threads do in what order: slices are installed in the order of their keys,
    /// each once, none behind one that is missing; and no more run and wait than may.
    #[test]
    fn slices_are_installed_in_order(
        slices in 1usize..8,
        threads in 1usize..4,
        acts in prop::collection::vec(act(), 0..80),
    ) {
        let mut turns = Turns::of(slices);
        let (mut running, mut installed) = (Vec::new(), Vec::new());
        let mut kept = BTreeMap::new();
        let mut was_stopped = false;
        for act in acts {
            match act {
                Act::Begin => running.extend(turns.begin(threads)),
                Act::Finish(which) if !running.is_empty() => {
                    let slice = running.swap_remove(which % running.len());
                    match turns.write(slice, slice) {
                        None => _ = kept.insert(slice, ()),
                        Some(unused) => prop_assert!(was_stopped && unused == slice),
                    }
                    while let Some((next, output)) = turns.take_next() {
                        prop_assert_eq!(next, output);
                        installed.push(next);
                        kept.remove(&next);
                        turns.note_installed();
                    }
                    turns.leave();
                }
                Act::Finish(_) => {}
                Act::Stop => {
                    let left = turns.stop();
                    prop_assert_eq!(left, kept.keys().copied().collect::<Vec<_>>());
                    kept.clear();
                    was_stopped = true;
                }
            }
            prop_assert!(running.len() <= threads);
            prop_assert!(running.len() + kept.len() <= threads + 1);
            prop_assert_eq!(&installed, &(0..installed.len()).collect::<Vec<_>>());
            let ends = running.is_empty() && (was_stopped || installed.len() == slices);
            prop_assert_eq!(turns.is_over(), ends);
        }
        // And without a stop, all are done in the end.
        while !was_stopped && installed.len() < slices {
            running.extend(turns.begin(threads));
            let slice = running.pop().unwrap();
            prop_assert_eq!(turns.write(slice, slice), None);
            while let Some((next, _)) = turns.take_next() {
                installed.push(next);
                turns.note_installed();
            }
            turns.leave();
        }
        prop_assert!(was_stopped || (turns.is_complete() && turns.is_over()));
    }
}
