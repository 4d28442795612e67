use super::*;
use proptest::prelude::*;

#[test]
fn estimates_are_within_four_standard_errors() {
    for precision in [4, 8, 12, 14, 18] {
        let mut sketch = Sketch::new(precision);
        let error = 1.04 / f64::from(1u32 << precision).sqrt();
        let mut next = 1u64;
        for member in 1..=100_000u64 {
            sketch.insert(&member.to_le_bytes());
            if member == next {
                next = next * 7 / 2 + 1;
                let estimate = sketch.estimate() as f64;
                let off = (estimate - member as f64).abs();
                assert!(off <= 4.0 * error * member as f64 + 1.0, "hll:{precision} of {member}: {estimate}");
            }
        }
        let estimate = sketch.estimate() as f64;
        assert!((estimate / 100_000.0 - 1.0).abs() <= 4.0 * error, "hll:{precision}: {estimate}");
        assert!(HllFold { precision }.check(sketch.as_bytes()).is_ok());
    }
}

proptest! {
    #[test]
    fn the_bytes_follow_from_the_members(
        mut members in prop::collection::vec(any::<u16>(), 0..200),
        cut in 0usize..200,
        precision in 4u32..9,
    ) {
        let of = |members: &[u16]| {
            let mut sketch = Sketch::new(precision);
            members.iter().for_each(|member| sketch.insert(&member.to_le_bytes()));
            sketch
        };
        let all = of(&members);
        let cut = cut.min(members.len());
        let mut halves = of(&members[..cut]);
        halves.merge(&of(&members[cut..])).unwrap();
        prop_assert_eq!(&halves, &all);
        members.reverse();
        prop_assert_eq!(&of(&members), &all);
        prop_assert_eq!(Sketch::from_bytes(precision, all.as_bytes()).unwrap(), all);
    }
}

#[test]
fn other_forms_are_refused() {
    let fold = HllFold { precision: 4 };
    for wrong in
        [&[0u8; 16][..], &[0; 17], &[1, 0], &[0, 0, 0], &[62, 0, 0], &[1, 4, 0], &[65, 0, 0, 1, 0, 0]]
    {
        assert!(fold.check(wrong).is_err(), "{wrong:?}");
    }
    assert!(fold.check(&[1, 0, 0, 65, 0, 0]).is_ok());
    assert!(fold.check(&[61; 16]).is_ok());
}

#[test]
fn a_saturated_sketch_still_answers() {
    assert!(HllFold { precision: 4 }.estimate(&[61; 16]).unwrap() > 1e18);
    assert_eq!(Sketch::new(12).estimate(), 0);
}
