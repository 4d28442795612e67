//! Backups. Made during writes, each is the store at one seq, in whole batches. Restored at any seq
//! that it offers, it equals the model. A failed or interrupted one leaves no backup that looks
//! whole. Damage is found and named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use folddb::maintenance::{BackupOptions, BackupReport, RestoreOptions};
use folddb::{BackgroundWork, Durability, ErrorKind, Options, Rules, Store, Table, ValuePlacement, WriteOp};
use folddb_base::checksum::hash64;
use folddb_base::{FileNumber, Seq};
use folddb_host::Host;
use folddb_layout::backup::{BackupList, LIST_FILE, ListedFile, Origin};
use folddb_layout::file_name::FileName;
use folddb_manifest::ManifestLog;
use folddb_sim::chance::Seeded;
use folddb_sim::faulty_files::{Fault, FaultyFiles};
use folddb_sim::model::{Model, ModelOp, Present};
use folddb_sim::numbered::Numbered;
use folddb_sim::tables::{Kind, Order, Shape, with_customs};

const MIB: u64 = 1 << 20;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn restore(&self, from: &Path, name: &str, what: &RestoreOptions) -> folddb::Result<Store> {
        Store::restore(from, self.path(name), what, &options())?;
        Store::open(self.path(name), options())
    }
}

fn options() -> Options {
    with_customs(Options::default())
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(MIB).part_bytes(64 << 10).merge_factor(2))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

/// Commits the numbered batches of `range`; batch i ends at seq 2i.
fn write(store: &Store, range: std::ops::RangeInclusive<u64>) {
    let numbered = Numbered::open(store).expect("the tables are there");
    for i in range {
        let mut batch = store.batch();
        numbered.fill(&mut batch, i);
        batch.commit(Durability::Process).expect("it is written");
    }
}

/// The last numbered batch of a store that is opened for reading.
fn last_of(dir: &Path) -> u64 {
    let store = Store::open_read_only(dir, options()).expect("it opens");
    let numbered = Numbered::open(&store).expect("the tables are there");
    numbered.last().expect("whole batches, and a prefix")
}

// ---- while others write -------------------------------------------------------------------------

const WRITERS: u64 = 4;

type Pair = (Table<u64, u64>, Table<u64, Vec<u8>>);

fn pair(store: &Store) -> Pair {
    let counts = store.table("counts", Rules::sorted::<u64, u64>().fold("sum:u64")).expect("a table");
    (counts, store.table("bodies", Rules::sorted::<u64, Vec<u8>>()).expect("a table"))
}

/// Writes batches until `stop` is set: each adds one to the writer's count, and notes its number in
/// the other table. Returns the seqs at which they ended.
fn write_until(store: &Store, writer: u64, stop: &AtomicBool) -> Vec<folddb::Seq> {
    let (counts, bodies) = pair(store);
    let mut ends = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let n = ends.len() as u64 + 1;
        let mut body = n.to_le_bytes().to_vec();
        body.resize(8 + (n * 37 % 900) as usize, writer as u8);
        let mut batch = store.batch();
        batch.fold(&counts, &writer, &1u64).put(&bodies, &writer, &body);
        batch.put(&bodies, &(WRITERS + n * WRITERS + writer), &body);
        ends.push(batch.commit(Durability::Process).expect("writing goes on"));
        if n.is_multiple_of(512) {
            std::thread::sleep(std::time::Duration::from_millis(1)); // with two cores, backups need time, too
        }
    }
    ends
}

/// The last batch of each writer that a store holds: by its count, which the other table must agree
/// with.
fn counted(dir: &Path) -> Vec<u64> {
    let store = Store::open_read_only(dir, options()).expect("a backup opens");
    let (counts, bodies) = pair(&store);
    let one = |writer: u64| {
        let count = counts.get(&writer).expect("it reads").unwrap_or(0);
        let body = bodies.get(&writer).expect("it reads");
        let said = body.map_or(0, |body| u64::from_le_bytes(body[..8].try_into().expect("8 bytes")));
        assert_eq!(count, said, "a batch of writer {writer} is there by half");
        count
    };
    let found: Vec<u64> = (0..WRITERS).map(one).collect();
    let rows = bodies.scan().count().expect("it reads");
    let alone = found.iter().filter(|count| **count > 0).count() as u64;
    assert_eq!(rows, found.iter().sum::<u64>() + alone, "no body is missing, none is too many");
    found
}

#[test]
fn a_backup_made_while_four_threads_write_is_a_prefix_of_whole_batches() {
    let place = Place::new();
    let store =
        Store::create(place.path("store"), options().background(BackgroundWork::Threads)).expect("a store");
    pair(&store);
    let stop = AtomicBool::new(false);
    let to = place.path("backups");
    let (reports, ends): (Vec<BackupReport>, Vec<Vec<folddb::Seq>>) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let (store, stop) = (&store, &stop);
                    move || write_until(store, writer, stop)
                })
            })
            .collect();
        let reports = (0..6).map(|round| {
            while store.stats().background.merges < round {
                std::thread::sleep(std::time::Duration::from_millis(1)); // with fewer merges this would show little
            }
            let before = store.last_seq();
            let how = BackupOptions::default().copy(round % 2 == 1).check_all(round == 4);
            let report = store.backup(&to, &how).expect("a backup is made while others write");
            assert!(report.last_seq >= before, "what was there when it began is in it");
            report
        });
        let reports = reports.collect();
        stop.store(true, Ordering::Relaxed);
        (reports, writers.into_iter().map(|writer| writer.join().expect("a writer")).collect())
    });
    for report in &reports {
        let wanted: Vec<u64> =
            ends.iter().map(|ends| ends.partition_point(|&end| end <= report.last_seq) as u64).collect();
        assert_eq!(counted(&report.path), wanted, "backup {}", report.generation);
    }
    let listed = Store::backups(&to, &options()).expect("they are listed");
    assert_eq!(
        listed.iter().map(|one| (one.first_seq, one.last_seq)).collect::<Vec<_>>(),
        reports.iter().map(|one| (one.first_seq, one.last_seq)).collect::<Vec<_>>(),
    );
    // In the middle of the seqs that a backup offers, too.
    for (at, report) in reports.iter().enumerate() {
        let (first, last) = (u64::from(report.first_seq), u64::from(report.last_seq));
        let seq = first + (last - first) / 2;
        let name = format!("middle-{at}");
        let what = RestoreOptions::default().generation(Some(report.generation)).at_seq(Some(seq.into()));
        let restored = Store::restore(&to, place.path(&name), &what, &options()).expect("it is restored");
        let wanted: Vec<u64> =
            ends.iter().map(|ends| ends.partition_point(|&end| end <= restored.last_seq) as u64).collect();
        assert!(u64::from(restored.last_seq) <= seq);
        assert_eq!(counted(&place.path(&name)), wanted, "backup {} at {seq}", report.generation);
    }
}

// ---- any seq ------------------------------------------------------------------------------------

const SHAPES: [(&str, Shape); 4] = [
    ("replace", Shape::small(Kind::Replace, Order::Bytewise)),
    ("sums", Shape::small(Kind::SumU64, Order::Bytewise)),
    ("balance", Shape::small(Kind::Balance, Order::Reversed)),
    ("append", Shape::small(Kind::Append, Order::ByLength)),
];

/// Commits a batch of one to three ops, to the store and to the model. Returns the seq at which it
/// ends.
fn random_batch(store: &Store, model: &mut Model, chance: &mut Seeded) -> Seq {
    let mut batch = store.batch();
    for _ in 0..=chance.below(3) {
        let (name, shape) = *chance.pick(&SHAPES);
        let table = store.bytes_table(name).expect("it is there");
        let key = |chance: &mut Seeded| shape.key(chance.below(20) as u8);
        let at = key(chance);
        let value = shape.value(chance.below(200) as u8, chance.below(60) as u16);
        let op = match chance.below(8) {
            0 => {
                let (from, to) = {
                    let b = key(chance);
                    if shape.compare(&at, &b).is_lt() { (at, b) } else { (b, at) }
                };
                if from == to {
                    continue;
                }
                batch.delete_range(&table, &from, &to);
                ModelOp::DeleteRange(from, to)
            }
            1 => {
                batch.write(&table, WriteOp::Delete, &at, &[]);
                ModelOp::Delete(at)
            }
            2 | 3 => {
                batch.write(&table, WriteOp::Put, &at, &value);
                ModelOp::Set(at, value)
            }
            4 => {
                batch.write(&table, WriteOp::PutIfAbsent, &at, &value);
                ModelOp::Insert(at, value)
            }
            _ => {
                batch.write(&table, WriteOp::Fold, &at, &value);
                ModelOp::Fold(at, value)
            }
        };
        model.apply(name, op);
    }
    batch.commit(Durability::Buffered).expect("it is written");
    assert_eq!(u64::from(store.last_seq()), model.last_seq());
    u64::from(store.last_seq())
}

fn assert_equals_model(store: &Store, model: &Model, seq: Seq, place: &str) {
    for (name, _) in SHAPES {
        let table = store.bytes_table(name).expect("it is there");
        let found: Vec<(Vec<u8>, Present)> = table
            .scan()
            .into_iter()
            .map(|row| row.map(|(key, value)| (key, Present::Value(value))).expect("it reads"))
            .collect();
        assert_eq!(found, model.rows_at(name, seq), "{place}: table {name} at seq {seq}");
    }
}

#[test]
fn a_store_restored_at_any_seq_equals_the_model() {
    let tried: u64 = (0..6).map(restore_at_every_seq).sum();
    assert!(tried > 200, "only {tried} seqs could be restored");
}

/// Returns how many were.
fn restore_at_every_seq(seed: u64) -> u64 {
    let place = Place::new();
    let mut chance = Seeded::new(seed);
    let mut model = Model::new();
    let mut store = Store::create(place.path("store"), options()).expect("a store");
    for (name, shape) in SHAPES {
        store.create_bytes_table(name, shape.rules()).expect("a table");
        model.create_table(name, shape);
    }
    let to = place.path("backups");
    let mut ends = vec![0];
    for _ in 0..3 {
        for _ in 0..25 {
            ends.push(random_batch(&store, &mut model, &mut chance));
            if chance.one_in(12) {
                store.flush().expect("it is flushed");
                while store.background_step().expect("it merges").is_some() {}
            }
        }
        if chance.one_in(3) {
            drop(store);
            store = Store::open(place.path("store"), options()).expect("it opens");
        }
        store.backup(&to, &BackupOptions::default().copy(chance.one_in(2))).expect("a backup");
    }
    let mut tried = 0;
    for generation in Store::backups(&to, &options()).expect("they are listed") {
        let (first, last) = (u64::from(generation.first_seq), u64::from(generation.last_seq));
        for seq in first..=last {
            let said = format!("seed {seed}, backup {}", generation.number);
            let what = RestoreOptions::default().generation(Some(generation.number)).at_seq(Some(seq.into()));
            let name = format!("restored-{tried}");
            let report = Store::restore(&to, place.path(&name), &what, &options()).expect("it is restored");
            let wanted = ends.iter().copied().rfind(|&end| end <= seq).unwrap_or(0);
            assert_eq!(u64::from(report.last_seq), wanted, "{said}: the last batch that ends by {seq}");
            let restored = Store::open(place.path(&name), options()).expect("it opens");
            assert_eq!(u64::from(restored.last_seq()), wanted);
            assert_equals_model(&restored, &model, wanted, &said);
            // It is a store of its own, and can be written to.
            let mut branch = model.until(wanted);
            if tried % 5 == 0 {
                random_batch(&restored, &mut branch, &mut chance);
                drop(restored);
                let restored = Store::open(place.path(&name), options()).expect("it opens again");
                assert_equals_model(&restored, &branch, branch.last_seq(), &said);
            }
            tried += 1;
        }
        for seq in [first.checked_sub(1), Some(last + 1)].into_iter().flatten() {
            let what = RestoreOptions::default().generation(Some(generation.number)).at_seq(Some(seq.into()));
            let refused =
                Store::restore(&to, place.path("none"), &what, &options()).expect_err("out of range");
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
        }
    }
    tried
}

// ---- what is linked, reused, copied -------------------------------------------------------------

#[test]
fn parts_are_linked_reused_or_copied_and_counted() {
    let place = Place::new();
    let store = Store::create(place.path("store"), options()).expect("a store");
    write(&store, 1..=300);
    store.flush().expect("it is flushed");
    let to = place.path("backups");
    let parts = |report: &BackupReport| {
        let names = std::fs::read_dir(&report.path).expect("it lists").flatten().map(|entry| entry.path());
        names.filter(|path| path.extension().is_some_and(|kind| kind == "part")).count() as u64
    };
    let linked = store.backup(&to, &BackupOptions::default()).expect("a backup");
    assert!(linked.linked.files > 2 && linked.linked.bytes > 100_000, "{linked:?}");
    assert_eq!((linked.linked.files, linked.copied.files, linked.reused.files), (parts(&linked), 0, 0));

    // A file that was only linked is not counted as a copy.
    let copy = BackupOptions::default().copy(true);
    let copied = store.backup(&to, &copy).expect("a backup");
    assert_eq!((copied.copied, copied.linked.files, copied.reused.files), (linked.linked, 0, 0));

    write(&store, 301..=320);
    store.flush().expect("it is flushed");
    let more = store.backup(&to, &copy).expect("a backup");
    assert_eq!(more.reused, copied.copied, "what is there is not copied again");
    assert_eq!((more.reused.files + more.copied.files, more.linked.files), (parts(&more), 0));
    assert!(more.copied.files > 0 && more.copied.bytes < more.reused.bytes / 2, "{more:?}");

    // Another file under the number of an existing one is not mistaken for it.
    let list = std::fs::read_to_string(more.path.join("BACKUP")).expect("text");
    assert!(list.lines().any(|line| line.starts_with("file ") && line.ends_with(" copied")), "{list}");
    for report in [&linked, &copied, &more] {
        assert_eq!(last_of(&report.path), u64::from(report.last_seq) / 2);
    }
    store.settle().expect("it merges");
    store.bytes_table("log").expect("a table").compact().expect("it merges");
    store.close().expect("it closes");
    for report in [&linked, &copied, &more] {
        assert_eq!(
            last_of(&report.path),
            u64::from(report.last_seq) / 2,
            "merges of the store leave a backup alone"
        );
    }
}

#[test]
fn old_generations_are_removed_when_asked() {
    let place = Place::new();
    let store = Store::create(place.path("store"), options()).expect("a store");
    let to = place.path("backups");
    for round in 0..4 {
        write(&store, round * 10 + 1..=round * 10 + 10);
        store.backup(&to, &BackupOptions::default()).expect("a backup");
    }
    // One that has a reader remains until the next time.
    let reader = Store::open_read_only(to.join("000002"), options()).expect("it opens");
    let report = store.backup(&to, &BackupOptions::default().keep(Some(2))).expect("a backup");
    assert_eq!((report.generation, report.removed), (5, vec![1, 3]));
    drop(reader);
    let report = store.backup(&to, &BackupOptions::default().keep(Some(1))).expect("a backup");
    assert_eq!((report.generation, report.removed), (6, vec![2, 4, 5]));
    let mut names: Vec<String> = std::fs::read_dir(&to)
        .expect("it lists")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, ["000006", "BACKUPS", "LOCK"]);
    assert_eq!(last_of(&to.join("000006")), 40);
}

#[test]
fn a_store_that_is_opened_for_reading_is_backed_up_as_it_is() {
    let place = Place::new();
    let to = place.path("backups");
    let store = Store::create(place.path("store"), options()).expect("a store");
    write(&store, 1..=50);
    store.flush().expect("it is flushed");
    write(&store, 51..=80);
    drop(store); // as if the process died: the rest is in the log
    let reader = Store::open_read_only(place.path("store"), options()).expect("it opens");
    let crashed = reader.backup(&to, &BackupOptions::default()).expect("a backup");
    assert_eq!((crashed.first_seq, crashed.last_seq), (100.into(), 160.into()));
    // The segment was closed normally: the rest of it would be zeros, which are not copied.
    assert!(crashed.log.files == 1 && crashed.log.bytes < MIB / 4, "{crashed:?}");
    drop(reader);
    Store::open(place.path("store"), options()).expect("it opens").close().expect("it closes");
    let reader = Store::open_read_only(place.path("store"), options()).expect("it opens");
    let closed = reader.backup(&to, &BackupOptions::default()).expect("a backup");
    assert_eq!((closed.first_seq, closed.last_seq, closed.log.files), (160.into(), 160.into(), 0));
    for report in [&crashed, &closed] {
        assert_eq!(last_of(&report.path), 80);
        let store =
            place.restore(&report.path, &format!("r{}", report.generation), &RestoreOptions::default());
        let store = store.expect("a single generation can be named too");
        assert_eq!(Numbered::open(&store).expect("tables").last(), Ok(80));
    }
}

#[test]
fn a_restored_store_has_an_identity_of_its_own() {
    let place = Place::new();
    let to = place.path("backups");
    let store = Store::create(place.path("store"), options()).expect("a store");
    write(&store, 1..=20);
    store.backup(&to, &BackupOptions::default()).expect("a backup");
    let restored = place.restore(&to, "restored", &RestoreOptions::default()).expect("it is restored");
    write(&restored, 21..=30);
    let refused = restored.backup(&to, &BackupOptions::default()).expect_err("these are not its backups");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    assert!(refused.message().contains("another store"), "{refused}");
    drop(restored);
    let restored = Store::open(place.path("restored"), options()).expect("it opens");
    assert_eq!(Numbered::open(&restored).expect("tables").last(), Ok(30));
}

// ---- mistakes and damage ------------------------------------------------------------------------

#[test]
fn mistakes_are_answered_and_change_nothing() {
    let place = Place::new();
    let store = Store::create(place.path("store"), options()).expect("a store");
    write(&store, 1..=20);
    let how = BackupOptions::default();
    let refused = |to: PathBuf| {
        let error = store.backup(to, &how).expect_err("it is refused");
        (error.kind(), error.message().to_owned())
    };
    std::fs::write(place.path("file"), "mine").expect("written");
    std::fs::create_dir(place.path("full")).expect("made");
    std::fs::write(place.path("full/note"), "mine").expect("written");
    Store::create(place.path("other"), options()).expect("a store").close().expect("closed");

    let (kind, message) = refused(place.path("file"));
    assert!(kind == ErrorKind::AlreadyExists && message.contains("is a file"), "{message}");
    let (kind, message) = refused(place.path("full"));
    assert!(kind == ErrorKind::AlreadyExists && message.contains("holds other files"), "{message}");
    let (kind, message) = refused(place.path("other"));
    assert!(kind == ErrorKind::AlreadyExists && message.contains("is a store"), "{message}");
    let (kind, message) = refused(place.path("store/backups"));
    assert!(kind == ErrorKind::InvalidInput && message.contains("is inside the store"), "{message}");
    let (kind, message) = refused(place.path("no/such/place"));
    assert!(kind == ErrorKind::Io && message.contains("create the directory"), "{message}");
    assert!(!place.path("store/backups").exists());

    let to = place.path("backups");
    store.backup(&to, &how).expect("a backup");
    let (kind, message) = refused(to.join("000001"));
    assert!(kind == ErrorKind::InvalidInput && message.contains("inside the place for backups"), "{message}");
    let error = Store::open(to.join("000001"), options()).expect_err("a backup is not written to");
    assert!(error.kind() == ErrorKind::InvalidInput && error.message().contains("restore it"), "{error}");

    let restore = |from: &str, to: &str, what: RestoreOptions| {
        let error = Store::restore(place.path(from), place.path(to), &what, &options()).expect_err("refused");
        assert!(to == "full" || to == "file" || to == "other" || !place.path(to).exists(), "{to} was made");
        (error.kind(), error.message().to_owned())
    };
    let what = RestoreOptions::default;
    assert_eq!(restore("nowhere", "new", what()).0, ErrorKind::StoreNotFound);
    assert_eq!(restore("full", "new", what()).0, ErrorKind::StoreNotFound);
    assert_eq!(restore("other", "new", what()).0, ErrorKind::StoreNotFound);
    assert_eq!(restore("backups", "new", what().generation(Some(9))).0, ErrorKind::InvalidInput);
    for there in ["full", "other", "file"] {
        let (kind, message) = restore("backups", there, what());
        assert!(kind == ErrorKind::AlreadyExists && message.contains(there), "{there}: {message}");
    }
    assert_eq!(restore("backups", "store/new", what()).0, ErrorKind::InvalidInput);
    let (kind, message) = restore("backups", "new", what().at_seq(Some(41.into())));
    assert_eq!(
        (kind, &*message),
        (ErrorKind::InvalidInput, "seq 41 cannot be restored; possible are 0 to 40 (backup 1)")
    );
}

#[test]
fn a_damaged_backup_is_refused_and_the_file_named() {
    let place = Place::new();
    let store = Store::create(place.path("store"), options()).expect("a store");
    write(&store, 1..=60);
    store.flush().expect("it is flushed");
    write(&store, 61..=80);
    let to = place.path("backups");
    let report = store.backup(&to, &BackupOptions::default().copy(true)).expect("a backup");
    let entries =
        std::fs::read_dir(&report.path).expect("it lists").map(|entry| entry.expect("an entry").path());
    let mut flipped = BTreeMap::new();
    for path in entries.filter(|path| path.metadata().is_ok_and(|facts| facts.len() > 0)) {
        let whole = std::fs::read(&path).expect("it reads");
        let name = path.file_name().expect("a name").to_str().expect("text").to_owned();
        let mut refused = 0;
        let mut refuse = |bytes: &[u8], how: &str| {
            std::fs::write(&path, bytes).expect("it is written");
            match Store::restore(&to, place.path("new"), &RestoreOptions::default(), &options()) {
                Err(error) => {
                    assert!(error.message().contains(&name), "{name} {how}: {error}");
                    assert!(!place.path("new").exists(), "nothing is left of a restore that is refused");
                    refused += 1;
                }
                // A segment may begin before the log's start, with frames that are in runs and no
                // longer read.
                Ok(_) => {
                    assert!(name.ends_with(".log"), "{name} {how} is not noticed");
                    assert_eq!(last_of(&place.path("new")), 80, "{name} {how}");
                    std::fs::remove_dir_all(place.path("new")).expect("it goes");
                }
            }
        };
        let step = (whole.len() / 12).max(1);
        for at in (0..whole.len()).step_by(step) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            refuse(&bytes, &format!("flipped at {at}"));
            *flipped
                .entry(name.split_once('.').map_or(name.clone(), |(_, kind)| kind.to_owned()))
                .or_insert(0) += 1;
        }
        refuse(&whole[..whole.len() / 2], "cut");
        assert!(refused > 3, "{name}");
        std::fs::remove_file(&path).expect("it goes");
        if name != "BACKUP" {
            let refused = Store::restore(&to, place.path("new"), &RestoreOptions::default(), &options());
            let refused = refused.expect_err("a file is missing");
            assert!(refused.message().contains(&name) && refused.message().contains("missing"), "{refused}");
        }
        std::fs::write(&path, &whole).expect("it is mended");
    }
    assert!(
        flipped.contains_key("part") && flipped.contains_key("log") && flipped.contains_key("FORMAT"),
        "{flipped:?}"
    );
    place.restore(&to, "new", &RestoreOptions::default()).expect("mended, it is whole");
}

// ---- failures half way --------------------------------------------------------------------------

/// The result of earlier versions when a value was removed before it was copied: a backup whose
/// list and manifest agree that it has less.
fn lacking(made: &Path, lacks: FileName) {
    let host = Host::real();
    let list = std::fs::read(made.join(LIST_FILE)).expect("a list");
    let mut list = BackupList::decode(&list).expect("it is whole");
    std::fs::remove_file(made.join(lacks.to_string())).expect("it was there");
    let mut loaded = folddb_manifest::load(&host, made).expect("a manifest");
    let FileName::ValueFile(directory, _) = lacks else { panic!("{lacks} is no value") };
    let counted = loaded.state.directories.get_mut(&directory).expect("it is listed");
    *counted = counted.map(|objects| objects - 1);
    let (before, number) = (FileName::Manifest(loaded.number), FileNumber(loaded.next_number));
    ManifestLog::resume(&host, made, loaded, Arc::new(move || number)).expect("another manifest");
    list.files.retain(|file| ![lacks, before].contains(&file.name));
    let name = FileName::Manifest(number);
    let bytes = std::fs::read(made.join(name.to_string())).expect("it was written");
    let (len_bytes, tail_hash) = (bytes.len() as u64, hash64(0, &bytes));
    list.files.push(ListedFile { name, len_bytes, tail_hash, origin: Origin::Copied });
    std::fs::write(made.join(LIST_FILE), list.encode()).expect("it is written");
}

#[test]
fn a_backup_that_lacks_a_value_is_refused_though_its_list_does_not_miss_it() {
    let place = Place::new();
    let store = Store::create(place.path("store"), options()).expect("a store");
    let rules = [Rules::hashed(), Rules::sorted().separate(512)];
    let names = ["hashed", "sorted"].into_iter();
    let tables =
        names.zip(rules).map(|(name, rules)| store.table(name, rules.value_placement(ValuePlacement::Files)));
    let tables: Vec<Table<u64, Vec<u8>>> = tables.map(|table| table.expect("a table")).collect();
    for (key, is_flushed) in [(1, true), (2, false)] {
        for table in &tables {
            table.put(&key, &vec![key as u8; 2000]).expect("it is written");
        }
        if is_flushed {
            store.flush().expect("it is flushed");
        }
    }
    // An index leads to it, a part and, twice, the log.
    let mut lacked = 0;
    for at in 0.. {
        let to = place.path(&format!("backups{at}"));
        let made = store.backup(&to, &BackupOptions::default()).expect("a backup").path;
        let list = std::fs::read(made.join(LIST_FILE)).expect("a list");
        let files = BackupList::decode(&list).expect("it is whole").files.into_iter();
        let mut objects = files.map(|file| file.name).filter(|name| matches!(name, FileName::ValueFile(..)));
        let Some(lacks) = objects.nth(at) else { break };
        lacking(&made, lacks);
        let restored = Store::restore(&to, place.path("new"), &RestoreOptions::default(), &options());
        let error = restored.expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.message().contains(&lacks.to_string()), "{lacks}: {error}");
        lacked += 1;
    }
    assert_eq!(lacked, 4);
}

fn faulty_options(files: &FaultyFiles) -> Options {
    options().host(Host { files: Arc::new(files.clone()), ..Host::real() })
}

/// Makes a second backup in a world where calls fail by `fault`; then the faults end, and the
/// result is checked. True when no call failed.
fn backup_with(fault: Fault, how: &BackupOptions) -> bool {
    let place = Place::new();
    let files = FaultyFiles::new(Host::real().files);
    let store = Store::create(place.path("store"), faulty_options(&files)).expect("a store");
    write(&store, 1..=40);
    store.flush().expect("it is flushed");
    write(&store, 41..=50);
    let to = place.path("backups");
    store.backup(&to, &BackupOptions::default().copy(true)).expect("a backup");
    write(&store, 51..=60);
    store.flush().expect("it is flushed");
    write(&store, 61..=70);

    let said = format!("{fault:?}");
    files.break_on(fault);
    let made = store.backup(&to, how);
    files.heal();
    let nothing_failed = files.failed().is_empty();
    assert!(made.is_ok() || !nothing_failed, "{made:?}");
    let listed = Store::backups(&to, &options()).expect("they are listed");
    assert!(listed.iter().all(|one| one.damage.is_none()), "{said}: {listed:?}");
    for (at, generation) in listed.iter().enumerate() {
        let what = RestoreOptions::default().generation(Some(generation.number));
        let restored = place.restore(&to, &format!("r{at}"), &what).expect("what is listed can be restored");
        let found = Numbered::open(&restored).expect("tables").last().expect("whole batches");
        assert_eq!(found, u64::from(generation.last_seq) / 2, "{said}");
        assert!(found == 50 || found == 70, "{said}: {found}");
    }
    if let Ok(report) = &made {
        assert!(listed.iter().any(|one| one.number == report.generation), "{said}");
    }
    // The store itself lost nothing, and the next backup succeeds and cleans up.
    let store = if store.stats().poisoned_by.is_some() {
        drop(store);
        Store::open(place.path("store"), faulty_options(&files)).expect("it opens")
    } else {
        store
    };
    write(&store, 71..=72);
    let next = store.backup(&to, &BackupOptions::default()).expect("the next is made");
    assert_eq!(last_of(&next.path), 72, "{said}");
    let names = std::fs::read_dir(&to).expect("it lists").map(|entry| entry.expect("an entry").file_name());
    let left: Vec<String> =
        names.map(|name| name.into_string().expect("text")).filter(|name| name.contains('-')).collect();
    assert!(left.is_empty(), "{said}: {left:?} are left over");
    nothing_failed
}

fn every_nth_call(step: u64, how: &BackupOptions) {
    for n in (0..).step_by(step as usize) {
        // One call fails; and all from then on, as if the process had died there.
        let alone = backup_with(Fault::nth_call(n), how);
        let dead = backup_with(Fault { times: u64::MAX, ..Fault::nth_call(n) }, how);
        if alone && dead {
            return;
        }
        assert!(n < 10_000, "a backup takes fewer calls");
    }
}

#[test]
fn whichever_call_fails_no_backup_that_is_listed_is_less_than_whole() {
    every_nth_call(7, &BackupOptions::default().copy(true).keep(Some(2)));
    every_nth_call(9, &BackupOptions::default().keep(Some(1)));
}

/// Takes a minute: `cargo test -p folddb-sim --release --test backup -- --ignored`.
#[test]
#[ignore = "takes a minute"]
fn every_single_call_of_a_backup_may_fail() {
    every_nth_call(1, &BackupOptions::default().copy(true).keep(Some(2)));
    every_nth_call(1, &BackupOptions::default().keep(Some(1)));
}

#[test]
fn a_backup_that_finds_no_space_leaves_nothing_behind() {
    let place = Place::new();
    let files = FaultyFiles::new(Host::real().files);
    let store = Store::create(place.path("store"), faulty_options(&files)).expect("a store");
    write(&store, 1..=400);
    store.flush().expect("it is flushed");
    let to = place.path("backups");
    for (free_bytes, what) in [(100_000, "are free"), (0, "")] {
        files.leave_free(Some(free_bytes));
        let refused = store.backup(&to, &BackupOptions::default().copy(true)).expect_err("there is no space");
        assert_eq!(refused.kind(), ErrorKind::NoSpace, "{refused}");
        assert!(refused.message().contains(what), "{refused}");
        files.leave_free(None);
    }
    // The space may also run out during it.
    files.break_on(Fault {
        os_error: 28,
        half: true,
        skip: 4,
        ..Fault::on(&[folddb_sim::faulty_files::Call::Write])
    });
    let refused = store.backup(&to, &BackupOptions::default().copy(true)).expect_err("there is no space");
    assert_eq!(refused.kind(), ErrorKind::NoSpace, "{refused}");
    files.heal();
    assert_eq!(Store::backups(&to, &options()).expect("a place"), []);
    assert!(store.stats().poisoned_by.is_none(), "the store is none the worse");
    write(&store, 401..=402);
    let report = store.backup(&to, &BackupOptions::default().copy(true)).expect("now there is");
    assert_eq!(last_of(&report.path), 402);
}
