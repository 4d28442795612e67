//! Durability that a caller does not wait for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use folddb_base::Result;

use crate::store::Store;
use folddb_engine::write::sync_later::SyncRequest;

/// Says when everything that had been written is on the disk: see [`Store::sync_later`].
///
/// It is a [`Future`] that any executor can poll; no runtime is needed.
#[must_use = "it says when what was written is durable"]
pub struct SyncHandle {
    request: SyncRequest,
}

impl Store {
    /// Begins to make durable what has been written so far, by whatever commits and writes, and
    /// returns at once. The handle says when it is on the disk; dropping it stops nothing.
    ///
    /// A commit with [`Durability::Process`](crate::Durability::Process) waits for no disk. With a
    /// handle after it, an async program commits, continues with other tasks, and answers its
    /// client once the handle is ready. All that wait share syncs, as commits with
    /// [`Durability::Sync`](crate::Durability::Sync) do.
    ///
    /// A thread of the store syncs. With [`crate::BackgroundWork::Manual`] there is none: then a
    /// step of [`BackgroundJob::Log`](crate::BackgroundJob::Log) does, or any other sync.
    ///
    /// ```
    /// use folddb::{Durability, Options, Rules, Store};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
    /// let visits = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    /// let mut batch = store.batch();
    /// batch.fold(&visits, "/index", &1);
    /// batch.commit(Durability::Process)?;
    /// let synced = store.sync_later()?; // returns at once
    /// // In an async function: synced.await?;
    /// synced.wait()?;
    /// assert!(synced.is_synced());
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::ErrorKind::Closed`]; [`crate::ErrorKind::ReadOnly`]; the failure that has poisoned
    /// the store.
    pub fn sync_later(&self) -> Result<SyncHandle> {
        Ok(SyncHandle { request: SyncRequest::ask(self.engine())? })
    }
}

impl SyncHandle {
    /// Whether it is on the disk. Costs a load. It never says that a sync has failed: wait, or
    /// await, to hear of that.
    pub fn is_synced(&self) -> bool {
        self.request.is_done()
    }

    /// Waits until it is, and blocks the thread: in async code, await the handle.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotDurable`] after a failed sync: what was written is visible and may
    /// not survive a power cut. [`crate::ErrorKind::Closed`] in a forked child.
    pub fn wait(&self) -> Result<()> {
        self.request.wait()
    }
}

/// Ready when it is on the disk, with the errors of [`SyncHandle::wait`]; also with
/// [`crate::ErrorKind::NotDurable`] if the store was closed and its log could not be synced.
impl Future for SyncHandle {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.request.poll(context.waker())
    }
}

impl fmt::Debug for SyncHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncHandle").field("is_synced", &self.is_synced()).finish_non_exhaustive()
    }
}
