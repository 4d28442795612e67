//! No store at all: each value is a file, in one of 256 directories by the first byte of the key's
//! hash, as the backend of elliptics that stores in the file system did. A put writes a new file
//! and renames it, so that a reader sees the old value or the new one. In mode `process` nothing is
//! synced; `sync` syncs the file and its directory. Its memory is the page cache. Only for larger
//! objects: each file takes a block, and an entry in a directory.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use folddb_bench::generate::mix;

use super::entries::Entry;
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer};

pub(crate) const ENTRY: Entry = Entry {
    name: "files",
    version: || "1".to_owned(),
    settings: |_| "a file for each value, in 256 directories; replaced by renaming".to_owned(),
    open,
};

const DIRS: u64 = 256;

struct Files {
    dir: PathBuf,
    durability: Durability,
    meaning: Meaning,
    /// Names files that are being written.
    made: AtomicU64,
}

fn open(setup: &Setup) -> Result<Box<dyn Rival>> {
    let dir = setup.dir.join("store.files");
    for number in 0..DIRS {
        fs::create_dir_all(dir.join(format!("{number:02x}")))?;
    }
    let made = AtomicU64::new(0);
    Ok(Box::new(Files { dir, durability: setup.durability, meaning: setup.meaning, made }))
}

impl Files {
    /// Where the value of a key is.
    fn path(&self, key: &[u8]) -> PathBuf {
        let hash = key.iter().fold(0, |hash, byte| mix(hash ^ u64::from(*byte)));
        let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        self.dir.join(format!("{:02x}", hash % DIRS)).join(name)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let path = self.path(key);
        let beside = self.dir.join(format!("{}.new", self.made.fetch_add(1, Ordering::Relaxed)));
        let mut file = File::create(&beside).with_context(|| format!("create {}", beside.display()))?;
        file.write_all(value)?;
        if self.durability == Durability::Sync {
            file.sync_all()?;
        }
        fs::rename(&beside, &path).with_context(|| format!("rename to {}", path.display()))?;
        self.sync_dir(&path)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let path = self.path(key);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => self.sync_dir(&path),
        }
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        if self.durability == Durability::Sync
            && let Some(dir) = path.parent()
        {
            File::open(dir)?.sync_all()?;
        }
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match fs::read(self.path(key)) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// All keys, in order.
    fn keys(&self) -> Result<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        for number in 0..DIRS {
            for file in fs::read_dir(self.dir.join(format!("{number:02x}")))? {
                keys.extend(key_of(&file?.file_name().to_string_lossy()));
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }
}

/// The key that a file's name spells.
fn key_of(name: &str) -> Option<Vec<u8>> {
    let digits = name.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

impl Rival for Files {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(FilesWriter { of: self, value: Vec::new() }))
    }

    fn reader(&self, _: Sight) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(FilesReader { of: self }))
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct FilesWriter<'a> {
    of: &'a Files,
    value: Vec<u8>,
}

impl Writer for FilesWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        match op {
            Op::Put { key, value } => self.of.put(key, value),
            Op::Delete { key } => self.of.delete(key),
            Op::Fold { key, operand } => {
                let before = self.of.get(key)?;
                self.of.meaning.fold(before.as_deref(), operand, &mut self.value);
                self.of.put(key, &self.value)
            }
        }
    }

    /// There are no batches: each op is done at once.
    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        self.apply(op)
    }

    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
}

struct FilesReader<'a> {
    of: &'a Files,
}

impl Reader for FilesReader<'_> {
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        take(self.of.get(key)?.as_deref());
        Ok(())
    }

    fn size_bytes(&mut self, key: &[u8]) -> Result<Option<u64>> {
        match fs::metadata(self.of.path(key)) {
            Ok(file) => Ok(Some(file.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let keys = self.of.keys()?;
        let first = from.map_or(0, |from| keys.partition_point(|key| key.as_slice() < from));
        for key in keys[first..].iter().take(usize::try_from(rows_max).unwrap_or(usize::MAX)) {
            if let Some(value) = self.of.get(key)? {
                take(key, &value);
            }
        }
        Ok(())
    }
}
