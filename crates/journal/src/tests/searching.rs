//! The bytes beyond the end of a log may be chosen by the author of the values of a torn batch.
//! Searching them stays cheap: few bytes are hashed without finding a frame, and there are few
//! reads.

use folddb_base::{ErrorKind, FileNumber, Lsn};
use folddb_host::AppendMode;

use super::recovering::log;
use super::world::World;
use super::{STORE, append, dir, numbers, options, replay_from};
use crate::segment_reader::SegmentReader;
use crate::{Handover, Journal, JournalOptions, JournalStart, LogEnd, ReplayFrom, examine};

const SEGMENT_BYTES: u64 = 4 << 20;

/// A journal of large segments.
fn large() -> (World, Journal) {
    let world = World::default();
    let options = JournalOptions {
        segment_bytes: SEGMENT_BYTES,
        segment_bytes_min: SEGMENT_BYTES,
        ..options(AppendMode::Mapped)
    };
    let start = JournalStart { store_id: STORE, first_lsn: 0, next_seq: 1 };
    let journal = Journal::start(&world.host(), dir(), start, options, numbers(1)).unwrap();
    (world, journal)
}

/// A value of heads of frames of 3 MB.
fn heads(flags: u8, behind: &[u8]) -> Vec<u8> {
    let mut head = vec![0u8; 18];
    head[8..12].copy_from_slice(&3_000_000u32.to_le_bytes());
    (head[16], head[17]) = (0xf7, flags);
    head.extend([100, 1]); // first seq, count
    head.extend(behind);
    head.repeat(16_000 / head.len())
}

/// A log with three batches. The third is this value, and its last byte is wrong. Returns the LSN
/// where the whole frames end.
fn torn(value: &[u8]) -> (World, Lsn) {
    let (world, mut journal) = large();
    let end = append(&mut journal, 1..3, 100)[1];
    journal.append(3, 1, value, Handover::Process).unwrap();
    let mut bytes = world.get(&log(1));
    let last = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[last] ^= 0xff;
    world.put(&log(1), &bytes);
    (world, end)
}

/// Bytes that a search from `lsn` on hashes without finding a frame, and whether it gives up.
fn search(world: &World, lsn: Lsn) -> (u64, bool) {
    let mut reader = SegmentReader::open(&world.host(), dir(), FileNumber(1)).unwrap();
    let header = reader.header(FileNumber(1)).unwrap().unwrap();
    let beyond = reader.search(&header, lsn, lsn).unwrap();
    (reader.wasted_bytes, beyond.gave_up)
}

#[test]
fn heads_that_would_change_no_verdict_are_not_hashed() {
    for (what, value) in [
        ("they vouch for no more than is known", heads(0, &[0xff, 0x7f])),
        ("marks with records", heads(1, &[0])),
        ("flags that nobody knows", heads(0x44, &[0])),
        ("a number that is cut", heads(0, &[0xff; 11])),
    ] {
        let (world, end) = torn(&value);
        let (wasted, gave_up) = search(&world, end);
        // The torn frame itself is no candidate: it vouches for nothing beyond its own place.
        assert_eq!((wasted, gave_up), (0, false), "{what}");
        assert_eq!(replay_from(&world.host(), dir(), 0, 0).1.unwrap().cut_lsn, end, "{what}");
    }
}

#[test]
fn a_search_that_gave_up_is_no_torn_end() {
    let (world, end) = torn(&heads(0, &[0]));
    let (wasted, gave_up) = search(&world, end);
    assert!(gave_up && wasted <= 9 * SEGMENT_BYTES, "{wasted} bytes of a segment of {SEGMENT_BYTES}");
    let error = replay_from(&world.host(), dir(), 0, 0).1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("look like frames"), "{error}");
    let from =
        ReplayFrom { store_id: STORE, log_start_lsn: 0, durable_lsn: 0, is_open: true, end: LogEnd::Own };
    let report = examine(&world.host(), dir(), &from, &mut |_, _| Ok(())).unwrap();
    let [fault] = &report.faults[..] else { panic!("{report:?}") };
    assert!(fault.lsn == end && fault.what.contains("look like frames"), "{fault:?}");
    assert_eq!((report.batches, report.torn), (2, None));
}

#[test]
fn bytes_beyond_a_hole_are_examined_once() {
    let (world, mut journal) = large();
    let ends = append(&mut journal, 1..401, 100);
    journal.syncer().sync_to(ends[399]).unwrap();
    append(&mut journal, 401..402, 100);
    let mut bytes = world.get(&log(1));
    for end in ends.iter().step_by(2).take(199) {
        bytes[4096 + *end as usize + 50] ^= 1;
    }
    world.put(&log(1), &bytes);
    let reads = world.reads();
    let from =
        ReplayFrom { store_id: STORE, log_start_lsn: 0, durable_lsn: 0, is_open: true, end: LogEnd::Own };
    let report = examine(&world.host(), dir(), &from, &mut |_, _| Ok(())).unwrap();
    assert_eq!((report.faults.len(), report.batches + report.batches_beyond), (199, 401 - 199));
    assert!(world.reads() - reads < 20, "{} reads of four mebibytes", world.reads() - reads);
}
