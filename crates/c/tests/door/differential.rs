//! Random ops through C give the answers that Rust gives.
//!
//! A script is drawn, played here by the library's own API, and played by `tests/programs/script.c`
//! on another store. Each line that asks something is answered by one line.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use folddb::{BytesScan, BytesTable, Durability, Options, Snapshot, Store, WriteOp, table_rules::TableRules};

use crate::compile::{How, compiled, succeeded};

/// Numbers that a seed decides (an xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn key(&mut self) -> String {
        format!("k{:02}", self.below(40))
    }
}

/// A script of this many lines.
fn script(seed: u64, lines: usize) -> String {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut script = String::new();
    for _ in 0..lines {
        let (a, b) = (chance.key(), chance.key());
        let number = chance.below(1000);
        let line = match chance.below(39) {
            0..=7 => format!("fold {a} {number}"),
            8..=11 => format!("put {a} {number}"),
            12 | 13 => format!("put_if_absent {a} {number}"),
            14..=16 => format!("delete {a}"),
            17 if a < b => format!("delete_range {a} {b}"),
            17 => format!("batch {b} {a} {number}"),
            18..=20 => format!("batch {a} {b} {number}"),
            21..=25 => format!("get {a}"),
            26 => format!("past {a}"),
            27 => "snapshot".to_owned(),
            28 => format!("scan {} {}", a.clone().min(b.clone()), a.max(b)),
            29 => format!("reverse {} {}", a.clone().min(b.clone()), a.max(b)),
            30 => format!("around {a}"),
            31 => "sum".to_owned(),
            32 => "flush".to_owned(),
            33 => "compact".to_owned(),
            34 => format!("transact {a} {b} {number}"),
            35..=37 => format!("few {a} {b} {}", number % 7),
            _ => "reopen".to_owned(),
        };
        script.push_str(&line);
        script.push('\n');
    }
    script
}

/// The store that a script is played on.
struct Played {
    store: Store,
    table: BytesTable,
    past: Snapshot,
}

impl Played {
    fn new(store: Store) -> Played {
        let table = store.bytes_table("t").expect("the table is there");
        let past = store.snapshot();
        Played { store, table, past }
    }

    fn answer(&mut self, line: &str, path: &Path) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let key = |at: usize| words[at].as_bytes();
        let number = |at: usize| words[at].parse::<i64>().expect("a number").to_le_bytes();
        let write = |op, value: &[u8]| self.table.write(op, key(1), value).map(drop).expect("it is written");
        match words[0] {
            "put" => write(WriteOp::Put, &number(2)),
            "put_if_absent" => write(WriteOp::PutIfAbsent, &number(2)),
            "fold" => write(WriteOp::Fold, &number(2)),
            "delete" => write(WriteOp::Delete, &[]),
            "delete_range" => drop(self.table.delete_range(key(1), key(2)).expect("it is deleted")),
            "batch" => {
                let mut batch = self.store.batch();
                batch.write(&self.table, WriteOp::Fold, key(1), &number(3));
                batch.write(&self.table, WriteOp::Delete, key(2), &[]);
                batch.commit(Durability::Process).map(drop).expect("it is committed");
            }
            "transact" => {
                let mut inside = self.store.transaction();
                let found = inside.get(&self.table, key(1)).expect("it is read");
                let op = if found.is_some() { WriteOp::Put } else { WriteOp::Fold };
                inside.write(&self.table, op, key(2), &number(3));
                inside.commit(Durability::Process).map(drop).expect("it is committed");
            }
            "get" => return Some(shown(self.table.get(key(1)).expect("it is read"))),
            "past" => return Some(shown(self.past.get(&self.table, key(1)).expect("it is read"))),
            "snapshot" => self.past = self.store.snapshot(),
            "scan" => return Some(rows(self.table.scan().from(key(1)).before(key(2)))),
            "reverse" => return Some(rows(self.table.scan().after(key(1)).through(key(2)).reverse())),
            "around" => {
                let behind = rows(self.table.scan().from(key(1)).limit(3));
                let before = rows(self.table.scan().before(key(1)).reverse().limit(1));
                return Some(format!("{behind}|{before}"));
            }
            "few" => return Some(self.few(key(1), key(2), words[3].parse().expect("a number"))),
            "sum" => {
                let sum = self.table.scan().aggregate().expect("it is read");
                return Some(format!("{} {}", sum.rows, shown(sum.value)));
            }
            "flush" => self.store.flush().expect("it is flushed"),
            "compact" => self.table.compact().expect("it is compacted"),
            "reopen" => {
                self.store.clone().close().expect("it is closed");
                *self = Played::new(Store::open(path, Options::default()).expect("it is opened"));
            }
            word => panic!("`{word}` is not an op"),
        }
        None
    }
}

impl Played {
    fn few(&self, from: &[u8], key: &[u8], limit: usize) -> String {
        let is_down = limit % 2 == 1;
        let scan = self.table.scan().from(from).limit(limit);
        let scan = if is_down { scan.reverse() } else { scan };
        let all: Vec<_> = scan.into_iter().map(|row| row.expect("a row")).collect();
        let is_behind = |row: &&(Vec<u8>, Vec<u8>)| if is_down { &*row.0 <= key } else { &*row.0 >= key };
        let behind: String = all.iter().filter(is_behind).map(row).collect();
        let backward: String = all.iter().rev().map(row).collect();
        let with_one_before = |(at, here): (usize, &(Vec<u8>, Vec<u8>))| {
            row(here) + &at.checked_sub(1).map(|before| row(&all[before])).unwrap_or_default()
        };
        let each: String = all.iter().enumerate().map(with_one_before).collect();
        format!("{behind}|{backward}|{each}")
    }
}

fn shown(value: Option<Vec<u8>>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(bytes) => i64::from_le_bytes(bytes.try_into().expect("eight bytes")).to_string(),
    }
}

fn rows(scan: BytesScan) -> String {
    let mut shown_rows = String::new();
    for each in scan {
        write!(shown_rows, "{}", row(&each.expect("a row"))).expect("text");
    }
    shown_rows
}

fn row((key, value): &(Vec<u8>, Vec<u8>)) -> String {
    format!("{}={} ", String::from_utf8_lossy(key), shown(Some(value.clone())))
}

#[test]
fn a_random_script_is_answered_by_c_as_it_is_by_rust() {
    let program = compiled("script", How::Shared);
    for seed in 1..=6 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rust.folddb");
        let script = script(seed, 600);
        let store = Store::create(&path, Options::default()).expect("a store");
        let rules = "key=utf8\nfold=sum:i64".parse::<TableRules>().expect("rules");
        store.create_bytes_table("t", rules).expect("a table");
        let mut played = Played::new(store);
        let expected: Vec<String> = script
            .lines()
            .filter_map(|line| played.answer(line, &path).map(|said| format!("{line}: {said}")))
            .collect();

        let file = folder.path().join("script");
        std::fs::write(&file, &script).expect("the script is written");
        let output = Command::new(&program).arg(folder.path()).arg(&file).output().expect("it runs");
        succeeded(&format!("the script of seed {seed}"), &output);
        let answered = String::from_utf8(output.stdout).expect("text");
        for (index, (found, expected)) in answered.lines().zip(&expected).enumerate() {
            assert_eq!(found, expected, "seed {seed}, answer {index}");
        }
        assert_eq!(answered.lines().count(), expected.len(), "seed {seed}");
        assert!(expected.len() > 100, "seed {seed} asks enough: {}", expected.len());
    }
}
