//! What is refused: a store that another process has open, a damaged one, a file that ends early. Exit code 3, a
//! message that says what and where, and nothing lost.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use support::Place;

#[test]
fn a_store_that_is_open_elsewhere_is_refused() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    let mut shell = place.command(&["shell", "s"]);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the shell starts");
    let mut lines = shell.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(shell.stdout.take().expect("a pipe"));
    writeln!(lines, "fold t k 1\nget t k").expect("the shell reads");
    let mut answer = String::new();
    answers.read_line(&mut answer).expect("the shell answers");
    assert_eq!(answer, "1\n");

    let refused = place.run(&["fold", "s", "t", "k", "1"]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    assert!(refused.err.contains("close the other one first"), "{}", refused.err);

    writeln!(lines, "exit").expect("the shell reads");
    assert!(shell.wait().expect("the shell ends").success());
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
    let report = place.json(&["runs", "s"]);
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
    assert_eq!(refused.code, 3, "{}", refused.err);
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(refused.err.contains(&name) && refused.err.contains("offset"), "{}", refused.err);

    let refused = place.run(&["dump", "s", "--to", "s.dump"]);
    assert!(refused.code == 3 && refused.err.contains(&name), "{}", refused.err);
    assert!(!place.path().join("s.dump").exists(), "half a dump is in the way of the next try");
}

#[test]
fn a_file_that_ends_early_keeps_what_was_read() {
    let place = Place::new();
    let packed = std::fs::read(support::flights_sample()).expect("the sample is there");
    place.write("torn.csv.gz", &packed[..packed.len() / 2]);
    let words = ["import", "s", "t", "torn.csv.gz", "--create", "--key", "carrier", "--fold", "sum:u64 = 1"];
    let ran = place.run(&words);
    assert_eq!(ran.code, 3);
    assert!(
        ran.err.contains("then stopped") && ran.err.contains("cannot read torn.csv.gz after line "),
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
    assert_eq!(place.run(&["tables", here]).code, 1);
    assert_eq!(place.run(&["create", here]).code, 3);
    assert_eq!(place.read("note.txt"), "mine");
}
