//! Frames of the journal, and the records in them.

use folddb_base::checksum::{hash64, place_seed};
use folddb_base::{Lsn, OpKind, TableId};
use folddb_layout::frame::{
    FRAME_OVERHEAD_BYTES_MAX, FrameHead, FrameKind, LogOp, claimed_len, decode_frame, frame_len, put_frame,
    put_record, record_len, records,
};

use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    Target::new("frame", frame, frame_seeds).sealed_by(seal_frame),
    Target::new("frame-records", frame_records, all_record_seeds),
];

const SALT: u64 = 0x0123_4567_89ab_cdef;
const LSN: u64 = 1000;

/// A frame at [`LSN`], and what may follow it.
fn frame(input: &[u8]) {
    let claimed = claimed_len(input);
    let Ok(Some(frame)) = decode_frame(input, SALT, LSN) else { return };
    assert_eq!(claimed, Some(frame.len_bytes));
    assert!(frame.head.durable_lsn <= LSN);
    assert!(frame.head.first_seq.checked_add(u64::from(frame.head.count)).is_some());
    assert!(frame.len_bytes <= frame.payload.len() + FRAME_OVERHEAD_BYTES_MAX);
    assert_eq!(frame_len(LSN, &frame.head, frame.payload.len()), frame.len_bytes);
    let mut again = Vec::new();
    let hash = put_frame(&mut again, SALT, LSN, &frame.head, frame.payload);
    assert_eq!((&again[..], hash), (&input[..frame.len_bytes], frame.hash));
    assert_eq!(decode_frame(&again, SALT, LSN + 1), Ok(None), "a frame is only valid at its place");
}

fn seal_frame(input: &mut [u8]) {
    seal_frame_at(input, 0, SALT, LSN);
}

/// Makes the hash of the frame at `at` right; its length where there is one.
pub(super) fn seal_frame_at(bytes: &mut [u8], at: usize, salt: u64, lsn: Lsn) -> Option<(usize, u32)> {
    let frame = bytes.get_mut(at..)?;
    let len = claimed_len(frame)?;
    let frame = frame.get_mut(..len)?;
    let hash = hash64(place_seed(salt, lsn), &frame[8..]);
    frame[..8].copy_from_slice(&hash.to_le_bytes());
    Some((len, hash as u32))
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let payload = record_seeds().concat();
    let head = |kind, count, durable_lsn| FrameHead {
        kind,
        first_seq: 77,
        count,
        durable_lsn,
        prev_hash: 5,
        time_ms: None,
    };
    let seed = |head: FrameHead, payload: &[u8]| {
        let mut out = Vec::new();
        put_frame(&mut out, SALT, LSN, &head, payload);
        out
    };
    vec![
        seed(head(FrameKind::Batch, 6, 0), &payload),
        seed(head(FrameKind::Mark, 0, LSN), &[]),
        seed(head(FrameKind::Seal, 0, 12), &[]),
    ]
}

/// The payload of a frame.
fn frame_records(input: &[u8]) {
    let mut again = Vec::new();
    for record in records(input) {
        let Ok(record) = record else { return };
        let before = again.len();
        put_record(&mut again, record.table, record.op, record.key, record.payload);
        assert_eq!(again.len() - before, record_len(record.table, record.key.len(), record.payload.len()));
    }
    assert_eq!(again, input);
}

/// The payloads of frames, one record each.
pub(super) fn record_seeds() -> Vec<Vec<u8>> {
    let ops = [
        LogOp::Op(OpKind::Delete),
        LogOp::Op(OpKind::Set),
        LogOp::Op(OpKind::Insert),
        LogOp::Op(OpKind::Fold),
        LogOp::Op(OpKind::InsertFold),
        LogOp::RangeDelete,
    ];
    let payloads: [&[u8]; 6] = [b"", b"value", b"first", &[5, 0, 0, 0, 0, 0, 0, 0], b"\x01amm", b"kz"];
    ops.into_iter().zip(payloads).enumerate().map(record_seed).collect()
}

/// Those, and some that point to separated values.
fn all_record_seeds() -> Vec<Vec<u8>> {
    let pointer = super::base::pointer_bytes();
    let rope = super::base::rope_bytes();
    let separated =
        [OpKind::SetSeparated, OpKind::InsertSeparated].map(|kind| (LogOp::Op(kind), &pointer[..]));
    let separated = separated.into_iter().chain([(LogOp::Op(OpKind::FoldSeparated), &rope[..])]);
    let slot = [&7u64.to_le_bytes()[..], &pointer].concat();
    let hashed = [(LogOp::RemoveHashed, &slot[..8]), (LogOp::PutHashed, &slot[..])];
    let more = separated.chain(hashed).enumerate().map(record_seed);
    record_seeds().into_iter().chain(more).collect()
}

fn record_seed((number, (op, payload)): (usize, (LogOp, &[u8]))) -> Vec<u8> {
    let mut out = Vec::new();
    put_record(&mut out, TableId(number as u32 * 100), op, b"key", payload);
    out
}
