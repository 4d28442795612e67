use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jiff::tz::TimeZone;

use super::*;
use crate::args::InputFormat;
use crate::import::dialect::Escape;
use crate::import::row::Next;
use crate::import::rows::{How, Rows};
use crate::import::source::Source;

/// What an expression gives for a row with the columns a, b, ts, url and none; or what is wrong.
fn given(text: &str) -> String {
    let mut expr = match parse::parse(text, &TimeZone::UTC) {
        Ok(expr) => expr,
        Err(wrong) => return wrong,
    };
    let lines = "a,b,ts,url,none,dep delay,log,number\n\
                 7,2.5,2013-01-05T23:17:00Z,/shop/Cart?id=9,,12,05/Jan/2013:23:17:00 +0000,1357427820\n";
    of_row(&mut expr, lines, InputFormat::Csv)
}

/// What an expression gives for a line of JSON.
fn given_json(text: &str) -> String {
    match parse::parse(text, &TimeZone::UTC) {
        Ok(mut expr) => of_row(
            &mut expr,
            "{\"tags\":[\"X\",null,\"y z\"],\"n\":[-1,2],\"k\":\"K\",\"at\":1357427820,\"code\":\"1357427820\"}\n",
            InputFormat::Ndjson,
        ),
        Err(wrong) => wrong,
    }
}

fn of_row(expr: &mut Expr, lines: &str, format: InputFormat) -> String {
    let source = Source {
        reader: Box::new(Cursor::new(lines.to_owned())),
        name: "test".to_owned(),
        inode: None,
        bytes_total: None,
        bytes_read: Arc::new(AtomicU64::new(0)),
        packed: None,
        is_packed: false,
        is_array: false,
        may_grow: false,
        kept: None,
        comment: None,
    };
    let how = How {
        format,
        pattern: None,
        delimiter: None,
        quote: None,
        escape: Escape::Is(None),
        is_multiline: false,
        comment: None,
        header: Some(true),
        words: None,
        is_asked_for: &|_| false,
        nulls: &[],
    };
    let mut rows = Rows::open(source, &how).unwrap();
    if let Err(failure) = expr.bind(&mut |name| rows.slot(name)) {
        return failure.to_string();
    }
    assert!(matches!(rows.advance(), Ok(Next::Row)));
    match expr.value(&rows) {
        Ok(Value::Null) => "null".to_owned(),
        Ok(Value::List(items)) => {
            let texts: Vec<String> =
                items.iter().filter_map(Value::text).map(|text| text.into_owned()).collect();
            format!("[{}]", texts.join("; "))
        }
        Ok(value) => value.text().unwrap().into_owned(),
        Err(bad) => bad.to_string(),
    }
}

#[test]
fn expressions_give_values() {
    for (text, value) in [
        ("a + 1", "8"),
        ("a - b * 2", "2"),
        ("(a - b) * 2", "9"),
        ("a / 2", "3.5"),
        ("(a + 1) / 2", "4"),
        ("a % 4", "3"),
        ("-a", "-7"),
        ("a / 0", "null"),
        ("a > 5", "true"),
        ("a > 5 and b < 2", "false"),
        ("not (a > 5) or b = 2.5", "true"),
        ("a in [1, 7]", "true"),
        ("url == \"x\"", "false"),
        ("a == \"7\"", "true"),
        ("5 == a or a == \"x\"", "false"),
        ("ts > \"2013-01-05\"", "true"),
        ("none > 5", "null"),
        ("none + 1", "null"),
        ("none > 5 and a > 9", "false"),
        ("none > 5 or a > 5", "true"),
        ("coalesce(none, a)", "7"),
        ("if(none, 1, 2)", "2"),
        ("if(a > 1, \"many\", b)", "many"),
        ("`dep delay` + 1", "13"),
        ("day(ts)", "2013-01-05"),
        ("hour(ts, \"America/New_York\")", "2013-01-05T18"),
        ("minute(ts, 5)", "2013-01-05T23:15"),
        ("weekday(ts)", "6"),
        ("hour_of_day(ts)", "23"),
        ("day(none)", "null"),
        ("time(\"24.12.2013\", \"%d.%m.%Y\")", "2013-12-24T00:00:00Z"),
        ("prefix(url, 5)", "/shop"),
        ("suffix(url, 1)", "9"),
        ("lower(url)", "/shop/cart?id=9"),
        ("split(url, \"/\", 2)", "shop"),
        ("split(url, \"/\", -1)", "Cart?id=9"),
        ("split(url, \"/\", 9)", "null"),
        ("regex(url, \"id=(\\d+)\") + 1", "10"),
        ("regex(url, \"[a-z]+\")", "shop"),
        ("matches(url, '^/shop')", "true"),
        ("contains(url, \"Cart\")", "true"),
        ("concat(a, \"-\", none, b)", "7-2.5"),
        ("length(url)", "15"),
        ("round(b)", "3"),
        ("round(1.25, 1)", "1.3"),
        ("floor(b)", "2"),
        ("bucket(a, 5)", "5"),
        ("bucket(b, 0.5)", "2.5"),
    ] {
        assert_eq!(given(text), value, "{text}");
    }
}

#[test]
fn every_other_function_gives_values() {
    for (text, value) in [
        ("year(ts)", "2013"),
        ("year(ts) >= 2013", "true"),
        ("month(ts)", "2013-01"),
        ("second(ts)", "2013-01-05T23:17:00"),
        ("epoch(ts)", "1357427820"),
        ("epoch_ms(ts)", "1357427820000"),
        ("time(1357427820)", "2013-01-05T23:17:00Z"),
        ("time(1357427820250)", "2013-01-05T23:17:00.25Z"),
        ("time(1357427820250000)", "2013-01-05T23:17:00.25Z"),
        ("time(1357427820250000001)", "2013-01-05T23:17:00.250000001Z"),
        ("upper(url)", "/SHOP/CART?ID=9"),
        ("trim(\"  x \")", "x"),
        ("starts_with(url, \"/shop\")", "true"),
        ("ends_with(url, \"/shop\")", "false"),
        ("abs(0 - a)", "7"),
        ("abs(0 - b)", "2.5"),
        ("ceil(b)", "3"),
        ("number(\"12\") + 1", "13"),
        ("number(\"1.50\")", "1.5"),
    ] {
        assert_eq!(given(text), value, "{text}");
    }
}

#[test]
fn every_function_is_in_a_table_of_these_tests() {
    let tests = include_str!("tests.rs");
    for (name, _) in function::FUNCTIONS {
        assert!(tests.contains(&format!("(\"{name}(")), "{name}");
    }
}

#[test]
fn times_are_compared_as_times() {
    for (text, value) in [
        // In whatever form a column has them.
        ("log > \"2013-01-05\"", "true"),
        ("log > \"2013-01-06\"", "false"),
        ("log < \"2013-01-06T00:00:00Z\"", "true"),
        ("log == \"2013-01-05T23:17:00Z\"", "true"),
        ("log != \"2013-01-05T23:17:00Z\"", "false"),
        ("url == \"2013-01-05T23:17:00Z\"", "false"),
        ("log == ts", "false"), // two texts: it is not known what they are
        ("time(log) == ts", "true"),
        ("time(log) >= time(ts)", "true"),
        ("ts >= time(log)", "true"),
        // Fractions and offsets.
        ("time(ts) < \"2013-01-05T23:17:00.5Z\"", "true"),
        ("time(\"2013-01-05T23:17:00.5Z\") > time(ts)", "true"),
        ("time(ts) == \"2013-01-06T00:17:00+01:00\"", "true"),
        ("time(ts) in [\"2013-01-06T00:17:00+01:00\"]", "true"),
        // The clocks of a zone go back: 02:30+02:00 is before 02:00+01:00.
        (
            "time(\"2026-10-25T00:30:00Z\", \"Europe/Berlin\") >= time(\"2026-10-25T01:00:00Z\", \"Europe/Berlin\")",
            "false",
        ),
        // What a time is cut to is its beginning.
        ("day(ts) >= \"2013-01-05\"", "true"),
        ("day(ts) == \"2013-01-05\"", "true"),
        ("day(ts) > \"2013-01-05T05:00\"", "false"),
        ("month(ts) in [\"2013-01\", \"2013-02\"]", "true"),
        ("hour(ts) > \"2013-01-05T22\"", "true"),
        ("day(ts, \"Europe/Berlin\") == \"2013-01-06\"", "true"),
        ("time(none) > \"2013-01-05\"", "null"),
        // The form of a literal is any that is known.
        ("ts > \"05/Jan/2013:00:00:00 +0000\"", "true"),
        ("time(ts) - time(\"2013-01-05T23:16:00Z\")", "60"),
        ("time(ts) - time(\"2013-01-05T23:16:59.5Z\")", "0.5"),
        // In a list each is compared as by `==`.
        ("log in [\"2013-01-05T23:17:00Z\"]", "true"),
        ("log in [\"n/a\", \"2013-01-06T00:17:00+01:00\"]", "true"),
        ("log in [\"2013-01-06T23:17:00Z\", \"n/a\"]", "false"),
        ("log in [\"05/Jan/2013:23:17:00 +0000\", a]", "true"),
        ("url in [\"2013-01-05T23:17:00Z\", \"/shop/Cart?id=9\"]", "true"),
        ("url in [\"2013-01-05T23:17:00Z\"]", "false"),
        ("ts in [time(log)]", "true"),
        ("ts in [\"x\", day(ts), time(log)]", "true"),
        ("ts in [\"x\", day(ts)]", "false"),
        ("ts in [day(ts, \"Europe/Berlin\"), time(\"2013-01-06T00:17:00\", \"Europe/Berlin\")]", "true"),
        ("year(ts) in [2012, 2013]", "true"),
        ("none in [\"2013-01-05T23:17:00Z\", \"x\"]", "null"),
        ("not (a in [])", "true"),
        // Texts stay texts, and so do numbers in quotes.
        ("split(number, \"x\", 1) > \"1357427819\"", "true"),
        ("split(number, \"x\", 1) > \"1357427820\"", "false"),
        ("split(number, \"x\", 1) > \"20130105\"", "false"),
        ("number == \"1357427820\"", "true"),
        ("number == \"2013-01-05T23:17:00Z\"", "true"),
        ("concat(url) > \"2013-01-05\"", "false"),
        ("prefix(ts, 10) == \"2013-01-05\"", "true"),
        ("ts == \"2013-01-05\"", "false"),
    ] {
        assert_eq!(given(text), value, "{text}");
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (text, part) in [
        ("a >", "after `a >`: expected a value"),
        ("day(ts", "expected `)`"),
        ("days(ts)", "there is no function `days` (did you mean `day`?"),
        ("day()", "`day` takes (time, zone), not 0 arguments"),
        ("day(ts, \"Mars\")", "there is no time zone `Mars`"),
        ("regex(url, \"(\")", "a wrong pattern"),
        ("a b", "expected an operator, found `b`"),
        ("'a", "the quote ' is not closed"),
        ("aa + 1", "has no column `aa`"),
        ("url + 1", "expected a number, found `/shop/Cart?id=9`"),
        ("url > 1", "expected a number, found `/shop/Cart?id=9`"),
        ("url == 5", "expected a number, found `/shop/Cart?id=9` (texts are compared with a text in quotes"),
        ("5 != url", "expected a number, found `/shop/Cart?id=9`"),
        ("url in [1, 2]", "expected a number, found `/shop/Cart?id=9`"),
        ("url == true", "expected true or false, found `/shop/Cart?id=9`"),
        ("length(url) == \"x\"", "a number is never the text \"x\""),
        ("weekday(ts) in [\"Mon\"]", "a number is never the text \"Mon\""),
        ("\"x\" < 5", "a number is never the text \"x\""),
        ("a > \"10\"", "after `a > \"10\"`: \"10\" is a text"),
        ("hour_of_day(ts) == \"05\"", "numbers stand without quotes"),
        ("day(url)", "expected a time (2013-01-01T05:15:00Z"),
        ("9223372036854775807 + a", "is no whole number of 64 bits"),
        ("not a", "expected true or false, found `7`"),
        ("time(ts) > \"yesterday\"", "after `time(ts) > \"yesterday\"`: expected a time beside a time"),
        ("day(ts) == \"05.01.2013\"", "expected a time beside a time"),
        ("day(ts) in [\"5th\"]", "expected a time beside a time"),
        ("url > \"2013-01-05\"", "expected a time (2013-01-01T05:15:00Z"),
        ("time(ts) > \"1357427820\"", "found \"1357427820\"; a number is made one: time(1357427820)"),
        ("day(ts) in [\"2013-01-05\", \"1357427820\"]", "expected a time beside a time"),
        ("time(ts) in [\"2013-01-05\", \"noon\"]", "expected a time beside a time"),
        ("time(ts) > time(\"noon\")", "after `time(ts) > time(\"noon\")`: expected a time"),
    ] {
        let given = given(text);
        assert!(given.contains(part), "{text}: {given}");
    }
}

#[test]
fn functions_of_a_list_apply_to_its_elements_or_are_refused() {
    for (text, value) in [
        ("lower(tags)", "[x; y z]"),
        ("upper(lower(tags))", "[X; Y Z]"),
        ("prefix(tags, 1)", "[X; y]"),
        ("split(tags, \" \", 2)", "[z]"),
        ("regex(tags, \"[a-z]$\")", "[z]"),
        ("abs(n)", "[1; 2]"),
        ("bucket(n, 10)", "[-10; 0]"),
        ("length(tags)", "3"),
        ("contains(tags, \"X\")", "true"),
        ("contains(tags, \"z\")", "false"),
        ("coalesce(none, tags)", "[X; y z]"),
        ("if(k == \"K\", tags, 1)", "[X; y z]"),
        ("lower(k)", "k"),
    ] {
        assert_eq!(given_json(text), value, "{text}");
    }
    for text in ["concat(tags, \"x\")", "matches(tags, \"x\")", "starts_with(tags, \"x\")", "prefix(k, tags)"]
    {
        let given = given_json(text);
        assert!(given.contains("found a list"), "{text}: {given}");
    }
}

#[test]
fn a_number_in_quotes_is_no_time_unless_that_is_said() {
    for (text, value) in [
        ("at > \"2013-01-05\"", "true"),
        ("at == \"2013-01-05T23:17:00Z\"", "true"),
        ("code == \"2013-01-05T23:17:00Z\"", "false"),
        ("code in [\"2013-01-05T23:17:00Z\"]", "false"),
        ("time(code) == \"2013-01-05T23:17:00Z\"", "true"),
        ("day(code)", "2013-01-05"),
    ] {
        assert_eq!(given_json(text), value, "{text}");
    }
    let wrong = given_json("code > \"2013-01-05\"");
    assert!(wrong.contains("found `1357427820` in quotes; a number is made one: time(…)"), "{wrong}");
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
    assert!(given(&deep).contains("nested too deeply"));
}

#[test]
fn constants_are_known_that_a_column_may_be_called_like() {
    assert_eq!(parse::bare_constants("2024 > 7 and true"), ["2024", "7", "true"]);
    assert_eq!(parse::bare_constants("(2024) > a or (true)"), [""; 0]);
    assert_eq!(parse::bare_constants("abs(2024) == `7`"), ["2024"]);
    assert_eq!(parse::bare_constants("a in [1, \"2\"] and (null) or not (3)"), ["1"]);
}
