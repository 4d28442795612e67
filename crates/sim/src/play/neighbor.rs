//! Another store of the same process, which shares the memory, the cache and the threads of the
//! player's ([`folddb::Shared`]). It is written to between the actions, so the player's store has
//! to give up memory when the other one needs it. At the end it has what was written to it, and the
//! shared budget is free again.

use folddb::{BackgroundWork, Durability, Options, Rules, Shared, Store, Table};

use crate::compare::{Outcome, same};
use crate::program::Settings;

/// Programs with this merge factor have a neighbor. Those with crashes and faults draw smaller
/// ones, so they have none yet.
const MERGE_FACTOR: usize = 4;

/// The neighbor is written to after each so many actions.
const EVERY_ACTIONS: usize = 6;

const MEMORY_BYTES: usize = 4 << 20;
const ROWS_PER_BATCH: u64 = 200;
const KEYS: u64 = 991;
const VALUE_BYTES: usize = 400;

pub(super) struct Neighbor {
    shared: Shared,
    background: BackgroundWork,
    open: Option<Open>,
    /// How many rows were written: row `n` puts `n` at key `n % KEYS`.
    written: u64,
}

struct Open {
    table: Table<u64, Vec<u8>>,
    store: Store,
    _temp: tempfile::TempDir,
}

impl Neighbor {
    /// The neighbor that programs with these settings have. It takes no draw from any seed.
    pub(super) fn with(settings: &Settings) -> Option<Neighbor> {
        (settings.merge_factor == MERGE_FACTOR).then(|| Neighbor {
            shared: Shared::new(MEMORY_BYTES),
            background: settings.background,
            open: None,
            written: 0,
        })
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// After an action with this number: writes a batch now and then, and reads one row.
    pub(super) fn after_action(&mut self, at: usize) -> Outcome {
        if !at.is_multiple_of(EVERY_ACTIONS) {
            return Ok(());
        }
        let from = self.written;
        let wrote = self.store_opened().and_then(|open| open.write(from));
        wrote.map_err(|error| format!("the neighbor: {error:?}"))?;
        self.written += ROWS_PER_BATCH;
        self.check(from % KEYS)
    }

    fn store_opened(&mut self) -> folddb::Result<&Open> {
        if self.open.is_none() {
            let temp = tempfile::tempdir_in(crate::memory_dir()).expect("a directory in memory");
            let options = Options::default()
                .memory_bytes(MEMORY_BYTES)
                .tuning(|t| t.part_bytes(64 << 10).segment_bytes(1 << 20))
                .disk_reserve_bytes(0)
                .background(self.background)
                .shared(&self.shared);
            let store = Store::create(temp.path().join("neighbor"), options)?;
            let table = Store::table(&store, "t", Rules::sorted::<u64, Vec<u8>>())?;
            self.open = Some(Open { table, store, _temp: temp });
        }
        Ok(self.open.as_ref().expect("it was opened"))
    }

    /// Compares the value of a key with the last one that was put there.
    fn check(&self, key: u64) -> Outcome {
        let Some(open) = &self.open else { return Ok(()) };
        let last = (0..self.written).rev().take(KEYS as usize).find(|row| row % KEYS == key);
        let value = open.table.get(&key).map_err(|error| format!("the neighbor: get {key}: {error:?}"))?;
        same(&format!("the neighbor's value of {key}"), &value, &last.map(value_of))
    }

    /// Checks all of it and closes it. Everything else that shared its memory is gone by now.
    pub(super) fn check_and_close(mut self) -> Outcome {
        for key in 0..KEYS {
            self.check(key)?;
        }
        if let Some(open) = self.open.take() {
            drop(open.table);
            Store::close(open.store).map_err(|error| format!("the neighbor does not close: {error:?}"))?;
        }
        same("stores that share", &self.shared.stores(), &0)?;
        same("bytes of the shared memory that are used", &self.shared.used_bytes(), &0)
    }
}

impl Open {
    fn write(&self, from: u64) -> folddb::Result<()> {
        let mut batch = self.store.batch();
        for row in from..from + ROWS_PER_BATCH {
            batch.put(&self.table, &(row % KEYS), &value_of(row));
        }
        batch.commit(Durability::Buffered)?;
        self.store.background_step().map(drop)
    }
}

fn value_of(row: u64) -> Vec<u8> {
    vec![(row % 251) as u8; VALUE_BYTES]
}
