use super::*;

#[test]
fn a_pointer_reads_back_as_it_was_put_and_can_be_moved() {
    let place = ValuePlace { segment: 7, unit: 256 };
    let pointer = Pointer { place, time_ms: 1_763_706_328_000, hash: 0xdead_beef, len: 8192, head: b"png" };
    let mut bytes = Vec::new();
    pointer.put(&mut bytes);
    assert_eq!(Pointer::decode(&bytes), Ok(pointer));
    assert_eq!(place.offset(), 4096);
    let elsewhere = ValuePlace { segment: 9, unit: 1 };
    Pointer::move_to(&mut bytes, elsewhere);
    assert_eq!(Pointer::decode(&bytes), Ok(Pointer { place: elsewhere, ..pointer }));
    Pointer::patch(&mut bytes, place, 5);
    assert_eq!(Pointer::decode(&bytes), Ok(Pointer { time_ms: 5, ..pointer }));
}

#[test]
fn bytes_that_are_cut_or_too_long_are_no_pointer() {
    let mut bytes = Vec::new();
    let place = ValuePlace::default();
    Pointer { place, time_ms: 1, hash: 2, len: 300, head: b"h" }.put(&mut bytes);
    for len in 0..bytes.len() {
        assert!(Pointer::decode(&bytes[..len]).is_err());
    }
    bytes.push(0);
    assert!(Pointer::decode(&bytes).is_err());
}

#[test]
fn the_hash_of_a_value_knows_its_key() {
    assert_ne!(value_hash(b"a", b"v"), value_hash(b"b", b"v"));
    assert_ne!(value_hash(b"a", b"v"), value_hash(b"a", b"w"));
}
