use super::*;

fn tokens() -> Vec<CursorToken> {
    let key = |text: &str| text.as_bytes().to_vec();
    let bounds = [Bound::Unbounded, Bound::Included(key("")), Bound::Excluded(key("ab"))];
    let mut all = Vec::new();
    for (is_keys_only, low) in [false, true, true].into_iter().zip(&bounds) {
        for high in &bounds {
            for (direction, last) in [(Direction::Forward, None), (Direction::Reversed, Some(key("abc")))] {
                let (low, high) = (low.clone(), high.clone());
                let (store_id, table) = (u128::MAX - 3, TableId(77));
                all.push(CursorToken {
                    store_id,
                    table,
                    direction,
                    is_keys_only,
                    seq: 1 << 40,
                    time_ms: is_keys_only.then_some(1 << 41),
                    low,
                    high,
                    last,
                });
            }
        }
    }
    all
}

#[test]
fn the_bytes_come_back_and_no_damage_passes() {
    for token in tokens() {
        let bytes = token.to_bytes();
        for cut in 0..bytes.len() {
            assert!(CursorToken::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(CursorToken::from_bytes(&damaged).is_err(), "byte {at}");
        }
        assert_eq!(CursorToken::from_bytes(&bytes), Ok(token));
    }
}

#[test]
fn what_no_version_wrote_is_refused_though_its_checksum_is_right() {
    let bytes = tokens()[0].to_bytes();
    let changed = |at: usize, to: u8| {
        let mut body = bytes[..bytes.len() - CHECKSUM_BYTES].to_vec();
        body[at] = to;
        let checksum = hash64(0, &body);
        put_u64(&mut body, checksum);
        CursorToken::from_bytes(&body)
    };
    assert_eq!(changed(0, 2), Err(Malformed::Tag), "a later version");
    assert_eq!(changed(1, 8), Err(Malformed::Tag), "another flag");
    assert_eq!(changed(30, 3), Err(Malformed::Tag), "another bound");
    assert_eq!(changed(32, 2), Err(Malformed::Short), "the last key is not there");
}
