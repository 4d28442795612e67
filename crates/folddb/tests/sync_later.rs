//! A handle of durability: it tells a thread or a waker when what was written is on the disk.

#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use folddb::{BackgroundJob, BackgroundWork, Durability, ErrorKind, Options, Rules, Store, SyncHandle};

fn manual() -> Options {
    Options::default().background(BackgroundWork::Manual)
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A task that polls a handle.
struct Task {
    handle: SyncHandle,
    woken: Arc<Woken>,
}

impl Task {
    fn of(store: &Store) -> Task {
        Task { handle: store.sync_later().unwrap(), woken: Arc::default() }
    }

    fn poll(&mut self) -> Poll<folddb::Result<()>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        Pin::new(&mut self.handle).poll(&mut Context::from_waker(&waker))
    }

    fn woken(&self) -> usize {
        self.woken.0.load(Ordering::SeqCst)
    }
}

fn write(store: &Store, key: u64) {
    store.table("t", Rules::sorted::<u64, u64>()).unwrap().put(&key, &key).unwrap();
}

#[test]
fn a_handle_is_ready_once_somebody_has_synced() {
    let store = Store::in_memory(manual()).unwrap();
    write(&store, 1);
    let (mut first, mut second) = (Task::of(&store), Task::of(&store));
    assert!(!first.handle.is_synced());
    assert!(first.poll().is_pending() && first.poll().is_pending() && second.poll().is_pending());
    store.background_step_of(BackgroundJob::Log).unwrap();
    assert_eq!((first.woken(), second.woken()), (1, 1), "a task is woken once, however often it polls");
    assert!(matches!(first.poll(), Poll::Ready(Ok(()))) && second.handle.is_synced());
    // What was written before it is on the disk: a handle is ready at once.
    assert!(matches!(Task::of(&store).poll(), Poll::Ready(Ok(()))));
    write(&store, 2);
    let mut third = Task::of(&store);
    assert!(third.poll().is_pending());
    store.sync().unwrap(); // of another caller
    assert_eq!(third.woken(), 1);
    assert!(matches!(third.poll(), Poll::Ready(Ok(()))));
}

#[test]
fn a_handle_waits_for_what_was_written_before_it_alone() {
    let store = Store::in_memory(manual()).unwrap();
    write(&store, 1);
    let mut early = Task::of(&store);
    let mut batch = store.batch();
    batch.put(&store.open_table::<u64, u64>("t").unwrap(), &2, &2);
    batch.commit(Durability::Buffered).unwrap();
    let late = store.sync_later().unwrap();
    late.wait().unwrap(); // in this thread
    assert!(early.handle.is_synced() && matches!(early.poll(), Poll::Ready(Ok(()))));
    drop(late);
    store.close().unwrap();
    assert!(matches!(early.poll(), Poll::Ready(Ok(()))), "it stays what it is");
}

#[test]
fn closing_a_store_syncs_and_wakes_those_who_wait() {
    let store = Store::in_memory(manual()).unwrap();
    write(&store, 1);
    let mut task = Task::of(&store);
    assert!(task.poll().is_pending());
    store.close().unwrap();
    assert_eq!(task.woken(), 1);
    assert!(matches!(task.poll(), Poll::Ready(Ok(()))));
}

#[test]
fn a_dropped_handle_is_not_woken_and_stops_no_sync() {
    let store = Store::in_memory(manual()).unwrap();
    write(&store, 1);
    let mut task = Task::of(&store);
    assert!(task.poll().is_pending());
    let Task { handle, woken } = task;
    drop(handle);
    let other = store.sync_later().unwrap();
    store.background_step_of(BackgroundJob::Log).unwrap();
    assert!(other.is_synced());
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
}

#[test]
fn the_thread_of_the_store_syncs_without_a_poll() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.folddb"), Options::default()).unwrap();
    write(&store, 1);
    let handle = store.sync_later().unwrap();
    while !handle.is_synced() {
        std::thread::sleep(Duration::from_millis(1)); // the test ends by itself, or hangs
    }
    handle.wait().unwrap();
}

#[test]
fn a_store_that_is_read_only_or_closed_gives_no_handle() {
    let options = manual().in_memory();
    let store = Store::create("s", options.clone()).unwrap();
    let other = store.clone();
    store.close().unwrap();
    assert_eq!(other.sync_later().unwrap_err().kind(), ErrorKind::Closed);
    let reader = Store::open_read_only("s", options).unwrap();
    assert_eq!(reader.sync_later().unwrap_err().kind(), ErrorKind::ReadOnly);
}

/// Sends a number when it is woken.
struct Sends(std::sync::Mutex<Sender<usize>>, usize);

impl Wake for Sends {
    fn wake(self: Arc<Self>) {
        let _ = self.0.lock().unwrap().send(self.1);
    }
}

/// Polls handles until all are ready, in one thread that sleeps until it is woken.
fn wait_for_all(handles: &mut [SyncHandle]) {
    let (sender, woken): (Sender<usize>, Receiver<usize>) = channel();
    let mut pending = handles.len();
    (0..pending).for_each(|at| sender.send(at).unwrap());
    let mut is_ready = vec![false; pending];
    while pending > 0 {
        let at = woken.recv().unwrap();
        let waker = Waker::from(Arc::new(Sends(std::sync::Mutex::new(sender.clone()), at)));
        let polled = Pin::new(&mut handles[at]).poll(&mut Context::from_waker(&waker));
        if let (Poll::Ready(done), false) = (polled, is_ready[at]) {
            done.unwrap();
            is_ready[at] = true;
            pending -= 1;
        }
    }
}

#[test]
fn many_threads_wait_by_wakers_and_none_sleeps_for_good() {
    let store = Store::in_memory(Options::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..200 {
                    write(store, 1000 * thread + round);
                    let mut handles: Vec<_> = (0..3).map(|_| store.sync_later().unwrap()).collect();
                    wait_for_all(&mut handles);
                    assert!(handles.iter().all(SyncHandle::is_synced));
                }
            });
        }
    });
}
