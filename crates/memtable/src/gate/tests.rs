use super::*;
use folddb_host::sync::atomic::AtomicBool;
use folddb_host::sync::thread;

#[test]
fn a_reader_comes_in_while_a_writer_keeps_it() {
    let (gate, done) = (Gate::<u64>::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let mut guard = gate.write();
        scope.spawn(|| {
            let seen = *gate.read();
            done.store(true, Ordering::Relaxed);
            assert!(seen > 0, "it was let in between two changes");
        });
        // Whether it looks or already sleeps, it gets in.
        while !done.load(Ordering::Relaxed) {
            *guard += 1;
            gate.let_in(&mut guard);
            RwLockWriteGuard::unlocked(&mut guard, thread::yield_now);
        }
    });
    assert_eq!(gate.looking.load(Ordering::Relaxed), 0);
}

#[test]
fn nobody_is_let_in_who_does_not_look() {
    let gate = Gate::<u64>::default();
    let mut guard = gate.write();
    gate.let_in(&mut guard);
    assert!(gate.lock.try_read().is_none(), "the writer has it still");
}
