use folddb_base::bytes::Malformed;
use proptest::prelude::*;

use super::{FORMAT_MAJOR, Version};

#[test]
fn the_line_is_this() {
    let version = Version::current(0xfeed);
    let text = String::from_utf8(version.encode()).unwrap();
    assert!(
        text.starts_with("folddb format 1 required 0000000000000000 optional 0000000000000000 store 0000")
    );
    assert!(text.contains("feed sum ") && text.ends_with('\n'));
    assert!(version.is_readable());
}

#[test]
fn what_is_newer_is_known_to_be_so() {
    let newer = Version { major: FORMAT_MAJOR + 1, ..Version::current(1) };
    assert!(!Version::decode(&newer.encode()).unwrap().is_readable());
    assert!(!Version::decode(b"folddb format 7 in quite another way\n").unwrap().is_readable());
    let feature = Version { required: 1, ..Version::current(1) };
    assert!(!Version::decode(&feature.encode()).unwrap().is_readable());
    let harmless = Version { optional: u64::MAX, ..Version::current(1) };
    assert!(Version::decode(&harmless.encode()).unwrap().is_readable());
    assert!(!Version { major: 0, ..Version::current(1) }.is_readable());
}

#[test]
fn a_cut_file_is_not_one() {
    let bytes = Version::current(u128::MAX).encode();
    for len in 0..bytes.len() {
        assert!(Version::decode(&bytes[..len]).is_err(), "{len}");
    }
}

#[test]
fn a_flipped_bit_is_seen_unless_it_makes_the_format_newer() {
    let bytes = Version::current(0x1234).encode();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            let seen = Version::decode(&bytes).map(|version| version.is_readable());
            assert!(seen != Ok(true), "byte {at}, bit {bit}");
        }
    }
    assert_eq!(Version::decode(b"\xff\n"), Err(Malformed::Text));
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(required: u64, optional: u64, store_id: u128) {
        let version = Version { major: FORMAT_MAJOR, required, optional, store_id };
        prop_assert_eq!(Version::decode(&version.encode()), Ok(version));
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = Version::decode(&bytes);
    }
}
