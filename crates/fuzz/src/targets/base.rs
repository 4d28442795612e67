//! Numbers, slices and ops: what all other formats are made of.

use folddb_base::bytes::{Reader, common_prefix_len, prefix_u64, put_slice, put_varint, varint_len};
use folddb_base::{Op, OpBuf, OpKind, Pointer, RopeBuilder, ValuePlace};

use crate::carve::Carver;
use crate::target::Target;

pub(super) const TARGETS: &[Target] =
    &[Target::new("varints", varints, varint_seeds), Target::new("op", op, op_seeds)];

/// Varints and slices in turn, up to the first that is none. What is read is written the same.
fn varints(input: &[u8]) {
    let mut reader = Reader::new(input);
    let mut written = Vec::new();
    while let Ok(number) = reader.varint() {
        let before = written.len();
        put_varint(&mut written, number);
        assert_eq!(written.len() - before, varint_len(number));
        let Ok(slice) = reader.slice() else { break };
        put_slice(&mut written, slice);
        let shared = common_prefix_len(slice, input);
        assert_eq!(slice[..shared], input[..shared]);
        assert!(slice.get(shared) != input.get(shared) || slice.get(shared).is_none());
        assert_eq!(prefix_u64(slice, 0) < prefix_u64(input, 0), prefix_order(slice, input));
    }
    assert!(input.starts_with(&written) || written.len() > input.len() - reader.rest().len());
    let consumed = input.len() - reader.rest().len();
    assert_eq!(written[..written.len().min(consumed)], input[..written.len().min(consumed)]);
}

/// True when the first eight bytes of `a`, filled up with zeros, are before those of `b`.
fn prefix_order(a: &[u8], b: &[u8]) -> bool {
    let padded =
        |bytes: &[u8]| -> Vec<u8> { bytes.iter().copied().chain(std::iter::repeat(0)).take(8).collect() };
    padded(a) < padded(b)
}

fn varint_seeds() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX] {
        put_varint(&mut all, number);
        put_slice(&mut all, b"slice");
    }
    vec![all, vec![0, 0], vec![0xff; 12]]
}

/// `kind u8 | payload`.
fn op(input: &[u8]) {
    let mut carver = Carver::new(input);
    let Ok(kind) = OpKind::from_u8(carver.byte()) else { return };
    let payload = carver.rest();
    let Ok(op) = Op::from_parts(kind, payload) else { return };
    assert_eq!(op.kind(), kind);
    assert_eq!(op.payload_len(), payload.len());
    let owned = OpBuf::from_op(op);
    assert_eq!((owned.kind, &owned.payload[..]), (kind, payload));
    assert_eq!(owned.op(), Ok(op));
}

/// A pointer to a separated value.
pub(super) fn pointer_bytes() -> Vec<u8> {
    let place = ValuePlace { segment: 7, unit: 256 };
    let mut out = Vec::new();
    Pointer { place, time_ms: 1_763_706_328_000, hash: 0xdead_beef, len: 8192, head: b"head" }.put(&mut out);
    out
}

/// Two separated values with some bytes between, as one.
pub(super) fn rope_bytes() -> Vec<u8> {
    rope_until(None)
}

fn rope_until(deadline_ms: Option<u64>) -> Vec<u8> {
    let (mut rope, mut out) = (RopeBuilder::default(), Vec::new());
    rope.push_separated(ValuePlace { segment: 7, unit: 256 }, 0xdead_beef, 8192);
    rope.push_inline(b", ");
    rope.push_separated(ValuePlace { segment: 8, unit: 300 }, 0xbeef_dead, 64);
    rope.put_until(1_763_706_328_000, deadline_ms, b"head", &mut out);
    out
}

fn op_seeds() -> Vec<Vec<u8>> {
    let (pointer, rope, lasting) = (pointer_bytes(), rope_bytes(), rope_until(Some(2_000_000_000_000)));
    let ops = [
        Op::Delete,
        Op::Set(b"v"),
        Op::Insert(b"v"),
        Op::Fold(b"m"),
        Op::InsertFold { absent: b"a", present: b"mm" },
        Op::SetSeparated(&pointer),
        Op::InsertSeparated(&pointer),
        Op::FoldSeparated(&rope),
        Op::SetSeparated(&lasting),
    ];
    let seed = |op: &Op<'_>| {
        let mut seed = vec![op.kind() as u8];
        op.put_payload(&mut seed);
        seed
    };
    ops.iter().map(seed).collect()
}
