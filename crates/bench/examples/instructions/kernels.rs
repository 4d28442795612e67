//! The hot kernels of the store, each as a function of the number of its operations. One thread, no
//! clock, and the work before the loop does not depend on the number: so the difference between two
//! runs is what the operations need.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;

use folddb::{BackgroundWork, Durability, Options, Result, Rules, Store, Table};
use folddb_base::checksum::key_hash;
use folddb_base::{Direction, FileNumber, OpKind, Record, RecordSink, RecordStream, Seq, TableId};
use folddb_layout::block::{Block, BlockBuilder, BlockCursor, BlockOptions, Compression};
use folddb_layout::filter::Filter;
use folddb_layout::frame::{FrameHead, FrameKind, put_frame, put_record};
use folddb_memtable::{Memtable, MemtableLimits, ReadAt};
use folddb_merge::{BottomRule, Budget, FoldStep, KWay, StepRules};
use folddb_rules::resolve::Resolver;
use folddb_rules::{FoldRules, KeyOrder, folds};
use folddb_run::{PartWriter, WriteOptions};

/// A kernel, and how to run it.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// What one operation is.
    pub(crate) what: &'static str,
    /// The smaller number of operations; the larger one is three times as large.
    pub(crate) operations: u64,
    pub(crate) run: fn(u64) -> Result<()>,
}

/// A tail of a memtable, after which it is sorted and sealed: counts are of whole tails.
const TAIL: u64 = 4096;
const BLOCK_ROWS: u64 = 800;
const SCAN_ROWS: u64 = 20_000;

/// All kernels, in the order of the life of a record: written, flushed, merged, read.
pub(crate) const KERNELS: [Kernel; 26] = [
    kernel("frame-batch", "a record encoded and hashed in a frame of 1,000", 50_000, frame_batch),
    kernel("frame-single", "a frame of one record", 20_000, frame_single),
    kernel("push", "a Set of 8 + 8 random bytes into a memtable, tails sorted and sealed", 4 * TAIL, push),
    kernel("push-fold", "a sum on a skewed text key into a memtable, tails folded", 4 * TAIL, push_fold),
    kernel("commit", "a single write of 8 + 8 bytes through the whole store", 4 * TAIL, commit),
    kernel("flush", "a record out of a memtable of 8 chunks into a part", 8 * TAIL, flush),
    kernel("block-encode", "a pair of u64 into a columnar block", 100 * BLOCK_ROWS, block_encode),
    kernel("block-encode-text", "a text key into a generic block", 20 * BLOCK_ROWS, block_encode_text),
    kernel(
        "block-decode",
        "a pair of u64 walked in a columnar block that was just read",
        100 * BLOCK_ROWS,
        decode,
    ),
    kernel(
        "block-decode-text",
        "a text key walked in a generic block that was just read",
        20 * BLOCK_ROWS,
        decode_text,
    ),
    kernel("block-search", "a key found in a columnar block", 20_000, search),
    kernel("filter-build", "a key into a filter", 500_000, filter_build),
    kernel("filter-probe", "a key asked of a filter", 500_000, filter_probe),
    kernel("merge", "a record through the merge of 8 streams", 16 * TAIL, merge),
    kernel("merge-fold", "a sum through the merge of 8 streams, four to a key", 16 * TAIL, merge_fold),
    kernel("resolve", "a sum of 8 bytes folded into the value of its key", 100_000, resolve),
    kernel("get", "a get of a row in one run, from cached blocks", 5_000, get),
    kernel("get-many", "a key of a get of 64 at once, in one run, from cached blocks", 6_400, get_many),
    kernel("get-absent", "a get of a key that none of six runs has, from memory", 5_000, get_absent),
    kernel("get-hashed", "a get of a row of a hashed table", 5_000, get_hashed),
    kernel("head-hashed", "a head of a row of a hashed table", 5_000, head_hashed),
    kernel("get-memtable", "a get of a row in a memtable of 8 chunks", 5_000, get_memtable),
    kernel("scan", "a row of a scan over one run and a memtable, from cached blocks", 2 * SCAN_ROWS, scan),
    kernel("scan-sums", "a row of a scan of skewed sums over six runs", 2 * SCAN_ROWS, scan_sums),
    kernel("scan-absent", "a scan of a prefix that none of five runs has, from memory", 2_000, scan_absent),
    kernel(
        "load-tuples",
        "a row with a tuple of two as its key, in a batch, flushed",
        2 * SCAN_ROWS,
        load_tuples,
    ),
];

const fn kernel(
    name: &'static str,
    what: &'static str,
    operations: u64,
    run: fn(u64) -> Result<()>,
) -> Kernel {
    Kernel { name, what, operations, run }
}

/// A pseudo-random number (the finisher of SplitMix64).
fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// `user:` and ten digits. Most are of few keys: the lower the rank of a key, the more likely it
/// is.
fn text_key(n: u64) -> [u8; 15] {
    let rank = mix(n) % (1 << (mix(n ^ 0x5bd1) % 20));
    let mut key = *b"user:0000000000";
    let mut digits = mix(rank) % 10_000_000_000;
    for digit in key[5..].iter_mut().rev() {
        *digit = b'0' + (digits % 10) as u8;
        digits /= 10;
    }
    key
}

fn frame_batch(operations: u64) -> Result<()> {
    let (mut payload, mut out) = (Vec::new(), Vec::new());
    for first in (0..operations).step_by(1000) {
        payload.clear();
        for n in first..first + 1000 {
            put_record(&mut payload, TableId(1), OpKind::Set, &mix(n).to_be_bytes(), &n.to_le_bytes());
        }
        frame_of(&payload, first, 1000, &mut out);
    }
    Ok(())
}

fn frame_single(operations: u64) -> Result<()> {
    let (mut payload, mut out) = (Vec::new(), Vec::new());
    for n in 0..operations {
        payload.clear();
        put_record(&mut payload, TableId(1), OpKind::Set, &mix(n).to_be_bytes(), &n.to_le_bytes());
        frame_of(&payload, n, 1, &mut out);
    }
    Ok(())
}

fn frame_of(payload: &[u8], first_seq: Seq, count: u32, out: &mut Vec<u8>) {
    out.clear();
    let head =
        FrameHead { kind: FrameKind::Batch, first_seq, count, durable_lsn: 0, prev_hash: 7, time_ms: None };
    black_box(put_frame(out, 0x5a17, first_seq * 32, &head, payload));
}

fn new_memtable() -> Memtable {
    let rules = Arc::new(FoldRules::new(folds::sum::<u64>().into()));
    Memtable::new(KeyOrder::Bytewise, rules, MemtableLimits::default())
}

fn push(operations: u64) -> Result<()> {
    black_box(filled(operations));
    Ok(())
}

/// A memtable with this many random rows, written in batches of 1,024.
fn filled(rows: u64) -> Memtable {
    let memtable = new_memtable();
    for first in (0..rows).step_by(1024) {
        let mut writer = memtable.apply();
        for n in first..first + 1024 {
            let record = Record {
                key: &mix(n).to_be_bytes(),
                seq: n + 1,
                kind: OpKind::Set,
                payload: &n.to_le_bytes(),
            };
            writer.push(record, &[first]);
        }
    }
    memtable
}

fn push_fold(operations: u64) -> Result<()> {
    let memtable = new_memtable();
    for first in (0..operations).step_by(1024) {
        let mut writer = memtable.apply();
        for n in first..first + 1024 {
            let record =
                Record { key: &text_key(n), seq: n + 1, kind: OpKind::Fold, payload: &1u64.to_le_bytes() };
            writer.push(record, &[first]);
        }
    }
    black_box(memtable);
    Ok(())
}

/// A file that keeps nothing: what a part writer does is counted, not what the system does.
struct Nowhere;

impl folddb_host::WriteFile for Nowhere {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        black_box(bytes);
        Ok(())
    }
    fn start_writeback(&mut self) {}
    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn step_rules(boundaries: Vec<Seq>) -> StepRules {
    StepRules {
        order: KeyOrder::Bytewise,
        fold: FoldRules::new(folds::sum::<u64>().into()),
        boundaries,
        range_deletes: Vec::new(),
        bottom: BottomRule::Never,
    }
}

fn flush(operations: u64) -> Result<()> {
    let rows = 8 * TAIL;
    let memtable = filled(rows);
    memtable.freeze(&[rows]);
    for number in 0..operations / rows {
        let options = WriteOptions { keep_seqs: false, ..WriteOptions::default() };
        let mut writer = PartWriter::new(Box::new(Nowhere), "part", FileNumber(number), options);
        let mut step = FoldStep::new(memtable.stream(), step_rules(Vec::new()));
        step.step(Budget::UNBOUNDED, &mut writer)?;
        black_box(writer.finish()?);
    }
    Ok(())
}

const BLOCK: BlockOptions = BlockOptions { keep_seqs: false, compression: Compression::None, seed: 7 };

/// The sorted keys of a block.
fn block_keys(text: bool) -> Vec<Vec<u8>> {
    let key = |n: u64| if text { text_key(n).to_vec() } else { mix(n).to_be_bytes().to_vec() };
    let mut keys: Vec<Vec<u8>> = (0..).map(|n| key(n * n)).take(2 * BLOCK_ROWS as usize).collect();
    keys.sort();
    keys.dedup();
    keys.truncate(BLOCK_ROWS as usize);
    keys
}

/// Makes a block of `keys`, each with a value of its own: eight bytes for numbers, up to seven
/// bytes for texts.
fn put_block(builder: &mut BlockBuilder, keys: &[Vec<u8>], out: &mut Vec<u8>) {
    out.clear();
    for key in keys {
        let value = mix(key.last().map_or(0, |last| u64::from(*last))).to_le_bytes();
        let payload = if key.len() == 8 { &value[..] } else { &value[..(value[0] % 8) as usize] };
        builder.push(Record { key, seq: 1, kind: OpKind::Set, payload });
    }
    builder.finish(out, BLOCK);
}

fn encode(text: bool, operations: u64) {
    let keys = block_keys(text);
    let (mut builder, mut out) = (BlockBuilder::new(), Vec::new());
    for _ in 0..operations / keys.len() as u64 {
        put_block(&mut builder, &keys, &mut out);
        black_box(&out);
    }
}

fn block_encode(operations: u64) -> Result<()> {
    encode(false, operations);
    Ok(())
}

fn block_encode_text(operations: u64) -> Result<()> {
    encode(true, operations);
    Ok(())
}

fn walk(text: bool, operations: u64) -> Result<()> {
    let keys = block_keys(text);
    let (mut stored, mut cursor, mut sum) = (Vec::new(), BlockCursor::new(1), 0);
    put_block(&mut BlockBuilder::new(), &keys, &mut stored);
    let mut block = Block::open(stored.clone(), BLOCK.seed).map_err(malformed)?;
    for _ in 0..operations / keys.len() as u64 {
        block.refill(&stored, BLOCK.seed).map_err(malformed)?;
        cursor.enter(&block);
        cursor.seek_index(&block, 0).map_err(malformed)?;
        while let Some(record) = cursor.record(&block) {
            sum += u64::from(record.key[4]) + record.payload.len() as u64;
            if !cursor.next(&block).map_err(malformed)? {
                break;
            }
        }
    }
    black_box(sum);
    Ok(())
}

fn decode(operations: u64) -> Result<()> {
    walk(false, operations)
}

fn decode_text(operations: u64) -> Result<()> {
    walk(true, operations)
}

fn malformed(cause: impl std::fmt::Display) -> folddb::Error {
    folddb::Error::invalid(cause.to_string())
}

fn search(operations: u64) -> Result<()> {
    let keys = block_keys(false);
    let mut stored = Vec::new();
    put_block(&mut BlockBuilder::new(), &keys, &mut stored);
    let block = Block::open(stored, BLOCK.seed).map_err(malformed)?;
    for n in 0..operations {
        let key = &keys[(mix(n) % keys.len() as u64) as usize];
        black_box(block.bound_in_bytes(key, false, false));
    }
    Ok(())
}

/// The hashes of the keys of one partition of a filter.
fn hashes() -> Vec<u64> {
    (0..10_000u64).map(|n| key_hash(&mix(n).to_be_bytes())).collect()
}

fn filter_build(operations: u64) -> Result<()> {
    let hashes = hashes();
    for _ in 0..operations / hashes.len() as u64 {
        black_box(Filter::build(&hashes, 10));
    }
    Ok(())
}

fn filter_probe(operations: u64) -> Result<()> {
    let hashes = hashes();
    let (half, filter) = (hashes.len() / 2, Filter::build(&hashes[..hashes.len() / 2], 10));
    let mut found = 0u64;
    for _ in 0..operations / hashes.len() as u64 {
        for (present, absent) in hashes[..half].iter().zip(&hashes[half..]) {
            found += u64::from(filter.may_contain(*present)) + u64::from(filter.may_contain(*absent));
        }
    }
    black_box(found);
    Ok(())
}

/// Keys and values of eight bytes in memory, as a columnar block gives them.
struct Columns<'a> {
    keys: &'a [[u8; 8]],
    kind: OpKind,
    seq: Seq,
}

impl RecordStream for Columns<'_> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        let key = self.keys.first()?;
        Some(Record { key, seq: self.seq, kind: self.kind, payload: key })
    }
    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.keys = self.keys.get(1..).unwrap_or(&[]);
        Ok(())
    }
}

/// Reads each record, so that the compiler leaves none out.
struct SumSink(u64);

impl RecordSink for SumSink {
    #[inline]
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        self.0 = self.0.wrapping_add(u64::from(record.key[7]) + u64::from(record.payload[0]));
        Ok(())
    }
}

/// Merges eight sorted streams of two tails together, over and over; their keys are drawn from
/// `distinct`.
fn merge_of(kind: OpKind, distinct: u64, operations: u64) -> Result<()> {
    let per_stream = 2 * TAIL;
    let stream = |number: u64| {
        let key = |n: u64| mix(mix(number * per_stream + n) % distinct).to_be_bytes();
        let mut keys: Vec<[u8; 8]> = (0..per_stream).map(key).collect();
        keys.sort_unstable();
        keys
    };
    let streams: Vec<Vec<[u8; 8]>> = (0..8).map(stream).collect();
    let mut sink = SumSink(0);
    for _ in 0..operations / (8 * per_stream) {
        let source = |(age, keys)| Columns { keys, kind, seq: 8 - age as u64 };
        let sources = streams.iter().map(Vec::as_slice).enumerate().map(source).collect();
        let kway = KWay::new(KeyOrder::Bytewise, Direction::Forward, 0, sources);
        FoldStep::new(kway, step_rules(Vec::new())).step(Budget::UNBOUNDED, &mut sink)?;
    }
    black_box(sink.0);
    Ok(())
}

fn merge(operations: u64) -> Result<()> {
    merge_of(OpKind::Set, u64::MAX, operations)
}

fn merge_fold(operations: u64) -> Result<()> {
    merge_of(OpKind::Fold, 4 * TAIL, operations)
}

fn resolve(operations: u64) -> Result<()> {
    let rules = FoldRules::new(folds::sum::<u64>().into());
    let mut resolver = Resolver::new();
    for first in (0..operations).step_by(10) {
        resolver.clear();
        for n in first..first + 10 {
            let operand = n.to_le_bytes();
            black_box(resolver.feed_older(&rules, b"key", OpKind::Fold, &operand).map_err(malformed)?);
        }
        let value = resolver.finish(&rules, b"key").map_err(malformed)?;
        black_box(value);
    }
    Ok(())
}

/// A store without threads, with `rows` random rows in its memtable.
fn with_store(rows: u64, work: impl FnOnce(&Store, &Table<u64, u64>) -> Result<()>) -> Result<()> {
    let dir = tempfile::tempdir().map_err(malformed)?;
    let options = Options::default().background(BackgroundWork::Manual).tuning(|t| t.segment_bytes(4 << 20));
    let store = Store::create(dir.path().join("store"), options)?;
    let table = store.table("rows", Rules::sorted::<u64, u64>())?;
    let mut batch = store.batch();
    for n in 0..rows {
        batch.put(&table, &mix(n), &n);
    }
    batch.commit(Durability::Process)?;
    work(&store, &table)?;
    store.close()
}

fn commit(operations: u64) -> Result<()> {
    with_store(1, |_, table| (0..operations).try_for_each(|n| table.put(&mix(n), &n).map(|_| ())))
}

fn get(operations: u64) -> Result<()> {
    let rows = 20_000;
    with_store(rows, |store, table| {
        store.flush()?;
        for n in 0..2 * rows {
            black_box(table.get(&mix(n % rows))?); // now everything is in the cache
        }
        for n in 0..operations {
            black_box(table.get(&mix(mix(n) % rows))?);
        }
        Ok(())
    })
}

fn get_many(operations: u64) -> Result<()> {
    let rows = 20_000;
    with_store(rows, |store, table| {
        store.flush()?;
        let keys: Vec<u64> = (0..2 * rows).map(|n| mix(n % rows)).collect();
        black_box(table.get_many(&keys)?); // now everything is in the cache
        for first in (0..operations).step_by(64) {
            let keys: Vec<u64> = (first..first + 64).map(|n| mix(mix(n) % rows)).collect();
            black_box(table.get_many(&keys)?);
        }
        Ok(())
    })
}

fn get_absent(operations: u64) -> Result<()> {
    let rows = 20_000;
    with_store(rows, |store, table| {
        store.flush()?;
        for run in 1..6 {
            let mut batch = store.batch();
            for n in run * rows..(run + 1) * rows {
                batch.put(table, &mix(n), &n);
            }
            batch.commit(Durability::Process)?;
            store.flush()?;
        }
        for n in 6 * rows..7 * rows {
            black_box(table.get(&mix(n))?); // now all filters are in memory
        }
        for n in 0..operations {
            black_box(table.get(&mix(mix(n) % (1 << 40) + 7 * rows))?);
        }
        Ok(())
    })
}

/// A store without threads, with `rows` random rows in a hashed table.
fn with_hashed(rows: u64, work: impl FnOnce(&Table<u64, u64>) -> Result<()>) -> Result<()> {
    with_store(1, |store, _| {
        let table = store.table("hashed", Rules::hashed::<u64, u64>())?;
        let mut batch = store.batch();
        for n in 0..rows {
            batch.put(&table, &mix(n), &n);
        }
        batch.commit(Durability::Process)?;
        work(&table)
    })
}

fn get_hashed(operations: u64) -> Result<()> {
    with_hashed(20_000, |table| {
        for n in 0..operations {
            black_box(table.get(&mix(mix(n) % 20_000))?);
        }
        Ok(())
    })
}

fn head_hashed(operations: u64) -> Result<()> {
    with_hashed(20_000, |table| {
        for n in 0..operations {
            black_box(table.head(&mix(mix(n) % 20_000))?);
        }
        Ok(())
    })
}

/// Sums of which the hot keys are in every run.
fn scan_sums(operations: u64) -> Result<()> {
    with_store(1, |store, _| {
        let table = store.table("sums", Rules::sorted::<String, u64>().fold("sum:u64"))?;
        for run in 0..6 {
            let mut batch = store.batch();
            for n in run * SCAN_ROWS..(run + 1) * SCAN_ROWS {
                let key = String::from_utf8_lossy(&text_key(n)).into_owned();
                batch.fold(&table, &*key, &n);
            }
            batch.commit(Durability::Process)?;
            store.flush()?;
        }
        black_box(table.scan().count()?); // now everything is in the cache
        let mut left = operations as usize;
        while left > 0 {
            let mut rows = table.as_bytes().scan().limit(left).rows()?;
            while let Some(row) = rows.next_row()? {
                black_box(row);
                left -= 1;
            }
        }
        Ok(())
    })
}

fn scan(operations: u64) -> Result<()> {
    with_store(SCAN_ROWS, |store, table| {
        store.flush()?;
        table.put(&0, &0)?; // a second source, which has ended soon
        for _ in 0..2 + operations / SCAN_ROWS {
            let mut rows = table.as_bytes().scan().limit(SCAN_ROWS as usize).rows()?;
            while let Some(row) = rows.next_row()? {
                black_box(row);
            }
        }
        Ok(())
    })
}

/// A table with this many batches of pairs, each flushed. Five rows each begin with the same even
/// number, which no other of five batches has.
fn with_pairs(batches: u64, work: impl FnOnce(&Table<(u64, u64), u64>) -> Result<()>) -> Result<()> {
    with_store(1, |store, _| {
        let table = store.table("pairs", Rules::sorted::<(u64, u64), u64>())?;
        for number in 0..batches {
            let mut batch = store.batch();
            for n in 0..SCAN_ROWS {
                batch.put(&table, &(2 * (n - n % 5 + number % 5), n), &n);
            }
            batch.commit(Durability::Process)?;
            store.flush()?;
        }
        work(&table)
    })
}

fn scan_absent(operations: u64) -> Result<()> {
    with_pairs(5, |table| {
        black_box(table.scan().count()?); // now everything is in the cache
        for n in 0..operations {
            black_box(table.scan().prefix(&(2 * (mix(n) % SCAN_ROWS) + 1,)).is_empty()?);
        }
        Ok(())
    })
}

fn load_tuples(operations: u64) -> Result<()> {
    with_pairs(operations / SCAN_ROWS, |_| Ok(()))
}

fn get_memtable(operations: u64) -> Result<()> {
    let memtable = filled(8 * TAIL);
    for n in 0..operations {
        let key = mix(mix(n) % (8 * TAIL)).to_be_bytes();
        memtable.get(&key, ReadAt::Seq(Seq::MAX), |record| {
            black_box(record.payload);
            ControlFlow::Continue(())
        });
    }
    Ok(())
}
