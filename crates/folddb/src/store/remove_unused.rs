//! Removes a store again that was created for something that then failed.
//!
//! ```text
//!   lock kept, closed, FORMAT removed: it is no store any more; then the other files, LOCK last
//! ```
//!
//! Files that do not belong to a store stay, and so does the directory, which may have existed
//! before.

use folddb_base::{Error, Result};
use folddb_layout::file_name::FileName;
use folddb_value_log::directories::remove_directory;

use crate::store::Store;

impl Store {
    /// Closes a store that has no tables, and removes its files, as if it had never been created:
    /// for a program that creates a store and then fails to fill it. The directory stays, empty.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if it has tables; [`crate::ErrorKind::ReadOnly`]; a file
    /// that cannot be removed.
    pub fn remove_unused(self) -> Result<()> {
        let engine = self.engine();
        engine.check_not_read_only()?;
        engine.check_open()?;
        if !self.tables().is_empty() {
            let message =
                format!("the store {} has tables; only one without is removed", engine.dir.display());
            return Err(Error::invalid(message));
        }
        let (files, dir) = (&*engine.options.host.files, engine.dir.clone());
        // Held to the end: nobody can open it in between and create a table.
        let _lock = engine.take_lock();
        let _ = self.clone().close(); // a failed write may be why it is removed
        let remove = |name: &str| {
            let path = dir.join(name);
            if let Some(FileName::ValueDirectory(_)) = FileName::parse(name) {
                remove_directory(files, &path);
                return Ok(());
            }
            files.remove(&path).map_err(|error| Error::io("remove", &path, error))
        };
        let (format, lock) = (FileName::Format.to_string(), FileName::Lock.to_string());
        remove(&format)?;
        let names = files.list(&dir).map_err(|error| Error::io("list", &dir, error))?;
        let is_of_store = |name: &&String| **name != lock && FileName::parse(name).is_some();
        names.iter().filter(is_of_store).try_for_each(|name| remove(name))?;
        remove(&lock)
    }
}
