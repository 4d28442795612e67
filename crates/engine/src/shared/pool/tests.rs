use std::sync::atomic::AtomicUsize;

use super::*;

fn spawn(name: &str, run: Box<dyn FnOnce() + Send>) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// Lanes that count their turns, and always have work.
fn counting(turns: &Arc<AtomicUsize>) -> Lanes {
    lanes_that_count(turns, 3)
}

fn lanes_that_count(turns: &Arc<AtomicUsize>, count: usize) -> Lanes {
    let lane = || {
        let turns = Arc::clone(turns);
        Box::new(move || {
            turns.fetch_add(1, Ordering::Relaxed);
            Turn::Done
        }) as Work
    };
    (0..count).map(|_| lane()).collect()
}

fn wait_for(what: impl Fn() -> bool) {
    while !what() {
        thread::yield_now();
    }
}

#[test]
fn stores_take_turns_and_one_that_has_left_has_none() {
    let pool = Arc::new(Pool::default());
    let turns: [Arc<AtomicUsize>; 2] = Default::default();
    let seats: Vec<_> = turns.iter().map(|turns| pool.enter(counting(turns), &mut spawn).unwrap()).collect();
    assert_eq!(pool.members.lock().threads.len(), 3);
    wait_for(|| turns.iter().all(|turns| turns.load(Ordering::Relaxed) > 100));
    pool.leave(&seats[0]);
    let [gone, goes_on] = turns.each_ref().map(|turns| turns.load(Ordering::Relaxed));
    wait_for(|| turns[1].load(Ordering::Relaxed) > goes_on + 100);
    assert_eq!(turns[0].load(Ordering::Relaxed), gone);
    pool.leave(&seats[1]);
    assert!(pool.members.lock().threads.is_empty());
}

#[test]
fn a_pool_that_all_have_left_begins_again() {
    let pool = Arc::new(Pool::default());
    for _ in 0..3 {
        let turns = Arc::default();
        let seat = pool.enter(counting(&turns), &mut spawn).unwrap();
        wait_for(|| turns.load(Ordering::Relaxed) > 10);
        pool.leave(&seat);
    }
}

#[test]
fn what_comes_next_is_the_soonest_of_all() {
    let [short, long] = [1, 2].map(Duration::from_millis);
    assert_eq!(Turn::Idle(short).and(Turn::Idle(long)), Turn::Idle(short));
    assert_eq!(Turn::Nap(long).and(Turn::Idle(short)), Turn::Nap(long));
    assert_eq!(Turn::Nap(long).and(Turn::Nap(short)), Turn::Nap(short));
    assert_eq!(Turn::Nap(short).and(Turn::Done), Turn::Done);
}

#[test]
fn work_that_panics_ends_alone() {
    let pool = Arc::new(Pool::default());
    let (turns, panicked) = (Arc::default(), Arc::new(AtomicUsize::new(0)));
    let lanes = (0..3).map(|_| {
        let panicked = Arc::clone(&panicked);
        Box::new(move || -> Turn {
            panicked.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose")
        }) as Work
    });
    let lanes = lanes.collect();
    let panics = pool.enter(lanes, &mut spawn).unwrap();
    let goes_on = pool.enter(counting(&turns), &mut spawn).unwrap();
    wait_for(|| turns.load(Ordering::Relaxed) > 100);
    pool.leave(&panics);
    pool.leave(&goes_on);
    assert!(panicked.load(Ordering::Relaxed) <= 3, "each lane has one turn");
}

/// The pool grows with the store that has work for the most threads, and none of them is lost when
/// that store leaves before others.
#[test]
fn a_store_with_work_for_more_threads_starts_them() {
    let pool = Arc::new(Pool::default());
    let turns: [Arc<AtomicUsize>; 2] = Default::default();
    let few = pool.enter(lanes_that_count(&turns[0], 3), &mut spawn).unwrap();
    let many = pool.enter(lanes_that_count(&turns[1], 5), &mut spawn).unwrap();
    assert_eq!(pool.members.lock().threads.len(), 5);
    wait_for(|| turns.iter().all(|turns| turns.load(Ordering::Relaxed) > 100));
    pool.leave(&many);
    let goes_on = turns[0].load(Ordering::Relaxed);
    wait_for(|| turns[0].load(Ordering::Relaxed) > goes_on + 100);
    pool.leave(&few);
    assert!(pool.members.lock().threads.is_empty());
}

/// A store for which a further thread cannot be started has not entered; the others go on.
#[test]
fn a_thread_that_cannot_be_started_stops_no_other_store() {
    let pool = Arc::new(Pool::default());
    let turns: [Arc<AtomicUsize>; 2] = Default::default();
    let goes_on = pool.enter(counting(&turns[0]), &mut spawn).unwrap();
    let refused =
        pool.enter(lanes_that_count(&turns[1], 4), &mut |_, _| Err(std::io::ErrorKind::WouldBlock.into()));
    assert_eq!(refused.err().map(|(name, _)| name), Some("folddb-merge"));
    let [before, gone] = turns.each_ref().map(|turns| turns.load(Ordering::Relaxed));
    wait_for(|| turns[0].load(Ordering::Relaxed) > before + 100);
    assert_eq!(turns[1].load(Ordering::Relaxed), gone);
    pool.leave(&goes_on);
}
