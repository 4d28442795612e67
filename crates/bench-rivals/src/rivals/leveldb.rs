//! LevelDB 1.22, as its experts would set it for this work:
//!
//! - a third of the memory for each of its two write buffers, and a third for the block cache.
//! - filters of 10 bits per key, which live with the open files, in addition to that memory; enough
//!   files stay open.
//! - no compression; blocks of its default 4 KiB. One thread compacts; it has no setting for more.
//! - built without assertions, and for this machine; its checksum is computed in software, as its
//!   crate builds it.
//! - commits: the log goes to the operating system at each commit, or is synced.
//! - folds are read, modified and written: it has no merge operator.
//!
//! Its C interface is bound here as thinly as possible: all unsafe calls of the file are behind
//! safe functions of two types.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::ptr;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use leveldb_sys as ffi;

use super::entries::{Entry, locked_version};
use super::pending::Pending;
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer};

pub(crate) const ENTRY: Entry = Entry {
    name: "leveldb",
    // SAFETY: they read a constant.
    version: || {
        let (major, minor) = unsafe { (ffi::leveldb_major_version(), ffi::leveldb_minor_version()) };
        format!("{major}.{minor} (leveldb-sys {})", locked_version("leveldb-sys"))
    },
    settings: |_| {
        "write buffers 2 of 1/3 of the memory, block cache 1/3; filters of 10 bits with the open files, beyond it; \
         folds by read-modify-write; no compression"
            .to_owned()
    },
    open,
};

/// LevelDB does not say whether it compacts. So it counts as settled when its list of files has not
/// changed for this long.
const QUIET: Duration = Duration::from_millis(300);

/// The store, and everything that must live as long as it does.
struct Database {
    db: *mut ffi::leveldb_t,
    options: *mut ffi::leveldb_options_t,
    cache: *mut ffi::leveldb_cache_t,
    filter: *mut ffi::leveldb_filterpolicy_t,
    writing: *mut ffi::leveldb_writeoptions_t,
    reading: *mut ffi::leveldb_readoptions_t,
}

// SAFETY: LevelDB's store may be used by several threads at once; the options are only read once it
// is open.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

/// An error that a call left, as a result.
fn checked(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: LevelDB leaves a text that ends in a zero, which is ours to free.
    let text = unsafe {
        let text = std::ffi::CStr::from_ptr(error).to_string_lossy().into_owned();
        ffi::leveldb_free(error.cast());
        text
    };
    Err(anyhow!("LevelDB: {text}"))
}

impl Database {
    fn open(path: &Path, memory_bytes: usize, durability: Durability) -> Result<Database> {
        let name = CString::new(path.as_os_str().as_encoded_bytes())?;
        let mut error = ptr::null_mut();
        // SAFETY: everything that is created here lives in the value that is returned, until it is
        // dropped.
        let database = unsafe {
            let (options, cache) =
                (ffi::leveldb_options_create(), ffi::leveldb_cache_create_lru(memory_bytes / 3));
            let filter = ffi::leveldb_filterpolicy_create_bloom(10);
            ffi::leveldb_options_set_create_if_missing(options, 1);
            ffi::leveldb_options_set_write_buffer_size(options, memory_bytes / 3);
            ffi::leveldb_options_set_cache(options, cache);
            ffi::leveldb_options_set_filter_policy(options, filter);
            ffi::leveldb_options_set_compression(options, ffi::Compression::No);
            ffi::leveldb_options_set_max_open_files(options, 5000);
            let writing = ffi::leveldb_writeoptions_create();
            ffi::leveldb_writeoptions_set_sync(writing, u8::from(durability == Durability::Sync));
            let reading = ffi::leveldb_readoptions_create();
            let db = ffi::leveldb_open(options, name.as_ptr(), &mut error);
            Database { db, options, cache, filter, writing, reading }
        };
        checked(error)?;
        Ok(database)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        let (key, key_len, value, value_len) =
            (key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len());
        // SAFETY: the store is open; it copies key and value.
        unsafe { ffi::leveldb_put(self.db, self.writing, key, key_len, value, value_len, &mut error) };
        checked(error)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the store is open; it copies the key.
        unsafe { ffi::leveldb_delete(self.db, self.writing, key.as_ptr().cast(), key.len(), &mut error) };
        checked(error)
    }

    fn get<R>(&self, key: &[u8], take: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        let (mut error, mut len) = (ptr::null_mut(), 0);
        // SAFETY: the store is open; the value is a copy of this many bytes, ours to free, or null.
        unsafe {
            let value =
                ffi::leveldb_get(self.db, self.reading, key.as_ptr().cast(), key.len(), &mut len, &mut error);
            checked(error)?;
            let taken = take((!value.is_null()).then(|| std::slice::from_raw_parts(value.cast::<u8>(), len)));
            ffi::leveldb_free(value.cast::<c_void>());
            Ok(taken)
        }
    }

    fn scan(&self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        // SAFETY: the store is open; key and value are valid until the iterator moves; it is
        // destroyed at the end.
        unsafe {
            let rows = ffi::leveldb_create_iterator(self.db, self.reading);
            match from {
                None => ffi::leveldb_iter_seek_to_first(rows),
                Some(key) => ffi::leveldb_iter_seek(rows, key.as_ptr().cast(), key.len()),
            }
            let mut left = rows_max;
            while left > 0 && ffi::leveldb_iter_valid(rows) != 0 {
                // The lengths are written, although the binding says const.
                let (mut key_len, mut value_len) = (0usize, 0usize);
                let key = ffi::leveldb_iter_key(rows, (&raw mut key_len).cast_const());
                let value = ffi::leveldb_iter_value(rows, (&raw mut value_len).cast_const());
                take(
                    std::slice::from_raw_parts(key.cast(), key_len),
                    std::slice::from_raw_parts(value.cast(), value_len),
                );
                ffi::leveldb_iter_next(rows);
                left -= 1;
            }
            let mut error: *mut c_char = ptr::null_mut();
            ffi::leveldb_iter_get_error(rows, (&raw mut error).cast_const().cast());
            ffi::leveldb_iter_destroy(rows);
            checked(error)
        }
    }

    /// A property as text.
    fn property(&self, name: &str) -> Result<String> {
        let name = CString::new(name)?;
        // SAFETY: the store is open; the text ends in a zero and is ours to free, or null.
        unsafe {
            let text = ffi::leveldb_property_value(self.db, name.as_ptr());
            if text.is_null() {
                return Ok(String::new());
            }
            let owned = std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned();
            ffi::leveldb_free(text.cast());
            Ok(owned)
        }
    }

    fn compact_all(&self) {
        // SAFETY: the store is open; null means the first or the last key.
        unsafe { ffi::leveldb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0) };
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: nobody uses the store any more; the rest was its own.
        unsafe {
            if !self.db.is_null() {
                ffi::leveldb_close(self.db);
            }
            ffi::leveldb_writeoptions_destroy(self.writing);
            ffi::leveldb_readoptions_destroy(self.reading);
            ffi::leveldb_options_destroy(self.options);
            ffi::leveldb_filterpolicy_destroy(self.filter);
            ffi::leveldb_cache_destroy(self.cache);
        }
    }
}

/// A batch of writes.
struct Batch(*mut ffi::leveldb_writebatch_t);

impl Batch {
    fn new() -> Batch {
        // SAFETY: it is destroyed when this is dropped.
        Batch(unsafe { ffi::leveldb_writebatch_create() })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let (key, key_len, value, value_len) =
            (key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len());
        // SAFETY: it copies key and value.
        unsafe { ffi::leveldb_writebatch_put(self.0, key, key_len, value, value_len) };
    }

    fn delete(&mut self, key: &[u8]) {
        // SAFETY: it copies the key.
        unsafe { ffi::leveldb_writebatch_delete(self.0, key.as_ptr().cast(), key.len()) };
    }

    fn write(&mut self, database: &Database) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: store and batch live.
        unsafe {
            ffi::leveldb_write(database.db, database.writing, self.0, &mut error);
            ffi::leveldb_writebatch_clear(self.0);
        }
        checked(error)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: nobody has it but this.
        unsafe { ffi::leveldb_writebatch_destroy(self.0) };
    }
}

struct LevelDb {
    database: Database,
    meaning: Meaning,
}

fn open(setup: &Setup) -> Result<Box<dyn Rival>> {
    let path = setup.dir.join("store.leveldb");
    let database = Database::open(&path, setup.memory_bytes as usize, setup.durability)?;
    Ok(Box::new(LevelDb { database, meaning: setup.meaning }))
}

impl Rival for LevelDb {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        let pending = Pending::new(self.meaning);
        Ok(Box::new(LevelDbWriter { of: self, batch: Batch::new(), pending, value: Vec::new() }))
    }

    fn reader(&self, _: Sight) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(LevelDbReader { database: &self.database }))
    }

    /// It has no flush: its write buffer stays as it is. This waits until running compactions are
    /// done.
    fn settle(&self) -> Result<()> {
        let mut before = self.database.property("leveldb.sstables")?;
        let mut busy_at = Instant::now();
        while busy_at.elapsed() < QUIET {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.database.property("leveldb.sstables")?;
            if now != before {
                (before, busy_at) = (now, Instant::now());
            }
        }
        Ok(())
    }

    fn optimize(&self) -> Result<bool> {
        self.database.compact_all();
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.database);
        Ok(())
    }
}

struct LevelDbWriter<'a> {
    of: &'a LevelDb,
    batch: Batch,
    /// Where a fold must see what the batch did before.
    pending: Pending,
    value: Vec<u8>,
}

// SAFETY: a batch is used by one thread at a time.
unsafe impl Send for Batch {}

impl Writer for LevelDbWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        let database = &self.of.database;
        match op {
            Op::Put { key, value } => database.put(key, value),
            Op::Delete { key } => database.delete(key),
            Op::Fold { key, operand } => {
                database.get(key, |before| self.of.meaning.fold(before, operand, &mut self.value))?;
                database.put(key, &self.value)
            }
        }
    }

    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        if self.of.meaning.folds() {
            let database = &self.of.database;
            return self.pending.collect(op, |key, value| {
                database.get(key, |stored| {
                    value.extend_from_slice(stored.unwrap_or_default());
                    stored.is_some()
                })
            });
        }
        match op {
            Op::Put { key, value } | Op::Fold { key, operand: value } => self.batch.put(key, value),
            Op::Delete { key } => self.batch.delete(key),
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        for (key, value) in self.pending.drain() {
            match value {
                Some(value) => self.batch.put(&key, &value),
                None => self.batch.delete(&key),
            }
        }
        self.batch.write(&self.of.database)
    }
}

struct LevelDbReader<'a> {
    database: &'a Database,
}

impl Reader for LevelDbReader<'_> {
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        self.database.get(key, take)
    }

    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.database.scan(from, rows_max, take)
    }
}
