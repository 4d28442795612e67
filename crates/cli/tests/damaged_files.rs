//! Packed files that are damaged or cut off: what they unpack to looks like rows, and is wrong.
//! None of it is in.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use flate2::Compression;
use support::{Place, Ran, Shell};

const ROWS: u64 = 60_000;
const OPTIONS: [&str; 5] = ["--create", "--key", "k", "--fold", "n: sum:u64 = n"];

fn text() -> String {
    let rows: String = (0..ROWS).map(|n| format!("k{},1\n", n % 10)).collect();
    format!("k,n\n{rows}")
}

/// Packed without being made shorter, so that each byte is one of the text.
fn gzip(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(text.as_bytes()).expect("it is packed");
    packed.finish().expect("it is packed")
}

/// The same, with another figure in a row in the middle.
fn damaged(mut packed: Vec<u8>) -> Vec<u8> {
    let middle = packed.len() / 2;
    let figure = packed[middle..].windows(2).position(|two| two == b",1").expect("a row");
    packed[middle + figure + 1] = b'9';
    packed
}

fn import(place: &Place, files: &[&str]) -> Ran {
    place.run(&[&["import", "s", "t"], files, &OPTIONS[..]].concat())
}

#[test]
fn no_row_of_a_damaged_file_is_in() {
    let place = Place::new();
    place.write("damaged.csv.gz", damaged(gzip(&text())));
    let ran = import(&place, &["damaged.csv.gz"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("damaged.csv.gz is damaged or cut off"), "{}", ran.err);
    assert!(!place.path().join("s").exists(), "no store is made: {}", ran.err);
}

#[test]
fn a_file_that_is_filled_with_zeros_is_whole() {
    let place = Place::new();
    place.write("padded.csv.gz", [gzip(&text()), vec![0; 10_000]].concat());
    let ran = import(&place, &["padded.csv.gz"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(place.json(&["aggregate", "s", "t"])["value"]["n"], ROWS, "{}", ran.err);
}

#[test]
fn files_beside_a_damaged_one_are_in_and_once_it_is_mended_it_is_too() {
    let place = Place::new();
    let other = gzip(&text().replace(",1\n", ",2\n"));
    place.write("a.csv.gz", gzip(&text()));
    place.write("b.csv.gz", &other[..other.len() - 100]);
    place.write("c.csv", "k,n\nlast,1\n");
    let files = ["a.csv.gz", "b.csv.gz", "c.csv"];
    let ran = import(&place, &files);
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.err.contains("not imported: b.csv.gz is damaged or cut off"), "{}", ran.err);
    assert_eq!(place.json(&["aggregate", "s", "t"])["value"]["n"], ROWS + 1, "{}", ran.err);
    place.write("b.csv.gz", other);
    assert_eq!(import(&place, &files).code, 0);
    assert_eq!(place.json(&["aggregate", "s", "t"])["value"]["n"], 3 * ROWS + 1);
}

/// An import that waits for the store has opened its first file: what has the name of that by then
/// is read, and checked.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_replaced_before_it_is_read_is_the_new_one() {
    let place = Place::new();
    place.write("none.csv", "k,n\n");
    assert_eq!(import(&place, &["none.csv"]).code, 0, "it makes the table");
    place.write("a.csv.gz", damaged(gzip(&text())));
    place.write("new", gzip(&text()));
    let shell = Shell::of(&place, "s");
    let words = [&["import", "s", "t", "a.csv.gz", "--wait-lock", "10m"], &OPTIONS[..]].concat();
    let mut child = place.command(&words).stderr(Stdio::piped()).spawn().expect("the program starts");
    let file = place.path().join("a.csv.gz").canonicalize().expect("it is there");
    while !has_open(child.id(), &file) {
        assert!(child.try_wait().expect("it is there").is_none(), "it waits for the store");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    std::fs::rename(place.path().join("new"), &file).expect("it is replaced");
    shell.end();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.json(&["aggregate", "s", "t"])["value"]["n"], ROWS);
}

/// Whether a process has a file open.
fn has_open(process: u32, file: &Path) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    open.flatten().any(|open| std::fs::read_link(open.path()).is_ok_and(|open| open == file))
}

/// It cannot be read twice: its rows are in before the checksum, and the error says so.
#[test]
fn what_a_damaged_pipe_has_brought_is_said_to_be_doubtful() {
    let place = Place::new();
    let mut command = place.command(&[&["import", "s", "t", "-"], &OPTIONS[..]].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let packed = damaged(gzip(&text()));
    std::thread::spawn(move || pipe.write_all(&packed));
    let ran = Ran::from(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("any that are in may be wrong"), "{}", ran.err);
}
