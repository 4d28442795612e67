use super::*;

#[test]
fn a_class_holds_its_lengths_and_little_more() {
    let mut before = SizeClass::of(0);
    let lens = (0..20_000u64).chain((0..2_000).map(|step| 20_000 + step * 3_001)).chain([u64::MAX / 32]);
    for len in lens {
        let class = SizeClass::of(len);
        assert!(class >= before, "classes ascend with lengths: {len}");
        before = class;
        match class.read_bytes() {
            Some(bytes) => assert!((len..=len * 5 / 4 + 64).contains(&bytes), "{len} bytes in {bytes}"),
            None => assert!(len > 3 << 20, "{len}"),
        }
    }
    assert_eq!(SizeClass::of(3 << 20).read_bytes(), Some(3 << 20));
    assert_eq!(SizeClass::of((3 << 20) + 1).read_bytes(), None);
    assert_eq!(
        SizeClass::of(4_500 + 64 + 24).read_bytes(),
        Some(5_120),
        "a blob of elliptics: one read of 5 KiB"
    );
}

#[test]
fn a_slot_says_what_was_put_in() {
    let class = SizeClass::of(5_000);
    for address in [1, 2, 1 << 20, (1 << ADDRESS_BITS) - 1] {
        let slot = Slot::new(address, class).unwrap();
        assert_eq!((slot.address(), slot.class()), (address, class));
        assert_eq!(Slot::from_bits(slot.bits()), slot);
        assert_ne!(slot.bits(), 0);
    }
    assert_eq!(Slot::new(0, class), None);
    assert_eq!(Slot::new(1 << ADDRESS_BITS, class), None);
}

#[test]
fn a_point_is_the_first_bits_of_a_hash() {
    assert_eq!(Point::of_hash(u64::MAX).bits(), (1 << POINT_BITS) - 1);
    assert_eq!(Point::of_hash(0x1234_5678_9abc_def0).bits(), 0x12_3456_789a);
}
