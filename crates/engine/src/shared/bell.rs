//! Wakes background threads when there is work, and writers when there is room.

use std::sync::Arc;

use folddb_host::sync::{Condvar, Mutex};

/// Wakes background work when there is work, and writers when there is room.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<u64>,
    condvar: Condvar,
    /// Another bell that rings with it.
    also: Option<Arc<Bell>>,
}

impl Bell {
    /// A bell that rings another one as well.
    pub fn ringing(also: &Arc<Bell>) -> Bell {
        Bell { also: Some(Arc::clone(also)), ..Bell::default() }
    }

    /// Wakes all waiting threads.
    pub fn ring(&self) {
        *self.rung.lock() += 1;
        self.condvar.notify_all();
        if let Some(also) = &self.also {
            also.ring();
        }
    }

    /// How often it rang, to pass to `wait`.
    pub fn count(&self) -> u64 {
        *self.rung.lock()
    }

    /// Waits until it has rung since `seen`, at most `timeout`.
    pub fn wait(&self, seen: u64, timeout: std::time::Duration) {
        let mut rung = self.rung.lock();
        if *rung == seen {
            self.condvar.wait_for(&mut rung, timeout);
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(all(test, folddb_schedules))]
mod schedules;
