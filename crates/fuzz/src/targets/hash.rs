//! Checkpoints of hashed tables: a piece, the directory, the footer. And changes after one: those
//! and their footer. And the fronts of values.
//!
//! The inputs are as they are in a file with the number 7: a piece of the third sector at 4096, a
//! directory at the length of what its pieces say, and the footer of a file of 1000 bytes.

use folddb_base::Stamp;
use folddb_base::checksum::{hash64, place_seed};
use folddb_base::stamp::NEVER;
use folddb_layout::hash_changes::{CHANGES_FOOTER_BYTES, Changed, ChangesFooter, put_changes, read_changes};
use folddb_layout::hash_checkpoint::{
    CHECKPOINT_FOOTER_BYTES, CheckpointFooter, Directory, Entry, POINT_BITS, PieceEntry, PointRange,
    SUM_BYTES, put_piece, read_piece,
};
use folddb_layout::hash_front::Front;

use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    Target::new("hash-piece", piece, piece_seeds).sealed_by(seal_piece),
    Target::new("hash-directory", directory, directory_seeds).sealed_by(seal_directory),
    Target::new("hash-footer", footer, footer_seeds).sealed_by(seal_footer),
    Target::new("hash-changes", changes, changes_seeds).sealed_by(seal_changes),
    Target::new("hash-changes-footer", changes_footer, changes_footer_seeds).sealed_by(seal_changes_footer),
    Target::new("hash-front", front, front_seeds),
];

const NUMBER: u64 = 7;
const PIECE_AT: u64 = 4096;
const RANGE: PointRange = PointRange { start: 3 << 34, depth: 6 };
const DIRECTORY_AT: u64 = 64 * 8 + 27;
const FILE_BYTES: u64 = 1000;

fn seal(input: &mut [u8], at: u64) {
    if let Some((body, sum)) = input.split_last_chunk_mut::<SUM_BYTES>() {
        *sum = hash64(place_seed(NUMBER, at), body).to_le_bytes();
    }
}

/// Whatever number of keys the directory says there are.
fn piece(input: &[u8]) {
    for keys in [0, 1, 3, input.len() as u64 / 8, u64::MAX] {
        let said = PieceEntry { range: RANGE, keys, seq: 1, offset: PIECE_AT, len_bytes: input.len() as u64 };
        let Ok(entries) = read_piece(input, &said, NUMBER) else { continue };
        assert_eq!(entries.len() as u64, keys);
        assert!(entries.is_sorted() && entries.iter().all(|entry| RANGE.contains(entry.point)));
        let mut again = Vec::new();
        put_piece(&mut again, RANGE, &entries, NUMBER, PIECE_AT);
        assert_eq!(again, input);
    }
}

fn seal_piece(input: &mut [u8]) {
    seal(input, PIECE_AT);
}

fn piece_seeds() -> Vec<Vec<u8>> {
    let entry = |distance, slot| Entry { point: RANGE.start + distance, slot };
    let some = [entry(0, 7), entry(0, 63 << 44 | 8), entry(1 << 33, 1 << 43)];
    let many: Vec<Entry> = (0..20).map(|n| entry(n * n * 1_000_003, (n << 24) + n + 1)).collect();
    let made = |entries: &[Entry]| {
        let mut out = Vec::new();
        put_piece(&mut out, RANGE, entries, NUMBER, PIECE_AT);
        out
    };
    vec![made(&[]), made(&some), made(&many)]
}

fn directory(input: &[u8]) {
    let Ok(directory) = Directory::read(input, NUMBER, DIRECTORY_AT) else { return };
    let mut next = (0, 0);
    for piece in &directory.pieces {
        assert_eq!((piece.range.start, piece.offset), next);
        next = (piece.range.end(), piece.offset + piece.len_bytes);
    }
    assert_eq!(next, (1 << POINT_BITS, DIRECTORY_AT));
    let mut again = Vec::new();
    directory.put(&mut again, NUMBER, DIRECTORY_AT);
    assert_eq!(again, input);
}

fn seal_directory(input: &mut [u8]) {
    seal(input, DIRECTORY_AT);
}

fn directory_seeds() -> Vec<Vec<u8>> {
    let mut at = 0;
    let pieces = (0..64).map(|number| {
        let (keys, len_bytes) = if number == 5 { (3, 35) } else { (0, 8) };
        let range = PointRange { start: number << 34, depth: 6 };
        at += len_bytes;
        PieceEntry { range, keys, seq: 300 + number, offset: at - len_bytes, len_bytes }
    });
    let directory = Directory { pieces: pieces.collect() };
    let mut out = Vec::new();
    directory.put(&mut out, NUMBER, DIRECTORY_AT);
    vec![out]
}

fn footer(input: &[u8]) {
    let Some(bytes) = input.first_chunk::<CHECKPOINT_FOOTER_BYTES>() else { return };
    let Ok(footer) = CheckpointFooter::read(bytes, NUMBER, FILE_BYTES) else { return };
    assert!(footer.directory().start <= footer.directory().end);
    let mut again = Vec::new();
    footer.put(&mut again);
    assert_eq!(again, bytes);
}

fn seal_footer(input: &mut [u8]) {
    if let Some(bytes) = input.first_chunk_mut::<CHECKPOINT_FOOTER_BYTES>() {
        seal(bytes, FILE_BYTES - CHECKPOINT_FOOTER_BYTES as u64);
    }
}

fn footer_seeds() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    CheckpointFooter { number: NUMBER, file_bytes: FILE_BYTES, directory_offset: 600, salt: 1 << 60 | 5 }
        .put(&mut out);
    vec![out]
}

/// Whatever number of changes the footer says there are.
fn changes(input: &[u8]) {
    for count in [0, 1, 3, input.len() as u64 / 20, u64::MAX] {
        let Ok(changes) = read_changes(input, count, NUMBER) else { continue };
        assert_eq!(changes.len() as u64, count);
        assert!(changes.is_sorted_by(|one, next| one.seq < next.seq));
        let mut again = Vec::new();
        put_changes(&mut again, &changes, NUMBER);
        assert_eq!(again, input);
    }
}

fn seal_changes(input: &mut [u8]) {
    seal(input, 0);
}

fn changes_seeds() -> Vec<Vec<u8>> {
    let change = |seq, old, new| Changed { seq, point: seq * 1_000_003 % (1 << POINT_BITS), old, new };
    let some = [change(5, 0, 7), change(6, 7, 63 << 44 | 8), change(300, 1 << 43, 0)];
    let many: Vec<Changed> = (1..20).map(|n| change(n * n, n << 24 | 1, n << 24 | 2)).collect();
    let made = |changes: &[Changed]| {
        let mut out = Vec::new();
        put_changes(&mut out, changes, NUMBER);
        out
    };
    vec![made(&[]), made(&some), made(&many)]
}

fn changes_footer(input: &[u8]) {
    let Some(bytes) = input.first_chunk::<CHANGES_FOOTER_BYTES>() else { return };
    let Ok(footer) = ChangesFooter::read(bytes, NUMBER, FILE_BYTES) else { return };
    let mut again = Vec::new();
    footer.put(&mut again);
    assert_eq!(again, bytes);
}

fn seal_changes_footer(input: &mut [u8]) {
    if let Some(bytes) = input.first_chunk_mut::<CHANGES_FOOTER_BYTES>() {
        seal(bytes, FILE_BYTES - CHANGES_FOOTER_BYTES as u64);
    }
}

fn changes_footer_seeds() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    ChangesFooter { number: NUMBER, file_bytes: FILE_BYTES, count: 40, checkpoint: 5, salt: 1 << 60 | 5 }
        .put(&mut out);
    vec![out]
}

fn front(input: &[u8]) {
    let Ok((front, value)) = Front::split(input) else { return };
    assert_eq!([&front.bytes()[..], value].concat(), input);
}

fn front_seeds() -> Vec<Vec<u8>> {
    let stamp = Stamp { write_ms: 1_800_000_000_000, deadline_ms: NEVER };
    let deleted = Front { is_deleted: true, stamp };
    let lasting = Front { is_deleted: false, stamp: Stamp { deadline_ms: 1_800_000_060_000, ..stamp } };
    vec![deleted.bytes().to_vec(), [&lasting.bytes()[..], b"value"].concat()]
}
