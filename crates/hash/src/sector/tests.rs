use super::*;
use crate::slot::{SizeClass, Slot};
use crate::tests::Chance;

const NUMBER: usize = 9;

fn slot(address: u64) -> Slot {
    Slot::new(address, SizeClass::of(100)).unwrap()
}

fn start() -> u64 {
    (NUMBER as u64) << (POINT_BITS - SECTOR_BITS)
}

/// Every place leads to the shard that holds it, and the ranges hold all points.
fn check(sector: &Sector) {
    let width = range_of(NUMBER).width() >> sector.depth;
    for place in 0..sector.places.len() as u64 {
        let point = start() + place * width;
        let range = sector.held(Point::from_bits(point)).range();
        assert!(range.contains(point) && range.contains(point + width - 1), "{point:x} in {range:?}");
    }
    let width: u64 = sector.all().map(|held| held.range().width()).sum();
    assert_eq!(width, range_of(NUMBER).width());
}

#[test]
fn shards_are_split_where_keys_crowd() {
    let mut chance = Chance::new(1);
    let mut sector = Sector::new(NUMBER, &Arc::new(Sheets::new(false)));
    let mut points = Vec::new();
    for address in 1..6_000u64 {
        // Half of them anywhere, half in a 2^12th.
        let bits = if address % 2 == 0 { 34 } else { 22 };
        let point = Point::from_bits(start() + chance.below(1 << bits));
        assert_eq!(sector.change(point, Change::Insert(slot(address)), Some(address)), Some(true));
        points.push(point);
    }
    check(&sector);
    assert!(
        sector.held.len() >= 4 && sector.depth >= 5,
        "{} shards, depth {}",
        sector.held.len(),
        sector.depth
    );
    let largest =
        sector.all().map(|held| matches!(held, Held::Loaded(shard) if shard.keys() > SHARD_KEYS_MAX));
    assert!(!largest.into_iter().any(|is_too_large| is_too_large), "all are small");
    for (number, point) in points.iter().enumerate() {
        let Held::Loaded(shard) = sector.held(*point) else { panic!("a loaded shard") };
        let mut slots = Vec::new();
        shard.candidates(*point, &mut slots);
        assert!(slots.contains(&slot(number as u64 + 1)));
    }
}

#[test]
fn keys_of_one_point_end_the_splitting() {
    let mut sector = Sector::new(NUMBER, &Arc::new(Sheets::new(false)));
    let point = Point::from_bits(start() + 12_345);
    for address in 1..SHARD_KEYS_MAX as u64 + 40 {
        // Many at once, without checking whether they are already there, which takes longer the
        // more there are.
        let Held::Loaded(shard) = sector.held_mut(point) else { panic!("a loaded shard") };
        shard.insert(point, slot(address));
    }
    for address in 0..30 {
        assert_eq!(sector.change(point, Change::Remove(slot(address + 1)), None), Some(true));
    }
    check(&sector);
    assert_eq!(sector.depth, DEPTH_MAX - SECTOR_BITS);
    assert!(sector.places.len() <= 1 << 16);
}
