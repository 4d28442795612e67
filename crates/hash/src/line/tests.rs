use super::*;
use crate::slot::SizeClass;
use crate::tests::Chance;

fn slot(address: u64) -> Slot {
    Slot::new(address, SizeClass::of(address)).unwrap()
}

#[test]
fn a_line_is_one_cache_line() {
    assert_eq!((size_of::<Line>(), align_of::<Line>()), (64, 64));
}

#[test]
fn a_line_is_a_list_of_six_places() {
    for seed in 0..200 {
        let mut chance = Chance::new(seed);
        let (mut line, mut model) = (Line::EMPTY, [None; LINE_SLOTS]);
        for step in 1..100u64 {
            // Few points, some of them with the same print or the same tag.
            let point = Point::from_bits(
                chance.below(3) << 39 | chance.below(2) << 33 | chance.below(2) << 14 | chance.below(3),
            );
            let at = chance.below(LINE_SLOTS as u64) as usize;
            match chance.below(3) {
                0 => {
                    let free = model.iter().position(Option::is_none);
                    assert_eq!(line.put(point, slot(step)), free.is_some());
                    if let Some(free) = free {
                        model[free] = Some((point, slot(step)));
                    }
                }
                1 if model[at].is_some() => {
                    line.replace(at as u32, slot(step));
                    model[at] = model[at].map(|(point, _)| (point, slot(step)));
                }
                _ => {
                    line.clear(at as u32);
                    model[at] = None;
                }
            }
            check(&line, &model, point);
        }
    }
}

/// What the line knows of a point: everything except the bits of the sector.
fn known(point: Point) -> u64 {
    point.bits() & ((1 << LINE_POINT_BITS) - 1)
}

fn check(line: &Line, model: &[Option<(Point, Slot)>; LINE_SLOTS], asked: Point) {
    for (at, place) in model.iter().enumerate() {
        let at = at as u32;
        assert_eq!(line.taken() >> at & 1 == 1, place.is_some());
        let Some((point, slot)) = place else {
            assert_eq!(line.matching(asked) >> at & 1, 0);
            continue;
        };
        assert_eq!((line.point_bits(at), line.slot(at)), (known(*point), *slot));
        assert_eq!(line.matching(asked) >> at & 1 == 1, known(*point) == known(asked));
    }
}

#[test]
fn the_distance_of_slots_is_known_up_to_a_bound() {
    let mut line = Line::EMPTY;
    assert!((0..6).all(|_| line.put(Point::from_bits(u64::MAX), slot(1))));
    for lines in [0, 1, 17, 254, 255, 256, 100_000, 3] {
        line.set_far(lines);
        assert_eq!(line.far(), lines.min(FAR_MAX));
        assert_eq!(line.point_bits(5), (1 << LINE_POINT_BITS) - 1, "no tag was touched");
    }
}
