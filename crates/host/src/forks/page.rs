//! A page of memory that the system clears in a forked child (`MADV_WIPEONFORK`). Linux alone has
//! it.
//!
//! One of the modules with `unsafe`: the page, and looking at it.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{self, Advice, MapFlags, ProtFlags};

/// What is mapped: the system takes whole pages, of any size.
const PAGE_BYTES: usize = size_of::<AtomicU32>();

/// A page of memory that begins with 1, and is cleared in a forked child.
#[derive(Debug)]
pub(super) struct Page(NonNull<AtomicU32>);

// SAFETY: a map belongs to the process, not to a thread, and the word in it is atomic.
// Tested by `threads_look_at_one_page`.
#[allow(unsafe_code)]
unsafe impl Send for Page {}

// SAFETY: as above: all that is done through a reference is an atomic load.
// Tested by `threads_look_at_one_page`.
#[allow(unsafe_code)]
unsafe impl Sync for Page {}

impl Page {
    /// Maps one.
    #[allow(unsafe_code)]
    pub(super) fn map() -> io::Result<Page> {
        let (anywhere, access) = (ptr::null_mut(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: the address is null, so the system picks one that holds nothing else.
        // Tested by `a_page_is_cleared_in_a_child_and_nowhere_else`.
        let base = unsafe { mm::mmap_anonymous(anywhere, PAGE_BYTES, access, MapFlags::PRIVATE)? };
        let page = Page(NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?);
        // SAFETY: the range is exactly this live map; the advice changes no byte of it here.
        // Tested by `a_page_is_cleared_in_a_child_and_nowhere_else`.
        unsafe { mm::madvise(base, PAGE_BYTES, Advice::LinuxWipeOnFork)? };
        page.word().store(1, Ordering::Relaxed);
        Ok(page)
    }

    /// Whether it was cleared: this is a child of the process that mapped it.
    #[inline]
    pub(super) fn is_cleared(&self) -> bool {
        self.word().load(Ordering::Relaxed) == 0
    }

    #[inline]
    #[allow(unsafe_code)]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the map is live, readable and writable as long as `self` is; it begins at a page,
        // so the word is aligned, and any bytes are one. Tested by `threads_look_at_one_page`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Page {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the range is exactly what `map` got, and no reference into it outlives `self`.
        // Tested by `a_page_is_cleared_in_a_child_and_nowhere_else`.
        let _ = unsafe { mm::munmap(self.0.as_ptr().cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests;
