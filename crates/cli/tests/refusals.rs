//! What is refused: a store that another process has open, a damaged one, a file that ends early.
//! A message that says what and where, an exit code of its own, and nothing lost.

mod support;

use support::{Place, Shell};

#[test]
fn a_store_that_is_open_elsewhere_is_refused() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    let mut shell = Shell::of(&place, "s");
    assert_eq!(shell.ask("fold t k 1 --get"), "1\n");

    let refused = place.run(&["fold", "s", "t", "k", "1"]);
    assert_eq!(refused.code, 8, "{}", refused.err);
    assert!(refused.err.contains("--wait-lock 5s waits until it ends"), "{}", refused.err);

    shell.end();
    place.done(&["fold", "s", "t", "k", "1"]);
    assert_eq!(place.done(&["get", "s", "t", "k"]), "2\n");
}

#[test]
fn a_damaged_store_is_refused_with_file_and_offset() {
    let place = Place::new();
    place.write("rows.csv", (0..5000).map(|n| format!("key{n},{n}\n")).collect::<String>());
    place.done(&[
        "import",
        "s",
        "t",
        "rows.csv",
        "--create",
        "--no-header",
        "--key",
        "c1",
        "--fold",
        "sum:u64 = c2",
    ]);
    let report = place.json(&["runs", "s", "t"]);
    let part = report[0]["runs"][0]["parts"][0].clone();
    let (number, bytes) =
        (part["file"].as_u64().expect("a number"), part["bytes"].as_u64().expect("a number"));
    let entries = std::fs::read_dir(place.path().join("s")).expect("the store is a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let file = paths
        .filter(|path| path.metadata().is_ok_and(|facts| facts.len() == bytes))
        .find(|path| path.to_string_lossy().contains(&number.to_string()))
        .expect("the part is a file of the store");
    let mut content = std::fs::read(&file).expect("the part is read");
    for byte in &mut content[1000..1100] {
        *byte ^= 0x55;
    }
    std::fs::write(&file, content).expect("the part is written");

    let refused = place.run(&["scan", "s", "t", "--format", "csv"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(refused.err.contains(&name) && refused.err.contains("offset"), "{}", refused.err);

    let refused = place.run(&["dump", "s", "--to", "s.dump"]);
    assert!(refused.code == 4 && refused.err.contains(&name), "{}", refused.err);
    assert!(!place.path().join("s.dump").exists(), "half a dump is in the way of the next try");
}

#[test]
fn a_pipe_that_ends_early_keeps_what_was_read() {
    let place = Place::new();
    let packed = std::fs::read(support::flights_sample()).expect("the sample is there");
    place.write("torn.csv.gz", &packed[..packed.len() / 2]);
    let torn = std::fs::File::open(place.path().join("torn.csv.gz")).expect("the file is there");
    let words = ["import", "s", "t", "-", "--create", "--key", "carrier", "--fold", "sum:u64 = 1"];
    let (pipe, mut writer) = std::io::pipe().expect("a pipe");
    let copied = std::thread::spawn(move || std::io::copy(&mut { torn }, &mut writer));
    let mut command = place.command(&words);
    command.stdin(pipe);
    let ran = support::Ran::from(command.output().expect("the program starts"));
    copied.join().expect("it is written").expect("it is written");
    assert_eq!(ran.code, 3);
    assert!(
        ran.err.contains("then stopped") && ran.err.contains("cannot read stdin after line "),
        "{}",
        ran.err
    );
    let rows = place.done(&["scan", "s", "t", "--format", "csv"]);
    let folded: u64 =
        rows.lines().skip(1).map(|row| row.split(',').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    let imported: String =
        ran.err.chars().skip_while(|c| !c.is_ascii_digit()).take_while(|c| *c != ' ').collect();
    assert_eq!(folded.to_string(), imported.replace(',', ""));
    assert!(folded > 1000);
}

#[test]
fn a_directory_that_is_no_store_is_left_alone() {
    let place = Place::new();
    place.write("note.txt", "mine");
    let here = place.path().to_str().expect("a path of text");
    assert_eq!(place.run(&["tables", here]).code, 6);
    assert_eq!(place.run(&["create", here]).code, 3);
    assert_eq!(place.read("note.txt"), "mine");
}

/// Keys may have the names of files of a store.
#[test]
fn values_are_not_exported_into_a_store() {
    let place = Place::new();
    place.write("x", "x");
    std::fs::create_dir(place.path().join("dir")).expect("a directory");
    place.done(&["create", "dir/s", "t", "--like", "blob"]);
    for key in ["FORMAT", "sub/x", "s/LOCK"] {
        place.done(&["put", "dir/s", "t", key, "x"]);
    }
    place.done(&["backup", "dir/s", "backups"]);
    std::os::unix::fs::symlink("dir/s", place.path().join("link")).expect("a link");
    let before = files_in(&place.path().join("dir/s"));
    for to in ["dir/s", "dir/s/new/deep", "dir/new/../s", "link", "backups", "backups/000001", "dir"] {
        let refused = place.run(&["export-dir", "dir/s", "t", to, "--overwrite"]);
        assert_eq!(refused.code, 3, "{to}: {}", refused.err);
        assert!(refused.err.contains("is a store, or holds backups"), "{to}: {}", refused.err);
    }
    assert_eq!(files_in(&place.path().join("dir/s")), before);
    assert_eq!(files_in(&place.path().join("backups")), ["000001", "BACKUPS", "LOCK"]);
    place.done(&["verify", "dir/s", "--deep"]);
    // A file that has the name by chance makes no store of its directory.
    place.done(&["export-dir", "dir/s", "t", "out"]);
    assert_eq!(place.json(&["export-dir", "dir/s", "t", "out"])["there"], 3);
}

fn files_in(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Damaged values cannot be moved. The others are, and the outcome says how many were not.
#[test]
fn reclaim_reports_damage_and_what_needs_a_merge_first() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--like", "blob"]);
    std::fs::create_dir(place.path().join("blobs")).expect("a directory");
    (0..4_u8).for_each(|key| place.write(&format!("blobs/{key}"), vec![b'0' + key; 5000]));
    place.done(&["import-dir", "s", "t", "blobs"]);
    // Replaced and not deleted: a run of deletes is merged as soon as background work reaches it.
    place.fed(&["shell", "s"], "begin\nput t 0 a\nput t 1 b\nput t 2 c\ncommit\n");
    let told = place.done(&["reclaim", "s"]);
    assert!(told.contains("freed 0 B") && told.contains("folddb compact s"), "{told}");
    assert!(place.json(&["reclaim", "s"])["hidden_bytes"].as_u64() > Some(10_000));

    place.done(&["compact", "s"]);
    let store = place.path().join("s");
    let values =
        files_in(&store).into_iter().filter(|name| name.ends_with(".values")).map(|name| store.join(name));
    let damaged = values.filter(|file| {
        let mut bytes = std::fs::read(file).expect("it reads");
        let at = bytes.windows(5000).position(|window| window.iter().all(|byte| *byte == b'3'));
        at.is_some_and(|at| {
            bytes[at + 2000] ^= 1;
            std::fs::write(file, bytes).is_ok()
        })
    });
    assert_eq!(damaged.count(), 1);
    let ran = place.run(&["reclaim", "s"]);
    assert_eq!(ran.code, 4, "{} {}", ran.out, ran.err);
    assert!(ran.out.contains("left alone: values: s/") && ran.out.contains("offset"), "{}", ran.out);
    assert!(!ran.out.contains("folddb compact"), "{}", ran.out);
    let ran = place.run(&["--json", "reclaim", "s"]);
    assert!(ran.code == 4 && ran.out.contains("\"left_alone\":[\"values: "), "{}", ran.out);
}

/// Keys and files may have any name that an export uses for temporary files.
#[test]
fn an_export_leaves_every_file_alone_that_it_was_not_asked_for() {
    let place = Place::new();
    let names =
        ["a", "a.folddb-unfinished", ".folddb-unfinished", ".folddb-unfinished-1", "sub/.folddb-unfinished"];
    std::fs::create_dir_all(place.path().join("out/sub")).expect("a directory");
    for name in ["b.folddb-unfinished", ".folddb-unfinished-2", "sub/.folddb-unfinished-1"] {
        place.write(&format!("out/{name}"), "mine");
    }
    for kind in ["sorted", "hashed"] {
        place.done(&["create", kind, "t", "--kind", kind, "--key", "utf8", "--value", "bytes"]);
        for name in names.iter().chain(&["b"]) {
            place.write("value", name);
            place.done(&["put", kind, "t", name, "--file", "value"]);
        }
        place.done(&["export-dir", kind, "t", "out"]);
        place.done(&["export-dir", kind, "t", "out", "--overwrite"]);
        names.iter().chain(&["b"]).for_each(|name| assert_eq!(place.read(&format!("out/{name}")), *name));
        for name in ["b.folddb-unfinished", ".folddb-unfinished-2", "sub/.folddb-unfinished-1"] {
            assert_eq!(place.read(&format!("out/{name}")), "mine");
        }
        assert_eq!(files_in(&place.path().join("out")).len(), 8);
        assert_eq!(files_in(&place.path().join("out/sub")).len(), 2);
    }
}

/// One file that the system refuses is named, and those after it are written.
#[test]
fn an_export_continues_after_what_cannot_be_written_or_read() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--like", "blob"]);
    let (long, deep) = ("k".repeat(300), format!("{}/x", "d".repeat(300)));
    for key in ["a", &deep, &long, "damaged", "z"] {
        place.write("value", key.repeat(5000 / key.len()));
        place.done(&["put", "s", "t", key, "--file", "value"]);
    }
    let store = place.path().join("s");
    let values = files_in(&store).into_iter().filter(|name| name.ends_with(".values"));
    let damaged = values.map(|name| store.join(name)).filter(|file| {
        let mut bytes = std::fs::read(file).expect("it reads");
        let at = bytes.windows(14).position(|window| window == b"damageddamaged");
        at.is_some_and(|at| {
            bytes[at + 100] ^= 1;
            std::fs::write(file, bytes).is_ok()
        })
    });
    assert_eq!(damaged.count(), 1);
    let ran = place.run(&["export-dir", "s", "t", "out"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 3, "{}", ran.err);
    for what in ["kkk: File name too long", "ddd: File name too long", "out/damaged"] {
        assert!(ran.err.contains(what), "{what}: {}", ran.err);
    }
    assert_eq!(files_in(&place.path().join("out")), ["a", "z"]);
    assert!(ran.out.ends_with("; 3 refused\n") && ran.out.starts_with("2 files written"), "{}", ran.out);
    let ran = place.run(&["--json", "export-dir", "s", "t", "out"]);
    assert!(ran.code == 4 && ran.out.contains("\"refused\":3,\"left_out\":["), "{}", ran.out);
    assert!(
        ran.out.contains("\"outcome\":\"damaged\"") && ran.out.ends_with("\"whole\":false}\n"),
        "{}",
        ran.out
    );
}

/// Whether the failure comes before the first batch of rows is committed or long after.
#[test]
fn a_sorted_import_that_fails_leaves_nothing_behind() {
    for rows in [10, 20_000] {
        let place = Place::new();
        let sorted: String = (0..rows).map(|n| format!("{n:06},1\n")).collect();
        place.write("rows.csv", format!("{sorted}000000,1\n"));
        std::fs::create_dir(place.path().join("empty")).expect("a directory");
        for store in ["new", "empty"] {
            let words = ["import", store, "t", "rows.csv", "--create", "--sorted", "--no-header"];
            let ran = place.run(&[&words[..], &["--key", "c1", "--fold", "sum:u64 = c2"]].concat());
            assert_eq!(ran.code, 2, "{}", ran.err);
            assert!(ran.err.contains("is before key"), "{}", ran.err);
        }
        assert!(!place.path().join("new").exists(), "{rows}: {:?}", files_in(&place.path().join("new")));
        let left = files_in(&place.path().join("empty"));
        assert!(left.is_empty(), "{rows}: {left:?}");
        // In a store that existed before, only the table is missing.
        place.done(&["create", "s", "other"]);
        let words = ["import", "s", "t", "rows.csv", "--create", "--sorted", "--no-header"];
        let ran = place.run(&[&words[..], &["--key", "c1", "--fold", "sum:u64 = c2"]].concat());
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(place.done(&["tables", "s"]).contains("other"));
    }
}
