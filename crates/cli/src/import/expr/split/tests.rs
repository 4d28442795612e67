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

#[test]
fn count_is_short_for_a_sum_of_ones() {
    let text = |fold: &str| sources(fold).0;
    assert_eq!(text("count"), "sum:u64=1");
    assert_eq!(text("rows: count , d: stats:f64 = delay"), "rows: sum:u64=1, d: stats:f64 = delay");
    assert_eq!(text("{rows: count}"), "{rows: sum:u64=1}");
    for other in ["count: sum:u64", "n: sum:u64 = count", "count:x:count", "discount"] {
        assert_eq!(text(other), other);
    }
}

#[test]
fn a_message_has_the_sources_as_they_were_typed() {
    let fold = "slow: sum:u64 = ms > 500, d: stats = delay, t: top:5 = delay, tail";
    let (text, sources) = sources(fold);
    let at = text.find("stats").unwrap();
    let message = without_marks(&format!("wrong:\n  {text}\n  {}^ here", " ".repeat(at)), &sources);
    let lines: Vec<&str> = message.split('\n').collect();
    assert!(!message.contains(MARK) && lines[1].contains("slow: sum:u64 = ms > 500, d: stats"), "{message}");
    assert_eq!(lines[2].find('^'), lines[1].find("stats"), "{message}");
}

#[test]
fn a_minus_before_a_name_is_an_expression() {
    assert!(is_expression("-x") && is_expression("-a.b"));
    assert!(!is_expression("-1.5") && !is_expression("-") && !is_expression("x-y"));
}
