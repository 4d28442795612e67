//! Files and pipes are read in pieces on all cores. What is in afterwards, and what is said of bad
//! rows, is as if the rows had come one after the other, as they do with `--threads 1`.

mod support;

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;
use support::{Place, Ran, Random};

/// Imports a text from a pipe.
fn from_pipe(place: &Place, words: &[&str], text: &[u8]) -> Ran {
    let mut command = place.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let ended = std::thread::scope(|scope| {
        scope.spawn(move || pipe.write_all(text).expect("the program reads"));
        child.wait_with_output().expect("it ends")
    });
    Ran::from(ended)
}

/// The report of an import, without what differs between a file and a pipe.
fn report(ran: &Ran) -> Value {
    let mut report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
    let facts = report.as_object_mut().expect("an object");
    facts.remove("seconds");
    facts.remove("table");
    report
}

/// Imports a text as a file in pieces, one by one, and from a pipe, which is whole when it ends,
/// and compares.
fn both_ways(place: &Place, name: &str, text: &[u8], options: &[&str]) -> Value {
    place.write(name, text);
    let words = |table, file, more: &[&'static str]| -> Vec<String> {
        let words = ["--json", "import", "s", table, file, "--create", "--complete"];
        words.iter().chain(options).chain(more).map(|word| (*word).to_owned()).collect()
    };
    let run = |words: Vec<String>| place.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let pieces = run(words("pieces", name, &[]));
    let one = run(words("one", name, &["--threads", "1"]));
    let piped = words("piped", "-", &[]);
    let piped = from_pipe(place, &piped.iter().map(String::as_str).collect::<Vec<_>>(), text);
    assert_eq!((pieces.code, piped.code), (one.code, one.code), "{}\n{}\n{}", pieces.err, piped.err, one.err);
    assert_eq!(report(&pieces), report(&one), "{name} {options:?}");
    assert_eq!(report(&piped), report(&one), "{name} {options:?}: from a pipe");
    let export = |table: &str| place.done(&["export", "s", table, "--format", "ndjson"]);
    assert!(export("pieces") == export("one"), "{name} {options:?}: the tables differ");
    assert!(export("piped") == export("one"), "{name} {options:?}: the table from a pipe differs");
    assert!(!export("one").is_empty());
    for table in ["pieces", "one", "piped"] {
        place.done(&["drop", "s", table]);
    }
    report(&pieces)
}

const FOLD: &str = "rows: sum:u64 = 1, n: stats:f64 = n, who: hll:12 = who, top: top:3 = n, who";

/// Lines of CSV: most are plain, some have quotes of every kind, some are bad.
fn odd_csv(random: &mut Random, bytes: usize, torn: bool) -> Vec<u8> {
    let mut text = b"k,n,who,note\n".to_vec();
    while text.len() < bytes {
        let (key, n, who) = (random.below(300), random.below(1000), random.below(5000));
        let line = match random.below(400) {
            0 => format!("k{key},{n},u{who},\"of {}\"\n", "many\nlines ".repeat(random.below(200) as usize)),
            1 => format!("k{key},{n},u{who},\"of {} long\"\n", "x,\n".repeat(100_000)),
            2 => format!("k{key},{n},\"u\"\"{who}\",5\" disk\r\n"),
            3 => format!("k{key},{n},u{who}\n"), // bad: a field is missing
            4 => format!("k{key},no number,u{who},\n\n"),
            5 if torn => format!("k{key},{n},\"u{who},never closed\n"),
            6 => format!("\"k{key}\" ,{n},,\"\"\n"),
            7 => format!("k{key},{n},\"u\"{who},text behind a quote\n"),
            8 => format!("k{key},{n},\"u\\\"{who}\\\\\",\"a path \\\\ or\\\"\nwhat\"\n"), // escaped
            9..60 => format!("k{key},{n},\"u{who}, who\",\"and a note\"\n"),
            _ => format!("k{key},{n},u{who},a note\n"),
        };
        text.extend(line.into_bytes());
    }
    text
}

#[test]
fn odd_csv_is_read_in_pieces_as_one_by_one() {
    let place = Place::new();
    for seed in 1..4 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let text = odd_csv(&mut random, 4 << 20, seed % 2 == 1);
        // It is said how quotes are escaped: of a pipe less may be there to find it out.
        let escaped = |options: &[&'static str]| [&["--escape", "\\"], options].concat();
        let told = both_ways(&place, "odd.csv", &text, &escaped(&["--key", "k", "--fold", FOLD]));
        assert!(
            told["rows_bad"].as_u64() > Some(10) && told["rows_imported"].as_u64() > Some(1000),
            "{told}"
        );
        let bare = escaped(&["--no-header", "--key", "c1", "--fold", "hll:12 = c3"]);
        both_ways(&place, "bare.csv", &text, &bare);
        both_ways(&place, "doubled.csv", &text, &["--escape", "\"", "--key", "k", "--fold", FOLD]);
        let options = ["--key", "k, lower(who)", "--fold", "sum:u64 = 1", "--where", "n > 500"];
        both_ways(&place, "some.csv", &text, &escaped(&options));
        both_ways(&place, "last.csv", &text, &escaped(&["--key", "k", "--value", "note"])); // values replace
    }
}

/// A row that goes on over several pieces, and a quote that opens one which never ends.
#[test]
fn a_row_may_be_longer_than_pieces() {
    let place = Place::new();
    let rows: String = (0..60_000).map(|n| format!("k{},{n},u{n},x\n", n % 7)).collect();
    let long = format!("k1,1,u1,\"{}\"\n", "line\n".repeat(700_000));
    let text = format!("k,n,who,note\n{rows}{long}{rows}");
    let told = both_ways(&place, "long.csv", text.as_bytes(), &["--key", "k", "--fold", FOLD]);
    assert_eq!(told["rows_imported"], 120_001);
    let text = format!("k,n,who,note\n{rows}k1,1,u1,\"open\n{}{rows}", "line\n".repeat(1_500_000));
    let told = both_ways(&place, "open.csv", text.as_bytes(), &["--key", "k", "--fold", FOLD]);
    assert_eq!(told["rows_imported"], 120_000);
    let [two, one] = ["2", "1"].map(|threads| {
        let import = ["--json", "import", "s", threads, "open.csv", "--create", "--threads", threads];
        let ran = place.run(&[&import[..], &["--key", "k", "--fold", FOLD]].concat());
        assert_eq!(ran.code, 5, "{}", ran.err);
        report(&ran)
    });
    assert_eq!((&two, &two["rows_imported"]), (&one, &60_000.into()), "a file that may grow");
    let text = format!("k,n,who,note\r{}", rows.replace('\n', "\r").repeat(20));
    both_ways(&place, "returns.csv", text.as_bytes(), &["--key", "k", "--fold", FOLD]);
}

#[test]
fn json_and_logs_are_read_in_pieces_too() {
    let place = Place::new();
    let mut random = Random(5);
    let mut text = String::new();
    for _ in 0..40_000 {
        let (key, n) = (random.below(500), random.below(1000));
        text.push_str(&match random.below(50) {
            0 => "{no json\n\n".to_owned(),
            1 => format!("{{\"k\":\"k{key}\"}}\n"),
            _ => format!("{{\"k\":\"k{key}\",\"n\":{n},\"tags\":[\"a{n}\",\"b\"]}}\n"),
        });
    }
    let options = ["--key", "k", "--fold", "n: sum:u64 = n, tags: hll:12 = tags"];
    both_ways(&place, "lines.ndjson", text.as_bytes(), &[&options[..], &["--format", "ndjson"]].concat());
    let logs: String = (0..60_000)
        .map(|n| match n % 1000 {
            3 => "no such line\n".to_owned(),
            _ => format!("level{} {n}ms /path/{}\n", n % 3, n % 100),
        })
        .collect();
    let options = ["--regex", r"^(?<level>\w+) (?<ms>\d+)ms (?<path>\S+)", "--key", "level, path"];
    both_ways(&place, "own.log", logs.as_bytes(), &[&options[..], &["--fold", "stats:f64 = ms"]].concat());
}

/// A mark that is not at the beginning of the file makes a bad row, also where a piece begins; of
/// fields with one name the last counts.
#[test]
fn marks_and_repeated_names_in_json_are_read_alike() {
    let place = Place::new();
    let mark = '\u{feff}';
    let text: String = (0..40_000)
        .map(|n| {
            let mark = if n % 3 == 0 { mark.to_string() } else { String::new() };
            format!("{mark}{{\"k\":\"no\",\"n\":{n},\"k\":\"k{}\",\"note\":\"{}\"}}\n", n % 7, "x".repeat(40))
        })
        .collect();
    let options = ["--format", "ndjson", "--key", "k", "--fold", "rows: sum:u64 = 1, n: sum:u64 = n"];
    let told = both_ways(&place, "marks.ndjson", text.as_bytes(), &options);
    assert_eq!(told["rows_bad"], 40_000 / 3, "only that of the first row is passed over: {told}");
    assert_eq!(told["rows_imported"], 40_000 - 40_000 / 3);
    place.write("twice.ndjson", "{\"k\":\"a\",\"n\":1,\"n\":5,\"k\":\"b\"}\n");
    place.done(&["import", "s", "last", "twice.ndjson", "--create", "--key", "k", "--fold", "sum:u64 = n"]);
    assert_eq!(place.done(&["export", "s", "last"]), "k,value\nb,5\n");
    place.write("twice.log", "k=a n=1 n=5 k=b\n");
    let words = ["import", "s", "log", "twice.log", "--format", "logfmt", "--create", "--key", "k"];
    place.done(&[&words[..], &["--fold", "sum:u64 = n"]].concat());
    assert_eq!(place.done(&["export", "s", "log"]), "k,value\nb,5\n");
}

/// A row that only the store refuses is found, and the others are in.
#[test]
fn a_row_that_the_store_refuses_is_named_in_a_large_file() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--index", "by:value"]); // it takes no keys of 64,000 bytes
    let mut text = "k,m\n".to_owned();
    for n in 0..80_000 {
        let key = if n % 70_000 == 9 { "k".repeat(64_000) } else { format!("k{n}") };
        text.push_str(&format!("{key},member{n}\n"));
    }
    place.write("rows.csv", text);
    let words = ["--json", "import", "s", "t", "rows.csv", "--key", "k", "--value", "m"];
    let ran = place.run(&[&words[..], &["--bad-rows", "bad.csv"]].concat());
    let told: Value = serde_json::from_str(&ran.out).expect("a report");
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert_eq!((&told["rows_imported"], &told["rows_bad"]), (&79_998.into(), &2.into()));
    assert_eq!(told["rows_read"], 80_000);
    let lines = [&told["bad_rows"][0]["line"], &told["bad_rows"][1]["line"]];
    assert_eq!(lines, [&Value::from(11), &Value::from(70_011)]);
    assert_eq!(place.done(&["count", "s", "t"]), "79998\n");
    let kept = place.read("bad.csv");
    assert_eq!(kept.lines().filter(|line| !line.starts_with('#')).count(), 3);
}

/// The same from a pipe, which is not read again: its text is kept until it is committed.
#[test]
fn a_row_that_the_store_refuses_is_named_in_a_pipe() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--index", "by:value"]); // it takes no keys of 64,000 bytes
    let row = |n: u64| match n % 70_000 {
        9 => format!("{},member{n}\n", "k".repeat(64_000)),
        _ => format!("k{n},\"member{n}\"\n"),
    };
    let text: String = (0..160_000).map(row).collect();
    let words = ["--json", "import", "s", "t", "-", "--no-header", "--key", "c1", "--value", "c2"];
    let ran = from_pipe(&place, &words, text.as_bytes());
    let told: Value = serde_json::from_str(&ran.out).expect("a report");
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert_eq!((&told["rows_imported"], &told["rows_bad"]), (&159_997.into(), &3.into()));
    let lines: Vec<u64> = (0..3).filter_map(|at| told["bad_rows"][at]["line"].as_u64()).collect();
    assert_eq!(lines, [10, 70_010, 140_010]);
    assert_eq!(place.done(&["count", "s", "t"]), "159997\n");
}

/// What a packed pipe has brought is doubtful also where the store has refused a row of it.
#[test]
fn a_damaged_pipe_of_which_the_store_refuses_a_row_is_named() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--index", "by:value"]);
    let row = |n: u64| match n {
        9 | 79_000 => format!("{},member{n}\n", "k".repeat(64_000)),
        _ => format!("k{n},\"member{n}\"\n"),
    };
    let text: String = (0..80_000).map(row).collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).expect("it is packed");
    let mut packed = packed.finish().expect("it is packed");
    let checksum = packed.len() - 8;
    packed[checksum] ^= 1;
    let words = ["import", "s", "t", "-", "--no-header", "--key", "c1", "--value", "c2"];
    let ran = from_pipe(&place, &words, &packed);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("any that are in may be wrong"), "{}", ran.err);
    assert_eq!(place.done(&["count", "s", "t"]), "79998\n");
}

/// A file that cannot be opened is met while the rows before it are still read: that one of these
/// is refused does not hide it.
#[test]
fn a_file_that_cannot_be_read_is_named_after_rows_that_are_refused() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--index", "by:value"]);
    place.write("a.csv", format!("k,v\nk1,1\n{},2\nk3,3\n", "k".repeat(64_000)));
    place.write("b.csv", "%PDF-1.7 and no rows\n");
    let ran = place.run(&["import", "s", "t", "a.csv", "b.csv", "--key", "k", "--value", "v"]);
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.err.contains("not imported: b.csv is a PDF document"), "{}", ran.err);
    assert_eq!(place.done(&["count", "s", "t"]), "2\n");
}

/// Writes many small files of every kind; some are alike, empty, or have nothing but a header.
fn many_files(place: &Place, random: &mut Random) {
    std::fs::create_dir(place.path().join("in")).expect("a directory");
    for file in 0..400 {
        let rows = random.below(if file % 50 == 7 { 40_000 } else { 60 });
        let mut text = String::new();
        for row in 0..rows {
            let (key, n) = (format!("k{}", random.below(90)), random.below(100));
            text.push_str(&match (file % 4, random.below(50)) {
                (0, 0) => format!("{key},\"{n}\",\"of\nlines {file}\"\n"),
                (0, 1) => format!("{key},no number,{file}\n"),
                (0, _) => format!("{key},{n},{row} of {file}\n"),
                (1, _) => format!("{file};{key};{n}\n"),
                (2, 0) => "{no json\n".to_owned(),
                (2, _) => format!("{{\"n\":{n},\"k\":\"{key}\",\"of\":{file}}}\n"),
                (_, _) => format!("{key},{n},{row} of {file}"), // without a line end, so one row only
            });
            if file % 4 == 3 {
                break;
            }
        }
        let header = ["k,n,note\n", "of;k;n\n", "", "k,n,note\n"][file % 4];
        let kind = if file % 4 == 2 { "ndjson" } else { "csv" };
        let name = format!("in/{file:03}.{kind}");
        match file % 100 {
            60 => place.write(&name, place.read("in/057.csv")), // that one is not small
            33 => place.write(&name, "k,n,note\n"),
            _ if text.is_empty() && file % 4 == 2 => place.write(&name, "{\"k\":\"k1\",\"n\":1}\n"),
            _ => place.write(&name, header.to_owned() + &text),
        }
    }
}

#[test]
fn many_small_files_are_read_together_as_one_by_one() {
    let place = Place::new();
    many_files(&place, &mut Random(77));
    let import = |table, threads: &[&'static str]| {
        let fold = "rows: sum:u64 = 1, n: stats:f64 = n, top: top:3 = n, k";
        let words = ["--json", "import", "s", table, "in", "--create", "--key", "k", "--fold", fold];
        place.run(&[&words[..], threads].concat())
    };
    let (pieces, one) = (import("pieces", &[]), import("one", &["--threads", "1"]));
    assert_eq!((pieces.code, one.code), (5, 5), "{}\n{}", pieces.err, one.err);
    assert_eq!(report(&pieces), report(&one));
    let told = report(&one);
    assert!(told["files_in_already"].as_array().is_some_and(|files| files.len() >= 4), "{told}");
    assert!(told["rows_bad"].as_u64() > Some(10), "{told}");
    let export = |table: &str| place.done(&["export", "s", table, "--format", "ndjson"]);
    assert!(export("pieces") == export("one"), "the tables differ");
    let noted = |table: &str| -> Vec<Value> {
        let lines = place.done(&["--json", "imports", "s", table]);
        let entry = |line: &str| {
            let mut entry: Value = serde_json::from_str(line).expect("an entry");
            entry.as_object_mut().expect("an object").retain(|name, _| name != "table" && name != "at");
            entry
        };
        lines.lines().map(entry).collect()
    };
    assert!(noted("one").len() > 300);
    assert_eq!(noted("pieces"), noted("one"));
    let again = report(&import("pieces", &[]));
    assert_eq!((&again["rows_imported"], &again["files_read"]), (&0.into(), &0.into()), "{again}");
}

/// A file in the middle that cannot be read: those before it and after it are in.
#[test]
fn files_beside_one_that_cannot_be_read_are_in() {
    let place = Place::new();
    for file in 0..30 {
        place.write(&format!("{file:02}.csv"), format!("k,n\nk{file},1\n"));
    }
    place.write("20.csv", "%PDF-1.7 and no rows\n");
    let words = ["import", "s", "t", "*.csv", "--create", "--key", "k", "--fold", "sum:u64 = n"];
    let ran = place.run(&words);
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(
        ran.err.starts_with("imported 29 rows into t from 29 files; 1 file not imported\n"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("not imported: 20.csv is a PDF document"), "{}", ran.err);
    place.write("20.csv", "k,n\nk20,1\n");
    assert!(place.run(&words).err.starts_with("imported 1 row into t from 1 file\n"));
    assert_eq!(place.done(&["count", "s", "t"]), "30\n");
}

/// The first commit ends within a quoted field, at the end of a piece. Its place is noted all the
/// same: the file is known again after it has grown.
#[test]
fn a_file_that_grows_after_a_commit_within_a_field_goes_on_where_it_was() {
    let place = Place::new();
    let (mut text, mut row) = ("k,n,x\n".to_owned(), 0);
    let mut add = |text: &mut String, rest: &str| {
        text.push_str(&format!("{row:07},{rest}\n"));
        row += 1;
    };
    while text.len() < (5 << 18) - 200 {
        add(&mut text, "1,");
    }
    add(&mut text, &format!("1,\"{}\"", "b\n".repeat(200)));
    (0..40_000).for_each(|_| add(&mut text, "bad,"));
    (0..10_000).for_each(|_| add(&mut text, "1,"));
    let import = ["import", "s", "t", "rows.csv", "--create", "--key", "k", "--fold", "n: sum:u64 = n"];
    place.write("rows.csv", &text);
    let stopped = place.run(&[&import[..], &["--max-bad", "1%"]].concat());
    assert_eq!(stopped.code, 3, "{}", stopped.err);
    let is_in = place.done(&["count", "s", "t"]);
    assert!(is_in.trim().len() > 4, "much of it is in: {is_in}");
    place.write("rows.csv", text + "zz,1,\n");
    assert_eq!(place.run(&import).code, 5, "bad rows are not in");
    let sums = place.done(&["export", "s", "t", "--format", "csv"]);
    assert!(
        sums.contains("zz,1") && sums.lines().skip(1).all(|row| row.ends_with(",1")),
        "a row is in twice"
    );
}

/// An array of JSON that was cut off is completed: its last row is in, read however it is.
#[test]
fn a_row_before_the_place_where_an_array_was_cut_off_is_in_once_it_is_whole() {
    let text = "[{\"k\":\"a\"},\n{\"k\":\"b\"},\n{\"k\":\"c\"}";
    for how in [&[][..], &["--threads", "1"], &["--strict"]] {
        let place = Place::new();
        let words = ["import", "s", "t", "rows.json", "--create", "--key", "k", "--fold", "sum:u64 = 1"];
        let words = [&words[..], how].concat();
        place.write("rows.json", text);
        assert_eq!(place.run(&words).code, 3, "{how:?}");
        place.write("rows.json", text.to_owned() + "]\n");
        place.done(&words);
        assert_eq!(
            place.done(&["export", "s", "t", "--format", "csv"]),
            "k,value\na,1\nb,1\nc,1\n",
            "{how:?}"
        );
    }
}

/// A pipe that gives a line every few milliseconds is committed each second, too.
#[test]
fn a_pipe_that_never_pauses_is_committed_meanwhile() {
    let place = Place::new();
    let mut command =
        place.command(&["import", "s", "t", "-", "--create", "--key", "k", "--fold", "sum:u64 = 1"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(b"k\n").expect("it is read");
    let begun = std::time::Instant::now();
    let (mut written, mut is_in) = (0_u32, 0_u32);
    // With all that is written within the last seconds left aside: how much of the rest is in?
    while is_in < 100 && begun.elapsed() < support::PATIENCE {
        for _ in 0..50 {
            pipe.write_all(b"a\n").expect("it is read");
            written += 1;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        is_in = place.run(&["get", "s", "t", "a"]).out.trim().parse().unwrap_or(0);
        assert!(is_in <= written && written < 1_000, "{is_in} of {written} rows are in");
    }
    drop(pipe);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(place.done(&["get", "s", "t", "a"]).trim(), written.to_string());
}
