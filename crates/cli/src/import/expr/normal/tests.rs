use super::*;

#[test]
fn what_means_the_same_is_written_the_same() {
    for (typed, normal) in [
        ("day( time )", "day(time)"),
        ("status>=500", "status >= 500"),
        ("a - -1", "a - -1"),
        ("-a+b", "-a + b"),
        ("f(-1,- b)", "f(-1, -b)"),
        ("country='DE'&&ms<>120", "country == \"DE\" and ms != 120"),
        ("not(a||b)", "not (a or b)"),
        ("!a", "not a"),
        ("x in[1,'b',-2]", "x in [1, \"b\", -2]"),
        ("`x`>1", "x > 1"),
        ("`a b`>1", "`a b` > 1"),
        ("`true` == x", "`true` == x"),
        (r#"regex(t,"id=(\d+)")"#, r#"regex(t, "id=(\d+)")"#),
        (r#"t == 'a"b\\'"#, r#"t == "a\"b\\""#),
        ("1.50*x", "1.5 * x"),
        ("split(path,\"/\",2)", "split(path, \"/\", 2)"),
    ] {
        assert_eq!(expression(typed), normal);
        assert_eq!(words_of(normal), words_of(&expression(normal)), "{normal}");
        assert_eq!(expression(normal), normal);
    }
}

fn words_of(text: &str) -> Vec<Word> {
    words(text).unwrap().into_iter().map(|(_, word)| word).collect()
}

#[test]
fn the_name_of_a_column_stays_as_it_is() {
    assert_eq!(source(" user-agent "), "user-agent");
    assert_eq!(source("c  d"), "c  d");
    assert_eq!(source("a -b>1"), "a - b > 1");
}
