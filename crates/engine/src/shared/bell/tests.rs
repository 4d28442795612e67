use super::*;

#[test]
fn who_hears_the_other_bell_hears_this_one() {
    let pool = Arc::new(Bell::default());
    let store = Bell::ringing(&pool);
    store.ring();
    assert_eq!((store.count(), pool.count()), (1, 1));
    pool.ring();
    assert_eq!((store.count(), pool.count()), (1, 2), "only the pool has work");
}

#[test]
fn nobody_waits_who_has_missed_it() {
    let bell = Bell::default();
    let seen = bell.count();
    bell.ring();
    bell.wait(seen, std::time::Duration::MAX);
}
