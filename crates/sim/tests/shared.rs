//! Stores that share memory, cache and threads (`folddb::Shared`): random programs over two of
//! them, which are closed and opened again while the other continues; a poisoned store does not
//! stop another; the memory of a closed store is given back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb::{BackgroundWork, Durability, ErrorKind, Options, Rules, Shared, Store, Table};
use folddb_host::Host;
use folddb_sim::chance::Seeded;
use folddb_sim::faulty_files::{Call, Fault, FaultyFiles};

const MIB: usize = 1 << 20;
const KEYS: u64 = 3_000;

/// A store, and its expected contents.
struct Side {
    path: PathBuf,
    options: Options,
    open: Option<(Store, Table<u64, Vec<u8>>)>,
    model: BTreeMap<u64, Vec<u8>>,
}

impl Side {
    fn new(dir: &Path, name: &str, options: Options) -> Side {
        let mut side = Side { path: dir.join(name), options, open: None, model: BTreeMap::new() };
        side.table();
        side
    }

    /// The table of the store, which is opened if it is not open.
    fn table(&mut self) -> Table<u64, Vec<u8>> {
        let (path, options) = (&self.path, &self.options);
        let open = || {
            let store = Store::open_or_create(path, options.clone()).expect("it opens");
            let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).expect("the table is there");
            (store, table)
        };
        self.open.get_or_insert_with(open).1.clone()
    }

    fn store(&mut self) -> Store {
        self.table();
        self.open.as_ref().map(|(store, _)| store.clone()).expect("it was opened")
    }

    fn write(&mut self, chance: &mut Seeded) {
        let (table, store) = (self.table(), self.store());
        let mut batch = store.batch();
        for _ in 0..1 + chance.below(300) {
            let key = chance.below(KEYS);
            if chance.one_in(5) {
                batch.delete(&table, &key);
                self.model.remove(&key);
            } else {
                let value = vec![key as u8; chance.below(600) as usize];
                batch.put(&table, &key, &value);
                self.model.insert(key, value);
            }
        }
        batch.commit(Durability::Process).expect("it is written");
    }

    fn check(&mut self, chance: &mut Seeded) {
        let (table, from) = (self.table(), chance.below(KEYS));
        assert_eq!(table.get(&from).expect("a get"), self.model.get(&from).cloned());
        let rows: Vec<_> =
            table.scan().from(&from).limit(200).into_iter().map(|row| row.expect("a row")).collect();
        let wanted = self.model.range(from..).take(200).map(|(key, value)| (*key, value.clone()));
        assert_eq!(rows, wanted.collect::<Vec<_>>());
    }

    fn act(&mut self, chance: &mut Seeded) {
        match chance.below(20) {
            0 => self.open.take().into_iter().for_each(|(store, _)| store.close().expect("it closes")),
            1 => drop(self.open.take()),
            2 => self.store().flush().expect("it flushes"),
            3 => self.store().settle().expect("it settles"),
            4 => self.table().compact().expect("it compacts"),
            5..8 => drop(self.store().background_step().expect("a step")),
            8..12 => self.check(chance),
            _ => self.write(chance),
        }
    }
}

fn options(background: BackgroundWork) -> Options {
    Options::default()
        .memory_bytes(16 * MIB)
        .background(background)
        .tuning(|t| t.part_bytes(64 << 10).segment_bytes(1 << 20).merge_factor(3))
}

#[test]
fn random_programs_over_two_stores_that_share_agree_with_their_models() {
    for seed in 0..24 {
        let mut chance = Seeded::new(seed);
        let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        let shared = Shared::new(4 * MIB);
        let ways = [BackgroundWork::Threads, BackgroundWork::Threads, BackgroundWork::Manual];
        let mut side = |name: &str| {
            let options = options(*chance.pick(&ways)).shared(&shared);
            Side::new(dir.path(), name, options)
        };
        let mut sides = [side("one"), side("two")];
        for _ in 0..150 {
            let side = chance.below(2) as usize;
            sides[side].act(&mut chance);
        }
        for side in &mut sides {
            let rows: BTreeMap<u64, Vec<u8>> =
                side.table().scan().into_iter().map(|row| row.expect("a row")).collect();
            assert!(rows == side.model, "seed {seed}: store {:?} has not what was written", side.path);
        }
        drop(sides);
        assert_eq!((shared.stores(), shared.used_bytes()), (0, 0), "seed {seed}");
    }
}

#[test]
fn a_poisoned_store_and_one_that_lacks_space_stop_no_other() {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let shared = Shared::new(4 * MIB);
    let side = |name: &str, host: Host| {
        Side::new(dir.path(), name, options(BackgroundWork::Threads).shared(&shared).host(host))
    };
    let [poisoned, full] = [(); 2].map(|()| FaultyFiles::new(Host::real().files));
    let host = |files: &FaultyFiles| Host { files: Arc::new(files.clone()), ..Host::real() };
    let mut ill = [side("poisoned", host(&poisoned)), side("full", host(&full))];
    let mut well = side("well", Host::real());
    let mut chance = Seeded::new(1);
    ill.iter_mut().for_each(|side| side.write(&mut chance));
    poisoned.break_on(Fault::on(&[Call::AppendSync]));
    full.break_on(Fault { os_error: 28, ..Fault::on(&[Call::Create]) });
    let error = ill[0].store().sync().expect_err("the sync fails");
    assert_eq!(ill[0].table().put(&1, &vec![1]).expect_err("nothing is written").kind(), error.kind());
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    for _ in 0..400 {
        well.write(&mut chance);
    }
    well.store().settle().expect("it settles");
    well.check(&mut chance);
    for side in &mut ill {
        side.check(&mut chance); // both are still readable
    }
}

#[test]
fn a_store_that_is_closed_gives_its_share_back_at_once() {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let shared = Shared::new(32 * MIB);
    let [mut stays, mut goes] = ["stays", "goes"]
        .map(|name| Side::new(dir.path(), name, options(BackgroundWork::Manual).shared(&shared)));
    let mut chance = Seeded::new(1);
    for side in [&mut stays, &mut goes] {
        (0..10).for_each(|_| side.write(&mut chance));
        side.store().settle().expect("it settles");
        assert_eq!(side.table().scan().count().expect("a count"), side.model.len() as u64);
        (0..10).for_each(|_| side.write(&mut chance));
    }
    let both = shared.used_bytes();
    let (store, handle) = goes.open.take().expect("it is open");
    store.close().expect("it closes");
    let one = shared.used_bytes();
    assert!(one * 3 < both * 2, "{one} bytes are left of {both}");
    assert_eq!(shared.stores(), 1);
    assert_eq!(handle.get(&1).expect_err("it is closed").kind(), ErrorKind::Closed);
    stays.check(&mut chance);
}
