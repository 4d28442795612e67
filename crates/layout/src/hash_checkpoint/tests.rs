use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;

const NUMBER: u64 = 12;

fn slot() -> impl Strategy<Value = u64> {
    (1u64..1 << ADDRESS_BITS, 0u64..64).prop_map(|(address, class)| class << ADDRESS_BITS | address)
}

prop_compose! {
    fn range()(depth in DEPTH_MIN..=DEPTH_MAX, bits in any::<u64>()) -> PointRange {
        let width = PointRange { start: 0, depth }.width();
        PointRange { start: bits % (1 << POINT_BITS) / width * width, depth }
    }
}

prop_compose! {
    fn piece()(range in range(), within in btree_set((any::<u64>(), slot()), 0..40)) -> (PointRange, Vec<Entry>) {
        let entry = |(bits, slot)| Entry { point: range.start + bits % range.width(), slot };
        let mut entries: Vec<Entry> = within.into_iter().map(entry).collect();
        entries.sort_unstable();
        entries.dedup();
        (range, entries)
    }
}

fn stored(range: PointRange, entries: &[Entry], offset: u64) -> (Vec<u8>, PieceEntry) {
    let mut out = Vec::new();
    put_piece(&mut out, range, entries, NUMBER, offset);
    let (keys, len_bytes) = (entries.len() as u64, out.len() as u64);
    (out, PieceEntry { range, keys, seq: 5, offset, len_bytes })
}

/// Ranges that hold all points, with the given depths where they fit.
fn tiling(depths: &[u32]) -> Vec<PointRange> {
    let (mut ranges, mut start) = (Vec::new(), 0u64);
    let mut depths = depths.iter().cycle();
    while start < 1 << POINT_BITS {
        let fits = POINT_BITS - start.trailing_zeros().min(POINT_BITS - DEPTH_MIN);
        let depth = depths.next().map_or(fits, |depth| fits.max(*depth));
        ranges.push(PointRange { start, depth });
        start += PointRange { start, depth }.width();
    }
    ranges
}

fn directory(ranges: &[PointRange]) -> Directory {
    let mut at = 0;
    let piece = |(number, range): (usize, &PointRange)| {
        let len_bytes = 8 + 9 * (number as u64 % 300);
        at += len_bytes;
        let (keys, seq) = (number as u64 % 300, 1 << (number % 60));
        PieceEntry { range: *range, keys, seq, offset: at - len_bytes, len_bytes }
    };
    Directory { pieces: ranges.iter().enumerate().map(piece).collect() }
}

fn end_of(directory: &Directory) -> u64 {
    directory.pieces.last().map_or(0, |piece| piece.offset + piece.len_bytes)
}

proptest! {
    #[test]
    fn a_piece_comes_back((range, entries) in piece(), offset in 0u64..1 << 50) {
        let (bytes, said) = stored(range, &entries, offset);
        prop_assert_eq!(read_piece(&bytes, &said, NUMBER), Ok(entries));
    }

    #[test]
    fn a_piece_with_any_byte_changed_or_missing_is_refused((range, entries) in piece(), flip in 1u8..) {
        let (bytes, said) = stored(range, &entries, 4096);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= flip;
            prop_assert_eq!(read_piece(&other, &said, NUMBER), Err(Malformed::Checksum), "byte {}", at);
            prop_assert!(read_piece(&bytes[..at], &said, NUMBER).is_err(), "cut at {}", at);
        }
    }

    #[test]
    fn a_piece_belongs_to_one_place_of_one_file((range, entries) in piece()) {
        let (bytes, said) = stored(range, &entries, 4096);
        prop_assert!(read_piece(&bytes, &said, NUMBER + 1).is_err());
        for keys in [said.keys + 1, said.keys.wrapping_sub(1)] {
            let wrong = PieceEntry { keys, ..said };
            prop_assert!(read_piece(&bytes, &wrong, NUMBER).is_err(), "{} keys", keys);
        }
        let elsewhere = PieceEntry { offset: 4097, ..said };
        prop_assert_eq!(read_piece(&bytes, &elsewhere, NUMBER), Err(Malformed::Checksum));
    }

    #[test]
    fn a_directory_comes_back_and_no_change_goes_unnoticed(depths in vec(DEPTH_MIN..12, 1..20), flip in 1u8..) {
        let directory = directory(&tiling(&depths));
        let offset = end_of(&directory);
        let mut bytes = Vec::new();
        directory.put(&mut bytes, NUMBER, offset);
        prop_assert_eq!(Directory::read(&bytes, NUMBER, offset), Ok(directory));
        prop_assert!(Directory::read(&bytes, NUMBER, offset + 1).is_err());
        prop_assert!(Directory::read(&bytes, NUMBER + 1, offset).is_err());
        for at in (0..bytes.len()).step_by(bytes.len() / 100 + 1) {
            prop_assert!(Directory::read(&bytes[..at], NUMBER, offset).is_err(), "cut at {}", at);
            bytes[at] ^= flip;
            prop_assert_eq!(Directory::read(&bytes, NUMBER, offset), Err(Malformed::Checksum), "byte {}", at);
            bytes[at] ^= flip;
        }
    }

    #[test]
    fn no_bytes_panic(
        bytes in vec(any::<u8>(), 0..200),
        (range, keys) in (range(), 0u64..30),
        (offset, number) in (any::<u64>(), any::<u64>()),
    ) {
        // Once as they are, and once with a correct checksum, so that the rest is examined.
        let mut summed = bytes.clone();
        put_sum(&mut summed, 0, number, offset);
        for bytes in [&bytes, &summed] {
            let said = PieceEntry { range, keys, seq: 1, offset, len_bytes: bytes.len() as u64 };
            let _ = read_piece(bytes, &said, number);
            let _ = Directory::read(bytes, number, offset);
            if let Some(bytes) = bytes.first_chunk() {
                let _ = CheckpointFooter::read(bytes, number, offset);
            }
        }
    }
}

fn entry(point: u64, address: u64) -> Entry {
    Entry { point, slot: address }
}

#[test]
fn what_is_whole_but_makes_no_sense_is_refused() {
    let range = PointRange { start: 1 << 30, depth: 10 };
    let first = range.start;
    let read = |entries: &[Entry]| {
        let (bytes, said) = stored(range, entries, 0);
        read_piece(&bytes, &said, NUMBER)
    };
    assert!(read(&[entry(first, 7), entry(first, 8), entry(range.end() - 1, 1)]).is_ok());
    assert_eq!(read(&[entry(first, 7), entry(first, 7)]), Err(Malformed::Order), "the same twice");
    assert_eq!(read(&[entry(first, 8), entry(first, 7)]), Err(Malformed::Order));
    assert_eq!(read(&[entry(first, 1 << ADDRESS_BITS)]), Err(Malformed::Bounds), "no address");
    assert_eq!(read(&[entry(first, 1 << SLOT_BITS | 1)]), Err(Malformed::Bounds), "no slot");
    assert_eq!(read(&[entry(range.end(), 1)]), Err(Malformed::Bounds), "beyond the range");
    assert!(read(&[entry(first + 1, 1), entry(first, 1)]).is_err(), "backward");
}

#[test]
fn pieces_hold_all_points_and_all_bytes() {
    let whole = tiling(&[DEPTH_MIN]);
    assert_eq!(whole.len(), 64);
    let read = |directory: &Directory, offset| {
        let mut bytes = Vec::new();
        directory.put(&mut bytes, NUMBER, offset);
        Directory::read(&bytes, NUMBER, offset)
    };
    let good = directory(&whole);
    let end = end_of(&good);
    assert_eq!(read(&good, end).map(|read| (read.keys(), read.seq())), Ok((63 * 64 / 2, 1)));
    assert_eq!(read(&good, end + 1), Err(Malformed::Bounds), "bytes that are in no piece");
    let fewer = Directory { pieces: good.pieces[..63].to_vec() };
    assert_eq!(read(&fewer, end_of(&fewer)), Err(Malformed::Bounds), "points that are in no piece");
    for depth in [DEPTH_MIN - 1, DEPTH_MAX + 1, 41, 255] {
        let mut wrong = good.clone();
        wrong.pieces[3].range.depth = depth;
        assert_eq!(read(&wrong, end), Err(Malformed::Order), "depth {depth}");
    }
    let mut wrong = good.clone();
    wrong.pieces[3].keys = 1_000;
    assert_eq!(read(&wrong, end), Err(Malformed::Bounds), "more keys than fit");
    let mut wrong = good;
    (wrong.pieces[0].len_bytes, wrong.pieces[0].keys) = (7, 0);
    assert_eq!(read(&wrong, end), Err(Malformed::Bounds), "too short for its checksum");
}

#[test]
fn a_footer_belongs_to_one_file() {
    let footer = CheckpointFooter { number: NUMBER, file_bytes: 1000, directory_offset: 700, salt: 0xabcd };
    let mut bytes = Vec::new();
    footer.put(&mut bytes);
    let mut bytes = <[u8; CHECKPOINT_FOOTER_BYTES]>::try_from(&bytes[..]).unwrap();
    assert_eq!(CheckpointFooter::read(&bytes, NUMBER, 1000), Ok(footer));
    assert_eq!(footer.directory(), 700..936);
    assert!(CheckpointFooter::read(&bytes, NUMBER + 1, 1000).is_err());
    assert!(CheckpointFooter::read(&bytes, NUMBER, 1001).is_err());
    assert!(CheckpointFooter::read(&bytes, NUMBER, 10).is_err());
    for at in 0..bytes.len() {
        bytes[at] ^= 0x20;
        assert!(CheckpointFooter::read(&bytes, NUMBER, 1000).is_err(), "byte {at}");
        bytes[at] ^= 0x20;
    }
    bytes[8] = 2;
    assert_eq!(
        CheckpointFooter::read(&bytes, NUMBER, 1000),
        Err(Malformed::Checksum.into()),
        "a damaged version"
    );
    let mut newer = bytes[..CHECKPOINT_FOOTER_BYTES - SUM_BYTES].to_vec();
    put_sum(&mut newer, 0, NUMBER, 1000 - CHECKPOINT_FOOTER_BYTES as u64);
    let newer = <[u8; CHECKPOINT_FOOTER_BYTES]>::try_from(&newer[..]).unwrap();
    assert_eq!(CheckpointFooter::read(&newer, NUMBER, 1000), Err(FooterFault::Newer(2)));
}
