use super::*;

fn place(unit: u32) -> ValuePlace {
    ValuePlace { segment: 7, unit }
}

fn built(pieces: &[Piece<'_>]) -> Vec<u8> {
    let (mut rope, mut out) = (RopeBuilder::default(), Vec::new());
    pieces.iter().for_each(|piece| rope.push(*piece));
    rope.put(1000, b"he", &mut out);
    out
}

#[test]
fn a_rope_reads_back_as_it_was_put_and_neighbors_inline_are_one() {
    let separated = |unit, len| Piece::Separated { place: place(unit), hash: unit, len, at: 0 };
    let inline = |bytes| Piece::Inline(bytes);
    let bytes = built(&[
        inline(b"a"),
        inline(b""),
        inline(b"bc"),
        separated(1, 300),
        separated(2, 5 << 30),
        inline(b","),
    ]);
    let rope = Rope::decode(&bytes).unwrap();
    assert_eq!((rope.time_ms, rope.head, rope.len, rope.pieces), (1000, &b"he"[..], 304 + (5 << 30), 4));
    assert!(rope.as_pointer().is_none());
    let units: Vec<u32> = rope.pointers().map(|pointer| pointer.place.unit).collect();
    assert_eq!(units, [1, 2]);
    assert_eq!(rope.iter().map(|piece| piece.len()).collect::<Vec<_>>(), [3, 300, 5 << 30, 1]);
    // A piece is moved to the place that it names.
    let mut moved = bytes.clone();
    for piece in rope.iter() {
        if let Piece::Separated { at, place: ValuePlace { unit, .. }, .. } = piece {
            Pointer::move_to(&mut moved[at..], ValuePlace { segment: 9, unit: unit + 10 });
        }
    }
    let after: Vec<_> =
        Rope::decode(&moved).unwrap().pointers().map(|one| (one.place.segment, one.place.unit)).collect();
    assert_eq!(after, [(9, 11), (9, 12)]);
    assert_eq!(Rope::decode(&moved).unwrap().hash(b"k"), rope.hash(b"k"), "the hash says nothing of places");
    assert_ne!(rope.hash(b"k"), rope.hash(b"l"));
}

#[test]
fn one_piece_is_a_pointer() {
    let bytes = built(&[Piece::Separated { place: place(3), hash: 5, len: 70, at: 0 }]);
    let pointer = Pointer { place: place(3), time_ms: 1000, hash: 5, len: 70, head: b"he" };
    assert_eq!(Pointer::decode(&bytes), Ok(pointer));
    let rope = Rope::decode(&bytes).unwrap();
    assert_eq!((rope.as_pointer(), rope.pieces, rope.hash(b"k"), rope.len), (Some(pointer), 1, 5, 70));
    assert_eq!(
        rope.iter().collect::<Vec<_>>(),
        [Piece::Separated { place: place(3), hash: 5, len: 70, at: 0 }]
    );
}

#[test]
fn a_rope_says_until_when_its_value_lasts_and_so_does_a_pointer() {
    for pieces in 1..3 {
        let (mut rope, mut out) = (RopeBuilder::default(), b"before".to_vec());
        (0..pieces).for_each(|unit| rope.push_separated(place(unit), unit, 300));
        let at = rope.put_until(1000, Some(5000), b"he", &mut out).unwrap();
        out[at..at + 8].copy_from_slice(&7000_u64.to_le_bytes());
        let bytes = &mut out[6..];
        Pointer::date(bytes, 2000);
        let rope = Rope::decode(bytes).unwrap();
        assert_eq!((rope.time_ms, rope.deadline_ms, rope.head), (2000, Some(7000), &b"he"[..]));
        assert_eq!((rope.pieces, rope.len), (pieces, 300 * u64::from(pieces)));
        let mut moved = bytes.to_vec();
        for piece in rope.iter() {
            if let Piece::Separated { at, .. } = piece {
                Pointer::move_to(&mut moved[at..], place(9));
            }
        }
        let moved = Rope::decode(&moved).unwrap();
        assert!(moved.pointers().all(|pointer| pointer.place == place(9)));
        assert_eq!(moved.deadline_ms, Some(7000));
        for len in 0..bytes.len() {
            // A pointer without its deadline is one all the same.
            let is_pointer = pieces == 1 && len == bytes.len() - 8;
            assert_eq!(Rope::decode(&bytes[..len]).is_ok(), is_pointer, "{pieces} {len}");
        }
    }
}

#[test]
fn bytes_that_are_cut_too_long_or_in_another_form_are_no_rope() {
    let bytes =
        built(&[Piece::Inline(b"abc"), Piece::Separated { place: place(1), hash: 2, len: 300, at: 0 }]);
    assert!(Rope::decode(&bytes).is_ok());
    for len in 0..bytes.len() {
        assert!(Rope::decode(&bytes[..len]).is_err(), "{len}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(Rope::decode(&longer).is_err());
    let front = &bytes[..16 + 3];
    for pieces in [
        &[3, b'a', 3, b'b'][..],
        &[1],
        &[3, b'a'],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
    ] {
        assert!(Rope::decode(&[front, pieces].concat()).is_err(), "{pieces:?}");
    }
}
