use super::*;

fn line(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let line = put_into(&words, Path::new("DB"));
    line.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_store_comes_after_the_verb() {
    for (typed, whole) in [
        ("get t k", "folddb get DB t k"),
        ("--json get t k", "folddb --json get DB t k"),
        ("--memory 1MiB --json get t k", "folddb --memory 1MiB --json get DB t k"),
        ("--memory=1MiB get t k", "folddb --memory=1MiB get DB t k"),
        ("index add t i:value", "folddb index add DB t i:value"),
        ("feed list", "folddb feed list DB"),
        ("backup place", "folddb backup DB place"),
        ("check-fold --table t", "folddb check-fold --store DB --table t"),
        ("shell", "folddb shell DB"),
    ] {
        assert_eq!(line(typed), whole);
    }
}

#[test]
fn a_verb_that_takes_no_store_gets_none() {
    for typed in [
        "",
        "--version",
        "help get",
        "bench osmos",
        "man",
        "completions bash",
        "backup list place",
        "restore place new",
        "check-fold sum:u64",
        "check-fold --store other --table t",
    ] {
        assert_eq!(line(typed), format!("folddb {typed}").trim_end());
    }
}
