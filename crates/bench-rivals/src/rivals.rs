//! The stores that take part, by name. Each has a file that states its settings, and the reasons
//! why its experts would choose them.

mod entries;
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
#[cfg(feature = "coordinode")]
mod coordinode;
#[cfg(feature = "surrealkv")]
mod surrealkv;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "berkeleydb")]
mod berkeleydb;
#[cfg(feature = "tokyocabinet")]
mod tokyocabinet;

use anyhow::{Result, anyhow};

pub(crate) use entries::Entry;

/// All stores of this build.
pub(crate) const ENTRIES: &[Entry] = &[
    folddb::ENTRY,
    folddb::HASHED,
    folddb::LOCKED,
    files::ENTRY,
    #[cfg(feature = "rocksdb")]
    rocksdb::LEVELED,
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
    #[cfg(feature = "coordinode")]
    coordinode::ENTRY,
    #[cfg(feature = "coordinode")]
    coordinode::SEPARATED,
    #[cfg(feature = "surrealkv")]
    surrealkv::ENTRY,
    #[cfg(feature = "surrealkv")]
    surrealkv::SEPARATED,
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

#[cfg(test)]
#[path = "rivals/tests.rs"]
mod tests;
