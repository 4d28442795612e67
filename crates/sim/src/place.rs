//! A temporary directory with a store in it, removed when it is dropped. Tests of the whole begin
//! with one.

use std::path::{Path, PathBuf};

use folddb::{Options, Store};

/// A temporary directory: in memory where the system has such a place.
pub struct Place {
    temp: tempfile::TempDir,
}

#[expect(clippy::new_without_default, reason = "it makes a directory")]
impl Place {
    /// A new empty directory.
    ///
    /// # Panics
    /// If none can be made. The others panic if the store refuses: then the test ends.
    pub fn new() -> Place {
        Place { temp: tempfile::tempdir_in(crate::memory_dir()).expect("a directory") }
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        self.temp.path()
    }

    /// Where its store is, or will be.
    pub fn path(&self) -> PathBuf {
        self.dir().join("store")
    }

    /// Creates the store.
    ///
    /// # Panics
    /// If it is refused.
    pub fn create(&self, options: Options) -> Store {
        Store::create(self.path(), options).expect("the store is created")
    }

    /// Opens the store.
    ///
    /// # Panics
    /// If it is refused.
    pub fn open(&self, options: Options) -> Store {
        Store::open(self.path(), options).expect("the store opens")
    }
}
