use super::*;
use folddb_rules::KeyOrder;

fn range(from: &[u8], to: &[u8], seq: Seq) -> RangeDelete {
    RangeDelete { from: from.to_vec(), to: to.to_vec(), seq }
}

#[test]
fn the_newest_visible_range_delete_covers_a_key() {
    let ranges = [range(b"b", b"d", 5), range(b"c", b"f", 9), range(b"a", b"z", 2)];
    let cover = |key: &[u8], limit| covering_seq(&ranges, &KeyOrder::Bytewise, key, limit);
    assert_eq!(cover(b"c", 100), 9);
    assert_eq!(cover(b"c", 8), 5, "a reader does not see what came later");
    assert_eq!(cover(b"d", 8), 2, "the end is excluded");
    assert_eq!(cover(b"b", 100), 5, "the beginning is included");
    assert_eq!(cover(b"zz", 100), 0);
    let reversed = [range(b"d", b"b", 5)];
    let cover = |key: &[u8]| covering_seq(&reversed, &KeyOrder::Reversed, key, 100);
    assert_eq!((cover(b"d"), cover(b"c"), cover(b"b")), (5, 5, 0));
}
