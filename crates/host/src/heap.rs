//! Memory that the allocator keeps although nobody uses it.
//!
//! glibc gives each thread that allocates a heap of its own. What a thread frees stays in its heap,
//! in holes between what is still used, and other threads cannot have it. But whole pages of such
//! holes can be given back to the system, which gives them again when they are next used:
//! `malloc_trim` does so, in all heaps of the process. It takes about a millisecond for a hundred
//! megabytes, and the lock of one heap after the other.

/// Gives the free pages in all heaps of the process back to the system. Does nothing where the
/// allocator of the C library is not glibc's; a program whose Rust code uses another allocator
/// keeps what that holds.
#[allow(unsafe_code)]
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: it takes a number, may be called by any thread at any time, and changes only memory
    // that is free. Tested by `free_pages_among_used_memory_are_given_back`.
    unsafe {
        malloc_trim(0);
    }
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
