use folddb_base::FileNumber;
use folddb_base::bytes::Malformed;
use proptest::prelude::*;

use super::{SEGMENT_HEADER_BYTES, SegmentHeader};

fn header() -> SegmentHeader {
    SegmentHeader {
        number: FileNumber(7),
        store_id: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
        salt: 0xdead_beef,
        first_lsn: 1 << 33,
        capacity_bytes: (64 << 20) - 4096,
        previous: Some(FileNumber(5)),
    }
}

#[test]
fn it_is_a_page_that_begins_with_its_magic() {
    let bytes = header().encode();
    assert_eq!(bytes.len(), SEGMENT_HEADER_BYTES);
    assert_eq!(&bytes[..12], b"FoldLog\0\x01\0\0\0");
}

#[test]
fn offsets_and_lsns_agree() {
    let header = header();
    assert_eq!(header.offset_of(header.first_lsn), 4096);
    assert_eq!(header.offset_of(header.first_lsn + 10), 4106);
    assert_eq!(header.offset_of(header.next_lsn()), 64 << 20);
}

#[test]
fn every_flip_and_cut_is_seen() {
    let bytes = header().encode();
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(SegmentHeader::decode(&bytes, FileNumber(7)).is_err(), "byte {at}");
    }
    for len in [0, 1, 79, 80, 4095] {
        assert_eq!(SegmentHeader::decode(&bytes[..len], FileNumber(7)), Err(Malformed::Short));
    }
    assert_eq!(SegmentHeader::decode(&bytes, FileNumber(8)), Err(Malformed::Checksum), "under another name");
    assert!(SegmentHeader::decode(&[0; SEGMENT_HEADER_BYTES], FileNumber(7)).is_err());
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        number: u64, store_id: u128, salt: u64, first_lsn in 0..u64::MAX / 2, capacity_bytes in 0..u64::MAX / 2,
        previous: Option<u32>,
    ) {
        let number = FileNumber(number);
        let previous = previous.map(|number| FileNumber(u64::from(number) + 1));
        let header = SegmentHeader { number, store_id, salt, first_lsn, capacity_bytes, previous };
        prop_assert_eq!(SegmentHeader::decode(&header.encode(), number), Ok(header));
    }
}
