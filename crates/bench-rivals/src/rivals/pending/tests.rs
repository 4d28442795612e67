use super::*;

#[test]
fn a_fold_sees_what_the_batch_did_before() {
    let mut pending = Pending::new(Meaning::Sum);
    let two = 2u64.to_le_bytes();
    let stored = |_: &[u8], value: &mut Vec<u8>| {
        value.extend_from_slice(&40u64.to_le_bytes());
        Ok(true)
    };
    pending.collect(Op::Fold { key: b"a", operand: &two }, stored).expect("a sum");
    pending
        .collect(Op::Fold { key: b"a", operand: &two }, |_, _| unreachable!("it is known"))
        .expect("a sum");
    let values: Vec<_> = pending.drain().collect();
    assert_eq!(values, [(b"a".to_vec(), Some(44u64.to_le_bytes().to_vec()))]);
    assert_eq!(pending.drain().count(), 0);
}

#[test]
fn a_fold_after_a_delete_begins_from_nothing() {
    let mut pending = Pending::new(Meaning::Append);
    pending.collect(Op::Delete { key: b"a" }, |_, _| Ok(true)).expect("a delete");
    pending.collect(Op::Fold { key: b"a", operand: b"x" }, |_, _| Ok(true)).expect("an append");
    assert_eq!(pending.drain().collect::<Vec<_>>(), [(b"a".to_vec(), Some(b"x".to_vec()))]);
}
