use proptest::prelude::*;

use super::*;

const NUMBER: FileNumber = FileNumber(9);

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..12)
}

prop_compose! {
    fn parts()(
        file: u64, file_bytes: u64, records: u64, low in keys(), high in keys(), seqs: [u64; 2],
        deletes: u64, live_bytes: u64, trimmed: bool, fingerprint: Option<u64>,
    ) -> PartState {
        let [min_seq, max_seq] = seqs;
        let file = FileNumber(file);
        PartState { file, file_bytes, records, low, high, min_seq, max_seq, deletes, live_bytes, trimmed, fingerprint }
    }
}

fn changes() -> impl Strategy<Value = Change> {
    let ids =
        (any::<u32>().prop_map(TableId), any::<u64>().prop_map(RunId), any::<u64>().prop_map(FileNumber));
    (0..23, ids, any::<[u64; 3]>(), any::<u8>(), keys(), keys(), ".{0,9}", parts()).prop_map(
        |(tag, (table, run, file), [seq, b, c], tier, from, to, name, part)| match tag {
            0 => Change::SetStore { store_id: u128::from(b) << 64 | u128::from(c), next_table_id: table.0 },
            1 => Change::ReserveNumbers { next_number: b },
            2 => Change::Horizon { last_seq: seq, log_start_lsn: b, durable_lsn: c },
            3 => Change::CreateTable { table, rules_text: name.repeat(2), name },
            4 => Change::DropTable { table },
            5 => Change::Flushed { table, seq },
            6 => Change::AddPart { table, run, tier, age: seq, part },
            7 => Change::RemovePart { table, run, file },
            8 => Change::TrimPart { table, run, file, low: from },
            9 => Change::MoveRun { table, run, tier, age: seq },
            10 => Change::AddRangeDelete { table, from, to, seq },
            11 => Change::RetireRangeDelete { table, seq },
            12 => Change::AddValues { segment: file },
            13 => Change::SealValues { segment: file, end: b },
            14 => Change::RemoveValues { segment: file },
            15 => Change::AddDirectory { segment: file },
            16 => Change::SealDirectory { segment: file, bytes: b, value_files: c },
            17 => Change::DropFeed { name },
            18 => Change::ArchiveLog { file, first_lsn: b, next_lsn: c },
            19 => {
                let note = TableNote {
                    note: b,
                    seq,
                    table,
                    rules_text: name.repeat(2),
                    name,
                    is_dropped: c % 2 == 0,
                };
                Change::NoteTable { note }
            }
            20 => Change::AlterTable { table, rules_text: name, outdated_before: file, kept_since: seq },
            21 => Change::SetFeed { feed: feed(name, from, [seq, b, c], tier) },
            _ => {
                let segments = from.iter().map(|&byte| FileNumber(seq ^ u64::from(byte))).collect();
                Change::MoveValues { file, file_bytes: b, segments }
            }
        },
    )
}

fn feed(name: String, prefix: Vec<u8>, [seq, lsn, note]: [u64; 3], phase: u8) -> FeedState {
    let phase = match phase % 5 {
        0 => FeedPhase::Rows,
        1 => FeedPhase::Changes,
        2 => FeedPhase::Lost(LossCause::Budget),
        3 => FeedPhase::Lost(LossCause::Space),
        _ => FeedPhase::Lost(LossCause::Gone),
    };
    let (bytes_max, values_from) = (note ^ seq, FileNumber(lsn ^ note));
    FeedState { table: name.repeat(2), name, prefix, bytes_max, phase, seq, lsn, note, values_from }
}

fn encoded(offset: u64, kind: EditKind, changes: &[Change]) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(put_edit(&mut bytes, NUMBER, offset, kind, changes));
    bytes
}

proptest! {
    #[test]
    fn an_edit_comes_back(list in prop::collection::vec(changes(), 0..8), offset: u64, snapshot: bool, after: Vec<u8>) {
        let kind = if snapshot { EditKind::Snapshot } else { EditKind::Edit };
        let mut bytes = encoded(offset, kind, &list);
        let len = bytes.len();
        bytes.extend_from_slice(&after);
        let frame = decode_edit(&bytes, NUMBER, offset).unwrap().unwrap();
        prop_assert_eq!((frame.kind, frame.len_bytes), (kind, len));
        prop_assert_eq!(frame.changes(), Ok(list));
    }

    #[test]
    fn every_flip_and_cut_is_seen(list in prop::collection::vec(changes(), 0..4)) {
        let bytes = encoded(0, EditKind::Edit, &list);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            prop_assert_eq!(decode_edit(&flipped, NUMBER, 0), Ok(None));
            prop_assert_eq!(decode_edit(&bytes[..at], NUMBER, 0), Ok(None));
        }
        prop_assert_eq!(decode_edit(&bytes, NUMBER, 1), Ok(None));
        prop_assert_eq!(decode_edit(&bytes, FileNumber(10), 0), Ok(None));
    }

    #[test]
    fn no_changes_panic(changes: Vec<u8>) {
        let _ = EditFrame { kind: EditKind::Edit, len_bytes: 0, changes: &changes }.changes();
        let _ = decode_edit(&changes, NUMBER, 0);
    }
}

#[test]
fn the_unknown_is_refused() {
    let edit = |changes| EditFrame { kind: EditKind::Edit, len_bytes: 0, changes }.changes();
    assert_eq!(edit(&[99, 0]), Err(Malformed::Tag));
    assert_eq!(edit(&[16, 1, 9]), Ok(vec![Change::RemoveValues { segment: FileNumber(9) }]));
    assert_eq!(edit(&[20, 1, 1]), Ok(vec![Change::Require { features: FEATURE_ROPES }]));
    assert_eq!(
        edit(&[20, 1, 3]),
        Ok(vec![Change::Require { features: FEATURE_ROPES | FEATURE_LONG_VALUES }])
    );
    assert_eq!(edit(&[20, 1, 4]), Ok(vec![Change::Require { features: FEATURE_LASTING_PIECES }]));
    assert_eq!(edit(&[20, 1, 8]), Err(Malformed::Tag), "a feature that nobody knows");
    assert_eq!(edit(&[24, 5, 4, 7, 3, 1, 4]), Ok(vec![Change::Times { entries: vec![(7, 3), (8, 7)] }]));
    assert_eq!(edit(&[13, 1, 2]), Err(Malformed::Tag), "a flag is 0 or 1");
    assert_eq!(edit(&[13, 1, 1]), Ok(vec![Change::LogOpen { open: true }]));
    assert_eq!(edit(&[21, 1, 1]), Ok(vec![Change::LogCopied { copied: true }]));
    assert_eq!(edit(&[5, 2, 1, 1]), Err(Malformed::Bounds), "more fields than it has");
    assert_eq!(edit(&[5, 1, 7]), Ok(vec![Change::DropTable { table: TableId(7) }]));
    let mut bytes = encoded(0, EditKind::Edit, &[]);
    bytes[13] = 2;
    let hash = hash64(place_seed(NUMBER.0, 0), &bytes[8..]);
    bytes[..8].copy_from_slice(&hash.to_le_bytes());
    assert_eq!(decode_edit(&bytes, NUMBER, 0), Err(Malformed::Tag));
}
