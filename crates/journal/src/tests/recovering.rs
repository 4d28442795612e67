use std::path::PathBuf;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn};
use folddb_host::AppendMode;
use folddb_layout::frame::{FrameHead, FrameKind, claimed_len, put_frame};
use folddb_layout::segment::SegmentHeader;
use proptest::prelude::*;

use super::world::{Fail, World};
use super::{Batch, STORE, append, dir, payload, replay_from, seqs, start, start_at};
use crate::{Handover, LogEnd, ReplayFrom, replay};

pub(super) fn log(number: u64) -> PathBuf {
    dir().join(format!("{number:06}.log"))
}

/// A log of three segments: batches 1 to 60, synced up to one in the middle of the second segment.
pub(super) fn three_segments() -> (World, Vec<Lsn>, Lsn) {
    let world = World::default();
    let mut journal = start(&world.host());
    let mut ends = append(&mut journal, 1..41, 100);
    journal.syncer().sync_to(ends[39]).unwrap();
    let durable = journal.syncer().durable_lsn();
    ends.extend(append(&mut journal, 41..71, 100));
    assert_eq!(journal.syncer().segments().len(), 3);
    (world, ends, durable)
}

fn expect_batches(batches: &[Batch], count: u64) {
    assert_eq!(batches.len() as u64, count);
    for (index, batch) in batches.iter().enumerate() {
        let seq = index as u64 + 1;
        assert_eq!((batch.1, batch.2, &batch.3), (seq, 1, &payload(seq, 100)));
    }
}

#[test]
fn an_empty_directory_is_an_empty_log() {
    let world = World::default();
    let (batches, outcome) = replay_from(&world.host(), dir(), 500, 500);
    let replayed = outcome.unwrap();
    assert!(batches.is_empty());
    assert_eq!((replayed.end_lsn, replayed.cut_lsn, replayed.last_seq), (500, 500, None));
    let (_, outcome) = replay_from(&world.host(), dir(), 500, 501);
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption, "something was durable, and is not there");
}

#[test]
fn a_cut_anywhere_is_known_as_damage() {
    let (world, ends, _) = three_segments();
    let pristine = world.get(&log(2));
    let mut seal_end = 4096;
    while let Some(len) = claimed_len(&pristine[seal_end..]) {
        seal_end += len;
    }
    for len in 0..pristine.len() {
        let mut bytes = pristine.clone();
        bytes.truncate(len);
        // No crash shortens a segment that another was left for, or takes the next one.
        let says = if (4096..seal_end).contains(&len) { "cut short" } else { "says that the log continues" };
        let world = world.after_kill();
        world.put(&log(2), &bytes);
        world.disk_remove(&log(3));
        let (batches, outcome) = replay_from(&world.host(), dir(), 0, 0);
        let whole = ends.iter().filter(|&&end| end <= (len as u64).max(4096)).count() as u64;
        expect_batches(&batches, whole);
        let error = outcome.expect_err("it is known");
        assert!(error.message().contains(says), "cut at {len}: {error}");
    }
}

#[test]
fn zeros_from_anywhere_on_are_a_torn_tail_or_known_as_damage() {
    let (world, ends, durable) = three_segments();
    let pristine = world.get(&log(2));
    for from in (4096..pristine.len()).step_by(7) {
        let mut bytes = pristine.clone();
        bytes[from..].fill(0);
        let world = world.after_kill();
        world.put(&log(2), &bytes);
        let (batches, outcome) = replay_from(&world.host(), dir(), 0, 0);
        let reached = batches.last().unwrap().0;
        expect_batches(&batches, batches.len() as u64);
        // Segment 3 vouches for all that was synced, so the loss of any of it is seen without the
        // manifest.
        assert_eq!(outcome.is_ok(), reached >= durable, "zeros from {from}");
        if let Ok(replayed) = outcome {
            assert!(ends.contains(&replayed.cut_lsn) || replayed.cut_lsn == 4096);
        }
    }
}

#[test]
fn a_flip_anywhere_loses_nothing_durable_in_silence() {
    let (world, ends, durable) = three_segments();
    for number in 1..=3 {
        let pristine = world.get(&log(number));
        for at in 0..pristine.len() {
            let mut bytes = pristine.clone();
            bytes[at] ^= 1 << (at % 8);
            let world = world.after_kill();
            world.put(&log(number), &bytes);
            let (batches, outcome) = replay_from(&world.host(), dir(), 0, 0);
            expect_batches(&batches, batches.len() as u64);
            let reached = batches.last().map_or(0, |batch| batch.0);
            match outcome {
                Ok(_) => assert!(reached >= durable, "segment {number}, byte {at}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption);
                    assert!(error.message().contains(&format!("{number:06}.log")), "{error}");
                    assert!(number < 3 || at < 4096, "what was not synced is cut: {error}");
                }
            }
        }
    }
    assert!(ends.len() == 70);
}

#[test]
fn frames_beyond_a_hole_of_the_same_segment_vouch_for_what_was_there() {
    let world = World::default();
    let mut journal = start(&world.host());
    let durable = append(&mut journal, 1..9, 100)[7];
    journal.syncer().sync_to(durable).unwrap();
    let ends = append(&mut journal, 9..12, 100);
    assert_eq!(journal.syncer().segments().len(), 1);
    let pristine = world.get(&log(1));
    for at in 0..ends[2] {
        let mut bytes = pristine.clone();
        bytes[4096 + at as usize] ^= 1;
        world.put(&log(1), &bytes);
        let (_, outcome) = replay_from(&world.host(), dir(), 0, 0);
        // Without the manifest's word, and with nothing before the hole that vouches for more.
        assert_eq!(outcome.is_ok(), at >= durable, "byte {at} of {}", ends[2]);
    }
}

#[test]
fn damage_is_named_with_file_and_offset() {
    let (world, _, _) = three_segments();
    let mut bytes = world.get(&log(1));
    bytes[4096 + 20] ^= 1;
    world.put(&log(1), &bytes);
    let error = replay_from(&world.host(), dir(), 0, 0).1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("000001.log is damaged at offset 4096"), "{error}");
}

#[test]
fn a_missing_segment_is_seen() {
    for number in 1..=2 {
        let (world, _, _) = three_segments();
        world.disk_remove(&log(number));
        let error = replay_from(&world.host(), dir(), 0, 0).1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{number}");
        assert!(error.message().contains("missing"), "{error}");
    }
}

#[test]
fn a_read_error_is_never_an_end() {
    let (world, _, _) = three_segments();
    world.fail(Some(Fail::Read));
    let error = replay_from(&world.host(), dir(), 0, 0).1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn any_failed_read_is_an_error_and_never_an_end() {
    let (world, ends, durable) = three_segments();
    let mut bytes = world.get(&log(2));
    bytes[usize::try_from(ends[50]).unwrap() + 30] ^= 1; // a hole; what is after it is searched
    world.put(&log(2), &bytes);
    let mut failed = 0;
    for nth in 1.. {
        let world = world.after_kill();
        world.fail(Some(Fail::NthRead(nth)));
        match replay_from(&world.host(), dir(), 0, durable).1 {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "read {nth}: {error}"),
            Ok(replayed) => {
                assert_eq!(replayed.cut_lsn, ends[50], "read {nth}");
                break;
            }
        }
        failed = nth;
    }
    assert!(failed >= 6, "headers, frames, and what lies beyond: only {failed} reads");
}

#[test]
fn an_error_of_the_visitor_ends_the_replay() {
    let (world, _, _) = three_segments();
    let from =
        ReplayFrom { store_id: STORE, log_start_lsn: 0, durable_lsn: 0, is_open: false, end: LogEnd::Own };
    let outcome = replay(&world.host(), dir(), &from, &mut |_| Err(Error::invalid("enough")));
    assert_eq!(outcome.unwrap_err().message(), "enough");
}

#[test]
fn a_log_of_another_store_is_refused() {
    let (world, _, _) = three_segments();
    let from = ReplayFrom {
        store_id: STORE + 1,
        log_start_lsn: 0,
        durable_lsn: 0,
        is_open: false,
        end: LogEnd::Own,
    };
    let error = replay(&world.host(), dir(), &from, &mut |_| Ok(())).unwrap_err();
    assert!(error.message().contains("another store"), "{error}");
}

#[test]
fn replay_begins_where_it_is_told_and_needs_nothing_before() {
    let (world, ends, durable) = three_segments();
    for (index, &end) in ends.iter().enumerate() {
        let (batches, outcome) = replay_from(&world.host(), dir(), end, durable.max(end));
        outcome.unwrap();
        assert_eq!(seqs(&batches), (index as u64 + 2..71).collect::<Vec<_>>());
    }
    // Zeros before the start, even in its own segment: it was never synced, since its records are
    // in runs.
    let start = ends[45];
    let mut bytes = world.get(&log(2));
    bytes[4096..usize::try_from(start).unwrap()].fill(0);
    world.put(&log(2), &bytes);
    world.put(&log(1), b"broken");
    let (batches, outcome) = replay_from(&world.host(), dir(), start, start);
    assert_eq!(seqs(&batches), (47..71).collect::<Vec<_>>());
    assert_eq!(outcome.unwrap().segments.len(), 3);
}

#[test]
fn after_a_cut_a_fresh_chain_is_separate() {
    let (world, ends, durable) = three_segments();
    let mut bytes = world.get(&log(2));
    bytes[usize::try_from(ends[50]).unwrap() + 30] ^= 1; // LSN and offset agree in the second segment
    world.put(&log(2), &bytes);
    let (batches, outcome) = replay_from(&world.host(), dir(), 0, durable);
    expect_batches(&batches, 51);
    let replayed = outcome.unwrap();
    assert_eq!((replayed.cut_lsn, replayed.last_seq), (ends[50], Some(51)));
    assert!(replayed.cut_bytes > (ends[69] - ends[50]) / 2, "the rest of segment 2, and all of segment 3");
    assert_eq!(replayed.end_lsn, 3 * 4096);

    // What was replayed is in runs, and the manifest says this: the old segments may stay or be
    // removed.
    let fresh_lsn = replayed.end_lsn;
    let mut journal = start_at(&world.host(), dir(), AppendMode::Mapped, fresh_lsn, 52, 10);
    let fresh_ends = append(&mut journal, 52..60, 100);
    journal.syncer().sync_to(fresh_ends[7]).unwrap();
    for gone in [vec![], vec![2], vec![1, 2, 3]] {
        let world = world.after_power_cut(&mut || false);
        gone.iter().for_each(|&number| world.disk_remove(&log(number)));
        let (batches, outcome) = replay_from(&world.host(), dir(), fresh_lsn, fresh_ends[7]);
        assert_eq!(seqs(&batches), (52..60).collect::<Vec<_>>());
        assert_eq!(outcome.unwrap().last_seq, Some(59));
    }
    // Without that edit of the manifest the fresh chain vouches against the cut.
    let (_, outcome) = replay_from(&world.host(), dir(), 0, durable);
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_whole_frame_that_does_not_follow_is_damage() {
    let world = World::default();
    let ends = append(&mut start(&world.host()), 1..4, 100);
    let (before, end) = (ends[1], ends[2]);
    let pristine = world.get(&log(1));
    let header = SegmentHeader::decode(&pristine, FileNumber(1)).unwrap();
    let offset = usize::try_from(header.offset_of(end)).unwrap();
    let last = &pristine[usize::try_from(header.offset_of(before)).unwrap()..];
    let prev_hash = u32::from_le_bytes(last[..4].try_into().unwrap()); // the low half of its hash
    for (first_seq, prev_hash, whole) in
        [(4, prev_hash, true), (5, prev_hash, false), (4, prev_hash ^ 1, false)]
    {
        let head = FrameHead {
            kind: FrameKind::Batch,
            first_seq,
            count: 1,
            durable_lsn: 0,
            prev_hash,
            time_ms: None,
        };
        let mut frame = Vec::new();
        put_frame(&mut frame, header.salt, end, &head, &payload(4, 100));
        let mut bytes = pristine.clone();
        bytes[offset..offset + frame.len()].copy_from_slice(&frame);
        world.put(&log(1), &bytes);
        let (batches, outcome) = replay_from(&world.host(), dir(), 0, 0);
        expect_batches(&batches, if whole { 4 } else { 3 });
        assert_eq!(outcome.is_ok(), whole);
        if let Err(error) = outcome {
            assert!(
                error.message().contains(&format!("000001.log is damaged at offset {offset}:")),
                "{error}"
            );
        }
    }
}

#[test]
fn a_segment_whose_creation_was_interrupted_is_skipped() {
    let (world, _, _) = three_segments();
    for torn in [vec![], vec![0; 100], vec![0; 8192]] {
        world.put(&log(4), &torn);
        let (batches, outcome) = replay_from(&world.host(), dir(), 0, 0);
        expect_batches(&batches, 70);
        assert_eq!(outcome.unwrap().segments.len(), 4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whichever unsynced sectors reach the disk, recovery returns a prefix of whole batches with
    /// at least all that was synced, and never refuses.
    #[test]
    fn a_power_cut_loses_only_what_was_not_synced(
        steps in prop::collection::vec((0usize..400, 0u8..10), 1..80),
        mode in prop_oneof![Just(AppendMode::Mapped), Just(AppendMode::Written)],
        mut seed: u64,
    ) {
        let world = World::default();
        let mut journal = start_at(&world.host(), dir(), mode, 0, 1, 1);
        let syncer = journal.syncer();
        let (mut appended, mut acknowledged) = (Vec::new(), 0);
        for (index, &(len, action)) in steps.iter().enumerate() {
            let seq = index as u64 + 1;
            let handover = if action < 3 { Handover::Buffered } else { Handover::Process };
            let end = journal.append(seq, 1, &payload(seq, len), handover).unwrap();
            appended.push((end, seq, 1, payload(seq, len)));
            if action == 9 {
                syncer.sync_to(end).unwrap();
                acknowledged = appended.len();
            }
            if action % 4 == 0 {
                syncer.background(std::time::Duration::from_millis(15 * seq)).unwrap();
            }
        }
        let mut pick = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed & 4 != 0
        };
        let (killed, _) = replay_from(&world.after_kill().host(), dir(), 0, syncer.durable_lsn());
        prop_assert_eq!(&killed[..], &appended[..killed.len()]);
        for _ in 0..3 {
            let world = world.after_power_cut(&mut pick);
            let (batches, outcome) = replay_from(&world.host(), dir(), 0, syncer.durable_lsn());
            prop_assert!(outcome.is_ok(), "{:?}", outcome);
            prop_assert!(batches.len() >= acknowledged);
            prop_assert_eq!(&batches[..], &appended[..batches.len()]);
        }
    }

    #[test]
    fn no_bytes_panic(at in 0usize..8192, noise: Vec<u8>, number in 1u64..4) {
        let (world, _, _) = three_segments();
        let mut bytes = world.get(&log(number));
        let end = bytes.len().min(at + noise.len());
        bytes[at..end].copy_from_slice(&noise[..end - at]);
        world.put(&log(number), &bytes);
        let (batches, _) = replay_from(&world.host(), dir(), 0, 0);
        expect_batches(&batches, batches.len() as u64);
    }
}

#[test]
fn a_log_ends_without_a_close_only_where_its_holder_may_find_it_ended() {
    let (world, ends, _) = three_segments();
    let header = SegmentHeader::decode(&world.get(&log(2)), FileNumber(2)).unwrap();
    let refused = |world: &World, durable_lsn: Lsn| {
        [LogEnd::Own, LogEnd::Copied, LogEnd::Growing].map(|end| {
            let from = ReplayFrom { store_id: STORE, log_start_lsn: 0, durable_lsn, is_open: true, end };
            replay(&world.host(), dir(), &from, &mut |_| Ok(())).err().map(|error| error.message().to_owned())
        })
    };
    let says = |refused: &Option<String>, what: &str| refused.as_ref().is_some_and(|why| why.contains(what));
    // A copy ends where it was made up to; a reader in another process may not have seen the next
    // segment yet.
    world.disk_remove(&log(3));
    let [own, copied, growing] = refused(&world, header.next_lsn());
    assert!(
        says(&own, "says that the log continues") && copied.is_none() && growing.is_none(),
        "{own:?} {copied:?} {growing:?}"
    );
    // Only in a copy is a file shorter than it was made.
    let end = *ends.iter().rfind(|end| (header.first_lsn..header.next_lsn()).contains(end)).unwrap();
    let mut bytes = world.get(&log(2));
    bytes.truncate(header.offset_of(end) as usize);
    world.put(&log(2), &bytes);
    let [own, copied, growing] = refused(&world, end);
    assert!(
        says(&own, "cut short") && copied.is_none() && says(&growing, "cut short"),
        "{copied:?} {growing:?}"
    );
}
