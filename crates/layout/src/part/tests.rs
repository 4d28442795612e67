use proptest::prelude::*;

use super::*;

fn footer() -> Footer {
    Footer {
        version: PART_VERSION,
        file_number: 12,
        file_bytes: 1000,
        top_index: Place { offset: 700, len_bytes: 100 },
        meta: Place { offset: 800, len_bytes: 136 },
    }
}

#[test]
fn a_footer_belongs_to_one_file() {
    let mut bytes = Vec::new();
    footer().put(&mut bytes);
    let mut bytes = <[u8; FOOTER_BYTES]>::try_from(&bytes[..]).unwrap();
    assert_eq!(Footer::read(&bytes, 12, 1000), Ok(footer()));
    assert!(Footer::read(&bytes, 13, 1000).is_err());
    assert!(Footer::read(&bytes, 12, 1001).is_err());
    for at in 0..FOOTER_BYTES {
        bytes[at] ^= 0x20;
        assert!(Footer::read(&bytes, 12, 1000).is_err(), "byte {at}");
        bytes[at] ^= 0x20;
    }
    let newer = PART_VERSION_ZSTD + 1;
    bytes[8..12].copy_from_slice(&newer.to_le_bytes());
    assert_eq!(Footer::read(&bytes, 12, 1000), Err(Malformed::Checksum.into()), "damage to the version");
    let mut bytes = Vec::new();
    Footer { version: newer, ..footer() }.put(&mut bytes);
    let bytes = <[u8; FOOTER_BYTES]>::try_from(&bytes[..]).unwrap();
    assert_eq!(Footer::read(&bytes, 12, 1000), Err(FooterFault::Newer(newer)));
}

prop_compose! {
    fn facts()(
        records in 1u64..1 << 40,
        min_seq in 0u64..1 << 60,
        range in 0u64..1 << 60,
        low in proptest::collection::vec(any::<u8>(), 0..30),
        high in proptest::collection::vec(any::<u8>(), 0..30),
        stamps in any::<Option<[u32; 5]>>(),
        mut sketch in proptest::collection::vec(any::<u64>(), 0..SKETCH_HASHES),
    ) -> PartFacts {
        sketch.sort_unstable();
        PartFacts {
            file_bytes: 1 << 50, records, keys: 1 + records / 2, low, high, min_seq, max_seq: min_seq + range,
            deletes: records / 3, key_bytes: records * 8, payload_bytes: records * 5, sketch,
            values: vec![SegmentUse { segment: 7, count: records, bytes: records * 16, end: 1 << 33 }],
            kept_since: records / 7,
            fingerprint: 0,
            stamps: stamps.map(|drawn| {
                let mut stamps = StampFacts { swept_ms: u64::from(drawn[4]), ..StampFacts::default() };
                stamps.note(Stamp { write_ms: u64::from(drawn[0]), deadline_ms: u64::from(drawn[1]) });
                stamps.note(Stamp { write_ms: u64::from(drawn[2]), deadline_ms: NEVER });
                if drawn[3] % 2 == 0 { StampFacts::default() } else { stamps }
            }),
        }
    }
}

proptest! {
    #[test]
    fn meta_comes_back(facts in facts(), order_name in "[a-z]{0,12}", filter_bits in 0u32..20) {
        let liveness = Some(Place { offset: 1 << 40, len_bytes: 77 });
        let total = (filter_bits % 3 > 0).then(|| Summary { rows: 7, fold: (filter_bits % 3 > 1).then(|| vec![1, 2]) });
        let summaries = (filter_bits % 2 == 0).then_some(SummariesAt { place: Place { offset: 3, len_bytes: 4 }, total });
        let leading = (0..filter_bits as u8 / 4).collect();
        let pieces_hash = (filter_bits > 9).then_some(u64::MAX / 3);
        let mut meta =
            Meta { facts, order_name, data_bytes: 123_456, filter_bits, liveness, summaries, leading, pieces_hash };
        let mut stored = Vec::new();
        meta.put(&mut stored, 9);
        meta.facts.fingerprint = Meta::fingerprint(&stored);
        prop_assert_eq!(Meta::open(&stored, 9, 1 << 50), Ok(meta));
    }

    #[test]
    fn the_top_index_comes_back(
        separators in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 1..40),
        filters in 0u32..5,
    ) {
        let mut top = TopIndex::default();
        for number in 0..filters {
            top.filters.push(Place { offset: u64::from(number) * 77, len_bytes: number });
        }
        for (number, separator) in separators.iter().enumerate() {
            let filter = (filters > 0).then(|| number as u32 % filters);
            top.push_leaf(separator, Place { offset: number as u64, len_bytes: 4 }, filter);
        }
        let mut stored = Vec::new();
        top.put(&mut stored, 3);
        let again = TopIndex::open(&stored, 3).unwrap();
        for (number, separator) in separators.iter().enumerate() {
            prop_assert_eq!(again.separator(number), &separator[..]);
        }
        prop_assert_eq!(again, top);
    }

    #[test]
    fn any_bytes_are_refused_or_harmless(body in proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..80)) {
        for encoding in [Encoding::Meta, Encoding::TopIndex] {
            let mut stored = body.clone();
            seal(&mut stored, 0, encoding, Compression::None, 1, &mut Vec::new());
            let _ = Meta::open(&stored, 1, 10);
            let _ = TopIndex::open(&stored, 1);
        }
    }
}
