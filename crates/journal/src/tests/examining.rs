use folddb_base::checksum::{hash64, place_seed};
use folddb_base::{FileNumber, Lsn};
use folddb_layout::frame::{FrameHead, FrameKind, put_frame};
use folddb_layout::segment::SegmentHeader;

use super::recovering::{log, three_segments};
use super::world::World;
use super::{Batch, STORE, dir, replay_from, seqs};
use crate::{LogEnd, LogReport, ReplayFrom, examine};

/// What it finds: the batches before the first hole, those beyond, and the report.
fn look(world: &World, durable_lsn: Lsn) -> (Vec<Batch>, Vec<Batch>, LogReport) {
    let (mut before, mut beyond) = (Vec::new(), Vec::new());
    let from = ReplayFrom { store_id: STORE, log_start_lsn: 0, durable_lsn, is_open: true, end: LogEnd::Own };
    let report = examine(&world.host(), dir(), &from, &mut |frame, is_beyond| {
        let batches = if is_beyond { &mut beyond } else { &mut before };
        batches.push((frame.end_lsn, frame.first_seq, frame.count, frame.payload.to_vec()));
        Ok(())
    });
    (before, beyond, report.unwrap())
}

#[test]
fn a_whole_log_has_no_faults() {
    let (world, _, durable) = three_segments();
    let (before, beyond, report) = look(&world, durable);
    assert_eq!((before.len(), beyond.len()), (70, 0));
    assert_eq!((report.batches, report.records, report.needed), (70, 70, 3));
    assert!(report.faults.is_empty() && report.torn.is_none(), "{report:?}");
}

/// It must report the same as a replay: damage or not, and the same batches before it.
fn compare(world: &World, what: &str) {
    let (replayed, outcome) = replay_from(&world.host(), dir(), 0, 0);
    let (before, beyond, report) = look(world, 0);
    match outcome {
        Ok(replayed) => {
            assert!(report.faults.is_empty(), "{what}: {:?}", report.faults);
            assert_eq!((report.batches, report.end_lsn), (replayed.batches, replayed.cut_lsn), "{what}");
        }
        Err(error) => assert!(!report.faults.is_empty(), "{what}: {error:?}"),
    }
    // With a restored header it sees more than a replay does.
    assert!(before.starts_with(&replayed), "{what}: {:?} and {:?}", seqs(&before), seqs(&replayed));
    let all: Vec<u64> = seqs(&before).into_iter().chain(seqs(&beyond)).collect();
    assert!(all.is_sorted_by(|a, b| a < b), "{what}: {all:?}");
}

#[test]
fn it_finds_faults_exactly_where_a_replay_refuses() {
    let (pristine, ..) = three_segments();
    for number in 1..=3 {
        let whole = pristine.get(&log(number));
        for at in (0..whole.len()).step_by(5).chain(0..90).chain(4090..4200) {
            let world = pristine.after_kill();
            let mut bytes = whole.clone();
            bytes[at] ^= if at % 2 == 0 { 1 << (at % 8) } else { 0xff };
            world.put(&log(number), &bytes);
            compare(&world, &format!("segment {number}, byte {at}"));
        }
    }
}

#[test]
fn it_finds_a_segment_that_was_cut_exactly_where_a_replay_refuses_it() {
    let (pristine, ..) = three_segments();
    for number in 1..=3 {
        let whole = pristine.get(&log(number));
        for len in (0..whole.len()).step_by(7).chain(4090..4110) {
            let world = pristine.after_kill();
            world.put(&log(number), &whole[..len]);
            compare(&world, &format!("segment {number} cut to {len}"));
        }
    }
}

/// Its LSNs do not show whether it is needed: they are those of another segment.
#[test]
fn the_bytes_of_an_older_segment_in_the_newest_are_found_also_where_that_one_is_not_needed() {
    let (world, ..) = three_segments();
    let second = SegmentHeader::decode(&world.get(&log(2)), FileNumber(2)).unwrap();
    let log_start_lsn = second.first_lsn;
    world.put(&log(3), &world.get(&log(1)));
    let (_, outcome) = replay_from(&world.host(), dir(), log_start_lsn, log_start_lsn);
    assert!(outcome.is_err());
    let (store_id, durable_lsn) = (STORE, log_start_lsn);
    let from = ReplayFrom { store_id, log_start_lsn, durable_lsn, is_open: true, end: LogEnd::Own };
    let report = examine(&world.host(), dir(), &from, &mut |_, _| Ok(())).unwrap();
    let [fault] = &report.faults[..] else { panic!("{:?}", report.faults) };
    assert_eq!(fault.file, Some(FileNumber(3)));
    assert!(fault.what.contains("these are the bytes of segment f1"), "{}", fault.what);
    assert!(!fault.costs_nothing, "what should stand there stands nowhere");
}

/// The checksum of a header proves which segment it is: whatever its file is called, it is read as
/// that segment, and nothing is lost.
#[test]
fn segments_whose_files_were_swapped_are_read_in_their_places() {
    let (pristine, _, durable) = three_segments();
    let whole: Vec<Vec<u8>> = (1..=3).map(|number| pristine.get(&log(number))).collect();
    for order in [[2, 1, 3], [1, 3, 2], [3, 2, 1], [2, 3, 1], [3, 1, 2]] {
        let world = pristine.after_kill();
        (1..=3).zip(order).for_each(|(file, segment)| world.put(&log(file), &whole[segment - 1]));
        assert!(replay_from(&world.host(), dir(), 0, 0).1.is_err(), "{order:?}");
        let (before, beyond, report) = look(&world, durable);
        assert_eq!((before.len(), beyond.len()), (70, 0), "{order:?}: {report:?}");
        assert!(!report.faults.is_empty(), "{order:?}");
        assert!(report.faults.iter().all(|fault| fault.costs_nothing), "{order:?}: {:?}", report.faults);
    }
    // One was renamed over another: that one is gone, and this one counts once.
    let world = pristine.after_kill();
    world.put(&log(2), &whole[2]);
    let (before, beyond, report) = look(&world, durable);
    let all = || look(&pristine, durable).0;
    assert!(all().starts_with(&before) && all().ends_with(&beyond), "{before:?}, {beyond:?}");
    assert!(!beyond.is_empty() && before.len() + beyond.len() < 70, "{report:?}");
    assert!(report.faults.iter().any(|fault| !fault.costs_nothing), "{:?}", report.faults);
    // The only copy of one that was put under the name of another, which is gone.
    world.put(&log(3), &[0; 100]);
    let (again, beyond_again, report) = look(&world, durable);
    assert_eq!((again, beyond_again), (before, beyond), "{report:?}");
    assert!(report.faults.iter().any(|fault| !fault.costs_nothing), "{:?}", report.faults);
}

/// Nothing vouches for it, but it is whole: a newer version wrote it, and it is not torn.
#[test]
fn a_whole_frame_of_a_newer_version_is_no_torn_end() {
    let (world, ends, _) = three_segments();
    let mut bytes = world.get(&log(3));
    let header = SegmentHeader::decode(&bytes, FileNumber(3)).unwrap();
    let lsn = ends[ends.len() - 1];
    let mut frame = Vec::new();
    let head = FrameHead {
        kind: FrameKind::Batch,
        first_seq: 71,
        count: 0,
        durable_lsn: 0,
        prev_hash: 0,
        time_ms: None,
    };
    put_frame(&mut frame, header.salt, lsn, &head, &[]);
    frame[17] |= 1 << 6;
    let hash = hash64(place_seed(header.salt, lsn), &frame[8..]);
    frame[..8].copy_from_slice(&hash.to_le_bytes());
    let at = header.offset_of(lsn) as usize;
    bytes[at..at + frame.len()].copy_from_slice(&frame);
    bytes[at + frame.len()..].fill(0);
    world.put(&log(3), &bytes);
    compare(&world, "an unknown frame");
    let (before, _, report) = look(&world, 0);
    let [fault] = &report.faults[..] else { panic!("{:?}", report.faults) };
    assert_eq!((before.len(), fault.offset, report.torn), (70, at as u64, None));
}

#[test]
fn a_hole_reports_what_it_lost_and_what_is_beyond() {
    let (world, ends, durable) = three_segments();
    let mut bytes = world.get(&log(1));
    let (from, to) = (ends[4] as usize, ends[7] as usize); // batches 6 to 8
    bytes[4096 + from..4096 + to].fill(0x55);
    world.put(&log(1), &bytes);
    let (before, beyond, report) = look(&world, durable);
    assert_eq!((before.len(), beyond.len()), (5, 62));
    let [fault] = &report.faults[..] else { panic!("{:?}", report.faults) };
    assert_eq!((fault.lsn, fault.to_lsn, fault.records), (ends[4], Some(ends[7]), Some(3)));
    assert_eq!(fault.offset, 4096 + ends[4]);
}

#[test]
fn a_damaged_header_is_restored_where_the_hashes_leave_no_doubt() {
    let (world, ..) = three_segments();
    for at in [0, 9, 16, 24, 41, 50, 57, 66, 75, 200] {
        let world = world.after_kill();
        let mut bytes = world.get(&log(2));
        bytes[at] ^= 0x5a;
        world.put(&log(2), &bytes);
        let (before, beyond, report) = look(&world, 0);
        assert_eq!(
            (before.len(), beyond.len(), report.faults.len()),
            (70, 0, 1),
            "byte {at}: {:?}",
            report.faults
        );
    }
    // Two bytes are wrong, one of them in the salt: nothing is known about that segment.
    let mut bytes = world.get(&log(2));
    (bytes[41], bytes[50]) = (!bytes[41], !bytes[50]);
    world.put(&log(2), &bytes);
    let (before, beyond, report) = look(&world, 0);
    assert!(before.len() < 40 && !beyond.is_empty(), "{} and {}", before.len(), beyond.len());
    let lost: u64 = report.faults.iter().filter_map(|fault| fault.records).sum();
    assert_eq!(before.len() + beyond.len() + lost as usize, 70, "{:?}", report.faults);
}

/// It would be removed with the segments that are no longer needed, and it may be needed.
#[test]
fn a_segment_of_another_store_is_refused_and_found_even_where_it_is_not_needed() {
    let (world, ..) = three_segments();
    let second = SegmentHeader::decode(&world.get(&log(2)), FileNumber(2)).unwrap();
    let mut first = SegmentHeader::decode(&world.get(&log(1)), FileNumber(1)).unwrap();
    assert!(first.next_lsn() <= second.first_lsn);
    first.store_id = STORE + 1;
    let mut bytes = world.get(&log(1));
    let header = first.encode();
    bytes[..header.len()].copy_from_slice(&header);
    world.put(&log(1), &bytes);

    let log_start_lsn = second.first_lsn;
    let (_, outcome) = replay_from(&world.host(), dir(), log_start_lsn, log_start_lsn);
    assert!(outcome.unwrap_err().message().contains("another store"));
    let from = ReplayFrom {
        store_id: STORE,
        log_start_lsn,
        durable_lsn: log_start_lsn,
        is_open: true,
        end: LogEnd::Own,
    };
    let report = examine(&world.host(), dir(), &from, &mut |_, _| Ok(())).unwrap();
    let found = report.faults.iter().find(|fault| fault.what.contains("another store"));
    assert_eq!(found.and_then(|fault| fault.file), Some(first.number), "{:?}", report.faults);
}
