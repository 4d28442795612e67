//! Stores that earlier versions wrote are opened by this one, whole and with the same content: `fixtures/`, which is never
//! written again.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use folddb::{LoadOptions, RestoreOptions, Store};
use folddb_sim::fixtures::{RESTORED_SEQ, kept, options, write_all};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a fixture is there") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("it is copied");
        }
    }
}

fn dump(store: &Store) -> String {
    let mut text = Vec::new();
    store.dump(&[], &mut text).expect("it is dumped");
    String::from_utf8(text).expect("text")
}

/// All lines are equal; where they are not, the first that differs is shown and not megabytes.
fn assert_same(found: &str, wanted: &str, what: &str) {
    for (number, (found, wanted)) in found.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(found, wanted, "{what}: line {}", number + 1);
    }
    assert_eq!(found.len(), wanted.len(), "{what}");
}

fn assert_verifies(dir: &Path) {
    let report = Store::verify(dir, &options(), true, |_, _| {}).expect("it is verified");
    assert!(report.is_clean(), "{}: {:?}", dir.display(), report.findings);
}

struct Fixtures {
    dir: PathBuf,
    work: tempfile::TempDir,
}

impl Fixtures {
    fn of(dir: PathBuf) -> Fixtures {
        Fixtures { dir, work: tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory") }
    }

    fn expected(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.join(name)).expect("the dump of a fixture is there")
    }

    fn copied(&self, name: &str) -> PathBuf {
        let to = self.work.path().join(name);
        copy(&self.dir.join(name), &to);
        to
    }

    /// A store opens for reading and for writing, has the content, keeps it through merges, and takes more.
    fn check_store(&self, name: &str) {
        let (dir, wanted) = (self.copied(name), self.expected(&format!("{name}.dump")));
        let what = dir.display().to_string();
        assert_verifies(&dir);
        assert_same(&dump(&Store::open(&dir, options().read_only(true)).expect("it opens")), &wanted, &what);
        let store = Store::open(&dir, options()).expect("it opens for writing");
        assert_same(&dump(&store), &wanted, &what);
        for table in store.tables() {
            store.optimize(&table, |_| ControlFlow::Continue(())).expect("it merges");
        }
        assert_same(&dump(&store), &wanted, &what);
        let table =
            store.create_table("one more", folddb::table_rules::TableRules::default()).expect("a table");
        table.write(folddb::WriteOp::Set, b"k", b"v").expect("it is written");
        store.drop_table("one more").expect("it goes");
        store.close().expect("it closes");
        assert_verifies(&dir);
        assert_same(&dump(&Store::open(&dir, options()).expect("it opens again")), &wanted, &what);
    }

    fn check_backups(&self) {
        let place = self.copied("backup");
        let listed = Store::backups(&place, &options()).expect("they are listed");
        assert_eq!(listed.iter().map(|one| one.damage.clone()).collect::<Vec<_>>(), [None, None]);
        for one in &listed {
            assert_verifies(&one.path);
        }
        for (at_seq, name) in
            [(None, "backup.dump".to_owned()), (Some(RESTORED_SEQ), format!("backup-at-{RESTORED_SEQ}.dump"))]
        {
            let to = self.work.path().join(format!("restored {name}"));
            let what = RestoreOptions::default().at_seq(at_seq);
            Store::restore(&place, &to, &what, &options()).expect("it is restored");
            assert_same(&dump(&Store::open(&to, options()).expect("it opens")), &self.expected(&name), &name);
            assert_verifies(&to);
        }
    }

    fn check_dump(&self, name: &str) {
        let store =
            Store::create(self.work.path().join(format!("loaded {name}")), options()).expect("a store");
        let text = self.expected(name);
        store.load(&mut text.as_bytes(), &LoadOptions::default()).expect("a dump is loaded");
        assert_same(&dump(&store), &text, name);
    }

    fn check_all(&self) {
        self.check_store("closed");
        self.check_store("unclosed");
        self.check_backups();
        self.check_dump("closed.dump");
        self.check_dump("unclosed.dump");
    }
}

#[test]
fn what_earlier_versions_wrote_opens_with_the_same_content() {
    let kept = kept().expect("the fixtures are there");
    assert!(!kept.is_empty());
    for dir in kept {
        Fixtures::of(dir).check_all();
    }
}

#[test]
fn what_this_version_would_keep_opens_too() {
    let dir = tempfile::tempdir().expect("a directory");
    write_all(dir.path()).expect("they are written");
    Fixtures::of(dir.path().to_owned()).check_all();
}
