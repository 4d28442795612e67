use proptest::prelude::*;

use super::*;

const NUMBER: FileNumber = FileNumber(31);

/// A file without records: header, pages, top, footer.
fn file_of(segments: &[(u32, Vec<Move>)]) -> Vec<u8> {
    let mut out = header(NUMBER);
    let map_at = out.len() as u64;
    let mut carried = Vec::new();
    for (segment, moves) in segments {
        let offset = out.len() as u64;
        carried.push(put_pages(&mut out, (NUMBER, offset), *segment, 16 * moves.len() as u64, moves));
    }
    Top::new(map_at, carried).put(&mut out, NUMBER);
    out
}

fn open(file: &[u8]) -> Result<(Footer, Top), Malformed> {
    check_header(file, NUMBER)?;
    let at = file.len().checked_sub(RELOCATED_FOOTER_BYTES).ok_or(Malformed::Short)?;
    let footer = Footer::decode(&file[at..], NUMBER, file.len() as u64)?;
    let top = file.get(footer.top_at as usize..at).ok_or(Malformed::Short)?;
    Ok((footer, Top::open(top, NUMBER, &footer)?))
}

fn find(file: &[u8], top: &Top, segment: u32, old: u32) -> Result<Option<u32>, Malformed> {
    let Some(at) = top.page_of(segment, old) else { return Ok(None) };
    let bytes = file.get(at as usize..).ok_or(Malformed::Short)?;
    Ok(Page::open(bytes, (NUMBER, at), segment)?.find(old))
}

/// The units of a segment, each at its own distance, moved close together.
fn moves(first: u32, count: u32, step: u32) -> Vec<Move> {
    (0..count).map(|at| Move { old: first + at * step, new: 256 + at }).collect()
}

#[test]
fn what_was_moved_is_found_and_nothing_else() {
    let segments = [(4, moves(256, 1, 1)), (9, moves(300, 510, 3)), (10, moves(256, 1021, 2))];
    let file = file_of(&segments);
    let (footer, top) = open(&file).unwrap();
    assert_eq!((footer.map_at, footer.top_at), (4096, 4096 + (1 + 1 + 3) * 4096));
    assert_eq!(top.carried.iter().map(|one| one.values).collect::<Vec<_>>(), [1, 510, 1021]);
    for (segment, moves) in &segments {
        for one in moves {
            assert_eq!(find(&file, &top, *segment, one.old), Ok(Some(one.new)));
        }
        let told: Vec<Move> = top
            .pages(*segment)
            .flat_map(|at| {
                Page::open(&file[at as usize..], (NUMBER, at), *segment).unwrap().moves().collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(&told, moves);
    }
    for (segment, old) in [(4, 255), (4, 257), (9, 299), (9, 301), (10, 257), (10, 3000), (5, 256), (11, 256)]
    {
        assert_eq!(find(&file, &top, segment, old), Ok(None), "{segment} {old}");
    }
    assert_eq!(top.pages(5).count(), 0);
}

#[test]
fn a_file_may_carry_segments_of_which_nothing_is_left() {
    let file = file_of(&[(4, Vec::new()), (6, moves(256, 2, 5))]);
    let (_, top) = open(&file).unwrap();
    assert_eq!(find(&file, &top, 4, 256), Ok(None));
    assert_eq!(find(&file, &top, 6, 261), Ok(Some(257)));
}

#[test]
fn every_byte_counts() {
    let segments = [(4, moves(256, 3, 1)), (9, moves(300, 511, 3))];
    let file = file_of(&segments);
    let whole = |file: &[u8]| -> Result<(), Malformed> {
        let (_, top) = open(file)?;
        for (segment, moves) in &segments {
            for one in moves {
                if find(file, &top, *segment, one.old)? != Some(one.new) {
                    return Err(Malformed::Order);
                }
            }
        }
        Ok(())
    };
    assert_eq!(whole(&file), Ok(()));
    for at in 0..file.len() {
        let mut flipped = file.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(whole(&flipped).is_err(), "byte {at}");
    }
    for len in (0..file.len()).step_by(7) {
        assert!(whole(&file[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn a_page_is_one_of_its_place() {
    let file = file_of(&[(4, moves(256, 3, 1)), (9, moves(300, 511, 3))]);
    let page = &file[4096..8192];
    assert!(Page::open(page, (NUMBER, 4096), 4).is_ok());
    assert_eq!(Page::open(page, (NUMBER, 8192), 4).err(), Some(Malformed::Checksum));
    assert_eq!(Page::open(page, (FileNumber(30), 4096), 4).err(), Some(Malformed::Checksum));
    assert_eq!(Page::open(page, (NUMBER, 4096), 9).err(), Some(Malformed::Order));
    assert_eq!(Page::open(&page[..4095], (NUMBER, 4096), 4).err(), Some(Malformed::Short));
}

proptest! {
    #[test]
    fn whatever_was_moved_is_found(
        steps in proptest::collection::vec(proptest::collection::vec((1u32..9, 1u32..9), 0..1300), 1..4),
    ) {
        let segments: Vec<(u32, Vec<Move>)> = steps
            .iter()
            .zip(7..)
            .map(|(steps, segment)| {
                let (mut old, mut new) = (255, 255);
                let moves = steps.iter().map(|&(by, to)| {
                    (old, new) = (old + by, new + to);
                    Move { old, new }
                });
                (segment, moves.collect())
            })
            .collect();
        let file = file_of(&segments);
        let (_, top) = open(&file).unwrap();
        for (segment, moves) in &segments {
            let mut last = 255;
            for one in moves {
                prop_assert_eq!(find(&file, &top, *segment, one.old), Ok(Some(one.new)));
                for absent in last + 1..one.old {
                    prop_assert_eq!(find(&file, &top, *segment, absent), Ok(None));
                }
                last = one.old;
            }
            prop_assert_eq!(find(&file, &top, *segment, last + 1), Ok(None));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), pages in 0u64..4) {
        let _ = open(&bytes);
        let _ = Footer::decode(&bytes, NUMBER, bytes.len() as u64);
        let map_at = 4096;
        let top_at = map_at + 4096 * pages;
        let top_hash = hash64(place_seed(NUMBER.0, top_at), &bytes);
        let footer = Footer { map_at, top_at, top_bytes: bytes.len() as u64, top_hash };
        if let Ok(top) = Top::open(&bytes, NUMBER, &footer) {
            for one in &top.carried {
                for &first in &one.page_firsts {
                    prop_assert!(top.page_of(one.segment, first).is_some_and(|at| at < top_at));
                }
            }
        }
        let _ = Page::of_checked(&bytes, 7);
    }
}
