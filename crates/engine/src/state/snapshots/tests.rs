use super::*;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn hold(boundaries: &Arc<Boundaries>, seq: Seq, time_ms: u64, now_s: u64) -> Held {
    boundaries.hold(At::new(seq, time_ms), HeldFor::Snapshot, s(now_s))
}

fn give_files(boundaries: &Boundaries, now_s: u64, age_s: u64) {
    boundaries.give_files(&boundaries.of_age(s(now_s), s(age_s)), &Arc::default());
}

#[test]
fn a_boundary_exists_while_any_holder_lives() {
    let boundaries = Arc::new(Boundaries::default());
    let (first, second) = (hold(&boundaries, 7, 20, 1), hold(&boundaries, 7, 30, 2));
    assert_eq!(boundaries.oldest_ms(), Some(20), "the first still reads at its own time");
    let third = hold(&boundaries, 3, 10, 3);
    assert_eq!(boundaries.oldest_ms(), Some(10));
    assert_eq!(boundaries.all(), [3, 7]);
    assert_eq!(boundaries.summary(), Summary { holders: 3, in_files: 0, since: Some(s(1)) });
    let version = boundaries.version();
    drop(first);
    assert_eq!(boundaries.all(), [3, 7]);
    drop(second);
    drop(third);
    assert!(boundaries.all().is_empty());
    assert!(boundaries.version() > version, "who caches the boundaries learns of the change");
}

#[test]
fn an_old_snapshot_is_no_boundary_and_a_young_one_at_its_seq_is() {
    let boundaries = Arc::new(Boundaries::default());
    let (old, young) = (hold(&boundaries, 3, 10, 1), hold(&boundaries, 7, 20, 50));
    assert!(boundaries.of_age(s(60), s(60)).is_empty());
    give_files(&boundaries, 61, 60);
    assert_eq!((boundaries.all(), boundaries.oldest_held()), (vec![7], Some(3)));
    assert_eq!((boundaries.oldest_ms(), boundaries.oldest_held_ms()), (Some(20), Some(10)));
    assert!(boundaries.files_of(old.at).is_ok_and(|files| files.is_some()));
    assert!(boundaries.files_of(young.at).is_ok_and(|files| files.is_none()));
    assert_eq!(boundaries.summary().in_files, 1);
    drop(old);
    assert!(!boundaries.may_have_aged(young.at), "nobody asks any more");
}

#[test]
fn snapshots_of_half_the_age_get_files_together_with_those_of_the_full_age() {
    let boundaries = Arc::new(Boundaries::default());
    let _held = [(1, 0), (2, 29), (3, 31)].map(|(seq, now_s)| hold(&boundaries, seq, 0, now_s));
    give_files(&boundaries, 60, 60);
    assert_eq!(boundaries.all(), [3]);
    give_files(&boundaries, 90, 60);
    assert_eq!(boundaries.all(), [3], "it has not come to the age");
    give_files(&boundaries, 91, 60);
    assert!(boundaries.all().is_empty());
}

#[test]
fn a_snapshot_that_has_ended_holds_nothing_and_another_at_its_seq_does() {
    let boundaries = Arc::new(Boundaries::default());
    let (first, second) = (hold(&boundaries, 3, 10, 1), hold(&boundaries, 3, 10, 2));
    boundaries.end_of_age(s(61), s(60));
    assert!(boundaries.files_of(first.at).is_ok(), "the second is too young");
    boundaries.end_of_age(s(62), s(60));
    assert!(boundaries.files_of(first.at).is_err() && boundaries.files_of(second.at).is_err());
    assert!(boundaries.is_empty() && boundaries.may_have_aged(first.at));
    let again = hold(&boundaries, 3, 10, 70);
    assert_eq!(boundaries.all(), [3]);
    assert!(boundaries.files_of(again.at).is_ok() && boundaries.files_of(first.at).is_err());
    drop((first, second));
    assert_eq!(boundaries.all(), [3]);
    assert!(!boundaries.may_have_aged(again.at));
}

#[test]
fn work_does_not_end_for_its_age_and_a_transaction_stays_a_boundary() {
    let boundaries = Arc::new(Boundaries::default());
    let work = boundaries.hold(At::new(3, 0), HeldFor::Work, s(0));
    let transaction = boundaries.hold(At::new(3, 0), HeldFor::Transaction, s(0));
    give_files(&boundaries, 60, 60);
    assert!(boundaries.files_of(work.at).is_ok_and(|files| files.is_some()));
    assert_eq!(boundaries.all(), [3]);
    boundaries.end_of_age(s(60), s(60));
    assert!(boundaries.all().is_empty() && boundaries.files_of(transaction.at).is_err());
    assert!(boundaries.files_of(work.at).is_ok());
}

#[test]
fn a_reader_of_the_past_does_not_stand_in_for_a_snapshot_of_then() {
    let boundaries = Arc::new(Boundaries::default());
    let past = boundaries.hold(At::new(3, 0), HeldFor::Past(At::new(9, 0)), s(0));
    assert_eq!((boundaries.all(), boundaries.oldest_of_all_tables()), (vec![3], None));
    assert!(matches!(boundaries.hold_if_live(3, u64::MAX), Some((_, HeldFor::Past(_)))));
    let whole = hold(&boundaries, 3, 0, 0);
    assert!(matches!(boundaries.hold_if_live(3, u64::MAX), Some((_, HeldFor::Snapshot))));
    assert_eq!((boundaries.all(), boundaries.oldest_of_all_tables()), (vec![3], Some(3)));
    drop((past, whole));
    assert!(boundaries.is_empty());
}
