//! An import that the power cuts off: whatever is lost of it, what is in is what its notes say, and
//! the import that goes on from them ends with every row in once.
//!
//! The command line writes the note of how far a file is in the batch of the rows
//! (docs/decisions/0052); this is an import that does the same in the simulated world, where
//! unsynced data can be lost, kept or torn. Killed processes are `crates/cli/tests/import_kill.rs`.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use folddb::{Durability, Options, Result, Rules, Store, Table};
use folddb_sim::chance::Seeded;
use folddb_sim::small_store;
use folddb_sim::world::SimDisk;

const FILES: u64 = 3;
const ROWS: u64 = 400;
const KEYS: u64 = 23;
const SEED: u64 = 0x1517;

/// Small parts and segments, so that an import flushes, merges and begins segments.
fn options(disk: &SimDisk) -> Options {
    small_store::options(disk).tuning(|t| t.part_bytes(16 << 10).segment_bytes(64 << 10).merge_factor(2))
}

/// A row of a file.
fn row(file: u64, number: u64) -> (u64, u64) {
    ((number * 31 + file) % KEYS, number % 7 + 1)
}

/// The sums of the rows, and how many rows of each file are in.
struct Tables {
    sums: Table<u64, u64>,
    notes: Table<u64, u64>,
}

impl Tables {
    fn of(store: &Store) -> Result<Tables> {
        Ok(Tables {
            sums: store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64"))?,
            notes: store.table("notes", Rules::sorted::<u64, u64>())?,
        })
    }

    fn rows_in(&self, file: u64) -> Result<u64> {
        Ok(self.notes.get(&file)?.unwrap_or(0))
    }
}

/// Imports what is not in yet, as the command does: the note is in the batch of the rows.
fn import(store: &Store, chance: &mut Seeded) -> Result<()> {
    let tables = Tables::of(store)?;
    for file in 0..FILES {
        let mut done = tables.rows_in(file)?;
        while done < ROWS {
            let end = (done + 1 + chance.below(60)).min(ROWS);
            let mut batch = store.batch();
            for number in done..end {
                let (key, n) = row(file, number);
                batch.fold(&tables.sums, &key, &n);
            }
            batch.put(&tables.notes, &file, &end);
            batch.commit(if chance.one_in(6) { Durability::Sync } else { Durability::Process })?;
            done = end;
            if chance.one_in(4) {
                store.flush()?;
            }
        }
    }
    store.sync()
}

/// What is in is what the notes say; returns how many rows that are.
fn check(store: &Store, what: &str) -> u64 {
    let tables = Tables::of(store).unwrap();
    let (mut noted, mut expected) = (0, BTreeMap::new());
    for file in 0..FILES {
        let rows = tables.rows_in(file).unwrap();
        noted += rows;
        for number in 0..rows {
            let (key, n) = row(file, number);
            *expected.entry(key).or_insert(0) += n;
        }
    }
    let sums: BTreeMap<u64, u64> = tables.sums.scan().into_iter().map(|row| row.unwrap()).collect();
    assert_eq!(sums, expected, "{what}: sums are those of the rows that are noted");
    noted
}

/// Goes on in each world that a crash leaves, and crashes again there, so many times.
fn crash_and_go_on(disk: &SimDisk, moment: u64, again: u32, cuts: &mut u64) {
    for (what, left) in small_store::crashed(disk, SEED, moment, 2) {
        *cuts += 1;
        let mut chance = Seeded::new(SEED ^ moment ^ u64::from(again) << 32);
        let store = small_store::open(&left, options(&left));
        check(&store, &what);
        if again > 0 {
            left.die_after(1 + chance.below(40));
            let _ = import(&store, &mut chance); // it may come to its end before
            crash_and_go_on(&left, moment + 1, again - 1, cuts);
            continue;
        }
        import(&store, &mut chance).unwrap_or_else(|error| panic!("{what}: {error}\n{}", left.diary(40)));
        assert_eq!(check(&store, &what), FILES * ROWS, "{what}: every row is in");
        // The end of an import is durable.
        let lost = left.after_power_cut(&mut chance);
        assert_eq!(check(&small_store::open(&lost, options(&lost)), &what), FILES * ROWS, "{what}");
    }
}

#[test]
fn an_import_that_the_power_cuts_off_goes_on_with_nothing_twice_and_nothing_missing() {
    let created = |disk: &SimDisk| {
        let store = small_store::create(disk, options(disk));
        Tables::of(&store).unwrap();
        store
    };
    let whole = SimDisk::new(SEED);
    let store = created(&whole);
    let before = whole.changes();
    import(&store, &mut Seeded::new(SEED)).unwrap();
    assert_eq!(check(&store, "without a crash"), FILES * ROWS);
    let changes = whole.changes() - before;
    assert!(changes > 100, "an import of {changes} changes shows little");
    let mut cuts = 0;
    for moment in (0..changes).step_by((changes / 40).max(1) as usize) {
        let disk = SimDisk::new(SEED);
        let store = created(&disk);
        disk.die_after(moment);
        let died = import(&store, &mut Seeded::new(SEED));
        assert!(died.is_err() && disk.is_dead(), "it dies before change {moment}");
        crash_and_go_on(&disk, moment, 1, &mut cuts);
    }
    assert!(cuts > 300, "{cuts} crashes");
}
