//! What users keep: cursors of scans, and digests.

use std::ops::Bound;

use folddb_base::TableId;
use folddb_base::checksum::hash64;
use folddb_base::stream::Direction;
use folddb_layout::cursor_token::CursorToken;
use folddb_layout::digest::{Digest, add_row};

use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    Target::new("cursor-token", cursor_token, cursor_token_seeds).sealed_by(seal),
    Target::new("digest", digest, digest_seeds).sealed_by(seal),
];

fn seal(input: &mut [u8]) {
    if let Some((body, sum)) = input.split_last_chunk_mut::<8>() {
        *sum = hash64(0, body).to_le_bytes();
    }
}

fn cursor_token(input: &[u8]) {
    if let Ok(token) = CursorToken::from_bytes(input) {
        assert_eq!(token.to_bytes(), input);
    }
}

fn cursor_token_seeds() -> Vec<Vec<u8>> {
    let first = CursorToken {
        store_id: 1 << 100 | 7,
        table: TableId(3),
        direction: Direction::Forward,
        is_keys_only: false,
        seq: 1 << 33,
        time_ms: None,
        low: Bound::Unbounded,
        high: Bound::Unbounded,
        last: None,
    };
    let second = CursorToken {
        direction: Direction::Reversed,
        is_keys_only: true,
        low: Bound::Included(b"a".to_vec()),
        high: Bound::Excluded(b"b\0".to_vec()),
        last: Some(b"ab".to_vec()),
        ..first.clone()
    };
    vec![first.to_bytes(), second.to_bytes()]
}

fn digest(input: &[u8]) {
    let Ok(digest) = Digest::from_bytes(input) else { return };
    assert_eq!(digest.to_bytes(), input);
    assert_eq!(digest.level(digest.depth()).len(), 1 << (4 * digest.depth()));
    assert!(digest.differing(&digest).expect("it compares with itself").is_empty());
    digest.root();
}

fn digest_seeds() -> Vec<Vec<u8>> {
    let made = |depth, rows: u64| {
        let mut digest = Digest::new(depth, 5, "key bytes, fold sum:u64");
        (0..rows)
            .for_each(|row| add_row(&mut digest, &row.to_be_bytes(), row, row as u32, row.checked_sub(1)));
        digest.to_bytes()
    };
    vec![made(0, 0), made(0, 3), made(1, 40)]
}
