//! Undamaged stores: a store after any random program verifies in every record, its doctor finds no
//! damage, and salvaging it loses nothing. Seeds are played again by `Program::random(seed,
//! ACTIONS)`.

use std::path::Path;

use folddb::maintenance::{RepairOptions, VerifyOptions, Weight};
use folddb::{Options, Store};
use folddb_sim::play::play;
use folddb_sim::program::Program;
use folddb_sim::tables::with_customs;

/// Actions of a program, beyond the creation of its tables.
const ACTIONS: usize = 40;

fn options() -> Options {
    with_customs(Options::default()).disk_reserve_bytes(0)
}

/// Every record of every key, as far as it can be read, with its fold or without.
fn content(dir: &Path) -> Vec<(String, Vec<String>)> {
    let store = Store::open_read_only(dir, options()).expect("it opens");
    let rows = |name: &String| {
        let table = store.bytes_table(name).expect("it is there");
        table.scan().into_iter().map(|row| format!("{:?}", row.map_err(|error| error.kind()))).collect()
    };
    store.tables().iter().map(|name| (name.clone(), rows(name))).collect()
}

#[test]
fn stores_of_random_programs_verify_and_salvaging_them_loses_nothing() {
    for seed in 0..40 {
        let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        let (dir, to) = (temp.path().join("store"), temp.path().join("new"));
        let mut program = Program::random(seed, ACTIONS);
        // Those with less play in memory, and leave no store.
        program.settings.merge_factor = program.settings.merge_factor.max(4);
        play(&program, &dir).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let report =
            Store::verify(&dir, &VerifyOptions::default().deep(true), &options()).expect("it is a store");
        assert!(report.is_clean(), "seed {seed}: {:?}", report.findings);
        let advice = Store::diagnose(&dir, &options()).expect("it is a store");
        let broken = advice.iter().find(|one| one.weight == Weight::Broken);
        assert!(broken.is_none(), "seed {seed}: {broken:?}");
        let saved = Store::repair(&dir, &to, &RepairOptions::default(), &options());
        let saved = saved.unwrap_or_else(|why| panic!("seed {seed}: {why:?}"));
        assert!(saved.is_complete() && saved.verified.is_clean(), "seed {seed}: {:?}", saved.findings);
        for ((name, saved), (_, whole)) in content(&to).iter().zip(&content(&dir)) {
            let other = saved.iter().zip(whole).find(|(saved, whole)| saved != whole);
            assert_eq!((other, saved.len()), (None, whole.len()), "seed {seed}, table {name}");
        }
    }
}
