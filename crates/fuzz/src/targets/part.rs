//! Parts: the pieces that frame one, and whole files.
//!
//! The inputs of `meta` and `top-index` are bodies, without the trailer; that of `part` is a file.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use folddb_base::Stamp;
use folddb_base::checksum::{hash32, hash64, key_hash, place_seed};
use folddb_base::{
    Direction, Error, FileNumber, OpKind, Pointer, Record, RecordSink, RecordStream, TableId, ValuePlace,
};
use folddb_layout::block::{Block, BlockCursor, Compression, Encoding, Place, TRAILER_BYTES, seal};
use folddb_layout::file_name::FileName;
use folddb_layout::liveness::{Liveness, SegmentUse};
use folddb_layout::part::{FOOTER_BYTES, Footer, Meta, PartFacts, StampFacts, TopIndex};
use folddb_layout::summaries::{Summaries, Summary};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead, put_head, put_record, value_in};
use folddb_rules::KeyOrder;
use folddb_run::{
    Depth, Fault, Inspect, Part, PartWriter, ReadMode, Search, Shared, WriteOptions, examine, search_blocks,
    verify,
};

use crate::memory::{dir, host_with};
use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    Target::new("footer", footer, footer_seeds).sealed_by(seal_footer),
    Target::new("meta", meta, meta_seeds),
    Target::new("top-index", top_index, top_index_seeds),
    Target::new("liveness", liveness, liveness_seeds),
    Target::new("summaries", summaries, summaries_seeds).heap(128, 64 << 10),
    Target::new("value-record", value_record, value_record_seeds),
    // LZ4 makes up to 255 bytes of one, and some blocks are in memory at once.
    Target::new("part", part, part_seeds).sealed_by(seal_part).heap(255 * 16, 512 << 10),
];

const NUMBER: FileNumber = FileNumber(7);
const SEED: u64 = 78;
const FILE_BYTES: u64 = 1000;

/// The last 64 bytes of a file of [`FILE_BYTES`].
fn footer(input: &[u8]) {
    let Some(bytes) = input.first_chunk::<FOOTER_BYTES>() else { return };
    let Ok(footer) = Footer::read(bytes, NUMBER.0, FILE_BYTES) else { return };
    assert!(footer.top_index.end() == footer.meta.offset && footer.meta.end() <= FILE_BYTES);
    let mut again = Vec::new();
    footer.put(&mut again);
    assert_eq!(again, bytes);
}

fn seal_footer(input: &mut [u8]) {
    if let Some((rest, checksum)) = input.split_at_mut_checked(FOOTER_BYTES - 4) {
        let sum = hash32(place_seed(NUMBER.0, FILE_BYTES - FOOTER_BYTES as u64), rest).to_le_bytes();
        checksum.iter_mut().zip(sum).for_each(|(place, byte)| *place = byte);
    }
}

fn footer_seeds() -> Vec<Vec<u8>> {
    let place = |offset, len_bytes| Place { offset, len_bytes };
    let mut out = Vec::new();
    Footer {
        version: 1,
        file_number: 7,
        file_bytes: FILE_BYTES,
        top_index: place(500, 100),
        meta: place(600, 336),
    }
    .put(&mut out);
    vec![out]
}

fn sealed(input: &[u8], encoding: Encoding) -> Vec<u8> {
    let mut stored = input.to_vec();
    seal(&mut stored, 0, encoding, Compression::None, SEED, &mut Vec::new());
    stored
}

fn body(mut stored: Vec<u8>) -> Vec<u8> {
    stored.truncate(stored.len() - TRAILER_BYTES);
    stored
}

fn meta(input: &[u8]) {
    let Ok(mut meta) = Meta::open(&sealed(input, Encoding::Meta), SEED, FILE_BYTES) else { return };
    let mut again = Vec::new();
    meta.put(&mut again, SEED);
    meta.facts.fingerprint = Meta::fingerprint(&again);
    assert_eq!(Meta::open(&again, SEED, FILE_BYTES), Ok(meta.clone()));
    // Extensions stand at the end; what this version does not know of them is passed over.
    let mut plain = Vec::new();
    let facts = PartFacts { stamps: None, kept_since: 0, ..meta.facts.clone() };
    let bare =
        Meta { liveness: None, summaries: None, leading: Vec::new(), pieces_hash: None, facts, ..meta };
    bare.put(&mut plain, SEED);
    assert!(input.starts_with(&body(plain)));
}

fn meta_seeds() -> Vec<Vec<u8>> {
    let facts = PartFacts {
        file_bytes: FILE_BYTES,
        records: 300,
        keys: 200,
        low: b"a".to_vec(),
        high: b"zz".to_vec(),
        min_seq: 5,
        max_seq: 1005,
        deletes: 3,
        key_bytes: 900,
        payload_bytes: 2400,
        sketch: vec![1, 1 << 40, u64::MAX],
        values: Vec::new(),
        stamps: None,
        kept_since: 0,
        fingerprint: 0,
    };
    let meta = Meta {
        facts,
        order_name: "bytewise".to_owned(),
        data_bytes: 500,
        filter_bits: 10,
        liveness: None,
        summaries: None,
        leading: Vec::new(),
        pieces_hash: None,
    };
    let mut out = Vec::new();
    meta.put(&mut out, SEED);
    let plain = body(out);
    // Two extensions, of which the second is unknown: tag, slice.
    let extended = [&plain[..], &[9, 2, 1, 3, 200, 1, 0]].concat();
    let mut out = Vec::new();
    let values = vec![SegmentUse { segment: 7, count: 2, bytes: 6176, end: 4130 }];
    let liveness = Some(Place { offset: 600, len_bytes: 40 });
    Meta { liveness, facts: PartFacts { values, ..meta.facts.clone() }, ..meta.clone() }.put(&mut out, SEED);
    let mut timed = Vec::new();
    let mut stamps = StampFacts { swept_ms: 99, ..StampFacts::default() };
    stamps.note(Stamp { write_ms: 1_800_000_000_000, deadline_ms: 1_800_000_600_000 });
    let facts = PartFacts { stamps: Some(stamps), kept_since: 77, ..meta.facts.clone() };
    Meta { facts, pieces_hash: Some(1 << 60), ..meta }.put(&mut timed, SEED);
    vec![plain, extended, body(out), body(timed)]
}

fn summaries(input: &[u8]) {
    let Ok(summaries) = Summaries::open(&sealed(input, Encoding::Summaries), SEED) else { return };
    let mut again = Vec::new();
    summaries.put(&mut again, SEED);
    assert_eq!(Summaries::open(&again, SEED), Ok(summaries));
}

fn summaries_seeds() -> Vec<Vec<u8>> {
    let block = |rows, fold: Option<&[u8]>| Some(Summary { rows, fold: fold.map(<[u8]>::to_vec) });
    let leaves = vec![vec![block(300, Some(&[1, 0, 0])), None], vec![], vec![block(1, None)]];
    let mut out = Vec::new();
    Summaries { leaves }.put(&mut out, SEED);
    vec![body(out)]
}

fn liveness(input: &[u8]) {
    let Ok(mut liveness) = Liveness::open(&sealed(input, Encoding::Liveness), SEED) else { return };
    let uses = liveness.uses();
    assert!(uses.iter().all(|used| liveness.units(used.segment).len() as u64 == used.count));
    assert!(uses.iter().all(|used| liveness.units(used.segment).is_sorted()));
    let mut again = Vec::new();
    liveness.put(&mut again, SEED);
    assert_eq!(Liveness::open(&again, SEED), Ok(liveness));
}

fn liveness_seeds() -> Vec<Vec<u8>> {
    let mut liveness = Liveness::default();
    for (segment, unit, bytes) in [(7, 256, 4096), (7, 4000, 2080), (300, 256, 16)] {
        liveness.note(ValuePlace { segment, unit }, bytes);
    }
    let mut out = Vec::new();
    liveness.put(&mut out, SEED);
    vec![body(out)]
}

/// A record of the value log, under its own head.
fn value_record(input: &[u8]) {
    let Ok(head) = RecordHead::decode(input) else { return };
    let key_end = RECORD_HEAD_BYTES + usize::from(head.key_len);
    let key = input.get(RECORD_HEAD_BYTES..key_end).unwrap_or(b"k");
    let pointer =
        Pointer { place: ValuePlace::default(), time_ms: 0, hash: head.hash, len: head.len, head: &[] };
    let Some(value) = value_in(input, head.table, key, &pointer) else { return };
    let mut again = Vec::new();
    assert_eq!(put_record(&mut again, head.table, key, value), head.hash);
    assert_eq!(again.len() as u64, head.record_bytes());
    again.clear();
    put_head(&mut again, (head.table, key), head.len, head.hash, head.front_is_behind);
    assert!(input.starts_with(&[&again, key, value].concat()));
}

fn value_record_seeds() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let value = b"a separated value";
    let hash = put_record(&mut out, TableId(3), b"key", value);
    let mut fronted = Vec::new();
    put_head(&mut fronted, (TableId(3), b"key"), value.len() as u64, hash, true);
    vec![out, [&fronted[..], b"key", value].concat()]
}

fn top_index(input: &[u8]) {
    let Ok(top) = TopIndex::open(&sealed(input, Encoding::TopIndex), SEED) else { return };
    let mut again = Vec::new();
    top.put(&mut again, SEED);
    assert_eq!(body(again), input);
    let separators: usize = (0..top.leaves.len()).map(|leaf| top.separator(leaf).len()).sum();
    assert_eq!(separators, top.separators.len());
    assert!(
        top.leaves.iter().all(|leaf| leaf.filter.is_none_or(|filter| (filter as usize) < top.filters.len()))
    );
}

fn top_index_seeds() -> Vec<Vec<u8>> {
    let place = |offset| Place { offset, len_bytes: 100 };
    let mut top = TopIndex { filters: vec![place(1000), place(1100)], ..TopIndex::default() };
    for (number, key) in [&b"f"[..], b"mm", b"mmz"].into_iter().enumerate() {
        top.push_leaf(
            key,
            place(1200 + 100 * number as u64),
            Some(number as u32).filter(|&number| number < 2),
        );
    }
    let mut out = Vec::new();
    top.put(&mut out, SEED);
    vec![body(out)]
}

/// A whole file, read every way there is.
fn part(input: &[u8]) {
    let host = host_with([(FileName::Part(NUMBER).to_string(), input.to_vec())]);
    let path = dir().join(FileName::Part(NUMBER).to_string());
    let shared = Shared::new(64 << 10, 4);
    let file = host.files.open(&path).expect("a file in memory");
    let search = Search { path: &path, number: NUMBER, range: 0..input.len() as u64, implied_seq: 1 };
    let mut found = Counted::default();
    assert!(search_blocks(&*file, &search, &mut found) <= input.len() as u64);
    let Ok(part) = Part::open(&host.files, &path, NUMBER, &KeyOrder::Bytewise, &shared) else { return };
    let mut examined = Counted::default();
    examine(&part, Depth::Records, &mut examined);
    examine(&part, Depth::Index, &mut Counted::default());
    if examined.faults == 0 {
        assert_eq!(examined.records, part.facts().records);
        assert_eq!(found.records, examined.records, "blocks are found without the index as with it");
    }
    let is_sound = verify(&part).is_ok();
    let forward = walk(&part, Direction::Forward, is_sound);
    let mut backward = walk(&part, Direction::Reversed, is_sound);
    for key in part.boundaries() {
        let _ = part.get(key, key_hash(key), u64::MAX, &mut |_| Ok(ControlFlow::Continue(())));
    }
    let mut cursor = part.cursor(Direction::Forward, ReadMode::Cached, None);
    let _ = cursor.seek(Bound::Excluded(&part.facts().low));
    if is_sound {
        backward.reverse();
        assert_eq!(forward, backward);
        assert_eq!(forward.len() as u64, part.facts().records);
        find_all(&part);
    }
}

/// What a reader that continues after faults finds.
#[derive(Default)]
struct Counted {
    records: u64,
    faults: u64,
}

impl Inspect for Counted {
    fn record(&mut self, _offset: u64, record: Record<'_>) {
        let _ = record.op();
        self.records += 1;
    }
    fn fault(&mut self, fault: Fault) {
        assert!(!fault.what.is_empty());
        self.faults += 1;
    }
    fn unread(&mut self, _: Error) {
        self.faults += 1;
    }
}

/// The hashes of the records, as far as they can be read.
fn walk(part: &Arc<Part>, direction: Direction, is_sound: bool) -> Vec<u64> {
    let mut cursor = part.cursor(direction, ReadMode::ReadAhead, None);
    let mut hashes = Vec::new();
    let mut outcome = cursor.seek_start();
    while let (Ok(()), Some(record)) = (&outcome, cursor.record()) {
        hashes.push(hash_of(record));
        outcome = cursor.advance();
    }
    assert!(outcome.is_ok() || !is_sound, "verify found nothing, and a cursor does: {outcome:?}");
    hashes
}

fn hash_of(record: Record<'_>) -> u64 {
    let seed = hash64(record.seq, &[record.kind as u8]);
    hash64(hash64(seed, record.key), record.payload)
}

/// Each record of a sound part is found by its key.
fn find_all(part: &Arc<Part>) {
    let mut cursor = part.cursor(Direction::Forward, ReadMode::Cached, None);
    assert!(cursor.seek_start().is_ok());
    while let Some(record) = cursor.record() {
        let mut found = false;
        let outcome = part.get(record.key, key_hash(record.key), record.seq, &mut |other| {
            found = other == record;
            Ok(ControlFlow::Break(()))
        });
        assert!(outcome.is_ok() && found, "a record of a sound part is not found");
        assert!(cursor.advance().is_ok());
    }
}

/// Makes the checksums of a file right, as far as its pieces can be found: footer, meta, top index,
/// filters, leaves, and the data blocks that the leaves name.
fn seal_part(input: &mut [u8]) {
    let Some(footer_at) = input.len().checked_sub(FOOTER_BYTES) else { return };
    let file_bytes = input.len() as u64;
    let footer = &mut input[footer_at..];
    footer[16..24].copy_from_slice(&NUMBER.0.to_le_bytes());
    footer[24..32].copy_from_slice(&file_bytes.to_le_bytes());
    let checksum = hash32(place_seed(NUMBER.0, footer_at as u64), &footer[..60]);
    footer[60..].copy_from_slice(&checksum.to_le_bytes());
    let Some(footer) = input[footer_at..].first_chunk::<FOOTER_BYTES>() else { return };
    let Ok(footer) = Footer::read(footer, NUMBER.0, file_bytes) else { return };
    seal_piece(input, footer.meta);
    seal_piece(input, footer.top_index);
    let Some(top) = stored(input, footer.top_index) else { return };
    let Ok(top) = TopIndex::open(top, place_seed(NUMBER.0, footer.top_index.offset)) else { return };
    for place in &top.filters {
        seal_piece(input, *place);
    }
    for leaf in &top.leaves {
        seal_piece(input, leaf.place);
        for place in places_in(input, leaf.place) {
            seal_piece(input, place);
        }
    }
}

fn stored(input: &[u8], place: Place) -> Option<&[u8]> {
    input.get(usize::try_from(place.offset).ok()?..usize::try_from(place.end()).ok()?)
}

fn seal_piece(input: &mut [u8], place: Place) {
    let (Ok(from), Ok(end)) = (usize::try_from(place.offset), usize::try_from(place.end())) else { return };
    let Some((body, checksum)) = input.get_mut(from..end).and_then(<[u8]>::split_last_chunk_mut::<4>) else {
        return;
    };
    *checksum = hash32(place_seed(NUMBER.0, place.offset), body).to_le_bytes();
}

/// The places of the data blocks that a leaf names.
fn places_in(input: &[u8], leaf: Place) -> Vec<Place> {
    let mut places = Vec::new();
    let Some(stored) = stored(input, leaf) else { return places };
    let Ok(block) = Block::open(stored.to_vec(), place_seed(NUMBER.0, leaf.offset)) else { return places };
    let mut cursor = BlockCursor::new(0);
    cursor.enter(&block);
    let mut more = cursor.seek_index(&block, 0).is_ok();
    while more && let Some(record) = cursor.record(&block) {
        places.extend(Place::read(&mut folddb_base::bytes::Reader::new(record.payload)));
        more = cursor.next(&block).unwrap_or(false);
    }
    places
}

fn write(
    options: WriteOptions,
    records: impl IntoIterator<Item = (Vec<u8>, u64, OpKind, Vec<u8>)>,
) -> Vec<u8> {
    let host = host_with([]);
    let path = dir().join(FileName::Part(NUMBER).to_string());
    let file = host.files.create(&path).expect("a file in memory");
    let mut writer = PartWriter::new(file, &path, NUMBER, options);
    for (key, seq, kind, payload) in records {
        writer.push(Record { key: &key, seq, kind, payload: &payload }).expect("records in order");
    }
    let facts = writer.finish().expect("a part in memory");
    let mut bytes = vec![0; facts.file_bytes as usize];
    let read = host.files.open(&path).and_then(|file| file.read_exact_at(0, &mut bytes));
    read.expect("the part that was written");
    bytes
}

fn part_seeds() -> Vec<Vec<u8>> {
    let small = WriteOptions { block_bytes: 512, ..WriteOptions::default() };
    let numbers = || {
        (0..300u64).map(|n| {
            ((n * 77).to_be_bytes().to_vec(), 1000 - n, OpKind::Fold, (n * n).to_le_bytes().to_vec())
        })
    };
    let words = || {
        (0..120u64).map(|n| {
            let kind = if n % 9 == 4 { OpKind::Delete } else { OpKind::Set };
            let payload = if kind == OpKind::Delete { Vec::new() } else { vec![b'v'; n as usize % 11] };
            (format!("{:03}/{}", n / 2, "k".repeat(n as usize / 2 % 4)).into_bytes(), 500 - n, kind, payload)
        })
    };
    let lz4 = WriteOptions { compression: Compression::Lz4, filter_bits: 0, ..small.clone() };
    let lean = WriteOptions { keep_seqs: false, ..small.clone() };
    vec![
        write(small.clone(), numbers()),
        write(small, words()),
        write(lz4, words()),
        write(lean, numbers().take(40)),
        write(WriteOptions::default(), words().take(1)),
    ]
}
