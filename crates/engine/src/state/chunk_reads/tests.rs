//! Readers ask once for each merge, and for a whole one only after they have paid for it.

use super::*;

#[test]
fn few_chunks_are_never_merged() {
    let reads = ChunkReads::default();
    assert!((0..10_000).all(|_| !reads.note(3, 100, 2000)));
    assert_eq!(reads.take(), Wish::Generations);
}

#[test]
fn many_chunks_are_asked_for_once() {
    let reads = ChunkReads::default();
    assert!(reads.note(17, 1_000_000, 0));
    assert!(!reads.note(17, 1_000_000, 0));
    assert_eq!(reads.take(), Wish::Generations);
    assert!(reads.note(17, 1_000_000, 0));
}

#[test]
fn all_are_merged_once_searching_them_has_cost_as_much() {
    let reads = ChunkReads::default();
    let asked: Vec<usize> = (0..1000).filter(|_| reads.note(10, 100, 0)).collect();
    assert_eq!(asked, [20], "2 searches for each of 100 records");
    assert_eq!(reads.take(), Wish::Whole);
    assert!((0..1000).all(|_| !reads.note(10, 100, 0)), "the wish has not ended");
    assert_eq!(reads.take(), Wish::Whole);
    reads.end_whole();
    assert_eq!(reads.take(), Wish::Generations);
    assert!((0..20).all(|_| !reads.note(10, 100, 0)), "it begins anew");
    assert!(reads.note(10, 100, 0));
}

#[test]
fn long_values_cost_more_to_merge() {
    let reads = ChunkReads::default();
    let asked: Vec<usize> = (0..1_000_000).filter(|_| reads.note(10, 64, 64 << 20)).collect();
    assert_eq!(asked, [(64 * 2 + (64 << 20) / 128) / 10]);
}
