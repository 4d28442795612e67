//! The replica that a consumer builds from a feed, and the tables that the feed reports.

use std::collections::BTreeMap;
use std::path::Path;

use folddb::{BackgroundWork, Durability, Feed, FeedChange, FeedEvent, Options, Rules, Seq, Store, Table};

pub(crate) fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(256 << 10).value_segment_bytes(256 << 10))
        .background(BackgroundWork::Manual)
}

/// The replica that a consumer builds from a feed: of tables that sum numbers and of tables that
/// replace.
#[derive(Default, Debug, PartialEq)]
pub(crate) struct Replica {
    pub(crate) tables: BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>,
    pub(crate) begun: usize,
    pub(crate) batches: Vec<(Seq, Seq)>,
}

pub(crate) fn sum(earlier: Option<&Vec<u8>>, later: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    (earlier.map_or(0, |bytes| number(bytes)) + number(later)).to_le_bytes().to_vec()
}

impl Replica {
    pub(crate) fn take(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Begin { .. } => {
                self.tables.clear();
                self.begun += 1;
            }
            FeedEvent::TableCreated(table) => {
                assert!(self.tables.insert(table.name.clone(), BTreeMap::new()).is_none(), "{}", table.name);
            }
            FeedEvent::TableDropped(table) => assert!(self.tables.remove(&table.name).is_some()),
            FeedEvent::Row(row) => {
                let rows = self.tables.get_mut(&row.table.name).unwrap();
                assert!(rows.insert(row.key, row.value.unwrap()).is_none());
            }
            FeedEvent::RowsEnd => {}
            FeedEvent::Batch(batch) => {
                self.batches.push((batch.first_seq, batch.last_seq));
                for op in batch.ops {
                    let rows = self.tables.get_mut(&op.table.name).unwrap();
                    match op.change {
                        FeedChange::Put(value) => drop(rows.insert(op.key, value)),
                        FeedChange::PutIfAbsent(value) => drop(rows.entry(op.key).or_insert(value)),
                        FeedChange::Fold(value) => {
                            let folded = sum(rows.get(&op.key), &value);
                            rows.insert(op.key, folded);
                        }
                        FeedChange::Delete => drop(rows.remove(&op.key)),
                        FeedChange::DeleteRange(to) => rows.retain(|key, _| *key < op.key || *key >= to),
                        change => panic!("no value is so long: {change:?}"),
                    }
                }
            }
            unknown => panic!("{unknown:?}"),
        }
    }

    /// Takes all pending events.
    pub(crate) fn follow(&mut self, feed: &mut Feed) {
        while let Some(event) = feed.poll().unwrap() {
            self.take(event);
        }
    }

    /// It has the contents of the store.
    pub(crate) fn check(&self, store: &Store) {
        let mut there = BTreeMap::new();
        for name in store.tables() {
            let rows = store.bytes_table(&name).unwrap().scan();
            let rows: BTreeMap<Vec<u8>, Vec<u8>> = rows.into_iter().map(|row| row.unwrap()).collect();
            there.insert(name, rows);
        }
        let sizes = |tables: &BTreeMap<String, BTreeMap<_, _>>| {
            tables.iter().map(|(name, rows)| (name.clone(), rows.len())).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&self.tables), sizes(&there), "the replica differs");
        assert!(self.tables == there, "the replica differs");
    }
}

pub(crate) fn sums(store: &Store) -> Table<u64, u64> {
    store.table("sums", Rules::sorted().fold("sum:u64")).unwrap()
}

pub(crate) fn texts(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("texts", Rules::sorted().separate(100)).unwrap()
}

pub(crate) fn blobs(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("blobs", Rules::hashed()).unwrap()
}

pub(crate) fn text(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round) as u8; (key as usize * 37 + round as usize * 101) % 900]
}

/// A round of writes to three tables.
pub(crate) fn write(store: &Store, round: u64) {
    let (sums, texts, blobs) = (sums(store), texts(store), blobs(store));
    for key in 0..200u64 {
        let mut batch = store.batch();
        batch.fold(&sums, &(key % 50), &round).put(&texts, &key, &text(key, round));
        match (key + round) % 4 {
            0 => drop(batch.delete(&blobs, &key)),
            1 => drop(batch.put_if_absent(&blobs, &key, &text(key, round + 1))),
            _ => drop(batch.put(&blobs, &key, &text(key, round + 2))),
        }
        batch.commit(Durability::Process).unwrap();
    }
    sums.delete_range(&(round % 40), &(round % 40 + 4)).unwrap();
    texts.delete(&round).unwrap();
}

/// Opens the store again, in one of three ways.
pub(crate) fn again(store: Store, path: &Path, round: u64) -> Store {
    match round % 3 {
        0 => store.close().unwrap(),
        1 => drop(store),
        _ => {
            store.flush().unwrap();
            drop(store);
        }
    }
    Store::open(path, options()).unwrap()
}
