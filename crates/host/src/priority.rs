//! The priority of threads, as Linux's nice values.
//!
//! Best effort: where the system refuses, or knows nice values of processes only, a thread stays
//! what it is. A thread without privileges cannot go back.

use crate::system;

/// Most steps by which a priority may be lowered.
pub const NICE_MAX: u8 = 19;

/// Lowers the priority of the calling thread by so many steps.
pub fn lower(steps: u8) {
    let steps = i32::from(steps.min(NICE_MAX));
    // In a build for schedules all threads are one, which runs the test.
    if cfg!(not(folddb_schedules)) && steps > 0 {
        system::lower_thread(steps);
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "priority/tests.rs"]
mod tests;
