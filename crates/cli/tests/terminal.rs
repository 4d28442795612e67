//! What a person sees on a terminal: questions are asked there, and nowhere else.
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
    assert_eq!(place.run(&["count", "s", "t"]).code, 1);
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
