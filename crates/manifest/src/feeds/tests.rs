use folddb_base::TableId;

use super::*;
use crate::State;

fn feed(name: &str, lsn: Lsn, note: u64) -> FeedState {
    FeedState {
        name: name.to_owned(),
        table: String::new(),
        prefix: Vec::new(),
        bytes_max: 1 << 20,
        phase: FeedPhase::Changes,
        seq: lsn / 10,
        lsn,
        note,
        values_from: FileNumber(lsn / 100),
    }
}

fn note(note: u64) -> Change {
    let (table, name, rules_text) = (TableId(1), "t".to_owned(), String::new());
    Change::NoteTable { note: TableNote { note, seq: 5, table, name, rules_text, is_dropped: true } }
}

fn keep(file: u64, first_lsn: Lsn, next_lsn: Lsn) -> Change {
    Change::ArchiveLog { file: FileNumber(file), first_lsn, next_lsn }
}

fn state(changes: &[Change]) -> State {
    let mut state = State::default();
    changes.iter().for_each(|change| state.apply(change).expect("it fits"));
    state
}

fn set(feed: FeedState) -> Change {
    Change::SetFeed { feed }
}

#[test]
fn what_every_feed_is_past_goes() {
    let mut state = state(&[
        set(feed("a", 1000, 0)),
        set(feed("b", 2000, 1)),
        keep(7, 1200, 1500),
        keep(9, 2200, 3000),
        note(1),
        note(2),
    ]);
    assert_eq!((state.feeds.from_lsn(), state.feeds.values_from()), (Some(1000), Some(FileNumber(10))));
    state.apply(&set(feed("a", 1500, 1))).expect("it goes on");
    assert_eq!(state.feeds.archived().iter().map(|kept| kept.file.0).collect::<Vec<_>>(), [9]);
    assert_eq!(state.feeds.notes().map(|note| note.note).collect::<Vec<_>>(), [2]);
    let lost = FeedState { phase: FeedPhase::Lost(LossCause::Budget), ..feed("a", 1500, 1) };
    state.apply(&set(lost)).expect("it is lost");
    assert_eq!(state.feeds.from_lsn(), Some(2000), "a lost feed holds nothing");
    state.apply(&Change::DropFeed { name: "b".to_owned() }).expect("it goes");
    assert!(state.feeds.archived().is_empty() && state.feeds.notes().next().is_none());
    assert_eq!(state.feeds.last_note(), 2, "of the note that has gone");
    assert_eq!(state.apply(&Change::DropFeed { name: "b".to_owned() }), Err(Malformed::Bounds));
}

#[test]
fn a_snapshot_gives_the_same_feeds() {
    let state =
        state(&[set(feed("a", 1000, 3)), set(feed("b", 800, 2)), keep(7, 1200, 1500), note(4), note(5)]);
    let mut again = State::default();
    state.snapshot().iter().for_each(|change| again.apply(change).expect("it fits"));
    assert_eq!(again, state);
}

#[test]
fn the_number_of_the_last_note_outlives_feeds_notes_and_snapshots() {
    let drop = |name: &str| Change::DropFeed { name: name.to_owned() };
    for changes in [
        vec![set(feed("a", 1000, 3)), note(4), note(5), drop("a")],
        vec![set(feed("a", 1000, 5)), drop("a"), set(feed("b", 1000, 2))],
    ] {
        let state = state(&changes);
        assert_eq!((state.feeds.notes().count(), state.feeds.last_note()), (0, 5));
        let mut again = State::default();
        state.snapshot().iter().for_each(|change| again.apply(change).expect("it fits"));
        assert_eq!(again, state);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut state = state(&[set(feed("a", 1000, 0)), keep(7, 1200, 1500), note(4)]);
    for (change, why) in [
        (keep(7, 1600, 1700), "the same file"),
        (keep(8, 1400, 1700), "it overlaps"),
        (note(4), "the same note"),
    ] {
        assert_eq!(state.apply(&change), Err(Malformed::Order), "{why}");
    }
}

#[test]
fn a_part_of_the_log_replaces_those_that_lie_within_it() {
    let mut state = state(&[
        set(feed("a", 1000, 0)),
        keep(7, 1200, 1500),
        keep(8, 1500, 1600),
        keep(9, 2000, 2500),
        keep(10, 1100, 1600),
    ]);
    let kept: Vec<u64> = state.feeds.archived().iter().map(|kept| kept.file.0).collect();
    assert_eq!(kept, [10, 9], "in the order of their places");
    assert_eq!(state.apply(&keep(11, 1100, 2400)), Err(Malformed::Order), "half of 9");
    let mut again = State::default();
    state.snapshot().iter().for_each(|change| again.apply(change).expect("it fits"));
    assert_eq!(again.feeds, state.feeds);
}
