use super::*;

struct Pear;

impl Object for Pear {
    const NAME: &'static str = "folddb_pear";
}

#[test]
fn a_second_call_meanwhile_is_refused_and_one_after_it_is_not() {
    let exclusive = Exclusive::new(7);
    let first = exclusive.lock::<Pear>().expect("it is free");
    let refused = exclusive.lock::<Pear>().map(|_| ()).expect_err("it is in use");
    assert!(refused.message().starts_with("this folddb_pear is in use by another call"), "{refused}");
    drop(first);
    assert_eq!(*exclusive.lock::<Pear>().expect("it is free again"), 7);
}

#[test]
fn what_a_panic_has_left_half_done_is_refused_from_then_on() {
    let exclusive = Exclusive::new(7);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _held = exclusive.lock::<Pear>().expect("it is free");
        panic!("on the way");
    }));
    assert!(broken.is_err());
    let refused = exclusive.lock::<Pear>().map(|_| ()).expect_err("it is broken");
    assert!(refused.message().contains("failed halfway"), "{refused}");
}
