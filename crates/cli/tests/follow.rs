//! `import --follow`: a file that grows and is rotated, and imports of it that are stopped by
//! Ctrl-C or killed (kill -9) at random moments: every row is in exactly once.

mod support;

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::{PATIENCE, Place, Random};

const IMPORT: [&str; 9] = [
    "import",
    "s",
    "t",
    "old",
    "app.log.csv",
    "--follow",
    "--create",
    "--key=k",
    "--fold=n: sum:u64 = n, rows: sum:u64 = 1",
];

/// A log that grows and is rotated, and what it adds up to.
struct Log<'a> {
    place: &'a Place,
    rows: u64,
    sum: u64,
    rotated: u64,
}

impl Log<'_> {
    fn of(place: &Place) -> Log<'_> {
        std::fs::create_dir(place.path().join("old")).expect("a directory");
        place.write("old/0.csv", "k,n\nfirst,1\n");
        place.write("app.log.csv", "k,n\n");
        Log { place, rows: 1, sum: 1, rotated: 0 }
    }

    /// Adds rows; the last line may come in two halves.
    fn grows(&mut self, rows: u64, random: &mut Random) {
        let mut text = String::new();
        for _ in 0..rows {
            let n = random.below(100);
            text.push_str(&format!("key{},{n}\n", random.below(7)));
            (self.rows, self.sum) = (self.rows + 1, self.sum + n);
        }
        let path = self.place.path().join("app.log.csv");
        let mut file = OpenOptions::new().append(true).open(path).expect("the log is there");
        let (begin, end) =
            text.as_bytes().split_at(text.len() - random.below(4).min(text.len() as u64) as usize);
        file.write_all(begin).expect("it is written");
        if random.below(3) == 0 {
            std::thread::sleep(Duration::from_millis(random.below(300)));
        }
        file.write_all(end).expect("it is written");
    }

    fn is_rotated(&mut self) {
        self.rotated += 1;
        let (log, old) = (self.place.path().join("app.log.csv"), format!("old/{}.csv", self.rotated));
        std::fs::rename(&log, self.place.path().join(old)).expect("it is renamed");
        std::fs::write(&log, "k,n\n").expect("the next one is made");
    }

    fn held(&self) -> (u64, u64) {
        let ran = self.place.run(&["--json", "scan", "s", "t"]);
        let field = |line: &str, name: &str| {
            let row: serde_json::Value = serde_json::from_str(line).expect("a row of JSON");
            row["value"][name].as_u64().unwrap_or_default()
        };
        let all = |name: &str| ran.out.lines().map(|line| field(line, name)).sum();
        (all("rows"), all("n"))
    }

    /// Waits until all rows are in; never more.
    fn is_all_in(&self) {
        let since = Instant::now();
        loop {
            let held = self.held();
            assert!(held.0 <= self.rows, "{} rows of {} are in", held.0, self.rows);
            if held == (self.rows, self.sum) {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "{} rows of {} are in", held.0, self.rows);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A process that follows a log. One that is left, by a test that fails, is killed.
struct Follower(Option<Child>);

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn starts(place: &Place) -> Follower {
    starts_with(place, &[])
}

fn starts_with(place: &Place, more: &[&str]) -> Follower {
    let mut command = place.command(&[&IMPORT[..], more].concat());
    Follower(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")))
}

fn interrupts(mut follower: Follower) -> (Option<i32>, String) {
    let child = follower.0.take().expect("it runs");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
    assert!(sent.success());
    let ended = child.wait_with_output().expect("it ends");
    (ended.status.code(), String::from_utf8(ended.stderr).expect("text"))
}

#[test]
fn a_log_is_followed_through_rotations_and_gone_on_with_after_ctrl_c() {
    let place = Place::new();
    let (mut log, mut random) = (Log::of(&place), Random(77));
    let follower = starts(&place);
    log.grows(3, &mut random);
    log.is_all_in();
    log.is_rotated();
    log.grows(500, &mut random);
    log.is_all_in();
    let (code, said) = interrupts(follower);
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(
        said.matches("app.log.csv is another file now, and is read from its beginning\n").count(),
        1,
        "{said}"
    );
    let summary = "imported 504 rows into t from 3 files, then stopped by Ctrl-C; the same command goes on from there\n";
    assert!(said.contains(summary), "{said}");
    log.grows(10, &mut random);
    log.is_rotated(); // while nobody follows
    log.grows(2, &mut random);
    let follower = starts(&place);
    log.is_all_in();
    let (code, said) = interrupts(follower);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("imported 12 rows into t"), "{said}");
}

/// A log that was rotated while nobody followed, with rows that nobody has seen: as it is, packed,
/// copied and emptied, and lost.
#[test]
fn the_rest_of_a_log_that_was_rotated_while_nobody_followed_is_read() {
    let place = Place::new();
    let (mut log, mut random) = (Log::of(&place), Random(77));
    let path = |name: &str| place.path().join(name);
    let pack = |from: &str, to: &str| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(place.read(from).as_bytes()).expect("it is packed");
        place.write(to, packed.finish().expect("it is packed"));
    };
    for (round, rows) in [(0, 3), (1, 3), (2, 900), (3, 900), (4, 3)] {
        let follower = starts(&place);
        log.grows(rows, &mut random);
        log.is_all_in();
        assert_eq!(interrupts(follower).0, Some(130));
        let state = place.done(&["imports", "s", "t"]);
        assert!(state.contains("followed up to row") && !state.contains("broken off"), "{state}");
        let seen = (log.rows, log.sum);
        log.grows(rows, &mut random);
        match round {
            0 => std::fs::rename(path("app.log.csv"), path("app.log.csv.1")).expect("it is renamed"),
            1 => {
                pack("app.log.csv", "app.log.csv.2.gz");
                std::fs::remove_file(path("app.log.csv")).expect("it is removed");
            }
            2 => pack("app.log.csv", "app-3.log.gz"),
            3 => std::fs::copy(path("app.log.csv"), path("app.log.csv.4")).map(drop).expect("it is copied"),
            _ => (log.rows, log.sum) = seen, // nothing is left of it
        }
        std::fs::write(path("app.log.csv"), "k,n\n").expect("the next one is made, or this one is emptied");
        let follower = starts(&place);
        log.grows(2, &mut random);
        log.is_all_in();
        let (code, said) = interrupts(follower);
        assert_eq!(code, Some(130), "{said}");
        let wanted = [
            "what is left of it is read first, from app.log.csv.1\n",
            "what is left of it is read first, from app.log.csv.2.gz\n",
            "what is left of it is read first, from app-3.log.gz\n",
            "what is left of it is read first, from app.log.csv.4\n",
            "is in up to row 5 only: the rest is not beside it",
        ];
        assert!(said.contains(wanted[round]), "{said}");
    }
}

/// Whether a process has a handler of Ctrl-C.
fn hears(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 2 != 0)
}

/// A file that has no line yet is waited for.
#[test]
fn ctrl_c_ends_the_waiting_for_a_first_line() {
    let place = Place::new();
    let _log = Log::of(&place);
    place.write("app.log.csv", "");
    let mut command =
        place.command(&["import", "s", "t", "app.log.csv", "--follow", "--create", "--key=k", "--value=n"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let follower = Follower(Some(child));
    let since = Instant::now();
    while !follower.0.as_ref().is_some_and(hears) {
        assert!(since.elapsed() < PATIENCE, "nobody hears it");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (code, said) = interrupts(follower);
    assert_eq!((code, said.as_str()), (Some(130), "folddb: stopped by Ctrl-C\n"));
}

/// A row that is bad is kept at once, also by who is killed; and once.
#[test]
fn bad_rows_of_a_log_are_kept_as_they_come() {
    let place = Place::new();
    let mut log = Log::of(&place);
    let mut expected = Vec::new();
    for round in 0..4 {
        let follower = starts_with(&place, &["--bad-rows", "bad.csv"]);
        for number in 0..3 {
            log.grows(2, &mut Random(9));
            let row = format!("key,bad {round} {number}");
            let path = place.path().join("app.log.csv");
            let mut file = OpenOptions::new().append(true).open(path).expect("the log is there");
            file.write_all(format!("{row}\n").as_bytes()).expect("it is written");
            expected.push(row);
            let since = Instant::now();
            loop {
                let text = std::fs::read_to_string(place.path().join("bad.csv")).unwrap_or_default();
                let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
                if kept == expected {
                    break;
                }
                assert!(since.elapsed() < PATIENCE, "{text}");
                std::thread::sleep(Duration::from_millis(20));
            }
            if round % 2 == 0 {
                log.is_all_in();
            }
        }
        drop(follower); // kills it
    }
    let follower = starts_with(&place, &["--bad-rows", "bad.csv"]);
    log.grows(2, &mut Random(9));
    log.is_all_in(); // so it hears the signal
    let (code, said) = interrupts(follower);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("bad rows of an earlier run of this import not imported"), "{said}");
}

/// What copies a log and empties it leaves the same file, which may soon be as long as before.
#[test]
fn a_log_that_was_emptied_and_filled_again_is_read_from_its_beginning() {
    let place = Place::new();
    let mut log = Log::of(&place);
    let follower = starts(&place);
    log.grows(4, &mut Random(3));
    log.is_all_in();
    let path = place.path().join("app.log.csv");
    for (round, rows) in [5, 5, 300, 300, 7].into_iter().enumerate() {
        let text: String = (0..rows).map(|row| format!("key{round},{}\n", 10 + row % 10)).collect();
        std::fs::write(&path, format!("k,n\n{text}")).expect("it is filled again");
        log.rows += rows;
        log.sum += (0..rows).map(|row| 10 + row % 10).sum::<u64>();
        log.is_all_in();
    }
    let (code, said) = interrupts(follower);
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(said.matches("is another file now").count(), 5, "{said}");
}

/// Small files in the place of a log may be alike, and each of them counts.
#[test]
fn a_log_that_is_like_the_one_before_is_another_one() {
    let place = Place::new();
    let mut log = Log::of(&place);
    let mut one_row = || {
        let mut file = OpenOptions::new().append(true).open(place.path().join("app.log.csv")).expect("a log");
        file.write_all(b"same,1\n").expect("it is written");
        (log.rows, log.sum) = (log.rows + 1, log.sum + 1);
        log.is_all_in();
        log.is_rotated();
    };
    let follower = starts(&place);
    one_row();
    one_row();
    assert_eq!(interrupts(follower).0, Some(130));
    let follower = starts(&place);
    one_row();
    assert_eq!(interrupts(follower).0, Some(130));
}

/// The number of a removed file is mostly given to the next one that is made.
#[test]
fn a_log_with_the_number_of_a_removed_one_is_another_one() {
    let place = Place::new();
    let mut log = Log::of(&place);
    let path = place.path().join("app.log.csv");
    for _ in 0..4 {
        std::fs::remove_file(&path).expect("it is removed");
        std::fs::write(&path, "k,n\nsame,1\n").expect("the next one is made");
        (log.rows, log.sum) = (log.rows + 1, log.sum + 1);
        let follower = starts(&place);
        log.is_all_in();
        assert_eq!(interrupts(follower).0, Some(130));
    }
}

/// What is added to a line that is in would be half a row.
#[test]
fn a_log_whose_last_line_is_in_without_its_end_is_not_followed() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("old")).expect("a directory");
    place.write("old/0.csv", "k,n\nfirst,1\n");
    place.write("app.log.csv", "k,n\nopen,1");
    let plain: Vec<&str> = IMPORT.into_iter().filter(|word| *word != "--follow").collect();
    place.done(&plain);
    let ran = place.run(&IMPORT);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("the last line of app.log.csv has no end"), "{}", ran.err);
    place.write("app.log.csv", "k,n\nopen,1\n");
    let follower = starts(&place);
    let mut log = Log { place: &place, rows: 2, sum: 2, rotated: 0 };
    log.grows(3, &mut Random(5));
    log.is_all_in();
    let (code, said) = interrupts(follower);
    assert_eq!(code, Some(130), "{said}");
    assert!(!said.contains("another file"), "{said}");
}

fn kill_at(moments: u32) {
    let seed = std::env::var("FOLDDB_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let place = Place::new();
    let (mut log, mut random) = (Log::of(&place), Random(seed * 2 + 0x9e37_79b9_7f4a_7c15));
    let mut follower = starts(&place);
    let mut killed = 0;
    while killed < moments {
        let rows = [1, 20, 3000][random.below(3) as usize];
        log.grows(rows, &mut random);
        if random.below(2) == 0 {
            log.is_all_in();
            log.is_rotated();
        }
        if random.below(3) == 0 {
            continue;
        }
        std::thread::sleep(Duration::from_millis(random.below(1200)));
        let mut child = follower.0.take().expect("it runs");
        child.kill().expect("it is killed");
        let ended = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), None, "seed {seed}: it failed after {killed} kills: {said}");
        killed += 1;
        if random.below(4) == 0 {
            log.is_rotated();
        }
        follower = starts(&place);
    }
    log.grows(5, &mut random);
    log.is_all_in(); // so it listens
    assert_eq!(interrupts(follower).0, Some(130), "seed {seed}");
    assert_eq!(log.held(), (log.rows, log.sum), "seed {seed}");
}

#[test]
fn a_follower_that_is_killed_goes_on_with_nothing_twice_and_nothing_missing() {
    kill_at(10);
}

#[test]
#[ignore = "takes a few minutes"]
fn a_follower_that_is_killed_at_100_moments_goes_on() {
    kill_at(100);
}

/// A line of which the first half has arrived is not in: who is killed then reads it again.
#[test]
fn half_a_line_is_read_again_by_who_goes_on() {
    let lines = |name: &str| -> [&str; 3] {
        match name {
            "rows.ndjson" => ["{\"k\":\"a\"}\n{\"k\":", "\"b\"}\n", "{\"k\":\"c\"}\n"],
            _ => ["k=a\nk=", "b\n", "k=c\n"],
        }
    };
    for (name, how) in [("rows.ndjson", vec![]), ("rows.log", vec!["--regex", "^k=(?<k>.*)$"])] {
        let place = Place::new();
        let [begin, end, more] = lines(name);
        place.write(name, begin);
        let import = ["import", "s", "t", name, "--create", "--key=k", "--fold=sum:u64 = 1"];
        let words = [&import[..], &how].concat();
        let mut command = place.command(&[&words[..], &["--follow"]].concat());
        let follower = Follower(Some(command.stderr(Stdio::null()).spawn().expect("the program starts")));
        let since = Instant::now();
        while !place.run(&["get", "s", "t", "a"]).out.contains('1') {
            assert!(since.elapsed() < PATIENCE, "{name}: the first row is not in");
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(1500)); // half a line may be noted by then
        drop(follower); // kills it
        place.write(name, [begin, end, more].concat());
        place.done(&words);
        assert_eq!(
            place.done(&["export", "s", "t", "--format", "csv"]),
            "k,value\na,1\nb,1\nc,1\n",
            "{name}"
        );
    }
}

/// A stray quote looks as if nothing came: it is said that what follows waits for its end.
#[test]
fn a_quote_that_stays_open_is_told() {
    let place = Place::new();
    place.write("rows.csv", "k,n\na,1\n\"b,2\nc,3\n");
    let import = ["import", "s", "t", "rows.csv", "--create", "--key=k", "--fold=sum:u64 = n", "--follow"];
    let mut child = place.command(&import).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut said = BufReader::new(child.stderr.take().expect("what it says")).lines();
    let _follower = Follower(Some(child));
    let line = said.next().expect("it says so").expect("text");
    assert!(line.contains("rows.csv line 3: a quote opens here and has not closed yet"), "{line}");
    assert_eq!(place.done(&["count", "s", "t"]).trim(), "1");
}

#[test]
fn only_a_file_is_followed() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("old")).expect("a directory");
    place.write("old/0.csv", "k,n\nfirst,1\n");
    let with = |file: &'static str| {
        place.run(&["import", "s", "t", file, "--follow", "--create", "--key=k", "--fold=sum:u64 = n"])
    };
    for (file, said) in [("-", "a pipe is read until it ends"), ("old", "--follow is for a file")] {
        let ran = with(file);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    place.write("packed.csv", [0x1f, 0x8b, 8, 0, 0]);
    assert!(with("packed.csv").err.contains("is packed, and does not grow"));
    assert!(!place.path().join("s").exists());
}
