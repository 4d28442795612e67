use super::*;

#[test]
fn words_are_split_as_shells_do() {
    let words = |line: &str| split(line).unwrap();
    assert_eq!(words("get delays  UA\tEWR"), ["get", "delays", "UA", "EWR"]);
    assert_eq!(words(r#"set t "a b" 'c "d"' e\ f "" # rest"#), ["set", "t", "a b", "c \"d\"", "e f", ""]);
    assert_eq!(words(r#""a\"b\\c\n" x#y"#), ["a\"b\\c\\n", "x#y"]);
    assert_eq!(words("  # nothing"), [""; 0]);
    assert!(split("get 'x").is_err());
}

#[test]
fn help_fits_one_screen() {
    assert!(HELP.lines().count() <= 22, "a screen has 24 lines");
    assert!(HELP.lines().all(|line| line.len() <= 100));
    for verb in words::verbs().iter().filter(|verb| *verb != "help" && *verb != "bench") {
        assert!(HELP.contains(verb.as_str()), "{verb} is missing");
    }
}
