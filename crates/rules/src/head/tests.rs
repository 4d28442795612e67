use super::*;

fn head(heads: &Heads, value: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    heads.put(b"key", value, &mut out);
    assert_eq!(&out[..6], b"before", "nothing else is touched");
    out.split_off(6)
}

#[test]
fn a_rule_reads_back_as_it_is_written() {
    for text in ["none", "first:1", "first:1024", "json:", "json:/a/b~1c/0", "named:mine"] {
        assert_eq!(text.parse::<HeadRule>().expect(text).to_string(), text);
    }
    for text in ["", "first", "first:0", "first:1025", "first:x", "json", "json:a", "named:", "last:3"] {
        assert!(text.parse::<HeadRule>().is_err(), "{text}");
    }
}

#[test]
fn the_first_bytes_or_all_that_there_are() {
    assert_eq!(head(&Heads::First(3), b"abcdef"), b"abc");
    assert_eq!(head(&Heads::First(3), b"ab"), b"ab");
    assert_eq!(head(&Heads::None, b"ab"), b"");
}

#[test]
fn the_piece_at_a_place_in_json() {
    let value = br#" {"a": {"b/c": [1, {"x~y": 12345678901234567890.50}], "": null}, "t": "z\u0061"} "#;
    let at = |pointer: &str| String::from_utf8(head(&Heads::Json(pointer.to_owned()), value)).expect("text");
    assert_eq!(at("/a/b~1c/0"), "1");
    assert_eq!(at("/a/b~1c/1/x~0y"), "12345678901234567890.50", "as written");
    assert_eq!(at("/a/"), "null");
    assert_eq!(at("/t"), r#""za""#);
    assert_eq!(at("/a/b~1c"), r#"[1,{"x~y":12345678901234567890.50}]"#);
    for nowhere in ["/b", "/a/b~1c/2", "/a/b~1c/00", "/a/b~1c/-", "/t/0", "/a/b~2c"] {
        assert_eq!(at(nowhere), "", "{nowhere}");
    }
    assert_eq!(head(&Heads::Json(String::new()), b"{not json"), b"");
    assert_eq!(head(&Heads::Json(String::new()), b"\xff"), b"");
}

#[test]
fn a_function_may_do_as_it_likes_and_too_long_a_head_is_none() {
    let function = |take: fn(&[u8], &[u8], &mut Vec<u8>)| Heads::Function(Arc::new(take));
    let both = function(|key, value, out| {
        out.extend_from_slice(key);
        out.extend_from_slice(&value[..1]);
    });
    assert_eq!(head(&both, b"v"), b"keyv");
    assert_eq!(head(&both, b""), b"", "it panics");
    assert_eq!(head(&function(|_, value, out| out.extend_from_slice(value)), &[0; HEAD_BYTES_MAX + 1]), b"");
    assert_eq!(head(&function(|_, _, out| out.clear()), b"v"), b"");
}
