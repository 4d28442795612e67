//! Imports that meet a full disk: they say so, leave nothing of what no row is in, and go on once
//! there is room.
//!
//! A small file system is made in a name space of mounts, which Linux gives to every user unless it
//! is configured otherwise; where it is not given, that is printed. A limit of the length of files
//! (`ulimit -f`) stops writes in the same places everywhere.

#![cfg(target_os = "linux")]

mod support;

use std::process::{Command, Output};

use support::{FOLDDB, Place, without_settings};

const ROWS: u64 = 300_000;

/// Rows that take some 8 MB.
fn write_rows(place: &Place) {
    let rows: String = (1..=ROWS).map(|n| format!("some longer key k{n},1\n")).collect();
    place.write("rows.csv", format!("k,n\n{rows}"));
}

/// Runs a script, which calls the import as `import STORE` with its other words.
fn run(place: &Place, before: &[&str], script: &str) -> Output {
    let import = format!(
        "import() {{ store=$1; shift; '{FOLDDB}' --disk-reserve 0 import $store t rows.csv --create --key k \
         --fold 'rows: count, n: sum:u64 = n' \"$@\"; echo \"code $?\"; }}\n"
    );
    let words = [before, &["sh", "-c"]].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(import + script).current_dir(place.path()).env("HOME", place.path());
    without_settings(&mut command).output().expect("sh starts")
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn an_import_that_fills_the_disk_says_so_and_goes_on_when_there_is_room() {
    let place = Place::new();
    write_rows(&place);
    std::fs::create_dir(place.path().join("disk")).expect("a directory");
    for threads in ["1", "2"] {
        let script = format!(
            "mount -t tmpfs -o size=6m none disk || exit 42\n\
             import disk/s --threads {threads}\n\
             mount -o remount,size=100m disk\n\
             import disk/s --threads {threads}\n\
             '{FOLDDB}' aggregate disk/s t --json\n"
        );
        let output = run(&place, &["unshare", "-rm"], &script);
        let (out, err) = said(&output);
        if output.status.code() != Some(0) {
            eprintln!("no file system can be mounted here: nothing is tried ({})", err.trim());
            return;
        }
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[..2], ["code 3", "code 0"], "{out}{err}");
        assert!(err.contains("No space left on device") || err.contains("the disk is full"), "{err}");
        assert!(err.contains("the same command goes on from there"), "{err}");
        assert!(err.contains("went on from its row"), "{err}");
        assert!(lines[2].contains(&format!("\"rows\":{ROWS},\"n\":{ROWS}")), "{out}: each row is in once");
    }
}

/// Not even the files fit that a store begins with.
#[test]
fn an_import_without_room_for_a_store_leaves_nothing() {
    let place = Place::new();
    write_rows(&place);
    let (out, err) = said(&run(&place, &[], "trap '' XFSZ; ulimit -f 0; import s\nls s || true"));
    assert_eq!(out, "code 3\n", "{err}");
    assert!(err.contains("File too large"), "{err}");
    assert!(!place.path().join("s").exists(), "it is taken back: {err}");
}

#[test]
fn an_import_whose_files_may_not_grow_says_so_and_goes_on_when_they_may() {
    let place = Place::new();
    write_rows(&place);
    for threads in ["1", "2"] {
        let store = format!("s{threads}");
        let limited = format!("(trap '' XFSZ; ulimit -f 1000; import {store} --threads {threads})\n");
        let script =
            format!("{limited}import {store} --threads {threads}\n'{FOLDDB}' aggregate {store} t --json");
        let (out, err) = said(&run(&place, &[], &script));
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[..2], ["code 3", "code 0"], "{out}{err}");
        assert!(err.contains("File too large"), "{err}");
        assert!(lines[2].contains(&format!("\"rows\":{ROWS},\"n\":{ROWS}")), "{out}: each row is in once");
    }
}
