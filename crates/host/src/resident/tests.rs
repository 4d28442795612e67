use super::Resident;

#[test]
fn it_is_what_was_put_in_whether_or_not_it_is_locked() {
    for wants_lock in [false, true] {
        let mut words = Resident::new([1u64; 1000], wants_lock);
        assert!(wants_lock || !words.is_locked());
        words[999] = 5;
        assert_eq!((words[0], words[999], words.len()), (1, 5, 1000));
    }
}
