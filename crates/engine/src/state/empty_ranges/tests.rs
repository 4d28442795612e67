use super::*;

fn key(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn range(from: Bound<&str>, to: Option<&str>, seq: Seq) -> EmptyRange {
    EmptyRange { from: from.map(key), to: to.map(key), seq }
}

#[test]
fn a_scan_begins_inside_an_empty_range_or_not() {
    let order = KeyOrder::Bytewise;
    let holds = |range: &EmptyRange, low: Bound<&str>| range.holds(&order, &low.map(key));
    let all = range(Bound::Unbounded, None, 1);
    assert!(holds(&all, Bound::Unbounded) && holds(&all, Bound::Included("x")));
    let some = range(Bound::Excluded("b"), Some("d"), 1);
    assert!(!holds(&some, Bound::Unbounded));
    assert!(!holds(&some, Bound::Included("b")) && holds(&some, Bound::Excluded("b")));
    assert!(holds(&some, Bound::Included("c")) && !holds(&some, Bound::Included("d")));
    let closed = range(Bound::Included("b"), Some("d"), 1);
    assert!(holds(&closed, Bound::Included("b")) && !holds(&closed, Bound::Included("a")));
}

#[test]
fn a_reader_of_the_past_does_not_see_what_was_found_later() {
    let (order, notes) = (KeyOrder::Bytewise, EmptyRanges::default());
    notes.note(range(Bound::Unbounded, Some("d"), 7));
    assert!(notes.find(&order, &Bound::Unbounded, 6).is_none());
    assert_eq!(notes.find(&order, &Bound::Unbounded, 7).unwrap().seq, 7);
}

#[test]
fn few_are_kept_and_no_long_ones() {
    let (order, notes) = (KeyOrder::Bytewise, EmptyRanges::default());
    for number in 0..10u64 {
        notes.note(range(Bound::Included(&format!("k{number}")), Some("l"), number));
    }
    notes.note(range(Bound::Included("k9"), Some("k95"), 11));
    notes.note(range(Bound::Included("k9"), Some("l"), 10));
    notes.note(range(Bound::Included(&"k".repeat(300)), None, 12));
    let kept = notes.notes.lock().iter().map(|note| note.seq).collect::<Vec<_>>();
    assert_eq!(kept, [6, 7, 8, 11]);
    assert!(notes.find(&order, &Bound::Included(key("k5")), 99).is_none());
}
