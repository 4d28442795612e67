//! Durable commits in async code, without a runtime: each task commits at once, and goes on when
//! what it wrote is on the disk. One thread runs all tasks; they share syncs.
//!
//! The executor here is forty lines of the standard library. With tokio it is `tokio::spawn` and
//! the same `handle.await?`: a handle is an ordinary future.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use folddb::{Durability, Options, Result, Rules, Store, Table};

const CLIENTS: u64 = 100;
const ORDERS: u64 = 5;

/// A client that sends orders, each after the last was confirmed. Returns how many were.
async fn client(store: Store, orders: Table<(u64, u64), String>, number: u64) -> Result<u64> {
    for order in 0..ORDERS {
        let mut batch = store.batch();
        batch.put(&orders, &(number, order), "a book");
        batch.commit(Durability::Process)?; // waits for no disk
        store.sync_later()?.await?; // other clients run meanwhile
    }
    Ok(ORDERS)
}

pub(crate) fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("async-commits-{}.folddb", std::process::id()));
    let store = Store::create(&path, Options::default())?;
    let orders = store.table("orders", Rules::sorted::<(u64, u64), String>())?;
    let clients: Vec<_> = (0..CLIENTS).map(|number| client(store.clone(), orders.clone(), number)).collect();
    let confirmed: u64 = run(clients).into_iter().sum::<Result<u64>>()?;
    assert_eq!(orders.scan().count()?, confirmed);
    println!("{confirmed} orders of {CLIENTS} clients were confirmed by one thread");
    drop(orders);
    store.close()?;
    let _ = std::fs::remove_dir_all(path);
    Ok(())
}

// ---- an executor --------------------------------------------------------------------------------

/// Wakes a task: puts its number into the queue of those that can go on.
struct Ready {
    task: usize,
    queue: Mutex<Sender<usize>>,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        let queue = self.queue.lock().unwrap_or_else(|broken| broken.into_inner());
        let _ = queue.send(self.task); // the executor may have ended
    }
}

/// Runs futures on this thread until all have ended, and returns what they did, in their order.
fn run<T, F: Future<Output = T>>(futures: Vec<F>) -> Vec<T> {
    let (sender, queue) = channel();
    let mut tasks: Vec<Option<Pin<Box<F>>>> = futures.into_iter().map(|one| Some(Box::pin(one))).collect();
    let mut results: Vec<Option<T>> = tasks.iter().map(|_| None).collect();
    let waker = |task| Waker::from(Arc::new(Ready { task, queue: Mutex::new(sender.clone()) }));
    let wakers: Vec<Waker> = (0..tasks.len()).map(waker).collect();
    (0..tasks.len()).for_each(|task| wakers[task].wake_by_ref());
    let mut left = tasks.len();
    while left > 0 {
        let Ok(task) = queue.recv() else { break };
        let Some(future) = &mut tasks[task] else { continue }; // woken once more, after its end
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&wakers[task])) {
            (tasks[task], results[task]) = (None, Some(result));
            left -= 1;
        }
    }
    results.into_iter().flatten().collect()
}
