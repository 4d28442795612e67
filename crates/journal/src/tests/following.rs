use std::time::Duration;

use folddb_base::{ErrorKind, FileNumber, Lsn, Seq};
use folddb_host::{AppendMode, Host};

use super::world::World;
use super::{STORE, append, dir, payload, replay_from, start, start_at};
use crate::archived_log::ArchivedLogWriter;
use crate::follow::{Follower, HistoryFile, Written, history, segments_in};
use crate::{Handover, LogEnd, ReplayFrame, ReplayFrom, replay};

/// The batches that a follower meets up to an LSN, by first seq, and their payloads.
fn follow(follower: &mut Follower, upto: Lsn, files: &[HistoryFile]) -> Vec<(Seq, Vec<u8>)> {
    let file_at = |lsn| files.iter().find(|file| file.covers(lsn)).copied();
    let mut met = Vec::new();
    while let Some(batch) = follower.next(upto, &file_at).unwrap() {
        met.push((batch.first_seq, batch.payload.to_vec()));
    }
    met
}

fn expected(seqs: std::ops::Range<Seq>, len: usize) -> Vec<(Seq, Vec<u8>)> {
    seqs.map(|seq| (seq, payload(seq, len))).collect()
}

#[test]
fn what_is_appended_is_followed_while_it_is_appended() {
    for mode in [AppendMode::Mapped, AppendMode::Written] {
        let temp = tempfile::tempdir().unwrap();
        let host = Host::real();
        let mut journal = start_at(&host, temp.path(), mode, 0, 1, 1);
        let mut follower = Follower::at(&host, temp.path(), 0);
        for round in 0..20 {
            let from = 1 + round * 7;
            let ends = append(&mut journal, from..from + 7, 200);
            let files = segments_in(&host, temp.path(), STORE).unwrap();
            assert_eq!(follow(&mut follower, ends[4], &files), expected(from..from + 5, 200), "{mode:?}");
            let met = follow(&mut follower, ends[6], &files);
            assert_eq!(met, expected(from + 5..from + 7, 200), "{mode:?}");
            assert_eq!(follower.lsn(), ends[6]);
        }
        assert!(journal.syncer().segments().len() > 5);
        let mut again = Follower::at(&host, temp.path(), 0);
        let files = segments_in(&host, temp.path(), STORE).unwrap();
        assert_eq!(follow(&mut again, follower.lsn(), &files), expected(1..141, 200));
    }
}

/// The batches that a follower without a known end meets.
fn follow_written(follower: &mut Follower, files: &[HistoryFile]) -> (Vec<(Seq, Vec<u8>)>, bool) {
    let file_at = |lsn| files.iter().find(|file| file.covers(lsn)).copied();
    let mut met = Vec::new();
    loop {
        match follower.next_written(&file_at).unwrap() {
            Written::Batch(batch) => met.push((batch.first_seq, batch.payload.to_vec())),
            ended => return (met, ended == Written::NotYet),
        }
    }
}

/// If another process writes the log, a follower gets what that process has written, and waits at a
/// place without a whole frame.
#[test]
fn what_is_handed_on_is_followed_without_knowing_of_an_end() {
    for mode in [AppendMode::Mapped, AppendMode::Written] {
        let temp = tempfile::tempdir().unwrap();
        let host = Host::real();
        let mut journal = start_at(&host, temp.path(), mode, 0, 1, 1);
        let mut follower = Follower::at(&host, temp.path(), 0);
        assert_eq!(follow_written(&mut follower, &[]), (Vec::new(), false), "no file is known");
        for round in 0..20 {
            let from = 1 + round * 7;
            append(&mut journal, from..from + 7, 200);
            let files = segments_in(&host, temp.path(), STORE).unwrap();
            let met = follow_written(&mut follower, &files);
            assert_eq!(met, (expected(from..from + 7, 200), true), "{mode:?}");
            assert_eq!(follow_written(&mut follower, &files), (Vec::new(), true), "nothing twice");
        }
        assert!(journal.syncer().segments().len() > 5);
        let files = segments_in(&host, temp.path(), STORE).unwrap();
        // A frame without its last bytes does not count; when they have been written, it does.
        let mut again = Follower::at(&host, temp.path(), 0);
        let last = files.iter().rfind(|file| file.first_lsn < follower.lsn()).unwrap();
        let path = last.path(temp.path());
        let whole = std::fs::read(&path).unwrap();
        let mut torn = whole.clone();
        let end = whole.iter().rposition(|&byte| byte != 0).unwrap();
        torn[end] ^= 0xff;
        std::fs::write(&path, &torn).unwrap();
        let all = expected(1..141, 200);
        assert_eq!(follow_written(&mut again, &files), (all[..139].to_vec(), true));
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(follow_written(&mut again, &files), (all[139..].to_vec(), true));
        journal.close().unwrap();
        assert_eq!(
            follow_written(&mut again, &files),
            (Vec::new(), false),
            "behind the seal no file is known"
        );
    }
}

#[test]
fn marks_are_passed_over_and_a_place_without_a_frame_is_damage() {
    let world = World::default();
    let host = world.host();
    let mut journal = start(&host);
    let ends = append(&mut journal, 1..4, 50);
    journal.syncer().sync_to(ends[2]).unwrap();
    journal.syncer().background(Duration::ZERO).unwrap();
    journal.syncer().background(Duration::from_secs(9)).unwrap();
    append(&mut journal, 4..5, 50);
    let files = segments_in(&host, dir(), STORE).unwrap();
    let end = journal.end_lsn();
    let mut follower = Follower::at(&host, dir(), 0);
    assert_eq!(follow(&mut follower, end, &files), expected(1..5, 50));
    let none = follower.next(end + 100, &|_| Some(files[0])).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Corruption);
    let nowhere = Follower::at(&host, dir(), 0).next(end, &|_| None).unwrap_err();
    assert!(nowhere.is_lacking());
}

/// After a crash the history continues through the archived part into the next chain, whatever is
/// in the segment that had it before.
#[test]
fn a_kept_end_leads_over_a_crash() {
    let world = World::default();
    let mut journal = start(&world.host());
    let ends = append(&mut journal, 1..41, 200);
    journal.syncer().sync_to(ends[20]).unwrap();
    append(&mut journal, 41..50, 150);
    let after = world.after_kill();
    let host = after.host();
    let durable = ends[29];
    let end_lsn = segments_in(&host, dir(), STORE).unwrap().iter().map(|file| file.next_lsn).max().unwrap();

    let mut writer: Option<ArchivedLogWriter> = None;
    let from = ReplayFrom {
        store_id: STORE,
        log_start_lsn: 0,
        durable_lsn: durable,
        is_open: false,
        end: LogEnd::Own,
    };
    let replayed = replay(&host, dir(), &from, &mut |frame: ReplayFrame<'_>| {
        if !frame.is_durable {
            let begin =
                || ArchivedLogWriter::begin(&host, dir(), FileNumber(900), STORE, (frame.lsn, end_lsn));
            writer.get_or_insert_with(|| begin().unwrap()).put(
                (frame.first_seq, frame.count),
                frame.time_ms,
                frame.payload,
            )?;
        }
        Ok(())
    });
    assert_eq!(replayed.unwrap().end_lsn, end_lsn);
    let writer = writer.unwrap();
    let (first_lsn, number) = (writer.first_lsn(), writer.number());
    assert_eq!(first_lsn, durable);
    writer.finish().unwrap();
    let kept = HistoryFile { number, is_archived: true, first_lsn, next_lsn: end_lsn, file_bytes: 0 };

    let mut journal = start_at(&host, dir(), AppendMode::Mapped, end_lsn, 50, 1000);
    journal.append(50, 1, &payload(50, 20), Handover::Process).unwrap();
    let files = history(&segments_in(&host, dir(), STORE).unwrap(), &[kept]);
    let mut follower = Follower::at(&host, dir(), 0);
    let met = follow(&mut follower, journal.end_lsn(), &files);
    let all = [expected(1..41, 200), expected(41..50, 150), expected(50..51, 20)].concat();
    assert_eq!(met, all);
    let (batches, _) = replay_from(&host, dir(), end_lsn, end_lsn);
    assert_eq!(batches.len(), 1, "what is kept is no part of the log");
}

/// Files by their places: whether archived, from, to.
fn placed(files: &[(bool, u64, u64)]) -> Vec<HistoryFile> {
    let file = |(index, &(is_archived, first_lsn, next_lsn)): (u64, &(bool, u64, u64))| HistoryFile {
        number: FileNumber(index),
        is_archived,
        first_lsn,
        next_lsn,
        file_bytes: next_lsn - first_lsn,
    };
    (0..).zip(files).map(file).collect()
}

/// Also if the files that an archived part replaces still exist, since the process died before it
/// removed them.
#[test]
fn no_place_of_the_log_is_in_two_files_of_the_history() {
    let segments = placed(&[(false, 0, 100), (false, 100, 200), (false, 200, 300), (false, 300, 400)]);
    for (kept, whole) in [
        (vec![], [(0, 100), (100, 200), (200, 300), (300, 400)].to_vec()),
        // The end that a crash left, in the second segment and at the end of the second.
        (vec![(150, 200)], vec![(0, 100), (100, 150), (150, 200), (200, 300), (300, 400)]),
        (vec![(200, 200)], vec![(0, 100), (100, 200), (200, 300), (300, 400)]),
        // Joined: whole segments, and one with a rest that was archived.
        (vec![(0, 200)], vec![(0, 200), (200, 300), (300, 400)]),
        (vec![(0, 150), (150, 200)], vec![(0, 150), (150, 200), (200, 300), (300, 400)]),
        (vec![(100, 350), (350, 400)], vec![(0, 100), (100, 350), (350, 400)]),
        (vec![(0, 400)], vec![(0, 400)]),
    ] {
        let kept: Vec<_> = kept.into_iter().map(|(first, next)| (true, first, next)).collect();
        let all = history(&segments, &placed(&kept));
        let places = all.iter().map(|file| (file.first_lsn, file.next_lsn));
        assert_eq!(places.filter(|(first, next)| first < next).collect::<Vec<_>>(), whole, "{kept:?}");
    }
}
