use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn varints_come_back(value: u64) {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        prop_assert_eq!(out.len(), varint_len(value));
        let mut reader = Reader::new(&out);
        prop_assert_eq!(reader.varint(), Ok(value));
        prop_assert!(reader.is_empty());
    }

    #[test]
    fn any_bytes_decode_or_fail_without_panic(bytes: Vec<u8>) {
        let mut reader = Reader::new(&bytes);
        while reader.slice().is_ok() && !reader.is_empty() {}
    }

    #[test]
    fn a_prefix_orders_like_its_bytes(a: Vec<u8>, b: Vec<u8>) {
        let (x, y) = (prefix_u64(&a, 0), prefix_u64(&b, 0));
        if x != y {
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        }
    }

    #[test]
    fn a_prefix_is_eight_bytes_padded_with_zeros(bytes in proptest::collection::vec(any::<u8>(), 0..20), skip in 0usize..24) {
        let padded: Vec<u8> = bytes.iter().copied().skip(skip).chain([0; 8]).take(8).collect();
        prop_assert_eq!(prefix_u64(&bytes, skip).to_be_bytes().to_vec(), padded);
    }

    #[test]
    fn common_prefixes_are_longest(a in proptest::collection::vec(0u8..3, 0..40), b in proptest::collection::vec(0u8..3, 0..40)) {
        let len = common_prefix_len(&a, &b);
        prop_assert_eq!(&a[..len], &b[..len]);
        prop_assert!(a.get(len).is_none() || a.get(len) != b.get(len));
    }

    #[test]
    fn bytes_are_the_same_or_are_not(
        a in proptest::collection::vec(any::<u8>(), 0..30),
        b in proptest::collection::vec(any::<u8>(), 0..30),
        changed in any::<proptest::sample::Index>(),
    ) {
        prop_assert!(same_bytes(&a, &a.clone()));
        prop_assert_eq!(same_bytes(&a, &b), a == b);
        if !a.is_empty() {
            let mut other = a.clone();
            other[changed.index(a.len())] ^= 1;
            prop_assert!(!same_bytes(&a, &other));
        }
    }

    #[test]
    fn replacing_leaves_nothing_of_what_was_there(
        mut held in proptest::collection::vec(any::<u8>(), 0..20),
        bytes in proptest::collection::vec(any::<u8>(), 0..20),
        more in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        for bytes in [&bytes, &bytes, &more] {
            replace_bytes(&mut held, bytes);
            prop_assert_eq!(&held, bytes);
            let same_length: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
            replace_bytes(&mut held, &same_length);
            prop_assert_eq!(&held, &same_length);
        }
    }
}

#[test]
fn a_varint_has_one_form_only() {
    assert_eq!(Reader::new(&[0x80, 0x00]).varint(), Err(Malformed::Varint));
    assert_eq!(Reader::new(&[0xff; 10]).varint(), Err(Malformed::Varint));
    assert_eq!(Reader::new(&[0xff; 9]).varint(), Err(Malformed::Short));
}

#[test]
fn a_length_past_the_end_is_refused_before_anything_is_allocated() {
    let mut out = Vec::new();
    put_varint(&mut out, u64::MAX);
    assert!(Reader::new(&out).slice().is_err());
}

#[test]
fn keys_are_the_same_when_their_bytes_are() {
    for (a, b) in [("", ""), ("a", "a"), ("12345678", "12345678"), ("a12345678", "a12345678")] {
        assert!(same_bytes(a.as_bytes(), b.as_bytes()));
    }
    for (a, b) in [("", "a"), ("a", "b"), ("12345678", "12345679"), ("a12345678", "b12345678"), ("ab", "abc")]
    {
        assert!(!same_bytes(a.as_bytes(), b.as_bytes()));
    }
}
