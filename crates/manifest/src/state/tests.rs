use proptest::prelude::*;

use folddb_base::ids::RunId;
use folddb_layout::manifest_edit::PartState;

use super::*;

pub(crate) fn part(file: u64, low: u8) -> PartState {
    PartState {
        file: FileNumber(file),
        file_bytes: file * 100,
        records: file * 3,
        low: vec![low],
        high: vec![low, 9],
        min_seq: file,
        max_seq: file + 5,
        deletes: file % 4,
        live_bytes: file * 90,
        trimmed: false,
        fingerprint: file.is_multiple_of(2).then_some(file << 40),
    }
}

/// Changes: many fit a state, and many do not.
pub(crate) fn changes() -> impl Strategy<Value = Change> {
    let small = 0..4u64;
    (0..23, 0..4u32, small.clone(), small.clone(), any::<u8>(), 0..100u64).prop_map(
        |(tag, table, run, file, byte, seq)| {
            let (table, run, file_number) = (TableId(table), RunId(run), FileNumber(file));
            let (tier, age) = (byte % 3, seq);
            match tag {
                0 => Change::SetStore { store_id: 7, next_table_id: table.0 },
                1 => Change::ReserveNumbers { next_number: seq },
                2 => Change::Horizon { last_seq: seq, log_start_lsn: seq / 2, durable_lsn: seq + 1 },
                3 => Change::CreateTable {
                    table,
                    name: format!("n{}", byte % 5),
                    rules_text: "replace".to_owned(),
                },
                4 => Change::DropTable { table },
                5 => Change::Flushed { table, seq },
                6..=8 => Change::AddPart { table, run, tier, age, part: part(file, byte) },
                9 => Change::RemovePart { table, run, file: file_number },
                10 => Change::TrimPart { table, run, file: file_number, low: vec![byte] },
                11 => Change::MoveRun { table, run, tier, age },
                12..=14 => Change::AddValues { segment: file_number },
                19 => Change::AddDirectory { segment: file_number },
                20 => {
                    Change::SealDirectory { segment: file_number, bytes: seq, value_files: u64::from(byte) }
                }
                15 => Change::SealValues { segment: file_number, end: seq },
                16 => Change::RemoveValues { segment: file_number },
                17..=18 => {
                    let segments = (0..4).filter(|bit| byte & 1 << bit != 0).map(FileNumber).collect();
                    Change::MoveValues { file: FileNumber(4 + seq % 9), file_bytes: seq, segments }
                }
                21 => Change::AlterTable {
                    table,
                    rules_text: format!("replace {byte}"),
                    outdated_before: file_number,
                    kept_since: seq,
                },
                _ if byte < 128 => {
                    Change::AddRangeDelete { table, from: vec![byte], to: vec![byte, 0], seq: file }
                }
                _ => Change::RetireRangeDelete { table, seq: file },
            }
        },
    )
}

fn applied(changes: &[Change]) -> State {
    let mut state = State::default();
    for change in changes {
        let before = state.clone();
        if state.apply(change).is_err() {
            assert_eq!(state, before, "{change:?} failed and changed something");
        }
    }
    state
}

proptest! {
    #[test]
    fn a_snapshot_gives_the_state_again(list in prop::collection::vec(changes(), 0..60)) {
        let state = applied(&list);
        let mut again = State::default();
        for change in state.snapshot() {
            prop_assert_eq!(again.apply(&change), Ok(()), "{:?}", change);
        }
        prop_assert_eq!(again, state);
    }

    #[test]
    fn runs_stand_newest_first_and_none_is_empty(list in prop::collection::vec(changes(), 0..60)) {
        let state = applied(&list);
        for (id, table) in state.tables.iter() {
            prop_assert_eq!(id, table.id);
            prop_assert!(table.id.0 < state.next_table_id);
            prop_assert!(table.runs.windows(2).all(|pair| (pair[0].age, pair[0].id) > (pair[1].age, pair[1].id)));
            prop_assert!(table.runs.iter().all(|run| !run.parts.is_empty()));
            prop_assert_eq!(state.table_by_name(&table.name), Some(table));
        }
        prop_assert!(state.part_files().all(|file| file.0 < state.next_number));
    }

    #[test]
    fn the_values_of_a_segment_lie_in_one_place(list in prop::collection::vec(changes(), 0..60)) {
        let state = applied(&list);
        prop_assert!(state.relocated.keys().all(|segment| !state.values.contains_key(segment)));
        prop_assert!(state.directories.keys().all(|segment| state.values.contains_key(segment)), "directories do not move");
        prop_assert!(state.relocated.values().all(|file| state.relocated_files.contains_key(file)));
        for &file in state.relocated_files.keys() {
            prop_assert!(state.moved_in(file).next().is_some(), "a file that carries nothing is not listed");
            prop_assert!(file.0 < state.next_number);
        }
    }
}

#[test]
fn segments_move_on_and_their_files_go_with_the_last() {
    let file = FileNumber;
    let moved = |to: u64, segments: &[u64]| Change::MoveValues {
        file: file(to),
        file_bytes: 100 * to,
        segments: segments.iter().map(|&segment| file(segment)).collect(),
    };
    let mut state = State::default();
    for segment in 1..=4 {
        state.apply(&Change::AddValues { segment: file(segment) }).unwrap();
    }
    assert_eq!(state.apply(&moved(9, &[])), Err(Malformed::Bounds));
    assert_eq!(state.apply(&moved(9, &[1, 5])), Err(Malformed::Bounds), "there is no segment 5");
    assert_eq!(state.apply(&moved(9, &[2, 1])), Err(Malformed::Order), "they rise");
    assert_eq!(state.apply(&moved(3, &[1, 2])), Err(Malformed::Order), "3 is a segment");
    state.apply(&moved(9, &[1, 2, 3])).unwrap();
    assert_eq!(state.apply(&moved(9, &[4])), Err(Malformed::Order), "a file is written once");
    assert_eq!(state.apply(&Change::SealValues { segment: file(1), end: 5 }), Err(Malformed::Bounds));
    assert_eq!(state.apply(&Change::AddValues { segment: file(1) }), Err(Malformed::Order));
    assert_eq!(state.values.keys().map(|number| number.0).collect::<Vec<_>>(), [4]);
    state.apply(&moved(12, &[2, 4])).unwrap();
    assert_eq!(state.moved_in(file(9)).map(|number| number.0).collect::<Vec<_>>(), [1, 3]);
    state.apply(&Change::RemoveValues { segment: file(3) }).unwrap();
    state.apply(&moved(15, &[1])).unwrap();
    assert_eq!(state.relocated_files, [(file(12), 1200), (file(15), 1500)].into());
    assert_eq!(state.next_number, 16);
    assert!(state.has_values(file(1)) && !state.has_values(file(3)));
}

fn table_with(changes: &[Change]) -> State {
    let create =
        Change::CreateTable { table: TableId(1), name: "t".to_owned(), rules_text: "sum".to_owned() };
    let mut state = State::default();
    for change in [create].iter().chain(changes) {
        state.apply(change).unwrap();
    }
    state
}

fn add(run: u64, age: Seq, file: u64) -> Change {
    Change::AddPart { table: TableId(1), run: RunId(run), tier: 0, age, part: part(file, file as u8) }
}

#[test]
fn parts_come_at_the_end_of_their_run_and_runs_by_age() {
    let state = table_with(&[add(5, 10, 1), add(6, 30, 2), add(7, 10, 3), add(5, 99, 4)]);
    let runs: Vec<_> = state
        .tables
        .get(&TableId(1))
        .unwrap()
        .runs
        .iter()
        .map(|run| (run.id.0, run.age, run.parts.len()))
        .collect();
    assert_eq!(runs, [(6, 30, 1), (7, 10, 1), (5, 10, 2)]);
    assert_eq!(state.part_files().map(|file| file.0).collect::<Vec<_>>(), [2, 3, 1, 4]);
    assert_eq!(state.next_number, 8, "numbers in use are taken");
}

#[test]
fn numbers_that_were_not_used_are_given_back_but_none_of_what_lives() {
    let mut state = table_with(&[add(5, 10, 1), add(6, 20, 40)]);
    let set = |state: &mut State, next_number| {
        state.apply(&Change::ReserveNumbers { next_number }).unwrap();
        state.next_number
    };
    assert_eq!(set(&mut state, 1000), 1000);
    assert_eq!(set(&mut state, 50), 50, "given back");
    assert_eq!(set(&mut state, 3), 41, "part 40 lives");
    state.apply(&Change::AddValues { segment: FileNumber(60) }).unwrap();
    assert_eq!(set(&mut state, 3), 61, "and so does value segment 60");
}

#[test]
fn a_snapshot_knows_what_was_altered() {
    let alter = |outdated_before, kept_since| Change::AlterTable {
        table: TableId(1),
        rules_text: "other".to_owned(),
        outdated_before: FileNumber(outdated_before),
        kept_since,
    };
    for marks in [(0, 0), (9, 0), (0, 5), (9, 5)] {
        let state = table_with(&[alter(marks.0, marks.1)]);
        let again = applied(&state.snapshot());
        assert_eq!(again, state);
        let table = again.tables.get(&TableId(1)).unwrap();
        assert_eq!(
            (&*table.rules_text, table.outdated_before.0, table.kept_since),
            ("other", marks.0, marks.1)
        );
    }
    let mut state = table_with(&[alter(9, 5)]);
    assert_eq!(state.apply(&alter(8, 5)), Err(Malformed::Order), "no mark ever falls");
    assert_eq!(state.apply(&alter(9, 4)), Err(Malformed::Order));
    assert!(state.next_number > 9, "the number is taken");
}

#[test]
fn a_snapshot_knows_where_a_part_is_trimmed() {
    let (table, run) = (TableId(1), RunId(5));
    let mut state = table_with(&[add(5, 10, 1), add(5, 10, 2)]);
    state.apply(&Change::TrimPart { table, run, file: FileNumber(2), low: vec![77] }).unwrap();
    let mut again = State::default();
    state.snapshot().iter().for_each(|change| again.apply(change).unwrap());
    let parts = &again.tables.get(&table).unwrap().runs[0].parts;
    assert_eq!((parts[0].trimmed, parts[1].trimmed, &parts[1].low[..]), (false, true, &[77][..]));
    assert_eq!(again, state);
}

#[test]
fn a_run_goes_with_its_last_part() {
    let (table, run) = (TableId(1), RunId(5));
    let mut state = table_with(&[add(5, 10, 1), add(5, 10, 2)]);
    state.apply(&Change::TrimPart { table, run, file: FileNumber(2), low: vec![77] }).unwrap();
    state.apply(&Change::RemovePart { table, run, file: FileNumber(1) }).unwrap();
    let left = &state.tables.get(&table).unwrap().runs[0].parts;
    assert_eq!((left.len(), &left[0].low[..], left[0].trimmed), (1, &[77][..], true));
    assert_eq!(state.apply(&Change::RemovePart { table, run, file: FileNumber(1) }), Err(Malformed::Bounds));
    state.apply(&Change::RemovePart { table, run, file: FileNumber(2) }).unwrap();
    assert!(state.tables.get(&table).unwrap().runs.is_empty());
    assert_eq!(state.apply(&Change::MoveRun { table, run, tier: 1, age: 1 }), Err(Malformed::Bounds));
}

#[test]
fn what_does_not_fit_is_refused() {
    let table = TableId(1);
    let mut state = table_with(&[add(5, 10, 1)]);
    let name =
        |name: &str, table| Change::CreateTable { table, name: name.to_owned(), rules_text: String::new() };
    assert_eq!(state.apply(&name("t", TableId(2))), Err(Malformed::Order), "a name that is taken");
    assert_eq!(state.apply(&name("u", TableId(1))), Err(Malformed::Order), "a number that was used");
    assert_eq!(state.apply(&name("u", TableId(u32::MAX))), Err(Malformed::Bounds), "no number would be left");
    assert_eq!(state.apply(&add(5, 10, 1)), Err(Malformed::Order), "the same part twice");
    state.apply(&Change::Flushed { table, seq: 9 }).unwrap();
    assert_eq!(state.apply(&Change::Flushed { table, seq: 8 }), Err(Malformed::Order));
    assert_eq!(state.apply(&Change::Flushed { table: TableId(9), seq: 8 }), Err(Malformed::Bounds));
    state.apply(&Change::DropTable { table }).unwrap();
    assert_eq!(state.apply(&name("t", table)), Err(Malformed::Order), "numbers are never used again");
    state.apply(&name("t", TableId(2))).unwrap();
    state.apply(&Change::SetStore { store_id: 3, next_table_id: 3 }).unwrap();
    assert_eq!(state.apply(&Change::SetStore { store_id: 4, next_table_id: 3 }), Err(Malformed::Order));
}

#[test]
fn horizons_never_turn_back() {
    let mut state = State::default();
    for (last_seq, log_start_lsn, durable_lsn) in [(10, 200, 300), (9, 100, 250), (12, 150, 100)] {
        state.apply(&Change::Horizon { last_seq, log_start_lsn, durable_lsn }).unwrap();
    }
    assert_eq!((state.last_seq, state.log_start_lsn, state.durable_lsn), (12, 200, 300));
}
