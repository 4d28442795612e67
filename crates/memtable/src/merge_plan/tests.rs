//! The plan of merging chunks, compared as text.

use super::*;

/// Chunks of these generations, oldest first, with ten seqs each.
fn chunks(generations: &[u32]) -> Vec<ChunkFacts> {
    let facts = |(index, &generation): (usize, &u32)| ChunkFacts {
        generation,
        records: 10,
        bytes: 100,
        base_seq: index as Seq * 10 + 1,
        max_seq: index as Seq * 10 + 10,
    };
    generations.iter().enumerate().map(facts).collect()
}

fn print(generations: &[u32], last_boundary: Seq) -> String {
    plan_merge(&chunks(generations), 4, last_boundary).map_or("nothing".to_owned(), |plan| plan.to_string())
}

#[test]
fn a_full_generation_becomes_one_chunk_of_the_next() {
    assert_eq!(print(&[], Seq::MAX), "nothing");
    assert_eq!(print(&[0, 0, 0], Seq::MAX), "nothing");
    assert_eq!(print(&[0, 0, 0, 0], Seq::MAX), "chunks 0..4 into generation 1: 40 records, 400 bytes");
    assert_eq!(print(&[1, 0, 0, 0, 0, 0], Seq::MAX), "chunks 1..5 into generation 1: 40 records, 400 bytes");
    assert_eq!(print(&[1, 1, 1, 1, 0, 0], Seq::MAX), "chunks 0..4 into generation 2: 40 records, 400 bytes");
}

#[test]
fn all_settled_chunks_become_one_of_the_oldest_generation() {
    let print = |generations: &[u32], last| {
        plan_whole(&chunks(generations), last).map_or("nothing".to_owned(), |plan| plan.to_string())
    };
    assert_eq!(print(&[], Seq::MAX), "nothing");
    assert_eq!(print(&[2], Seq::MAX), "nothing");
    assert_eq!(print(&[2, 1, 1, 0], Seq::MAX), "chunks 0..4 into generation 2: 40 records, 400 bytes");
    assert_eq!(print(&[2, 1, 1, 0], 39), "chunks 0..3 into generation 2: 30 records, 300 bytes");
    assert_eq!(print(&[2, 1], 19), "nothing");
}

#[test]
fn the_newest_generation_goes_first() {
    let both = [1, 1, 1, 1, 0, 0, 0, 0];
    assert_eq!(print(&both, Seq::MAX), "chunks 4..8 into generation 1: 40 records, 400 bytes");
}

#[test]
fn chunks_past_the_last_boundary_wait() {
    assert_eq!(print(&[0, 0, 0, 0], 39), "nothing");
    assert_eq!(print(&[0, 0, 0, 0], 40), "chunks 0..4 into generation 1: 40 records, 400 bytes");
    assert_eq!(print(&[1, 1, 1, 1, 0, 0, 0, 0], 79), "chunks 0..4 into generation 2: 40 records, 400 bytes");
}

#[test]
fn what_would_not_fit_stays_separate() {
    let mut large = chunks(&[0; 4]);
    large[2].bytes = MERGED_BYTES_MAX;
    assert_eq!(plan_merge(&large, 4, Seq::MAX), None);
    let mut far = chunks(&[0; 4]);
    far[3].max_seq = 1 << 40;
    assert_eq!(plan_merge(&far, 4, Seq::MAX), None);
}

#[test]
fn merging_always_ends_with_few_chunks() {
    let mut generations: Vec<u32> = Vec::new();
    for _ in 0..1000 {
        generations.push(0);
        while let Some(plan) = plan_merge(&chunks(&generations), 4, Seq::MAX) {
            generations.splice(plan.range, [plan.generation]);
        }
        assert!(generations.windows(2).all(|pair| pair[0] >= pair[1]), "{generations:?}");
        assert!(generations.len() <= 3 * 5, "{generations:?}");
    }
}
