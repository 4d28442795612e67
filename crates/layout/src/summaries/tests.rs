use super::*;

fn sample() -> Summaries {
    let block = |rows, fold: Option<&[u8]>| Some(Summary { rows, fold: fold.map(<[u8]>::to_vec) });
    Summaries { leaves: vec![vec![block(3, Some(b"abc")), None, block(7, None)], vec![block(1, Some(b""))]] }
}

#[test]
fn summaries_of_blocks_read_back() {
    let mut bytes = Vec::new();
    sample().put(&mut bytes, 5);
    assert_eq!(Summaries::open(&bytes, 5), Ok(sample()));
    assert!(Summaries::open(&bytes, 6).is_err());
    assert!(Summaries::open(&bytes[1..], 5).is_err());
}

#[test]
fn counts_that_the_bytes_do_not_hold_take_no_memory() {
    for numbers in [&[u64::MAX][..], &[1, u64::MAX], &[1, 1, 2, u64::MAX], &[1, 1, u64::MAX, 0]] {
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| put_varint(&mut bytes, *number));
        seal(&mut bytes, 0, Encoding::Summaries, Compression::None, 5, &mut Vec::new());
        assert!(Summaries::open(&bytes, 5).is_err(), "{numbers:?}");
    }
}
