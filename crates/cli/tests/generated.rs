//! What is generated from the definition of the arguments: help, completions, the man page; and the
//! benches, which the command line only offers.

mod support;

use support::Place;

/// The verbs, as the help of the program lists them in its groups.
fn verbs(place: &Place) -> Vec<String> {
    let help = place.done(&["--help"]);
    let listed = help.split("\nOptions:").next().unwrap_or_default().lines();
    let verbs = listed.filter_map(|line| line.strip_prefix("  ")?.split_once("  ").map(|(verb, _)| verb));
    let verbs: Vec<String> = verbs.filter(|verb| *verb != "help").map(str::to_owned).collect();
    assert!(verbs.len() > 40, "{verbs:?}");
    verbs
}

#[test]
fn every_verb_has_help() {
    let place = Place::new();
    for verb in verbs(&place) {
        let own = place.done(&[&verb, "--help"]);
        assert!(own.contains(&format!("Usage: folddb {verb}")), "{own}");
    }
}

#[test]
fn completions_and_the_man_page_know_every_verb() {
    let place = Place::new();
    let verbs = verbs(&place);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.done(&["completions", shell]);
        assert!(verbs.iter().all(|verb| script.contains(verb)), "{shell}");
    }
    let man = place.done(&["man"]);
    let plain = man.replace('\\', "");
    assert!(man.starts_with(".ie") || man.starts_with(".TH"), "{}", &man[..80]);
    assert!(verbs.iter().all(|verb| plain.contains(&format!("folddb-{verb}(1)"))));
}

#[test]
fn each_verb_has_a_man_page_of_its_own() {
    let place = Place::new();
    place.done(&["man", "--dir", "man/man1"]);
    assert!(place.read("man/man1/folddb.1").contains("folddb"));
    for verb in verbs(&place) {
        let page = place.read(&format!("man/man1/folddb-{verb}.1"));
        assert!(page.contains(".SH SYNOPSIS"), "{verb}: {page}");
    }
    place.write("file", "");
    let refused = place.run(&["man", "--dir", "file"]);
    assert_eq!(refused.code, 3);
    assert!(refused.err.contains("file"), "{}", refused.err);
}

#[test]
fn benches_verify_what_they_leave() {
    let place = Place::new();
    let names = place.json(&["bench"]);
    assert!(names.as_array().is_some_and(|names| names.contains(&"hugedb".into())));
    let report = place.json(&["bench", "drain", "--scale", "0.001"]);
    assert_eq!(report["verified"], true);
    let unknown = place.run(&["bench", "hugdb"]);
    assert_eq!(unknown.code, 2);
}
