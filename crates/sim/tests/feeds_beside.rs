//! A feed that is read beside the process that writes: each batch once and in order while the
//! writer rolls, flushes, merges, reclaims, closes and dies, or an error by name where the feed was
//! lost.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use folddb::{
    Durability, ErrorKind, FeedBeside, FeedEvent, FeedOptions, Options, Rules, Store, Table, Upkeep, ValuesIn,
};
use folddb_sim::numbered::Numbered;

const DIR: &str = "FOLDDB_FEED_WRITER_DIR";
const NAME: &str = "f";

fn small() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .segment_bytes(1 << 20)
        .value_segment_bytes(64 << 10)
        .stream_piece_bytes(4 << 10)
}

fn manual() -> Options {
    small().upkeep(Upkeep::Manual)
}

type Blobs = Table<u64, Vec<u8>>;

fn tables(store: &Store) -> [Blobs; 4] {
    let rules = [
        ("inline", Rules::sorted()),
        ("apart", Rules::sorted().separate(1024)),
        ("hashed", Rules::hashed()),
        ("files", Rules::hashed().values_in(ValuesIn::Files)),
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
    let options = FeedOptions { bytes_max, ..FeedOptions::default() };
    let mut feed = store.feed(NAME, options).expect("a feed");
    while feed.poll().expect("rows").is_some() {}
    feed.acknowledge(feed.position()).expect("an edit");
}

fn beside(dir: &Path) -> FeedBeside {
    Store::feed_beside(dir, NAME, FeedOptions::default(), None, &small()).expect("the feed is there")
}

fn take_all(feed: &mut FeedBeside, met: &mut Vec<FeedEvent>) {
    while let Some(event) = feed.poll().unwrap_or_else(|error| panic!("after {} events: {error}", met.len()))
    {
        met.push(event);
    }
}

/// What the feed gives in the store: what it has not acknowledged.
fn told_in(store: &Store) -> Vec<FeedEvent> {
    let mut feed = store.feed(NAME, FeedOptions::default()).expect("a feed");
    std::iter::from_fn(|| feed.poll().expect("an event")).collect()
}

/// A round of writes to tables of all kinds, by batches, streams, folds of rules and deletes of
/// ranges.
fn write(store: &Store, round: u64) {
    let [inline, apart, hashed, files] = tables(store);
    for key in 0..60 {
        let value = blob(key, round);
        let mut batch = store.batch();
        batch.set(&inline, &key, &value).set(&apart, &key, &value).insert(&hashed, &key, &value);
        match (key + round) % 3 {
            0 => drop(batch.delete(&hashed, &(key + 1))),
            1 => drop(batch.set(&files, &key, &value)),
            _ => {}
        }
        let durability = [Durability::Process, Durability::Sync][usize::from(key == 30)];
        batch.commit(durability).expect("a commit");
    }
    for table in [&apart, &hashed] {
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
        while store.upkeep_step().expect("upkeep").is_some() {}
    }
    if round.is_multiple_of(3) {
        store.flush().expect("a flush");
    }
    if round.is_multiple_of(5) {
        store.optimize("apart", |_| ControlFlow::Continue(())).expect("a merge");
        store.reclaim(|_| {}).expect("a reclaim");
    }
}

#[test]
fn what_is_read_beside_the_writer_is_what_the_feed_gives_in_the_store() {
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

    // What was read beside is acknowledged in the store, and no more than that.
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

/// Opens the store again, in one of two ways, or goes on with it; `meanwhile` nobody has it open.
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
fn whoever_cannot_be_told_all_is_told_why_and_what_to_do() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let store = Store::create(&dir, manual()).expect("a store");
    tables(&store);
    let open = |told: FeedOptions| Store::feed_beside(&dir, NAME, told, None, &small()).map(drop);
    let said = |opened: folddb::Result<()>, kind: ErrorKind, words: [&str; 2]| {
        let error = opened.expect_err("it is refused");
        assert_eq!(error.kind(), kind, "{error}");
        words.iter().for_each(|word| assert!(error.to_string().contains(word), "{error}: no {word}"));
    };
    said(open(FeedOptions::default()), ErrorKind::InvalidInput, ["has no feed", "folddb watch"]);
    let mut feed = store.feed(NAME, FeedOptions { bytes_max: Some(1 << 20), ..FeedOptions::default() });
    said(open(FeedOptions::default()), ErrorKind::InvalidInput, ["begins with rows", "acknowledge"]);
    let feed = feed.as_mut().expect("a feed");
    while feed.poll().expect("rows").is_some() {}
    feed.acknowledge(feed.position()).expect("an edit");
    let other = FeedOptions { table: Some("apart".to_owned()), ..FeedOptions::default() };
    said(open(other), ErrorKind::InvalidInput, ["all tables", "another name"]);

    // Somebody else acknowledges what this reader has not met.
    let mut behind = beside(&dir);
    write(&store, 0);
    while feed.poll().expect("batches").is_some() {}
    feed.acknowledge(feed.position()).expect("an edit");
    for _ in 0..2 {
        said(behind.poll().map(drop), ErrorKind::Locked, ["somebody else", "two names"]);
    }

    // More is written than the feed may hold: the log goes, and each call says so.
    let mut lost = beside(&dir);
    for round in 1..40 {
        write(&store, 4 * round);
        store.flush().expect("a flush");
        while store.upkeep_step().expect("upkeep").is_some() {}
    }
    for _ in 0..2 {
        said(lost.poll().map(drop), ErrorKind::FeedLost, ["budget", "--hold-max"]);
    }
    said(open(FeedOptions::default()), ErrorKind::FeedLost, ["budget", "--again"]);
    store.drop_feed(NAME).expect_err("it is being read");
}

// ---- two processes -----------------------------------------------------------------------------

/// The writer: does nothing unless the parent has called it.
#[test]
#[ignore = "run by `a_writer_that_is_killed_again_and_again_is_followed` as a process of its own"]
fn child_that_writes() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let store = Store::open(PathBuf::from(dir), small()).expect("it opens");
    let numbered = Numbered::open(&store).expect("tables");
    let [_, apart, hashed, _] = tables(&store);
    let mut batch = store.batch();
    for i in numbered.last().expect("it is whole") + 1.. {
        numbered.fill(&mut batch, i);
        batch.set(&apart, &(i % 50), &blob(i % 50, i)).set(&hashed, &(i % 50), &blob(i % 50, i));
        batch.commit(Durability::Process).expect("a commit");
        if i.is_multiple_of(300) {
            store.optimize("apart", |_| ControlFlow::Continue(())).expect("a merge"); // files come and go
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
