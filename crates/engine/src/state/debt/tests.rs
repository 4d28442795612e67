use super::*;

#[test]
fn the_failures_of_each_worker_are_its_own() {
    let failures = PerWorker::default();
    let workers = [Worker::Flush, Worker::Merge, Worker::Reclaim];
    for (number, worker) in workers.into_iter().enumerate() {
        failures.of(worker).store(number + 1, Ordering::Relaxed);
    }
    assert_eq!(workers.map(|worker| failures.of(worker).load(Ordering::Relaxed)), [1, 2, 3]);
}
