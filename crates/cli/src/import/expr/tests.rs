use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jiff::tz::TimeZone;

use super::*;
use crate::args::InputFormat;
use crate::import::row::Next;
use crate::import::rows::How;
use crate::import::source::Source;

/// What an expression gives for a row with the columns a, b, ts, url and none; or what is wrong.
fn given(text: &str) -> String {
    let mut expr = match parse::parse(text, &TimeZone::UTC) {
        Ok(expr) => expr,
        Err(wrong) => return wrong,
    };
    let lines = "a,b,ts,url,none,dep delay\n7,2.5,2013-01-05T23:17:00Z,/shop/Cart?id=9,,12\n";
    let source = Source {
        reader: Box::new(Cursor::new(lines.to_owned())),
        name: "test".to_owned(),
        inode: None,
        bytes_total: None,
        bytes_read: Arc::new(AtomicU64::new(0)),
        packed: None,
        is_packed: false,
    };
    let how = How { format: InputFormat::Csv, pattern: None, delimiter: None, header: true, nulls: &[] };
    let mut rows = Rows::open(source, &how).unwrap();
    if let Err(failure) = expr.bind(&mut |name| rows.slot(name)) {
        return failure.to_string();
    }
    assert!(matches!(rows.advance(), Ok(Next::Row)));
    match expr.value(&rows) {
        Ok(Value::Null) => "null".to_owned(),
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
    ] {
        let given = given(text);
        assert!(given.contains(part), "{text}: {given}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
    assert!(given(&deep).contains("nested too deeply"));
}
