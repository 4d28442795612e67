//! A store that another process writes to: commands that only read can read it at the same time, as
//! it is at that moment.

mod support;

use std::io::Write;
use std::process::Stdio;

use support::{Place, Shell};

/// A store that is open, and another one with a table that is the same but for one key.
fn open_one(place: &Place) -> Shell {
    for store in ["live", "other"] {
        place.done(&["create", store, "t", "--fold", "sum:u64"]);
        place.done(&["fold", store, "t", "k", "1"]);
    }
    let mut shell = Shell::of(place, "live");
    assert_eq!(shell.ask("fold t new 5 --get"), "5\n");
    shell
}

#[test]
fn both_stores_of_a_comparison_may_be_written_to() {
    let place = Place::new();
    let mut shell = open_one(&place);
    for (first, second, sign) in [("live", "other", "<"), ("other", "live", ">")] {
        let ran = place.run(&["diff", first, second]);
        assert_eq!(ran.code, 4, "{}", ran.err);
        assert!(ran.out.starts_with(&format!("{sign} new ")), "{}", ran.out);
    }
    // Its own store is not another one, by any path.
    for path in ["live", "./other/../live"] {
        assert_eq!(shell.ask(&format!("diff {path}")), "table t: the same, 2 keys\n");
    }
    shell.end();
}

#[test]
fn a_shell_that_only_reads_is_open_next_to_a_writer() {
    let place = Place::new();
    let shell = open_one(&place);
    let mut reader = place.command(&["shell", "live", "--read-only"]);
    let mut reader = reader.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the shell starts");
    reader.stdin.take().expect("a pipe").write_all(b"get t new\n").expect("the shell reads");
    let output = reader.wait_with_output().expect("the shell ends");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"5\n"[..]));
    shell.end();
}

#[test]
fn a_store_that_is_written_to_is_backed_up() {
    let place = Place::new();
    let shell = open_one(&place);
    for _ in 0..2 {
        place.done(&["backup", "live", "backups"]);
    }
    shell.end();
    place.done(&["restore", "backups", "again"]);
    assert_eq!(place.done(&["get", "again", "t", "new"]), "5\n");
}

#[test]
fn processes_that_wait_for_the_lock_all_write() {
    let place = Place::new();
    place.done(&["create", "many", "t", "--fold", "sum:u64"]);
    let fold = || place.command(&["fold", "many", "t", "k", "1", "--wait-lock", "10m"]).spawn();
    let processes: Vec<_> = (0..6).map(|_| fold().expect("the program starts")).collect();
    for mut process in processes {
        assert!(process.wait().expect("the program ends").success());
    }
    assert_eq!(place.done(&["get", "many", "t", "k"]), "6\n");
    // A shell waits, too, until the one before it ends.
    let first = Shell::of(&place, "many");
    let mut second = place.command(&["shell", "many", "--wait-lock", "10m"]);
    let mut second = second.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the shell starts");
    second.stdin.take().expect("a pipe").write_all(b"fold t k 1 --get\n").expect("it is written");
    first.end();
    let output = second.wait_with_output().expect("the shell ends");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"7\n"[..]));
}

#[test]
fn a_process_that_has_waited_long_enough_for_the_lock_says_who_has_it() {
    let place = Place::new();
    let shell = open_one(&place);
    let ran = place.run(&["fold", "live", "t", "k", "1", "--wait-lock", "30ms"]);
    assert_eq!(ran.code, 8, "{}", ran.err);
    assert!(ran.err.contains("open elsewhere"), "{}", ran.err);
    assert!(ran.err.contains("after --wait-lock 30ms"), "{}", ran.err);
    let at_once = place.run(&["fold", "live", "t", "k", "1"]);
    assert!(at_once.err.contains("--wait-lock 5s waits"), "{}", at_once.err);
    shell.end();
}
