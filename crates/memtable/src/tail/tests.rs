//! The tail: what is pushed is found, newest first, and a full tail reports that it is full.

use folddb_base::OpKind;
use proptest::prelude::*;

use super::*;

impl Appender {
    /// Appends a record that fits, growing as a memtable does, and shows it.
    pub(crate) fn push(&mut self, record: Record<'_>) {
        self.push_unseen(record);
        self.show();
    }

    fn push_unseen(&mut self, record: Record<'_>) {
        if !self.try_push(record) {
            self.grow(&record, &TailLimits::default());
            assert!(self.try_push(record));
        }
    }
}

fn record<'a>(key: &'a [u8], seq: Seq, payload: &'a [u8]) -> Record<'a> {
    Record { key, seq, kind: OpKind::Fold, payload }
}

#[test]
fn it_is_full_by_records_bytes_or_one_long_chain() {
    let limits = TailLimits { records_max: 3, bytes_max: 100, chain_max: 3 };
    let mut tail = Appender::default();
    assert!(tail.has_room(&record(b"k", 1, &[0; 1000]), &limits), "an empty tail takes any record");
    tail.push(record(b"a", 1, b""));
    assert!(!tail.has_room(&record(b"b", 2, &[0; 100]), &limits), "bytes");
    assert!(!tail.has_room(&record(b"b", 2 + u64::from(u32::MAX), b""), &limits), "a far seq");
    assert!(!tail.has_room(&record(b"b", 1, b""), &limits), "a seq that does not rise");
    tail.push(record(b"a", 2, b""));
    assert!(tail.has_room(&record(b"b", 3, b""), &limits));
    tail.push(record(b"a", 3, b""));
    assert!(!tail.has_room(&record(b"b", 4, b""), &TailLimits { records_max: 9, ..limits }), "a long chain");
    assert!(!tail.has_room(&record(b"b", 4, b""), &TailLimits { chain_max: 9, ..limits }), "records");
    assert_eq!(tail.tail().len(), 3);
    tail.begin(None, &limits);
    assert!(tail.has_room(&record(b"b", 4, b""), &limits));
}

proptest! {
    #[test]
    fn records_of_a_key_are_found_newest_first(
        keys in prop::collection::vec(0u8..40, 0..300),
        max_seq in 0u64..1000,
        cleared in any::<bool>(),
        per_batch in 1usize..20,
    ) {
        let mut tail = Appender::default();
        if cleared {
            (0..100).for_each(|seq| tail.push(record(&[seq as u8], seq + 1, &[b'x'; 100])));
            let gone = tail.begin(None, &TailLimits::default());
            (0..100).for_each(|seq| tail.push(record(&[seq as u8], seq + 1, b"gone too")));
            tail.begin(Some(gone), &TailLimits::default());
        }
        let payload = |seq: Seq| vec![seq as u8; seq as usize % 200];
        for (index, &key) in keys.iter().enumerate() {
            let seq = 5 + 3 * index as Seq;
            tail.push_unseen(record(&[key], seq, &payload(seq)));
            if index % per_batch == 0 {
                tail.show();
            }
        }
        let shown = tail.tail().len();
        for key in 0..41u8 {
            let wanted = [key];
            let records = tail.tail().find(&wanted, key_hash(&wanted), max_seq);
            let found: Vec<Seq> = records.map(|r| {
                assert_eq!((r.key, r.payload), (&[key][..], &payload(r.seq)[..]));
                r.seq
            }).collect();
            let expected: Vec<Seq> = (0..keys.len()).rev()
                .filter(|&index| index < shown && keys[index] == key)
                .map(|index| 5 + 3 * index as Seq)
                .filter(|&seq| seq <= max_seq)
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_range_is_copied_as_it_was_pushed(lens in prop::collection::vec(0usize..300, 1..200), cut in any::<prop::sample::Index>()) {
        let mut tail = Appender::default();
        for (index, &len) in lens.iter().enumerate() {
            tail.push_unseen(record(&index.to_le_bytes()[..index % 9], 10 + 2 * index as Seq, &vec![index as u8; len]));
            if index % 3 == 0 {
                tail.show();
            }
        }
        tail.show();
        let from = cut.index(lens.len() + 1);
        let raw = tail.tail().copy_of(from..lens.len());
        let copied: Vec<(Seq, usize)> = raw.records().map(|r| (r.seq, r.payload.len())).collect();
        let expected: Vec<_> = (from..lens.len()).map(|index| (10 + 2 * index as Seq, lens[index])).collect();
        prop_assert_eq!(copied, expected);
        let seq = 10 + 2 * from as Seq;
        prop_assert_eq!(tail.tail().count_up_to(seq - 1, lens.len()), from);
    }

    #[test]
    fn what_is_packed_is_read_back(key in prop::collection::vec(any::<u8>(), 0..300), len in 0usize..40_000) {
        let payload = vec![7u8; len];
        let mut arena = b"before".to_vec();
        packed::put(&mut arena, OpKind::Insert, &key, &payload);
        let end = arena.len();
        let mut room = vec![0; packed::packed_len_max(&key, &payload)];
        let len = packed::put_at(&mut room, OpKind::Insert, &key, &payload);
        prop_assert_eq!(&room[..len], &arena[6..]);
        packed::put(&mut arena, OpKind::Delete, b"", b"");
        prop_assert!(end - 6 <= packed::packed_len_max(&key, &payload));
        let place = Place::at(&arena, 6);
        let expected = Record { key: &key, seq: 9, kind: OpKind::Insert, payload: &payload };
        prop_assert_eq!(place.record(&arena, 9), expected);
        prop_assert_eq!(place.packed(&arena, 6), &arena[6..end]);
        prop_assert_eq!(Place::at(&arena, end as u32).kind(), OpKind::Delete);
    }
}
