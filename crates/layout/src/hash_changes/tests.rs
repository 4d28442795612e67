use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const NUMBER: u64 = 12;

fn slot() -> impl Strategy<Value = u64> {
    (1u64..1 << ADDRESS_BITS, 0u64..64).prop_map(|(address, class)| class << ADDRESS_BITS | address)
}

prop_compose! {
    fn change()(distance in 1u64..1 << 20, point in 0u64..1 << POINT_BITS, old in slot(), new in slot(), kind in 0..3) -> Changed {
        let (old, new) = match kind {
            0 => (0, new),
            1 => (old, 0),
            _ => (old, old ^ (new & 0xffff) << 8 | 1 << 30),
        };
        Changed { seq: distance, point, old, new }
    }
}

/// Changes whose seqs ascend.
fn changes() -> impl Strategy<Value = Vec<Changed>> {
    vec(change(), 0..40).prop_map(|mut changes| {
        let mut seq = 0;
        changes.retain(|change| change.old != change.new);
        for change in &mut changes {
            seq += change.seq;
            change.seq = seq;
        }
        changes
    })
}

fn stored(changes: &[Changed]) -> Vec<u8> {
    let mut out = Vec::new();
    put_changes(&mut out, changes, NUMBER);
    out
}

proptest! {
    #[test]
    fn changes_come_back(changes in changes()) {
        let bytes = stored(&changes);
        let count = changes.len() as u64;
        prop_assert_eq!(read_changes(&bytes, count, NUMBER), Ok(changes));
        prop_assert!(read_changes(&bytes, count, NUMBER + 1).is_err());
        prop_assert!(read_changes(&bytes, count + 1, NUMBER).is_err());
        prop_assert!(count == 0 || read_changes(&bytes, count - 1, NUMBER).is_err());
    }

    #[test]
    fn changes_with_any_byte_changed_or_missing_are_refused(changes in changes(), flip in 1u8..) {
        let bytes = stored(&changes);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= flip;
            prop_assert_eq!(read_changes(&other, changes.len() as u64, NUMBER), Err(Malformed::Checksum), "byte {}", at);
            prop_assert!(read_changes(&bytes[..at], changes.len() as u64, NUMBER).is_err(), "cut at {}", at);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200), count in 0u64..12, number in any::<u64>()) {
        // Once as they are, and once with a correct checksum, so that the rest is examined.
        let mut summed = bytes.clone();
        put_sum(&mut summed, 0, number, 0);
        for bytes in [&bytes, &summed] {
            let _ = read_changes(bytes, count, number);
            if let Some(footer) = bytes.first_chunk() {
                let _ = ChangesFooter::read(footer, number, bytes.len() as u64);
            }
        }
    }
}

#[test]
fn what_is_whole_but_makes_no_sense_is_refused() {
    let good = Changed { seq: 5, point: 9, old: 7, new: 0 };
    let read = |changes: &[Changed]| read_changes(&stored(changes), changes.len() as u64, NUMBER);
    assert!(read(&[good, Changed { seq: 6, ..good }]).is_ok());
    assert_eq!(read(&[good, good]), Err(Malformed::Order), "the same seq twice");
    assert_eq!(read(&[Changed { old: 0, ..good }]), Err(Malformed::Bounds), "nothing goes, nothing comes");
    assert_eq!(read(&[Changed { new: 7, ..good }]), Err(Malformed::Bounds), "the same comes");
    assert_eq!(read(&[Changed { new: 1 << ADDRESS_BITS, ..good }]), Err(Malformed::Bounds), "no address");
    assert_eq!(read(&[Changed { new: 1 << SLOT_BITS | 1, ..good }]), Err(Malformed::Bounds), "no slot");
}

#[test]
fn a_footer_belongs_to_one_file() {
    let footer = ChangesFooter { number: NUMBER, file_bytes: 1000, count: 30, checkpoint: 8, salt: 0xabcd };
    let mut bytes = Vec::new();
    footer.put(&mut bytes);
    let mut bytes = <[u8; CHANGES_FOOTER_BYTES]>::try_from(&bytes[..]).unwrap();
    assert_eq!(ChangesFooter::read(&bytes, NUMBER, 1000), Ok(footer));
    assert!(ChangesFooter::read(&bytes, NUMBER + 1, 1000).is_err());
    assert!(ChangesFooter::read(&bytes, NUMBER, 1001).is_err());
    assert!(ChangesFooter::read(&bytes, NUMBER, 10).is_err());
    for at in 0..bytes.len() {
        bytes[at] ^= 0x20;
        assert!(ChangesFooter::read(&bytes, NUMBER, 1000).is_err(), "byte {at}");
        bytes[at] ^= 0x20;
    }
    bytes[8] = 2;
    assert_eq!(
        ChangesFooter::read(&bytes, NUMBER, 1000),
        Err(Malformed::Checksum.into()),
        "a damaged version"
    );
    let mut newer = bytes[..CHANGES_FOOTER_BYTES - crate::hash_checkpoint::SUM_BYTES].to_vec();
    put_sum(&mut newer, 0, NUMBER, 1000 - CHANGES_FOOTER_BYTES as u64);
    let newer = <[u8; CHANGES_FOOTER_BYTES]>::try_from(&newer[..]).unwrap();
    assert_eq!(ChangesFooter::read(&newer, NUMBER, 1000), Err(FooterFault::Newer(2)));
    let mut many = Vec::new();
    ChangesFooter { count: 47, ..footer }.put(&mut many);
    let many = <[u8; CHANGES_FOOTER_BYTES]>::try_from(&many[..]).unwrap();
    assert_eq!(ChangesFooter::read(&many, NUMBER, 1000), Err(Malformed::Bounds.into()), "more than fit");
}
