//! How far a long job is, and whether its caller wants it to end.
//!
//! Every job that may take long has two calls: `backup`, and `backup_with`, whose last argument is
//! called as it goes on, and may break it off. A verify, backup, restore or repair then ends with
//! [`ErrorKind::Stopped`](crate::ErrorKind::Stopped), and what it had made is removed. Jobs that
//! can be resumed (`compact`, `add_index`, `reclaim`) keep what they have done and end well.

use std::ops::ControlFlow;

use folddb_base::Result;
use folddb_engine::read::stop::stopped;

/// The bytes of files that a job has read or copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ByteProgress {
    /// Bytes done so far, at most `bytes_total`.
    pub bytes_done: u64,
    /// Bytes to do, as far as that is known now.
    pub bytes_total: u64,
}

/// What a caller passes.
pub(crate) type Report<'a> = &'a mut dyn FnMut(ByteProgress) -> ControlFlow<()>;

/// Counts the bytes of a job, and remembers that it is to end.
pub(crate) struct Counter<'a> {
    report: Report<'a>,
    at: ByteProgress,
    is_stopped: bool,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(report: Report<'a>, bytes_total: u64) -> Counter<'a> {
        Counter { report, at: ByteProgress { bytes_done: 0, bytes_total }, is_stopped: false }
    }

    /// There is more to do than was known.
    pub(crate) fn expect_more(&mut self, bytes: u64) {
        self.at.bytes_total += bytes;
    }

    /// So many bytes more are done.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.at.bytes_done = (self.at.bytes_done + bytes).min(self.at.bytes_total);
        if !self.is_stopped {
            self.is_stopped = (self.report)(self.at).is_break();
        }
    }

    /// Whether the job goes on.
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        if self.is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Called between files.
    ///
    /// # Errors
    /// [`ErrorKind::Stopped`](crate::ErrorKind::Stopped) if the caller has broken the job off.
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_stopped {
            true => Err(stopped()),
            false => Ok(()),
        }
    }
}

/// For callers that do not ask.
pub(crate) fn unreported(_: ByteProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
