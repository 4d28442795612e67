//! The manifest: one edit, what its changes do to the state, and whole files.

use folddb_base::checksum::{hash64, place_seed};
use folddb_base::ids::RunId;
use folddb_base::{FileNumber, TableId};
use folddb_layout::file_name::FileName;
use folddb_layout::manifest_edit::{
    Change, EditKind, IndexBuild, IndexSegment, IndexState, PartState, decode_edit, put_edit,
};
use folddb_manifest::{State, examine, load};

use crate::memory::{dir, host_with};
use crate::target::Target;

// A change in memory is larger than its bytes: `DropTable` takes three of them, a `Change` some
// hundred and sixty.
pub(super) const TARGETS: &[Target] = &[
    Target::new("manifest-edit", edit, edit_seeds).sealed_by(seal_file).heap(1024, 64 << 10),
    Target::new("manifest-file", file, file_seeds).sealed_by(seal_file).heap(1024, 64 << 10),
];

const NUMBER: FileNumber = FileNumber(3);

/// The first edit of the input, standing at offset 0.
fn edit(input: &[u8]) {
    let Ok(Some(frame)) = decode_edit(input, NUMBER, 0) else { return };
    let Ok(changes) = frame.changes() else { return };
    let mut again = Vec::new();
    assert!(put_edit(&mut again, NUMBER, 0, frame.kind, &changes));
    assert_eq!(again, input[..frame.len_bytes]);
    let mut state = State::default();
    for change in &changes {
        let before = state.clone();
        if state.apply(change).is_err() {
            assert_eq!(state, before, "a change that does not fit leaves the state as it was: {change:?}");
        }
    }
    check_snapshot(&state);
}

/// The snapshot of a state makes it from nothing.
fn check_snapshot(state: &State) {
    let mut again = State::default();
    for change in state.snapshot() {
        let applied = again.apply(&change);
        assert_eq!(applied, Ok(()), "a snapshot applies: {change:?}");
    }
    assert_eq!(again, *state);
}

/// A whole manifest, alone in its directory.
fn file(input: &[u8]) {
    let host = host_with([(FileName::Manifest(NUMBER).to_string(), input.to_vec())]);
    let loaded = load(&host, dir());
    let examined = examine(&host, dir()).expect("the directory can be listed");
    assert_eq!(examined.len(), 1);
    assert_eq!(examined[0].is_whole(), loaded.is_ok(), "{examined:?} and {loaded:?}");
    let Ok(loaded) = loaded else { return };
    assert_eq!(examined[0].state.as_ref(), Some(&loaded.state));
    assert_eq!(examined[0].cut_bytes, loaded.cut_bytes);
    assert_eq!(loaded.number, NUMBER);
    assert!(loaded.next_number > NUMBER.0);
    assert!(loaded.cut_bytes < input.len() as u64);
    check_snapshot(&loaded.state);
    // What was cut does not count: without it the state is the same.
    let whole = input[..input.len() - loaded.cut_bytes as usize].to_vec();
    let host = host_with([(FileName::Manifest(NUMBER).to_string(), whole)]);
    let again = load(&host, dir()).expect("a manifest without its torn end");
    assert_eq!((again.state, again.cut_bytes), (loaded.state, 0));
}

/// Makes the hash of each edit right, from the first on.
fn seal_file(input: &mut [u8]) {
    let mut at = 0;
    while let Some(head) = input.get(at..at + 14) {
        let len = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let Some(edit) = input[at..].get_mut(..len) else { return };
        if len < 14 {
            return;
        }
        let hash = hash64(place_seed(NUMBER.0, at as u64), &edit[8..]);
        edit[..8].copy_from_slice(&hash.to_le_bytes());
        at += len;
    }
}

fn part(file: u64, low: &[u8], high: &[u8]) -> PartState {
    PartState {
        file: FileNumber(file),
        file_bytes: 4096,
        records: 10,
        low: low.to_vec(),
        high: high.to_vec(),
        min_seq: 1,
        max_seq: 300,
        deletes: 2,
        live_bytes: 3000,
        trimmed: false,
        fingerprint: (file == 22).then_some(u64::MAX),
    }
}

/// One of each change, in an order in which they fit.
fn changes() -> Vec<Change> {
    let (table, run, file) = (TableId(1), RunId(20), FileNumber(21));
    let other_run = RunId(30);
    vec![
        Change::CreateTable {
            table,
            name: "hits".to_owned(),
            rules_text: "rules 1\nfold=sum:u64\n".to_owned(),
        },
        Change::AlterTable {
            table,
            rules_text: "rules 1\nblock_bytes=4096\nfold=sum:u64\n".to_owned(),
            outdated_before: FileNumber(25),
            kept_since: 200,
        },
        Change::Flushed { table, seq: 300 },
        Change::AddPart { table, run, tier: 0, age: 300, part: part(21, b"a", b"f") },
        Change::AddPart { table, run, tier: 0, age: 300, part: part(22, b"g", b"k") },
        Change::AddPart { table, run: other_run, tier: 1, age: 100, part: part(31, b"a", b"z") },
        Change::AddRangeDelete { table, from: b"b".to_vec(), to: b"c".to_vec(), seq: 301 },
        Change::Horizon { last_seq: 301, log_start_lsn: 4096, durable_lsn: 5000 },
        Change::ReserveNumbers { next_number: 1031 },
        Change::TrimPart { table, run, file, low: b"c".to_vec() },
        Change::RemovePart { table, run, file },
        Change::MoveRun { table, run, tier: 2, age: 50 },
        Change::RetireRangeDelete { table, seq: 301 },
        Change::CreateTable { table: TableId(2), name: "other".to_owned(), rules_text: String::new() },
        Change::DropTable { table: TableId(2) },
        Change::LogOpen { open: true },
        Change::LogCopied { copied: true },
        Change::SetStore { store_id: 0xabcd_ef01, next_table_id: 7 },
    ]
}

/// Changes about value segments, in an order in which they fit.
fn value_changes() -> Vec<Change> {
    let segment = FileNumber(40);
    vec![
        Change::AddValues { segment },
        Change::AddValues { segment: FileNumber(41) },
        Change::SealValues { segment, end: 8192 },
        Change::RemoveValues { segment: FileNumber(41) },
        Change::AddDirectory { segment: FileNumber(42) },
        Change::SealDirectory { segment: FileNumber(42), bytes: 5000, value_files: 2 },
        Change::Require { features: 1 },
        Change::MoveValues { file: FileNumber(50), file_bytes: 20_000, segments: vec![segment] },
        Change::Times { entries: vec![(7, 1_800_000_000_000), (9, 1_800_000_001_000)] },
        Change::BuildIndex {
            table: TableId(1),
            build: IndexBuild { since: 0, building: Some(b"key".to_vec()) },
        },
        Change::BuildIndex { table: TableId(1), build: IndexBuild { since: 310, building: None } },
    ]
}

/// The checkpoint of a hashed table, and what came after it.
fn index_changes() -> [Change; 2] {
    let one = |segment| IndexSegment { segment, records: 3, bytes: 1024, end: 9000 };
    let segments = vec![one(40), one(0x000f_ffff)];
    let index = IndexState { file: FileNumber(50), file_bytes: 500, keys: 6, max_seq: 310, segments };
    let changes = IndexState { file: FileNumber(52), keys: 2, max_seq: 320, ..index.clone() };
    let table = TableId(1);
    [Change::SaveIndex { table, index }, Change::SaveChanges { table, changes }]
}

fn encoded(offset: usize, kind: EditKind, changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(put_edit(&mut out, NUMBER, offset as u64, kind, changes), "an edit of a few bytes");
    out
}

fn edit_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> =
        changes().iter().map(|change| encoded(0, EditKind::Edit, std::slice::from_ref(change))).collect();
    seeds.push(encoded(0, EditKind::Snapshot, &changes()));
    seeds.push(encoded(0, EditKind::Edit, &value_changes()));
    seeds.push(encoded(0, EditKind::Edit, &index_changes()));
    seeds
}

fn file_seeds() -> Vec<Vec<u8>> {
    let changes = changes();
    let mut state = State::default();
    for change in &changes[..8] {
        assert!(state.apply(change).is_ok(), "the changes fit: {change:?}");
    }
    let snapshot = encoded(0, EditKind::Snapshot, &state.snapshot());
    let mut longer = snapshot.clone();
    for piece in changes[8..].chunks(3) {
        longer.extend(encoded(longer.len(), EditKind::Edit, piece));
    }
    let mut torn = longer.clone();
    torn.truncate(longer.len() - 3);
    let mut with_values = snapshot.clone();
    with_values.extend(encoded(snapshot.len(), EditKind::Edit, &value_changes()));
    vec![snapshot, longer, torn, with_values]
}
