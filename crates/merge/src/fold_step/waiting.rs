//! Ops that wait for their output, and sending records.

use folddb_base::bytes::Malformed;
use folddb_base::op::OpKind;
use folddb_base::{Error, ErrorKind, Op, OpBuf, Record, RecordSink, Result, Seq};
use folddb_rules::datum::hex;

use super::counts::Counts;

/// An op that waits for its output.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) seq: Seq,
    pub(super) floor: Seq,
    pub(super) op: OpBuf,
}

#[inline]
pub(super) fn send<K: RecordSink + ?Sized>(
    record: Record<'_>,
    counts: &mut Counts,
    sink: &mut K,
) -> Result<()> {
    counts.records_out += 1;
    counts.bytes_out += (record.key.len() + record.payload.len()) as u64;
    counts.deletes_out += u64::from(record.kind == OpKind::Delete);
    sink.push(record)
}

/// True for an op that is the complete state of its key.
#[inline]
pub(super) fn is_state(kind: OpKind) -> bool {
    matches!(kind, OpKind::Set | OpKind::SetSeparated)
}

pub(super) fn set_kind(op: &mut OpBuf, kind: OpKind) {
    op.kind = kind;
    if kind == OpKind::Delete {
        op.payload.clear();
    }
}

pub(super) fn decoded<'a>(key: &[u8], seq: Seq, op: &'a OpBuf) -> Result<Op<'a>> {
    op.op().map_err(|malformed| damaged(&Record { key, seq, kind: op.kind, payload: &op.payload }, malformed))
}

#[cold]
pub(super) fn damaged(record: &Record<'_>, malformed: Malformed) -> Error {
    let (key, seq, kind) = (hex(record.key), record.seq, record.kind);
    let message = format!("the {kind:?} at seq {seq} of key {key} cannot be decoded: {malformed}");
    Error::new(ErrorKind::Corruption, message)
}
