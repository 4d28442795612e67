//! A table of people with an index by city, which most tests use.

use std::ops::ControlFlow;
use std::path::PathBuf;

use folddb::{IndexRule, Options, Rules, Snapshot, Store, Table};

pub(crate) struct World {
    _dir: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) fn fresh(options: Options) -> (World, Store) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    let store = Store::create(&path, options).unwrap();
    (World { _dir: dir, path }, store)
}

pub(crate) fn on(_: impl Sized) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub(crate) fn rule(text: &str) -> IndexRule {
    text.parse::<IndexRule>().unwrap()
}

pub(crate) type People = Table<String, Vec<u8>>;

pub(crate) fn people(store: &Store) -> People {
    store.table("people", Rules::sorted::<String, Vec<u8>>().index("by_city", "json:/city")).unwrap()
}

pub(crate) fn person(city: &str, age: u32) -> Vec<u8> {
    format!(r#"{{"city":"{city}","age":{age},"tags":["t{}","t{}"]}}"#, age % 3, age % 5).into_bytes()
}

pub(crate) fn in_city(people: &People, city: &str) -> Vec<String> {
    people.find("by_city").unwrap().term(city).keys().map(Result::unwrap).collect()
}

pub(crate) fn in_city_at(people: &People, city: &str, at: &Snapshot) -> Vec<String> {
    at.table(people).find("by_city").unwrap().term(city).keys().map(Result::unwrap).collect()
}

/// A key of `z`s that tables take and indexes do not.
pub(crate) fn too_long() -> String {
    "z".repeat(65_000)
}
