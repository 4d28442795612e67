//! Reads that bypass the page cache (`O_DIRECT` on Linux), for values that are read once and should
//! evict nothing.
//!
//! The system accepts such reads only at whole sectors, into aligned memory. So each goes through a
//! buffer of the thread, from an aligned offset, and the requested bytes are copied out. The system
//! first writes to the disk what others have written through the cache, or through a map.
//!
//! Made by `real.rs`.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::files::ReadFile;
use crate::system;

/// Offsets and lengths of reads are multiples of this: a page. No sector is longer.
const ALIGN: usize = 4096;

/// Longest single read; longer ones are split.
const READ_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file with reads that bypass the page cache.
pub(crate) struct DirectRead {
    file: File,
}

impl DirectRead {
    /// Opens a file for such reads.
    ///
    /// # Errors
    /// `InvalidInput` or `Unsupported` if the file system has no such reads; any failed call.
    pub(crate) fn open(path: &Path) -> io::Result<DirectRead> {
        Ok(DirectRead { file: system::open_direct(path)? })
    }

    /// Fills the front of `buf` from `offset`, and returns how many bytes: fewer than requested
    /// only at the end of the file, or of a read.
    fn read_some(&self, offset: u64, buf: &mut [u8], buffer: &mut Vec<u8>) -> io::Result<usize> {
        let skip = (offset % ALIGN as u64) as usize;
        let len = (skip + buf.len()).next_multiple_of(ALIGN).min(READ_BYTES_MAX);
        if buffer.len() < len + ALIGN {
            buffer.resize(len + ALIGN, 0);
        }
        let at = buffer.as_ptr().align_offset(ALIGN);
        let aligned = &mut buffer[at..at + len];
        let got = system::read_at(&self.file, aligned, offset - skip as u64)?;
        let front = aligned[..got].get(skip..).unwrap_or(&[]);
        let taken = front.len().min(buf.len());
        buf[..taken].copy_from_slice(&front[..taken]);
        Ok(taken)
    }
}

impl ReadFile for DirectRead {
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        BUFFER.with(|buffer| {
            let buffer = &mut *buffer.borrow_mut();
            let mut done = 0;
            while done < buf.len() {
                match self.read_some(offset + done as u64, &mut buf[done..], buffer) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(taken) => done += taken,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
    }

    fn len_bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|facts| facts.len())
    }

    fn will_need(&self, _: u64, _: u64) {} // hints are for the cache

    fn wont_need(&self, _: u64, _: u64) {}
}
