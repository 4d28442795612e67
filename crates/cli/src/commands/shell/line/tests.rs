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
