//! A forked child gets an error from everything that its parent has opened, waits for nothing, and
//! changes nothing.
//!
//! It is forked by a thread that has the commit lock: in the child nobody will ever release that.

mod occasion;

use std::io::{PipeWriter, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use folddb::codec::KeyCodec;
use folddb::maintenance::{BackupOptions, LoadOptions};
use folddb::table_rules::TableRules;
use folddb::{
    AsOf, BackgroundJob, BackgroundWork, BytesTable, Durability, ErrorKind, FeedOptions, IndexRule, Locate,
    Options, Result, Resume, Shared, Store, WriteOp,
};
use occasion::Occasion;

/// What a forked child reports. A signal ends one that waits for a lock.
#[allow(unsafe_code)]
fn in_child(work: impl FnOnce(&mut PipeWriter)) -> Vec<String> {
    let (mut reading, mut writing) = std::io::pipe().expect("a pipe");
    // SAFETY: these calls take numbers, and a pointer that may be null. The child uses the library
    // and the allocator, which a fork leaves usable, and ends without anything of the parent's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe { libc::alarm(20) };
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut writing))).is_err() {
            let _ = writing.write_all(b"it panicked\n");
        }
        unsafe { libc::_exit(0) };
    }
    drop(writing);
    let mut said = String::new();
    reading.read_to_string(&mut said).expect("the child speaks");
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child ends by itself; so far it said: {said}");
    said.lines().map(str::to_owned).collect()
}

/// What the child does. It tells each call and what came of it, so that one that waits is found.
struct Calls<'w>(&'w mut PipeWriter);

/// What a call gives that fails as it should.
const REFUSED: &str = "refused";

impl Calls<'_> {
    fn call<T>(&mut self, name: &str, answer: Result<T>) {
        let message = match answer {
            Ok(_) => "succeeds".to_owned(),
            Err(error) if error.kind() == ErrorKind::Closed => error.message().to_owned(),
            Err(error) => error.to_string(),
        };
        let is_right = message.contains("before this process was forked");
        let _ = writeln!(self.0, "{name}: {}", if is_right { REFUSED } else { &message });
    }
}

/// A store with all that a program may have of it when it forks.
struct Parent {
    store: Store,
    counts: BytesTable,
    ordered: BytesTable,
    hashed: BytesTable,
    people: BytesTable,
    blobs: BytesTable,
}

impl Parent {
    fn create(path: &Path, options: Options) -> Parent {
        let store = Store::create(path, options).expect("the parent can");
        let create = |name, rules| store.create_bytes_table(name, rules).expect("the parent can");
        let rules = || TableRules::new(KeyCodec::Bytes);
        let index: IndexRule = "all:value".parse().expect("the parent can");
        Parent {
            counts: create("counts", "fold=sum:u64".parse().expect("the parent can")),
            ordered: create("ordered", rules().order(occasion::NAME)),
            hashed: create("hashed", "kind=hashed".parse().expect("the parent can")),
            people: create("people", rules().index(index)),
            blobs: create("blobs", "separate=64".parse().expect("the parent can")),
            store,
        }
    }

    fn write(&self) {
        for table in [&self.ordered, &self.hashed, &self.people] {
            table.put(b"a", b"1").expect("the parent can");
        }
        for key in 0..20u8 {
            self.hashed.put(&[key], b"1").expect("the parent can");
        }
        self.counts.fold(b"a", &1u64.to_le_bytes()).expect("the parent can");
        self.blobs.put(b"a", &[7; 1000]).expect("the parent can");
    }
}

/// Every call of the child, while the thread that forked has the commit lock.
fn calls_of(parent: &Parent, had: Had, place: &Path, out: &mut PipeWriter) {
    let mut calls = Calls(out);
    calls_of_store(&mut calls, &parent.store, place);
    for table in [&parent.counts, &parent.ordered, &parent.hashed, &parent.people, &parent.blobs] {
        calls_of_table(&mut calls, table);
    }
    calls.call("find", parent.people.find("all").and_then(|find| find.count()));
    calls.call("writer", parent.blobs.writer(WriteOp::Put, b"b").map(drop));
    calls_of_had(&mut calls, parent, had);
    calls.call("close without a flush", parent.store.clone().close_without_flush());
    calls.call("close", parent.store.clone().close());
    // What cannot fail gives nothing, and waits for nothing.
    let (snapshot, transaction) = (parent.store.snapshot(), parent.store.transaction());
    calls.call("get at a new snapshot", snapshot.get(&parent.counts, b"a"));
    calls.call("get in a new transaction", transaction.get(&parent.counts, b"a"));
    calls.call("commit of a new transaction", written(transaction, parent).commit(Durability::Process));
    let store = &parent.store;
    let blank = [
        ("stats", store.stats().last_seq == 0.into()),
        ("metrics", store.metrics().families.is_empty()),
        ("tables", store.tables().is_empty()),
        ("feeds", store.feeds().is_empty()),
        ("indexes", parent.people.indexes().is_empty()),
        ("value segments", store.value_segments().is_empty()),
        ("reclaim plans", store.reclaim_plans().is_empty()),
        ("ended", snapshot.has_ended()),
    ];
    for (what, is_blank) in blank {
        let _ = writeln!(calls.0, "{what}: {}", if is_blank { REFUSED } else { "some" });
    }
    calls.call("remove unused", parent.store.clone().remove_unused());
}

fn written(mut transaction: folddb::Transaction, parent: &Parent) -> folddb::Transaction {
    transaction.write(&parent.counts, WriteOp::Fold, b"a", &1u64.to_le_bytes());
    transaction
}

fn calls_of_store(calls: &mut Calls<'_>, store: &Store, place: &Path) {
    let how = BackupOptions::default();
    let rules = || "fold=sum:u64".parse::<TableRules>().expect("the parent can");
    calls.call("table", store.bytes_table("counts"));
    calls.call("new table", store.create_bytes_table("new", rules()));
    calls.call("new table, if there is none", store.open_or_create_bytes_table("newer", rules()));
    calls.call("table, which is there", store.open_or_create_bytes_table("counts", rules()));
    calls.call("bulk load", store.bulk_load_bytes("new", rules()));
    calls.call("drop table", store.drop_table("counts"));
    calls.call("snapshot at", store.snapshot_at(AsOf::Seq(store.last_seq())));
    calls.call("transact", store.transact(Durability::Process, |_| Ok(())));
    calls.call("sync", store.sync());
    calls.call("sync later", store.sync_later());
    calls.call("flush", store.flush());
    calls.call("settle", store.settle());
    calls.call("reclaim", store.reclaim());
    calls.call("background step", store.background_step());
    calls.call("flush step", store.background_step_of(BackgroundJob::Flush));
    calls.call("feed", store.feed("new", FeedOptions::default()));
    calls.call("drop feed", store.drop_feed("f"));
    calls.call("backup", store.backup(place.join("backups"), &how));
    calls.call("dump", store.dump(&[], &mut Vec::new()));
    calls.call("dump at", store.dump_at(&[], AsOf::Seq(1.into()), &mut Vec::new()));
    calls.call("load", store.load(&mut &b""[..], &LoadOptions::default()));
    calls.call("check index", store.check_index("people", "all"));
    calls.call("doctor", store.doctor());
    calls.call("value times", store.value_times());
    calls.call("refresh", store.refresh());
}

fn calls_of_table(calls: &mut Calls<'_>, table: &BytesTable) {
    let name = table.name().to_owned();
    let mut call = |what: &str, answer: Result<()>| calls.call(&format!("{what} of {name}"), answer);
    call("put", table.put(b"b", &[0; 8]).map(drop));
    call("put if absent", table.put_if_absent(b"b", &[0; 8]).map(drop));
    call("fold", table.fold(b"a", &[0; 8]).map(drop));
    call("delete", table.delete(b"a").map(drop));
    call("get", table.get(b"a").map(drop));
    call("get many", table.get_many([&b"a"[..]]).map(drop));
    call("contains", table.contains(b"a").map(drop));
    call("head", table.head(b"a").map(drop));
    call("read", table.read(b"a").map(drop));
    call("operands", table.operands(b"a").map(drop));
    call("explain", table.explain(b"a").map(drop));
    call("get with", table.get_with(b"a", |_| ()));
    call("locate", table.locate(b"a", Locate::default()).map(drop));
    call("write whole", table.write_whole(WriteOp::Put, b"b", &[0; 8]).map(drop));
    call("history", table.history(b"a", 1).map(drop));
    call("get at", table.get_at(b"a", AsOf::Seq(1.into())).map(drop));
    call("scan", table.scan().rows().map(drop));
    call("keys", table.scan().keys().next().map_or(Ok(()), |key| key.map(drop)));
    call("scan at", table.scan_at(AsOf::Seq(1.into())).rows().map(drop));
    call("count", table.scan().count().map(drop));
    call("first", table.scan().first().map(drop));
    call("split", table.scan().split(4).map(drop));
    call("stats", table.stats().map(drop));
    call("compact", table.compact());
    call("alter", table.alter(|rules| rules.block_bytes(1024)).map(drop));
    call("compact a range", table.compact_range(&table.scan()));
    call("estimate", table.scan().estimate().map(drop));
    call("add index", table.add_index(&"new:key:0".parse().expect("the parent can")));
    call("drop index", table.drop_index("all"));
    if table.name() != "hashed" {
        call("delete range", table.delete_range(b"a", b"b").map(drop));
        call("last", table.scan().last().map(drop));
    }
    if table.name() == "counts" {
        call("delete prefix", table.delete_prefix(b"a").map(drop));
        call("aggregate", table.scan().aggregate().map(drop));
    }
}

/// What the parent had begun.
struct Had {
    snapshot: folddb::Snapshot,
    transaction: folddb::Transaction,
    batch: folddb::Batch,
    rows: Vec<folddb::LentRows>,
    all_rows: folddb::LentRows,
    feed: folddb::Feed,
    writer: folddb::ValueWriter,
    reader: folddb::ValueReader,
    load: folddb::BytesBulkLoad,
}

impl Had {
    fn begin(parent: &Parent) -> Had {
        let mut writer = parent.blobs.writer(WriteOp::Put, b"b").expect("the parent can");
        writer.write_all(&[8; 100_000]).expect("the parent can");
        let mut batch = parent.store.batch();
        batch.write(&parent.counts, WriteOp::Fold, b"a", &1u64.to_le_bytes());
        let mut load = parent
            .store
            .bulk_load_bytes("loaded", "fold=sum:u64".parse().expect("the parent can"))
            .expect("the parent can");
        load.push(WriteOp::Put, b"a", &[0; 8]).expect("the parent can");
        let begun = |table: &BytesTable| {
            let mut rows = table.scan().rows().expect("the parent can");
            assert!(rows.next_row().expect("the parent can").is_some());
            rows
        };
        Had {
            snapshot: parent.store.snapshot(),
            transaction: written(parent.store.transaction(), parent),
            batch,
            rows: [&parent.ordered, &parent.hashed, &parent.people].map(begun).into(),
            all_rows: {
                let mut rows = begun(&parent.hashed); // at the last, mostly, no file is left to be read
                (0..20).for_each(|_| assert!(rows.next_row().expect("the parent can").is_some()));
                rows
            },
            feed: parent
                .store
                .feed("f", FeedOptions::default().table(Some("counts")))
                .expect("the parent can"),
            writer,
            reader: parent.blobs.read(b"a").expect("the parent can").expect("the parent can"),
            load,
        }
    }
}

fn calls_of_had(calls: &mut Calls<'_>, parent: &Parent, mut had: Had) {
    calls.call("get at the snapshot", had.snapshot.get(&parent.counts, b"a"));
    calls.call("count at the snapshot", had.snapshot.scan(&parent.counts).count());
    calls.call("get in the transaction", had.transaction.get(&parent.people, b"a"));
    let folded = had.transaction.fold_and_get(&parent.counts, &b"a"[..], &[0; 8][..]);
    calls.call("fold and get", folded.map(drop));
    let table = had.snapshot.table(&parent.counts);
    calls.call("get with at the snapshot", table.get_with(b"a", |_| ()));
    calls.call("locate at the snapshot", table.locate(b"a", Locate::default()));
    calls.call("commit of the transaction", had.transaction.commit(Durability::Process));
    calls.call("commit of the batch", had.batch.commit(Durability::Sync));
    let cursor = had.rows[0].cursor();
    calls.call("resume", parent.ordered.resume(&cursor, Resume::default()).and_then(|scan| scan.count()));
    for rows in &mut had.rows {
        calls.call("next row", rows.next_row().map(drop));
    }
    calls.call("the end of all rows", had.all_rows.next_row().map(drop));
    calls.call("next event", had.feed.next(Duration::ZERO));
    calls.call("poll", had.feed.poll());
    let place = had.feed.position();
    calls.call("acknowledge", had.feed.acknowledge(place));
    calls.call("skip to", had.feed.skip_to(place));
    calls.call("begin the feed again", had.feed.begin_again());
    calls.call("write from", had.writer.write_from(&mut &[8; 1 << 20][..]));
    calls.call("write", had.writer.write_all(&[8; 1 << 20]).map_err(folddb::Error::from));
    calls.call("finish", had.writer.finish());
    calls.call("read on", had.reader.read(&mut [0; 10]).map_err(folddb::Error::from));
    calls.call("push", had.load.push(WriteOp::Put, b"b", &[0; 8]));
    calls.call("finish the load", had.load.finish());
}

#[test]
fn a_forked_child_gets_an_error_from_every_call_whatever_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let (path, place) = (dir.path().join("s.folddb"), dir.path().to_owned());
    let occasion = Arc::new(Occasion::default());
    let parent = Arc::new(Parent::create(&path, Options::default().custom_order(occasion.clone())));
    parent.write();
    let (told, had) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Some(Had::begin(&parent)))));
    let (tell, of, lend) = (Arc::clone(&told), Arc::clone(&parent), Arc::clone(&had));
    occasion.then(move || {
        let had = || lend.lock().unwrap().take().unwrap(); // by the child alone
        *tell.lock().unwrap() = in_child(|out| calls_of(&of, had(), &place, out));
    });
    let mut number = 0u32;
    while !occasion.is_over() {
        parent.ordered.put(&number.to_be_bytes(), b"").unwrap(); // a full tail is sorted under the lock
        number += 1;
    }
    let told = told.lock().unwrap().clone();
    let wrong: Vec<_> = told.iter().filter(|call| !call.ends_with(REFUSED)).collect();
    assert_eq!((wrong, told.len() > 150), (vec![], true), "{told:#?}");
    let had = had.lock().unwrap().take().unwrap();
    had.load.finish().unwrap();
    had.writer.finish().unwrap();
    assert_eq!(had.snapshot.get(&parent.counts, b"a").unwrap(), Some(1u64.to_le_bytes().to_vec()));
    assert_eq!(parent.blobs.get(b"b").unwrap().map(|value| value.len()), Some(100_000));
}

/// Methods that need no place among the calls of a child: they read what the handle itself has, or
/// are another form of a method that is there.
const NEED_NO_CALL: [&str; 20] = [
    "now",
    "rules",
    "seq",
    "time",
    "len_bytes",
    "len",
    "is_empty",
    "name",
    "path",
    "takes_streams",
    "check", // its own
    "with_durability",
    "with_lifetime",
    "cursor",
    "deadline",
    "key",
    "value",
    "options", // its own
    "check_synchronize",
    "synchronize", // of scans
];

#[test]
fn every_method_of_the_api_is_called_in_the_child() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = std::fs::read_to_string(here.join("public-api.txt")).unwrap();
    let calls = std::fs::read_to_string(here.join("tests/forks.rs")).unwrap();
    let types = ["Store", "BytesTable", "BytesTableAt", "Snapshot", "Transaction", "Batch", "Feed"];
    let types = types.iter().chain(&["ValueReader", "ValueWriter", "BytesBulkLoad", "LentRows"]);
    let begins: Vec<String> = types.map(|of| format!("  folddb::{of}::fn ")).collect();
    let (mut missing, mut methods) = (Vec::new(), 0);
    for line in listed.lines().filter(|line| line.contains("self")) {
        let Some(rest) = begins.iter().find_map(|begin| line.strip_prefix(begin.as_str())) else { continue };
        let name = rest.split(['(', '<']).next().unwrap_or_default();
        // `backup_with` is `backup` that tells its progress; typed calls are those of bytes.
        let forms = [
            name.to_owned(),
            name.trim_end_matches("_with").to_owned(),
            name.replace("_table", "_bytes_table"),
            name.replace("open", "bytes"),
            format!("{name}_bytes"),
        ];
        methods += 1;
        let is_called = forms.iter().any(|form| calls.contains(&format!(".{form}(")));
        if !is_called && !NEED_NO_CALL.contains(&name) {
            missing.push(line);
        }
    }
    assert!(methods > 100, "{methods}");
    assert!(missing.is_empty(), "without a call in a forked child: {missing:#?}");
}

/// The files of a directory, and those in it.
fn files_in(dir: &Path) -> Vec<(String, u64)> {
    let entries =
        std::fs::read_dir(dir).expect("a file of the store").map(|entry| entry.expect("a file of the store"));
    let mut files: Vec<_> = entries
        .map(|entry| {
            (
                entry.file_name().into_string().expect("a file of the store"),
                entry.metadata().expect("a file of the store").len(),
            )
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_forked_child_that_drops_everything_leaves_the_files_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    let options =
        || Options::default().background(BackgroundWork::Manual).custom_order(Arc::<Occasion>::default());
    let parent = Parent::create(&path, options());
    parent.write();
    parent.store.flush().unwrap();
    let had = Had::begin(&parent); // its rows read the run that the next merge replaces
    parent.write();
    parent.store.flush().unwrap();
    for table in [&parent.counts, &parent.ordered, &parent.people, &parent.blobs] {
        table.compact().unwrap();
    }
    let before = files_in(&path);
    let mut moved = Some((parent, had));
    let told = in_child(|out| {
        drop(moved.take());
        let _ = writeln!(out, "dropped");
    });
    assert_eq!((told, files_in(&path)), (vec!["dropped".to_owned()], before));
    let (parent, mut had) = moved.unwrap();
    assert!(had.rows.iter_mut().all(|rows| rows.next_row().is_ok()));
    drop(had);
    parent.write();
    parent.store.close().unwrap();
    let store = Store::open(&path, options()).unwrap();
    let counts = store.bytes_table("counts").unwrap();
    assert_eq!(counts.get(b"a").unwrap(), Some(3u64.to_le_bytes().to_vec()));
}

#[test]
fn a_child_opens_what_its_parent_has_closed_but_not_with_what_its_parent_shares() {
    let dir = tempfile::tempdir().unwrap();
    let (path, options) = (dir.path().join("s.folddb"), Options::default());
    let shared = Shared::new(8 << 20);
    let store = Store::create(&path, options.clone().shared(&shared)).unwrap();
    store.create_bytes_table("counts", "fold=sum:u64".parse().unwrap()).unwrap();
    let told = in_child(|out| {
        let locked = Store::open(&path, Options::default()).unwrap_err().kind();
        let _ = writeln!(out, "{locked:?}");
    });
    assert_eq!(told, ["Locked"]);
    store.close().unwrap();
    let told = in_child(|out| {
        let refused = Store::open(&path, options.clone().shared(&shared)).unwrap_err();
        let own = Store::open(&path, options.clone()).unwrap();
        let counts = own.bytes_table("counts").unwrap();
        counts.fold(b"a", &1u64.to_le_bytes()).unwrap();
        drop(counts);
        own.close().unwrap();
        let _ = writeln!(out, "{refused}");
    });
    let why = "what stores share was made before this process was forked, which leaves its threads behind";
    assert_eq!(told, [format!("{why} (make another one in the child)")]);
    let store = Store::open(&path, options).unwrap();
    assert_eq!(store.bytes_table("counts").unwrap().get(b"a").unwrap(), Some(1u64.to_le_bytes().to_vec()));
}

#[test]
fn a_forked_child_of_a_store_in_memory_gets_errors_and_leaves_it_alone() {
    let store = Store::in_memory(Options::default()).unwrap();
    let counts = store.create_bytes_table("counts", "fold=sum:u64".parse().unwrap()).unwrap();
    counts.fold(b"a", &1u64.to_le_bytes()).unwrap();
    let mut moved = Some((store, counts));
    let told = in_child(|out| {
        let (store, counts) = moved.take().unwrap();
        let mut calls = Calls(out);
        calls.call("fold", counts.fold(b"a", &1u64.to_le_bytes()));
        calls.call("get", counts.get(b"a"));
        calls.call("flush", store.flush());
        drop((store, counts));
        let _ = writeln!(out, "dropped");
    });
    assert_eq!(told, ["fold: refused", "get: refused", "flush: refused", "dropped"]);
    let (store, counts) = moved.unwrap();
    store.flush().unwrap();
    assert_eq!(counts.get(b"a").unwrap(), Some(1u64.to_le_bytes().to_vec()));
}
