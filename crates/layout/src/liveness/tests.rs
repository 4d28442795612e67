use super::*;

#[test]
fn what_a_part_points_to_reads_back() {
    let mut liveness = Liveness::default();
    for (segment, unit, bytes) in [(7, 4000, 2080), (7, 256, 4096), (3, 256, 16)] {
        liveness.note(ValuePlace { segment, unit }, bytes);
    }
    let mut bytes = Vec::new();
    liveness.put(&mut bytes, 5);
    let read = Liveness::open(&bytes, 5).unwrap();
    assert_eq!(read, liveness);
    assert_eq!(read.units(7), [256, 4000]);
    assert!(read.units(8).is_empty());
    let uses = read.uses();
    assert_eq!(uses[0], SegmentUse { segment: 3, count: 1, bytes: 16, end: 257 });
    assert_eq!(uses[1], SegmentUse { segment: 7, count: 2, bytes: 6176, end: 4130 });
    assert!(Liveness::open(&bytes, 6).is_err());
    assert!(Liveness::open(&bytes[1..], 5).is_err());
}

#[test]
fn a_count_that_the_bytes_do_not_hold_takes_no_memory() {
    let mut bytes = Vec::new();
    for number in [1, 7, u64::MAX, 0, 0] {
        put_varint(&mut bytes, number);
    }
    seal(&mut bytes, 0, Encoding::Liveness, Compression::None, 5, &mut Vec::new());
    assert!(Liveness::open(&bytes, 5).is_err());
}
