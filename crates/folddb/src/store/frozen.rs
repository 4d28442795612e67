//! Freezing a store: from then on it can only be read, by any number of processes, also on
//! read-only media.
//!
//! A store is frozen by a file `SEALED` in its directory. It is created while the store is locked,
//! after everything in memory and in the log is in runs, so that an opening has nothing to replay.
//! The lock is the one under which the store was opened: if it were released in between, another
//! process might write and die. Opening a frozen store for reading takes the lock if possible;
//! opening it for writing is refused.
//!
//! ```text
//!   freeze     lock, open, flush, close in order; still locked: SEALED written, synced, and its name
//!   thaw       lock: no reader that takes locks is left; SEALED removed, and the directory synced
//! ```
//!
//! A crash before the name is durable leaves a store that is frozen or not, and intact either way.

use std::path::Path;

use folddb_base::{Error, Result};
use folddb_host::Files;
use folddb_layout::file_name::FileName;

use crate::options::Options;
use crate::store::Store;
use folddb_engine::options::OpenMode;
use folddb_engine::recovery::format;

/// The text in the file, for people.
const SAID: &[u8] = b"frozen: opened for reading only, until it is thawed\n";

impl Store {
    /// Freezes a store that nobody has open: from then on it can only be opened for reading, by any
    /// number of processes. A frozen store stays frozen.
    ///
    /// # Errors
    /// As for [`Store::open`]; a failed write, after which the store is frozen or not, and intact.
    pub fn freeze(path: impl AsRef<Path>, options: Options) -> Result<()> {
        let (path, options) = (path.as_ref(), options.engine.opened_as(OpenMode::Primary));
        let files = &*options.host.files;
        let to = path.join(FileName::Frozen.to_string());
        if format::is_frozen(files, path) {
            return sync_name(files, path); // an earlier freeze may have failed to
        }
        let store = Store::open_as(path, options.clone(), OpenMode::Primary)?;
        // Held from the opening until the freeze is durable: nobody writes in between, so
        // everything is in runs. A process that checked for a freeze before, and waits for the
        // lock, checks again under it (`format::lock_to_open`).
        let _lock = store.engine().take_lock();
        store.close()?;
        let mut file = files.create(&to).map_err(|error| Error::io("create", &to, error))?;
        let written = file.append(SAID).and_then(|()| file.sync());
        written.map_err(|error| Error::io("write", &to, error))?;
        sync_name(files, path)
    }

    /// Thaws the store: it can be written to again. Readers without a lock (on media that cannot be
    /// locked) must have ended before anything is written.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Locked`] while there are readers; [`crate::ErrorKind::StoreNotFound`]; a
    /// failed write.
    pub fn thaw(path: impl AsRef<Path>, options: Options) -> Result<()> {
        let (path, options) = (path.as_ref(), options.engine.opened_as(OpenMode::Primary));
        format::read_version(path, &options)?; // checks that there is a store
        let _lock = format::lock(path, &options)?;
        let (files, freeze) = (&*options.host.files, path.join(FileName::Frozen.to_string()));
        match files.remove(&freeze) {
            // An earlier removal may not be durable.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => removed.map_err(|error| Error::io("remove", &freeze, error))?,
        }
        sync_name(files, path)
    }

    /// Whether the store in a directory is frozen.
    pub fn is_frozen(path: impl AsRef<Path>, options: &Options) -> bool {
        format::is_frozen(&*options.engine.host.files, path.as_ref())
    }

    /// The present store, if this one is a secondary ([`Store::open_secondary`]): opens it again.
    /// This one does not change.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if it was opened in another way; as for [`Store::open`].
    pub fn refresh(&self) -> Result<Store> {
        self.engine().check_here()?;
        let options = &self.engine().options;
        if options.underlying.is_none() {
            return Err(Error::invalid("only a store that was opened by `open_secondary` is refreshed"));
        }
        Store::open_as(self.path(), options.clone(), OpenMode::Secondary)
    }
}

/// Makes the presence or absence of the mark durable: its name counts, not its bytes.
fn sync_name(files: &dyn Files, dir: &Path) -> Result<()> {
    files.sync_dir(dir).map_err(|error| Error::io("sync", dir, error))
}
