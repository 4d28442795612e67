//! A store that is opened for every write stays small and quick. A year of minutes:
//! `cargo run -p folddb-sim --release --example openings -- --openings 500000`.

use folddb::{Result, Rules, Store, Table};
use folddb_sim::openings::open_for_each_write;
use folddb_sim::small_store;
use folddb_sim::world::SimDisk;

#[test]
fn a_store_that_is_opened_for_every_write_stays_small_and_loses_nothing() {
    let seen = open_for_each_write(5_000, &mut |_| {}).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(seen.openings, 5_000);
}

/// The largest number that a file of the store has.
fn largest_number(disk: &SimDisk) -> u64 {
    let names = disk.names(&SimDisk::store_dir()).into_iter();
    let digits = |name: String| name.chars().filter(char::is_ascii_digit).collect::<String>();
    names.filter_map(|(name, _)| digits(name).parse().ok()).max().unwrap_or(0)
}

#[test]
fn numbers_that_an_opening_has_set_aside_and_not_used_are_given_back_when_it_closes() -> Result<()> {
    const OPENINGS: u64 = 50;
    let disk = SimDisk::new(2);
    small_store::create(&disk, small_store::options(&disk)).close()?;
    let before = largest_number(&disk);
    for opening in 0..OPENINGS {
        let store = Store::open(SimDisk::store_dir(), small_store::options(&disk))?;
        let rows: Table<u64, u64> = store.table("rows", Rules::sorted())?;
        rows.set(&opening, &opening)?;
        drop(rows);
        store.close()?;
    }
    let each = (largest_number(&disk) - before) / OPENINGS;
    assert!(each <= 16, "{each} numbers for an opening");
    Ok(())
}
