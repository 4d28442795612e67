use super::*;
use proptest::prelude::*;

fn fold(documents: &[&str]) -> String {
    let mut value: Option<Vec<u8>> = None;
    for document in documents {
        let mut next = Vec::new();
        JsonMerge.read(&Datum::Text((*document).to_owned()), &mut next).unwrap();
        if let Some(earlier) = value {
            let mut out = Vec::new();
            JsonMerge.fold(b"", &earlier, &next, &mut out).unwrap();
            next = out;
        }
        JsonMerge.check(&next).unwrap();
        value = Some(next);
    }
    String::from_utf8(value.unwrap_or_default()).unwrap()
}

/// The examples of RFC 7386, appendix A: document, patch, result.
#[test]
fn the_examples_of_the_rfc() {
    for (document, patch, result) in [
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
        (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
        (r#"{"a":"foo"}"#, "null", "null"),
        (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
        (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1}"#),
        ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
        ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
    ] {
        let shown = JsonMerge.show(fold(&[document, patch]).as_bytes()).unwrap();
        assert_eq!(shown, JsonMerge.show(result.as_bytes()).unwrap(), "{document} {patch}");
    }
}

#[test]
fn composed_operands_keep_what_they_must_say() {
    assert_eq!(fold(&[r#"{"a":1}"#, r#"{"a":null}"#]), r#"{"a":null}"#);
    assert_eq!(fold(&["5", r#"{"b":2,"c":null}"#]), r#"{"$set":{"b":2}}"#);
    assert_eq!(
        fold(&[r#"{"x":1,"y":{"z":1}}"#, r#"{"y":5}"#, r#"{"y":{"w":2}}"#]),
        r#"{"x":1,"y":{"$set":{"w":2}}}"#
    );
    assert_eq!(
        fold(&[r#"{"$set":{"a":{"b":1}}}"#, r#"{"a":{"c":{"$set":{"d":1}}}}"#]),
        r#"{"$set":{"a":{"b":1,"c":{"d":1}}}}"#
    );
}

#[test]
fn leaves_are_carried_verbatim() {
    let exact = r#"{"big":123456789012345678901234567890,"e":1.10e+2,"f":0.1000}"#;
    assert_eq!(fold(&["{}", exact]), exact);
    assert_eq!(
        fold(&[
            "{}",
            r#" { "b" : "\u0041\/\n" , "a" : [ 1 , {"z":null,"y":2} ], "b" : "\u00e9\ud83d\ude00\u0001" } "#
        ]),
        "{\"a\":[1,{\"y\":2,\"z\":null}],\"b\":\"é😀\\u0001\"}"
    );
}

#[test]
fn what_is_not_json_is_refused() {
    for wrong in [
        "",
        "{",
        "{\"a\"}",
        "{\"a\":1,}",
        "[1,]",
        "01",
        "1.",
        "-",
        "1e",
        "tru",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\u{1}\"",
        "1 2",
        "{a:1}",
        "\"",
        "nul",
        "{\"$set\":1}",
        "{\"$set\":{},\"a\":1}",
        "+1",
        ".5",
        "\"\\ud800\\u0041\"",
    ] {
        assert!(Doc::parse(wrong.as_bytes()).is_err(), "{wrong}");
    }
    assert!(Doc::parse(b"\"\xff\"").is_err());
    let deep = "[".repeat(100_000);
    assert!(Doc::parse(deep.as_bytes()).is_err());
    let set = "{\"$set\":".repeat(100_000);
    assert!(Doc::parse(set.as_bytes()).is_err());
}

#[test]
fn the_deepest_document_can_still_be_marked_as_replacing() {
    let deep = format!("{}1{}", "{\"a\":".repeat(128), "}".repeat(128));
    let folded = fold(&["5", &deep]);
    assert!(folded.starts_with("{\"$set\":"));
    assert_eq!(fold(&["5", &deep, &deep, "{}"]), folded);
    assert!(Doc::parse(format!("[{deep}]").as_bytes()).is_err());
}

proptest! {
    #[test]
    fn text_never_panics(text in r#"[\[\]{}",:\\u0-9a-f$set null.eE+ -]{0,40}"#) {
        let mut out = Vec::new();
        if JsonMerge.read(&Datum::Text(text), &mut out).is_ok() {
            prop_assert!(JsonMerge.check(&out).is_ok());
            let again = fold(&["{}", std::str::from_utf8(&out).unwrap()]);
            prop_assert_eq!(again.as_bytes(), &out[..]);
        }
    }
}
