//! A story of background work, step by step, as a script: what the store does in the background
//! after each burst of writes. `UPDATE=1 cargo test -p folddb --test background_story` rewrites the
//! expected text.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;

use folddb::{BackgroundWork, Options, Rules, Store};

/// Takes steps until nothing is due; prints each, and then the state of the table.
fn drain(store: &Store, story: &mut String) {
    while let Some(done) = store.background_step().unwrap() {
        writeln!(story, "  {done}").unwrap();
    }
    let stats = store.bytes_table("hits").unwrap().stats().unwrap();
    let runs: Vec<String> =
        stats.runs.iter().map(|run| format!("tier {}: {}", run.tier, run.records())).collect();
    writeln!(story, "    records by run, newest first: {}", runs.join(", ")).unwrap();
}

#[test]
fn eight_flushes_make_a_full_tier_and_one_run_of_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().background(BackgroundWork::Manual);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let hits = store.table("hits", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let mut story = String::new();
    for burst in 1..=9u64 {
        // Every burst folds onto the same 500 keys and adds 500 of its own.
        for n in 0..500 {
            hits.fold(&n, &1).unwrap();
            hits.fold(&(burst * 1000 + n), &1).unwrap();
        }
        store.flush().unwrap();
        writeln!(story, "burst {burst}: 1000 folds, flushed").unwrap();
        drain(&store, &mut story);
    }
    hits.delete_range(&1000, &9000).unwrap();
    store.flush().unwrap();
    writeln!(story, "a range delete, flushed").unwrap();
    drain(&store, &mut story);
    writeln!(story, "compact").unwrap();
    store.bytes_table("hits").unwrap().compact().unwrap();
    drain(&store, &mut story);
    writeln!(
        story,
        "key 7 folds to {}; {} keys",
        hits.get(&7).unwrap().unwrap(),
        hits.scan().count().unwrap()
    )
    .unwrap();
    compare(&story, Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/background_story.txt")));
}

fn compare(story: &str, expected: &Path) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(expected, story).unwrap();
    }
    assert_eq!(story, std::fs::read_to_string(expected).unwrap_or_default());
}
