use super::*;
use crate::pointer::{Pointer, ValuePlace};

#[test]
fn stamps_come_back_as_they_were() {
    for (write_ms, deadline_ms) in
        [(0, 0), (1, NEVER), (1_800_000_000_000, 1_800_000_060_000), (NEVER, NEVER)]
    {
        let stamp = Stamp { write_ms, deadline_ms };
        let payload = [&stamp.bytes()[..], b"value"].concat();
        assert_eq!(Stamp::split(&payload), Ok((stamp, &b"value"[..])));
        assert_eq!(Stamp::of(OpKind::Fold, &payload), Ok(Some(stamp)));
    }
    assert_eq!(Stamp::split(&[0; STAMP_BYTES - 1]), Err(Malformed::Short));
    assert_eq!(Stamp::of(OpKind::Delete, b""), Ok(None));
}

#[test]
fn a_pointer_has_its_deadline_after_its_head() {
    let mut pointer = Vec::new();
    Pointer { place: ValuePlace::default(), time_ms: 7, hash: 1, len: 5000, head: b"head" }.put(&mut pointer);
    assert_eq!(Stamp::of_pointer(&pointer), Ok(Stamp { write_ms: 7, deadline_ms: NEVER }));
    pointer.extend_from_slice(&99u64.to_le_bytes());
    assert_eq!(Stamp::of_pointer(&pointer), Ok(Stamp { write_ms: 7, deadline_ms: 99 }));
    assert_eq!(Pointer::decode(&pointer).map(|pointer| pointer.head), Ok(&b"head"[..]));
    pointer.pop();
    assert!(Stamp::of_pointer(&pointer).is_err());
}

#[test]
fn what_lasts_is_never_over() {
    assert!(!Stamp { write_ms: 0, deadline_ms: NEVER }.is_over_at(u64::MAX));
    assert!(Stamp { write_ms: 0, deadline_ms: 9 }.is_over_at(9));
    assert!(!Stamp { write_ms: 0, deadline_ms: 9 }.is_over_at(8));
}
