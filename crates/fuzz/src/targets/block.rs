//! Blocks of both encodings, walked every way there is; filters; stored pieces with compression.
//!
//! The inputs of `block-generic` and `block-columnar` are bodies, without the trailer. A walk keeps
//! a hash of each record, since keys that share what comes before may be much longer together than
//! their block.

use folddb_base::checksum::{hash32, hash64};
use folddb_base::{OpKind, Record};
use folddb_layout::block::{
    Block, BlockBuilder, BlockCursor, BlockOptions, Compression, Encoding, Sealed, TRAILER_BYTES, seal,
};
use folddb_layout::filter::Filter;

use crate::chance::Chance;
use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    // Payloads that do not vary stand once in a columnar block, and are copied for each record when
    // it is rebuilt.
    Target::new("block-generic", generic, generic_seeds).heap(256, 128 << 10),
    Target::new("block-columnar", columnar, columnar_seeds).heap(1024, 128 << 10),
    // LZ4 makes up to 255 bytes of one.
    Target::new("block-stored", stored, stored_seeds).sealed_by(seal_piece).heap(255 * 64, 256 << 10),
    Target::new("filter", filter, filter_seeds).heap(64, 64 << 10),
];

/// The seed of checksums, as if made of a file number and an offset.
const SEED: u64 = 77;

/// The seq of records in blocks without seqs.
const IMPLIED_SEQ: u64 = 9;

fn generic(input: &[u8]) {
    body(input, Encoding::Generic);
}

fn columnar(input: &[u8]) {
    body(input, Encoding::Columnar);
}

fn body(input: &[u8], encoding: Encoding) {
    let mut stored = input.to_vec();
    seal(&mut stored, 0, encoding, Compression::None, SEED, &mut Vec::new());
    if let Ok(block) = Block::open(stored, SEED) {
        assert_eq!(block.encoding(), encoding);
        check(&block, input.len());
    }
}

fn stored(input: &[u8]) {
    let Ok(block) = Block::open(input.to_vec(), SEED) else { return };
    let mut refilled = Block::open(small_block(), SEED).expect("a block from the builder");
    assert!(refilled.refill(input, SEED).is_ok());
    assert_eq!((refilled.count(), refilled.encoding()), (block.count(), block.encoding()));
    if block.memory_bytes() < 256 << 10 {
        check(&block, block.memory_bytes());
    }
}

fn small_block() -> Vec<u8> {
    build(&[(b"k".to_vec(), 1, OpKind::Set, b"v".to_vec())], true, Compression::None)
}

/// The hash of a record with all that it says.
fn hash_of(record: Record<'_>) -> u64 {
    let seed = hash64(record.seq, &[record.kind as u8]);
    hash64(hash64(seed, record.key), record.payload)
}

/// Walks over the block every way there is, and builds it again of what it held.
fn check(block: &Block, body_bytes: usize) {
    assert!((1..=body_bytes).contains(&block.count()), "{} records in {body_bytes} bytes", block.count());
    let mut cursor = BlockCursor::new(IMPLIED_SEQ);
    cursor.enter(block);
    assert!(cursor.record(block).is_none(), "nowhere before it seeks");
    let Some(forward) = walk_forward(block, &mut cursor) else {
        walk_backward(block, &mut cursor); // it may fail, or stop elsewhere
        return;
    };
    assert_eq!(forward.hashes.len(), block.count());
    let mut backward =
        walk_backward(block, &mut cursor).expect("what can be walked forward can be walked back");
    backward.reverse();
    assert_eq!(backward, forward.hashes);
    let mut chance = Chance::new(block.count() as u64);
    for _ in 0..8 {
        let index = chance.below(block.count());
        assert!(cursor.seek_index(block, index).is_ok());
        assert_eq!(cursor.record(block).map(hash_of), Some(forward.hashes[index]));
    }
    assert!(cursor.seek_index(block, block.count()).is_ok() && cursor.record(block).is_none());
    let again = rebuilt(block, &mut cursor);
    let mut again_cursor = BlockCursor::new(IMPLIED_SEQ);
    again_cursor.enter(&again);
    let again_forward = walk_forward(&again, &mut again_cursor).expect("a block from the builder");
    assert_eq!(again_forward.hashes, forward.hashes);
    if forward.ascends {
        search(block, &mut cursor, &mut chance);
        search(&again, &mut again_cursor, &mut chance);
    }
}

struct Walked {
    hashes: Vec<u64>,
    /// No key is less than the one before.
    ascends: bool,
}

/// None where a record cannot be read.
fn walk_forward(block: &Block, cursor: &mut BlockCursor) -> Option<Walked> {
    let mut walked = Walked { hashes: Vec::new(), ascends: true };
    let mut last_key: Vec<u8> = Vec::new();
    cursor.seek_index(block, 0).ok()?;
    loop {
        let record = cursor.record(block)?;
        let _ = record.op();
        walked.ascends &= last_key.as_slice() <= record.key;
        last_key.clear();
        last_key.extend_from_slice(record.key);
        walked.hashes.push(hash_of(record));
        if !cursor.next(block).ok()? {
            assert!(cursor.record(block).is_none() && cursor.index() == block.count());
            return Some(walked);
        }
    }
}

fn walk_backward(block: &Block, cursor: &mut BlockCursor) -> Option<Vec<u64>> {
    cursor.enter(block);
    let mut hashes = Vec::new();
    while cursor.prev(block).ok()? {
        hashes.push(hash_of(cursor.record(block)?));
    }
    Some(hashes)
}

fn rebuilt(block: &Block, cursor: &mut BlockCursor) -> Block {
    let mut builder = BlockBuilder::new();
    assert!(cursor.seek_index(block, 0).is_ok());
    while let Some(record) = cursor.record(block) {
        builder.push(record);
        assert!(cursor.next(block).is_ok());
    }
    let mut out = Vec::new();
    let options = BlockOptions { keep_seqs: block.has_seqs(), compression: Compression::None, seed: SEED };
    builder.finish(&mut out, options);
    Block::open(out, SEED).expect("a block from the builder")
}

/// Searches an ordered block for keys that it has and for keys near them: all ways agree.
fn search(block: &Block, cursor: &mut BlockCursor, chance: &mut Chance) {
    for _ in 0..4 {
        assert!(cursor.seek_index(block, chance.below(block.count())).is_ok());
        let mut probe = cursor.record(block).map(|record| record.key.to_vec()).unwrap_or_default();
        if chance.one_in(2) && !probe.is_empty() {
            let at = chance.below(probe.len());
            probe[at] ^= 1 << chance.below(8);
        }
        for past_equal in [false, true] {
            let before = |key: &[u8]| key < &probe[..] || past_equal && key == &probe[..];
            let mut wanted = 0;
            assert!(cursor.seek_index(block, 0).is_ok());
            while cursor.record(block).is_some_and(|record| before(record.key)) {
                wanted += 1;
                assert!(cursor.next(block).is_ok());
            }
            assert!(cursor.seek_by(block, before).is_ok());
            assert_eq!(cursor.index(), wanted);
            if let Some(bound) = block.bound_in_bytes(&probe, false, past_equal) {
                assert_eq!(bound, wanted);
            }
        }
    }
}

type Row = (Vec<u8>, u64, OpKind, Vec<u8>);

fn build(rows: &[Row], keep_seqs: bool, compression: Compression) -> Vec<u8> {
    let mut builder = BlockBuilder::new();
    for (key, seq, kind, payload) in rows {
        builder.push(Record { key, seq: *seq, kind: *kind, payload });
    }
    let mut out = Vec::new();
    builder.finish(&mut out, BlockOptions { keep_seqs, compression, seed: SEED });
    out
}

fn bodies(blocks: impl IntoIterator<Item = (Vec<Row>, bool)>) -> Vec<Vec<u8>> {
    let body = |(rows, keep_seqs): (Vec<Row>, bool)| {
        let mut stored = build(&rows, keep_seqs, Compression::None);
        stored.truncate(stored.len() - TRAILER_BYTES);
        stored
    };
    blocks.into_iter().map(body).collect()
}

fn words() -> Vec<Row> {
    let kinds = [OpKind::Set, OpKind::Fold, OpKind::Delete, OpKind::Insert, OpKind::InsertFold];
    let row = |number: u64| {
        let kind = kinds[number as usize % kinds.len()];
        let payload = match kind {
            OpKind::Delete => Vec::new(),
            OpKind::InsertFold => b"\x01amm".to_vec(),
            _ => vec![b'v'; number as usize % 7],
        };
        (
            format!("word/{:03}/{}", number / 3, "x".repeat(number as usize % 5)).into_bytes(),
            900 - number,
            kind,
            payload,
        )
    };
    let mut rows: Vec<Row> = (0..40).map(row).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    rows
}

fn generic_seeds() -> Vec<Vec<u8>> {
    let sets = words().into_iter().map(|(key, seq, _, payload)| (key, seq, OpKind::Set, payload)).collect();
    let one = vec![(Vec::new(), 1, OpKind::Set, vec![b'v'; 200])];
    bodies([(words(), true), (words(), false), (sets, true), (one, false)])
}

fn numbers(count: u64, value: impl Fn(u64) -> Vec<u8>) -> Vec<Row> {
    (0..count).map(|n| ((n * 1_000_003).to_be_bytes().to_vec(), n + 5, OpKind::Set, value(n))).collect()
}

fn columnar_seeds() -> Vec<Vec<u8>> {
    let spread = |n: u64| {
        let mut value = vec![7; 40];
        (value[3], value[17], value[39]) = (n as u8, (n * 3) as u8, 1 + (n >> 2) as u8);
        value
    };
    let mut deletes = numbers(30, |n| n.to_le_bytes().to_vec());
    deletes.iter_mut().step_by(4).for_each(|row| (row.2, row.3) = (OpKind::Delete, Vec::new()));
    let long_keys =
        (0..20u8).map(|n| ([&[b'h'; 30][..], &[n; 4]].concat(), 3, OpKind::Fold, vec![n; 9])).collect();
    bodies([
        (numbers(40, |n| (n * n).to_le_bytes().to_vec()), true),
        (numbers(40, |_| b"constant".to_vec()), false),
        (numbers(20, |n| (n * 0x0123_4567_89ab_cdef).to_le_bytes().to_vec()), false),
        (numbers(30, spread), true),
        (deletes, true),
        (long_keys, false),
        (numbers(1, |_| Vec::new()), false),
    ])
}

fn stored_seeds() -> Vec<Vec<u8>> {
    let text: Vec<Row> = (0..60)
        .map(|n: u64| (format!("k{n:03}").into_bytes(), n, OpKind::Set, vec![b'a'; 10 + n as usize % 3]))
        .collect();
    vec![build(&text, true, Compression::Lz4), build(&words(), true, Compression::None), small_block()]
}

/// Makes the checksum of a stored piece right.
fn seal_piece(input: &mut [u8]) {
    let Some((body, checksum)) = input.split_last_chunk_mut::<4>() else { return };
    *checksum = hash32(SEED, body).to_le_bytes();
}

/// The lines of a filter.
fn filter(input: &[u8]) {
    let mut stored = input.to_vec();
    seal(&mut stored, 0, Encoding::Filter, Compression::None, SEED, &mut Vec::new());
    assert!(Sealed::open(&stored, SEED).is_ok());
    let Ok(filter) = Filter::open(&stored, SEED) else { return };
    let mut again = Vec::new();
    filter.put(&mut again, SEED);
    assert_eq!(again, stored);
    let mut chance = Chance::new(input.len() as u64);
    let hashes: Vec<u64> = (0..50).map(|_| chance.next_u64()).collect();
    hashes.iter().for_each(|&hash| {
        filter.may_contain(hash);
    });
    let built = Filter::build(&hashes, u32::from(input[0] % 33));
    assert!(hashes.iter().all(|&hash| built.may_contain(hash)));
}

fn filter_seeds() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    Filter::build(&[1 << 40, 2 << 50, 3 << 60, u64::MAX], 300).put(&mut out, SEED);
    out.truncate(out.len() - TRAILER_BYTES);
    vec![out, vec![0; 64], vec![0xff; 64]]
}
