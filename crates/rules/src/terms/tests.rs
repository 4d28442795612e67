use super::*;
use crate::codec::tuple::Element;

fn term(element: impl Into<Element<'static>>) -> Vec<u8> {
    pack_term(&element.into())
}

#[test]
fn a_rule_reads_as_it_is_written() {
    for text in [
        "by_city:json:/city",
        "v:value",
        "f:field:tails",
        "t:tuple:0",
        "k:key:3",
        "h:head",
        "h:head:/a",
        "c:custom:mine@7",
    ] {
        assert_eq!(text.parse::<IndexRule>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "a",
        ":value",
        "a b:value",
        "a/b:value",
        "a:json:x",
        "a:key:",
        "a:key:01",
        "a:custom:x",
        "a:custom:@1",
        "a:values",
        "a:json:/two\nlines",
    ] {
        assert!(text.parse::<IndexRule>().is_err(), "{text}");
    }
}

#[test]
fn an_entry_splits_into_the_term_and_the_key_that_it_is_made_of() {
    for t in [
        term("a"),
        term("a\0b"),
        term(""),
        term(5i64),
        term(-7i64),
        term(2.5),
        term(true),
        term(&b"\xff\0"[..]),
    ] {
        for key in [&b""[..], b"\xff", b"\0", b"\x01", b"some key"] {
            let mut entry = Vec::new();
            put_entry(&mut entry, &t, key);
            assert_eq!(split_entry(&entry), Some((&t[..], key)));
            assert!(entry >= before_entries(&t) && entry < behind_entries(&t));
        }
    }
    assert_eq!(split_entry(b""), None);
    assert_eq!(split_entry(&term("a")), None);
}

#[test]
fn entries_have_the_order_of_their_terms_and_then_of_their_keys() {
    let terms = [
        term(&b"b"[..]),
        term(""),
        term("a"),
        term("a\0"),
        term("ab"),
        term(-1i64),
        term(300i64),
        term(-0.5),
        term(1e9),
    ];
    let keys = [&b""[..], b"\0", b"a", b"\xff", b"\xff\xff"];
    let entries: Vec<Vec<u8>> = terms
        .iter()
        .flat_map(|t| {
            keys.iter().map(move |key| {
                let mut entry = Vec::new();
                put_entry(&mut entry, t, key);
                entry
            })
        })
        .collect();
    assert!(entries.is_sorted());
    assert!(terms.windows(2).all(|pair| behind_entries(&pair[0]) <= before_entries(&pair[1])));
}

#[test]
fn terms_are_each_once_and_long_ones_are_cut() {
    let mut terms = Terms::default();
    for text in ["b", "a", "b"] {
        terms.push_text(text);
    }
    terms.settle();
    assert_eq!(terms.iter().collect::<Vec<_>>(), [&term("a")[..], &term("b")[..]]);
    assert!(terms.has(&term("b")) && !terms.has(&term("c")));
    terms.clear();
    terms.push_text(&"ü".repeat(1000));
    terms.push(&Element::Nested(vec!["x".repeat(9000).into()]));
    assert_eq!(terms.len(), 1, "what is too long and cannot be cut is left out");
    assert_eq!(terms.iter().next(), Some(&pack_term(&"ü".repeat(512).into())[..]));
    terms.clear();
    terms.push(&Element::from(&[0u8; 4000][..]));
    assert!(terms.iter().all(|term| term.len() <= PACKED_BYTES_MAX));
}
