use super::*;

#[test]
fn what_is_stated_goes_before_the_terminal() {
    assert_eq!(width(None, None), None);
    assert_eq!(width(None, Some(120)), Some(120));
    assert_eq!(width(Some("40"), Some(120)), Some(40));
    assert_eq!(width(Some("wide"), Some(120)), Some(120));
    assert_eq!(width(Some(""), None), None);
    assert_eq!(width(Some("0"), None), None);
}
