use std::collections::BTreeSet;

use super::*;
use crate::slot::SizeClass;
use crate::tests::Chance;

fn slot(address: u64) -> Slot {
    Slot::new(address, SizeClass::of(address % 9_000)).unwrap()
}

fn source() -> Arc<Sheets> {
    Arc::new(Sheets::new(false))
}

/// A range of the sixth sector of this depth.
fn range(depth: u32) -> PointRange {
    PointRange { start: 5 << 34, depth }
}

type Model = BTreeSet<(u64, u64)>;

fn check(shard: &Shard, model: &Model) {
    assert_eq!(shard.keys(), model.len());
    let entries = shard.photo().entries();
    let found: Vec<(u64, u64)> = entries.iter().map(|entry| (entry.point, entry.slot)).collect();
    assert!(found.iter().eq(model.iter()), "all that is in it, ascending");
}

fn candidates(shard: &Shard, point: u64) -> Vec<u64> {
    let mut slots = Vec::new();
    shard.candidates(Point::from_bits(point), &mut slots);
    slots.sort_unstable();
    slots.into_iter().map(Slot::bits).collect()
}

fn in_model(model: &Model, point: u64) -> Vec<u64> {
    model.range((point, 0)..=(point, u64::MAX)).map(|(_, slot)| *slot).collect()
}

/// One change of a random program, applied to both.
fn step(shard: &mut Shard, model: &mut Model, chance: &mut Chance, point: u64, fresh: u64) {
    let here = in_model(model, point);
    let some = here.get(chance.below(here.len() as u64) as usize).copied();
    let gone = slot(1 << 40).bits();
    let old = if chance.below(8) == 0 { gone } else { some.unwrap_or(gone) };
    let is_there = model.contains(&(point, old));
    let (new, old) = (slot(fresh), Slot::from_bits(old));
    let at = Point::from_bits(point);
    match chance.below(5) {
        0 | 1 => {
            assert!(shard.change(at, Change::Insert(new)));
            assert!(!shard.change(at, Change::Insert(new)), "the same twice");
            model.insert((point, new.bits()));
        }
        2 => {
            assert_eq!(shard.change(at, Change::Replace { old, new }), is_there);
            if is_there {
                model.remove(&(point, old.bits()));
                model.insert((point, new.bits()));
            }
        }
        _ => {
            assert_eq!(shard.change(at, Change::Remove(old)), is_there);
            model.remove(&(point, old.bits()));
        }
    }
    assert_eq!(candidates(shard, point), in_model(model, point));
}

/// How the points of a program are chosen, given how wide the range is.
type Choice = fn(&mut Chance, u64) -> u64;

const CHOICES: [(&str, Choice); 5] = [
    ("anywhere", |chance, width| chance.below(width)),
    ("one point", |_, width| width / 3),
    ("few points of one home", |chance, _| chance.below(40)),
    ("few points of the last home", |chance, width| width - 1 - chance.below(40)),
    ("points of one print", |chance, width| chance.below(1 << 10) << 14 & (width - 1)),
];

#[test]
fn it_is_a_set_of_slots_by_point_for_any_points() {
    for (name, choose) in CHOICES {
        for seed in 0..12 {
            let mut chance = Chance::new(seed);
            let range = range(6 + 4 * (seed as u32 % 5));
            let (mut shard, mut model) = (Shard::new(range, 0, &source()), Model::new());
            let steps = if name == "anywhere" { 3_000 } else { 500 };
            for fresh in 1..=steps {
                let point = range.start + choose(&mut chance, range.width());
                step(&mut shard, &mut model, &mut chance, point, fresh);
            }
            check(&shard, &model);
            let asked = range.start + chance.below(range.width());
            assert_eq!(candidates(&shard, asked), in_model(&model, asked), "{name}, seed {seed}");
            let (lower, upper) = shard.split();
            let upper_model = model.split_off(&(upper.range().start, 0));
            assert_eq!((lower.range().start, upper.range().end()), (range.start, range.end()));
            check(&lower, &model);
            check(&upper, &upper_model);
        }
    }
}

#[test]
fn it_grows_and_shrinks_within_its_bounds() {
    let range = range(9);
    let mut shard = Shard::new(range, 0, &source());
    let mut chance = Chance::new(1);
    let points: Vec<u64> = (0..30_000).map(|_| range.start + chance.below(range.width())).collect();
    let taken = |shard: &Shard| shard.keys() as f64 / (shard.sheets.len() * SHEET_SLOTS) as f64;
    for (number, point) in points.iter().enumerate() {
        assert!(shard.change(Point::from_bits(*point), Change::Insert(slot(number as u64 + 1))));
        assert!(
            number < 4_000 || (0.66..=0.84).contains(&taken(&shard)),
            "{} keys, {}",
            number + 1,
            taken(&shard)
        );
    }
    for (number, point) in points.iter().enumerate() {
        assert!(shard.change(Point::from_bits(*point), Change::Remove(slot(number as u64 + 1))));
        assert!(shard.sheets.len() == 1 || taken(&shard) >= 0.34, "{}", taken(&shard));
    }
    assert_eq!((shard.keys(), shard.sheets.len()), (0, 1));
}

#[test]
fn nearly_all_slots_lie_at_home() {
    let range = range(9);
    let mut shard = Shard::new(range, 0, &source());
    let mut chance = Chance::new(2);
    while shard.keys() < 16_000 || (shard.keys() + 1) * 100 <= shard.sheets.len() * SHEET_SLOTS * FULL_PERCENT
    {
        let point = range.start + chance.below(range.width());
        shard.change(Point::from_bits(point), Change::Insert(slot(shard.keys() as u64 + 1)));
    }
    // As full as it can get.
    let mut elsewhere = 0;
    for line in 0..shard.lines() {
        let mut taken = shard.line(line).taken();
        while taken != 0 {
            elsewhere += usize::from(shard.home(shard.point_at(line, taken.trailing_zeros())) != line);
            taken &= taken - 1;
        }
    }
    let share = elsewhere as f64 / shard.keys() as f64;
    let crowded = (0..shard.lines()).filter(|&line| shard.line(line).far() > 0).count();
    let crowded = crowded as f64 / shard.lines() as f64;
    assert!(share < 0.13, "{share} of the slots");
    assert!(crowded < 0.35, "{crowded} of the lines");
    assert!(shard.reach < 60, "{} lines from home", shard.reach);
}

#[test]
fn a_home_knows_how_far_its_furthest_slot_is() {
    let range = range(6);
    let mut shard = Shard::new(range, 0, &source());
    let mut chance = Chance::new(3);
    let mut there = Vec::new();
    for address in 1..3_000 {
        // Three homes, one of them the last.
        let point = Point::from_bits(
            range.start + [0, range.width() / 2, range.width() - 1][chance.below(3) as usize],
        );
        if chance.below(2) == 0 && there.len() < 150 {
            assert!(shard.change(point, Change::Insert(slot(address))));
            there.push((point, slot(address)));
        } else if !there.is_empty() {
            let (point, slot) = there.swap_remove(chance.below(there.len() as u64) as usize);
            assert!(shard.change(point, Change::Remove(slot)));
        }
        for home in (0..shard.lines()).filter(|&home| shard.far(home) > 0) {
            assert!(shard.has_guest(shard.beyond(home, shard.far(home)), home));
        }
    }
    there.drain(..).for_each(|(point, slot)| assert!(shard.change(point, Change::Remove(slot))));
    assert!((0..shard.lines()).all(|home| shard.far(home) == 0));
}

#[test]
fn indistinguishable_keys_are_split_all_the_same() {
    let range = range(6);
    let mut shard = Shard::new(range, 0, &source());
    let last = range.end() - 1;
    (1..=1_000)
        .for_each(|address| assert!(shard.change(Point::from_bits(last), Change::Insert(slot(address)))));
    let (lower, upper) = shard.split();
    assert_eq!((lower.keys(), upper.keys()), (0, 1_000));
    assert_eq!(candidates(&upper, last).len(), 1_000);
    assert!(candidates(&upper, last - 1).is_empty());
}

#[test]
fn locked_sheets_are_used_again() {
    let source = Arc::new(Sheets::new(true));
    let shard = Shard::new(range(6), 5_000, &source);
    let locked = shard.locked_bytes();
    drop(shard);
    assert_eq!(source.free_bytes(), locked, "all of them, or none where the system refuses");
    let again = Shard::new(range(6), 5_000, &source);
    assert_eq!((source.free_bytes(), again.locked_bytes()), (0, locked));
    assert!(again.photo().entries().is_empty());
}
