use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use folddb_base::{Error, ErrorKind};
use folddb_host::sync::Mutex;
use folddb_host::{AppendMode, Host};

use super::world::{Fail, World};
use super::{SEGMENT_BYTES, append, dir, numbers, options, payload, replay_from, seqs, start, start_at};
use crate::{Handover, Journal, JournalStart, SyncBefore};

#[test]
fn what_is_appended_is_replayed_on_the_real_disk() {
    for mode in [AppendMode::Mapped, AppendMode::Written] {
        let temp = tempfile::tempdir().unwrap();
        let host = Host::real();
        let mut journal = start_at(&host, temp.path(), mode, 0, 1, 1);
        let ends = append(&mut journal, 1..101, 300);
        assert!(journal.syncer().segments().len() > 5);
        journal.syncer().sync_to(ends[98]).unwrap();
        assert_eq!(journal.syncer().durable_lsn(), ends[99], "a sync takes all that is there along");
        drop(journal);
        let (batches, outcome) = replay_from(&host, temp.path(), 0, ends[99]);
        let replayed = outcome.unwrap();
        assert_eq!(batches.len(), 100);
        for (index, batch) in batches.iter().enumerate() {
            let seq = index as u64 + 1;
            assert_eq!(*batch, (ends[index], seq, 1, payload(seq, 300)));
        }
        assert_eq!((replayed.last_seq, replayed.cut_lsn, replayed.cut_bytes), (Some(100), ends[99], 0));
        assert!(replayed.end_lsn > ends[99]);
    }
}

#[test]
fn a_closed_journal_ends_with_its_segment() {
    let world = World::default();
    let mut journal = start(&world.host());
    append(&mut journal, 1..20, 150);
    journal.syncer().background(Duration::ZERO).unwrap();
    let syncer = journal.syncer();
    let files = world.paths().len();
    let end = journal.close().unwrap();
    assert_eq!(world.paths().len(), files - 1, "the segment made ahead goes");
    assert_eq!(end % 4096, 0);
    assert_eq!(syncer.durable_lsn(), end);
    assert_eq!(syncer.background(Duration::ZERO).unwrap_err().kind(), ErrorKind::Closed);
    let after = world.after_power_cut(&mut || false);
    let (batches, outcome) = replay_from(&after.host(), dir(), 0, end);
    assert_eq!(seqs(&batches), (1..20).collect::<Vec<_>>());
    let replayed = outcome.unwrap();
    assert_eq!((replayed.cut_lsn, replayed.end_lsn, replayed.last_seq), (end, end, Some(19)));

    // A fresh chain continues exactly there, and a replay crosses the boundary.
    let mut journal = start_at(&after.host(), dir(), AppendMode::Mapped, end, 20, 100);
    append(&mut journal, 20..25, 10);
    let (batches, outcome) = replay_from(&after.host(), dir(), 0, end);
    assert_eq!(seqs(&batches), (1..25).collect::<Vec<_>>());
    assert_eq!(outcome.unwrap().segments.len(), files);
}

#[test]
fn seqs_must_be_dense_and_batches_fit_a_segment() {
    let world = World::default();
    let mut journal = start(&world.host());
    journal.append(1, 3, b"abc", Handover::Process).unwrap();
    assert_eq!(journal.append(5, 1, b"", Handover::Process).unwrap_err().kind(), ErrorKind::InvalidInput);
    let end = journal.end_lsn();
    let huge = journal.append(4, 1, &[1; 4096], Handover::Process).unwrap_err();
    assert_eq!(huge.kind(), ErrorKind::InvalidInput);
    assert_eq!(journal.end_lsn(), end);
    journal.append(4, 1, &[1; 3980], Handover::Process).unwrap();
    append(&mut journal, 5..6, 3980);
    let (batches, outcome) = replay_from(&world.host(), dir(), 0, 0);
    assert_eq!(seqs(&batches), [1, 4, 5]);
    assert_eq!(outcome.unwrap().records, 5);
}

#[test]
fn segments_fill_to_the_last_byte_that_a_seal_leaves() {
    for len in 1..200 {
        let world = World::default();
        let mut journal = start(&world.host());
        append(&mut journal, 1..300, len);
        journal.close().unwrap();
        let (batches, outcome) = replay_from(&world.after_kill().host(), dir(), 0, 0);
        outcome.unwrap();
        assert_eq!(batches.len(), 299, "payloads of {len}");
    }
}

#[test]
fn buffered_batches_are_handed_on_by_background_work_sync_and_the_next_append() {
    let world = World::default();
    let mut journal = start(&world.host());
    let there = |world: &World| replay_from(&world.after_kill().host(), dir(), 0, 0).0.len();
    journal.append(1, 1, b"a", Handover::Buffered).unwrap();
    assert_eq!(there(&world), 0);
    journal.syncer().background(Duration::ZERO).unwrap();
    assert_eq!(there(&world), 1);
    journal.append(2, 1, b"b", Handover::Buffered).unwrap();
    journal.append(3, 1, b"c", Handover::Process).unwrap();
    assert_eq!(there(&world), 3);
    let end = journal.append(4, 1, b"d", Handover::Buffered).unwrap();
    journal.syncer().sync_to(end).unwrap();
    assert_eq!(there(&world), 4);
    for seq in 5..100 {
        journal.append(seq, 1, &[7; 40], Handover::Buffered).unwrap();
    }
    assert!(there(&world) > 90, "the buffer has a bound");
}

#[test]
fn many_committers_share_syncs() {
    let world = World::default();
    let journal = parking_lot::Mutex::new((start(&world.host()), 1));
    let syncer = journal.lock().0.syncer();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let lsn = {
                        let (journal, next_seq) = &mut *journal.lock();
                        *next_seq += 1;
                        journal.append(*next_seq - 1, 1, &[1; 30], Handover::Process).unwrap()
                    };
                    syncer.sync_to(lsn).unwrap();
                    assert!(syncer.durable_lsn() >= lsn);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..200 {
                syncer.background(Duration::from_secs(1)).unwrap();
                std::thread::yield_now();
            }
        });
    });
    let after = world.after_power_cut(&mut || false);
    let (batches, outcome) = replay_from(&after.host(), dir(), 0, syncer.durable_lsn());
    outcome.unwrap();
    assert_eq!(batches.len(), 800);
}

#[test]
fn an_lsn_that_was_never_given_out_is_refused() {
    let world = World::default();
    let mut journal = start(&world.host());
    let end = append(&mut journal, 1..2, 10)[0];
    assert_eq!(journal.syncer().sync_to(end + 1).unwrap_err().kind(), ErrorKind::InvalidInput);
    let syncs = world.syncs();
    journal.syncer().sync_to(end).unwrap();
    assert_eq!(world.syncs(), syncs, "what is durable needs no sync");
}

#[test]
fn a_failed_sync_poisons_for_good() {
    let world = World::default();
    let mut journal = start(&world.host());
    let end = append(&mut journal, 1..4, 10)[2];
    world.fail(Some(Fail::Sync));
    let first = journal.syncer().sync_to(end).unwrap_err();
    assert_eq!(first.kind(), ErrorKind::Poisoned);
    world.fail(None);
    let syncs = world.syncs();
    for error in [
        journal.syncer().sync_to(end).unwrap_err(),
        journal.append(4, 1, b"x", Handover::Process).unwrap_err(),
        journal.syncer().background(Duration::ZERO).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.message()), (ErrorKind::Poisoned, first.message()));
    }
    assert_eq!(journal.syncer().durable_lsn(), 0);
    assert!(journal.close().is_err());
    assert_eq!(world.syncs(), syncs, "nothing is tried again");
}

#[test]
fn what_frames_point_to_is_made_durable_before_they_are() {
    let world = World::default();
    let fails = Arc::new(AtomicBool::new(false));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sync_before: SyncBefore = {
        let (world, fails, seen) = (world.clone(), Arc::clone(&fails), Arc::clone(&seen));
        Box::new(move || {
            seen.lock().push(world.syncs());
            if fails.load(Ordering::Relaxed) { Err(Error::invalid("not durable")) } else { Ok(()) }
        })
    };
    let begin = JournalStart { store_id: super::STORE, first_lsn: 0, next_seq: 1 };
    let options = options(AppendMode::Mapped);
    let mut journal =
        Journal::start_behind(&world.host(), dir(), begin, options, numbers(1), Some(sync_before)).unwrap();
    let syncs = world.syncs();
    let end = append(&mut journal, 1..4, 10)[2];
    journal.syncer().sync_to(end).unwrap();
    assert_eq!(*seen.lock(), [syncs], "it comes first");
    assert!(world.syncs() > syncs);
    fails.store(true, Ordering::Relaxed);
    let (syncs, end) = (world.syncs(), append(&mut journal, 4..6, 10)[1]);
    assert_eq!(journal.syncer().sync_to(end).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(world.syncs(), syncs, "frames that point to what may be gone are not made durable");
    assert!(journal.syncer().durable_lsn() < end);
}

#[test]
fn a_failed_write_poisons_and_what_was_before_is_there() {
    let world = World::default();
    let mut journal = start(&world.host());
    append(&mut journal, 1..4, 10);
    world.fail(Some(Fail::Write));
    assert_eq!(journal.append(4, 1, b"x", Handover::Process).unwrap_err().kind(), ErrorKind::Poisoned);
    world.fail(None);
    assert_eq!(journal.append(4, 1, b"x", Handover::Process).unwrap_err().kind(), ErrorKind::Poisoned);
    let (batches, _) = replay_from(&world.after_kill().host(), dir(), 0, 0);
    assert_eq!(seqs(&batches), [1, 2, 3]);
}

#[test]
fn a_full_disk_is_no_poison() {
    for mode in [AppendMode::Mapped, AppendMode::Written] {
        let world = World::default();
        let mut journal = start_at(&world.host(), dir(), mode, 0, 1, 1);
        let mut seq = 1;
        world.set_space(Some(9_000));
        let error = loop {
            match journal.append(seq, 1, &payload(seq, 100), Handover::Process) {
                Ok(_) => seq += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(seq > 25, "{mode:?}: what had its space was written");
        let again = journal.append(seq, 1, &payload(seq, 100), Handover::Process).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::NoSpace);
        // A mapped segment has all its space from the beginning, so only the next one is missing.
        let background = journal.syncer().background(Duration::ZERO).map_err(|error| error.kind());
        let is_making = mode == AppendMode::Mapped;
        assert_eq!(background, if is_making { Err(ErrorKind::NoSpace) } else { Ok(()) });
        journal.syncer().sync_to(journal.end_lsn()).unwrap();
        world.set_space(None);
        append(&mut journal, seq..seq + 50, 90);
        let (batches, outcome) = replay_from(&world.after_kill().host(), dir(), 0, 0);
        outcome.unwrap();
        assert_eq!(seqs(&batches), (1..seq + 50).collect::<Vec<_>>(), "{mode:?}");
    }
}

#[test]
fn a_journal_is_closed_on_a_full_disk_too() {
    let world = World::default();
    let mut journal = start_at(&world.host(), dir(), AppendMode::Written, 0, 1, 1);
    let end = append(&mut journal, 1..4, 10)[2];
    let next_lsn = journal.syncer().segments()[0].first_lsn + SEGMENT_BYTES - 4096;
    world.set_space(Some(0));
    let syncer = journal.syncer();
    let closed_at = journal.close().unwrap();
    assert_eq!(closed_at, next_lsn, "where the next segment would begin");
    assert_eq!(
        syncer.durable_lsn(),
        end,
        "what an edit of the manifest may vouch for: no seal stands behind it"
    );
    let (batches, outcome) = replay_from(&world.after_power_cut(&mut || false).host(), dir(), 0, end);
    assert_eq!((seqs(&batches), outcome.unwrap().cut_lsn), (vec![1, 2, 3], end));
}

#[test]
fn a_journal_that_cannot_start_leaves_nothing() {
    let world = World::default();
    world.set_space(Some(100));
    let begin = JournalStart { store_id: 1, first_lsn: 0, next_seq: 1 };
    let outcome = Journal::start(&world.host(), dir(), begin, options(AppendMode::Mapped), numbers(1));
    assert_eq!(outcome.err().unwrap().kind(), ErrorKind::NoSpace);
    assert!(world.paths().is_empty());
}

#[test]
fn background_work_makes_the_next_segment_before_it_is_needed() {
    let world = World::default();
    let mut journal = start(&world.host());
    journal.syncer().background(Duration::ZERO).unwrap();
    assert_eq!(world.paths().len(), 1, "not while the first is nearly empty");
    append(&mut journal, 1..20, 130);
    journal.syncer().background(Duration::ZERO).unwrap();
    journal.syncer().background(Duration::ZERO).unwrap();
    assert_eq!(world.paths().len(), 2);
    let syncs = world.syncs();
    append(&mut journal, 20..40, 130);
    assert_eq!(journal.syncer().segments().len(), 2);
    assert_eq!(world.syncs(), syncs, "the append that rolled waited for no disk");
}

#[test]
fn segments_retire_from_the_front_and_never_the_active_one() {
    let world = World::default();
    let mut journal = start(&world.host());
    append(&mut journal, 1..200, 100);
    let syncer = journal.syncer();
    let segments = syncer.segments();
    assert!(segments.len() > 4);
    assert!(segments.windows(2).all(|pair| pair[0].end_lsn == pair[1].first_lsn));
    assert_eq!(syncer.retire_before(segments[2].first_lsn - 1), [segments[0].number]);
    assert_eq!(syncer.retire_before(segments[2].first_lsn), [segments[1].number]);
    let rest: Vec<_> = segments[2..segments.len() - 1].iter().map(|segment| segment.number).collect();
    assert_eq!(syncer.retire_before(u64::MAX), rest);
    assert_eq!(syncer.segments(), segments[segments.len() - 1..]);
    let syncs = world.syncs();
    syncer.sync_to(journal.end_lsn()).unwrap();
    assert_eq!(world.syncs(), syncs + 1, "what is retired is not synced any more");
}

#[test]
fn a_mark_vouches_for_the_last_sync_once() {
    let world = World::default();
    let mut journal = start(&world.host());
    let end = append(&mut journal, 1..4, 10)[2];
    let syncer = journal.syncer();
    let at = |ms| Duration::from_millis(ms);
    syncer.background(at(0)).unwrap();
    syncer.background(at(100)).unwrap();
    assert_eq!(journal.end_lsn(), end, "nothing was synced");
    syncer.sync_to(end).unwrap();
    append(&mut journal, 4..5, 10);
    syncer.background(at(200)).unwrap();
    let vouched = journal.end_lsn();
    syncer.background(at(300)).unwrap();
    assert_eq!(journal.end_lsn(), vouched, "the batch after the sync vouches for it");
    syncer.sync_to(vouched).unwrap();
    syncer.background(at(310)).unwrap();
    assert!(journal.end_lsn() > vouched, "a mark");
    let marked = journal.end_lsn();
    syncer.background(at(400)).unwrap();
    assert_eq!(journal.end_lsn(), marked, "one is enough");
    append(&mut journal, 5..6, 10);

    // Because of the mark, damage to the last synced batch is recognized.
    let path = dir().join("000001.log");
    let mut bytes = world.get(&path);
    bytes[4096 + usize::try_from(vouched).unwrap() - 5] ^= 1;
    world.put(&path, &bytes);
    let (_, outcome) = replay_from(&world.host(), dir(), 0, 0);
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
}

/// On a file system without preallocation: what the kernel has is synced, and a thread that waits
/// for it does not fail because of what others have in the buffer.
#[test]
fn a_sync_of_what_the_kernel_has_does_not_fail_for_what_others_buffer() {
    let world = World::default();
    let mut journal = start_at(&world.host(), dir(), AppendMode::Written, 0, 1, 1);
    let own = journal.append(1, 1, b"own", Handover::Process).unwrap();
    let others = journal.append(2, 1, b"others", Handover::Buffered).unwrap();
    world.set_space(Some(0));
    journal.syncer().sync_to(own).unwrap();
    assert_eq!(journal.syncer().durable_lsn(), own);
    assert_eq!(journal.syncer().sync_to(others).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(journal.append(3, 1, b"x", Handover::Process).unwrap_err().kind(), ErrorKind::NoSpace);
    world.set_space(None);
    journal.syncer().sync_to(others).unwrap();
    let (batches, outcome) = replay_from(&world.after_power_cut(&mut || false).host(), dir(), 0, others);
    outcome.unwrap();
    assert_eq!(seqs(&batches), [1, 2], "what was refused is not there");
}

/// A full quota is a full disk, even though the kernel has another error for it.
#[test]
fn a_journal_is_closed_on_a_full_quota_too() {
    let world = World::default();
    let mut journal = start(&world.host());
    append(&mut journal, 1..4, 100);
    world.fail(Some(Fail::Quota));
    journal.close().unwrap();
    let (batches, outcome) = replay_from(&world.after_kill().host(), dir(), 0, 0);
    outcome.unwrap();
    assert_eq!(seqs(&batches), [1, 2, 3]);
}

/// The lengths of the live segments, in KiB.
fn lengths_kib(journal: &Journal) -> Vec<u64> {
    journal.syncer().segments().iter().map(|segment| segment.len_bytes >> 10).collect()
}

#[test]
fn segments_grow_to_the_set_length_and_a_chain_of_all_lengths_is_replayed() {
    let world = World::default();
    let begin = JournalStart { store_id: super::STORE, first_lsn: 0, next_seq: 1 };
    let grown = crate::JournalOptions { segment_bytes: 2 << 20, ..options(AppendMode::Mapped) };
    let mut journal = Journal::start(&world.host(), dir(), begin, grown, numbers(1)).unwrap();
    assert_eq!(lengths_kib(&journal), [128]);
    let ends = append(&mut journal, 1..400, 10_000);
    assert_eq!(lengths_kib(&journal), [128, 512, 2048, 2048]);
    journal.syncer().sync_to(ends[398]).unwrap();
    let after = world.after_power_cut(&mut || false);
    let (batches, outcome) = replay_from(&after.host(), dir(), 0, ends[398]);
    assert_eq!(seqs(&batches), (1..400).collect::<Vec<_>>());
    assert_eq!(outcome.unwrap().cut_lsn, ends[398]);
}

#[test]
fn a_long_batch_after_short_segments_finds_one_that_is_long_enough() {
    let world = World::default();
    let begin = JournalStart { store_id: super::STORE, first_lsn: 0, next_seq: 1 };
    let long = crate::JournalOptions { segment_bytes: 4 << 20, ..options(AppendMode::Mapped) };
    let mut journal = Journal::start(&world.host(), dir(), begin, long, numbers(1)).unwrap();
    append(&mut journal, 1..3, 50_000);
    journal.syncer().background(Duration::ZERO).unwrap(); // makes the next, which is too short
    append(&mut journal, 3..4, 3 << 20);
    assert_eq!(lengths_kib(&journal), [128, 512, 4096]);
    let max = (4 << 20) - 4096 - 2 * folddb_layout::frame::FRAME_OVERHEAD_BYTES_MAX;
    let end = append(&mut journal, 4..5, max)[0];
    let refused = journal.append(5, 1, &payload(5, max + 1), Handover::Process).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    journal.syncer().sync_to(end).unwrap();
    let after = world.after_power_cut(&mut || false);
    let (batches, outcome) = replay_from(&after.host(), dir(), 0, end);
    assert_eq!(seqs(&batches), [1, 2, 3, 4]);
    outcome.unwrap();
}
