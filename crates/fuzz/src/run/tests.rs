use super::*;

const FOREVER: Limit = Limit { runs_max: 200_000, deadline: None };

fn seeds() -> Vec<Vec<u8>> {
    vec![b"a store is a directory of tables".to_vec()]
}

/// One thread at a time may measure the heap.
fn alone<T>(work: impl FnOnce() -> T) -> T {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _held = LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    work()
}

#[test]
fn a_panic_is_found_and_its_input_made_small() {
    fn no_two_equal(input: &[u8]) {
        assert!(!input.windows(2).any(|pair| pair == [0x7f, 0xff]), "seven f then two f");
    }
    let target = Target::new("no-two", no_two_equal, seeds).words(&["\u{7f}"]);
    let found = alone(|| search(&target, &seeds(), 1, FOREVER)).expect_err("it must be found");
    assert_eq!(found.input, [0x7f, 0xff]);
    assert!(found.what.contains("seven f then two f"), "{}", found.what);
}

#[test]
fn a_panic_that_the_code_under_test_catches_is_found_too() {
    fn hides(input: &[u8]) {
        let _ = catch_unwind(|| assert!(input.is_empty(), "hidden"));
    }
    let target = Target::new("hides", hides, seeds);
    let found = alone(|| try_input(&target, b"x")).expect_err("it must be found");
    assert!(found.contains("hidden"), "{found}");
    assert_eq!(alone(|| try_input(&target, b"")), Ok(()));
}

#[test]
fn an_allocation_by_a_length_that_was_read_is_found() {
    fn trusts(input: &[u8]) {
        let Some(len) = input.first_chunk::<4>() else { return };
        std::hint::black_box(vec![0u8; u32::from_le_bytes(*len) as usize % (64 << 20)]);
    }
    let target = Target::new("trusts", trusts, seeds);
    let found = alone(|| search(&target, &[vec![0; 9]], 1, FOREVER)).expect_err("it must be found");
    assert_eq!(found.input.len(), 4);
    assert!(found.what.contains("on the heap"), "{}", found.what);
}

#[test]
fn checksums_are_made_right_before_an_input_runs() {
    fn sum(bytes: &[u8]) -> u8 {
        bytes.iter().fold(0x5a, |sum, byte| sum.rotate_left(1) ^ byte)
    }
    fn seal(input: &mut [u8]) {
        if let Some((last, others)) = input.split_last_mut() {
            *last = sum(others);
        }
    }
    fn behind_a_sum(input: &[u8]) {
        let Some((last, others)) = input.split_last() else { return };
        if sum(others) == *last {
            assert!(others.len() < 5 || others[..3] != *b"abc");
        }
    }
    fn near() -> Vec<Vec<u8>> {
        vec![b"abb1234s".to_vec()]
    }
    let target = Target::new("sum", behind_a_sum, near).sealed_by(seal);
    let found = alone(|| search(&target, &near(), 3, FOREVER)).expect_err("it must be found");
    assert_eq!((&found.input[..3], found.input.len()), (&b"abc"[..], 6));
}

#[test]
fn the_same_seed_makes_the_same_search() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SEEN: AtomicU64 = AtomicU64::new(0);
    fn note(input: &[u8]) {
        SEEN.store(hash64(SEEN.load(Ordering::Relaxed), input), Ordering::Relaxed);
    }
    let target = Target::new("note", note, seeds);
    let outcome = |seed| {
        SEEN.store(0, Ordering::Relaxed);
        let limit = Limit { runs_max: 500, deadline: None };
        assert!(search(&target, &seeds(), seed, limit).is_ok_and(|done| done.runs == 500));
        SEEN.load(Ordering::Relaxed)
    };
    alone(|| {
        assert_eq!(outcome(1), outcome(1));
        assert_ne!(outcome(1), outcome(2));
    });
}
