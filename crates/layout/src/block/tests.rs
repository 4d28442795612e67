use folddb_base::checksum::key_hash;
use folddb_base::stream::OwnedRecord;
use folddb_base::{Op, OpBuf, OpKind, Record};
use proptest::prelude::*;

use super::builder::BlockOptions;
use super::*;

const SEED: u64 = 77;

fn build(records: &[OwnedRecord], keep_seqs: bool, compression: Compression) -> Vec<u8> {
    let mut builder = BlockBuilder::new();
    let mut out = Vec::new();
    records.iter().for_each(|record| builder.push(record.record()));
    let mut last = Vec::new();
    builder.copy_last_key(&mut last);
    assert_eq!(last, records[records.len() - 1].key);
    builder.finish(&mut out, BlockOptions { keep_seqs, compression, seed: SEED });
    assert_eq!(builder.count(), 0);
    out
}

fn record(key: &[u8], seq: u64, op: Op<'_>) -> OwnedRecord {
    OwnedRecord { key: key.to_vec(), seq, op: OpBuf::from_op(op) }
}

fn expected(record: &OwnedRecord, keep_seqs: bool) -> OwnedRecord {
    OwnedRecord { seq: if keep_seqs { record.seq } else { 1000 }, ..record.clone() }
}

fn current(cursor: &BlockCursor, block: &Block) -> Option<OwnedRecord> {
    cursor.record(block).map(OwnedRecord::from_record)
}

fn check_all_ways(records: &[OwnedRecord], keep_seqs: bool, compression: Compression) -> Block {
    let stored = build(records, keep_seqs, compression);
    let block = Block::open(stored, SEED).unwrap();
    assert_eq!(block.count(), records.len());
    assert_eq!(block.has_seqs(), keep_seqs);
    let mut cursor = BlockCursor::new(1000);
    cursor.enter(&block);
    assert_eq!(current(&cursor, &block), None);

    cursor.seek_index(&block, 0).unwrap();
    for (index, record) in records.iter().enumerate() {
        assert_eq!(cursor.index(), index);
        assert_eq!(current(&cursor, &block), Some(expected(record, keep_seqs)));
        assert_eq!(cursor.next(&block).unwrap(), index + 1 < records.len());
    }
    assert_eq!(current(&cursor, &block), None);
    for (index, record) in records.iter().enumerate().rev() {
        assert!(cursor.prev(&block).unwrap());
        assert_eq!(cursor.index(), index);
        assert_eq!(current(&cursor, &block), Some(expected(record, keep_seqs)));
    }
    assert!(!cursor.prev(&block).unwrap());
    for index in (0..records.len()).step_by(7) {
        cursor.seek_index(&block, index).unwrap();
        assert_eq!(current(&cursor, &block), Some(expected(&records[index], keep_seqs)));
        // Back and forth over one place, which mixes both ways of decoding.
        if index > 0 {
            assert!(cursor.prev(&block).unwrap() && cursor.next(&block).unwrap());
            assert_eq!(current(&cursor, &block), Some(expected(&records[index], keep_seqs)));
        }
    }
    block
}

fn check_search(records: &[OwnedRecord], block: &Block, descending: bool, probe: &[u8]) {
    let mut cursor = BlockCursor::new(0);
    cursor.enter(block);
    for past_equal in [false, true] {
        let before = |key: &[u8]| {
            let order = if descending { probe.cmp(key) } else { key.cmp(probe) };
            order.is_lt() || (past_equal && order.is_eq())
        };
        let wanted = records.iter().take_while(|record| before(&record.key)).count();
        cursor.seek_by(block, before).unwrap();
        assert_eq!(cursor.index(), wanted);
        if wanted < records.len() {
            assert_eq!(cursor.record(block).unwrap().key, &records[wanted].key[..]);
        }
        if let Some(bound) = block.bound_in_bytes(probe, descending, past_equal) {
            assert_eq!(bound, wanted);
        }
    }
}

/// Records of one shape: keys of `key_len` bytes from a range, payloads that differ in few bytes.
fn fixed_records() -> impl Strategy<Value = Vec<OwnedRecord>> {
    let shape = (0usize..20, 0usize..40, any::<u64>(), prop_oneof![Just(0u64), 1u64..300, any::<u64>()]);
    (shape, proptest::collection::vec((any::<u64>(), any::<u64>(), 0u64..5000, 0u8..12), 1..200), 0u8..3)
        .prop_map(|((key_len, payload_len, key_base, spread), rows, kinds)| {
            let rows = rows.into_iter().map(|(key, payload, seq, kind)| {
                let number = u128::from(key_base) + u128::from(key % spread.max(1));
                let mut whole = vec![b'p'; key_len.saturating_sub(16)];
                whole.extend_from_slice(&number.to_be_bytes()[16 - key_len.min(16)..]);
                let mut value = vec![7u8; payload_len];
                for (at, byte) in payload.to_le_bytes().iter().enumerate().take((key_base % 9) as usize) {
                    if let Some(slot) = value.get_mut(at * (1 + (spread % 5) as usize)) {
                        *slot = *byte;
                    }
                }
                match (kinds, kind) {
                    (0, _) => record(&whole, seq, Op::Set(&value)),
                    (_, 0) => record(&whole, seq, Op::Delete),
                    (1, _) => record(&whole, seq, Op::Fold(&value)),
                    (_, 1..6) => record(&whole, seq, Op::Insert(&value)),
                    _ => record(&whole, seq, Op::Set(&value)),
                }
            });
            rows.collect()
        })
}

fn any_records() -> impl Strategy<Value = Vec<OwnedRecord>> {
    let key = proptest::collection::vec(prop_oneof![4 => 0u8..3, 1 => any::<u8>()], 0..30);
    let payload = prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => proptest::collection::vec(0u8..2, 100..400),
    ];
    proptest::collection::vec((key, payload, any::<u64>(), 0u8..5), 1..120).prop_map(|rows| {
        let rows = rows.into_iter().map(|(key, payload, seq, kind)| match kind {
            0 => record(&key, seq, Op::Delete),
            1 => record(&key, seq, Op::Set(&payload)),
            2 => record(&key, seq, Op::Insert(&payload)),
            3 => record(&key, seq, Op::Fold(&payload)),
            _ => record(&key, seq, Op::InsertFold { absent: &payload, present: b"m" }),
        });
        rows.collect()
    })
}

/// In order, and no two the same: without seqs a block holds one record per key.
fn sorted(mut records: Vec<OwnedRecord>, keep_seqs: bool, descending: bool) -> Vec<OwnedRecord> {
    records.sort_by(|a, b| a.key.cmp(&b.key).then(b.seq.cmp(&a.seq)));
    if descending {
        records.sort_by(|a, b| b.key.cmp(&a.key).then(b.seq.cmp(&a.seq)));
    }
    records.dedup_by(|b, a| a.key == b.key && (!keep_seqs || a.seq == b.seq));
    records
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn fixed_records_come_back(records in fixed_records(), keep_seqs: bool, descending: bool, probe: u64) {
        let records = sorted(records, keep_seqs, descending);
        let block = check_all_ways(&records, keep_seqs, Compression::None);
        prop_assert_eq!(block.encoding(), Encoding::Columnar);
        let mut near = records[probe as usize % records.len()].key.clone();
        check_search(&records, &block, descending, &near);
        if let Some(last) = near.last_mut() {
            *last = last.wrapping_add(1);
        }
        check_search(&records, &block, descending, &near);
        check_search(&records, &block, descending, &probe.to_be_bytes());
        // Far from all keys: in the bytes before the last eight, and in those that all keys share.
        for at in 0..near.len() {
            let mut far = near.clone();
            far[at] ^= 1 << (probe % 8);
            check_search(&records, &block, descending, &far);
        }
    }

    #[test]
    fn any_records_come_back(records in any_records(), keep_seqs: bool, how in 0..3usize, descending: bool, probe: u8) {
        let records = sorted(records, keep_seqs, descending);
        let compression = [Compression::None, Compression::Lz4, Compression::Zstd][how];
        let block = check_all_ways(&records, keep_seqs, compression);
        check_search(&records, &block, descending, &records[usize::from(probe) % records.len()].key);
        check_search(&records, &block, descending, &[probe % 4]);
    }

    #[test]
    fn shapes_may_change_midway(fixed in fixed_records(), any in any_records()) {
        let records = sorted(fixed.into_iter().chain(any).collect(), true, false);
        check_all_ways(&records, true, Compression::None);
    }

    #[test]
    fn any_bytes_are_refused_or_harmless(body in proptest::collection::vec(any::<u8>(), 0..200), columnar: bool) {
        touch(body, columnar);
    }

    /// Whole blocks with damaged footers and bodies, under a checksum that matches.
    #[test]
    fn damaged_blocks_are_refused_or_harmless(
        fixed in fixed_records(),
        any in any_records(),
        columnar: bool,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..4),
    ) {
        let records = sorted(if columnar { fixed } else { any }, true, false);
        let stored = build(&records, true, Compression::None);
        let is_columnar = Block::open(stored.clone(), SEED).unwrap().encoding() == Encoding::Columnar;
        let mut body = stored[..stored.len() - TRAILER_BYTES].to_vec();
        for (place, byte, at_end) in damage {
            let len = body.len();
            let at = if at_end { len - 1 - place.index(len.min(36)) } else { place.index(len) };
            body[at] = byte;
        }
        touch(body, is_columnar);
    }
}

/// Walks over all of a block with this body, if it is one. Nothing may panic.
fn touch(mut body: Vec<u8>, columnar: bool) {
    let encoding = if columnar { Encoding::Columnar } else { Encoding::Generic };
    seal(&mut body, 0, encoding, Compression::None, SEED, &mut Vec::new());
    let Ok(block) = Block::open(body, SEED) else { return };
    let mut cursor = BlockCursor::new(1);
    cursor.enter(&block);
    while let Ok(true) = cursor.prev(&block) {
        let _ = cursor.record(&block);
        if cursor.index() + 3000 < block.count() {
            break;
        }
    }
    if cursor.seek_index(&block, 0).is_ok() {
        for _ in 0..3000 {
            let _ = cursor.record(&block);
            if !matches!(cursor.next(&block), Ok(true)) {
                break;
            }
        }
    }
    let _ = cursor.seek_by(&block, |key| key < &b"m"[..]);
    let _ = cursor.record(&block);
    let _ = block.bound_in_bytes(b"12345678", true, true);
}

/// Keys that fences divide into stretches, evenly and unevenly; some blocks have fewer keys than
/// fences.
fn spread_keys() -> impl Strategy<Value = Vec<u64>> {
    let even = proptest::collection::vec(any::<u64>(), 97..700);
    let cubes =
        (97u64..700, 0u64..1000).prop_map(|(count, from)| (0..count).map(|n| from + n * n * n).collect());
    let doubling = (97u64..400).prop_map(|count| (0..count).map(|n| (1 << (n / 7)) + n % 7).collect());
    let heaps = proptest::collection::vec((0u64..3, 0u64..200), 97..700);
    let heaps = heaps.prop_map(|rows| rows.into_iter().map(|(heap, n)| (heap << 40) + n).collect());
    let repeated = (97usize..300, 0u64..9).prop_map(|(count, n)| vec![n; count]);
    let few = proptest::collection::vec(any::<u64>(), 2..40);
    let text =
        (33u64..700, 0u64..9000).prop_map(|(count, from)| (0..count).map(|n| digits(from + n)).collect());
    prop_oneof![even, cubes, doubling, heaps, repeated, few, text]
}

/// The last eight decimal digits of a number, as text.
fn digits(number: u64) -> u64 {
    (0..8).fold(0, |text, digit| text | (u64::from(b'0') + number / 10u64.pow(digit) % 10) << (8 * digit))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_key_is_found_however_the_keys_are_spread(mut keys in spread_keys(), descending: bool) {
        keys.sort_unstable();
        if descending {
            keys.reverse();
        }
        let rows = keys.iter().enumerate();
        let records: Vec<OwnedRecord> =
            rows.map(|(n, key)| record(&key.to_be_bytes(), (keys.len() - n) as u64, Op::Set(b"value"))).collect();
        let block = Block::open(build(&records, true, Compression::None), SEED).unwrap();
        prop_assert_eq!(block.encoding(), Encoding::Columnar);
        let probes = keys.iter().flat_map(|key| [key.saturating_sub(1), *key, key.saturating_add(1)]);
        for probe in probes.chain([0, u64::MAX]) {
            for past_equal in [false, true] {
                let before = |key: &u64| {
                    let order = if descending { probe.cmp(key) } else { key.cmp(&probe) };
                    order.is_lt() || (past_equal && order.is_eq())
                };
                let wanted = keys.partition_point(before);
                let bound = block.bound_in_bytes(&probe.to_be_bytes(), descending, past_equal);
                prop_assert_eq!(bound, Some(wanted), "{}", probe);
            }
        }
    }
}

#[test]
fn damage_and_wrong_places_are_noticed() {
    let records: Vec<_> =
        (0..40u64).map(|n| record(&n.to_be_bytes(), n, Op::Set(&n.to_le_bytes()))).collect();
    let stored = build(&records, false, Compression::None);
    assert_eq!(Block::open(stored.clone(), SEED + 1).err(), Some(Malformed::Checksum));
    for at in 0..stored.len() {
        let mut damaged = stored.clone();
        damaged[at] ^= 0x10;
        assert!(Block::open(damaged, SEED).is_err(), "byte {at}");
    }
    for len in 0..stored.len() {
        assert!(Block::open(stored[..len].to_vec(), SEED).is_err());
    }
}

/// A block with this body, under a checksum that matches.
fn open_body(mut body: Vec<u8>, encoding: Encoding) -> Result<Block, Malformed> {
    seal(&mut body, 0, encoding, Compression::None, SEED, &mut Vec::new());
    Block::open(body, SEED)
}

#[test]
fn a_columnar_block_holds_no_more_records_than_bytes() {
    let stored = build(&[record(b"key", 5, Op::Set(b"value"))], false, Compression::None);
    let mut body = stored[..stored.len() - TRAILER_BYTES].to_vec();
    assert_eq!(open_body(body.clone(), Encoding::Columnar).unwrap().count(), 1);
    // The same key a million times, in zero bytes: a walk without an end.
    let count_at = body.len() - 12;
    body[count_at..count_at + 4].copy_from_slice(&(1u32 << 20).to_le_bytes());
    assert_eq!(open_body(body, Encoding::Columnar).err(), Some(Malformed::Bounds));
}

#[test]
fn keys_of_a_columnar_block_fit_their_length() {
    let records: Vec<_> =
        (0..40u64).map(|n| record(&n.to_be_bytes(), n, Op::Set(&n.to_le_bytes()))).collect();
    let stored = build(&records, false, Compression::None);
    let body = stored[..stored.len() - TRAILER_BYTES].to_vec();
    assert!(open_body(body.clone(), Encoding::Columnar).is_ok());
    let base_at = body.len() - 36;
    for (at, byte) in [(8, 1), (15, 0x80)] {
        // Shown by its last eight bytes, such a key looks sound, but no search would find it.
        let mut beyond = body.clone();
        beyond[base_at + at] = byte;
        assert_eq!(open_body(beyond, Encoding::Columnar).err(), Some(Malformed::Bounds));
    }
    let mut wraps = body;
    wraps[base_at..base_at + 8].fill(0xff);
    assert_eq!(open_body(wraps, Encoding::Columnar).err(), Some(Malformed::Bounds));
    // Keys of zero bytes, with differences between them.
    let records: Vec<_> = (0..9u64).map(|n| record(b"", 9 - n, Op::Set(&[n as u8; 4]))).collect();
    let stored = build(&records, true, Compression::None);
    let mut body = stored[..stored.len() - TRAILER_BYTES].to_vec();
    let width_at = body.len() - 36 + 30;
    body.splice(0..0, [0, 1, 2, 3, 4, 3, 2, 1, 0]);
    body[width_at + 9] = 1;
    assert_eq!(open_body(body, Encoding::Columnar).err(), Some(Malformed::Bounds));
}

#[test]
fn restarts_that_point_elsewhere_are_found_by_every_walk() {
    let records: Vec<_> = (0..40u64)
        .map(|n| record(format!("k{n:03}").as_bytes(), n, Op::Set(&vec![b'v'; n as usize % 5])))
        .collect();
    let stored = build(&records, false, Compression::None);
    let body = stored[..stored.len() - TRAILER_BYTES].to_vec();
    let restart_at = body.len() - 20 - 2; // the last one, in front of the footer
    let walk = |body: Vec<u8>| -> Result<usize, Malformed> {
        let block = open_body(body, Encoding::Generic)?;
        let mut cursor = BlockCursor::new(0);
        cursor.enter(&block);
        cursor.seek_index(&block, 0)?;
        while cursor.next(&block)? {}
        Ok(block.count())
    };
    assert_eq!(walk(body.clone()), Ok(40));
    let mut elsewhere = body;
    elsewhere[restart_at..restart_at + 2].fill(0);
    assert_eq!(walk(elsewhere), Err(Malformed::Order));
}

#[test]
fn what_repeats_shrinks_and_what_claims_too_much_is_refused() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        if compression.is_available() {
            check_compression(compression);
        }
    }
}

fn check_compression(compression: Compression) {
    let text = b"the same words again and again and again".repeat(5);
    let records: Vec<_> =
        (0..50u64).map(|n| record(format!("k{n:03}").as_bytes(), n, Op::Set(&text))).collect();
    let plain = build(&records, false, Compression::None);
    let small = build(&records, false, compression);
    assert!(small.len() * 4 < plain.len());
    let random: Vec<u8> = (0..4000u64).map(|n| key_hash(&n.to_le_bytes()) as u8).collect();
    let unlike = [record(b"key", 1, Op::Set(&random))];
    assert!(build(&unlike, false, compression) == build(&unlike, false, Compression::None));
    let mut block = Block::open(plain, SEED).unwrap();
    block.refill(&small, SEED).unwrap();
    let mut cursor = BlockCursor::new(0);
    cursor.enter(&block);
    cursor.seek_index(&block, 49).unwrap();
    assert_eq!(cursor.record(&block).unwrap().payload, &text[..]);

    // A length that cannot be is refused before anything is allocated; one that is not that of the
    // body, afterwards.
    let body = &small[..small.len() - TRAILER_BYTES];
    let right = u32::from_le_bytes(body[..4].try_into().unwrap());
    let longest = BODY_BYTES_MAX as u32;
    for said in [u32::MAX, longest + 1, longest, right + 1, right - 1, 0] {
        let mut lie = said.to_le_bytes().to_vec();
        lie.extend_from_slice(&body[4..]);
        assert_eq!(refusal(lie, compression), Malformed::Bounds, "{said} for {right}");
    }
    for cut in [4, 5, 12, body.len() - 1] {
        assert_eq!(refusal(body[..cut].to_vec(), compression), Malformed::Bounds, "{cut}");
    }
}

/// Why a block with this compressed body is refused.
fn refusal(mut stored: Vec<u8>, compression: Compression) -> Malformed {
    stored.extend_from_slice(&[Encoding::Generic as u8, compression as u8]);
    let checksum = folddb_base::checksum::hash32(SEED, &stored);
    stored.extend_from_slice(&checksum.to_le_bytes());
    Block::open(stored, SEED).expect_err("it is refused")
}

#[test]
fn a_block_that_needs_a_feature_that_is_off_is_not_called_damaged() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let why = refusal(vec![1, 0, 0, 0, 0], compression);
        let wanted = if compression.is_available() { Malformed::Bounds } else { Malformed::Feature };
        assert_eq!(why, wanted, "{compression:?}");
    }
}

#[test]
fn numbers_take_few_bytes() {
    // 800 keys out of a hundred millionth of all, small values: 5 + 4 bytes each, or less.
    let mut numbers: Vec<u64> = (0..800u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24).collect();
    numbers.sort_unstable();
    let records: Vec<_> = numbers
        .iter()
        .map(|n| record(&n.to_be_bytes(), 5, Op::Set(&(n & 0x7ff_ffff).to_le_bytes())))
        .collect();
    let stored = build(&records, false, Compression::None);
    assert!(stored.len() <= 800 * 9 + 64, "{} bytes", stored.len());
}

#[test]
fn the_estimate_is_near_the_size() {
    let mut builder = BlockBuilder::new();
    for n in 0..640u64 {
        let (key, value) = ((n * 1_000_003).to_be_bytes(), n.to_le_bytes());
        builder.push(Record { key: &key, seq: n, kind: OpKind::Set, payload: &value });
    }
    let estimate = builder.size_bytes();
    let mut out = Vec::new();
    builder.finish(&mut out, BlockOptions { keep_seqs: false, compression: Compression::None, seed: 0 });
    assert!(out.len().abs_diff(estimate) < 100, "{} against {estimate}", out.len());
}
