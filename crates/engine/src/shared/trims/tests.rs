use std::sync::Arc;

use super::*;

const MS: Duration = Duration::from_millis(1);

#[test]
fn trims_take_at_most_a_hundredth_of_a_processor() {
    assert_eq!(rest_after(MS), 250 * MS, "four times a second");
    assert_eq!(rest_after(50 * MS), 5000 * MS, "a long one is followed by a long rest");
}

/// The time that it is told.
#[derive(Clone, Default)]
struct ByHand(Arc<Mutex<Duration>>);

impl Clock for ByHand {
    fn monotonic(&self) -> Duration {
        *self.0.lock()
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

#[test]
fn one_thread_trims_and_not_again_before_it_is_due() {
    let clock = ByHand::default();
    let (trims, mut count) = (Trims::by(Box::new(clock.clone())), 0);
    let mut at = |ms: u32| {
        *clock.0.lock() = ms * MS;
        trims.trim_if_due(|| {
            trims.trim_if_due(|| panic!("another thread trims already"));
            *clock.0.lock() += 2 * MS;
            count += 1;
            MS
        });
        count
    };
    assert_eq!([0, 2, 251, 252, 300, 600].map(&mut at), [1, 1, 1, 2, 2, 3]);
}
