//! The system's locks, with sleeps strewn before and after they are taken.
//!
//! Where one thread hands work over to another, it passes a lock. On a quiet machine it is there at
//! once, so what comes out wrong when it is late is seen once in thousands of runs. Here it is late
//! often: one lock in some hundreds is taken, or used once taken, some milliseconds later.
//!
//! For the random programs of `.ci/races sleeps` alone. No seed decides who sleeps: threads run as
//! the system lets them, and so does this.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use parking_lot::{Condvar, MutexGuard, RwLockReadGuard, RwLockWriteGuard};
pub use std::{sync::atomic, thread};

/// One call in so many sleeps, below a millisecond.
const SHORT_ONE_IN: u64 = 300;
/// One call in so many sleeps for some milliseconds.
const LONG_ONE_IN: u64 = 6_000;

/// Sleeps, sometimes.
pub fn pause() {
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
    if call.is_multiple_of(LONG_ONE_IN) {
        thread::sleep(Duration::from_micros(1000 + length % 9000));
    } else if call.is_multiple_of(SHORT_ONE_IN) {
        thread::sleep(Duration::from_micros(length % 1000));
    }
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
