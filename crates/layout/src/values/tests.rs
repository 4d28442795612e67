use folddb_base::ValuePlace;

use super::*;

fn pointer(hash: u32, len: u64) -> Pointer<'static> {
    Pointer { place: ValuePlace { segment: 1, unit: 256 }, time_ms: 0, hash, len, head: &[] }
}

#[test]
fn a_record_gives_its_value_to_its_pointer_alone() {
    let mut bytes = Vec::new();
    let hash = put_record(&mut bytes, TableId(3), b"key", b"a value");
    assert_eq!(bytes.len() as u64, record_bytes(3, 7));
    assert_eq!(bytes.len() % 16, 0);
    let right = pointer(hash, 7);
    assert_eq!(value_in(&bytes, TableId(3), b"key", &right), Some(&b"a value"[..]));
    assert_eq!(value_in(&bytes, TableId(4), b"key", &right), None);
    assert_eq!(value_in(&bytes, TableId(3), b"kez", &right), None);
    assert_eq!(value_in(&bytes, TableId(3), b"key", &pointer(hash, 6)), None);
    assert_eq!(value_in(&bytes, TableId(3), b"key", &pointer(hash ^ 1, 7)), None);
    assert_eq!(value_in(&bytes[..33], TableId(3), b"key", &right), None);
}

#[test]
fn every_bit_of_a_record_matters_except_the_zeros_after_it() {
    let mut bytes = Vec::new();
    let hash = put_record(&mut bytes, TableId(3), b"key", b"a value");
    for bit in 0..(RECORD_HEAD_BYTES + 3 + 7) * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(value_in(&flipped, TableId(3), b"key", &pointer(hash, 7)), None, "bit {bit}");
    }
}

#[test]
fn a_record_says_where_the_front_of_its_value_is_and_has_no_other_flag() {
    for is_behind in [false, true] {
        let mut bytes = Vec::new();
        put_head(&mut bytes, (TableId(3), b"key"), 7, 1, is_behind);
        let head = RecordHead::decode(&bytes).unwrap();
        assert_eq!((head.front_is_behind, head.is_of(b"key"), head.key_len), (is_behind, true, 3));
        bytes[14] |= 2;
        assert!(RecordHead::decode(&bytes).is_err());
    }
}

#[test]
fn a_header_is_that_of_one_file() {
    let header = header(FileNumber(12));
    assert_eq!(header.len(), VALUES_HEADER_BYTES);
    assert_eq!(check_header(&header, FileNumber(12)), Ok(()));
    assert!(check_header(&header, FileNumber(13)).is_err());
    for at in [0, 9, 10, 16, 72, 80, 4095] {
        let mut flipped = header.clone();
        flipped[at] ^= 1;
        assert!(check_header(&flipped, FileNumber(12)).is_err(), "byte {at}");
    }
}

#[test]
fn records_follow_each_other() {
    let mut bytes = Vec::new();
    put_record(&mut bytes, TableId(1), b"", b"");
    put_record(&mut bytes, TableId(1), b"k", &[7; 100]);
    let first = RecordHead::decode(&bytes).unwrap();
    assert!(first.is_of(b""));
    let second = RecordHead::decode(&bytes[first.record_bytes() as usize..]).unwrap();
    assert_eq!((second.len, second.is_of(b"k"), second.is_of(b"l")), (100, true, false));
}
