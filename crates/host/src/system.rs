//! What differs between operating systems: one file for each, with the same functions in it.
//!
//! | | Linux | macOS | Windows |
//! |---|---|---|---|
//! | reads and writes at an offset | `pread`, `pwrite` | the same | the same calls, with an offset |
//! | space of a file in advance | `fallocate` | `F_PREALLOCATE`, its length | its length |
//! | appends through a map | ext4, XFS, tmpfs | no | no |
//! | a sync of a file | `fdatasync`, `msync` | `F_FULLFSYNC` | `FlushFileBuffers` |
//! | a sync of a directory | `fsync` | `F_FULLFSYNC` | nothing: see [`sync_dir`] there |
//! | a lock also on the directory | yes | yes | no: directories cannot be locked |
//! | hints to the page cache | `posix_fadvise` | `F_RDADVISE`: what is needed soon | none |
//! | reads past the page cache | `O_DIRECT` | `F_NOCACHE` | no: they go through it |
//! | memory that stays resident | `mlock` | `mlock` | no |
//! | threads of low priority | nice values | no | no |
//! | memory of the allocator given back | glibc | no | no |
//! | a fork is noticed by | a page that is cleared | the number of the process | (no forks) |
//!
//! The last two rows are in `heap.rs` and `forks.rs`, the map is in `mapped.rs`. Where a system
//! lacks something, its function says so: it returns `Unsupported`, or is a hint that does nothing.
//!
//! **Linux is run by all tests. macOS and Windows were never run**: `.ci/portable` compiles them
//! where it can, and docs/LIMITS.md says what was seen to compile.

#[cfg(unix)]
mod unix;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
compile_error!(
    "FoldDB knows Linux, macOS and Windows; crates/host/src/system.rs lists what another must have"
);

#[cfg(target_os = "linux")]
pub(crate) use linux::{advise, append_mapped, lower_thread, open_direct, preallocate};
#[cfg(target_os = "macos")]
pub(crate) use macos::{advise, append_mapped, lower_thread, open_direct, preallocate};
#[cfg(unix)]
pub(crate) use unix::{
    handle_of, keep_from_swap, let_swap, read_at, read_exact_at, space_free_bytes, sync_dir, sync_file,
    write_all_at,
};
#[cfg(windows)]
pub(crate) use windows::{
    advise, append_mapped, handle_of, keep_from_swap, let_swap, lower_thread, open_direct, preallocate,
    read_at, read_exact_at, space_free_bytes, sync_dir, sync_file, write_all_at,
};

/// What a preallocation got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))] // only Linux reserves space
pub(crate) enum Space {
    /// Blocks of its own: no later write within the length can fail for lack of space.
    Reserved,
    /// Only the length. A write may still find the disk full, so no map may be written through.
    LengthOnly,
}

/// What is said of a range of a file to the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// It will be read soon, in order.
    WillNeed,
    /// It will not be read again soon. Over bytes that are not on the disk: write them there.
    WontNeed,
    /// Reads will be scattered, in the whole file.
    Scattered,
}

#[cfg(test)]
mod tests;
