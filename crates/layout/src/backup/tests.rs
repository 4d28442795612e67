use folddb_base::FileNumber;
use folddb_base::bytes::Malformed;
use proptest::prelude::*;

use super::{BackupList, ListedFile, Origin, decode_place, encode_place};
use crate::file_name::FileName;

fn list() -> BackupList {
    let file = |name, len_bytes, origin| ListedFile { name, len_bytes, tail_hash: 0xfeed << 40, origin };
    BackupList {
        generation: 3,
        store_id: 0x0123_4567,
        made_unix_s: 1_763_706_328,
        first_seq: 120,
        last_seq: 4711,
        files: vec![
            file(FileName::Format, 156, Origin::Copied),
            file(FileName::Part(FileNumber(9)), 34_567, Origin::Linked),
            file(FileName::Log(FileNumber(1_000_000)), 0, Origin::Copied),
        ],
    }
}

#[test]
fn the_list_is_this() {
    let text = String::from_utf8(list().encode()).unwrap();
    let said = "folddb backup 1\ngeneration 3\nstore 00000000000000000000000001234567\nmade 1763706328\nseqs 120 4711\n\
        file FORMAT 156 00feed0000000000 copied\nfile 000009.part 34567 00feed0000000000 linked\n\
        file 1000000.log 0 00feed0000000000 copied\nsum ";
    assert!(text.starts_with(said), "{text}");
    assert_eq!(BackupList::decode(text.as_bytes()), Ok(list()));
}

#[test]
fn a_list_that_is_cut_or_flipped_is_not_one() {
    let bytes = list().encode();
    for len in 0..bytes.len() {
        assert!(BackupList::decode(&bytes[..len]).is_err(), "{len}");
    }
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        assert!(BackupList::decode(&bytes).is_err(), "{at}");
    }
}

#[test]
fn a_newer_list_is_known_to_be_so() {
    assert_eq!(BackupList::decode(b"folddb backup 2\nin another way\n"), Err(Malformed::Tag));
    assert_eq!(decode_place(b"folddb backups 2 in another way\n"), Err(Malformed::Tag));
}

#[test]
fn a_place_that_is_cut_or_flipped_is_not_one() {
    let bytes = encode_place(u128::MAX - 7);
    assert_eq!(decode_place(&bytes), Ok(u128::MAX - 7));
    for len in 0..bytes.len() {
        assert!(decode_place(&bytes[..len]).is_err(), "{len}");
    }
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        assert!(decode_place(&bytes).is_err(), "{at}");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, text: String) {
        let _ = (BackupList::decode(&bytes), decode_place(&bytes));
        let _ = BackupList::decode(format!("folddb backup 1\n{text}sum 0\n").as_bytes());
    }
}
