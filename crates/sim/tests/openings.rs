//! A store that is opened for every write stays small and quick. A year of minutes:
//! `cargo run -p folddb-sim --release --example openings -- --openings 500000`.

use folddb_sim::openings::open_for_each_write;

#[test]
fn a_store_that_is_opened_for_every_write_stays_small_and_loses_nothing() {
    let seen = open_for_each_write(5_000, &mut |_| {}).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(seen.openings, 5_000);
}
