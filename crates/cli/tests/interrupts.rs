//! Ctrl-C, and pipes that stay open: an interactive shell continues, a script and an import say how
//! far they got, and rows that have arrived are stored.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::{PATIENCE, Place, Screen};

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
    assert!(sent.success());
}

fn start(place: &Place, words: &[&str]) -> Child {
    let mut command = place.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Waits until this many keys are in a store that another process writes to.
fn wait_for_keys(place: &Place, store: &str, keys: &str) {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        let ran = place.run(&["count", store, "t"]);
        if ran.code == 0 && ran.out.trim() == keys {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{keys} keys are not in");
}

/// More rows than pipes and buffers hold when they are printed.
const ROWS: usize = 300_000;

/// A store with this many rows in one table.
fn import_rows(place: &Place, store: &str) {
    place.write("rows.csv", (0..ROWS).map(|n| format!("a key of some length {n},{n}\n")).collect::<String>());
    let words = ["import", store, "t", "rows.csv", "--create", "--no-header", "--key", "c1"];
    place.done(&[&words[..], &["--fold", "sum:u64 = c2"]].concat());
}

/// The message of a script that Ctrl-C stopped.
fn stopped(at: &str) -> String {
    format!("folddb: Ctrl-C stopped the script {at}; what follows it was not run\n")
}

/// The message of a shell about a transaction that is open when it ends.
const NOT_COMMITTED: &str = "folddb: the transaction was not committed: nothing of it is written\n";

/// Runs a script with a line in a transaction, and interrupts it while the line waits for a reader
/// of its output: so it has begun and not ended, on a machine of any speed.
fn stops_a_script(place: &Place, line: &str) {
    let mut shell = start(place, &["shell", "s"]);
    let mut lines = shell.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(shell.stdout.take().expect("a pipe"));
    writeln!(lines, "begin\nfold t mine 5\n{line}").expect("the shell reads");
    let mut answer = String::new();
    for _ in 0..10 {
        answer.clear();
        answers.read_line(&mut answer).expect("the line prints");
    }
    interrupt(&shell);
    writeln!(lines, "commit\nget t mine\nexit").expect("the shell reads");
    drop(lines);
    let mut rest = String::new();
    answers.read_to_string(&mut rest).expect("text");
    let mut errors = String::new();
    shell.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
    assert_eq!(shell.wait().expect("the shell ends").code(), Some(130), "{line}: {errors}");
    let said = format!("folddb: stopped by Ctrl-C\n{}{NOT_COMMITTED}", stopped("in line 3"));
    assert_eq!(errors, said, "{line}");
    assert!(rest.lines().count() < ROWS, "{line} was stopped");
    assert_eq!(place.run(&["get", "s", "t", "mine"]).code, 1, "{line}: the transaction was committed");
}

#[test]
fn an_interrupt_in_a_scan_stops_the_script_and_its_transaction() {
    let place = Place::new();
    import_rows(&place, "s");
    stops_a_script(&place, "scan t --format csv");
}

#[test]
fn an_interrupt_in_a_diff_stops_the_script_and_its_transaction() {
    let place = Place::new();
    import_rows(&place, "s");
    place.done(&["create", "other", "t", "--fold", "sum:u64"]);
    stops_a_script(&place, "diff other t");
}

/// Also between two lines, when there is nothing to stop.
#[test]
fn an_interrupt_while_a_script_waits_for_its_next_line_stops_it() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    let mut shell = start(&place, &["shell", "s"]);
    let mut lines = shell.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(shell.stdout.take().expect("a pipe"));
    writeln!(lines, "fold t kept 7\nbegin\nfold t mine 5\nget t mine").expect("the shell reads");
    let mut answer = String::new();
    answers.read_line(&mut answer).expect("the shell answers");
    assert_eq!(answer, "5\n");
    interrupt(&shell);
    let mut errors = String::new();
    shell.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
    assert_eq!(shell.wait().expect("the shell ends").code(), Some(130), "{errors}");
    assert_eq!(errors, format!("{}{NOT_COMMITTED}", stopped("after line 4")));
    drop(lines);
    assert_eq!(place.done(&["count", "s", "t"]), "1\n", "what came before the transaction stays");
}

/// A load from a pipe that stays open says how many records are in, and keeps them.
#[test]
fn an_interrupt_of_a_load_from_a_pipe_says_how_many_records_are_in() {
    let place = Place::new();
    import_rows(&place, "s");
    place.done(&["dump", "s", "t", "--to", "rows.dump"]);
    let dump = std::fs::read(place.path().join("rows.dump")).expect("the dump");
    let mut load = start(&place, &["load", "new", "-", "--create"]);
    let mut rows = load.stdin.take().expect("a pipe");
    let half = dump.len() / 2;
    rows.write_all(&dump[..half]).expect("the load reads");
    let since = Instant::now();
    while place.run(&["count", "new", "t"]).out.trim().parse::<u64>().unwrap_or(0) == 0 {
        assert!(since.elapsed() < PATIENCE, "nothing is in");
        std::thread::sleep(Duration::from_millis(50));
    }
    interrupt(&load);
    let mut errors = String::new();
    load.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
    assert_eq!(load.wait().expect("the load ends").code(), Some(130), "{errors}");
    drop(rows);
    let there = place.done(&["count", "new", "t"]).trim().to_owned();
    assert!(errors.replace(',', "").contains(&format!("{there} ")), "{there} are there: {errors}");
}

/// Processor time that a process has used, in ticks: mostly a hundredth of a second each.
#[cfg(target_os = "linux")]
fn ticks_of(child: &Child) -> u64 {
    let said = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it runs");
    let behind_name = said.rsplit(')').next().expect("a name in parentheses");
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

/// A union of this many sets, one after the other, takes minutes of processor time. A shell that
/// waits for lines takes none. So when it takes some, the work has begun, on a machine of any
/// speed.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_stops_an_aggregate_that_prints_nothing_before_its_end() {
    const BEGUN_TICKS: u64 = 50;
    let place = Place::new();
    place.write("rows.csv", (0..ROWS).map(|n| format!("key {n},{n}\n")).collect::<String>());
    let words =
        ["import", "s", "t", "rows.csv", "--create", "--no-header", "--key", "c1", "--fold", "set = c2"];
    place.done(&words);
    place.done(&["compact", "s"]); // background work has nothing to do
    let mut shell = start(&place, &["shell", "s"]);
    let mut lines = shell.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(shell.stdout.take().expect("a pipe"));
    writeln!(lines, "begin\nfold t mine 5\nget t mine").expect("the shell reads");
    let mut answer = String::new();
    answers.read_line(&mut answer).expect("the shell answers");
    let (before, since) = (ticks_of(&shell), Instant::now());
    writeln!(lines, "aggregate t\nget t mine\ncommit\nexit").expect("the shell reads");
    while ticks_of(&shell) < before + BEGUN_TICKS {
        assert!(since.elapsed() < PATIENCE, "the aggregate has not begun");
        std::thread::sleep(Duration::from_millis(20));
    }
    interrupt(&shell);
    let (mut rest, mut errors) = (String::new(), String::new());
    answers.read_to_string(&mut rest).expect("text");
    shell.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
    assert_eq!(shell.wait().expect("the shell ends").code(), Some(130), "{errors}");
    assert_eq!(rest, "", "what comes behind is not run");
    assert_eq!(errors, format!("folddb: stopped by Ctrl-C\n{}{NOT_COMMITTED}", stopped("in line 4")));
    assert_eq!(place.done(&["count", "s", "t"]), format!("{ROWS}\n"));
}

#[test]
fn rows_through_a_pipe_are_in_while_it_stays_open() {
    for (format, rows) in [
        ("csv", ["k,n\n1,1\n2,1\n", "3,1\n4,\"1"]),
        ("ndjson", ["{\"k\":1,\"n\":1}\n{\"k\":2,\"n\":1}\n", "{\"k\":3,\"n\":1}\n{\"k\":4,\"n"]),
    ] {
        let place = Place::new();
        place.done(&["create", "s", "t", "--fold", "sum:u64"]);
        let words = ["import", "s", "t", "-", "--format", format, "--key", "k", "--fold", "sum:u64 = n"];
        let mut import = start(&place, &words);
        let mut pipe = import.stdin.take().expect("a pipe");
        for (rows, keys) in rows.iter().zip(["2", "3"]) {
            pipe.write_all(rows.as_bytes()).expect("the import reads");
            wait_for_keys(&place, "s", keys);
        }
        // The part of a row that has arrived is not lost while the import waits for the rest.
        pipe.write_all(if format == "csv" { b"\"\n" } else { b"\":1}\n" }).expect("the import reads");
        drop(pipe);
        let output = import.wait_with_output().expect("the import ends");
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "imported 4 rows into t\n");
    }
}

#[test]
fn an_interrupted_import_says_how_many_rows_are_in() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    let mut import = start(&place, &["import", "s", "t", "-", "--key", "k", "--fold", "sum:u64 = n"]);
    let mut pipe = import.stdin.take().expect("a pipe");
    pipe.write_all(b"k,n\n1,1\n2,1\n").expect("the import reads");
    wait_for_keys(&place, "s", "2");
    interrupt(&import);
    let mut said = String::new();
    import.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert_eq!(import.wait().expect("the import ends").code(), Some(130), "{said}");
    assert_eq!(said, "imported 2 rows into t, then stopped by Ctrl-C\n");
    drop(pipe);
    assert_eq!(place.done(&["count", "s", "t"]), "2\n");
}

/// Once it has reported what is in, Ctrl-C stops what is shown, and the import has ended.
#[test]
fn an_interrupt_after_the_report_of_an_import_is_an_exit_code_and_no_signal() {
    let place = Place::new();
    place.write("rows.csv", (0..ROWS).map(|n| format!("a key of some length {n},{n}\n")).collect::<String>());
    let rows = ROWS.to_string();
    let words = ["import", "s", "t", "rows.csv", "--create", "--no-header", "--key", "c1", "--fold"];
    let mut import = start(&place, &[&words[..], &["sum:u64 = c2", "--show", &rows]].concat());
    let mut said = BufReader::new(import.stderr.take().expect("a pipe"));
    let mut report = String::new();
    said.read_line(&mut report).expect("text");
    assert_eq!(report, "imported 300,000 rows into t\n");
    // It waits for a reader of its output.
    interrupt(&import);
    let mut shown = String::new();
    import.stdout.take().expect("a pipe").read_to_string(&mut shown).expect("text");
    said.read_to_string(&mut report).expect("text");
    assert_eq!(import.wait().expect("the import ends").code(), Some(130), "{report}");
    assert!(shown.lines().count() < ROWS, "what is shown was stopped");
    assert_eq!(place.done(&["count", "s", "t"]), "300000\n");
    let again = place.run(&[&words[..], &["sum:u64 = c2"]].concat());
    assert_eq!((again.code, again.out.as_str()), (0, ""), "{}", again.err);
}

/// At a terminal that moves no cursor, Ctrl-C drops the line that is being typed, any number of
/// times, and ends neither the shell nor its transaction.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_at_a_dumb_terminal_drops_the_line_that_is_typed_and_no_more() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    let Some(mut screen) = Screen::of(&place, &format!("exec {} shell s", support::FOLDDB)) else { return };
    screen.shows("folddb> ", 1);
    screen.press("begin\n");
    screen.shows("folddb> ", 2);
    screen.press("fold t mine 5\n");
    for prompts in 3..6 {
        screen.shows("folddb> ", prompts);
        screen.press("drop t\u{3}");
    }
    screen.shows("folddb> ", 6);
    screen.press("commit\n");
    screen.shows("folddb> ", 7);
    screen.press("get t mine\n");
    screen.shows("\n5\r", 1);
    screen.press("exit\n");
    screen.ends_well();
    assert_eq!(place.done(&["get", "s", "t", "mine"]), "5\n");
}

/// The work of a line there is stopped, and the shell and its transaction remain.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_at_a_terminal_stops_what_a_line_does_and_no_more() {
    let place = Place::new();
    import_rows(&place, "s");
    let fifo = place.path().join("answers");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts").success());
    let line = format!("exec {} shell s > answers", support::FOLDDB);
    let Some(mut screen) = Screen::of(&place, &line) else { return };
    // It waits for a reader of its output: so it has begun and not ended.
    let mut answers = BufReader::new(std::fs::File::open(&fifo).expect("the shell writes"));
    screen.press("begin\nfold t mine 5\nscan t --format csv\n");
    let mut answer = String::new();
    while !answer.starts_with("a key of some length") {
        answer.clear();
        assert!(answers.read_line(&mut answer).expect("the line prints") > 0);
    }
    screen.press("\u{3}");
    screen.shows("^C", 1);
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        answers.read_to_string(&mut rest).map(|_| rest)
    });
    screen.shows("folddb: stopped by Ctrl-C", 1);
    screen.press("get t mine\ncommit\nget t mine\nexit\n");
    screen.ends_well();
    let rest = rest.join().expect("nobody panicked").expect("text");
    assert!(rest.lines().count() < ROWS, "the scan was stopped");
    assert_eq!(rest.matches("folddb> 5\n").count(), 2, "{rest}");
    assert_eq!(place.done(&["get", "s", "t", "mine"]), "5\n");
}

/// A script that runs at a terminal is stopped, and says where.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_while_lines_come_from_elsewhere_to_a_terminal_stops_the_script() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    let fifo = place.path().join("lines");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts").success());
    let line = format!("exec {} shell s < lines", support::FOLDDB);
    let Some(mut screen) = Screen::of(&place, &line) else { return };
    let mut lines = std::fs::File::options().write(true).open(&fifo).expect("the shell reads");
    writeln!(lines, "begin\nfold t mine 5\nget t mine").expect("the shell reads");
    screen.shows("5\r", 1);
    screen.press("\u{3}");
    screen.shows("stopped the script after line 3", 1);
    screen.shows("the transaction was not committed", 1);
    screen.ends_with(130);
    drop(lines);
    assert_eq!(place.run(&["get", "s", "t", "mine"]).code, 1);
}

/// A dump that is pasted at a terminal ends with one Ctrl-D, as everything does there.
#[cfg(target_os = "linux")]
#[test]
fn one_end_of_file_at_a_terminal_ends_a_load() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    place.done(&["fold", "s", "t", "a", "1"]);
    place.done(&["dump", "s", "--to", "dump"]);
    for from in ["-", "/dev/tty"] {
        let line = format!("exec {} load 'from{}' {from} --create", support::FOLDDB, from.replace('/', "-"));
        let Some(mut screen) = Screen::of(&place, &line) else { return };
        screen.press(&place.read("dump"));
        screen.shows("\"end\":\"dump\"", 1);
        screen.press("\u{4}");
        screen.shows("loaded 1 record", 1);
        screen.ends_well();
    }
}

/// The names in the folder that begin with this.
fn names(place: &Place, begin: &str) -> Vec<String> {
    let entries = std::fs::read_dir(place.path()).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a text"));
    names.filter(|name| name.starts_with(begin)).collect()
}

/// No matter how the program ends, and how far it got.
#[test]
fn a_file_that_is_written_has_its_name_only_once_it_is_whole() {
    let place = Place::new();
    import_rows(&place, "s");
    for (verb, signal) in [("export", "-INT"), ("dump", "-INT"), ("export", "-KILL"), ("dump", "-TERM")] {
        let words: &[&str] = if verb == "export" { &["export", "s", "t"] } else { &["dump", "s"] };
        let out = format!("{verb}{signal}.out");
        let mut child = start(&place, &[words, &["--to", &out]].concat());
        while names(&place, &out).is_empty() && child.try_wait().expect("it is asked").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        sent.expect("kill starts");
        let code = child.wait().expect("it ends").code();
        let left = names(&place, &out);
        match code {
            Some(0) => {
                assert_eq!(left, std::slice::from_ref(&out), "{verb} {signal}");
                let lines = place.read(&out).lines().count();
                assert!(lines > ROWS, "{verb} {signal}: {lines} lines");
            }
            Some(130) => assert!(left.is_empty(), "{verb} {signal}: {left:?}"),
            _ => assert!(!left.contains(&out), "{verb} {signal}: {left:?}"),
        }
    }
}
