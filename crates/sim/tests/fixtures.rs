//! Stores that earlier versions wrote are opened by this one, whole and with the same content:
//! `fixtures/`, which is never written again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use folddb::maintenance::{LoadOptions, RestoreOptions, VerifyOptions};
use folddb::{Durability, Store};
use folddb_host::Host;
use folddb_sim::fixtures::told::{check_tokens, take_more, told};
use folddb_sim::fixtures::{NAMES, copy, cut, kept, options, write};
use folddb_sim::numbered::Numbered;

fn dump(store: &Store) -> String {
    let mut text = Vec::new();
    store.dump(&[], &mut text).expect("it is dumped");
    String::from_utf8(text).expect("text")
}

/// A line of a dump without the part that is for people only, which may be improved one day: the
/// bytes of the value come before it. And without the hash of the lines, which are compared one by
/// one.
fn bytes_of(line: &str) -> &str {
    line.split_once(r#","shown":"#)
        .or_else(|| line.split_once(r#","hash":"#).filter(|_| line.starts_with(r#"{"end":"#)))
        .map_or(line, |(said, _)| said)
}

/// A dump with the rows of hashed tables in order: their order differs from store to store.
fn ordered(dump: &str) -> String {
    let mut tables: Vec<Vec<&str>> = vec![Vec::new()];
    for line in dump.lines() {
        if line.starts_with(r#"{"table":"#) || line.starts_with(r#"{"end":"#) {
            tables.push(Vec::new());
        }
        tables.last_mut().expect("there is one").push(bytes_of(line));
    }
    let is_hashed = |lines: &[&str]| lines.first().is_some_and(|line| line.contains(r#""kind=hashed""#));
    if tables.iter().any(|lines| is_hashed(lines)) {
        tables.pop(); // the end
    }
    tables.iter_mut().filter(|lines| is_hashed(lines)).for_each(|lines| lines[1..].sort_unstable());
    tables.concat().join("\n")
}

/// A dump without what the other one lacks: one of version 1 has no deadlines.
fn as_told_by(other: &str, dump: &str) -> String {
    let (before, now) = (r#"{"folddb":"dump","version":1}"#, r#"{"folddb":"dump","version":2}"#);
    if !other.starts_with(before) || !dump.starts_with(now) {
        return ordered(dump);
    }
    let without = |line: &str| match line.split_once(r#","until":"#) {
        Some((said, rest)) => said.to_owned() + rest.trim_start_matches(|digit: char| digit.is_ascii_digit()),
        None => line.replace(now, before),
    };
    let lines: Vec<String> =
        dump.lines().filter(|line| !line.starts_with(r#"{"end":"#)).map(without).collect();
    ordered(&(lines.join("\n") + "\n" + other.lines().last().unwrap_or_default()))
}

/// All lines are equal; where they are not, the first that differs is shown, and not megabytes.
fn assert_same(found: &str, wanted: &str, what: &str) {
    for (number, (found, wanted)) in found.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(found, wanted, "{what}: line {}", number + 1);
    }
    assert_eq!(found.len(), wanted.len(), "{what}");
}

fn assert_verifies(dir: &Path) {
    let report =
        Store::verify(dir, &VerifyOptions::default().deep(true), &options()).expect("it is verified");
    assert!(report.is_clean(), "{}: {:?}", dir.display(), report.findings);
}

struct Fixtures {
    dir: PathBuf,
    work: tempfile::TempDir,
    is_of_this_version: bool,
    /// Dumps of earlier versions, as this version writes them, by name.
    as_now: RefCell<BTreeMap<String, String>>,
}

impl Fixtures {
    fn of(dir: PathBuf, is_of_this_version: bool) -> Fixtures {
        Fixtures {
            dir,
            is_of_this_version,
            work: tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory"),
            as_now: RefCell::default(),
        }
    }

    fn expected(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.join(name)).expect("the dump of a fixture is there")
    }

    /// The content of a dump of an earlier version, as this version writes it: it is loaded and
    /// dumped. Versions differ in how they write bytes, and in which values they can show.
    fn wanted(&self, name: &str) -> (String, String) {
        let text = self.expected(name);
        let mut known = self.as_now.borrow_mut();
        let now = known.entry(name.to_owned()).or_insert_with(|| {
            let path = self.work.path().join(format!("loaded {name}"));
            let store = Store::create(path, options()).expect("a store");
            store.load(&mut text.as_bytes(), &LoadOptions::default()).expect("a dump is loaded");
            as_told_by(&text, &dump(&store))
        });
        (now.clone(), text)
    }

    fn has(&self, name: &str) -> bool {
        self.dir.join(name).exists()
    }

    fn copied(&self, name: &str) -> PathBuf {
        copy(&self.dir, name, self.work.path()).expect("a fixture is copied");
        self.work.path().join(name)
    }

    /// The dump is the one that is kept, and so are all other answers of the store.
    fn check_content(&self, store: &Store, name: &str) {
        let (wanted, text) = self.wanted(&format!("{name}.dump"));
        assert_same(&as_told_by(&text, &dump(store)), &wanted, name);
        if self.has(&format!("{name}.tokens")) {
            let checked = check_tokens(store, &self.expected(&format!("{name}.tokens")));
            assert!(checked.expect("tokens are understood") > 0);
        }
    }

    /// The same for the answers that only a store open for writing gives: about its feeds.
    fn check_told(&self, store: &Store, name: &str) {
        if self.has(&format!("{name}.told")) {
            assert_same(&told(store).expect("it tells"), &self.expected(&format!("{name}.told")), name);
        }
    }

    /// A store opens for reading and for writing, has the content, keeps it through merges, and
    /// accepts more writes.
    fn check_store(&self, name: &str) {
        let dir = self.copied(name);
        assert_verifies(&dir);
        self.check_content(&Store::open_read_only(&dir, options()).expect("it opens"), name);
        if Store::is_frozen(&dir, &options()) {
            assert!(Store::open(&dir, options()).is_err(), "a sealed store is only read");
            Store::thaw(&dir, options()).expect("the store is thawed");
        }
        let store = Store::open(&dir, options()).expect("it opens for writing");
        self.check_content(&store, name);
        self.check_told(&store, name);
        for table in store.tables() {
            store.bytes_table(&table).expect("a table").compact().expect("it merges");
        }
        store.reclaim().expect("values move");
        self.check_content(&store, name);
        self.check_told(&store, name);
        store.close().expect("it closes");
        assert_verifies(&dir);
        let store = Store::open(&dir, options()).expect("it opens again");
        self.check_content(&store, name);
        self.check_told(&store, name);
        Self::check_takes_more(store, &dir);
    }

    fn check_takes_more(store: Store, dir: &Path) {
        let table = store
            .create_bytes_table("one more", folddb::table_rules::TableRules::default())
            .expect("a table");
        table.write(folddb::WriteOp::Put, b"k", b"v").expect("it is written");
        drop(table);
        assert!(take_more(&store).expect("what is written is there") > 1);
        let now = dump(&store);
        drop(store); // as if the process died
        let store = Store::open(dir, options()).expect("it opens after a crash");
        assert_same(&ordered(&dump(&store)), &ordered(&now), "after a crash");
        store.close().expect("it closes");
        assert_verifies(dir);
    }

    /// All backups are whole; the newest is restored, and so are the states that are kept by their
    /// seqs.
    fn check_backups(&self, name: &str) {
        let place = self.copied(name);
        let listed = Store::backups(&place, &options()).expect("they are listed");
        assert_eq!(listed.iter().map(|one| one.damage.clone()).collect::<Vec<_>>(), [None, None]);
        for one in &listed {
            assert_verifies(&one.path);
        }
        let restored = |dump_name: &str, at_seq| {
            let to = self.work.path().join(format!("restored {dump_name}"));
            let what = RestoreOptions::default().at_seq(at_seq);
            Store::restore(&place, &to, &what, &options()).expect("it is restored");
            let store = Store::open(&to, options()).expect("it opens");
            let (wanted, text) = self.wanted(dump_name);
            assert_same(&as_told_by(&text, &dump(&store)), &wanted, dump_name);
            drop(store);
            assert_verifies(&to);
        };
        restored(&format!("{name}.dump"), None);
        let earlier: Vec<_> = self.dumps().filter(|dump| dump.starts_with(&format!("{name}-at-"))).collect();
        assert!(!earlier.is_empty(), "an earlier state is kept");
        for dump in earlier {
            let seq = dump.trim_start_matches(&format!("{name}-at-")).trim_end_matches(".dump");
            restored(&dump, Some(seq.parse::<u64>().expect("a seq").into()));
        }
    }

    fn dumps(&self) -> impl Iterator<Item = String> {
        let entries = std::fs::read_dir(&self.dir).expect("fixtures are there");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
        names.map(|name| name.expect("a plain name")).filter(|name| name.ends_with(".dump"))
    }

    /// A loaded dump has as many rows as it says, in as many lines; dumped again, a dump of this
    /// version is the same.
    fn check_dump(&self, name: &str) {
        let (wanted, text) = self.wanted(name);
        assert_eq!(wanted.lines().count(), ordered(&text).lines().count(), "{name}");
        if self.is_of_this_version {
            assert_same(&wanted, &ordered(&text), name);
        }
    }

    fn check_all(&self) -> usize {
        let there: Vec<_> = NAMES.iter().filter(|name| self.has(name)).collect();
        for name in &there {
            if self.has(&format!("{name}/BACKUPS")) {
                self.check_backups(name);
            } else {
                self.check_store(name);
            }
            self.check_dump(&format!("{name}.dump"));
        }
        there.len()
    }
}

#[test]
fn what_earlier_versions_wrote_opens_with_the_same_content() {
    let kept = kept().expect("the fixtures are there");
    let checked: Vec<usize> = kept.into_iter().map(|dir| Fixtures::of(dir, false).check_all()).collect();
    assert_eq!(checked, [3, 4, 1, 1, 1, 1, 1, 1, 2, 1], "how many there are of each version");
}

#[test]
fn what_this_version_would_keep_opens_too() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in NAMES {
        write(dir.path(), name).expect("it is written");
    }
    cut(dir.path()).expect("zeros are cut");
    assert_eq!(Fixtures::of(dir.path().to_owned(), true).check_all(), NAMES.len());
}

#[test]
fn altered_rules_and_what_is_outdated_are_read_from_every_version_on() {
    let work = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let kept =
        kept().expect("the fixtures are there").into_iter().filter(|kept| kept.join("altered").exists());
    let mut checked = 0;
    for kept in kept {
        let to = work.path().join(kept.file_name().expect("a version"));
        copy(&kept, "altered", &to).expect("a fixture is copied");
        let store = Store::open(to.join("altered"), options()).expect("it opens");
        let facts = |name: &str| {
            let table = store.bytes_table(name).expect("a table");
            let outdated = table.stats().expect("its figures").outdated_parts;
            (table.rules().as_table_rules().to_string(), outdated)
        };
        let (rules, outdated) = facts("log");
        assert!(rules.contains("block_bytes=1024\n") && rules.contains("filter_bits=14\n"), "{rules}");
        assert!(rules.contains("separate=64\n") && outdated == 1, "{outdated}: {rules}");
        let (rules, outdated) = facts("sums");
        assert!(rules.contains("compression=lz4\n") && rules.contains("summaries=on\n"), "{rules}");
        assert_eq!(outdated, 1);
        let (rules, outdated) = facts("past");
        assert!(rules.contains("keep=window:1h\n") && outdated == 0, "{outdated}: {rules}");
        checked += 1;
    }
    assert!(checked > 0, "a version keeps one");
}

/// What the manifest says about the log: a copy ends at the place up to which it was made, and no
/// file of it needs its original length.
fn log_is_a_copy(dir: &Path) -> Option<bool> {
    folddb_manifest::load(&Host::real(), dir).expect("a manifest").state.log_copied
}

/// The newest segment of the log that has more than its header.
fn newest_segment(dir: &Path) -> PathBuf {
    let entries = std::fs::read_dir(dir).expect("a store").map(|entry| entry.expect("an entry").path());
    let written =
        |path: &PathBuf| std::fs::read(path).expect("it is read")[4096..].iter().any(|byte| *byte != 0);
    let logs = entries.filter(|path| path.extension().is_some_and(|end| end == "log") && written(path));
    logs.max().expect("a segment")
}

#[test]
fn the_log_of_a_restored_store_is_a_copy_until_it_is_opened_for_writing() {
    let work = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    write(work.path(), "restored").expect("it is written");
    let own = work.path().join("restored");
    let mut dirs = vec![own];
    for kept in
        kept().expect("the fixtures are there").into_iter().filter(|kept| kept.join("restored").exists())
    {
        let to = work.path().join(kept.file_name().expect("a version"));
        copy(&kept, "restored", &to).expect("a fixture is copied");
        dirs.push(to.join("restored"));
    }
    assert!(dirs.len() > 1, "a version keeps one");
    for dir in dirs {
        assert_eq!(log_is_a_copy(&dir), Some(true), "{}", dir.display());
        drop(Store::open_read_only(&dir, options()).expect("it opens for reading"));
        assert_eq!(log_is_a_copy(&dir), Some(true), "{}, opened for reading", dir.display());
        let store = Store::open(&dir, options()).expect("it opens for writing");
        assert_eq!(log_is_a_copy(&dir), Some(false), "{}, opened for writing", dir.display());
        // Writes from now on are its own: where a segment of those is cut short, that is detected.
        let numbered = Numbered::open(&store).expect("its tables");
        for i in 61..=80 {
            let mut batch = store.batch();
            numbered.fill(&mut batch, i);
            batch.commit(Durability::Sync).expect("it is written");
        }
        drop((numbered, store)); // as if the process died
        let segment = newest_segment(&dir);
        let end = std::fs::read(&segment).expect("it is read").iter().rposition(|byte| *byte != 0);
        let file = std::fs::File::options().write(true).open(&segment).expect("a segment");
        file.set_len(end.expect("it is not empty") as u64 - 100).expect("it is cut");
        let Err(refused) = Store::open(&dir, options()) else { panic!("{}: it is refused", dir.display()) };
        let name = segment.file_name().and_then(|name| name.to_str()).expect("a plain name");
        assert!(refused.to_string().contains(name), "{refused}");
    }
}
