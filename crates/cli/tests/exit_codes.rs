//! The exit codes: each that the pages list is given by a command, and each that a command of these
//! gives is listed, in the guide and in the help.

mod support;

use std::process::Command;

use support::{Place, Ran, Shell, project};

/// Overwrites a piece of the only run of table `t`.
fn damage(place: &Place) {
    let report = place.json(&["runs", "s", "t"]);
    let bytes = report[0]["runs"][0]["parts"][0]["bytes"].as_u64().expect("a number");
    let entries = std::fs::read_dir(place.path().join("s")).expect("the store is a directory");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    let is_part = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|ending| ending == "part")
            && path.metadata().is_ok_and(|facts| facts.len() == bytes)
    };
    let file = paths.find(is_part).expect("the part is a file of the store");
    let mut content = std::fs::read(&file).expect("the part is read");
    content[1000..1100].fill(0x55);
    std::fs::write(&file, content).expect("the part is written");
}

/// A store with a table of rows that are in a run.
fn made() -> Place {
    let place = Place::new();
    place.write("rows.csv", (0..5000).map(|n| format!("key{n},{n}\n")).collect::<String>());
    let words = ["import", "s", "t", "rows.csv", "--create", "--no-header", "--key", "c1"];
    place.done(&[&words[..], &["--fold", "sum:u64 = c2"]].concat());
    place.done(&["compact", "s"]);
    place
}

fn interrupted(place: &Place) -> Ran {
    let mut command = place.command(&["shell", "s"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut lines = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut lines, b"count t\n").expect("the shell reads");
    let mut first = [0];
    let out = child.stdout.as_mut().expect("a pipe");
    std::io::Read::read_exact(out, &mut first).expect("it answers, so it handles the signal");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
    assert!(sent.success());
    let ran = Ran::from(child.wait_with_output().expect("the program ends"));
    drop(lines);
    ran
}

/// What scripts meet, and the code of each.
fn runs() -> Vec<(&'static str, i32, Ran)> {
    let place = made();
    place.write("bad.csv", "k,n\na,1\nb,many\n");
    let run = |words: &str| place.run(&words.split(' ').collect::<Vec<_>>());
    let mut runs = vec![
        ("done", 0, run("count s t")),
        ("an absent key", 1, run("get s t nokey")),
        ("the head of an absent key", 1, run("head s t nokey")),
        ("the past of an absent key", 1, run("history s t nokey")),
        ("a wrong command line", 2, run("get s")),
        ("a value that does not fit", 2, run("put s t k many")),
        ("a table that is there with other rules", 3, run("create s t --fold max:i64")),
        ("an output file that is there", 3, run("export s t --to rows.csv")),
        ("a bad row", 5, run("import s bad bad.csv --create --key k --fold sum:u64=n")),
        ("a missing store", 6, run("get nowhere t k")),
        ("a missing table", 6, run("get s none k")),
        ("a missing feed", 6, run("feed drop s none")),
        ("a missing file", 7, run("import s t none.csv --key k")),
        ("a missing dump", 7, run("load s none.dump")),
        ("a missing directory", 7, run("export s t --to none/out.csv")),
        ("Ctrl-C", 130, interrupted(&place)),
    ];
    let shell = Shell::of(&place, "s");
    runs.push(("a store that another process writes to", 8, run("put s t k 1")));
    runs.push(("a reader beside it", 0, run("count s t")));
    shell.end();
    place.done(&["compact", "s"]);
    damage(&place);
    runs.push(("damage in a scan", 4, run("scan s t --format csv")));
    runs.push(("damage in a check", 4, run("verify s --deep")));
    runs
}

/// The codes of the table in the guide.
fn listed() -> Vec<i32> {
    let page = std::fs::read_to_string(project().join("docs/GUIDE.md")).expect("the guide is there");
    let section = page.split("## Exit codes").nth(1).expect("a section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok());
    rows.collect()
}

#[test]
fn each_code_is_listed_and_given() {
    let mut given = Vec::new();
    for (what, code, ran) in runs() {
        assert_eq!(ran.code, code, "{what}: {}{}", ran.out, ran.err);
        given.push(code);
    }
    given.sort_unstable();
    given.dedup();
    assert_eq!(listed(), given);
}

#[test]
fn the_help_lists_the_same_codes() {
    let help = Place::new().done(&["--help"]).replace('\n', " ");
    let said = help.split("Exit codes: ").nth(1).expect("they are there");
    let said = said.split_once('.').expect("a sentence").0;
    let codes: Vec<i32> =
        said.split(';').filter_map(|one| one.split_whitespace().next()?.parse().ok()).collect();
    assert_eq!(codes, listed());
}
