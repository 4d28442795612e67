use super::*;

#[test]
fn what_is_expected_is_the_last_write_of_each_key() {
    let rounds = Rounds { offset: 5, keys: 7 };
    for writes in [0, 3, 7, 12, 30] {
        let mut model = std::collections::BTreeMap::new();
        model.extend((0..writes).map(|number| rounds.row(number)));
        let mut sum = RowSum::default();
        model.iter().for_each(|(key, value)| sum.add(*key, *value));
        assert_eq!(rounds.expected(writes), sum, "after {writes}");
    }
    assert_ne!(rounds.row(3).1, rounds.row(10).1, "the value tells the round");
}

#[test]
fn what_is_late_does_not_move_what_comes_after_it() {
    let mut schedule = Schedule::start(1000.0);
    let first = schedule.wait();
    std::thread::sleep(Duration::from_millis(5));
    let due: Vec<Instant> = (0..3).map(|_| schedule.wait()).collect();
    assert!(due.iter().enumerate().all(|(n, due)| *due == first + Duration::from_millis(n as u64 + 1)));
}
