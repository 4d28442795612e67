use super::*;

#[test]
fn quotes_group_and_backslashes_escape() {
    for (line, words) in [
        ("get t k", vec!["get", "t", "k"]),
        ("  get\tt  ", vec!["get", "t"]),
        (r#"put t 'a b' "c d"e"#, vec!["put", "t", "a b", "c de"]),
        (r#"put t '' """#, vec!["put", "t", "", ""]),
        (r"put t a\ b \'c \\", vec!["put", "t", "a b", "'c", r"\"]),
        (r#"put t "a\"b\\c\d" 'e\"'"#, vec!["put", "t", r#"a"b\c\d"#, r#"e\""#]),
        ("put t a#b '#' \\# # put u", vec!["put", "t", "a#b", "#", "#"]),
        ("# all of it's a comment", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(split(line).unwrap(), words, "{line}");
    }
    for line in ["get 'x", "get \"x", r#"get "x\""#, "get 'x\\"] {
        assert!(split(line).is_err(), "{line}");
    }
}

#[test]
fn semicolons_outside_of_quotes_are_between_commands() {
    for (line, commands) in [
        ("get t a; get t b", vec!["get t a", " get t b"]),
        ("get t ';'; count t", vec!["get t ';'", " count t"]),
        (r#"get t "\";"; count t"#, vec![r#"get t "\";""#, " count t"]),
        (r"get t \;a", vec![r"get t \;a"]),
        ("count t # it's; or not", vec!["count t # it's; or not"]),
        ("count t;# no; more", vec!["count t", "# no; more"]),
        ("get t a#b;count t", vec!["get t a#b", "count t"]),
        ("", vec![""]),
    ] {
        assert_eq!(commands_of(line), commands, "{line}");
    }
}

#[test]
fn the_word_that_is_typed_may_be_within_quotes() {
    for (line, begin, word, quote, separated) in [
        ("get t ", 6, "", None, 0),
        ("get t k", 6, "k", None, 0),
        ("get t New\\ Y", 6, "New Y", None, 0),
        ("get t 'New Y", 6, "New Y", Some(('\'', 0)), 0),
        ("get t a\"New Y", 6, "aNew Y", Some(('"', 1)), 0),
        ("get t 'a'\"b c", 6, "ab c", Some(('"', 1)), 0),
        ("get t 'a b' ", 12, "", None, 0),
        ("get t 2026-11-22T08:3", 6, "2026-11-22T08:3", None, 14),
        ("get t 'a:b':c", 6, "a:b:c", None, 4),
    ] {
        let typing = Typing::of(line, ":=");
        let (word, before) = (word.to_owned(), typing.before.clone());
        assert_eq!(typing, Typing { before, begin, word, quote, separated }, "{line}");
        assert_eq!(typing.before[..2], ["get", "t"], "{line}");
    }
    assert_eq!(Typing::of("get t 'New York' k", "").before, ["get", "t", "New York"]);
}
