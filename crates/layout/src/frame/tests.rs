use folddb_base::bytes::Malformed;
use folddb_base::{OpKind, TableId};
use proptest::prelude::*;

use super::*;

const SALT: u64 = 0x5a17;

fn kinds() -> impl Strategy<Value = FrameKind> {
    prop_oneof![
        Just(FrameKind::Batch),
        Just(FrameKind::Mark),
        Just(FrameKind::Seal),
        Just(FrameKind::SealForNext)
    ]
}

fn heads() -> impl Strategy<Value = (u64, FrameHead)> {
    let numbers = (0..u64::MAX / 2, any::<u32>(), any::<u32>(), 0..1u64 << 50, 0..1u64 << 40);
    (kinds(), numbers, any::<Option<u64>>()).prop_map(
        |(kind, (first_seq, count, prev_hash, durable_lsn, behind), time_ms)| {
            let time_ms = time_ms.filter(|_| kind == FrameKind::Batch);
            (durable_lsn + behind, FrameHead { kind, first_seq, count, durable_lsn, prev_hash, time_ms })
        },
    )
}

fn small_frame() -> (Vec<u8>, u64) {
    let mut payload = Vec::new();
    put_record(&mut payload, TableId(3), OpKind::Fold, b"key", b"operand");
    let head = FrameHead {
        kind: FrameKind::Batch,
        first_seq: 1_000_000,
        count: 1,
        durable_lsn: 4_000,
        prev_hash: 77,
        time_ms: None,
    };
    let (mut bytes, lsn) = (Vec::new(), 5_000);
    put_frame(&mut bytes, SALT, lsn, &head, &payload);
    (bytes, lsn)
}

proptest! {
    #[test]
    fn a_frame_comes_back((lsn, head) in heads(), payload: Vec<u8>, before: Vec<u8>, after: Vec<u8>) {
        let payload = if head.kind == FrameKind::Batch { payload } else { Vec::new() };
        let mut bytes = before.clone();
        let hash = put_frame(&mut bytes, SALT, lsn, &head, &payload);
        prop_assert_eq!(bytes.len() - before.len(), frame_len(lsn, &head, payload.len()));
        prop_assert!(bytes.len() - before.len() <= payload.len() + FRAME_OVERHEAD_BYTES_MAX);
        let len_bytes = bytes.len() - before.len();
        bytes.extend_from_slice(&after);
        let frame = decode_frame(&bytes[before.len()..], SALT, lsn).unwrap().unwrap();
        prop_assert_eq!(frame, Frame { head, payload: &payload, len_bytes, hash });
        prop_assert_eq!(claimed_head(&bytes[before.len()..], lsn), Some((head, len_bytes)));
    }

    #[test]
    fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..100), lsn: u64, force: bool) {
        if force && bytes.len() >= 30 {
            bytes[16] = MAGIC;
            bytes[8..12].copy_from_slice(&30u32.to_le_bytes());
            let hash = hash64(place_seed(SALT, lsn), &bytes[8..30]);
            bytes[..8].copy_from_slice(&hash.to_le_bytes());
        }
        if let Ok(Some(frame)) = decode_frame(&bytes, SALT, lsn) {
            prop_assert_eq!(claimed_head(&bytes, lsn), Some((frame.head, frame.len_bytes)));
        }
        for record in records(&bytes) {
            let _ = record;
        }
    }

    #[test]
    fn records_come_back(
        list in prop::collection::vec((any::<u32>(), 0u8..5, any::<Vec<u8>>(), any::<Vec<u8>>()), 0..20)
    ) {
        let mut payload = Vec::new();
        let mut len = 0;
        for (table, kind, key, value) in &list {
            put_record(&mut payload, TableId(*table), OpKind::from_u8(*kind).unwrap(), key, value);
            len += record_len(TableId(*table), key.len(), value.len());
        }
        prop_assert_eq!(payload.len(), len);
        let read: Vec<_> = records(&payload).map(|record| record.unwrap()).collect();
        prop_assert_eq!(read.len(), list.len());
        for (record, (table, kind, key, value)) in read.iter().zip(&list) {
            prop_assert_eq!((record.table.0, record.op.code()), (*table, *kind));
            prop_assert_eq!((record.key, record.payload), (&key[..], &value[..]));
        }
    }
}

#[test]
fn a_small_batch_costs_few_bytes() {
    let (bytes, _) = small_frame();
    assert_eq!(bytes.len(), 18 + 3 + 1 + 2 + (1 + 1 + 4 + 8));
}

#[test]
fn every_flip_and_every_cut_is_seen() {
    let (bytes, lsn) = small_frame();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            assert_eq!(decode_frame(&bytes, SALT, lsn), Ok(None), "byte {at}, bit {bit}");
        }
        assert_eq!(decode_frame(&bytes[..at], SALT, lsn), Ok(None), "cut at {at}");
    }
}

#[test]
fn a_frame_is_one_only_at_its_place() {
    let (bytes, lsn) = small_frame();
    assert!(decode_frame(&bytes, SALT, lsn).unwrap().is_some());
    assert_eq!(decode_frame(&bytes, SALT, lsn + 1), Ok(None));
    assert_eq!(decode_frame(&bytes, SALT + 1, lsn), Ok(None));
    assert_eq!(decode_frame(&[0; 100], SALT, lsn), Ok(None));
}

#[test]
fn flags_of_the_future_are_an_error_and_no_damage() {
    let (mut bytes, lsn) = small_frame();
    bytes[17] |= 1 << 5;
    let hash = hash64(place_seed(SALT, lsn), &bytes[8..]);
    bytes[..8].copy_from_slice(&hash.to_le_bytes());
    assert_eq!(decode_frame(&bytes, SALT, lsn), Err(Malformed::Tag));
}

#[test]
fn a_damaged_record_ends_the_records() {
    let mut payload = Vec::new();
    put_record(&mut payload, TableId(1), OpKind::Set, b"k", b"v");
    let first_len = payload.len();
    put_record(&mut payload, TableId(1), OpKind::Set, b"k", b"v");
    payload[first_len + 1] = 0x80;
    let read: Vec<_> = records(&payload).collect();
    assert!(read[0].is_ok());
    assert_eq!(read[1..], [Err(Malformed::Tag)]);
    for len in 1..first_len {
        assert!(records(&payload[..len]).all(|record| record.is_err()), "{len}");
    }
}
