//! A store whose clock the test moves, and the contents of its tables.

use std::path::PathBuf;
use std::sync::Arc;

use folddb::{BackgroundWork, Expire, Keep, Options, Rules, Seq, Store, Table};
use folddb_host::Host;

use crate::common::compact;
use crate::moved::Moved;

pub(crate) struct World {
    pub(crate) _dir: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) clock: Arc<Moved>,
}

impl World {
    pub(crate) fn new() -> World {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store");
        World { _dir: dir, path, clock: Arc::new(Moved::new()) }
    }

    pub(crate) fn options(&self) -> Options {
        let host = Host { clock: self.clock.clone(), ..Host::real() };
        Options::default()
            .memory_bytes(4 << 20)
            .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10))
            .background(BackgroundWork::Manual)
            .host(host)
    }

    pub(crate) fn create(&self) -> Store {
        Store::create(&self.path, self.options()).expect("the store is made")
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.path, self.options()).expect("the store opens")
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.clock.pass(ms);
    }

    pub(crate) fn set(&self, ms: u64) {
        self.clock.set(ms);
    }
}

pub(crate) fn counts(store: &Store, keep: Keep, expire: Expire) -> Table<u64, u64> {
    store
        .table("counts", Rules::sorted::<u64, u64>().fold("sum:u64").keep(keep).expire(expire))
        .expect("it works")
}

pub(crate) fn values<V: Clone>(versions: &[folddb::HistoryEntry<Option<V>>]) -> Vec<Option<V>> {
    versions.iter().map(|version| version.value.clone()).collect()
}

/// Does something to a store.
pub(crate) type Shake = fn(&World, Store) -> Store;

/// Operations that do not change what is read.
pub(crate) fn shakes() -> [(&'static str, Shake); 4] {
    [
        ("nothing", |_, store| store),
        ("flush", |_, store| {
            store.flush().expect("it works");
            store
        }),
        ("compact", |_, store| {
            for table in store.tables() {
                compact(&store, &table);
            }
            store
        }),
        ("reopening", |world, store| {
            drop(store);
            world.open()
        }),
    ]
}

/// The seq right before another.
pub(crate) fn before(seq: Seq) -> Seq {
    Seq::from(u64::from(seq) - 1)
}

/// The seq right after another.
pub(crate) fn after(seq: Seq) -> Seq {
    Seq::from(u64::from(seq) + 1)
}
