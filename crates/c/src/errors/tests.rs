use super::*;

#[test]
fn every_kind_of_the_library_has_its_number() {
    let kinds = [
        ErrorKind::InvalidInput,
        ErrorKind::StoreNotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::TableNotFound,
        ErrorKind::RulesMismatch,
        ErrorKind::Locked,
        ErrorKind::NewerFormat,
        ErrorKind::Permission,
        ErrorKind::NoSpace,
        ErrorKind::NotDurable,
        ErrorKind::Corruption,
        ErrorKind::Poisoned,
        ErrorKind::FoldFailed,
        ErrorKind::Conflict,
        ErrorKind::SnapshotTooOld,
        ErrorKind::FeedLost,
        ErrorKind::ReadOnly,
        ErrorKind::Closed,
        ErrorKind::Stopped,
        ErrorKind::Io,
    ];
    let numbers = kinds.map(|kind| kind_of(kind) as u32);
    assert_eq!(numbers, std::array::from_fn(|index| index as u32 + 1), "{kinds:?}");
}

#[test]
fn a_text_that_begins_with_no_kind_is_of_an_unknown_one() {
    assert_eq!(kind_of_text("Sideways: it is"), Kind::Unknown);
    assert_eq!(kind_of_text(""), Kind::Unknown);
}

#[test]
fn a_panic_is_an_error_and_goes_no_further() {
    let mut said = std::ptr::null_mut();
    let given = guard(ErrPtr::to(&mut said), 7, || panic!("it is broken"));
    assert_eq!(given, 7);
    // SAFETY: the text was written just now, and ends with a NUL.
    let text = unsafe { std::ffi::CStr::from_ptr(said) }.to_str().expect("text");
    assert_eq!(text, "Panic: it is broken");
    assert_eq!(kind_of_text(text), Kind::Panic);
    ErrPtr::to(&mut said).set("another"); // gives the first one back
    assert_eq!(kind_of_text("Panic: x"), Kind::Panic);
}
