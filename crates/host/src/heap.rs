//! Memory that the allocator keeps although nobody uses it.
//!
//! glibc gives each thread that allocates a heap of its own. What a thread frees stays in its heap,
//! in holes between what is still used, and other threads cannot have it. But whole pages of such
//! holes can be given back to the system, which gives them again when they are next used:
//! `malloc_trim` does so, in all heaps of the process. It takes about a millisecond for a hundred
//! megabytes, and the lock of one heap after the other.

use std::time::Duration;

/// Gives the free pages in all heaps of the process back to the system; the processor time that it
/// took. Does nothing where the allocator of the C library is not glibc's; a program whose Rust
/// code uses another allocator keeps what that holds.
#[allow(unsafe_code)]
pub fn give_back() -> Duration {
    let began = processor_time();
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: it takes a number, may be called by any thread at any time, and changes only memory
    // that is free. Tested by `free_pages_among_used_memory_are_given_back`.
    unsafe {
        malloc_trim(0);
    }
    processor_time().saturating_sub(began)
}

/// The processor time that this thread has had: on a busy machine, much less than what has passed.
fn processor_time() -> Duration {
    #[cfg(target_os = "linux")]
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    #[cfg(target_os = "linux")]
    return Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32);
    #[cfg(not(target_os = "linux"))]
    Duration::ZERO
}

#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
#[allow(unsafe_code)]
// SAFETY: as glibc declares it: `int malloc_trim(size_t pad)`.
// Tested by `free_pages_among_used_memory_are_given_back`.
unsafe extern "C" {
    fn malloc_trim(pad: usize) -> std::ffi::c_int;
}

#[cfg(all(test, target_os = "linux", target_env = "gnu", not(miri)))]
mod tests;
