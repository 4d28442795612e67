//! Parts and runs as a whole: what is written comes back, in every way of reading, and damage is
//! found.

mod leading;
mod memory;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::checksum::key_hash;
use folddb_base::stream::OwnedRecord;
use folddb_base::{Direction, ErrorKind, FileNumber, OpBuf, OpKind, Record, RecordSink, RecordStream};
use folddb_host::Files;
use folddb_rules::KeyOrder;
use folddb_rules::order::CustomOrder;
use proptest::prelude::*;

use crate::*;
use memory::MemoryFiles;

struct ByLength;

impl CustomOrder for ByLength {
    fn name(&self) -> &str {
        "by-length"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len())
    }
}

pub(crate) fn order(number: u8) -> KeyOrder {
    match number % 3 {
        0 => KeyOrder::Bytewise,
        1 => KeyOrder::Reversed,
        _ => KeyOrder::Custom(Arc::new(ByLength)),
    }
}

pub(crate) struct World {
    memory: Arc<MemoryFiles>,
    files: Arc<dyn Files>,
    shared: Arc<Shared>,
}

impl World {
    pub(crate) fn new(cache_bytes: u64, files_open_max: usize) -> World {
        let memory = Arc::new(MemoryFiles::default());
        World { files: Arc::clone(&memory) as _, memory, shared: Shared::new(cache_bytes, files_open_max) }
    }

    fn path(number: u64) -> PathBuf {
        PathBuf::from(format!("{number:06}.part"))
    }

    fn write(
        &self,
        number: u64,
        options: &WriteOptions,
        records: &[OwnedRecord],
    ) -> Result<PartFacts, Error> {
        let path = World::path(number);
        let file = self.files.create(&path).unwrap();
        let mut writer = PartWriter::new(file, &path, FileNumber(number), options.clone());
        for record in records {
            writer.push(record.record())?;
        }
        writer.finish()
    }

    fn open(&self, number: u64, order: &KeyOrder) -> Result<Arc<Part>, Error> {
        Part::open(&self.files, &World::path(number), FileNumber(number), order, &self.shared)
    }

    pub(crate) fn part(&self, number: u64, options: &WriteOptions, records: &[OwnedRecord]) -> Arc<Part> {
        let facts = self.write(number, options, records).unwrap();
        let part = self.open(number, &options.order).unwrap();
        assert_eq!(*part.facts(), facts);
        assert_eq!(facts.file_bytes, self.memory.bytes(part.path()).len() as u64);
        part
    }
}

use folddb_base::Error;

fn record(key: &[u8], seq: u64, kind: OpKind, payload: &[u8]) -> OwnedRecord {
    OwnedRecord { key: key.to_vec(), seq, op: OpBuf { kind, payload: payload.to_vec() } }
}

fn collect(stream: &mut impl RecordStream) -> Vec<OwnedRecord> {
    let mut records = Vec::new();
    while let Some(record) = stream.record() {
        records.push(OwnedRecord::from_record(record));
        stream.advance().unwrap();
    }
    stream.advance().unwrap();
    assert!(stream.record().is_none());
    records
}

/// Records in the total order of `order`; the seqs of different keys are mixed, no two are equal.
pub(crate) fn in_order(order: &KeyOrder, rows: Vec<(Vec<u8>, u8, Vec<u8>)>) -> Vec<OwnedRecord> {
    let count = rows.len() as u64;
    let mut records: Vec<OwnedRecord> = rows
        .into_iter()
        .enumerate()
        .map(|(row, (key, kind, payload))| {
            let seq = 1 + (row as u64 * 7919) % (count.next_power_of_two() * 7919 + 1);
            match kind {
                0 => record(&key, seq, OpKind::Delete, &[]),
                1..5 => record(&key, seq, OpKind::Set, &payload),
                _ => record(&key, seq, OpKind::Fold, &payload),
            }
        })
        .collect();
    records.sort_by(|a, b| order.compare(&a.key, &b.key).then(b.seq.cmp(&a.seq)));
    records
}

/// A part of drawn rows, in one of the orders, with its records.
pub(crate) fn part_of(
    rows: Vec<(Vec<u8>, u8, Vec<u8>)>,
    number: u8,
    block_bytes: usize,
) -> (KeyOrder, Vec<OwnedRecord>, Arc<Part>) {
    let order = order(number);
    let records = in_order(&order, rows);
    let options = WriteOptions { order: order.clone(), block_bytes, ..WriteOptions::default() };
    let part = World::new(1 << 20, 4).part(1, &options, &records);
    (order, records, part)
}

pub(crate) fn rows() -> impl Strategy<Value = Vec<(Vec<u8>, u8, Vec<u8>)>> {
    let wild_key = proptest::collection::vec(prop_oneof![3 => 0u8..4, 1 => any::<u8>()], 0..10);
    let wild_payload = proptest::collection::vec(any::<u8>(), 0..30);
    let wild = proptest::collection::vec((wild_key, 0u8..8, wild_payload), 1..400);
    let fixed_key = (0u64..3000).prop_map(|number| (number * 1_000_003).to_be_bytes().to_vec());
    let fixed_payload = (0u64..1 << 27).prop_map(|number| number.to_le_bytes().to_vec());
    let fixed = proptest::collection::vec((fixed_key, 1u8..3, fixed_payload), 1..700);
    // Few keys with many records each, so that a key spans blocks and leaves.
    let few_key = (0u8..3).prop_map(|number| vec![b'k', number]);
    let few =
        proptest::collection::vec((few_key, 5u8..8, proptest::collection::vec(any::<u8>(), 20..30)), 1..400);
    prop_oneof![wild, fixed, few]
}

/// What a part without seqs shows: records of blocks in which no key repeats have the part's
/// largest seq.
fn same_but_seqs(found: &[OwnedRecord], written: &[OwnedRecord], max_seq: u64) {
    assert_eq!(found.len(), written.len());
    for (found, written) in found.iter().zip(written) {
        assert_eq!((&found.key, &found.op), (&written.key, &written.op));
        assert!(found.seq == written.seq || found.seq == max_seq);
    }
}

fn position(order: &KeyOrder, direction: Direction, from: Bound<&[u8]>, key: &[u8]) -> bool {
    let compare = |bound: &[u8]| match direction {
        Direction::Forward => order.compare(key, bound),
        Direction::Reversed => order.compare(bound, key),
    };
    match from {
        Bound::Unbounded => true,
        Bound::Included(bound) => compare(bound).is_ge(),
        Bound::Excluded(bound) => compare(bound).is_gt(),
    }
}

fn get_all(part: &Part, key: &[u8], max_seq: u64) -> Vec<OwnedRecord> {
    let mut found = Vec::new();
    let flow = part.get(key, key_hash(key), max_seq, &mut |record| {
        found.push(OwnedRecord::from_record(record));
        Ok(ControlFlow::Continue(()))
    });
    assert!(flow.unwrap().is_continue());
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_written_comes_back(
        rows in rows(),
        number in 0u8..3,
        keep_seqs: bool,
        lz4: bool,
        block_bytes in prop_oneof![Just(64usize), Just(300), Just(8192)],
        filter_bits in prop_oneof![Just(0u32), Just(10)],
        low in any::<prop::sample::Index>(),
        probes in proptest::collection::vec(any::<prop::sample::Index>(), 6),
    ) {
        let order = order(number);
        let records = in_order(&order, rows);
        let world = World::new(1 << 20, 4);
        let compression = if lz4 { Compression::Lz4 } else { Compression::None };
        let options = WriteOptions {
            order: order.clone(),
            block_bytes,
            compression,
            filter_bits,
            keep_seqs,
            ..WriteOptions::default()
        };
        let part = world.part(7, &options, &records);
        verify(&part).unwrap();

        let max_seq = part.facts().max_seq;
        let mut forward = part.cursor(Direction::Forward, ReadMode::Cached, None);
        forward.seek_start().unwrap();
        let shown = collect(&mut forward);
        match keep_seqs {
            true => prop_assert_eq!(&shown, &records),
            false => same_but_seqs(&shown, &records, max_seq),
        }
        let low = &records[low.index(records.len())].key;
        for direction in [Direction::Forward, Direction::Reversed] {
            for mode in [ReadMode::Cached, ReadMode::ReadAhead] {
                for low in [None, Some(&low[..])] {
                    let mut mirrored = shown.clone();
                    mirrored.retain(|record| low.is_none_or(|low| order.compare(&record.key, low).is_ge()));
                    if direction == Direction::Reversed {
                        mirrored.reverse();
                    }
                    let mut cursor = part.cursor(direction, mode, low);
                    cursor.seek_start().unwrap();
                    prop_assert_eq!(collect(&mut cursor), &mirrored[..]);
                    for probe in &probes {
                        let mut key = records[probe.index(records.len())].key.clone();
                        if probe.index(3) == 0 {
                            key.push(1);
                        }
                        for from in [Bound::Included(&key[..]), Bound::Excluded(&key[..])] {
                            cursor.seek(from).unwrap();
                            let rest: Vec<_> = mirrored
                                .iter()
                                .filter(|record| position(&order, direction, from, &record.key))
                                .cloned()
                                .collect();
                            for wanted in rest.iter().take(40) {
                                prop_assert_eq!(cursor.record(), Some(wanted.record()));
                                cursor.advance().unwrap();
                            }
                            if rest.len() <= 40 {
                                prop_assert!(cursor.is_ended());
                            }
                        }
                    }
                }
            }
        }

        let mut by_key: BTreeMap<&[u8], Vec<OwnedRecord>> = BTreeMap::new();
        shown.iter().for_each(|record| by_key.entry(&record.key).or_default().push(record.clone()));
        for (key, records) in by_key {
            prop_assert_eq!(&get_all(&part, key, u64::MAX), &records);
            let middle = records[records.len() / 2].seq;
            let visible: Vec<_> = records.iter().filter(|record| record.seq <= middle).cloned().collect();
            prop_assert_eq!(get_all(&part, key, middle), visible);
            let mut absent = key.to_vec();
            absent.push(9);
            prop_assert!(get_all(&part, &absent, u64::MAX).is_empty() || shown.iter().any(|r| r.key == absent));
        }
    }

    #[test]
    fn a_run_is_one_stream(
        rows in rows(),
        number in 0u8..3,
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        trims in proptest::collection::vec(proptest::option::of(any::<prop::sample::Index>()), 6),
        probes in proptest::collection::vec(any::<prop::sample::Index>(), 8),
    ) {
        let order = order(number);
        let records = in_order(&order, rows);
        let world = World::new(1 << 20, 1);
        let options = WriteOptions { order: order.clone(), block_bytes: 200, ..WriteOptions::default() };
        // Cut between keys only.
        let mut boundaries: Vec<usize> = cuts.iter().map(|cut| cut.index(records.len())).collect();
        boundaries.retain(|at| *at > 0 && records[*at].key != records[*at - 1].key);
        boundaries.extend([0, records.len()]);
        boundaries.sort_unstable();
        boundaries.dedup();
        let (mut parts, mut visible) = (Vec::new(), Vec::new());
        for (at, pair) in boundaries.windows(2).enumerate() {
            let records = &records[pair[0]..pair[1]];
            let part = world.part(at as u64, &options, records);
            let low = trims[at].map(|trim| records[trim.index(records.len())].key.clone());
            let shows = |record: &&OwnedRecord| low.as_ref().is_none_or(|low| order.compare(&record.key, low).is_ge());
            visible.extend(records.iter().filter(shows).cloned());
            parts.push((part, low));
        }
        for direction in [Direction::Forward, Direction::Reversed] {
            if direction == Direction::Reversed {
                visible.reverse();
            }
            let mut cursor = RunCursor::new(parts.clone(), order.clone(), direction, ReadMode::Cached);
            prop_assert!(cursor.is_ended());
            cursor.seek_start().unwrap();
            prop_assert_eq!(&collect(&mut cursor), &visible);
            for probe in &probes {
                let key = &records[probe.index(records.len())].key[..];
                for from in [Bound::Included(key), Bound::Excluded(key)] {
                    cursor.seek(from).unwrap();
                    let wanted = visible.iter().find(|record| position(&order, direction, from, &record.key));
                    prop_assert_eq!(cursor.record(), wanted.map(OwnedRecord::record));
                }
            }
        }
        // One descriptor in the cache, and one that a reader uses.
        prop_assert!(world.memory.open_now() <= 2);
    }
}

pub(crate) fn numbers(count: u64) -> Vec<OwnedRecord> {
    let mut keys: Vec<u64> = (0..count).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    keys.sort_unstable();
    keys.iter()
        .map(|key| {
            record(&key.to_be_bytes(), 1 + key % count, OpKind::Set, &(key & 0x7ff_ffff).to_le_bytes())
        })
        .collect()
}

#[test]
fn pairs_of_random_numbers_take_few_bytes() {
    let world = World::new(1 << 20, 4);
    let records = numbers(300_000);
    let options = WriteOptions { keep_seqs: false, filter_bits: 0, ..WriteOptions::default() };
    let facts = world.write(1, &options, &records).unwrap();
    // 7 bytes of key: neighbors are 2^46 apart, so 740 of them span 2^55. 4 of value: it is below
    // 2^27. A hundred million records would be 2^37 apart and take 6 of key. The rest is footers
    // and index.
    let per_record = |facts: &PartFacts| facts.file_bytes as f64 / facts.records as f64;
    assert!(per_record(&facts) <= 11.2, "{} bytes a record", per_record(&facts));
    let filtered = world.write(2, &WriteOptions { filter_bits: 10, ..options }, &records).unwrap();
    assert!(per_record(&filtered) <= 11.2 + 1.3, "{} bytes a record", per_record(&filtered));
    assert!(facts.sketch.len() == 256 && facts.keys == 300_000);
}

/// What an inspection received.
#[derive(Default)]
struct Told {
    records: Vec<OwnedRecord>,
    faults: Vec<Fault>,
}

impl Inspect for Told {
    fn record(&mut self, _: u64, record: folddb_base::Record<'_>) {
        self.records.push(OwnedRecord::from_record(record));
    }
    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }
    fn unread(&mut self, error: folddb_base::Error) {
        panic!("a block that this build cannot read: {error}");
    }
}

/// Parts with several blocks to a leaf, and several leaves.
fn samples() -> [(WriteOptions, Vec<OwnedRecord>); 3] {
    let text =
        |n: u64| record(format!("key{n:04}").as_bytes(), n, OpKind::Fold, &[b'x'; 40][..(n % 40) as usize]);
    [
        (WriteOptions { block_bytes: 200, ..WriteOptions::default() }, numbers(300)),
        (
            WriteOptions { block_bytes: 300, compression: Compression::Lz4, ..WriteOptions::default() },
            (0..60).map(text).collect(),
        ),
        (
            WriteOptions { block_bytes: 64, filter_bits: 0, keep_seqs: false, ..WriteOptions::default() },
            (0..90).map(text).collect(),
        ),
    ]
}

#[test]
fn what_is_not_damaged_is_read_and_what_is_lost_is_in_the_span_of_a_fault() {
    for (options, records) in samples() {
        let world = World::new(1 << 20, 4);
        let part = world.part(3, &options, &records);
        let order = options.order.clone();
        let mut whole = Told::default();
        examine(&part, Depth::Records, &mut whole);
        assert!(whole.faults.is_empty(), "{:?}", whole.faults);
        let bytes = world.memory.bytes(part.path());
        for at in (0..bytes.len()).step_by(3) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            world.memory.put(part.path(), damaged);
            let Ok(part) = world.open(3, &order) else { continue };
            let mut told = Told::default();
            examine(&part, Depth::Records, &mut told);
            assert!(!told.faults.is_empty(), "nobody saw byte {at}");
            let mut left = told.records.iter().peekable();
            for record in &whole.records {
                if left.next_if(|found| *found == record).is_some() {
                    continue;
                }
                let is_in = |span: &KeySpan| {
                    span.after.as_ref().is_none_or(|after| order.compare(after, &record.key).is_lt())
                        && span.through.as_ref().is_none_or(|last| order.compare(&record.key, last).is_le())
                };
                assert!(
                    told.faults.iter().any(|fault| is_in(&fault.keys)),
                    "byte {at}: {:?} is lost and not in {:?}",
                    record.key,
                    told.faults
                );
            }
            assert!(left.next().is_none(), "byte {at}: a record that never was");
        }
    }
}

#[test]
fn the_blocks_of_a_part_without_index_are_found_again() {
    for (options, records) in samples() {
        let world = World::new(1 << 20, 4);
        let part = world.part(3, &options, &records);
        let bytes = world.memory.bytes(part.path());
        let file = world.files.open(part.path()).unwrap();
        let search = Search {
            path: part.path(),
            number: FileNumber(3),
            range: 0..bytes.len() as u64,
            implied_seq: part.facts().max_seq,
        };
        let (mut whole, mut found) = (Told::default(), Told::default());
        examine(&part, Depth::Records, &mut whole);
        let end = search_blocks(&*file, &search, &mut found);
        assert_eq!(end, part.frame().meta.data_bytes);
        assert_eq!(found.records, whole.records);
        assert!(found.faults.is_empty());
        // With another number the same bytes are not blocks.
        let other = Search { number: FileNumber(4), ..search };
        assert_eq!(search_blocks(&*file, &other, &mut found), 0);
    }
}

#[test]
fn every_damaged_byte_is_found() {
    for (options, records) in [
        (WriteOptions { block_bytes: 200, ..WriteOptions::default() }, numbers(120)),
        (
            WriteOptions { block_bytes: 300, compression: Compression::Lz4, ..WriteOptions::default() },
            (0..60u64)
                .map(|n| {
                    record(format!("key{n:04}").as_bytes(), n, OpKind::Fold, &[b'x'; 40][..(n % 40) as usize])
                })
                .collect(),
        ),
    ] {
        let world = World::new(1 << 20, 4);
        let part = world.part(3, &options, &records);
        verify(&part).unwrap();
        let whole = world.memory.bytes(part.path());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            world.memory.put(part.path(), damaged);
            let found = world.open(3, &options.order).and_then(|part| {
                for record in &records {
                    // Every get on a damaged part returns an error or the right answer.
                    let hash = key_hash(&record.key);
                    let visit = &mut |found: folddb_base::Record<'_>| {
                        assert_eq!(found, record.record());
                        Ok(ControlFlow::Continue(()))
                    };
                    if let Err(error) = part.get(&record.key, hash, u64::MAX, visit) {
                        assert_eq!(error.kind(), ErrorKind::Corruption);
                    }
                }
                verify(&part)
            });
            check_damage(found, at);
        }
        for len in 0..whole.len() {
            world.memory.put(part.path(), whole[..len].to_vec());
            check_damage(world.open(3, &options.order).map(|_| ()), len);
        }
    }
}

/// A separator beyond the key of its block, although the records of that key continue in the next:
/// it is in order, but a get would stop at it.
#[test]
fn a_separator_that_cuts_a_key_in_two_is_found() {
    let world = World::new(1 << 20, 4);
    let options = WriteOptions { block_bytes: 200, ..WriteOptions::default() };
    let mut records: Vec<_> =
        (0..20u64).map(|n| record(b"k", 100 - n, OpKind::Fold, &n.to_le_bytes().repeat(12))).collect();
    records.push(record(b"z", 1, OpKind::Fold, &[b'z'; 96]));
    let part = world.part(3, &options, &records);
    verify(&part).unwrap();
    let leaf = part.frame().top.leaves[0].place;
    let mut bytes = world.memory.bytes(part.path());
    let (from, end) = (leaf.offset as usize, leaf.end() as usize);
    // The leaf is columnar: its first byte is the first separator less the least of them.
    assert_eq!((bytes[from], part.read_leaf(leaf).unwrap().separators.get(0)), (0, &b"k"[..]));
    bytes[from] = 1;
    let checksum = folddb_base::checksum::hash32(part.seed(leaf), &bytes[from..end - 4]);
    bytes[end - 4..end].copy_from_slice(&checksum.to_le_bytes());
    world.memory.put(part.path(), bytes);
    let part = world.open(3, &options.order).unwrap();
    assert_eq!(part.read_leaf(leaf).unwrap().separators.get(0), b"l");
    let error = verify(&part).expect_err("a get finds two of twenty records");
    assert!(error.message().contains("a key continues after a separator"), "{error}");
}

fn check_damage(found: Result<(), Error>, at: usize) {
    let error = found.expect_err(&format!("damage at {at} must be found"));
    let is_version = error.kind() == ErrorKind::NewerFormat;
    assert!(error.kind() == ErrorKind::Corruption || is_version, "{error}");
    assert!(error.message().contains("000003.part"), "{error}");
    assert!(is_version || error.message().contains("offset"), "{error}");
}

#[test]
fn records_out_of_order_are_refused() {
    let world = World::new(1 << 20, 4);
    let set = |key: &[u8], seq| record(key, seq, OpKind::Set, b"v");
    for records in [
        vec![set(b"b", 1), set(b"a", 2)],
        vec![set(b"a", 1), set(b"a", 2)],
        vec![set(b"a", 1), set(b"a", 1)],
        vec![set(b"aaaaaaaaab", 1), set(b"aaaaaaaaaa", 2)],
    ] {
        let error = world.write(1, &WriteOptions::default(), &records).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    assert!(world.write(2, &WriteOptions::default(), &[]).is_err());
    let long = vec![0; folddb_base::limits::KEY_BYTES_MAX + 1];
    assert!(world.write(3, &WriteOptions::default(), &[set(&long, 1)]).is_err());
}

#[test]
fn another_order_and_another_number_are_refused() {
    let world = World::new(1 << 20, 4);
    let part = world.part(1, &WriteOptions::default(), &numbers(10));
    let error = world.open(1, &KeyOrder::Reversed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RulesMismatch);
    world.memory.put(&World::path(2), world.memory.bytes(part.path()));
    assert_eq!(world.open(2, &KeyOrder::Bytewise).unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(world.open(9, &KeyOrder::Bytewise).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn long_records_stand_alone() {
    let world = World::new(1 << 20, 4);
    let long = vec![5u8; 3 << 20];
    let mut records = numbers(500);
    records.insert(250, record(&records[250].key.clone(), u64::MAX, OpKind::Set, &long));
    let part = world.part(1, &WriteOptions::default(), &records);
    verify(&part).unwrap();
    for mode in [ReadMode::Cached, ReadMode::ReadAhead] {
        for direction in [Direction::Forward, Direction::Reversed] {
            let mut cursor = part.cursor(direction, mode, None);
            cursor.seek_start().unwrap();
            assert_eq!(collect(&mut cursor).len(), 501);
        }
    }
    assert_eq!(get_all(&part, &records[250].key, u64::MAX).len(), 2);
}

#[test]
fn the_cache_the_filters_and_the_descriptors_do_their_work() {
    let world = World::new(8 << 20, 2);
    let records = numbers(50_000);
    let parts: Vec<_> = (0..5)
        .map(|n| world.part(n, &WriteOptions::default(), &records[n as usize * 10_000..][..10_000]))
        .collect();
    assert!(world.memory.open_now() <= 2, "{} files open", world.memory.open_now());
    for _ in 0..2 {
        for (part, record) in parts.iter().zip(records.chunks(10_000)) {
            assert_eq!(get_all(part, &record[77].key, u64::MAX).len(), 1);
        }
    }
    let stats = world.shared.stats();
    assert_eq!((stats.cache_hits, stats.cache_misses, stats.pieces_read), (15, 15, 15));
    assert_eq!((stats.filter_passes, stats.filter_rejects), (10, 0));
    assert!(stats.cache_bytes > 0 && stats.files_open <= 2 && world.memory.open_now() <= 2);

    let absent = (0..2000u64).map(|n| (n << 51 | 12345).to_be_bytes());
    for key in absent {
        parts.iter().for_each(|part| assert!(get_all(part, &key, u64::MAX).is_empty()));
    }
    let rejects = world.shared.stats().filter_rejects;
    let passes = world.shared.stats().filter_passes - 10;
    assert!(rejects > 50 * passes, "{rejects} rejected, {passes} passed");

    parts[0].forget();
    let before = world.shared.stats();
    assert!(before.cache_bytes < stats.cache_bytes + 100_000);
    get_all(&parts[0], &records[77].key, u64::MAX);
    assert_eq!(
        world.shared.stats().cache_misses,
        before.cache_misses + 1,
        "leaf and filter go with the part"
    );
    drop(parts);
    assert_eq!(world.memory.open_now(), 0);

    // A merge's reads leave the cache alone.
    let part = world.part(9, &WriteOptions::default(), &records);
    let before = world.shared.stats();
    let mut cursor = part.cursor(Direction::Forward, ReadMode::ReadAhead, None);
    cursor.seek_start().unwrap();
    assert_eq!(collect(&mut cursor).len(), 50_000);
    assert_eq!(world.shared.stats().cache_bytes, before.cache_bytes);
}

#[test]
fn large_parts_have_many_leaves_and_filters() {
    let world = World::new(32 << 20, 4);
    let records = numbers(200_000);
    let options = WriteOptions { keep_seqs: false, ..WriteOptions::default() };
    let part = world.part(1, &options, &records);
    verify(&part).unwrap();
    assert!(part.boundaries().len() > 3);
    assert!(part.boundaries().is_sorted());
    for record in records.iter().step_by(97) {
        let found = get_all(&part, &record.key, u64::MAX);
        assert_eq!((found.len(), &found[0].op), (1, &record.op));
    }
    assert!(part.memory_bytes() < 16 << 10, "{} bytes", part.memory_bytes());
}

#[test]
fn an_error_of_the_visitor_comes_through() {
    let world = World::new(1 << 20, 4);
    let part = world.part(1, &WriteOptions::default(), &[record(b"k", 2, OpKind::Set, b"v")]);
    let broken = part.get(b"k", key_hash(b"k"), 9, &mut |_| Ok(ControlFlow::Break(())));
    assert!(broken.unwrap().is_break());
    let failed = part.get(b"k", key_hash(b"k"), 9, &mut |_| Err(Error::invalid("no")));
    assert_eq!(failed.unwrap_err().message(), "no");
    // A visitor may itself look something up.
    let nested = part.get(b"k", key_hash(b"k"), 9, &mut |_| {
        Ok(match get_all(&part, b"k", 9).len() {
            1 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    });
    assert!(nested.unwrap().is_break());
    let path: &Path = part.path();
    assert_eq!((path, part.number()), (World::path(1).as_path(), FileNumber(1)));
}

fn even_numbers(count: u64) -> Vec<OwnedRecord> {
    (0..count).map(|n| record(&(2 * n).to_be_bytes(), n + 1, OpKind::Set, &n.to_le_bytes())).collect()
}

#[test]
fn a_part_that_was_warmed_reads_only_blocks() {
    let world = World::new(16 << 20, 4);
    let part = world.part(1, &WriteOptions::default(), &even_numbers(20_000));
    part.warm();
    for n in [0u64, 9_999, 19_999] {
        let before = world.shared.stats().pieces_read;
        let key = (2 * n).to_be_bytes();
        let flow = part.get(&key, key_hash(&key), u64::MAX, &mut |_| Ok(ControlFlow::Break(()))).unwrap();
        assert!(flow.is_break());
        assert_eq!(world.shared.stats().pieces_read - before, 1, "key {n}");
    }
    let small = World::new(64 << 10, 4);
    let part = small.part(1, &WriteOptions::default(), &even_numbers(20_000));
    let before = small.shared.stats().bytes_read;
    part.warm();
    assert_eq!(small.shared.stats().bytes_read, before, "its filters would fill the cache");
}

#[test]
fn what_is_asked_for_is_what_a_get_reads_and_only_that() {
    use memory::Call::{Read, WillNeed};
    let world = World::new(16 << 20, 4);
    let part = world.part(1, &WriteOptions::default(), &even_numbers(50_000));
    let as_reads = |calls: Vec<memory::Call>| -> Vec<memory::Call> {
        let read = |call| if let WillNeed(at, len) = call { Some(Read(at, len)) } else { None };
        calls.into_iter().filter_map(read).collect()
    };
    let (mut passed, mut found) = (0, 0);
    for n in (0..100_000u64).step_by(997) {
        let key = n.to_be_bytes();
        let hash = key_hash(&key);
        for rank in [Rank::Young, Rank::Oldest] {
            world.memory.take_calls();
            part.ask_for_index(part.probe(&key, hash, u64::MAX), rank, hash);
            let index = as_reads(world.memory.take_calls());
            part.ask_for_block(part.probe(&key, hash, u64::MAX), rank, &key, hash).unwrap();
            let calls = world.memory.take_calls();
            let (read, block): (Vec<_>, Vec<_>) =
                calls.into_iter().partition(|call| matches!(call, Read(..)));
            assert!(read.iter().all(|call| index.contains(call)), "{n}: {read:?} of {index:?}");
            let mut take = |_: Record<'_>| {
                found += 1;
                Ok(ControlFlow::Break(()))
            };
            let mut tally = Tally::default();
            let _ = part.get_as(rank, &key, hash, u64::MAX, &mut tally, &mut take).unwrap();
            assert_eq!(as_reads(block), world.memory.take_calls(), "key {n} as {rank:?}");
            passed += tally.filter_passes();
        }
    }
    assert!(found == 102 && passed > 0, "{found}, {passed}");
}

#[test]
fn a_small_part_that_was_warmed_reads_nothing_once_gets_have_read_blocks() {
    let world = World::new(16 << 20, 4);
    let part = world.part(1, &WriteOptions::default(), &even_numbers(20_000));
    part.warm();
    let key = 0u64.to_be_bytes();
    assert_eq!(get_all(&part, &key, u64::MAX).len(), 1);
    let next = world.part(2, &WriteOptions::default(), &even_numbers(20_000));
    next.warm();
    let before = world.shared.stats().pieces_read;
    for n in (0..20_000u64).step_by(77) {
        assert_eq!(get_all(&next, &(2 * n).to_be_bytes(), u64::MAX).len(), 1, "key {n}");
    }
    assert_eq!(world.shared.stats().pieces_read, before);
}

#[test]
fn the_oldest_part_answers_without_the_filters_that_are_not_cached() {
    let world = World::new(16 << 20, 4);
    let part = world.part(1, &WriteOptions::default(), &even_numbers(2_000));
    let key =
        (0..2_000u64).map(|n| (2 * n).to_be_bytes()).find(|key| !key_hash(key).is_multiple_of(4)).unwrap();
    let (mut seen, mut tally) = (0, Tally::default());
    let mut visit = |_: Record<'_>| {
        seen += 1;
        Ok(ControlFlow::Continue(()))
    };
    assert!(
        part.get_as(Rank::Oldest, &key, key_hash(&key), u64::MAX, &mut tally, &mut visit)
            .unwrap()
            .is_continue()
    );
    assert_eq!((seen, world.shared.stats().pieces_read), (1, 2), "a leaf and a block");
    for n in 0..4_000u64 {
        let before = seen;
        let mut visit = |_: Record<'_>| {
            seen += 1;
            Ok(ControlFlow::Continue(()))
        };
        let key = n.to_be_bytes();
        let flow = part.get_as(Rank::Oldest, &key, key_hash(&key), u64::MAX, &mut tally, &mut visit).unwrap();
        assert!(flow.is_continue());
        assert_eq!(seen - before, u64::from(n.is_multiple_of(2)), "key {n}");
    }
    world.shared.count(&tally);
    assert!(world.shared.stats().filter_rejects > 1_500, "the filter was read in the end");
}

/// Reads keys together, each as its probe and its steps lead to it: which of them are there.
fn read_near(part: &Part, keys: &[[u8; 8]]) -> Vec<bool> {
    let probe = |key: &[u8; 8]| part.probe(key, key_hash(key), u64::MAX);
    let near_of = |key: &[u8; 8]| Near::of(part, probe(key), Rank::Oldest, key_hash(key));
    let mut near: Vec<Option<Near<'_>>> = keys.iter().map(near_of).collect();
    for _ in 0..Near::STEPS {
        keys.iter().zip(&mut near).for_each(|(key, near)| near.iter_mut().for_each(|near| near.step(key)));
    }
    let mut rest = &mut near[..];
    let mut tally = Tally::default();
    let mut read = |key: &[u8; 8]| {
        let (near, others) = std::mem::take(&mut rest).split_first_mut().unwrap();
        let next = others.first_mut().and_then(Option::as_mut);
        if let (Some(near), Some(next)) = (near.as_mut(), next.as_deref()) {
            near.note_next(next);
        }
        let mut found = false;
        let mut take = |record: Record<'_>| {
            found = record.key == key;
            Ok(ControlFlow::Break(()))
        };
        let (probed, hash) = ((probe(key), near.as_mut()), key_hash(key));
        let _ = part.get_probed(probed, Rank::Oldest, key, hash, u64::MAX, &mut tally, &mut take).unwrap();
        if let (Some(near), Some(next)) = (near.as_mut(), next) {
            near.pass_on(next);
        }
        rest = others;
        found
    };
    keys.iter().map(&mut read).collect()
}

#[test]
fn keys_that_come_near_together_are_found_and_share_the_blocks_that_are_read() {
    // A cache that holds leaves and filters, or nothing, and one that holds all.
    for cache_bytes in [256 << 10, 4 << 10, 16 << 20] {
        let world = World::new(cache_bytes, 4);
        let part = world.part(1, &WriteOptions::default(), &even_numbers(40_000));
        for round in 0..2 {
            for (from, by) in [(0u64, 1), (79_000, 3), (500, 977), (20_001, 2), (80_100, 1)] {
                let numbers: Vec<u64> = (0..16).map(|at| from + at * by).collect();
                let keys: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_be_bytes()).collect();
                let expected: Vec<bool> =
                    numbers.iter().map(|number| number % 2 == 0 && *number < 80_000).collect();
                assert_eq!(read_near(&part, &keys), expected, "{cache_bytes}, {round}, {from} by {by}");
            }
        }
    }
    let world = World::new(256 << 10, 4);
    let part = world.part(1, &WriteOptions::default(), &even_numbers(40_000));
    for n in 0..40_000u64 {
        assert_eq!(get_all(&part, &(2 * n).to_be_bytes(), u64::MAX).len(), 1, "the cache is full now");
    }
    let (mut pieces, mut blocks) = (0, 0);
    for from in (0..79_000u64).step_by(4000) {
        let keys: Vec<[u8; 8]> = (0..16).map(|at| (from + 2 * at).to_be_bytes()).collect();
        let before = world.shared.stats().pieces_read;
        assert!(read_near(&part, &keys).into_iter().all(|found| found));
        pieces += world.shared.stats().pieces_read - before;
        blocks += 1;
    }
    assert!(pieces > 0 && pieces <= 2 * blocks, "{pieces} pieces for {blocks} times neighbors");
}

#[test]
fn what_a_part_keeps_takes_room_of_the_cache_until_the_part_is_dropped() {
    let world = World::new(72 << 10, 4);
    let part = world.part(1, &WriteOptions::default(), &even_numbers(40_000));
    for n in 0..40_000u64 {
        let key = (2 * n).to_be_bytes();
        let flow = part.get(&key, key_hash(&key), u64::MAX, &mut |_| Ok(ControlFlow::Break(()))).unwrap();
        assert!(flow.is_break(), "key {n}");
        assert!(world.shared.stats().cache_bytes <= 72 << 10, "key {n}");
    }
    let kept = world.shared.kept_bytes();
    assert!(kept > 40 << 10 && kept <= 45 << 10, "five eighths, as far as pieces fit: {kept}");
    drop(part);
    assert_eq!(world.shared.kept_bytes(), 0);
    assert!(world.shared.take_room(45 << 10, false) && !world.shared.take_room(1, false));
    world.shared.give_room_back(9 << 10);
    assert!(!world.shared.take_room(1, true), "the oldest runs have half of it");
}

#[test]
fn a_full_cache_takes_one_in_four_of_the_blocks_that_it_lacks() {
    let again_in_cache = |cache_bytes: u64| {
        let world = World::new(cache_bytes, 4);
        let part = world.part(1, &WriteOptions::default(), &even_numbers(100_000));
        let mut hits = 0;
        for n in (0..100_000u64).step_by(7).map(|n| n * 7_919 % 100_000) {
            let key = (2 * n).to_be_bytes();
            let misses_of_a_get = || {
                let before = world.shared.stats().cache_misses;
                let found = get_all(&part, &key, u64::MAX);
                assert_eq!((found.len(), &found[0].op.payload[..]), (1, &n.to_le_bytes()[..]), "key {n}");
                world.shared.stats().cache_misses - before
            };
            misses_of_a_get();
            hits += u64::from(misses_of_a_get() == 0);
        }
        hits * 100 / 14_286
    };
    assert_eq!(again_in_cache(64 << 20), 100, "a cache with room takes every block");
    let percent = again_in_cache(256 << 10);
    assert!((5..=30).contains(&percent), "{percent} % of the second gets, of a cache that is full");
}

#[test]
fn a_cache_that_has_grown_holds_more() {
    let world = World::new(256 << 10, 4);
    let part = world.part(1, &WriteOptions::default(), &even_numbers(100_000));
    let read_all = || {
        let before = world.shared.stats().pieces_read;
        for n in (0..100_000u64).step_by(7) {
            assert_eq!(get_all(&part, &(2 * n).to_be_bytes(), u64::MAX).len(), 1, "key {n}");
        }
        world.shared.stats().pieces_read - before
    };
    let (_, small) = (read_all(), read_all());
    world.shared.grow_cache(16 << 20);
    let (_, large) = (read_all(), read_all());
    assert!(
        small > 100 && large == 0,
        "{small} pieces were read with a small cache, {large} with a large one"
    );
    world.shared.grow_cache(1 << 10);
    assert_eq!(read_all(), 0, "it does not shrink");
}
