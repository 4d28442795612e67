use super::*;

#[test]
fn seqs_and_times_find_each_other() {
    let mut times = Times::default();
    assert_eq!((times.seq_at(5), times.time_of(5), times.newest_ms()), (None, None, 0));
    assert!(times.note(10, 5_000));
    assert!(!times.note(12, 5_999), "within the tick");
    assert!(times.note(20, 6_000));
    assert!(!times.note(30, 3_000), "time does not go back");
    assert!(times.note(30, 9_000));
    assert_eq!(times.seq_at(4_999), None);
    assert_eq!(times.seq_at(5_000), Some(19));
    assert_eq!(times.seq_at(8_999), Some(29));
    assert_eq!(times.seq_at(9_000), Some(Seq::MAX));
    assert_eq!(
        [9, 10, 19, 20, 99].map(|seq| times.time_of(seq)),
        [None, Some(5_000), Some(5_000), Some(6_000), Some(9_000)]
    );
    let mut known = Times::default();
    known.push(20, 5_500);
    assert_eq!(times.beyond(&known), [(20, 6_000), (30, 9_000)]);
    assert_eq!(times.beyond(&times), []);
    assert!(times.note(30, 11_000), "nothing was written from there on");
    assert_eq!((times.entries().len(), times.newest_ms()), (3, 11_000));
}

#[test]
fn a_long_map_is_thinned_where_it_is_old_and_makes_nothing_newer() {
    let mut times = Times::default();
    let count = 3 * ENTRIES_MAX as u64;
    for at in 1..=count {
        times.note(at * 10, at * TICK_MS);
        assert!(times.entries().len() <= ENTRIES_MAX);
    }
    let fine = count - ENTRIES_MAX as u64 / 4;
    assert_eq!(times.time_of(fine * 10), Some(fine * TICK_MS));
    for at in [1, 2, 1000, ENTRIES_MAX as u64, count] {
        let told = times.time_of(at * 10).unwrap();
        assert!(told <= at * TICK_MS, "{told} is newer than {at}");
        assert!(times.seq_at(at * TICK_MS).unwrap() >= at * 10);
    }
    assert_eq!(times.entries()[0], (10, TICK_MS));
}

#[test]
fn for_records_before_its_first_entry_it_has_a_latest_time() {
    let mut times = Times::default();
    assert_eq!((times.time_by(1), times.newest_seq()), (None, 0));
    times.push(5, 1_000);
    times.push(9, 3_000);
    assert_eq!((times.time_of(4), times.time_by(4)), (None, Some(1_000)));
    assert_eq!((times.time_by(8), times.time_by(9), times.newest_seq()), (Some(1_000), Some(3_000), 9));
}

#[test]
fn with_nothing_written_after_a_seq_its_time_stays_known() {
    let mut times = Times::default();
    for (seq, ms) in [(5, 1_000), (9, 3_000), (20, 8_000)] {
        times.push(seq, ms);
    }
    assert_eq!(times.until(12).entries(), [(5, 1_000), (9, 3_000), (13, 8_000)]);
    assert_eq!(times.until(20), times);
    assert_eq!(times.until(8).entries(), [(5, 1_000), (9, 8_000)], "nothing behind 8 was written by then");
    assert_eq!(times.until(0).entries(), [(1, 8_000)]);
}

#[test]
fn the_latest_time_of_what_came_before_the_first_entry_stays_known() {
    let mut times = Times::default();
    assert!(times.note(5, 1_000), "a reader of the past may come");
    assert!(times.note(5, 9_000), "a record is written");
    assert_eq!(
        [999, 1_000, 8_999, 9_000].map(|ms| times.seq_at(ms)),
        [None, Some(4), Some(4), Some(Seq::MAX)]
    );
    assert_eq!((times.time_by(4), times.time_of(5)), (Some(1_000), Some(9_000)));
    assert_eq!(times.until(4), times);
    let mut again = Times::default();
    times.entries().iter().for_each(|&(seq, ms)| again.push(seq, ms));
    assert_eq!(again, times, "a manifest says them one after the other");
}
