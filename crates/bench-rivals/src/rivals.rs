//! The stores that take part, by name. Each has a file that states its settings, and why its experts would choose them.

#[cfg(any(feature = "rocksdb", feature = "leveldb", feature = "fjall"))]
mod pending;
mod folddb;
mod files;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "berkeleydb")]
mod berkeleydb;
#[cfg(feature = "tokyocabinet")]
mod tokyocabinet;

use anyhow::{Result, anyhow};

use crate::rival::{Rival, Setup};

/// A store that can take part.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// What `Cargo.lock` or the store itself says.
    pub(crate) version: fn() -> String,
    /// Its settings in a line, for results.
    pub(crate) settings: fn(&Setup) -> String,
    /// Opens it, and creates it where there is none.
    pub(crate) open: fn(&Setup) -> Result<Box<dyn Rival>>,
}

/// All stores of this build.
pub(crate) const ENTRIES: &[Entry] = &[
    folddb::ENTRY,
    folddb::HASHED,
    folddb::LOCKED,
    files::ENTRY,
    #[cfg(feature = "rocksdb")]
    rocksdb::LEVELLED,
    #[cfg(feature = "rocksdb")]
    rocksdb::UNIVERSAL,
    #[cfg(feature = "rocksdb")]
    rocksdb::MERGE,
    #[cfg(feature = "rocksdb")]
    rocksdb::UNIVERSAL_MERGE,
    #[cfg(feature = "rocksdb")]
    rocksdb::MERGE_EAGER,
    #[cfg(feature = "rocksdb")]
    rocksdb::BLOB,
    #[cfg(feature = "leveldb")]
    leveldb::ENTRY,
    #[cfg(feature = "fjall")]
    fjall::ENTRY,
    #[cfg(feature = "fjall")]
    fjall::SEPARATED,
    #[cfg(feature = "redb")]
    redb::ENTRY,
    #[cfg(feature = "lmdb")]
    lmdb::ENTRY,
    #[cfg(feature = "berkeleydb")]
    berkeleydb::ENTRY,
    #[cfg(feature = "tokyocabinet")]
    tokyocabinet::ENTRY,
];

/// The store of a name.
pub(crate) fn entry(name: &str) -> Result<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        anyhow!("this build has no rival `{name}`: choose of {}", names.join(", "))
    })
}

/// The version of a package that `Cargo.lock` fixes.
fn locked_version(package: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let name = format!("name = \"{package}\"\nversion = \"");
    let version = lock.split_once(&name).and_then(|(_, rest)| Some(rest.split_once('"')?.0));
    version.unwrap_or("unknown").to_owned()
}

#[cfg(test)]
#[path = "rivals/tests.rs"]
mod tests;
