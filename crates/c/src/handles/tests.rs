use super::*;

struct Apple(u32);
struct Pear;

impl Object for Apple {
    const NAME: &'static str = "folddb_apple";
}

impl Object for Pear {
    const NAME: &'static str = "folddb_pear";
}

fn said<T>(result: Result<T>) -> String {
    result.err().map_or_else(|| "no error".to_owned(), |error| error.message().to_owned())
}

#[test]
fn a_handle_leads_to_its_object_until_it_is_taken() {
    let handle = give(Apple(7)).expect("a handle");
    assert_eq!(get(handle).expect("it is there").0, 7);
    assert_eq!(take(handle).expect("it is there").0, 7);
    assert_eq!(said(get(handle)), "this folddb_apple was destroyed, or was never created");
    assert_eq!(said(take(handle)), "this folddb_apple was destroyed, or was never created");
}

#[test]
fn null_and_numbers_that_were_never_given_lead_nowhere() {
    assert_eq!(said(get(std::ptr::null_mut::<Apple>())), "the folddb_apple is NULL");
    for number in [1, 64, usize::MAX, 1 << INDEX_BITS, (7 << INDEX_BITS) | 3] {
        let handle: *mut Apple = std::ptr::without_provenance_mut(number);
        assert_eq!(said(get(handle)), "this folddb_apple was destroyed, or was never created", "{number}");
    }
}

#[test]
fn a_handle_of_another_type_is_named() {
    let pear = give(Pear).expect("a handle");
    let as_apple: *mut Apple = pear.cast();
    assert_eq!(said(get(as_apple)), "a folddb_pear was given where a folddb_apple is expected");
    assert_eq!(said(take(as_apple)), "a folddb_pear was given where a folddb_apple is expected");
    take(pear).expect("it is there still");
}

#[test]
fn an_object_outlives_its_handle_while_it_is_in_use() {
    let handle = give(Apple(9)).expect("a handle");
    let in_use = get(handle).expect("it is there");
    take(handle).expect("it is there");
    assert_eq!(in_use.0, 9);
}

#[test]
fn slots_lie_in_their_chunks_without_gaps() {
    let mut expected = (0, 0);
    for index in 0..FIRST_CHUNK * 31 {
        assert_eq!(place(index), expected, "slot {index}");
        expected.1 += 1;
        if expected.1 == FIRST_CHUNK << expected.0 {
            expected = (expected.0 + 1, 0);
        }
    }
}

#[test]
fn threads_that_give_and_take_never_meet_the_objects_of_others() {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for turn in 0..2000 {
                    let number = thread * 10_000 + turn;
                    let handle = give(Apple(number)).expect("a handle");
                    assert_eq!(get(handle).expect("it is there").0, number);
                    take(handle).expect("it is there");
                    assert!(get(handle).is_err());
                }
            });
        }
    });
}
