//! What a person sees on a terminal, and nowhere else: questions, a pager, tables of its width,
//! completion.
#![cfg(target_os = "linux")]

mod support;

use support::{FOLDDB, Place, Screen};

fn make(place: &Place) {
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    place.done(&["fold", "s", "t", "a", "1"]);
    place.done(&["fold", "s", "t", "b", "1"]);
}

#[test]
fn on_a_terminal_a_table_is_dropped_only_if_the_answer_is_yes() {
    let place = Place::new();
    make(&place);
    for (answer, code, said) in [
        ("\n", 3, "folddb: table t is not dropped"),
        ("n\n", 3, "folddb: table t is not dropped"),
        ("yess\n", 3, "folddb: table t is not dropped"),
        ("y\n", 0, "dropped table t"),
    ] {
        assert_eq!(place.done(&["count", "s", "t"]), "2\n");
        let Some(mut screen) = Screen::of(&place, &format!("exec {FOLDDB} drop s t")) else { return };
        screen.shows("drop table t with 2 records? [y/N] ", 1);
        screen.press(answer);
        screen.shows(said, 1);
        screen.ends_with(code);
    }
    assert_eq!(place.run(&["count", "s", "t"]).code, 6);
}

#[test]
fn at_the_prompt_of_the_shell_it_is_asked_too() {
    // A terminal that moves no cursor, whose lines the shell reads ahead, and one with an editor.
    for term in ["dumb", "xterm"] {
        let place = Place::new();
        make(&place);
        let line = format!("TERM={term} exec {FOLDDB} shell s");
        let Some(mut screen) = Screen::of(&place, &line) else { return };
        screen.shows("folddb> ", 1);
        screen.press("drop t\n");
        screen.shows("drop table t with 2 records? [y/N] ", 1);
        screen.press("n\n");
        screen.shows("folddb: table t is not dropped", 1);
        screen.press("drop t --yes\n");
        screen.shows("dropped table t", 1);
        screen.press("create u --fold sum:u64\n");
        screen.shows("created table u", 1);
        screen.press("drop u\n");
        screen.shows("drop table u with 0 records? [y/N] ", 1);
        screen.press("y\n");
        screen.shows("dropped table u", 1);
        screen.press("exit\n");
        screen.ends_well();
    }
}

#[test]
fn ctrl_c_at_the_question_of_the_prompt_is_a_no_and_takes_no_line_with_it() {
    let place = Place::new();
    make(&place);
    let Some(mut screen) = Screen::of(&place, &format!("TERM=xterm exec {FOLDDB} shell s")) else { return };
    screen.shows("folddb> ", 1);
    screen.press("drop t\r");
    screen.shows("drop table t with 2 records? [y/N] ", 1);
    screen.press("\x03");
    screen.shows("folddb: table t is not dropped", 1);
    screen.press("count t; exit\r");
    screen.shows("\n2\r\n", 1);
    screen.ends_well();
}

#[test]
fn nothing_is_asked_with_yes_nor_without_a_terminal() {
    let place = Place::new();
    make(&place);
    if let Some(screen) = Screen::of(&place, &format!("exec {FOLDDB} drop s t --yes")) {
        screen.shows("dropped table t", 1);
        screen.ends_well();
        make(&place);
    }
    assert_eq!(place.done(&["drop", "s", "t"]), "dropped table t\n"); // stdin is no terminal
}

#[test]
fn a_value_does_not_command_the_terminal() {
    let place = Place::new();
    place.done(&["create", "s", "t"]);
    place.done(&["put", "s", "t", "a", "red\u{1b}[31m\u{7}\nand\tmore"]);
    assert_eq!(place.done(&["get", "s", "t", "a"]), "red\u{1b}[31m\u{7}\nand\tmore\n"); // as it is
    if let Some(screen) = Screen::of(&place, &format!("exec {FOLDDB} get s t a")) {
        screen.shows("red\\u{1b}[31m\\u{7}", 1);
        screen.ends_well();
    }
}

/// A line of `sh` on a terminal of ten lines, with a pager that marks what it shows.
fn on_ten_lines(line: &str) -> String {
    format!("stty rows 10 cols 60; export TERM=xterm PAGER='sed s/^/paged:/'; {line}")
}

/// A store with a table of this many rows.
fn with_rows(rows: u64) -> Place {
    let place = Place::new();
    place.write("rows.csv", (0..rows).map(|n| format!("key{n},{n}\n")).collect::<String>());
    let words = ["import", "s", "t", "rows.csv", "--create", "--no-header", "--key", "c1"];
    place.done(&[&words[..], &["--fold", "sum:u64 = c2"]].concat());
    place
}

#[test]
fn what_is_more_than_a_screen_goes_through_a_pager() {
    let place = with_rows(40);
    for (line, lines_paged) in [
        (format!("{FOLDDB} scan s t"), 43), // header, rule, 40 rows, their number
        (format!("{FOLDDB} scan s t --limit 3"), 0),
        (format!("{FOLDDB} scan s t --no-pager"), 0),
        (format!("{FOLDDB} scan s t | cat"), 0),
        (format!("PAGER= {FOLDDB} scan s t"), 0),
        (format!("TERM=dumb {FOLDDB} scan s t"), 0),
        (format!("printf 'scan t\n' | {FOLDDB} shell s"), 0),
    ] {
        let Some(screen) = Screen::of(&place, &on_ten_lines(&line)) else { return };
        let shown = screen.all_until(0);
        assert_eq!(shown.matches("paged:").count(), lines_paged, "{line}: {shown}");
        assert!(shown.contains("rows)"), "{line}: {shown}");
    }
}

#[test]
fn a_pager_that_is_left_early_ends_the_command_well() {
    let place = with_rows(20_000);
    let line = format!("stty rows 10 cols 60; export TERM=xterm PAGER='head -n 3'; exec {FOLDDB} scan s t");
    let Some(screen) = Screen::of(&place, &line) else { return };
    let shown = screen.all_until(0);
    assert!(shown.lines().count() <= 4 && shown.contains("key0"), "{shown}");
    let line = format!("stty rows 10 cols 60; export TERM=xterm PAGER=no-such-pager; exec {FOLDDB} scan s t");
    if let Some(screen) = Screen::of(&place, &line) {
        let shown = screen.all_until(0); // without one
        assert!(shown.contains("key0") && shown.lines().count() > 20_000, "{} lines", shown.lines().count());
    }
}

#[test]
fn rows_fit_the_terminal() {
    let place = Place::new();
    place.done(&["create", "s", "t"]);
    place.done(&["put", "s", "t", "key", &"a long text ".repeat(9)]);
    for (columns, upright) in [(60, false), (12, true)] {
        let line = format!("stty rows 10 cols {columns}; exec {FOLDDB} scan s t");
        let Some(screen) = Screen::of(&place, &line) else { return };
        let shown = screen.all_until(0);
        assert!(shown.lines().all(|line| line.trim_end().chars().count() <= columns), "{shown}");
        assert_eq!(shown.contains("── 1 ──"), upright, "{shown}");
    }
}

#[test]
fn the_prompt_completes_verbs_options_tables_and_keys() {
    let place = Place::new();
    place.done(&["create", "s", "visits", "--key", "tuple(text,text)", "--fold", "sum:u64"]);
    place.done(&["fold", "s", "visits", "UA", "New York", "5"]);
    place.done(&["fold", "s", "visits", "US", "LGA", "6"]);
    let line = format!("stty rows 20 cols 100; export TERM=xterm; exec {FOLDDB} shell s");
    let Some(mut screen) = Screen::of(&place, &line) else { return };
    screen.shows("folddb> ", 1);
    screen.press("hist\tvis\tUA \t--lim\t1\r");
    screen.shows("history visits UA 'New York' --limit ", 1);
    screen.shows("1  -                     5", 1);
    screen.press("get visits U\tS\tL\t\r"); // U alone is both
    screen.shows("get visits US LGA ", 1);
    screen.shows("6\r\n", 1);
    screen.press("scan visits --prefix US | tr L l; exit\r");
    screen.shows("lGA", 1);
    screen.ends_well();
}
