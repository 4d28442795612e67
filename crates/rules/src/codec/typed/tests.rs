use proptest::prelude::*;

use super::*;

/// The shape of a look-up in the engine: the type of the key is known, but not the type that is
/// used as it.
fn encode<K: Key>(key: &(impl AsKey<K> + ?Sized)) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_key(&mut out);
    out
}

fn prefix<K: Key>(prefix: &(impl KeyPrefix<K> + ?Sized)) -> KeyRange {
    prefix.key_range()
}

fn span<K: Key>(bound: &(impl KeyBound<K> + ?Sized)) -> KeyRange {
    bound.span()
}

type Route = (String, String);

#[test]
fn borrowed_values_stand_for_keys() {
    let owned: Route = ("UA".to_owned(), "EWR".to_owned());
    let expected = b"\x02UA\0\x02EWR\0";
    assert_eq!(encode::<Route>(&owned), expected);
    assert_eq!(encode::<Route>(&("UA", "EWR")), expected);
    assert_eq!(encode::<Route>(&(&owned.0, "EWR".to_owned())), expected);
    assert_eq!(Route::decode(expected), Ok(owned));

    assert_eq!(encode::<String>("x"), b"x");
    assert_eq!(encode::<String>(&"x".to_owned()), b"x");
    assert_eq!(encode::<String>(&"x"), b"x");
    assert_eq!(encode::<Vec<u8>>(b"x"), b"x");
    assert_eq!(encode::<Vec<u8>>("x"), b"x");
    assert_eq!(encode::<Vec<u8>>(&b"x"[..]), b"x");
    assert_eq!(encode::<[u8; 2]>(&[1, 2]), [1, 2]);
    // Literals take the type of the key.
    assert_eq!(encode::<u64>(&7), 7u64.to_be_bytes());
    assert_eq!(encode::<(i64, u32, f64)>(&(-1, 255, 0.0)), b"\x13\xfe\x15\xff\x21\x80\0\0\0\0\0\0\0");
    assert_eq!(encode::<(Option<String>, Option<i64>)>(&(Some("a"), None::<i64>)), b"\x02a\0\0");
    assert_eq!(
        encode::<(Vec<u8>, (bool, Option<u64>))>(&(b"a", (true, None::<u64>))),
        b"\x01a\0\x05\x27\0\xff\0"
    );
    assert_eq!(encode::<Vec<Element<'static>>>(&[Element::from("a"), Element::Null]), b"\x02a\0\0");
}

#[test]
fn codecs_have_the_names_that_tables_store() {
    assert_eq!(Route::codec().name(), "tuple(text,text)");
    assert_eq!(
        <(Vec<u8>, i32, u64, f32, f64, (bool, Option<i128>))>::codec().name(),
        "tuple(bytes,int,int,float,double,tuple(bool,int?))"
    );
    assert_eq!(<(Option<Option<bool>>,)>::codec().name(), "tuple(bool?)");
    assert_eq!(Vec::<u8>::codec(), <[u8; 3]>::codec());
    assert_eq!(String::codec(), KeyCodec::Utf8);
    assert_eq!([u32::codec(), u64::codec(), i64::codec()], [KeyCodec::U32, KeyCodec::U64, KeyCodec::I64]);
    assert_eq!(Vec::<Element<'_>>::codec(), KeyCodec::Tuple);
}

#[test]
fn prefixes_and_bounds() {
    let key = |carrier, origin| encode::<Route>(&(carrier, origin));
    let united = prefix::<Route>(&("UA",));
    assert!(united.contains(&key("UA", "")) && united.contains(&key("UA", "EWR")));
    assert!(!united.contains(&key("U", "A")) && !united.contains(&key("UA\0", "")));
    let some = prefix::<Route>(&("UA", StartsWith("EW")));
    assert!(some.contains(&key("UA", "EW")) && some.contains(&key("UA", "EWR")));
    assert!(!some.contains(&key("UA", "EX")) && !some.contains(&key("UA", "E")));
    assert!(prefix::<Route>(&(StartsWith("U"),)).contains(&key("UA", "EWR")));
    assert!(prefix::<Route>(&("UA", "EWR")).contains(&key("UA", "EWR")));
    assert!(
        prefix::<(Vec<u8>, u64)>(&(StartsWith(b"\xff"),))
            .contains(&encode::<(Vec<u8>, u64)>(&(b"\xff\xff", 1)))
    );

    assert!(prefix::<String>("ab").contains(b"abc") && !prefix::<String>("ab").contains(b"ac"));
    assert_eq!(prefix::<String>(""), KeyRange::all());
    assert!(prefix::<[u8; 2]>(&[1u8][..]).contains(&[1, 2]));
    assert!(span::<String>("ab").contains(b"ab") && !span::<String>("ab").contains(b"abc"));
    assert_eq!(span::<Route>(&("UA",)), united);
    assert_eq!(span::<u64>(&7), KeyRange::one(7u64.to_be_bytes().to_vec()));
    let dynamic = prefix::<Vec<Element<'static>>>(&vec![Element::from("UA")]);
    assert_eq!(dynamic, united);
}

#[test]
fn keys_of_another_type_are_refused() {
    assert!(u64::decode(&[0; 4]).is_err() && u32::decode(&[0; 8]).is_err());
    assert!(String::decode(&[0xff]).is_err());
    assert!(<[u8; 2]>::decode(&[0; 3]).is_err());
    assert!(Route::decode(b"\x02UA\0").is_err());
    assert!(Route::decode(b"\x02UA\0\x02EWR\0\x14").is_err());
    assert!(Route::decode(b"\x02UA\0\x14").is_err());
    assert!(<((bool,),)>::decode(b"\x05\x27\0\xff\0").is_err());
    assert!(<((bool,),)>::decode(b"\x05\x27").is_err());
    let error = <(u32,)>::decode(&encode::<(i64,)>(&(-1,))).unwrap_err();
    assert_eq!(error.0, "-1 does not fit a u32");
    assert!(<(u32,)>::decode(&encode::<(u64,)>(&(1 << 32,))).is_err());
    assert!(<(u64,)>::decode(&encode::<(i128,)>(&(1 << 64,))).is_err());
}

type Wide = (String, Vec<u8>, i64, (u64, Option<i32>, Option<(bool, String)>), f64, Option<u32>);

fn wide() -> impl Strategy<Value = Wide> {
    let text = || "[\0a\u{ff}]{0,3}";
    let nested = (any::<u64>(), any::<Option<i32>>(), prop::option::of((any::<bool>(), text())));
    (text(), any::<Vec<u8>>(), any::<i64>(), nested, -1e9..1e9, any::<Option<u32>>())
}

proptest! {
    #[test]
    fn tuples_decode_as_they_were_encoded(key in wide()) {
        let bytes = encode::<Wide>(&key);
        prop_assert_eq!(Wide::codec().check(&bytes), Ok(()));
        prop_assert_eq!(Wide::decode(&bytes), Ok(key));
    }

    #[test]
    fn tuples_keep_their_order(a in wide(), b in wide()) {
        prop_assert_eq!(encode::<Wide>(&a).cmp(&encode::<Wide>(&b)), a.partial_cmp(&b).unwrap());
    }

    #[test]
    fn any_bytes_decode_exactly_when_they_check(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        prop_assert_eq!(Route::decode(&bytes).is_ok(), Route::codec().check(&bytes).is_ok());
        type Nested = (Option<(i128, Option<Vec<u8>>)>,);
        prop_assert_eq!(Nested::decode(&bytes).is_ok(), Nested::codec().check(&bytes).is_ok());
        prop_assert_eq!(String::decode(&bytes).is_ok(), String::codec().check(&bytes).is_ok());
        prop_assert_eq!(i64::decode(&bytes).is_ok(), i64::codec().check(&bytes).is_ok());
        let _ = Wide::decode(&bytes);
    }

    #[test]
    fn damaged_tuples_never_panic(key in wide(), at in any::<prop::sample::Index>(), by in any::<u8>()) {
        let mut bytes = encode::<Wide>(&key);
        let at = at.index(bytes.len());
        bytes[at] = by;
        if let Ok(key) = Wide::decode(&bytes) {
            prop_assert_eq!(encode::<Wide>(&key), bytes);
        }
    }
}
