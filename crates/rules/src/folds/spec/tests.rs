use super::*;
use proptest::prelude::*;

fn refused(text: &str) -> ParseError {
    match parse(text) {
        Ok(fold) => panic!("{text} is {}", fold.spec()),
        Err(error) => error,
    }
}

#[test]
fn every_spec_is_its_own_name() {
    let more = [
        "matmul:2:f64",
        "matmul:256:i64",
        "top:3:i64",
        "hll:4",
        "hll:18",
        "quantiles:0.001",
        "append:;",
        "append:\", \"",
        "append:\"\\x00\\xff\\n\\\"\"",
        "{a: sum:u64}",
        "{\"dep delay\": stats:f64, b: {c: min:f64, d: append:\",\"}}",
    ];
    for spec in SPECS.iter().chain(&more) {
        assert_eq!(parse(spec).unwrap().spec(), **spec);
    }
}

#[test]
fn spellings_come_down_to_one() {
    for (written, canonical) in [
        ("  sum:u64 ", "sum:u64"),
        ("quantiles:0.01", "quantiles"),
        ("top:5:f64", "top:5"),
        ("append:", "append"),
        ("append:,", "append:\",\""),
        ("append:, ", "append:\", \""),
        ("append:\\n", "append:\"\\n\""),
        ("append::", "append:\":\""),
        ("{a:sum:u64,b:hll:12,}", "{a: sum:u64, b: hll:12}"),
        ("{ \"a\" : sum:u64 }", "{a: sum:u64}"),
        ("{`a`: sum:u64, `b c`: hll:12}", "{a: sum:u64, \"b c\": hll:12}"),
    ] {
        assert_eq!(parse(written).unwrap().spec(), canonical, "{written}");
    }
}

#[test]
fn errors_point_at_the_place_and_suggest() {
    for (text, at, suggestion) in [
        ("", 0, None),
        ("sum", 3, Some("sum:i64")),
        ("sum:", 4, None),
        ("sum:u46", 4, Some("sum:u64")),
        ("sum:int", 4, Some("sum:i64")),
        ("max:string", 4, Some("max:bytes")),
        ("smu:u64", 0, Some("sum:i64")),
        ("mean", 0, Some("stats:f64")),
        ("Union", 0, Some("set")),
        ("quantile", 0, Some("quantiles")),
        ("jsonmerge", 0, Some("json-merge")),
        ("zebra", 0, None),
        ("hll:3", 4, None),
        ("hll:+9", 4, None),
        ("hll", 3, Some("hll:12")),
        ("top:0", 4, None),
        ("matmul:2", 6, Some("matmul:2:f64")),
        ("matmul:2:u64", 9, None),
        ("quantiles:2", 10, None),
        ("replace:1", 8, None),
        ("sum:u64:1", 8, None),
        ("sum:u64 x", 8, None),
        ("{}", 1, None),
        ("{a}", 2, None),
        ("{a: sum:u64", 11, None),
        ("{a: sum:u64, a: set}", 13, None),
        ("{a: sum:u64 b: set}", 12, None),
        ("{a: {b: smu:u64}}", 8, Some("sum:i64")),
        ("{\"a: sum:u64}", 1, None),
        ("append:\\q", 7, None),
        ("append:\\xg0", 7, None),
        ("{é: nope}", 5, None),
    ] {
        let error = refused(text);
        assert_eq!((error.at(), error.suggestion()), (at, suggestion), "{text}: {error}");
    }
}

#[test]
fn an_error_shows_the_place() {
    let shown = refused("{a: sum:u64, é: sum:u46}").to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "expected a number type for `sum`: i64, u64, i128, f64; found `u46`");
    assert_eq!(lines[1], "  {a: sum:u64, é: sum:u46}");
    assert_eq!(lines[2], "                      ^ did you mean `sum:u64`?");
}

#[test]
fn nesting_and_fields_are_bounded() {
    let deep = |depth: usize| format!("{}set{}", "{a: ".repeat(depth), "}".repeat(depth));
    assert!(parse(&deep(DEPTH_MAX)).is_ok());
    assert_eq!(refused(&deep(DEPTH_MAX + 1)).at(), 4 * DEPTH_MAX);
    refused(&"{a: ".repeat(100_000));
    let wide = |fields: usize| {
        format!("{{{}}}", (0..fields).map(|i| format!("f{i}: set")).collect::<Vec<_>>().join(","))
    };
    assert!(parse(&wide(FIELDS_MAX)).is_ok());
    refused(&wide(FIELDS_MAX + 1));
}

#[test]
fn columns_say_where_operands_come_from() {
    let column = |name: &str| Some(Source::Column(name.to_owned()));
    let literal = |text: &str| Some(Source::Literal(text.to_owned()));
    for text in [
        "flights: sum:u64 = 1, delay: stats:f64 = dep_delay, tails: set = `tail, num`, b: set = \"x\", c: sum:i64",
        "{flights: sum:u64=1, delay: stats:f64=dep_delay, tails: set=`tail, num`, b: set=\"x\", c: sum:i64}",
    ] {
        match text.parse::<Columns>() {
            Ok(Columns::Record(record, sources)) => {
                assert_eq!(
                    record.fold().spec(),
                    "{flights: sum:u64, delay: stats:f64, tails: set, b: set, c: sum:i64}"
                );
                let expected = [literal("1"), column("dep_delay"), column("tail, num"), literal("x"), None];
                assert_eq!(sources, expected);
            }
            Ok(Columns::Plain(fold, _)) => panic!("{}", fold.spec()),
            Err(error) => panic!("{error}"),
        }
    }
    match "stats:f64 = dep_delay".parse::<Columns>() {
        Ok(Columns::Plain(fold, source)) => {
            assert_eq!((fold.spec().as_str(), source), ("stats:f64", column("dep_delay")));
        }
        Ok(Columns::Record(..)) => panic!("not a record"),
        Err(error) => panic!("{error}"),
    }
    let wrong = |text: &str| {
        let error = text.parse::<Columns>().err()?;
        Some((error.at(), error.suggestion().map(str::to_owned)))
    };
    assert_eq!(wrong("delay: stats:f46 = x"), Some((13, Some("stats:f64".to_owned()))));
    assert_eq!(wrong("smu:u64"), Some((0, Some("sum:i64".to_owned()))));
    assert_eq!(wrong("a: sum:u64 ="), Some((12, None)));
    refused("{a: sum:u64 = 1}");
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused_in_place(text in "[a-z0-9:{}, =\"\\\\x`é]{0,30}") {
        for result in [parse(&text).map(|fold| fold.spec()), text.parse::<Columns>().map(|_| "set".to_owned())] {
            match result {
                Ok(spec) => prop_assert_eq!(&parse(&spec).unwrap().spec(), &spec),
                Err(error) => {
                    prop_assert!(error.at() <= text.len() && text.is_char_boundary(error.at()));
                    prop_assert!(!error.to_string().is_empty());
                }
            }
        }
    }

    #[test]
    fn any_separator_and_name_come_back(
        separator in prop::collection::vec(any::<u8>(), 0..8),
        name in "\\PC{1,8}",
    ) {
        let spec = Append { separator }.spec();
        prop_assert_eq!(&parse(&spec).unwrap().spec(), &spec);
        let record = format!("{{{}: {spec}}}", crate::folds::words::quoted_name(&name));
        prop_assert_eq!(&parse(&record).unwrap().spec(), &record);
    }
}
