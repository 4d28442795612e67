//! The locks of the scheduler, with the interface of the system's locks, as far as the engine uses
//! it.
//!
//! A wait never times out here: if a wake is lost, and only a timeout would make up for it, all
//! threads end up waiting, and the scheduler reports it. This is for tests only: a failing `expect`
//! here is a bug of this file.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

pub use shuttle::sync::atomic;
pub use shuttle::thread;

/// Runs `test` under this many random schedules. Then runs it under as many that prefer some
/// threads to others, and change the preference at only three moments: they find bugs that need few
/// switches in the right places. A build with `FOLDDB_SCHEDULES` in its environment runs that many
/// instead. A schedule that fails is printed, with a string that [`replay`] takes.
pub fn schedules(count: usize, test: impl Fn() + Send + Sync + Clone + 'static) {
    let count = option_env!("FOLDDB_SCHEDULES").and_then(|count| count.parse().ok()).unwrap_or(count);
    let random = shuttle::scheduler::RandomScheduler::new(count);
    shuttle::Runner::new(random, config()).run(test.clone());
    shuttle::Runner::new(shuttle::scheduler::PctScheduler::new(3, count), config()).run(test);
}

/// Runs `test` once, under a schedule that has failed.
pub fn replay(schedule: &str, test: impl Fn() + Send + Sync + 'static) {
    let scheduler = shuttle::scheduler::ReplayScheduler::new_from_encoded(schedule);
    shuttle::Runner::new(scheduler, config()).run(test);
}

fn config() -> shuttle::Config {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.silence_warnings = true; // it takes all atomics for sequentially consistent; Miri does not
    config.max_steps = shuttle::MaxSteps::FailAfter(1_000_000); // nobody goes round in circles
    config
}

/// As `parking_lot::Mutex`.
#[derive(Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// As `parking_lot::MutexGuard`; empty only while it waits.
pub struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

#[allow(missing_docs)]
impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(MutexGuard(Some(guard))),
            Err(TryLockError::Poisoned(poisoned)) => Some(MutexGuard(Some(poisoned.into_inner()))),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is not waiting")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is not waiting")
    }
}

/// As `parking_lot::Condvar`.
#[derive(Default)]
pub struct Condvar(shuttle::sync::Condvar);

#[allow(missing_docs)]
impl Condvar {
    pub fn new() -> Condvar {
        Condvar::default()
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect("it is not waiting");
        guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits, however long it takes.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: Duration) {
        self.wait(guard);
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// As `parking_lot::RwLock`.
#[derive(Default)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

/// As `parking_lot::RwLockReadGuard`.
pub struct RwLockReadGuard<'a, T>(shuttle::sync::RwLockReadGuard<'a, T>);

/// As `parking_lot::RwLockWriteGuard`; empty only while it is unlocked.
pub struct RwLockWriteGuard<'a, T> {
    lock: &'a RwLock<T>,
    held: Option<shuttle::sync::RwLockWriteGuard<'a, T>>,
}

#[allow(missing_docs)]
impl<T> RwLock<T> {
    pub fn new(value: T) -> RwLock<T> {
        RwLock(shuttle::sync::RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        match self.0.try_read() {
            Ok(guard) => Some(RwLockReadGuard(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(RwLockReadGuard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        self.read()
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard { lock: self, held: Some(self.0.write().unwrap_or_else(PoisonError::into_inner)) }
    }
}

#[allow(missing_docs)]
impl<'a, T> RwLockWriteGuard<'a, T> {
    pub fn unlocked<U>(this: &mut RwLockWriteGuard<'a, T>, work: impl FnOnce() -> U) -> U {
        this.held = None;
        let done = work();
        this.held = this.lock.write().held;
        done
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.held.as_ref().expect("it is locked")
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("it is locked")
    }
}

macro_rules! debug_by_name {
    ($($name:ident $(<$life:lifetime>)?),*) => {
        $(impl<$($life,)? T> fmt::Debug for $name<$($life,)? T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        })*
    };
}

debug_by_name!(Mutex, MutexGuard<'a>, RwLock, RwLockReadGuard<'a>, RwLockWriteGuard<'a>);

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}
