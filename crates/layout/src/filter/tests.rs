use folddb_base::checksum::key_hash;

use super::*;

fn hashes(from: u64, count: u64) -> Vec<u64> {
    (from..from + count).map(|number| key_hash(&number.to_be_bytes())).collect()
}

#[test]
fn contains_what_it_holds_and_little_else() {
    for (bits_per_key, wrong_max) in [(10, 150), (14, 40)] {
        let filter = Filter::build(&hashes(0, 20_000), bits_per_key);
        assert!(hashes(0, 20_000).iter().all(|hash| filter.may_contain(*hash)));
        let wrong = hashes(1 << 40, 10_000).iter().filter(|hash| filter.may_contain(**hash)).count();
        assert!(wrong <= wrong_max, "{wrong} of 10,000 at {bits_per_key} bits");
    }
}

#[test]
fn comes_back_from_its_bytes() {
    for count in [0, 1, 1000] {
        let filter = Filter::build(&hashes(0, count), 10);
        let mut stored = Vec::new();
        filter.put(&mut stored, 5);
        let again = Filter::open(&stored, 5).unwrap();
        assert_eq!(
            again.lines.iter().map(|l| l.0).collect::<Vec<_>>(),
            filter.lines.iter().map(|l| l.0).collect::<Vec<_>>()
        );
        assert!(Filter::open(&stored, 6).is_err());
        stored[0] ^= 1;
        assert!(Filter::open(&stored, 5).is_err());
    }
}

#[test]
fn other_bytes_are_refused() {
    for len in [0, 1, 63, 65, 100] {
        let mut stored = vec![0u8; len];
        seal(&mut stored, 0, Encoding::Filter, Compression::None, 1, &mut Vec::new());
        assert!(Filter::open(&stored, 1).is_err(), "{len} bytes");
    }
    let mut stored = vec![0u8; 64];
    seal(&mut stored, 0, Encoding::Meta, Compression::None, 1, &mut Vec::new());
    assert!(Filter::open(&stored, 1).is_err());
}
