use folddb::time::moment;

use super::deadline_in_words;

#[test]
fn deadlines_that_differ_are_shown_differently() {
    let (one, other, later) =
        (moment(1_763_706_328_007), moment(1_763_706_328_250), moment(1_763_706_329_007));
    assert_eq!(deadline_in_words(one, [Some(one), Some(other)]), "2025-11-21 06:25:28.007Z");
    assert_eq!(deadline_in_words(other, [Some(one), Some(other)]), "2025-11-21 06:25:28.250Z");
    assert_eq!(deadline_in_words(one, [Some(one), Some(later)]), "2025-11-21 06:25:28Z");
    assert_eq!(deadline_in_words(one, [Some(one), Some(one)]), "2025-11-21 06:25:28Z");
    assert_eq!(deadline_in_words(one, [None, Some(one)]), "2025-11-21 06:25:28Z");
}
