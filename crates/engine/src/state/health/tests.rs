use super::*;

const FREE: Space =
    Space { free_bytes: 100, used_bytes: 10, reserve_bytes: 50, bytes_max: None, kept_bytes: 0 };

#[test]
fn space_is_short_below_the_reserve_and_over_the_budget() {
    assert!(FREE.verdict().is_ok());
    assert!(Space { free_bytes: 49, ..FREE }.verdict().is_err());
    assert!(Space { bytes_max: Some(10), ..FREE }.verdict().is_ok());
    let over = Space { bytes_max: Some(9), ..FREE }.verdict().unwrap_err();
    assert!(over.contains("10 bytes of its budget of 9"), "{over}");
    assert!(Space { bytes_max: Some(12), kept_bytes: 2, ..FREE }.verdict().is_ok());
    assert!(Space { bytes_max: Some(12), kept_bytes: 3, ..FREE }.verdict().is_err());
}

#[test]
fn lack_of_space_lets_deletes_through_and_passes() {
    let health = Health::default();
    health.set_space(&Space { free_bytes: 0, ..FREE });
    assert_eq!(health.check_writable(false).unwrap_err().kind(), ErrorKind::NoSpace);
    assert!(health.check_writable(true).is_ok());
    health.set_space(&FREE);
    assert!(health.check_writable(false).is_ok());
}

#[test]
fn the_first_cause_poisons_and_lack_of_space_does_not() {
    let health = Health::default();
    health.poison(&Error::new(ErrorKind::NoSpace, "full"));
    assert!(health.check_writable(false).is_ok());
    health.poison(&Error::new(ErrorKind::Io, "the first"));
    health.poison(&Error::new(ErrorKind::Io, "the second"));
    let refused = health.check_writable(true).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Poisoned);
    assert!(refused.message().contains("the first"), "{refused}");
}

#[test]
fn a_panic_under_the_guard_poisons() {
    let health = Health::default();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = PoisonOnPanic::new(&health);
        panic!("half way");
    }));
    assert!(unwound.is_err());
    assert!(health.cause().is_some());
    let calm = Health::default();
    drop(PoisonOnPanic::new(&calm));
    assert!(calm.cause().is_none());
}
