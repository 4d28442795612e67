//! The system's locks, condition variables and atomics, with random sleeps before and after them.
//!
//! When one thread hands work over to another, it passes a lock, wakes a waiter, or publishes an
//! atomic. On a quiet machine the other thread is there at once, so a bug that needs it to be late
//! shows once in thousands of runs. Here it is often late: one call in some hundreds is made, or
//! its result used, some milliseconds later. Relaxed atomics hand nothing over, and never sleep.
//!
//! For the random programs of `.ci/races sleeps` alone. No seed decides which thread sleeps:
//! threads run as the system schedules them.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
pub use std::thread;

/// One call in this many sleeps, below a millisecond.
const SHORT_ONE_IN: u64 = 300;
/// One call in this many sleeps for some milliseconds.
const LONG_ONE_IN: u64 = 6_000;
/// Atomics are read much more often than locks are taken, so they sleep more rarely.
const LOADS_RARER: u64 = 20;

/// Sleeps, sometimes.
pub fn pause() {
    pause_rarely(1);
}

fn pause_rarely(times_rarer: u64) {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    static THREADS: AtomicU64 = AtomicU64::new(1);
    let drawn = STATE.with(|state| {
        let mut drawn = state.get();
        if drawn == 0 {
            drawn = THREADS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        }
        drawn ^= drawn << 13;
        drawn ^= drawn >> 7;
        drawn ^= drawn << 17;
        state.set(drawn);
        drawn
    });
    let (call, length) = (drawn >> 32, drawn & 0xffff);
    if call.is_multiple_of(LONG_ONE_IN * times_rarer) {
        thread::sleep(Duration::from_micros(1000 + length % 9000));
    } else if call.is_multiple_of(SHORT_ONE_IN * times_rarer) {
        thread::sleep(Duration::from_micros(length % 1000));
    }
}

/// As `parking_lot::Condvar`. A waker is late, and so is a woken thread, which then holds the lock.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

#[allow(missing_docs)]
impl Condvar {
    pub fn new() -> Condvar {
        Condvar::default()
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        pause();
        self.0.wait(guard);
        pause();
    }

    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) {
        pause();
        self.0.wait_for(guard, timeout);
        pause();
    }

    pub fn notify_all(&self) {
        pause();
        self.0.notify_all();
    }
}

/// The atomics of the system. A store is late, and so is what follows it; what follows a load is
/// late more rarely.
#[allow(missing_docs)]
pub mod atomic {
    pub use std::sync::atomic::Ordering;

    use super::{LOADS_RARER, pause, pause_rarely};

    fn publishes<T>(order: Ordering, change: impl FnOnce() -> T) -> T {
        if order == Ordering::Relaxed {
            return change();
        }
        pause();
        let done = change();
        pause();
        done
    }

    macro_rules! atomic {
        ($name:ident, $value:ty, $($change:ident),*) => {
            #[derive(Debug, Default)]
            pub struct $name(std::sync::atomic::$name);

            impl $name {
                pub const fn new(value: $value) -> $name {
                    $name(std::sync::atomic::$name::new(value))
                }

                pub fn load(&self, order: Ordering) -> $value {
                    let value = self.0.load(order);
                    if order != Ordering::Relaxed {
                        pause_rarely(LOADS_RARER);
                    }
                    value
                }

                pub fn store(&self, value: $value, order: Ordering) {
                    publishes(order, || self.0.store(value, order));
                }

                $(pub fn $change(&self, value: $value, order: Ordering) -> $value {
                    publishes(order, || self.0.$change(value, order))
                })*

                pub fn compare_exchange(
                    &self,
                    old: $value,
                    new: $value,
                    order: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    publishes(order, || self.0.compare_exchange(old, new, order, failure))
                }

                pub fn fetch_update(
                    &self,
                    order: Ordering,
                    fetch_order: Ordering,
                    change: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    publishes(order, || self.0.fetch_update(order, fetch_order, change))
                }

                pub fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }

                pub fn into_inner(self) -> $value {
                    self.0.into_inner()
                }
            }
        };
    }

    atomic!(AtomicBool, bool, swap, fetch_or, fetch_and);
    atomic!(AtomicU32, u32, swap, fetch_add, fetch_sub, fetch_max, fetch_min, fetch_or);
    atomic!(AtomicU64, u64, swap, fetch_add, fetch_sub, fetch_max, fetch_min, fetch_or);
    atomic!(AtomicUsize, usize, swap, fetch_add, fetch_sub, fetch_max, fetch_min, fetch_or);
}

/// As `parking_lot::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

#[allow(missing_docs)]
impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(parking_lot::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        pause();
        let guard = self.0.lock();
        pause();
        guard
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        pause();
        self.0.try_lock()
    }
}

/// As `parking_lot::RwLock`.
#[derive(Debug, Default)]
pub struct RwLock<T>(parking_lot::RwLock<T>);

#[allow(missing_docs)]
impl<T> RwLock<T> {
    pub fn new(value: T) -> RwLock<T> {
        RwLock(parking_lot::RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        pause();
        let guard = self.0.read();
        pause();
        guard
    }

    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        pause();
        self.0.try_read()
    }

    pub fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        self.0.read_recursive()
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        pause();
        let guard = self.0.write();
        pause();
        guard
    }
}
