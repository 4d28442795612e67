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
pub fn give_back() -> Duration {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    return glibc::give_back();
    #[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
    Duration::ZERO
}

#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
#[allow(unsafe_code)]
mod glibc {
    use std::ffi::{c_int, c_long};
    use std::time::Duration;

    pub(super) fn give_back() -> Duration {
        let began = processor_time();
        // SAFETY: it takes a number, may be called by any thread at any time, and changes only
        // memory that is free. Tested by `free_pages_among_used_memory_are_given_back`.
        unsafe {
            malloc_trim(0);
        }
        processor_time().saturating_sub(began)
    }

    /// The processor time that this thread has had: on a busy machine, much less than what has
    /// passed. Asked of glibc: `rustix` looks for the kernel's own function in the memory of the
    /// process and is killed where a tool has hidden it, as valgrind does.
    pub(super) fn processor_time() -> Duration {
        let mut time = Timespec { seconds: 0, nanos: 0 };
        // SAFETY: it writes one timespec, which `time` is. Tested by `work_takes_processor_time`.
        let failed = unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut time) } != 0;
        if failed {
            return Duration::ZERO;
        }
        Duration::new(time.seconds as u64, time.nanos as u32)
    }

    /// As the system declares it.
    const CLOCK_THREAD_CPUTIME_ID: c_int = 3;

    /// glibc's `struct timespec`.
    #[repr(C)]
    struct Timespec {
        seconds: c_long,
        nanos: c_long,
    }

    // SAFETY: as glibc declares them: `int malloc_trim(size_t pad)` and
    // `int clock_gettime(clockid_t clock_id, struct timespec *tp)`.
    // Tested by `free_pages_among_used_memory_are_given_back` and `work_takes_processor_time`.
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> c_int;
        fn clock_gettime(clock_id: c_int, time: *mut Timespec) -> c_int;
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu", not(miri)))]
mod tests;
