//! The state of a store after single calls of the command line: it is closed, small, and its runs
//! are merged, however a call ends.

mod support;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use support::Place;

/// Bytes that the files of a store take on the disk.
fn disk_bytes(store: &Path) -> u64 {
    let files = std::fs::read_dir(store).expect("a store").map(|file| file.expect("a file"));
    files.map(|file| file.metadata().expect("it is there").blocks() * 512).sum()
}

fn check_closed(place: &Place, after: &str) {
    check_store_closed(place, "s", after);
}

fn check_store_closed(place: &Place, store: &str, after: &str) {
    let bytes = disk_bytes(&place.path().join(store));
    assert!(bytes < 1 << 20, "{store}: {bytes} bytes after {after}");
    let doctor = place.run(&["doctor", store]);
    assert!(!doctor.out.contains("not closed"), "{store}, after {after}: {}", doctor.out);
}

#[test]
fn each_verb_closes_the_store_that_it_opened_also_when_it_fails() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    check_closed(&place, "create");
    let verbs: [&[&str]; 7] = [
        &["fold", "s", "t", "k", "1"],
        &["fold", "s", "t", "k", "1", "--get"],
        &["put", "s", "t", "k", "5"],
        &["put", "--if-absent", "s", "t", "other", "5"],
        &["delete", "s", "t", "other"],
        &["delete", "s", "t", "--range", "a", "b"],
        &["create", "s", "second"],
    ];
    for verb in verbs {
        place.done(verb);
        check_closed(&place, verb[0]);
    }
    let failing: [&[&str]; 3] =
        [&["fold", "s", "nothing", "k", "1"], &["put", "s", "t", "k", "no number"], &["create", "s", "t"]];
    for verb in failing {
        assert_ne!(place.run(verb).code, 0, "{verb:?}");
        check_closed(&place, &verb.join(" "));
    }
    assert_eq!(place.done(&["get", "s", "t", "k"]), "5\n");
}

/// All commands that write to a store, or create one, besides the single writes above.
#[test]
fn whatever_writes_to_a_store_closes_it() {
    let place = Place::new();
    place.write("rows.csv", "k,n\na,1\nb,2\n");
    std::fs::create_dir(place.path().join("tree")).expect("a directory");
    place.write("tree/one", "1");
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    place.done(&["create", "s", "words"]);
    let verbs: [(&[&str], &str); 22] = [
        (&["import", "s", "t", "rows.csv", "--key", "k", "--fold", "sum:u64 = n"], "s"),
        (&["import", "made", "t", "rows.csv", "--create", "--key", "k", "--fold", "sum:u64 = n"], "made"),
        (
            &[
                "import",
                "made",
                "u",
                "rows.csv",
                "--create",
                "--sorted",
                "--key",
                "k",
                "--fold",
                "sum:u64 = n",
            ],
            "made",
        ),
        (&["import-dir", "s", "files", "tree", "--create"], "s"),
        (&["index", "add", "s", "words", "whole:value"], "s"),
        (&["put", "s", "words", "w", "1"], "s"),
        (&["index", "drop", "s", "words", "whole"], "s"),
        (&["watch", "s", "feed"], "s"),
        (&["feed", "drop", "s", "feed"], "s"),
        (&["compact", "s"], "s"),
        (&["reclaim", "s"], "s"),
        (&["dump", "s", "--to", "s.dump"], "s"),
        (&["load", "copy", "s.dump", "--create"], "copy"),
        (&["put", "s", "words", "late", "1"], "s"),
        (&["sync", "s", "copy"], "copy"),
        (&["backup", "s", "backups"], "s"),
        (&["restore", "backups", "restored"], "restored"),
        (&["repair", "s", "repaired"], "repaired"),
        (&["verify", "s", "--deep"], "s"),
        (&["freeze", "s"], "s"),
        (&["thaw", "s"], "s"),
        (&["drop", "s", "words"], "s"),
    ];
    for (words, store) in verbs {
        let ran = place.run(words);
        assert_eq!(ran.code, 0, "{words:?}: {}{}", ran.out, ran.err);
        check_store_closed(&place, store, &words.join(" "));
    }
}

#[test]
fn single_writes_leave_few_runs_and_few_files() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    for _ in 0..40 {
        place.done(&["fold", "s", "t", "k", "1"]);
    }
    assert_eq!(place.done(&["get", "s", "t", "k"]), "40\n");
    let files = std::fs::read_dir(place.path().join("s")).expect("a store").count();
    assert!(files <= 24, "{files} files");
    check_closed(&place, "40 folds");
    let doctor = place.run(&["doctor", "s"]);
    assert!(!doctor.out.contains("runs"), "{}", doctor.out);
}
