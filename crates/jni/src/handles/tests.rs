use folddb::ErrorKind;

use super::{Object, end, get, get_optional, give};

struct One(u32);

impl Object for One {
    const NAME: &'static str = "one";
}

struct Other;

impl Object for Other {
    const NAME: &'static str = "other";
}

#[test]
fn a_handle_leads_to_its_object_until_it_ends() {
    let handle = give(One(7)).unwrap();
    let held = get::<One>(handle).unwrap();
    assert!(end(handle).is_some());
    assert_eq!(held.0, 7, "a call that has it keeps it");
    let Err(error) = get::<One>(handle) else { panic!("it is over") };
    assert_eq!((error.kind(), error.message()), (ErrorKind::Closed, "this one is closed"));
    assert!(end(handle).is_none());
}

#[test]
fn numbers_that_are_no_handles_lead_nowhere() {
    let mine = give(One(1)).unwrap();
    let with_other_high_bits = mine ^ (1 << 40);
    for number in [0, 1, -1, i64::MIN, i64::MAX, 1 << 32 | 0xffff_ffff, with_other_high_bits] {
        assert!(get::<One>(number).is_err(), "{number}");
        assert!(end(number).is_none(), "{number}");
    }
    assert!(get_optional::<One>(0).unwrap().is_none());
    end(mine);
}

#[test]
fn an_object_of_another_type_is_an_error_that_names_both() {
    let handle = give(Other).unwrap();
    let Err(error) = get::<One>(handle) else { panic!("it is of another type") };
    assert_eq!(error.message(), "a other was given where a one is expected");
    end(handle);
}

#[test]
fn threads_give_and_end_handles_at_once() {
    let work = || {
        for number in 0..2_000 {
            let handle = give(One(number)).unwrap();
            assert_eq!(get::<One>(handle).unwrap().0, number);
            end(handle);
            assert!(get::<One>(handle).is_err());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
}
