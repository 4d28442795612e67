//! Appending through a shared memory map: the cheapest way to pass bytes to the kernel.
//!
//! A store into a shared map is in the page cache at once, so it survives the death of the process
//! as a `pwrite` does, without a system call. Only a window of the file is mapped at a time, so
//! that passed pages do not count as memory of the process; the next window is mapped and touched
//! ahead by [`AppendSync::prepare`], off the path of the appends.
//!
//! ```text
//!   file  |##########|##########|######....|..........|..........|     # appended to
//!                     passed      current    next
//!                     (to unmap)             (mapped and populated by prepare)
//! ```
//!
//! **A store to a map must not fault.** If the disk is full, or the file is shorter than the map,
//! the system kills the process (SIGBUS). So a map is made only of a file that is preallocated in
//! full, on a file system that writes such blocks in place ([`maps_are_safe`]), and never past the
//! file's length. Another program that truncates the file of a running store can still do harm;
//! none has a reason to.
//!
//! **A sync writes what was appended, and not the window of zeros ahead of it**, which is dirty
//! since it was populated: `fdatasync` writes all dirty pages of a file, and the page of each later
//! append once more. `msync` on a map of the bytes that were appended since the last sync makes the
//! system sync that range of the file, with the metadata that is needed to read it, however its
//! pages became dirty.
//!
//! One of the modules with `unsafe`: the raw map. Nothing is ever read through the map, and no
//! reference to mapped memory is made, only raw copies into it.
//!
//! Linux alone has it: see `system.rs`.

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags};
use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::files::{AppendFile, AppendSync};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes mapped at a time: a whole number of pages of any size. A writer at full speed fills them
/// in some ten milliseconds, so background work prepares the next window in time.
pub(crate) const WINDOW_BYTES: u64 = 4 << 20;

/// As [`WINDOW_BYTES`], for processes that append to many files.
pub(crate) const NARROW_WINDOW_BYTES: u64 = 256 << 10;

/// True when no store into a map of a preallocated file can find the disk full: the file system of
/// `file` writes preallocated blocks in place. Those that copy on write (btrfs, zfs, overlays of
/// them) do not.
pub(crate) fn maps_are_safe(file: &File) -> bool {
    const EXT: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const TMPFS: u64 = 0x0102_1994;
    let kind = rustix::fs::fstatfs(file).map(|facts| facts.f_type as u64 & 0xffff_ffff);
    matches!(kind, Ok(EXT | XFS | TMPFS))
}

/// Appends through a window of the file.
pub(crate) struct MappedAppend {
    shared: Arc<Shared>,
    current: Option<Window>,
    end: u64,
}

struct Shared {
    file: File,
    len_bytes: u64,
    /// Bytes mapped at a time.
    window_bytes: u64,
    /// Where the next window begins that appends will need.
    next_offset: AtomicU64,
    /// Bytes appended so far.
    appended: AtomicU64,
    /// How many of them are durable.
    synced_to: AtomicU64,
    /// True if there was a sync since the last window was prepared.
    synced: AtomicBool,
    /// Held for moments only: windows are mapped, populated and unmapped outside of it.
    windows: Mutex<Windows>,
}

#[derive(Default)]
struct Windows {
    next: Option<Window>,
    passed: Option<Window>,
}

impl MappedAppend {
    /// Appends to `file`, which is empty and has `len_bytes` reserved, where [`maps_are_safe`].
    pub(crate) fn new(file: File, len_bytes: u64, window_bytes: u64) -> MappedAppend {
        let shared = Shared {
            file,
            len_bytes,
            window_bytes,
            next_offset: AtomicU64::new(0),
            appended: AtomicU64::new(0),
            synced_to: AtomicU64::new(0),
            synced: AtomicBool::new(false),
            windows: Mutex::default(),
        };
        MappedAppend { shared: Arc::new(shared), current: None, end: 0 }
    }

    /// The window that holds byte `offset`, which must be within the file.
    fn window_at(&mut self, offset: u64) -> io::Result<&mut Window> {
        let holds = self.current.as_ref().is_some_and(|window| offset < window.end());
        if !holds {
            let window_offset = offset / self.shared.window_bytes * self.shared.window_bytes;
            let next = self.shared.take_window(window_offset)?;
            if let Some(passed) = self.current.replace(next) {
                self.shared.give_back(passed);
            }
        }
        self.current.as_mut().ok_or_else(|| io::ErrorKind::Other.into())
    }
}

impl AppendFile for MappedAppend {
    #[inline]
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(window) = &mut self.current
            && window.put(self.end, bytes)
        {
            self.end += bytes.len() as u64;
            self.shared.appended.store(self.end, Ordering::Release);
            return Ok(());
        }
        self.append_across(bytes)
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn syncer(&self) -> Arc<dyn AppendSync> {
        Arc::clone(&self.shared) as Arc<dyn AppendSync>
    }
}

/// A file that waits for its sync and is no longer appended to has nothing mapped: many may wait.
impl Drop for MappedAppend {
    fn drop(&mut self) {
        self.shared.end_windows();
    }
}

impl MappedAppend {
    /// The append that does not fit what is left of the current window. The end moves only once
    /// everything is written, so an append that failed halfway has no effect.
    #[cold]
    fn append_across(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > self.shared.len_bytes - self.end {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut at = self.end;
        let mut rest = bytes;
        while !rest.is_empty() {
            let window = self.window_at(at)?;
            let fits = usize::try_from(window.end() - at).map_or(rest.len(), |room| room.min(rest.len()));
            let (now, later) = rest.split_at(fits);
            if !window.put(at, now) {
                return Err(io::ErrorKind::Other.into()); // cannot be: it was cut to fit
            }
            at += fits as u64;
            rest = later;
        }
        self.end = at;
        self.shared.appended.store(at, Ordering::Release);
        Ok(())
    }
}

impl Shared {
    /// The window at `offset`: the one that was made ahead, or else a new one. The pages of a new
    /// one fault in one by one.
    fn take_window(&self, offset: u64) -> io::Result<Window> {
        let mut windows = self.windows.lock();
        let ready = windows.next.take();
        self.next_offset.store(offset + self.window_bytes, Ordering::Release);
        drop(windows);
        match ready {
            Some(window) if window.offset == offset => Ok(window),
            _ => {
                let window = self.map(offset)?;
                window.fault_by_page();
                Ok(window)
            }
        }
    }

    fn map(&self, offset: u64) -> io::Result<Window> {
        Window::map(&self.file, offset, self.len_bytes.min(offset + self.window_bytes))
    }

    /// Unmaps the passed window and the next, and has `prepare` map no more.
    fn end_windows(&self) {
        let mut windows = self.windows.lock();
        let ended = std::mem::take(&mut *windows);
        self.next_offset.store(self.len_bytes, Ordering::Release);
        drop(windows);
        drop(ended);
    }

    /// Leaves a passed window for `prepare` to unmap; if one is already waiting there, that one is
    /// unmapped now.
    fn give_back(&self, window: Window) {
        let older = self.windows.lock().passed.replace(window);
        drop(older);
    }
}

/// How pages are faulted in ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// As if written to: no append faults at all. But the pages are dirty, and the next sync writes
    /// them.
    Write,
    /// As if read: the first append to each page still faults, briefly. A sync finds nothing to
    /// write.
    Read,
}

impl Shared {
    /// With frequent syncs, a window of zeros would be written to the disk for nothing.
    fn touch(&self) -> Touch {
        if self.synced.swap(false, Ordering::Relaxed) { Touch::Read } else { Touch::Write }
    }
}

impl AppendSync for Shared {
    fn sync(&self) -> io::Result<()> {
        self.synced.store(true, Ordering::Relaxed);
        let appended = self.appended.load(Ordering::Acquire);
        let synced_to = self.synced_to.load(Ordering::Acquire);
        if appended > synced_to {
            sync_range(&self.file, synced_to, appended)?;
            self.synced_to.fetch_max(appended, Ordering::AcqRel);
        }
        Ok(())
    }

    fn prepare(&self) -> io::Result<()> {
        let passed = self.windows.lock().passed.take();
        drop(passed);
        let offset = self.next_offset.load(Ordering::Acquire);
        let ready = self.windows.lock().next.as_ref().is_some_and(|window| window.offset == offset);
        if ready || offset >= self.len_bytes {
            return Ok(());
        }
        let window = self.map(offset)?;
        window.populate(self.touch());
        let mut windows = self.windows.lock();
        if self.next_offset.load(Ordering::Acquire) == offset {
            windows.next = Some(window);
        } // else the appends came here first, and this one goes
        Ok(())
    }
}

/// A writable shared map of a piece of a file, unmapped when dropped.
struct Window {
    base: NonNull<u8>,
    len: usize,
    /// Where in the file it begins.
    offset: u64,
}

// SAFETY: a map belongs to the process, not to a thread; a `Window` is its only owner, and
// everything that touches the memory takes `&mut self` or owns the window. Tested by
// `preparing_and_syncing_during_appends_loses_nothing`, where windows pass from thread to thread.
#[allow(unsafe_code)]
unsafe impl Send for Window {}

impl Window {
    /// Maps the window of `file` at `offset`, which is a multiple of its length, up to `len_bytes`.
    #[allow(unsafe_code)]
    fn map(file: &File, offset: u64, len_bytes: u64) -> io::Result<Window> {
        let len = usize::try_from(len_bytes.saturating_sub(offset).min(WINDOW_BYTES))
            .map_err(|_| io::ErrorKind::InvalidInput)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the address is null, so the system picks one that holds nothing else; no
        // reference to the new memory is made, here or later. Tested by
        // `a_window_takes_what_is_in_it_and_refuses_the_rest`.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, access, MapFlags::SHARED, file, offset)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Window { base, len, offset })
    }

    /// Where in the file it ends.
    #[inline]
    fn end(&self) -> u64 {
        self.offset + self.len as u64
    }

    /// Copies `bytes` to `offset` of the file; false, with nothing done, if they are not inside
    /// this window.
    #[inline]
    #[allow(unsafe_code)]
    fn put(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let Some(at) = offset.checked_sub(self.offset) else { return false };
        if at > self.len as u64 || bytes.len() as u64 > self.len as u64 - at {
            return false;
        }
        // SAFETY: `at + bytes.len() <= self.len` was just checked, so the target is in the map,
        // which is live and writable as long as `self` is; `bytes` is a Rust reference, so it is
        // elsewhere. The file is preallocated beyond the end of the map, so the pages are there to
        // be written. Tested by `a_window_takes_what_is_in_it_and_refuses_the_rest`, at both ends
        // of a window.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(at as usize), bytes.len()) };
        true
    }

    /// Makes the first touch of a page bring in that page alone. Without it a touch reads ahead,
    /// and may wait tens of milliseconds for the system to make and clear a huge page.
    #[allow(unsafe_code)]
    fn fault_by_page(&self) {
        // SAFETY: the range is exactly this live map; the advice changes no byte of it.
        // Tested by `appends_straddle_windows_with_and_without_preparation`.
        let _ = unsafe { rustix::mm::madvise(self.base.as_ptr().cast(), self.len, Advice::Random) };
    }

    /// Faults all pages in. A kernel without the call (before Linux 5.14) faults them one by one as
    /// they are written to, which is slower but correct.
    #[allow(unsafe_code)]
    fn populate(&self, touch: Touch) {
        let advice = match touch {
            Touch::Write => Advice::LinuxPopulateWrite,
            Touch::Read => Advice::LinuxPopulateRead,
        };
        // SAFETY: the range is exactly this live map; populating changes no byte of it.
        // Tested by `appends_straddle_windows_with_and_without_preparation`.
        let _ = unsafe { rustix::mm::madvise(self.base.as_ptr().cast(), self.len, advice) };
    }
}

impl Drop for Window {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the range is exactly what `map` got, nobody else unmaps it, and no pointer to it
        // is left: `base` dies with `self`. Tested by `no_more_than_three_windows_are_ever_mapped`.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Offsets in files at which a map may begin: a whole number of pages of any size.
const MAP_ALIGN: u64 = 64 << 10;

/// Waits until the bytes from `from` to below `to`, which are inside the file, are durable.
#[allow(unsafe_code)]
fn sync_range(file: &File, from: u64, to: u64) -> io::Result<()> {
    let offset = from / MAP_ALIGN * MAP_ALIGN;
    let len = usize::try_from(to - offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let (anywhere, access, flags) = (ptr::null_mut(), ProtFlags::READ, MapFlags::SHARED);
    // SAFETY: the address is null, so the system picks one that holds nothing else; the memory is
    // neither read nor written. Tested by `a_sync_of_a_range_takes_any_range_of_the_file`.
    let mapped = unsafe { rustix::mm::mmap(anywhere, len, access, flags, file, offset) };
    let Ok(base) = mapped else { return file.sync_data() }; // no room for a map is no failure of the disk
    // SAFETY: the range is exactly this live map.
    // Tested by `a_sync_of_a_range_takes_any_range_of_the_file`.
    let synced = unsafe { rustix::mm::msync(base, len, MsyncFlags::SYNC) };
    // SAFETY: the range is exactly what was mapped, and no pointer to it is left.
    // Tested by `a_sync_of_a_range_takes_any_range_of_the_file`.
    let _ = unsafe { rustix::mm::munmap(base, len) };
    synced.map_err(io::Error::from)
}

#[cfg(test)]
#[path = "mapped/tests.rs"]
mod tests;
