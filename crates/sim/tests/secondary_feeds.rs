//! A feed that is read next to the process that writes: each batch comes once and in order while
//! the writer rolls, flushes, merges, reclaims, closes and dies; where the feed was lost, an error
//! says so.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use folddb::{
    BackgroundWork, Durability, ErrorKind, FeedEvent, FeedOptions, FeedPosition, Options, Rules,
    SecondaryFeed, Store, Table, ValuePlacement,
};
use folddb_base::FileNumber;
use folddb_manifest::{Change, ManifestLog, State};
use folddb_sim::faulty_files::{Call, Fault};
use folddb_sim::numbered::Numbered;
use folddb_sim::world::SimDisk;

const DIR: &str = "FOLDDB_FEED_WRITER_DIR";
const NAME: &str = "f";

fn small() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).value_segment_bytes(64 << 10).stream_piece_bytes(4 << 10))
}

fn manual() -> Options {
    small().background(BackgroundWork::Manual)
}

type Blobs = Table<u64, Vec<u8>>;

fn tables(store: &Store) -> [Blobs; 4] {
    let rules = [
        ("inline", Rules::sorted()),
        ("separated", Rules::sorted().separate(1024)),
        ("hashed", Rules::hashed()),
        ("files", Rules::hashed().value_placement(ValuePlacement::Files)),
    ];
    rules.map(|(name, rules)| store.table(name, rules).expect("a table"))
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    let mut value = vec![(key + round) as u8; 900 + (key as usize * 37) % 2000];
    value[..8].copy_from_slice(&round.to_le_bytes());
    value
}

/// Makes the feed, and acknowledges that there are no rows yet.
fn make_feed(store: &Store, bytes_max: Option<u64>) {
    let options = FeedOptions::default().bytes_max(bytes_max);
    let mut feed = store.feed(NAME, options).expect("a feed");
    while feed.poll().expect("rows").is_some() {}
    feed.acknowledge(feed.position()).expect("an edit");
}

fn beside(dir: &Path) -> SecondaryFeed {
    Store::secondary_feed(dir, NAME, FeedOptions::default(), None, &small()).expect("the feed is there")
}

fn take_all(feed: &mut SecondaryFeed, met: &mut Vec<FeedEvent>) {
    while let Some(event) = feed.poll().unwrap_or_else(|error| panic!("after {} events: {error}", met.len()))
    {
        met.push(event);
    }
}

/// The events of the feed in the store: those that are not acknowledged.
fn told_in(store: &Store) -> Vec<FeedEvent> {
    let mut feed = store.feed(NAME, FeedOptions::default()).expect("a feed");
    std::iter::from_fn(|| feed.poll().expect("an event")).collect()
}

/// A round of writes to tables of all kinds, by batches, streams, folds of rules and deletes of
/// ranges.
fn write(store: &Store, round: u64) {
    let [inline, separated, hashed, files] = tables(store);
    for key in 0..60 {
        let value = blob(key, round);
        let mut batch = store.batch();
        batch.put(&inline, &key, &value).put(&separated, &key, &value).put_if_absent(&hashed, &key, &value);
        match (key + round) % 3 {
            0 => drop(batch.delete(&hashed, &(key + 1))),
            1 => drop(batch.put(&files, &key, &value)),
            _ => {}
        }
        let durability = [Durability::Process, Durability::Sync][usize::from(key == 30)];
        batch.commit(durability).expect("a commit");
    }
    for table in [&separated, &hashed] {
        let mut writer = table.writer(&1000).expect("a stream");
        writer.write_all(&blob(round, round).repeat(12)).expect("pieces");
        writer.finish().expect("a commit");
    }
    inline.delete_range(&(round % 40), &(round % 40 + 4)).expect("a delete");
    if round % 4 == 1 {
        store.drop_table("inline").expect("it is there");
    }
}

fn tend(store: &Store, round: u64) {
    if round.is_multiple_of(2) {
        while store.background_step().expect("background work").is_some() {}
    }
    if round.is_multiple_of(3) {
        store.flush().expect("a flush");
    }
    if round.is_multiple_of(5) {
        store.bytes_table("separated").expect("a table").compact().expect("a merge");
        store.reclaim().expect("a reclaim");
    }
}

#[test]
fn a_feed_gives_the_same_in_a_secondary_as_in_the_store() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let mut store = Store::create(&dir, manual()).expect("a store");
    make_feed(&store, None);
    let mut first = beside(&dir);
    let (mut met, mut met_later) = (Vec::new(), Vec::new());
    let mut later = None;
    for round in 0..24 {
        write(&store, round);
        if round % 3 != 1 {
            take_all(&mut first, &mut met);
        }
        tend(&store, round);
        if round == 11 {
            later = Some(beside(&dir));
        }
        take_all(&mut first, &mut met);
        store = again(store, &dir, round, || take_all(&mut first, &mut met));
    }
    take_all(&mut first, &mut met);
    take_all(later.as_mut().expect("it was opened"), &mut met_later);
    let told = told_in(&store);
    assert!(told.len() > 1000, "only {} events", told.len());
    assert!(met == told, "{} events were met, {} are told in the store", met.len(), told.len());
    assert!(met_later == told, "who came later met {} of {} events", met_later.len(), told.len());

    // What the secondary has read is acknowledged in the store, and no more than that.
    write(&store, 100);
    let mut own = store.feed(NAME, FeedOptions::default()).expect("a feed");
    own.skip_to(first.position()).expect("it is there");
    own.acknowledge(own.position()).expect("an edit");
    drop(own);
    let mut rest = Vec::new();
    take_all(&mut first, &mut rest);
    assert!(!rest.is_empty() && rest == told_in(&store), "the rest is told, and nothing else");
    let mut own = store.feed(NAME, FeedOptions::default()).expect("a feed");
    own.skip_to(later.expect("it was opened").position()).expect("it is behind already");
    assert_eq!(own.poll().expect("an event"), rest.first().cloned());
}

/// Opens the store again, in one of two ways, or keeps it open. During `meanwhile`, nothing has it
/// open.
fn again(store: Store, dir: &Path, round: u64, meanwhile: impl FnOnce()) -> Store {
    match round % 4 {
        0 => store.close().expect("it closes"),
        1 => drop(store),
        _ => return store,
    }
    meanwhile();
    Store::open(dir, manual()).expect("it opens")
}

#[test]
fn an_incomplete_answer_says_why_and_what_to_do() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let store = Store::create(&dir, manual()).expect("a store");
    tables(&store);
    let open = |told: FeedOptions| Store::secondary_feed(&dir, NAME, told, None, &small()).map(drop);
    let said = |opened: folddb::Result<()>, kind: ErrorKind, words: [&str; 2]| {
        let error = opened.expect_err("it is refused");
        assert_eq!(error.kind(), kind, "{error}");
        words.iter().for_each(|word| assert!(error.to_string().contains(word), "{error}: no {word}"));
    };
    said(open(FeedOptions::default()), ErrorKind::InvalidInput, ["has no feed", "folddb watch"]);
    let mut feed = store.feed(NAME, FeedOptions::default().bytes_max(Some(1 << 20)));
    said(open(FeedOptions::default()), ErrorKind::InvalidInput, ["begins with rows", "acknowledge"]);
    let feed = feed.as_mut().expect("a feed");
    while feed.poll().expect("rows").is_some() {}
    feed.acknowledge(feed.position()).expect("an edit");
    let other = FeedOptions::default().table(Some("separated"));
    said(open(other), ErrorKind::InvalidInput, ["all tables", "another name"]);

    // Another reader acknowledges events that this reader has not seen.
    let mut behind = beside(&dir);
    write(&store, 0);
    while feed.poll().expect("batches").is_some() {}
    feed.acknowledge(feed.position()).expect("an edit");
    for _ in 0..2 {
        said(behind.poll().map(drop), ErrorKind::Locked, ["another consumer", "two feeds"]);
    }

    // More is written than the feed may hold: the log is removed, and each call says so.
    let mut lost = beside(&dir);
    for round in 1..40 {
        write(&store, 4 * round);
        store.flush().expect("a flush");
        while store.background_step().expect("background work").is_some() {}
    }
    for _ in 0..2 {
        said(lost.poll().map(drop), ErrorKind::FeedLost, ["budget", "--hold-max"]);
    }
    said(open(FeedOptions::default()), ErrorKind::FeedLost, ["budget", "--again"]);
    store.drop_feed(NAME).expect_err("it is being read");
}

/// Tables, as reported to the reader.
fn heard(met: &[FeedEvent]) -> BTreeSet<String> {
    let mut tables = BTreeSet::new();
    for event in met {
        match event {
            FeedEvent::TableCreated(table) => drop(tables.insert(table.name.clone())),
            FeedEvent::TableDropped(table) => drop(tables.remove(&table.name)),
            _ => {}
        }
    }
    tables
}

#[test]
fn a_reader_of_a_recreated_feed_gets_an_error_and_misses_no_table_silently() {
    for (is_opened_again, is_written) in [(false, false), (true, false), (false, true), (true, true)] {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = temp.path().join("store");
        let mut store = Store::create(&dir, manual()).expect("a store");
        make_feed(&store, None);
        let (mut reader, mut met) = (beside(&dir), Vec::new());
        let table = |store: &Store, name: &str| {
            drop(store.table::<u64, u64>(name, Rules::sorted()).expect("a table"))
        };
        ["one", "two"].iter().for_each(|name| table(&store, name));
        take_all(&mut reader, &mut met);
        assert_eq!(heard(&met).len(), 2, "{met:?}");
        // A table is dropped while no reader gets that event.
        store.drop_feed(NAME).expect("it is there");
        store.drop_table("two").expect("it is there");
        if is_opened_again {
            store.close().expect("it closes");
            store = Store::open(&dir, manual()).expect("it opens");
        }
        make_feed(&store, None);
        table(&store, "three");
        if is_written {
            write(&store, 0);
        }
        let error = loop {
            match reader.poll() {
                Ok(Some(event)) => met.push(event),
                Ok(None) => {
                    assert_eq!(heard(&met), store.tables().into_iter().collect(), "nothing is said");
                    panic!("it was not told that `two` is gone, and yet has not met it");
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
        assert!(error.to_string().contains("recreated"), "{error}");
    }
}

fn number_of(key: &[u8]) -> u64 {
    key.try_into().map(u64::from_be_bytes).expect("eight bytes")
}

/// Openings that each write a little leave small files of the log, and later ones join them under
/// readers: one that follows all the time, one that reads now and then, one that is half way.
#[test]
fn readers_follow_over_files_of_the_log_that_openings_join() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let open = || Store::open(&dir, manual().tuning(|t| t.merge_factor(3))).expect("it opens");
    let store = Store::create(&dir, manual()).expect("a store");
    let numbers = |store: &Store| store.table::<u64, u64>("numbers", Rules::sorted()).expect("a table");
    let _first = numbers(&store);
    make_feed(&store, None);
    store.close().expect("it closes");
    let (mut always, mut seldom) = (beside(&dir), beside(&dir));
    let (mut met, mut met_seldom, mut kept, mut next) = (Vec::new(), Vec::new(), 0, 0);
    for opening in 0..120_u64 {
        let store = open();
        let table = numbers(&store);
        for _ in 0..1 + opening % 3 {
            take_all(&mut always, &mut met); // it is inside the files that the next openings join
            table.put(&next, &next).expect("a put");
            next += 1;
        }
        if opening == 70 {
            let mut feed = store.feed(NAME, FeedOptions::default()).expect("a feed");
            let place = (0..40).map(|_| feed.poll().expect("an event").map(|_| feed.position())).last();
            feed.acknowledge(place.flatten().expect("a place")).expect("an edit");
        }
        if opening % 17 == 0 {
            take_all(&mut seldom, &mut met_seldom);
        }
        drop(table);
        match opening % 2 {
            0 => store.close().expect("it closes"),
            _ => drop(store),
        }
        let names = std::fs::read_dir(&dir).expect("it is there").flatten();
        let names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        kept = kept.max(names.iter().filter(|name| name.ends_with(".kept")).count());
        let logs = names.iter().filter(|name| name.ends_with(".log") || name.ends_with(".kept")).count();
        assert!(logs < 16, "{logs} files of the log after {opening} openings");
    }
    assert!(kept > 1, "files were joined");
    let keys = |met: &[FeedEvent]| -> Vec<u64> {
        let of = |event: &FeedEvent| match event {
            FeedEvent::Batch(batch) => batch.ops.iter().map(|op| number_of(&op.key)).collect(),
            _ => Vec::new(),
        };
        met.iter().flat_map(of).collect()
    };
    let all: Vec<u64> = (0..next).collect();
    for (reader, met) in [(&mut always, &mut met), (&mut seldom, &mut met_seldom)] {
        take_all(reader, met);
        assert_eq!(keys(met), all);
    }
    let told = keys(&told_in(&open()));
    assert_eq!(told, all[40..], "what was not acknowledged");
}

/// A power cut may lose the end of a log with its seqs, which are not used again. Files are not
/// joined over such a gap: a reader takes it for damage, except at the beginning of a file.
#[test]
fn files_of_the_log_are_not_joined_over_seqs_that_are_skipped() {
    let disk = SimDisk::new(1);
    let (dir, options) = (SimDisk::store_dir(), manual().host(disk.host()).tuning(|t| t.merge_factor(3)));
    let (store, table) = in_world(&disk);
    drop(table);
    store.close().expect("it closes");
    for opening in 0..24_u64 {
        let store = Store::open(&dir, options.clone()).expect("it opens");
        let table: Blobs = store.table("inline", Rules::sorted()).expect("a table");
        set(&store, &table, (opening, b"value"), Durability::Process);
        drop(table);
        store.close().expect("it closes");
        if opening % 5 == 4 {
            skip_seqs(&disk, 10);
        }
    }
    let names = disk.names(&dir).into_iter().map(|(name, _)| name);
    let logs: Vec<String> = names.filter(|name| name.ends_with(".kept") || name.ends_with(".log")).collect();
    assert!(logs.iter().any(|name| name.ends_with(".kept")) && logs.len() < 20, "some are joined: {logs:?}");
    let mut reader = beside_in(&disk, None).expect("the feed is there");
    let (events, error) = polled(&mut reader);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(events.len(), 24, "{events:?}");
    let store = Store::open(&dir, options).expect("it opens");
    assert_eq!(told_in(&store).len(), 24);
}

/// The manifest of the closed store says that this many later seqs were used.
fn skip_seqs(disk: &SimDisk, count: u64) {
    let (dir, host) = (SimDisk::store_dir(), disk.host());
    let loaded = folddb_manifest::load(&host, &dir).expect("a manifest");
    let State { last_seq, log_start_lsn, durable_lsn, .. } = loaded.state;
    let next = AtomicU64::new(loaded.next_number);
    let numbers = Arc::new(move || FileNumber(next.fetch_add(1, Ordering::Relaxed)));
    let mut log = ManifestLog::resume(&host, &dir, loaded, numbers).expect("a manifest");
    let skipped = Change::Horizon { last_seq: last_seq + count, log_start_lsn, durable_lsn };
    log.append(&[skipped]).expect("an edit");
}

// ---- damage, and earlier places -----------------------------------------------------------------

/// In the faulty world: a store with one table, and its feed.
fn in_world(disk: &SimDisk) -> (Store, Blobs) {
    let options = manual().host(disk.host());
    let store = Store::create(SimDisk::store_dir(), options).expect("a store");
    let table = store.table("inline", Rules::sorted()).expect("a table");
    make_feed(&store, None);
    (store, table)
}

fn beside_in(disk: &SimDisk, from: Option<FeedPosition>) -> folddb::Result<SecondaryFeed> {
    let options = small().host(disk.host());
    Store::secondary_feed(SimDisk::store_dir(), NAME, FeedOptions::default(), from, &options)
}

fn set(store: &Store, table: &Blobs, (key, value): (u64, &[u8]), durability: Durability) {
    let mut batch = store.batch();
    batch.put(table, &key, &value.to_vec());
    batch.commit(durability).expect("a commit");
}

/// All events within this many polls; and the error that ended it.
fn polled(feed: &mut SecondaryFeed) -> (Vec<FeedEvent>, Option<folddb::Error>) {
    let (mut met, mut idle) = (Vec::new(), 0);
    while idle < 40 {
        match feed.poll() {
            Ok(Some(event)) => met.push(event),
            Ok(None) => idle += 1,
            Err(error) => return (met, Some(error)),
        }
    }
    (met, None)
}

#[test]
fn damage_of_the_log_is_reported_wherever_an_opening_reports_it_and_never_waited_for() {
    let (disk, dir) = (SimDisk::new(7), SimDisk::store_dir());
    let (store, table) = in_world(&disk);
    for key in 0..160 {
        let durability = [Durability::Process, Durability::Sync][usize::from(key % 10 == 9 && key < 150)];
        set(&store, &table, (key, &blob(key, 1).repeat(8)), durability);
    }
    let (all, error) = polled(&mut beside_in(&disk, None).expect("it is there"));
    assert!(error.is_none() && all.len() >= 160, "{} events, {error:?}", all.len());
    let logs = disk.names(&dir).into_iter().filter(|(name, _)| name.ends_with(".log"));
    let logs: Vec<(String, u64)> = logs.collect();
    assert!(logs.len() >= 3, "{logs:?}");
    let (mut told, mut passed) = (0, 0);
    for (name, len) in &logs {
        let written = disk.bytes(&dir.join(name)).expect("it reads").iter().rposition(|&byte| byte != 0);
        let written = written.map_or(0, |last| last as u64 + 1);
        let within = (0..6).map(|at| 5000 + at * written.saturating_sub(5000) / 6);
        for offset in [40].into_iter().chain(within).filter(|offset| offset < len) {
            let world = disk.after_death();
            assert!(world.rot(&dir.join(name), offset, 0x10));
            let options = manual().host(world.host());
            let refused = Store::open_secondary(&dir, options).err().map(|error| error.to_string());
            let (met, error) = match beside_in(&world, None) {
                Ok(mut feed) => polled(&mut feed),
                Err(error) => (Vec::new(), Some(error)),
            };
            let why = format!("{name} at {offset} of {written}: refused {refused:?}, told {error:?}");
            assert!(all.starts_with(&met), "{why}: {} events", met.len());
            assert_eq!(error.is_some(), refused.is_some(), "{why}");
            match error {
                None => passed += 1,
                Some(error) => {
                    assert!(
                        offset < 4096 || error.to_string().contains(&format!("{name} is damaged at")),
                        "{why}"
                    );
                    told += 1;
                }
            }
        }
    }
    assert!(told > 10 && passed > 0, "{told} told, {passed} not");
}

#[test]
fn a_place_from_before_a_crash_is_found_again_in_the_rewritten_log() {
    let disk = SimDisk::new(8);
    let (store, table) = in_world(&disk);
    set(&store, &table, (0, &blob(0, 1)), Durability::Sync);
    (1..30).for_each(|key| set(&store, &table, (key, &blob(key, 1)), Durability::Process));
    let mut before = beside_in(&disk, None).expect("it is there");
    let (met, error) = polled(&mut before);
    assert!(error.is_none() && met.len() >= 30);
    let world = disk.after_death();
    let store = Store::open(SimDisk::store_dir(), manual().host(world.host())).expect("it opens");
    let mut own = store.feed(NAME, FeedOptions::default()).expect("a feed");
    own.skip_to(before.position()).expect("it is there");
    own.acknowledge(own.position()).expect("an edit");
    drop(own);
    let mut feed = beside_in(&world, Some(before.position())).expect("it is there");
    let table: Blobs = store.table("inline", Rules::sorted()).expect("a table");
    assert_eq!(feed.poll().expect("nothing yet"), None);
    set(&store, &table, (100, &blob(100, 1)), Durability::Process);
    world.break_on(Fault { times: 1, ..Fault::on(&[Call::Read]) }); // so that it reads everything again
    let (met, error) = polled(&mut feed);
    assert!(world.has_met_fault());
    assert_eq!((met.len(), error.map(|error| error.to_string())), (1, None));
}

/// Copies a store that is open, as a crash would leave it.
fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("it lists") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy_dir(&path, &to),
            false => std::fs::copy(&path, &to).map(drop).expect("a copy"),
        }
    }
}

#[test]
fn a_restored_store_is_recognized_even_if_the_last_batch_is_the_same() {
    for (changed, is_told) in [(None, false), (Some(5), true), (Some(7), true), (Some(9), true)] {
        let temp = tempfile::tempdir().expect("a directory");
        let (dir, saved) = (temp.path().join("store"), temp.path().join("saved"));
        let store = Store::create(&dir, manual()).expect("a store");
        let table: Blobs = store.table("inline", Rules::sorted()).expect("a table");
        make_feed(&store, None);
        let mut feed = beside(&dir);
        (0..5).for_each(|key| set(&store, &table, (key, b"same"), Durability::Sync));
        copy_dir(&dir, &saved);
        (5..10).for_each(|key| set(&store, &table, (key, b"same"), Durability::Process));
        let (met, error) = polled(&mut feed);
        assert!(met.len() >= 10 && error.is_none(), "{} events, {error:?}", met.len());
        drop((table, store));
        std::fs::remove_dir_all(&dir).expect("it goes");
        std::fs::rename(&saved, &dir).expect("it comes back");
        let store = Store::open(&dir, manual()).expect("it opens");
        let table: Blobs = store.table("inline", Rules::sorted()).expect("a table");
        for key in 5..12 {
            let value: &[u8] = if changed == Some(key) { b"other" } else { b"same" };
            set(&store, &table, (key, value), Durability::Process);
        }
        let (met, error) = polled(&mut feed);
        match error {
            Some(error) => {
                assert!(is_told && met.is_empty(), "{changed:?}: {error}");
                assert_eq!(error.kind(), ErrorKind::FeedLost, "{changed:?}: {error}");
                assert!(error.to_string().contains("has given batches up to"), "{error}");
            }
            None => assert!(!is_told && met.len() == 2, "{changed:?}: {} events and no error", met.len()),
        }
    }
}

// ---- two processes -----------------------------------------------------------------------------

/// The writer: does nothing unless the parent has called it.
#[test]
#[ignore = "run by `a_writer_that_is_killed_again_and_again_is_followed` as a process of its own"]
fn child_that_writes() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let store = Store::open(PathBuf::from(dir), small()).expect("it opens");
    let numbered = Numbered::open(&store).expect("tables");
    let [_, separated, hashed, _] = tables(&store);
    let mut batch = store.batch();
    for i in numbered.last().expect("it is whole") + 1.. {
        numbered.fill(&mut batch, i);
        batch.put(&separated, &(i % 50), &blob(i % 50, i)).put(&hashed, &(i % 50), &blob(i % 50, i));
        batch.commit(Durability::Process).expect("a commit");
        if i.is_multiple_of(300) {
            store.bytes_table("separated").expect("a table").compact().expect("a merge"); // files come and go
        }
    }
}

/// A process that writes until it is killed.
struct Writer(Child);

impl Writer {
    fn start(dir: &Path) -> Writer {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["--exact", "child_that_writes", "--ignored", "--test-threads=1"]).env(DIR, dir);
        Writer(command.stdout(Stdio::null()).spawn().expect("the writer starts"))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_writer_that_is_killed_again_and_again_is_followed() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let store = Store::create(&dir, small()).expect("a store");
    Numbered::open(&store).expect("tables");
    tables(&store);
    make_feed(&store, None);
    store.close().expect("it closes");
    let mut feed = beside(&dir);
    let mut met = Vec::new();
    for _ in 0..4 {
        let _writer = Writer::start(&dir); // killed at the end
        let (begun, wanted) = (Instant::now(), met.len() + 700);
        while met.len() < wanted {
            assert!(begun.elapsed() < Duration::from_secs(120), "{} of {wanted} events", met.len());
            met.extend(feed.next(Duration::from_secs(60)).expect("an event"));
        }
    }
    let store = Store::open(&dir, small()).expect("it opens");
    take_all(&mut feed, &mut met);
    let told = told_in(&store);
    let differs = met.iter().zip(&told).position(|(met, told)| met != told);
    assert_eq!((met.len(), differs), (told.len(), None), "each batch once, in order, and no other");
}
