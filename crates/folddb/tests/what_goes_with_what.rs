//! «What goes with what», a section of docs/LIMITS.md: tables of every kind and of all combinations
//! of rules are made, each operation is tried on each, and the section states the outcome. It is
//! written by this test (`FOLDDB_WRITE_PAGES=1 cargo test -p folddb --test what_goes_with_what`),
//! which otherwise compares it.
//!
//! The section promises more than its cells: an operation works on a table if it works with each of
//! its rules, and a table can be made if no two of its rules exclude one another. So no combination
//! behaves differently from its parts; and a refusal is reported as the caller's mistake, with the
//! reason and what to do instead.
#![allow(clippy::unwrap_used)]

mod moved;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb::codec::{KeyCodec, ValueCodec};
use folddb::limits::VALUE_BYTES_MAX;
use folddb::maintenance::{LoadOptions, VerifyOptions};
use folddb::table_rules::{TableKind, TableRules};
use folddb::time::moment;
use folddb::{
    AsOf, BackgroundWork, BytesTable, Durability, Error, ErrorKind, Expire, FeedOptions, IndexRule, Keep,
    Lifetime, Locate, Options, Result, Resume, Store, ValuePlacement, WriteOp,
};
use folddb_host::Host;
use folddb_host::clock::Clock;
use moved::Moved;

/// A choice for a table: which question it answers, its name on the page, what it sets.
struct Choice {
    question: &'static str,
    name: &'static str,
    /// Whether it is the default.
    is_default: bool,
    set: fn(TableRules) -> TableRules,
}

fn choices(kind: TableKind) -> Vec<Choice> {
    let choice = |question, name, set| Choice { question, name, is_default: false, set };
    let default = |question, name, set| Choice { question, name, is_default: true, set };
    let place = match kind {
        TableKind::Sorted => default("place", "inline values (no `separate`)", |rules| rules),
        _ => default("place", "values in the value log", |rules| rules),
    };
    let in_files: fn(TableRules) -> TableRules = match kind {
        TableKind::Sorted => |rules| rules.separate(Some(4096)).value_placement(ValuePlacement::Files),
        _ => |rules| rules.value_placement(ValuePlacement::Files),
    };
    vec![
        default("value", "bytes", |rules| rules.value(ValueCodec::Bytes)),
        choice("value", "text, JSON, numbers, tuples", |rules| rules.value(ValueCodec::Utf8)),
        choice("value", "the fold `append`", |rules| rules.fold("append")),
        choice("value", "any other fold", |rules| rules.fold("min:bytes")),
        place,
        choice("place", "`separate`", |rules| rules.separate(Some(4096))),
        choice("place", "`value_placement=files`", in_files),
        default("keep", "`keep=latest`", |rules| rules),
        choice("keep", "`keep=versions:N`", |rules| rules.keep(Keep::Versions(3))),
        choice("keep", "`keep=window:TIME`", |rules| rules.keep(Keep::Window(Duration::from_secs(3600)))),
        choice("keep", "`keep=forever`", |rules| rules.keep(Keep::Forever)),
        default("expire", "values that never expire (no `expire`)", |rules| rules),
        choice("expire", "`expire`", |rules| rules.expire(Expire::ByWrite)),
        default("index", "no index", |rules| rules),
        choice("index", "an index", |rules| rules.index("by_value:value".parse::<IndexRule>().unwrap())),
        default("summaries", "no `summaries`", |rules| rules),
        choice("summaries", "`summaries`", |rules| rules.summaries(true)),
        default("log", "no archived log", |rules| rules),
        choice("log", "`archive_log`", |rules| rules.archive_log(true)),
    ]
}

/// The choices of a table, by index.
type Combination = Vec<usize>;

/// One choice for each question, in all combinations.
fn combinations(choices: &[Choice]) -> Vec<Combination> {
    let mut all: Vec<Combination> = vec![Vec::new()];
    for answers in
        (0..choices.len()).collect::<Vec<_>>().chunk_by(|&a, &b| choices[a].question == choices[b].question)
    {
        let with = |combination: &Combination| {
            answers.iter().map(|&answer| [&combination[..], &[answer]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

/// A table that was made, and written to at two times.
struct Tried<'a> {
    store: &'a Store,
    table: BytesTable,
    rules: TableRules,
    /// When both keys had their first values: a time and a seq in the past.
    then: (u64, folddb::Seq),
    /// More than 16 MiB.
    long: &'a [u8],
}

/// The second is written to once more only, so that its first value is one of the newest versions.
const KEYS: [[u8; 8]; 2] = [1_u64.to_be_bytes(), 2_u64.to_be_bytes()];

impl Tried<'_> {
    fn stream(&self, op: WriteOp, mut value: &[u8]) -> Result<()> {
        let mut writer = self.table.writer(op, &KEYS[0])?;
        writer.write_from(&mut value)?;
        writer.finish().map(drop)
    }
}

/// An operation that is tried on each table, and its name on the page.
struct Operation {
    name: &'static str,
    run: fn(&Tried<'_>) -> Result<()>,
    /// Whether it takes too long to be tried on tables whose differences cannot matter to it.
    is_heavy: bool,
}

fn operations() -> Vec<Operation> {
    let light = |name, run| Operation { name, run, is_heavy: false };
    vec![
        light("`put`, `put_if_absent`, `fold`, `delete`, batches", |tried| {
            for op in [WriteOp::Put, WriteOp::PutIfAbsent, WriteOp::Fold] {
                tried.table.write(op, &KEYS[0], b"more")?;
            }
            let mut batch = tried.store.batch();
            batch.write(&tried.table, WriteOp::Put, &KEYS[1], b"more");
            batch.write(&tried.table, WriteOp::Delete, &KEYS[0], b"");
            batch.write(&tried.table, WriteOp::Put, &KEYS[0], b"again").commit(Durability::Process).map(drop)
        }),
        light("`put` of a stream of up to 16 MiB", |tried| tried.stream(WriteOp::Put, &[b'a'; 20_000])),
        Operation {
            name: "`put` of a longer stream, up to 4 GiB",
            run: |tried| {
                let written = tried.stream(WriteOp::Put, tried.long);
                assert_eq!(written.is_ok(), tried.table.takes_streams(), "{written:?}");
                written?;
                let mut read = Vec::new();
                tried.table.read(&KEYS[0])?.unwrap().read_to_end(&mut read).unwrap();
                assert!(read == tried.long);
                // What comes next need not carry it.
                tried.table.write(WriteOp::Put, &KEYS[0], b"short again").map(drop)
            },
            is_heavy: true,
        },
        light("a streamed operand of a fold", |tried| tried.stream(WriteOp::Fold, &[b'b'; 20_000])),
        light("a value with a lifetime, or with a deadline", |tried| {
            let lifetime = Lifetime::For(Duration::from_secs(3600));
            let table = tried.table.with_lifetime(lifetime);
            table.write(WriteOp::Put, &KEYS[0], b"lasting")?;
            let mut writer = table.writer(WriteOp::Put, &KEYS[0])?;
            writer.write_all(&[b'a'; 20_000]).unwrap();
            writer.finish().map(drop)
        }),
        light("`get`, `get_many`, `contains`, `head`, `read` piece by piece, `locate`", |tried| {
            let (table, key) = (&tried.table, &KEYS[0]);
            let value = table.get(key)?.unwrap();
            assert!(table.get_many([key, key])? == [Some(value.clone()), Some(value.clone())]);
            assert!(table.contains(key)?);
            assert_eq!(table.head(key)?.unwrap().size_bytes, value.len() as u64);
            let mut read = Vec::new();
            table.read(key)?.unwrap().read_to_end(&mut read).unwrap();
            assert!(read == value);
            read.clear();
            table.locate(key, Locate::default().verify(true))?.unwrap().write_to(&mut read).unwrap();
            assert!(read == value);
            Ok(())
        }),
        light("a scan of all keys, a count, resuming at a cursor, a digest", |tried| {
            let mut rows = tried.table.scan().rows()?;
            rows.next_row()?.unwrap();
            let rest = tried.table.resume(&rows.cursor(), Resume::Relaxed)?.into_iter().count();
            assert_eq!((rest, tried.table.scan().count()?), (1, 2));
            tried.table.scan().digest(1, 1).map(drop)
        }),
        light("a scan of a range, of a prefix, in reverse", |tried| {
            for scan in [
                tried.table.scan().from(&KEYS[1]),
                tried.table.scan().prefix(&KEYS[1][..]),
                tried.table.scan().reverse().limit(1),
            ] {
                assert_eq!(scan.rows()?.next_row()?.unwrap().0, KEYS[1]);
            }
            Ok(())
        }),
        light("`delete_range`, `delete_prefix`", |tried| {
            tried.table.delete_prefix(&KEYS[0])?;
            assert!(!tried.table.contains(&KEYS[0])?);
            tried.table.delete_range(&KEYS[0], &KEYS[1])?;
            assert!(!tried.table.contains(&KEYS[0])?);
            tried.table.write(WriteOp::Put, &KEYS[0], b"back").map(drop)
        }),
        light("`aggregate`", |tried| tried.table.scan().aggregate().map(drop)),
        light("transactions and snapshots: `get`, scans, `take`", |tried| {
            let past = tried.store.snapshot();
            let mut transaction = tried.store.transaction();
            assert!(transaction.get(&tried.table, &KEYS[0])?.is_some());
            assert_eq!(transaction.scan(&tried.table).count()?, 2);
            transaction.write(&tried.table, WriteOp::Put, &KEYS[0], b"read");
            transaction.commit(Durability::Process)?;
            assert!(past.get(&tried.table, &KEYS[0])?.is_some());
            assert_eq!(past.scan(&tried.table).into_iter().count(), 2);
            assert!(tried.table.take(&KEYS[0])?.is_some());
            assert!(tried.table.take(&KEYS[0])?.is_none() && past.get(&tried.table, &KEYS[0])?.is_some());
            tried.table.put(&KEYS[0], b"read")?;
            Ok(())
        }),
        light("`history` of a key", |tried| tried.table.history(&KEYS[0], 9).map(drop)),
        light("`get` as of an earlier time", |tried| {
            let value = tried.table.get_at(&KEYS[1], AsOf::Time(moment(tried.then.0)))?;
            assert_eq!(value.as_deref(), Some(&b"first"[..]));
            Ok(())
        }),
        light("`get` as of an earlier seq", |tried| {
            let value = tried.table.get_at(&KEYS[1], AsOf::Seq(tried.then.1))?;
            assert_eq!(value.as_deref(), Some(&b"first"[..]));
            Ok(())
        }),
        light("a scan as of an earlier moment", |tried| {
            let mut rows = tried.table.scan_at(AsOf::Seq(tried.then.1)).from(&KEYS[1]).rows()?;
            assert_eq!(rows.next_row()?.unwrap().1, b"first");
            Ok(())
        }),
        light("`find`", |tried| {
            assert_eq!(tried.table.find("by_value")?.keys().collect::<Result<Vec<_>>>()?.len(), 2);
            Ok(())
        }),
        light("adding an index", |tried| {
            let rule = "added:value".parse::<IndexRule>().unwrap();
            tried.table.add_index(&rule)?;
            tried.table.drop_index("added")
        }),
        light("a bulk load", |tried| {
            let name = format!("{} loaded", tried.table.name());
            let mut load = tried.store.bulk_load_bytes(&name, tried.rules.clone())?;
            load.push(WriteOp::Put, &KEYS[0], b"value")?;
            load.finish()?;
            tried.store.drop_table(&name)
        }),
        light("comparing and updating (`diff`, `sync`)", |tried| {
            let (first, second) = (tried.table.scan(), tried.table.scan());
            first.compare(second, |_| ControlFlow::Continue(())).map(drop)
        }),
        light("change feeds", |tried| {
            let options = FeedOptions::default().table(Some(tried.table.name()));
            let mut feed = tried.store.feed("changes", options)?;
            while feed.poll()?.is_some() {}
            drop(feed);
            tried.store.drop_feed("changes")
        }),
        light("`compact`", |tried| tried.table.compact()),
        light("`alter` of how it is stored", |tried| {
            tried.table.alter(|rules| rules.block_bytes(1024)).map(drop)
        }),
    ]
}

/// The outcome of an operation on tables of all combinations, or of making them; none where it was
/// not tried.
type Outcomes = BTreeMap<Combination, Option<Error>>;

/// The outcomes for tables of a kind.
struct Seen {
    choices: Vec<Choice>,
    made: Outcomes,
    /// By operation.
    done: Vec<Outcomes>,
}

/// The words with which a message begins to say what to do.
const WAYS_OUT: [&str; 20] = [
    "ask", "fold", "use", "give", "create", "write", "leave", "add", "name", "scan", "delete", "count",
    "read", "drop", "put", "make", "keep", "set", "import", "try",
];

/// A refusal is the caller's mistake, says why, and what to do.
fn check_refusal(error: &Error, what: &str) {
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{what}: {error}");
    let says =
        |clause: &str| WAYS_OUT.iter().any(|word| clause.trim_start().starts_with(&format!("{word} ")));
    let has_way_out = !error.advice().is_empty() || error.message().split([';', ':', ',']).skip(1).any(says);
    assert!(has_way_out, "{what}: says no way out: {error}");
    assert!(error.message().len() > 30, "{what}: says no reason: {error}");
}

/// Tables whose values are alike share a store.
fn see(kind: TableKind, dir: &Path, long: &[u8]) -> Seen {
    let (choices, operations) = (choices(kind), operations());
    let mut seen =
        Seen { made: Outcomes::new(), done: operations.iter().map(|_| Outcomes::new()).collect(), choices };
    let all = combinations(&seen.choices);
    for (number, alike) in all.chunk_by(|a, b| a[..2] == b[..2]).enumerate() {
        let clock = Arc::new(Moved::new());
        let options = Options::default().memory_bytes(64 << 20).background(BackgroundWork::Manual);
        let options = options.host(Host { clock: clock.clone(), ..Host::real() });
        let path = dir.join(format!("{}-{number}", kind.name()));
        let store = Store::create(&path, options.clone()).unwrap();
        for (number, combination) in alike.iter().enumerate() {
            let start = TableRules::new(KeyCodec::U64).kind(kind);
            let rules = combination.iter().fold(start, |rules, &one| (seen.choices[one].set)(rules));
            let created = store.create_bytes_table(&format!("t{number}"), rules.clone());
            seen.made.insert(combination.clone(), created.as_ref().err().cloned());
            let Ok(table) = created else { continue };
            let write = |value: &[u8]| KEYS.map(|key| table.write(WriteOp::Put, &key, value).unwrap());
            let [_, seq] = write(b"first");
            let then = (clock.unix_millis() + 5_000, seq);
            clock.pass(10_000);
            write(b"second");
            let tried = Tried { store: &store, table, rules, then, long };
            let is_plain = combination.iter().all(|&one| {
                let choice = &seen.choices[one];
                choice.is_default || matches!(choice.question, "value" | "place" | "keep" | "expire")
            });
            for (operation, outcomes) in operations.iter().zip(&mut seen.done) {
                if operation.is_heavy && !is_plain {
                    continue;
                }
                outcomes.insert(combination.clone(), (operation.run)(&tried).err());
            }
        }
        comes_back(store, &path, &options);
        std::fs::remove_dir_all(&path).unwrap();
    }
    seen
}

/// All of it is whole, and is the same when loaded from its dump.
fn comes_back(store: Store, path: &Path, options: &Options) {
    let mut dump = Vec::new();
    let dumped = store.dump(&[], &mut dump).unwrap();
    store.close().unwrap();
    let report = Store::verify(path, &VerifyOptions::default().deep(true), options).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let loaded = path.with_extension("loaded");
    let store = Store::create(&loaded, options.clone()).unwrap();
    assert_eq!(store.load(&mut &dump[..], &LoadOptions::default()).unwrap().records, dumped.records);
    drop(store);
    std::fs::remove_dir_all(loaded).unwrap();
}

impl Seen {
    fn named(&self, combination: &[usize]) -> String {
        combination.iter().map(|&one| self.choices[one].name).collect::<Vec<_>>().join(", ")
    }

    /// The choices with which an operation never works: it works on a table that has none of them,
    /// and on no other. Choices that are only possible in tables which others rule out are left
    /// out.
    fn blocking(&self, name: &str, outcomes: &Outcomes) -> BTreeSet<usize> {
        let works = |one: usize| outcomes.iter().any(|(of, failed)| failed.is_none() && of.contains(&one));
        let mut blocking: BTreeSet<usize> = (0..self.choices.len())
            .filter(|one| outcomes.keys().any(|of| of.contains(one)) && !works(*one))
            .collect();
        for one in (0..self.choices.len()).rev() {
            let others: BTreeSet<usize> = blocking.iter().copied().filter(|other| *other != one).collect();
            if outcomes
                .keys()
                .filter(|of| of.contains(&one))
                .all(|of| of.iter().any(|any| others.contains(any)))
            {
                blocking = others;
            }
        }
        for (of, failed) in outcomes {
            let said = of.iter().any(|one| blocking.contains(one));
            let named = self.named(of);
            assert_eq!(
                failed.is_some(),
                said,
                "{name}: the page cannot say what becomes of it with {named}: {failed:?}"
            );
        }
        blocking
    }

    fn cell(&self, name: &str, outcomes: &Outcomes) -> String {
        let blocking = self.blocking(name, outcomes);
        for (of, error) in outcomes {
            error.iter().for_each(|error| check_refusal(error, &format!("{name}, {}", self.named(of))));
        }
        if outcomes.values().all(Option::is_some) {
            return "no".to_owned();
        }
        let names: Vec<&str> = blocking.iter().map(|&one| self.choices[one].name).collect();
        if names.is_empty() { "yes".to_owned() } else { format!("not with: {}", names.join("; ")) }
    }

    /// Which rules a table of this kind cannot have, and which it cannot have together.
    fn exclusions(&self) -> (Vec<usize>, Vec<(usize, usize)>) {
        let is_made = |ones: &[usize]| {
            self.made.iter().any(|(of, failed)| failed.is_none() && ones.iter().all(|one| of.contains(one)))
        };
        let never: Vec<usize> = (0..self.choices.len()).filter(|&one| !is_made(&[one])).collect();
        let mut pairs = Vec::new();
        for one in 0..self.choices.len() {
            for other in one + 1..self.choices.len() {
                let are_answers_to_one = self.choices[one].question == self.choices[other].question;
                let is_told = never.contains(&one) || never.contains(&other);
                if !are_answers_to_one && !is_told && !is_made(&[one, other]) {
                    pairs.push((one, other));
                }
            }
        }
        for (of, failed) in &self.made {
            let said = of.iter().any(|one| never.contains(one))
                || pairs.iter().any(|(one, other)| of.contains(one) && of.contains(other));
            assert_eq!(
                failed.is_some(),
                said,
                "the page cannot say that {} is refused: {failed:?}",
                self.named(of)
            );
            failed.iter().for_each(|error| check_refusal(error, &self.named(of)));
        }
        (never, pairs)
    }

    fn exclusions_in_words(&self, kind: &str) -> String {
        let (never, pairs) = self.exclusions();
        let name = |one: usize| self.choices[one].name;
        let never: Vec<&str> = never.into_iter().map(name).collect();
        let mut partners: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        pairs.into_iter().for_each(|(one, other)| partners.entry(other).or_default().push(name(one)));
        let mut lines = String::new();
        if never.is_empty() {
            lines += &format!("- A {kind} table may have any of these rules.\n");
        } else {
            lines += &format!("- A {kind} table cannot have: {}.\n", never.join("; "));
        }
        for (one, others) in partners {
            lines += &format!("- A {kind} table with {} cannot have: {}.\n", name(one), others.join("; "));
        }
        lines
    }
}

const BEGIN: &str = "<!-- begin: written by crates/folddb/tests/what_goes_with_what.rs -->\n";
const END: &str = "<!-- end -->\n";

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/LIMITS.md")
}

#[test]
fn the_page_says_what_goes_with_what() {
    // Thousands of edits of manifests are synced, which need no disk.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let long = vec![b'l'; VALUE_BYTES_MAX + 1];
    let [sorted, hashed] = [TableKind::Sorted, TableKind::Hashed].map(|kind| see(kind, dir.path(), &long));
    let mut said = sorted.exclusions_in_words("sorted") + &hashed.exclusions_in_words("hashed");
    said += "\n| operation | sorted tables | hashed tables |\n|---|---|---|\n";
    for (number, Operation { name, .. }) in operations().iter().enumerate() {
        let [of_sorted, of_hashed] = [&sorted, &hashed].map(|seen| seen.cell(name, &seen.done[number]));
        said += &format!("| {name} | {of_sorted} | {of_hashed} |\n");
    }
    let page = std::fs::read_to_string(page_path()).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the section");
    let (told, after) = rest.split_once(END).expect("the section ends");
    if std::env::var_os("FOLDDB_WRITE_PAGES").is_some() {
        return std::fs::write(page_path(), [before, BEGIN, &said, END, after].concat()).unwrap();
    }
    assert!(
        told == said,
        "docs/LIMITS.md says otherwise than the store does. Bring it up to date with\n\
         FOLDDB_WRITE_PAGES=1 cargo test -p folddb --test what_goes_with_what\n--- the page\n{told}--- the store\n{said}"
    );
}
