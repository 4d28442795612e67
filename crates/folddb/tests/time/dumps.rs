//! Dumps keep the deadlines of values, and are of one moment.

use std::sync::Arc;
use std::time::Duration;

use folddb::codec::KeyCodec;
use folddb::maintenance::LoadOptions;
use folddb::table_rules::TableRules;
use folddb::time::{moment, unix_ms};
use folddb::{
    AsOf, ErrorKind, Expire, Fold, FoldFailure, Keep, Lifetime, Outcome, Rules, Store, Table, WriteOp,
};

use crate::moved::START_MS;
use crate::world::{World, after, counts, shakes};

fn dump_of(store: &Store) -> String {
    let mut text = Vec::new();
    store.dump(&[], &mut text).expect("it is dumped");
    String::from_utf8(text).expect("a dump is text")
}

/// The deadlines of the values of these keys.
fn deadlines(table: &Table<u64, u64>, keys: [u64; 3]) -> [Option<u64>; 3] {
    keys.map(|key| table.head(&key).expect("it is read").expect("it has a value").deadline.map(unix_ms))
}

#[test]
fn dumped_and_loaded_values_keep_their_deadlines() {
    let hour_ms = 3_600_000;
    for (what, rules, default_ms) in [
        ("by-write", Rules::sorted::<u64, u64>().expire(Expire::ByWrite), None),
        (
            "an-hour",
            Rules::sorted::<u64, u64>().expire(Expire::After(Duration::from_millis(hour_ms))),
            Some(START_MS + hour_ms),
        ),
        ("hashed", Rules::hashed::<u64, u64>().expire(Expire::ByWrite), None),
    ] {
        let world = World::new();
        let store = world.create();
        let table = store.table("t", rules).unwrap();
        table.with_lifetime(Lifetime::For(Duration::from_secs(5))).put(&1, &1).unwrap();
        table.put(&2, &2).unwrap();
        table.with_lifetime(Lifetime::Forever).put(&3, &3).unwrap();
        let text = dump_of(&store);
        world.pass(2_000);
        let load = |name: &str| {
            let loaded = Store::create(world.path.with_file_name(name), world.options()).unwrap();
            loaded.load(&mut text.as_bytes(), &LoadOptions::default()).unwrap();
            loaded
        };
        let loaded = load("loaded");
        let of_loaded = loaded.bytes_table("t").unwrap();
        let head =
            |key: u64| of_loaded.head(&key.to_be_bytes()).unwrap().map(|head| head.deadline.map(unix_ms));
        assert_eq!(
            [head(1), head(2), head(3)],
            [Some(Some(START_MS + 5_000)), Some(default_ms), Some(None)],
            "{what}"
        );
        assert_eq!(deadlines(&table, [1, 2, 3]), [Some(START_MS + 5_000), default_ms, None], "{what}");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.pop(); // the hash, which depends on the order of hashed tables, too
            lines.sort_unstable();
            lines
        };
        assert_eq!(sorted(&dump_of(&loaded)), sorted(&text), "{what}");
        world.pass(3_000);
        assert_eq!(head(1), None, "{what}");
        let late_store = load("late");
        let late = late_store.bytes_table("t").unwrap();
        assert_eq!(
            (late.get(&1u64.to_be_bytes()).unwrap(), late.scan().count().unwrap()),
            (None, 2),
            "{what}"
        );
    }
}

/// Adds, but to no more than 10.
struct Brittle;

impl Fold for Brittle {
    fn spec(&self) -> String {
        "brittle".to_owned()
    }
    fn fold(&self, _: &[u8], one: &[u8], other: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        out.extend(one.iter().zip(other).map(|(one, other)| one.saturating_add(*other)));
        if out[0] > 10 { Err(FoldFailure::new("it is too much")) } else { Ok(Outcome::Value) }
    }
}

/// A key whose fold fails lasts as long as its value would.
#[test]
fn ops_that_do_not_fold_are_dumped_with_their_deadline() {
    let world = World::new();
    let create = |name: &str| {
        let options = world.options().custom_fold(Arc::new(Brittle));
        Store::create(world.path.with_file_name(name), options).unwrap()
    };
    let (store, loaded) = (create("store"), create("loaded"));
    let rules = TableRules::new(KeyCodec::Bytes).custom_fold("brittle", 1).expire(Expire::ByWrite);
    let table = store.create_bytes_table("t", rules).unwrap();
    let fold = |operand: u8, seconds| {
        let lifetime = Lifetime::For(Duration::from_secs(seconds));
        table.with_lifetime(lifetime).write(WriteOp::Fold, b"k", &[operand]).unwrap()
    };
    fold(9, 5);
    world.pass(1_000);
    fold(2, 9);
    assert_eq!(table.get(b"k").unwrap_err().kind(), ErrorKind::FoldFailed);
    world.pass(6_000); // the first is over, but was not when the second came
    let text = dump_of(&store);
    loaded.load(&mut text.as_bytes(), &LoadOptions::default()).unwrap();
    let again = loaded.bytes_table("t").unwrap();
    assert_eq!(again.get(b"k").unwrap_err().kind(), ErrorKind::FoldFailed);
    assert_eq!(dump_of(&loaded), text);
    world.pass(3_000);
    assert_eq!((again.get(b"k").unwrap(), table.get(b"k").unwrap()), (None, None));
}

/// A dump as of a moment is the text of a dump that was made then, whatever happened to the runs.
#[test]
fn a_dump_at_a_moment_is_what_it_was_then() {
    for (how, shake) in shakes() {
        let world = World::new();
        let store = world.create();
        let table = counts(&store, Keep::Forever, Expire::ByWrite);
        let mut told = Vec::new();
        for round in 0..6u64 {
            for key in 0..5 {
                let lasts = Lifetime::For(Duration::from_secs(5 * (key + 1)));
                table.with_lifetime(lasts).fold(&key, &(round + 1)).unwrap();
            }
            table.delete(&(round % 5)).unwrap();
            told.push((store.last_seq(), START_MS + 3_000 * round, dump_of(&store)));
            world.pass(3_000);
        }
        drop(table);
        let store = shake(&world, store);
        for (seq, time_ms, text) in told {
            let mut then = Vec::new();
            let report = store.dump_at(&[], AsOf::Time(moment(time_ms)), &mut then).unwrap();
            assert_eq!((report.seq, String::from_utf8(then).unwrap()), (seq, text), "{how}");
        }
    }
}

#[test]
fn a_dump_at_a_moment_that_is_forgotten_is_refused_before_a_line() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Forever, Expire::Never);
    let latest = store.table("latest", Rules::sorted::<u64, u64>()).unwrap();
    table.fold(&1, &1).unwrap();
    let then = store.last_seq();
    latest.put(&1, &1).unwrap();
    table.fold(&1, &1).unwrap();
    let dump = |tables: &[&str], as_of| {
        let names: Vec<String> = tables.iter().map(|name| (*name).to_owned()).collect();
        let mut text = Vec::new();
        let dumped = store.dump_at(&names, as_of, &mut text);
        assert!(dumped.is_ok() || text.is_empty(), "nothing is written of what is refused");
        dumped.map(|report| report.records)
    };
    for (tables, as_of, why) in [
        (&[][..], AsOf::Seq(then), "table `latest` keeps latest"),
        (&["counts", "latest"], AsOf::Seq(then), "table `latest` keeps latest"),
        (&["counts"], AsOf::Seq(after(store.last_seq())), "nothing has been written with seq"),
    ] {
        let refused = dump(tables, as_of).unwrap_err();
        assert!(refused.kind() == ErrorKind::InvalidInput && refused.message().contains(why), "{refused}");
    }
    assert_eq!(dump(&["counts"], AsOf::Seq(then)).unwrap(), 1);
    assert_eq!(dump(&[], AsOf::Seq(store.last_seq())).unwrap(), 2);
}

/// Dumps of version 1 know no deadlines; in one of version 2, none means forever.
#[test]
fn dumps_of_before_are_loaded_as_they_were() {
    for (version, until_ms) in [(1, Some(START_MS + 60_000)), (2, None)] {
        let world = World::new();
        let store = world.create();
        let table = store
            .table("t", Rules::sorted::<u64, u64>().expire(Expire::After(Duration::from_secs(60))))
            .unwrap();
        table.put(&1, &1).unwrap();
        let rules = dump_of(&store).lines().nth(1).unwrap().to_owned();
        let text =
            format!("{{\"folddb\":\"dump\",\"version\":{version}}}\n{rules}\n{{\"key\":7,\"value\":7}}\n");
        store.load(&mut text.as_bytes(), &LoadOptions::default().over(true).partial(true)).unwrap();
        assert_eq!(table.head(&7).unwrap().unwrap().deadline.map(unix_ms), until_ms, "version {version}");
    }
    let world = World::new();
    let store = world.create();
    store.table("t", Rules::sorted::<u64, u64>()).unwrap().put(&1, &1).unwrap();
    let text = dump_of(&store);
    assert!(
        text.starts_with("{\"folddb\":\"dump\",\"version\":1}\n"),
        "earlier programs read what needs no more: {text}"
    );
    let text = text.replace("\"value\":1}", "\"value\":1,\"until\":7}").replace("version\":1", "version\":2");
    let wrong = store.load(&mut text.as_bytes(), &LoadOptions::default().over(true)).unwrap_err();
    assert!(wrong.message().contains("line 3") && wrong.message().contains("never expire"), "{wrong}");
}
