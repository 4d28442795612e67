use super::*;
use crate::algebra::FoldRules;
use crate::datum::{Datum, json};
use crate::fold::{Fold, Outcome};
use crate::law;
use proptest::prelude::*;

/// A fold with operands to try it on.
fn case(
    spec: &'static str,
    operand: impl Strategy<Value = Datum> + 'static,
) -> (&'static str, BoxedStrategy<Datum>) {
    (spec, operand.boxed())
}

fn text() -> impl Strategy<Value = Datum> {
    prop_oneof![
        3 => "[a-d]{0,2}".prop_map(Datum::Text),
        1 => prop::collection::vec(any::<u8>(), 0..5).prop_map(|bytes| Datum::text_or_bytes(&bytes)),
        1 => prop_oneof![Just("a\nb"), Just("0x610a62"), Just("{\"$hex\":\"61\"}")]
            .prop_map(|text| Datum::text_or_bytes(text.as_bytes())),
    ]
}

fn i64s() -> impl Strategy<Value = Datum> {
    prop_oneof![any::<i64>(), -9i64..9, Just(i64::MAX), Just(i64::MIN)].prop_map(|n| Datum::Int(n.into()))
}

fn u64s() -> impl Strategy<Value = Datum> {
    prop_oneof![any::<u64>(), 0u64..9, Just(u64::MAX)].prop_map(|n| Datum::Int(n.into()))
}

fn i128s() -> impl Strategy<Value = Datum> {
    prop_oneof![any::<i128>(), any::<i64>().prop_map(i128::from), Just(i128::MAX), Just(i128::MIN)]
        .prop_map(Datum::Int)
}

/// Doubles with NaN and infinities among them.
fn f64s() -> impl Strategy<Value = Datum> {
    prop_oneof![
        4 => (-999i32..999).prop_map(|n| f64::from(n) / 10.0),
        4 => any::<u64>().prop_map(f64::from_bits),
        1 => prop_oneof![Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(-0.0), Just(f64::MAX)],
    ]
    .prop_map(Datum::Float)
}

fn numbers() -> impl Strategy<Value = Datum> {
    f64s().prop_map(|datum| match datum {
        Datum::Float(x) if x.is_nan() => Datum::Float(0.5),
        other => other,
    })
}

fn list(items: impl Strategy<Value = Datum>, len: std::ops::Range<usize>) -> impl Strategy<Value = Datum> {
    prop::collection::vec(items, len).prop_map(Datum::List)
}

fn pair(a: impl Strategy<Value = Datum>, b: impl Strategy<Value = Datum>) -> impl Strategy<Value = Datum> {
    (a, b).prop_map(|(a, b)| Datum::List(vec![a, b]))
}

fn small() -> impl Strategy<Value = Datum> {
    (-3i64..4).prop_map(|n| Datum::Int(n.into()))
}

fn json() -> impl Strategy<Value = Datum> {
    let leaf = prop_oneof![
        2 => Just(Datum::Null),
        1 => any::<bool>().prop_map(Datum::Bool),
        1 => small(),
        1 => (-9i32..9).prop_map(|n| Datum::Float(f64::from(n) / 4.0)),
        1 => "[a-c\"\\\\\n]{0,2}".prop_map(Datum::Text),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let object = prop::collection::vec(("[a-c]", inner.clone()), 0..4).prop_map(Datum::Map).boxed();
        let set = object.clone().prop_map(|object| Datum::Map(vec![("$set".to_owned(), object)]));
        prop_oneof![4 => object, 1 => set, 1 => prop::collection::vec(inner, 0..2).prop_map(plain_list)]
    })
    .prop_map(|datum| {
        let mut out = Vec::new();
        crate::datum::json::put_bytes(&datum, &mut out);
        Datum::Text(String::from_utf8_lossy(&out).into_owned())
    })
}

fn plain_list(items: Vec<Datum>) -> Datum {
    Datum::List(items)
}

fn edit() -> impl Strategy<Value = Datum> {
    let map = |fields: Vec<(&str, Datum)>| {
        Datum::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    let number = || (0u8..12).prop_map(|n| Datum::Int(n.into()));
    prop_oneof![
        text().prop_map(move |bytes| map(vec![("append", bytes)])),
        (number(), number(), text()).prop_map(move |(at, count, bytes)| map(vec![
            ("splice", at),
            ("remove", count),
            ("bytes", bytes)
        ])),
        (number(), text()).prop_map(move |(at, bytes)| map(vec![("write", at), ("bytes", bytes)])),
    ]
}

fn fields(fields: Vec<(&'static str, BoxedStrategy<Datum>)>) -> impl Strategy<Value = Datum> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            prop_oneof![1 => Just(Datum::Null).boxed(), 3 => value]
                .prop_map(move |value| (name.to_owned(), value))
        })
        .collect();
    fields.prop_map(Datum::Map)
}

/// Every fold.
fn cases() -> Vec<(&'static str, BoxedStrategy<Datum>)> {
    let scored = || {
        (-5i32..5, "[a-e]")
            .prop_map(|(score, member)| Datum::List(vec![Datum::Int(score.into()), Datum::Text(member)]))
    };
    vec![
        case("replace", text()),
        case("first", text()),
        case("sum:i64", i64s()),
        case("sum:u64", u64s()),
        case("sum:i128", i128s()),
        case("sum:f64", f64s()),
        case("min:i64", i64s()),
        case("min:u64", u64s()),
        case("min:f64", f64s()),
        case("min:bytes", text()),
        case("max:i64", i64s()),
        case("max:u64", u64s()),
        case("max:f64", f64s()),
        case("max:bytes", text()),
        case("stats:f64", prop_oneof![f64s(), list(f64s(), 0..4)]),
        case("append", text()),
        case("append:\", \"", text()),
        case("set", list(text(), 0..4)),
        case("intersect", list(text(), 0..9)),
        case("bitmap", list((0u32..200_000).prop_map(|n| Datum::Int(n.into())), 0..20)),
        case("counters", list(pair(text(), i64s()), 0..4)),
        case("lww:ts", pair(small(), text())),
        case("top:1", scored()),
        case("top:3", list(scored(), 0..5)),
        case("top:3:i64", list(scored(), 0..5)),
        case("top:60", list(scored(), 0..5)),
        case("hll:4", list(i64s(), 0..12)),
        case("hll:12", list(i64s(), 0..12)),
        case("quantiles", prop_oneof![numbers(), list(numbers(), 0..5)]),
        case("quantiles:0.2", list(numbers(), 0..5)),
        case("json-merge", json()),
        case("matmul:2:i64", list(i64s(), 4..5)),
        case("matmul:3:i64", list(small(), 9..10)),
        case("matmul:1:f64", list((1i32..9).prop_map(|n| Datum::Float(f64::from(n) / 3.0)), 1..2)),
        case("matmul:2:f64", list((1i32..9).prop_map(|n| Datum::Float(f64::from(n) / 3.0)), 4..5)),
        case("patch", prop_oneof![1 => text(), 3 => list(edit(), 0..4)]),
        case(
            "{n: sum:u64, d: max:f64, m: min:i64}",
            fields(vec![("n", u64s().boxed()), ("d", f64s().boxed()), ("m", i64s().boxed())]),
        ),
        case(
            "{n: sum:u64, m: matmul:2:i64, w: sum:i128}",
            fields(vec![("n", u64s().boxed()), ("m", list(i64s(), 4..5).boxed()), ("w", i128s().boxed())]),
        ),
        case(
            "{flights: sum:u64, delay: stats:f64, tails: hll:12, log: append:\";\"}",
            fields(vec![
                ("flights", u64s().boxed()),
                ("delay", f64s().boxed()),
                ("tails", text().boxed()),
                ("log", "[a-z]{0,99}".prop_map(Datum::Text).boxed()),
            ]),
        ),
        case(
            "{a: {b: set, c: {d: replace}}, e: patch, f: max:u64}",
            fields(vec![
                (
                    "a",
                    fields(vec![("b", text().boxed()), ("c", fields(vec![("d", text().boxed())]).boxed())])
                        .boxed(),
                ),
                ("e", list(edit(), 0..3).boxed()),
                ("f", u64s().boxed()),
            ]),
        ),
    ]
}

fn value(fold: &dyn Fold, datum: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    if let Err(failure) = fold.read(datum, &mut out) {
        panic!("{}: {datum}: {failure}", fold.spec());
    }
    out
}

/// Folds after existing bytes, which a fold of this crate must not touch.
fn folded(fold: &dyn Fold, a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    match fold.fold(b"key", a, b, &mut out) {
        Ok(Outcome::Value) => {
            assert_eq!(&out[..6], b"before");
            out.split_off(6)
        }
        Ok(Outcome::KeepEarlier) => a.to_vec(),
        Ok(Outcome::KeepLater) => b.to_vec(),
        other => panic!("{}: {other:?}", fold.spec()),
    }
}

/// The result of every bracketing of the operands.
fn bracketings(fold: &dyn Fold, operands: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if let [one] = operands {
        return vec![one.clone()];
    }
    let mut results = Vec::new();
    for cut in 1..operands.len() {
        for left in &bracketings(fold, &operands[..cut]) {
            for right in &bracketings(fold, &operands[cut..]) {
                results.push(folded(fold, left, right));
            }
        }
    }
    results.sort();
    results.dedup();
    results
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn every_bracketing_gives_the_same_bytes() {
    for (spec, operand) in cases() {
        let fold = parse(spec).unwrap();
        let operands = prop::collection::vec(operand, 3..7);
        let mut runner = proptest::test_runner::TestRunner::new(config(150));
        let outcome = runner.run(&operands, |operands| {
            let operands: Vec<Vec<u8>> = operands.iter().map(|datum| value(&*fold, datum)).collect();
            for operand in &operands {
                prop_assert!(fold.check(operand).is_ok(), "{:?}", fold.check(operand));
                prop_assert!(fold.fixed_len().is_none_or(|len| len == operand.len()));
            }
            if fold.is_approximate() {
                let report = law::check_with(&*fold, b"key", &operands, 300, 1);
                prop_assert!(report.holds(), "{report}");
                return Ok(());
            }
            let results = bracketings(&*fold, &operands);
            prop_assert_eq!(results.len(), 1);
            prop_assert!(fold.check(&results[0]).is_ok(), "{:?}", fold.check(&results[0]));
            prop_assert!(fold.fixed_len().is_none_or(|len| len == results[0].len()));
            prop_assert!(fold.show(&results[0]).is_ok());
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{spec}: {failure}");
        }
    }
}

#[test]
fn values_folded_at_once_are_as_one_after_the_other() {
    // Infinities and NaN have a way of their own: without them, too.
    let finite = || {
        f64s().prop_map(|datum| match datum {
            Datum::Float(x) if !x.is_finite() => Datum::Float(-0.1),
            other => other,
        })
    };
    let finite = [case("sum:f64", finite()), case("stats:f64", finite())];
    for (spec, operand) in cases().into_iter().chain(finite) {
        let fold = parse(spec).unwrap();
        if fold.is_approximate() {
            continue;
        }
        let operands = (prop::collection::vec(operand, 1..80), 1..80_usize);
        let mut runner = proptest::test_runner::TestRunner::new(config(100));
        let outcome = runner.run(&operands, |(operands, group)| {
            let operands: Vec<Vec<u8>> = operands.iter().map(|datum| value(&*fold, datum)).collect();
            let whole = operands[1..].iter().fold(operands[0].clone(), |a, b| folded(&*fold, &a, b));
            // Groups at once, and then what they give: values that were folded are among these.
            let groups = operands.chunks(group).map(|group| folded_at_once(&*fold, group));
            let held = folded_at_once(&*fold, &groups.collect::<Vec<_>>());
            prop_assert_eq!(held, whole, "in groups of {}", group);
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{spec}: {failure}");
        }
        assert_eq!(folded_at_once(&*fold, &[]), b"", "{spec}: of no values, nothing");
    }
}

fn folded_at_once(fold: &dyn Fold, values: &[Vec<u8>]) -> Vec<u8> {
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    let mut out = b"before".to_vec();
    fold.fold_all(b"key", &values, &mut out).unwrap();
    out.split_off(b"before".len())
}

/// Bytes that a piece may need in addition to its operand: the names on the way to it.
const BESIDE_BYTES: usize = 400;

#[test]
fn a_value_grown_by_folding_is_cut_into_operands_that_fold_to_the_same_bytes() {
    const GROW: [&str; 8] =
        ["append", "append:\", \"", "set", "bitmap", "counters", "top:60", "json-merge", "patch"];
    for (spec, operand) in cases() {
        let fold = parse(spec).unwrap();
        let operands = (prop::collection::vec(operand, 1..40), 0..300_usize);
        let mut runner = proptest::test_runner::TestRunner::new(config(60));
        let outcome = runner.run(&operands, |(operands, small)| {
            let operands: Vec<Vec<u8>> = operands.iter().map(|datum| value(&*fold, datum)).collect();
            let whole = operands[1..].iter().fold(operands[0].clone(), |a, b| folded(&*fold, &a, b));
            let longest = operands.iter().map(Vec::len).max().unwrap_or(0);
            let rules = FoldRules::new(fold.clone());
            for bytes_max in [small, longest + BESIDE_BYTES] {
                let says = fold.pieces(&whole, bytes_max);
                let short = says.filter(|pieces| pieces.iter().all(|piece| piece.len() <= bytes_max));
                let held = rules.pieces(b"key", &whole, bytes_max);
                prop_assert_eq!(&held, &short, "at most {} of {} bytes", bytes_max, whole.len());
                let must = GROW.contains(&spec) && bytes_max > small.max(longest);
                prop_assert!(held.is_some() || !must, "{} bytes in pieces of {bytes_max}", whole.len());
                if let Some(pieces) = held {
                    prop_assert!(pieces.iter().all(|piece| fold.check(piece).is_ok()), "{pieces:?}");
                }
            }
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{spec}: {failure}");
        }
    }
}

#[test]
fn the_law_checker_agrees() {
    for (spec, operand) in cases() {
        let fold = parse(spec).unwrap();
        let mut runner = proptest::test_runner::TestRunner::new(config(8));
        let outcome = runner.run(&prop::collection::vec(operand, 4..10), |operands| {
            let operands: Vec<Vec<u8>> = operands.iter().map(|datum| value(&*fold, datum)).collect();
            let report = law::check_with(&*fold, b"key", &operands, 400, 7);
            prop_assert!(report.holds() && report.samples_malformed == 0, "{report}");
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{spec}: {failure}");
        }
    }
}

/// Arbitrary bytes, and values with a byte changed or cut off.
#[test]
fn bytes_from_anywhere_never_panic() {
    for (spec, operand) in cases() {
        let fold = parse(spec).unwrap();
        let damage =
            (operand, any::<(prop::sample::Index, u8, bool)>(), prop::collection::vec(any::<u8>(), 0..40));
        let mut runner = proptest::test_runner::TestRunner::new(config(300));
        let outcome = runner.run(&damage, |(datum, (index, byte, cut), noise)| {
            let whole = value(&*fold, &datum);
            let mut damaged = whole.clone();
            if cut {
                damaged.truncate(index.index(whole.len() + 1));
            } else if !whole.is_empty() {
                damaged[index.index(whole.len())] = byte;
            }
            for strange in [&damaged, &noise] {
                let is_value = fold.check(strange).is_ok();
                prop_assert!(!is_value || fold.show(strange).is_ok());
                let _ = (
                    fold.show(strange),
                    fold.short_circuit(b"key", strange),
                    fold.is_deleted(b"key", strange),
                );
                for (a, b) in [(strange, &whole), (&whole, strange), (strange, strange)] {
                    let mut out = Vec::new();
                    let outcome = fold.fold(b"key", a, b, &mut out);
                    if is_value {
                        prop_assert!(outcome.is_ok(), "{:?}", outcome);
                        prop_assert!(outcome != Ok(Outcome::Value) || fold.check(&out).is_ok());
                    }
                }
            }
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{spec}: {failure}");
        }
    }
}

/// What is shown can be read again, if showing loses nothing.
#[test]
fn what_is_shown_reads_the_same() {
    let lossy = ["sum:f64", "stats:f64", "hll", "quantiles", "json-merge", "patch", "top", "{flights", "{a:"];
    for (spec, operand) in
        cases().into_iter().filter(|(spec, _)| !lossy.iter().any(|lossy| spec.starts_with(lossy)))
    {
        let fold = parse(spec).unwrap();
        let mut runner = proptest::test_runner::TestRunner::new(config(60));
        let outcome = runner.run(&(operand.clone(), operand), |(a, b)| {
            let total = folded(&*fold, &value(&*fold, &a), &value(&*fold, &b));
            prop_assert_eq!(value(&*fold, &fold.show(&total).unwrap()), total);
            Ok(())
        });
        if let Err(failure) = outcome {
            panic!("{spec}: {failure}");
        }
    }
}

/// No two byte strings are shown the same way, and text is text, with any control characters.
#[test]
fn byte_strings_are_shown_as_text_or_in_a_form_that_no_text_has() {
    let members: [&[u8]; 9] = [
        b"a\nb",
        b"0x610a62",
        b"\0",
        b"\xff",
        b"0xff",
        b"ff",
        b"{\"$hex\":\"ff\"}",
        b"{\"$hex\":\"f\"}",
        b"",
    ];
    for spec in ["set", "replace", "first", "append", "max:bytes", "patch"] {
        let fold = parse(spec).unwrap();
        let shown = members.map(|member| fold.show(&value(&*fold, &Datum::Bytes(member.to_vec()))).unwrap());
        for (at, datum) in shown.iter().enumerate() {
            assert!(!shown[..at].contains(datum), "{spec}: {datum}");
            let one = if let Datum::List(items) = datum { &items[0] } else { datum };
            let is_text = std::str::from_utf8(members[at]).is_ok_and(|text| text != "{\"$hex\":\"ff\"}");
            assert_eq!(matches!(one, Datum::Text(_)), is_text, "{spec}: {datum}");
            let wrapped = crate::datum::wrapped(members[at]);
            assert_eq!(value(&*fold, &wrapped), value(&*fold, &Datum::Bytes(members[at].to_vec())), "{spec}");
        }
    }
}

fn text_value(spec: &str, text: &str) -> Vec<u8> {
    value(&*parse(spec).unwrap(), &Datum::Text(text.to_owned()))
}

/// Folds what people would type, and shows it.
fn typed(spec: &str, operands: &[&str]) -> String {
    let fold = parse(spec).unwrap();
    let values = operands.iter().map(|text| text_value(spec, text));
    let total = values.reduce(|a, b| folded(&*fold, &a, &b)).unwrap();
    fold.show(&total).unwrap().to_string()
}

#[test]
fn folds_do_what_their_names_say() {
    assert_eq!(typed("replace", &["a", "b"]), "b");
    assert_eq!(typed("first", &["a", "b"]), "a");
    assert_eq!(typed("sum:i64", &["3", "-5"]), "-2");
    assert_eq!(typed("sum:i64", &["9223372036854775807", "1"]), "-9223372036854775808");
    assert_eq!(typed("sum:u64", &["18446744073709551615", "1"]), "18446744073709551615");
    assert_eq!(typed("sum:i128", &["9223372036854775807", "1", "-1e20"]), "-90776627963145224192");
    assert_eq!(typed("sum:f64", &["1e100", "1", "-1e100"]), "1");
    assert_eq!(typed("min:f64", &["2.5", "NaN", "-1"]), "-1");
    assert_eq!(typed("max:bytes", &["a", "ab", "b", "aa"]), "b");
    assert_eq!(
        typed("stats:f64", &["1", "2", "6"]),
        "count=3 sum=9 min=1 max=6 mean=3 variance=4.666666666666667"
    );
    assert_eq!(typed("append:, ", &["a", "", "b"]), "a, , b");
    assert_eq!(typed("set", &["b", "a", "b"]), "[\"a\", \"b\"]");
    assert_eq!(typed("bitmap", &["7", "3", "7"]), "[3, 7]");
    assert_eq!(typed("counters", &["a", "/search?q=7", "a", "/search?q=7"]), "/search?q=7=2 a=2");
    assert_eq!(typed("lww:ts", &["5 new", "3 old"]), "ts=5 value=\"new\"");
    assert_eq!(typed("top:2", &["1 ann", "5 bob", "3 cid", "4 ann"]), "[[5, \"bob\"], [4, \"ann\"]]");
    assert_eq!(typed("hll:12", &["a", "b", "a"]), "2");
    assert_eq!(typed("json-merge", &["{\"a\":1}", "{\"b\":{\"c\":2}}", "{\"a\":null}"]), "b={c=2}");
    assert_eq!(typed("matmul:2:i64", &["1 1; 0 1", "1 0; 1 1"]), "[[2, 1], [1, 1]]");
    assert_eq!(typed("patch", &["hello"]), "hello");
    assert_eq!(typed("{n: sum:u64, s: set}", &["{\"n\":1}", "{\"n\":2,\"s\":\"x\"}"]), "n=3 s=[\"x\"]");
    assert_eq!(typed("{n: sum:u64, m: min:i64}", &["{\"n\":1}", "{\"n\":2}"]), "n=3 m=null");
}

#[test]
fn reading_says_what_was_expected() {
    for (spec, text, message) in [
        ("sum:u64", "-1", "expected a whole number from 0 to 2^64-1, found `-1`"),
        ("sum:i64", "3.5", "expected a whole number, found `3.5`"),
        ("stats:f64", "", "expected a number, found nothing"),
        ("bitmap", "4294967296", "expected a whole number of 32 bits, found `4294967296`"),
        ("lww:ts", "now", "expected a time and a value, as in `1700000000 hello`, found `now`"),
        ("top:3", "NaN x", "expected a score, found `NaN`"),
        ("quantiles", "NaN", "expected a number, found `NaN`"),
        (
            "sum:f64",
            "1e400",
            "expected a number, found `1e400`, which is beyond ±1.8e308: only text keeps it",
        ),
        (
            "{delay: stats:f64}",
            "{\"delay\":-1e400}",
            "field `delay`: expected a number, found `-1e400`, which is beyond ±1.8e308: only text keeps it",
        ),
        ("matmul:2:f64", "1 2 3", "expected 4 numbers, found 3"),
        ("{delay: stats:f64}", "{\"dealy\":1}", "the record has no field `dealy`; did you mean `delay`?"),
        ("{delay: stats:f64}", "{\"delay\":\"x\"}", "field `delay`: expected a number, found `x`"),
        ("{delay: stats:f64}", "12", "expected a record, as in `{\"delay\": …}`, found `12`"),
    ] {
        let failure = parse(spec).unwrap().read(&Datum::Text(text.to_owned()), &mut Vec::new());
        assert_eq!(failure.map_err(|failure| failure.0), Err(message.to_owned()));
    }
}

/// A number that is too large for a double is never an infinity, for any fold or codec that reads
/// it and in any notation.
#[test]
fn a_number_beyond_all_doubles_is_refused() {
    let (mut tried, far) = (0, format!("1{}", "0".repeat(400)));
    let as_json = |text: &str| format!("{{\"n\":{text}}}");
    for (spec, wrap) in
        SPECS.iter().flat_map(|spec| [(spec.to_string(), false), (format!("{{n: {spec}}}"), true)])
    {
        let fold = parse(&spec).unwrap();
        let read = |text: &str| {
            let text = if wrap { as_json(text) } else { text.to_owned() };
            fold.read(&Datum::Text(text), &mut Vec::new())
        };
        if !spec.contains("f64") && !spec.contains("quantiles") {
            continue;
        }
        tried += 1;
        assert!(read("1e300").is_ok() && (wrap || read("1e-400").is_ok()), "{spec}");
        for text in ["1e400", "-1e400", "1.8e308", &far] {
            assert!(read(text).is_err(), "{spec}: {text}");
        }
        assert!(
            wrap || read("-inf").is_ok() && read("Infinity").is_ok(),
            "{spec}: what is said is no mistake"
        );
    }
    assert_eq!(tried, 10);
    for text in ["1e400 x", "-1e400 x"] {
        assert!(parse("top:3").unwrap().read(&Datum::Text(text.to_owned()), &mut Vec::new()).is_err());
    }
    let matrix = Datum::Text("1 1e400; 0 1".to_owned());
    assert!(parse("matmul:2:f64").unwrap().read(&matrix, &mut Vec::new()).is_err());
    let codec = crate::codec::ValueCodec::F64;
    assert!(codec.parse_text("1e400").is_err() && codec.parse_text("inf").is_ok());
    for (key, text) in [("tuple(double)", "1e400"), ("tuple(float)", "1e39"), ("tuple(float)", "1e400")] {
        let codec = key.parse::<crate::codec::KeyCodec>().unwrap();
        assert!(codec.parse_text(&[text]).is_err(), "{key} {text}");
        assert!(codec.parse_text(&["inf"]).is_ok() && codec.parse_text(&["1e38"]).is_ok(), "{key}");
    }
}

#[test]
fn patches_apply_in_order() {
    let mut value = Patch::object(b"hello").to_bytes();
    for edit in [
        Edit::Write { at: 7, bytes: b"you" },
        Edit::Splice { at: 5, removed: 2, bytes: b", " },
        Edit::Append(b"!"),
    ] {
        value = folded(&**patch().as_fold(), &value, Patch::edits([edit]).as_bytes());
    }
    assert_eq!(Patch::from_bytes(&value).unwrap().to_object().unwrap(), b"hello, you!");
    let far = Patch::edits([Edit::Write { at: u64::MAX, bytes: b"x" }]);
    assert!(patch().as_fold().fold(b"", &value, far.as_bytes(), &mut Vec::new()).is_err());
    assert!(patch().as_fold().check(far.as_bytes()).is_err());
}

/// A name that an edit does not have would be ignored.
#[test]
fn an_edit_with_a_name_that_it_does_not_have_is_refused() {
    let read = |text: &str| {
        let mut value = Vec::new();
        patch()
            .as_fold()
            .read(&json::parse(text).unwrap(), &mut value)
            .map(|()| value)
            .map_err(|why| why.to_string())
    };
    let splice = Patch::edits([Edit::Splice { at: 1, removed: 2, bytes: b"x" }]);
    assert_eq!(read(r#"{"splice":1,"remove":2,"bytes":"x"}"#).unwrap(), splice.as_bytes());
    for (text, why) in [
        (r#"{"splice":1,"removed":2}"#, "an edit `splice` has no `removed`; did you mean `remove`?"),
        (r#"[{"append":"a"},{"write":0,"text":"x"}]"#, "an edit `write` has no `text`; it has write, bytes"),
        (r#"{"append":"a","bytes":"b"}"#, "an edit `append` has no `bytes`; it has `append` only"),
        (r#"{"append":"a","write":0}"#, "an edit `append` has no `write`; it has `append` only"),
    ] {
        assert_eq!(read(text).unwrap_err(), why);
    }
}

#[test]
fn bitmaps_have_one_form() {
    let dense: Bitmap = (0..10_000).collect();
    let mut parts = (0..10_000u32).map(|member| Bitmap::of(member).to_bytes());
    let first = parts.next().unwrap();
    let folded = parts.fold(first, |a, b| folded(&**bitmap().as_fold(), &a, &b));
    assert_eq!(folded, dense.to_bytes());
    // The same set with a run container, as other libraries may write it.
    let mut runs = roaring::RoaringBitmap::new();
    runs.insert_range(0..10_000);
    runs.optimize();
    let mut bytes = Vec::new();
    runs.serialize_into(&mut bytes).unwrap();
    assert!(bitmap().as_fold().check(&bytes).is_err());
    // A header that promises 65,536 chunks is refused before the library takes memory for them.
    let promise = [12346u32.to_le_bytes(), 65536u32.to_le_bytes()].concat();
    let refused = bitmap().as_fold().check(&promise).map_err(|failure| failure.0);
    assert_eq!(refused, Err("expected a roaring bitmap, the bytes end too early".to_owned()));
    assert_eq!(runs.iter().collect::<Bitmap>().to_bytes(), folded);
}

#[test]
fn records_are_built_and_taken_apart() {
    let shape = "{flights: sum:u64, delay: stats:f64, tails: hll:12}".parse::<Record>().unwrap();
    assert_eq!(shape.names().collect::<Vec<_>>(), ["flights", "delay", "tails"]);
    let columns = [Some(Datum::Int(1)), None, Some(Datum::Text("N14228".to_owned()))];
    let (mut read, mut put) = (Vec::new(), Vec::new());
    shape.read_columns(|index| columns[index].clone(), &mut read).unwrap();
    let tail = Hll::<12>::of(b"N14228").as_bytes().to_vec();
    shape.put(&[Some(&1u64.to_le_bytes()), None, Some(&tail)], &mut put).unwrap();
    assert_eq!(read, put);
    assert_eq!(shape.field(&read, "delay").unwrap(), None);
    assert_eq!(shape.field(&read, "tails").unwrap(), Some(&tail[..]));
    assert!(shape.field(&read, "nope").is_err());
    assert!(shape.put(&[Some(&[1])], &mut Vec::new()).is_err());
    assert_eq!(read.len(), 1 + 8 + 1 + 3);
    let fixed = "{n: sum:u64, least: min:i64}".parse::<Record>().unwrap();
    assert_eq!(fixed.fold().fixed_len(), Some(16));
}

/// Prints the least cost of folding `operand` onto a growing total, over some rounds.
pub(super) fn print_cost(fold: &dyn Fold, name: &str, first: &[u8], operand: &[u8]) {
    let (mut total, mut out) = (first.to_vec(), Vec::new());
    let mut least = f64::INFINITY;
    for _ in 0..50 {
        let start = std::time::Instant::now();
        for _ in 0..10_000 {
            out.clear();
            match fold.fold(b"key", &total, operand, &mut out) {
                Ok(Outcome::Value) => std::mem::swap(&mut total, &mut out),
                other => assert!(other.is_ok()),
            }
        }
        least = least.min(start.elapsed().as_nanos() as f64 / 10_000.0);
    }
    println!("{} {name}: {least:.1} ns, {} bytes", fold.spec(), total.len());
}

/// Not a test of correctness. `cargo test --release -p folddb-rules -- --ignored --nocapture cost`
#[test]
#[ignore = "prints costs"]
fn cost() {
    for (spec, first, operand) in [
        ("sum:i64", "1", "2"),
        ("max:f64", "1", "2"),
        ("stats:f64", "3", "3"),
        ("stats:f64", "0.1", "0.1"),
        ("set", "[\"a\",\"b\",\"c\"]", "b"),
        ("counters", "a", "b"),
        ("top:10", "1 a", "2 b"),
        ("hll:12", "a", "b"),
        ("quantiles", "1", "2"),
        ("bitmap", "1", "2"),
        ("json-merge", "{\"a\":1,\"b\":\"x\"}", "{\"b\":\"y\"}"),
        ("{n: sum:u64, m: max:i64}", "{\"n\":1,\"m\":1}", "{\"n\":1,\"m\":2}"),
        (
            "{n: sum:u64, d: stats:f64, t: hll:12}",
            "{\"n\":1,\"d\":1,\"t\":\"a\"}",
            "{\"n\":1,\"d\":2,\"t\":\"b\"}",
        ),
    ] {
        let (first, operand) = (text_value(spec, first), text_value(spec, operand));
        print_cost(&*parse(spec).unwrap(), "", &first, &operand);
    }
}

/// Any JSON, some of which reads like the text of something else.
fn any_json() -> impl Strategy<Value = Datum> {
    let texts = vec![
        "",
        "1",
        "1.0",
        "null",
        "true",
        "[1,2]",
        "{\"id\":1}",
        "id=1",
        "[1, 2]",
        "{\"$hex\":\"zz\"}",
        "\u{1}",
    ];
    let leaf = prop_oneof![
        Just(Datum::Null),
        any::<bool>().prop_map(Datum::Bool),
        prop::sample::select(vec![1, 2, 1 << 64, i128::MAX]).prop_map(Datum::Int),
        prop::sample::select(vec![1.0, -0.0, 1e300]).prop_map(Datum::Float),
        prop::sample::select(vec!["1.10", "1e400", "-0"]).prop_map(|text| Datum::Number(text.to_owned())),
        prop::sample::select(texts).prop_map(|text| Datum::Text(text.to_owned())),
        prop::collection::vec(0u8..2, 0..2).prop_map(Datum::Bytes),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let name = prop::sample::select(vec!["id", "$hex"]).prop_map(str::to_owned);
        let field = (name, inner.clone()).prop_map(|field| Datum::Map(vec![field]));
        prop_oneof![field, prop::collection::vec(inner, 0..3).prop_map(Datum::List)]
    })
}

proptest! {
    /// Numbers and bools are the text that they are written as, and bytes that are text are
    /// text; nothing else is equal to another: an object, a list or a null is not equal to its JSON
    /// as text.
    #[test]
    fn what_differs_does_not_become_one_member(a in any_json(), b in any_json()) {
        let text = |datum: &Datum| match datum {
            Datum::Text(text) | Datum::Number(text) => Some(text.clone().into_bytes()),
            Datum::Bool(_) | Datum::Int(_) | Datum::Float(_) => {
                Some(crate::datum::json::text_of(datum).into_bytes())
            }
            Datum::Bytes(bytes) => Some(bytes.clone()),
            other => crate::datum::unwrapped(other),
        };
        let same = a == b || text(&a).is_some() && text(&a) == text(&b);
        for spec in ["set", "intersect", "hll:12", "counters", "top:9", "lww:ts", "append"] {
            let fold = parse(spec).unwrap();
            let read = |datum: &Datum| {
                let operand = match spec {
                    "top:9" | "lww:ts" => Datum::List(vec![Datum::Int(1), datum.clone()]),
                    "counters" => Datum::List(vec![Datum::List(vec![datum.clone(), Datum::Int(1)])]),
                    "append" => datum.clone(),
                    _ => Datum::List(vec![datum.clone()]),
                };
                let mut bytes = Vec::new();
                fold.read(&operand, &mut bytes).ok().map(|()| bytes)
            };
            match (read(&a), read(&b)) {
                (Some(x), Some(y)) => prop_assert_eq!(x == y, same, "{} of {:?} and {:?}", spec, a, b),
                _ => prop_assert!(text(&a).is_none() || text(&b).is_none(), "{} of {:?} and {:?}", spec, a, b),
            }
        }
    }

    /// Whole numbers are exactly what is written, or are refused.
    #[test]
    fn whole_numbers_are_not_rounded(number: i128, zeros in 0usize..4, exponent in 0usize..4) {
        let fold = parse("sum:i128").unwrap();
        let read = |datum: Datum| {
            let mut bytes = Vec::new();
            fold.read(&datum, &mut bytes).ok().map(|()| i128::from_le_bytes(bytes.try_into().unwrap()))
        };
        let (point, zeros) = (if zeros > 0 { "." } else { "" }, "0".repeat(zeros));
        let text = format!("{number}{point}{zeros}e{exponent}");
        let wanted = (0..exponent).try_fold(number, |number, _| number.checked_mul(10));
        prop_assert_eq!(read(Datum::Text(text.clone())), wanted, "{}", text);
        prop_assert_eq!(read(crate::datum::json::parse(&text).unwrap()), wanted, "{}", text);
        prop_assert_eq!(read(Datum::Text(format!("{number}.5"))), None);
        prop_assert_eq!(read(Datum::Int(number)), Some(number));
    }
}
