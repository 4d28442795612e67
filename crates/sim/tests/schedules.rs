//! The whole store, with its three threads, under many schedules that a seed decides: `.ci/races
//! schedules`.
//!
//! Each scene runs on a simulated disk, so only the schedule differs from one run to the next, and
//! the power can be cut in a copy of the world in the middle of a run. A wait never times out here:
//! a lost wakeup is a deadlock.
#![cfg(folddb_schedules)]

use std::sync::Arc;

use folddb::{BackgroundWork, Durability, ErrorKind, Options, Rules, Store, Table};
use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_host::sync::{Mutex, schedules, thread};
use folddb_sim::chance::Seeded;
use folddb_sim::world::SimDisk;

const TOTAL: i64 = 100;

/// A store with two tables whose amounts are `TOTAL` together, in two runs each, so that there is
/// something to merge.
struct Scene {
    disk: SimDisk,
    store: Store,
    left: Table<u64, i64>,
    right: Table<u64, i64>,
    /// Moves that were acknowledged.
    moved: AtomicU64,
    /// Worlds after power cuts, with the number of synced moves that must be there.
    cuts: Mutex<Vec<(SimDisk, u64)>>,
    synced: AtomicU64,
}

fn options(disk: &SimDisk, background: BackgroundWork) -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).merge_factor(2))
        .disk_reserve_bytes(0)
        .background(background)
        .host(disk.host())
}

fn tables(store: &Store) -> folddb::Result<(Table<u64, i64>, Table<u64, i64>)> {
    let rules = || Rules::sorted::<u64, i64>().fold("sum:i64");
    Ok((store.table("left", rules())?, store.table("right", rules())?))
}

impl Scene {
    fn new() -> Arc<Scene> {
        let disk = SimDisk::new(1);
        let store = Store::create(SimDisk::store_dir(), options(&disk, BackgroundWork::Manual)).unwrap();
        let (left, _) = tables(&store).unwrap();
        left.put(&0, &TOTAL).unwrap();
        store.flush().unwrap();
        store.close().unwrap();
        let store = Store::open(SimDisk::store_dir(), options(&disk, BackgroundWork::Threads)).unwrap();
        let (left, right) = tables(&store).unwrap();
        let (moved, synced) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Scene { disk, store, left, right, moved, cuts: Mutex::new(Vec::new()), synced })
    }

    /// Moves 1 from left to right, several times. After the store is closed it is refused.
    fn write(&self, durability: Durability) {
        for _ in 0..2 {
            let mut batch = self.store.batch();
            batch.fold(&self.left, &0, &-1).fold(&self.right, &0, &1);
            if !answered(batch.commit(durability)) {
                return;
            }
            self.moved.fetch_add(1, Ordering::SeqCst);
            if durability == Durability::Sync {
                let synced = self.synced.fetch_add(1, Ordering::SeqCst) + 1;
                let after = self.disk.after_power_cut(&mut Seeded::new(synced));
                self.cuts.lock().push((after, synced));
            }
        }
    }

    fn write_process(&self) {
        self.write(Durability::Process);
    }

    fn write_buffered(&self) {
        self.write(Durability::Buffered);
    }

    fn write_sync(&self) {
        self.write(Durability::Sync);
    }

    /// Removes the amounts and puts them back in one batch, by a range delete: no reader may see
    /// the state between.
    fn turn_over(&self) {
        let bytes = self.right.as_bytes();
        let mut batch = self.store.batch();
        batch.delete_range(bytes, &1u64.to_be_bytes(), &9u64.to_be_bytes());
        batch.put(&self.right, &5, &7).fold(&self.left, &5, &-7);
        if !answered(batch.commit(Durability::Process)) {
            return;
        }
        let mut batch = self.store.batch();
        batch.delete_range(bytes, &1u64.to_be_bytes(), &9u64.to_be_bytes());
        batch.put(&self.right, &6, &9).fold(&self.left, &5, &-2);
        answered(batch.commit(Durability::Process));
    }

    /// A snapshot has the total, and reads the same again.
    fn read(&self) {
        let snapshot = self.store.snapshot();
        let read = |reversed: bool| -> folddb::Result<Vec<Vec<(u64, i64)>>> {
            let rows = |table: &Table<u64, i64>| -> folddb::Result<Vec<(u64, i64)>> {
                let scan = snapshot.scan(table);
                let mut rows = if reversed { scan.reverse() } else { scan }
                    .into_iter()
                    .collect::<folddb::Result<Vec<_>>>()?;
                rows.sort_unstable();
                Ok(rows)
            };
            Ok(vec![rows(&self.left)?, rows(&self.right)?])
        };
        let Some(first) = open(read(false)) else { return };
        assert_eq!(first.iter().flatten().map(|row| row.1).sum::<i64>(), TOTAL, "{first:?}");
        let Some(again) = open(read(true)) else { return };
        assert_eq!(first, again);
        // Without a snapshot the rows of one scan are of one moment, too.
        let Some(rows) = open(self.right.scan().into_iter().collect::<folddb::Result<Vec<_>>>()) else {
            return;
        };
        assert!(rows.iter().filter(|row| row.0 > 0).count() <= 1, "{rows:?}");
    }

    /// Keys that are asked for at once are read as of one moment.
    fn read_many(&self) {
        for _ in 0..3 {
            let Some(found) = open(self.right.get_many(&[5, 6])) else { return };
            assert!(
                [[None, None], [Some(7), None], [None, Some(9)]].contains(&[found[0], found[1]]),
                "{found:?}"
            );
        }
    }

    fn flush(&self) {
        answered(self.store.flush());
    }

    fn compact(&self) {
        answered(self.store.bytes_table("right").and_then(|table| table.compact()));
    }

    fn close(&self) {
        self.store.clone().close().unwrap();
    }

    /// Writes to a table, drops it, and creates it again: earlier writes are gone. Others may do
    /// the same to it.
    fn rebuild(&self) {
        let key = self.synced.fetch_add(1, Ordering::SeqCst);
        let rules = || Rules::sorted::<u64, u64>();
        let Some(table) = open(self.store.table("passing", rules())) else { return };
        let written = answered(table.put(&key, &1));
        let dropped = self.store.drop_table("passing");
        let is_gone = dropped.as_ref().is_err_and(|error| error.kind() == ErrorKind::TableNotFound);
        if !is_gone && !answered(dropped) {
            return; // closed, or another thread is dropping it
        }
        assert!(!written || table.get(&key).is_err_and(|error| error.kind() == ErrorKind::Closed));
        let Some(table) = open(self.store.table("passing", rules())) else { return };
        assert_eq!(open(table.get(&key)).flatten(), None);
    }

    /// Everything that was acknowledged is there, after closing and after each power cut.
    fn check(&self) {
        self.close();
        let moved = |disk: &SimDisk| {
            let store = Store::open(SimDisk::store_dir(), options(disk, BackgroundWork::Manual)).unwrap();
            let (left, right) = tables(&store).unwrap();
            let (snapshot, mut total) = (store.snapshot(), 0);
            for table in [&left, &right] {
                total += snapshot.scan(table).into_iter().map(|row| row.unwrap().1).sum::<i64>();
            }
            assert_eq!(total, TOTAL);
            right.get(&0).unwrap().unwrap_or(0) as u64
        };
        assert_eq!(moved(&self.disk), self.moved.load(Ordering::SeqCst));
        for (disk, synced) in self.cuts.lock().drain(..) {
            let found = moved(&disk);
            assert!(found >= synced, "{found} moves after a power cut, {synced} were synced");
        }
    }
}

/// True when a call was answered, false when it was refused because the store is closed.
fn answered<T>(outcome: folddb::Result<T>) -> bool {
    open(outcome).is_some()
}

fn open<T>(outcome: folddb::Result<T>) -> Option<T> {
    match outcome {
        Ok(answer) => Some(answer),
        Err(error) if error.kind() == ErrorKind::Closed => None,
        Err(error) => panic!("{error:?}"),
    }
}

fn together(acts: &[fn(&Scene)]) {
    let scene = Scene::new();
    let threads: Vec<_> = acts
        .iter()
        .map(|act| {
            let (scene, act) = (Arc::clone(&scene), *act);
            thread::spawn(move || act(&scene))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    scene.check();
}

#[test]
fn schedules_of_writers_and_a_reader() {
    schedules(300, || {
        together(&[Scene::write_process, Scene::write_buffered, Scene::turn_over, Scene::read])
    });
    schedules(300, || together(&[Scene::write_process, Scene::turn_over, Scene::flush, Scene::read_many]));
}

#[test]
fn schedules_of_flushes_and_merges_under_a_reader() {
    schedules(300, || together(&[Scene::write_process, Scene::flush, Scene::compact, Scene::read]));
}

#[test]
fn schedules_of_syncs_that_a_power_cut_may_follow() {
    schedules(200, || together(&[Scene::write_sync, Scene::write_sync, Scene::write_buffered, Scene::flush]));
}

#[test]
fn schedules_of_closing_in_the_middle() {
    schedules(300, || together(&[Scene::write_process, Scene::read, Scene::flush, Scene::close]));
    schedules(300, || together(&[Scene::write_sync, Scene::close, Scene::close, Scene::compact]));
}

#[test]
fn schedules_of_a_table_that_comes_and_goes() {
    schedules(300, || together(&[Scene::rebuild, Scene::write_process, Scene::flush, Scene::flush]));
    schedules(300, || together(&[Scene::rebuild, Scene::rebuild, Scene::flush]));
    schedules(300, || together(&[Scene::rebuild, Scene::rebuild, Scene::close]));
}
