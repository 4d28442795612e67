use super::*;
use crate::slot::SizeClass;
use crate::tests::{Chance, State, make};

fn slot(address: u64) -> Slot {
    Slot::new(address, SizeClass::of(100)).unwrap()
}

fn point(bits: u64) -> Point {
    Point::from_bits(bits)
}

/// One change that fits, of a few points.
fn some_change(state: &State, chance: &mut Chance, fresh: u64) -> (Point, Change) {
    let point = point(chance.below(4));
    let here = state.get(&point).map_or(&[][..], Vec::as_slice);
    let some = here.get(chance.below(here.len() as u64) as usize).copied();
    let change = match (some, chance.below(3)) {
        (Some(old), 0) => Change::Remove(old),
        (Some(old), 1) => Change::Replace { old, new: slot(fresh) },
        _ => Change::Insert(slot(fresh)),
    };
    (point, change)
}

fn entries(state: &State) -> Vec<Entry> {
    let all = state.iter().flat_map(|(point, slots)| slots.iter().map(|slot| entry(*point, *slot)));
    all.collect()
}

#[test]
fn every_moment_since_the_oldest_kept_one_is_restored() {
    for seed in 0..100 {
        let mut chance = Chance::new(seed);
        let (mut state, mut undone, mut past) = (State::new(), Undone::default(), vec![State::new()]);
        for seq in 1..60 {
            let (point, change) = some_change(&state, &mut chance, seq);
            make(&mut state, point, change);
            undone.note(point, seq, change);
            past.push(state.clone());
        }
        let forgotten = chance.below(30);
        undone.forget(forgotten);
        for (at, then) in past.iter().enumerate().skip(forgotten as usize) {
            for (&point, slots) in &state {
                let mut slots = slots.clone();
                undone.undo(point, at as Seq, &mut slots);
                slots.sort_unstable();
                assert_eq!(&slots, then.get(&point).unwrap_or(&Vec::new()), "seed {seed}, seq {at}");
            }
            let mut all = entries(&state);
            let range = PointRange { start: 0, depth: 6 };
            undone.after(range, at as Seq).undo_all(&mut all);
            assert_eq!(all, entries(then), "seed {seed}, seq {at}");
        }
        undone.forget(Seq::MAX);
        assert_eq!(undone.len(), 0);
    }
}

#[test]
fn what_has_moved_is_found_where_it_is() {
    let mut undone = Undone::default();
    undone.note(point(1), 5, Change::Insert(slot(10)));
    undone.note(point(1), 6, Change::Replace { old: slot(10), new: slot(11) });
    undone.note(point(1), 7, Change::Remove(slot(11)));
    assert!(undone.refers_to(point(1), slot(10)) && !undone.refers_to(point(2), slot(10)));
    assert!(undone.relocate(point(1), slot(10), slot(20)));
    assert!(!undone.relocate(point(1), slot(10), slot(21)), "it is no longer there");
    assert!(!undone.relocate(point(2), slot(20), slot(21)), "nor at another point");
    for (at, expected) in [(4, vec![]), (5, vec![slot(20)]), (6, vec![slot(11)]), (7, vec![])] {
        let mut slots = Vec::new();
        undone.undo(point(1), at, &mut slots);
        assert_eq!(slots, expected, "at {at}");
    }
}
