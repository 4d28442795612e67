use std::sync::Arc;

use folddb_base::stream::OwnedRecord;
use folddb_base::{Direction, Error, ErrorKind, OpBuf, OpKind, VecStream};
use folddb_rules::order::CustomOrder;
use proptest::prelude::*;

use super::*;
use crate::visible::Visible;

struct ByLength;

impl CustomOrder for ByLength {
    fn name(&self) -> &str {
        "by-length"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len())
    }
}

fn orders() -> impl Strategy<Value = KeyOrder> {
    prop_oneof![
        Just(KeyOrder::Bytewise),
        Just(KeyOrder::Reversed),
        Just(KeyOrder::Custom(Arc::new(ByLength))),
    ]
}

/// Keys that share a prefix, that are prefixes of one another, that end in zeros, that are all
/// ones.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()];
    (any::<bool>(), prop::collection::vec(byte, 0..12)).prop_map(|(long, tail)| {
        let mut key = if long { b"12345678".to_vec() } else { Vec::new() };
        key.extend(tail);
        key
    })
}

fn total(order: &KeyOrder, a: &OwnedRecord, b: &OwnedRecord) -> Ordering {
    order.compare(&a.key, &b.key).then(b.seq.cmp(&a.seq))
}

fn collect(mut stream: impl RecordStream) -> Vec<OwnedRecord> {
    let mut records = Vec::new();
    while let Some(record) = stream.record() {
        records.push(OwnedRecord::from_record(record));
        stream.advance().unwrap();
    }
    assert!(stream.advance().is_ok() && stream.record().is_none(), "the end stays the end");
    records
}

fn sources(keys: &[(Vec<u8>, usize)], k: usize, order: &KeyOrder, prefix: &[u8]) -> Vec<Vec<OwnedRecord>> {
    let mut sources = vec![Vec::new(); k];
    for (at, (key, source)) in keys.iter().enumerate() {
        let key = [prefix, key].concat();
        sources[source % k].push(OwnedRecord { key, seq: at as Seq + 1, op: OpBuf::default() });
    }
    sources.iter_mut().for_each(|source| source.sort_by(|a, b| total(order, a, b)));
    sources
}

proptest! {
    #[test]
    fn gives_the_total_order_and_its_mirror(
        order in orders(),
        keys in prop::collection::vec((key(), 0usize..32), 0..120),
        k in 1usize..18,
        skip in 0usize..3,
    ) {
        let skip = if order.has_byte_prefixes() { skip } else { 0 };
        let mut sources = sources(&keys, k, &order, &b"##"[..skip]);
        let mut expected = sources.concat();
        expected.sort_by(|a, b| total(&order, a, b));
        let streams = sources.iter().cloned().map(VecStream::new).collect();
        prop_assert_eq!(&collect(KWay::new(order.clone(), Direction::Forward, skip, streams)), &expected);

        let seen: Vec<_> = expected.iter().filter(|record| record.seq <= 20).cloned().collect();
        let streams = sources.iter().cloned().map(VecStream::new).collect();
        let visible = Visible::new(KWay::new(order.clone(), Direction::Forward, skip, streams), 20).unwrap();
        prop_assert_eq!(collect(visible), seen);

        sources.iter_mut().for_each(|source| source.reverse());
        expected.reverse();
        let streams = sources.into_iter().map(VecStream::new).collect();
        prop_assert_eq!(collect(KWay::new(order, Direction::Reversed, skip, streams)), expected);
    }
}

/// How many bytes some keys share, and one of them.
fn share_of<'k>(order: &KeyOrder, keys: &[&'k [u8]]) -> Option<(usize, &'k [u8])> {
    let (low, high) = (*keys.iter().min()?, *keys.iter().max()?);
    Some((order.shared_prefix_len(low, high), low))
}

proptest! {
    #[test]
    fn all_keys_share_what_is_skipped(
        order in orders(),
        sources in prop::collection::vec(prop::collection::vec(key(), 0..4), 0..6),
    ) {
        let keys: Vec<Vec<&[u8]>> =
            sources.iter().map(|keys| keys.iter().map(Vec::as_slice).collect()).collect();
        let skip = shared_skip(&order, keys.iter().filter_map(|keys| share_of(&order, keys)));
        let all: Vec<&[u8]> = keys.concat();
        prop_assert_eq!(skip, share_of(&order, &all).map_or(0, |(shared, _)| shared));
    }
}

#[test]
fn one_source_with_other_keys_leaves_nothing_to_skip() {
    let shares: [(usize, &[u8]); 3] = [(8, b"user:0001"), (9, b"user:0002"), (5, b"order")];
    assert_eq!(shared_skip(&KeyOrder::Bytewise, shares[..2].iter().copied()), 8);
    assert_eq!(shared_skip(&KeyOrder::Bytewise, shares.into_iter()), 0);
    assert_eq!(shared_skip(&KeyOrder::Bytewise, std::iter::empty()), 0);
}

fn record(key: &[u8], seq: Seq, payload: &[u8]) -> OwnedRecord {
    OwnedRecord { key: key.to_vec(), seq, op: OpBuf { kind: OpKind::Set, payload: payload.to_vec() } }
}

#[test]
fn equal_seqs_go_to_the_newer_source() {
    let newer = VecStream::new(vec![record(b"a", 7, b"newer 1"), record(b"a", 7, b"newer 2")]);
    let older = VecStream::new(vec![record(b"a", 7, b"older")]);
    let merged = collect(KWay::new(KeyOrder::Bytewise, Direction::Forward, 0, vec![newer, older]));
    let payloads: Vec<&[u8]> = merged.iter().map(|record| &record.op.payload[..]).collect();
    assert_eq!(payloads, [&b"newer 1"[..], b"newer 2", b"older"]);
}

#[test]
fn a_key_of_all_ones_is_not_taken_for_the_end() {
    let ones = VecStream::new(vec![record(&[255; 9], 1, b"")]);
    for sources in [vec![VecStream::default(), ones.clone()], vec![ones.clone(), VecStream::default()]] {
        assert_eq!(collect(KWay::new(KeyOrder::Bytewise, Direction::Forward, 0, sources)).len(), 1);
    }
    for sources in [vec![VecStream::default(), ones.clone()], vec![ones, VecStream::default()]] {
        assert_eq!(collect(KWay::new(KeyOrder::Reversed, Direction::Reversed, 0, sources)).len(), 1);
    }
}

#[test]
fn nothing_merges_to_nothing() {
    assert!(
        collect(KWay::<VecStream>::new(KeyOrder::Bytewise, Direction::Forward, 0, Vec::new())).is_empty()
    );
}

/// Fails on the second advance.
struct Failing(u32);

impl RecordStream for Failing {
    fn record(&self) -> Option<Record<'_>> {
        Some(Record { key: b"k", seq: 1, kind: OpKind::Delete, payload: b"" })
    }
    fn advance(&mut self) -> Result<()> {
        self.0 += 1;
        if self.0 > 1 { Err(Error::new(ErrorKind::Io, "gone")) } else { Ok(()) }
    }
}

#[test]
fn passes_errors_on() {
    for k in 1..4 {
        let mut kway =
            KWay::new(KeyOrder::Bytewise, Direction::Forward, 0, (0..k).map(|_| Failing(0)).collect());
        let failed = (0..=k).find_map(|_| kway.advance().err());
        assert_eq!(failed.unwrap().message(), "gone");
    }
}
