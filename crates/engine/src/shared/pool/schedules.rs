//! The pool under many schedules. A wait never times out there, so the scheduler reports a store
//! that waits for a turn that never comes, or that leaves without being woken.

use folddb_host::sync::atomic::AtomicUsize;
use folddb_host::sync::schedules;

use super::*;

fn spawn(name: &str, run: Box<dyn FnOnce() + Send>) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// A store with one step of work for each time that it rings.
fn lanes(owed: &Arc<AtomicUsize>, done: &Arc<AtomicUsize>, inside: &Arc<AtomicUsize>) -> Lanes {
    let lane = |lane| {
        let (owed, done, inside) = (Arc::clone(owed), Arc::clone(done), Arc::clone(inside));
        Box::new(move || {
            inside.fetch_add(1, Ordering::SeqCst);
            let step = || lane == 1 && owed.load(Ordering::SeqCst) > done.load(Ordering::SeqCst);
            let did = step();
            if did {
                done.fetch_add(1, Ordering::SeqCst);
            }
            inside.fetch_sub(1, Ordering::SeqCst);
            if did { Turn::Done } else { Turn::Idle(IDLE_TICK) }
        }) as Work
    };
    (0..4).map(lane).collect()
}

#[test]
fn schedules_of_two_stores_that_share_threads_and_leave() {
    schedules(1000, || {
        let pool = Arc::new(Pool::default());
        let mut stores = Vec::new();
        for _ in 0..2 {
            let pool = Arc::clone(&pool);
            stores.push(thread::spawn(move || {
                let [owed, done, inside]: [Arc<AtomicUsize>; 3] = Default::default();
                let bell = pool.new_bell();
                let seat = pool.enter(lanes(&owed, &done, &inside), &mut spawn).unwrap();
                owed.fetch_add(1, Ordering::SeqCst);
                bell.ring();
                pool.leave(&seat);
                assert_eq!(inside.load(Ordering::SeqCst), 0, "nothing is under way once it has left");
                let at_end = done.load(Ordering::SeqCst);
                assert_eq!(done.load(Ordering::SeqCst), at_end);
            }));
        }
        stores.into_iter().for_each(|store| store.join().unwrap());
        assert!(pool.members.lock().threads.is_empty());
    });
}
