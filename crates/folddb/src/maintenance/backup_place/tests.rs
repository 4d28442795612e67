use super::{Entry, entry};

#[test]
fn only_names_that_are_printed_are_read() {
    assert_eq!(entry("000007"), Some(Entry::Generation(7)));
    assert_eq!(entry("1234567"), Some(Entry::Generation(1_234_567)));
    assert_eq!(entry("making-000008"), Some(Entry::Leftover(8)));
    assert_eq!(entry("removing-000002"), Some(Entry::Leftover(2)));
    for other in
        ["7", "0000007", "+00007", "making-8", "making-", "BACKUPS", "LOCK", "18446744073709551615", "-00001"]
    {
        assert_eq!(entry(other), None, "{other}");
    }
}
