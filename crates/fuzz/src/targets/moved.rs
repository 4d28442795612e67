//! Files of relocated values: the end of a file, and a page of its map.
//!
//! The inputs are as they are in a file with the number 7: top and footer after two pages that
//! begin at 4096, and a page of segment 5 at 4096.

use folddb_base::FileNumber;
use folddb_base::checksum::{hash64, place_seed};
use folddb_layout::relocated::{
    Footer, MAP_PAGE_BYTES, MAP_PAGE_VALUES, Move, Page, RELOCATED_FOOTER_BYTES, Top, put_pages,
};

use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    Target::new("moved-end", end, end_seeds).sealed_by(seal_end),
    Target::new("moved-page", page, page_seeds).sealed_by(seal_page),
];

const NUMBER: FileNumber = FileNumber(7);
const MAP_AT: u64 = 4096;
const PAGES: u64 = 2;
const SEGMENT: u32 = 5;

fn top_at() -> u64 {
    MAP_AT + PAGES * MAP_PAGE_BYTES as u64
}

fn end(input: &[u8]) {
    let Some(at) = input.len().checked_sub(RELOCATED_FOOTER_BYTES) else { return };
    let Ok(footer) = Footer::decode(&input[at..], NUMBER, top_at() + input.len() as u64) else { return };
    assert!(footer.map_at <= footer.top_at && footer.top_at + footer.top_bytes == top_at() + at as u64);
    if footer.top_at != top_at() {
        return;
    }
    let Ok(top) = Top::open(&input[..at], NUMBER, &footer) else { return };
    assert_eq!((top.map_at, top.map_end()), (footer.map_at, footer.top_at));
    let mut next = footer.map_at;
    for one in &top.carried {
        assert_eq!(one.page_firsts.len() as u64, one.values.div_ceil(MAP_PAGE_VALUES as u64));
        for (at, &first) in top.pages(one.segment).zip(&one.page_firsts) {
            assert_eq!((at, top.page_of(one.segment, first)), (next, Some(next)));
            next += MAP_PAGE_BYTES as u64;
        }
    }
    assert_eq!(next, footer.top_at);
    let mut again = Vec::new();
    top.put(&mut again, NUMBER);
    assert!(again.len() <= input.len(), "varints are as short as they can be");
}

/// Makes the lengths and hashes of the footer right, for the top before it.
fn seal_end(input: &mut [u8]) {
    let Some(at) = input.len().checked_sub(RELOCATED_FOOTER_BYTES) else { return };
    let (top, footer) = input.split_at_mut(at);
    let top_hash = hash64(place_seed(NUMBER.0, top_at()), top);
    for (field, value) in [(32, top_at()), (40, at as u64), (48, top_hash)] {
        footer[field..field + 8].copy_from_slice(&value.to_le_bytes());
    }
    let hash = hash64(place_seed(NUMBER.0, top_at() + at as u64), &footer[..56]);
    footer[56..].copy_from_slice(&hash.to_le_bytes());
}

fn page(input: &[u8]) {
    let _ = Page::of_checked(input, SEGMENT);
    let Ok(page) = Page::open(input, (NUMBER, MAP_AT), SEGMENT) else { return };
    assert!((1..=MAP_PAGE_VALUES).contains(&page.len()));
    let moves: Vec<Move> = page.moves().collect();
    assert_eq!(moves.len(), page.len());
    if moves.is_sorted_by(|a, b| a.old < b.old) {
        moves.iter().for_each(|one| assert_eq!(page.find(one.old), Some(one.new)));
    }
}

fn seal_page(input: &mut [u8]) {
    let Some(page) = input.get_mut(..MAP_PAGE_BYTES) else { return };
    let hash = hash64(place_seed(NUMBER.0, MAP_AT), &page[8..]);
    page[..8].copy_from_slice(&hash.to_le_bytes());
}

fn moves(count: u32, step: u32) -> Vec<Move> {
    (0..count).map(|at| Move { old: 256 + at * step, new: 256 + at }).collect()
}

fn end_seeds() -> Vec<Vec<u8>> {
    let made = |segments: &[(u32, u32)]| {
        let mut pages = Vec::new();
        let carried = segments.iter().map(|&(segment, count)| {
            let offset = MAP_AT + pages.len() as u64;
            put_pages(&mut pages, (NUMBER, offset), segment, 64, &moves(count, 3))
        });
        let top = Top::new(MAP_AT, carried.collect());
        let mut out = Vec::new();
        top.put(&mut out, NUMBER);
        out
    };
    vec![made(&[(5, 3), (9, 510)]), made(&[(5, 511)]), made(&[(1, 0), (2, 7), (300, 0), (70_000, 8)])]
}

fn page_seeds() -> Vec<Vec<u8>> {
    let made = |count, step| {
        let mut out = Vec::new();
        put_pages(&mut out, (NUMBER, MAP_AT), SEGMENT, 64, &moves(count, step));
        out
    };
    vec![made(1, 1), made(37, 5), made(510, 17)]
}
