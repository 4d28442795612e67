use super::*;

#[test]
fn a_reader_has_the_present_value_and_its_version() {
    let swap = Swap::new(Arc::new(1));
    let (value, version) = swap.load_with_version();
    assert!(*value == 1 && swap.is_at(version));
    let before = swap.replace(|present| Arc::new(**present + 1));
    assert_eq!((*before, *swap.load()), (1, 2));
    assert!(!swap.is_at(version));
}

#[test]
fn what_was_replaced_is_let_go() {
    let swap = Swap::new(Arc::new("first"));
    let held = swap.load();
    drop(swap.replace(|_| Arc::new("second")));
    assert_eq!(Arc::strong_count(&held), 1, "only the reader holds it");
}

/// One thread makes both numbers of a value larger, again and again; other threads read it.
#[cfg(folddb_schedules)]
mod schedules {
    use super::*;
    use crate::sync::{schedules, thread};

    #[test]
    fn readers_see_whole_values_in_order() {
        schedules(3000, || {
            let swap = Arc::new(Swap::new(Arc::new((0, 0))));
            let replacing = (0..2).map(|_| {
                let swap = Arc::clone(&swap);
                thread::spawn(move || {
                    for _ in 0..2 {
                        swap.replace(|value| Arc::new((value.0 + 1, value.1 + 1)));
                    }
                })
            });
            let mut threads: Vec<_> = replacing.collect();
            for _ in 0..2 {
                let swap = Arc::clone(&swap);
                threads.push(thread::spawn(move || {
                    let mut last = (0, 0);
                    for _ in 0..3 {
                        let (value, version) = swap.load_with_version();
                        assert_eq!(value.0, value.1);
                        assert_eq!(value.0, version, "each replacing is a version");
                        assert!((value.0, version) >= last);
                        last = (value.0, version);
                    }
                }));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(*swap.load(), (4, 4));
        });
    }

    /// What the memtable and the views of tables do: a moment is published after the value that it
    /// needs is there.
    #[test]
    fn a_moment_that_is_read_while_the_value_stays_belongs_to_it() {
        schedules(3000, || {
            let shared = Arc::new((Swap::new(Arc::new(0)), AtomicU64::new(0)));
            let writer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    for moment in 1..=3 {
                        shared.0.replace(|_| Arc::new(moment));
                        shared.1.store(moment, Ordering::Release);
                    }
                })
            };
            let reader = thread::spawn(move || {
                for _ in 0..2 {
                    let (value, moment) = loop {
                        let (value, version) = shared.0.load_with_version();
                        let moment = shared.1.load(Ordering::Acquire);
                        if shared.0.is_at(version) {
                            break (*value, moment);
                        }
                    };
                    assert!(moment <= value, "what is published at {moment} is not in {value}");
                }
            });
            writer.join().unwrap();
            reader.join().unwrap();
        });
    }
}
