use super::*;

/// Operations of different kinds that alternate are all measured.
#[test]
fn one_in_64_is_measured_of_all_and_of_every_few() {
    assert!(is_sampled(0));
    for step in [1, 2, 3, 4, 8, 64, 100] {
        for first in 0..step.min(5) {
            let measured = (0..64_000).filter(|n| is_sampled(first + n * step)).count();
            assert!((900..1100).contains(&measured), "{measured} of every {step}th from {first}");
        }
    }
}
