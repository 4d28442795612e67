use super::*;

#[test]
fn names_of_columns_are_no_expressions() {
    for name in ["a", "dep delay", "user-agent", "a/b", "`a > b`", "\"x, y\"", "é", "a.b", "/a/b"] {
        assert!(!is_expression(name), "{name}");
    }
    for text in ["day(ts)", "a > 5", "a - b", "a=1", "`dep delay` + 1", "not ok", "a in [1]", "a and b"] {
        assert!(is_expression(text), "{text}");
    }
}

#[test]
fn lists_are_split_where_no_bracket_or_quote_is_open() {
    assert_eq!(at_commas("a,minute(ts, 5), `x,y`"), ["a", "minute(ts, 5)", " `x,y`"]);
    assert_eq!(at_commas("split(a, \"\\\",\", 1),b"), ["split(a, \"\\\",\", 1)", "b"]);
}

#[test]
fn sources_of_folds_are_taken_out_if_they_are_more_than_a_column() {
    let marked = |text: &str| sources(text);
    assert_eq!(marked("sum:u64 = n"), ("sum:u64 = n".to_owned(), vec![]));
    let (text, found) =
        marked("hits: sum:u64 = 1, slow: sum:u64 = ms > 500, t: top:5 = delay, tail, n: sum:u64");
    assert_eq!(text, "hits: sum:u64 = 1, slow: sum:u64 = `\u{1}0`, t: top:5 = `\u{1}1`, n: sum:u64");
    assert_eq!(found, [vec!["ms > 500".to_owned()], vec!["delay".to_owned(), "tail".to_owned()]]);
    let (text, found) = marked("{a: max:i64 = if(x > 1, 2, 3), b: set}");
    assert_eq!(text, "{a: max:i64 = `\u{1}0`, b: set}");
    assert_eq!(found, [vec!["if(x > 1, 2, 3)".to_owned()]]);
    let (text, _) = marked("set = lower(name)");
    assert_eq!(text, "set = `\u{1}0`");
}
