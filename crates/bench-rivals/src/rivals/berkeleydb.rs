//! Berkeley DB 5.3's B-tree in a transactional environment, as its experts would set it for this
//! work:
//!
//! - all of the memory for its cache, private to the process; below 500 MB it takes a quarter more
//!   than configured, so less is configured. Pages of 4 KiB; in addition, a log buffer of 4 MiB.
//! - mode `process`: `DB_TXN_WRITE_NOSYNC`: the log goes to the operating system at each commit.
//!   Mode `sync`: its default.
//! - a checkpoint whenever there are 64 MiB of log, by a thread of its own; logs that are no longer
//!   needed are removed.
//! - one transaction a commit. Sums are read with a lock for writing, modified and written in it.
//!   Appends are duplicates of their key (`DB_DUP`), which a get puts together: read-modify-write
//!   would write 90 GB for 50,000 of them.
//! - the loser of a deadlock tries again: a reader with a concurrent writer, or one of several
//!   writers of single rows.
//!
//! Its interface is methods in structs that only its header knows, so `berkeleydb.c` wraps them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::entries::Entry;
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer, number};

pub(crate) const ENTRY: Entry = Entry {
    name: "berkeleydb",
    version,
    settings: |setup| {
        let log = match setup.durability {
            Durability::Process => "TXN_WRITE_NOSYNC",
            Durability::Sync => "synced log",
        };
        format!(
            "B-tree with transactions, all memory for its cache, {log}, checkpoints each 64 MiB of log; sums by \
             read-modify-write, appends as duplicates"
        )
    },
    open,
};

const CHECKPOINT_KIB: u32 = 64 << 10;
const LOG_FILE_BYTES: u32 = 64 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The functions of `berkeleydb.c`, and two of the library.
#[allow(unsafe_code)]
mod ffi {
    use super::{c_char, c_int, c_void};

    type Bytes = *const c_void;

    unsafe extern "C" {
        pub(super) fn bdb_open(
            dir: *const c_char,
            cache: u64,
            syncs: c_int,
            is_append: c_int,
            log_max: u32,
            out: *mut *mut c_void,
        ) -> c_int;
        pub(super) fn bdb_close(store: *mut c_void) -> c_int;
        pub(super) fn bdb_begin(store: *mut c_void, out: *mut *mut c_void) -> c_int;
        pub(super) fn bdb_commit(txn: *mut c_void) -> c_int;
        pub(super) fn bdb_abort(txn: *mut c_void) -> c_int;
        pub(super) fn bdb_put(
            store: *mut c_void,
            txn: *mut c_void,
            key: Bytes,
            key_len: u32,
            value: Bytes,
            len: u32,
        ) -> c_int;
        pub(super) fn bdb_delete(store: *mut c_void, txn: *mut c_void, key: Bytes, key_len: u32) -> c_int;
        pub(super) fn bdb_get_to_change(
            store: *mut c_void,
            txn: *mut c_void,
            key: Bytes,
            key_len: u32,
            value: *mut c_void,
            room: u32,
            len: *mut u32,
        ) -> c_int;
        pub(super) fn bdb_checkpoint(store: *mut c_void, log_kib: u32) -> c_int;
        pub(super) fn bdb_compact(store: *mut c_void) -> c_int;
        pub(super) fn bdb_reader(store: *mut c_void, out: *mut *mut c_void) -> c_int;
        pub(super) fn bdb_reader_free(reader: *mut c_void);
        pub(super) fn bdb_get(
            reader: *mut c_void,
            key: Bytes,
            key_len: u32,
            value: *mut Bytes,
            len: *mut u32,
        ) -> c_int;
        pub(super) fn bdb_first(
            reader: *mut c_void,
            from: Bytes,
            from_len: u32,
            key: *mut Bytes,
            key_len: *mut u32,
            value: *mut Bytes,
            len: *mut u32,
        ) -> c_int;
        pub(super) fn bdb_next(
            reader: *mut c_void,
            key: *mut Bytes,
            key_len: *mut u32,
            value: *mut Bytes,
            len: *mut u32,
        ) -> c_int;
        pub(super) fn bdb_first_append(
            reader: *mut c_void,
            key: Bytes,
            key_len: u32,
            value: *mut Bytes,
            len: *mut u32,
        ) -> c_int;
        pub(super) fn bdb_next_append(reader: *mut c_void, value: *mut Bytes, len: *mut u32) -> c_int;
        pub(super) fn bdb_end_scan(reader: *mut c_void) -> c_int;
        pub(super) fn bdb_is_deadlock(error: c_int) -> c_int;
    }

    #[link(name = "db-5.3")]
    unsafe extern "C" {
        pub(super) fn db_strerror(error: c_int) -> *const c_char;
        pub(super) fn db_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) -> *const c_char;
    }
}

#[allow(unsafe_code)]
fn version() -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: it writes three numbers; the text that it gives is not looked at.
    unsafe { ffi::db_version(&raw mut major, &raw mut minor, &raw mut patch) };
    format!("{major}.{minor}.{patch}")
}

/// Turns the code of a call into a result.
#[allow(unsafe_code)]
fn done(error: c_int) -> Result<()> {
    if error == 0 {
        return Ok(());
    }
    // SAFETY: messages are constant texts that end with a zero.
    let text = unsafe { CStr::from_ptr(ffi::db_strerror(error)) };
    Err(anyhow!("Berkeley DB: {}", text.to_string_lossy()))
}

/// Calls until no deadlock gets in the way. A call that was chosen to break a deadlock has changed
/// nothing.
#[allow(unsafe_code)]
fn patiently(mut call: impl FnMut() -> c_int) -> Result<()> {
    loop {
        let error = call();
        // SAFETY: it compares numbers.
        if error == 0 || unsafe { ffi::bdb_is_deadlock(error) } == 0 {
            return done(error);
        }
    }
}

/// The store of `berkeleydb.c`.
#[derive(Clone, Copy)]
struct Handle(*mut c_void);

// SAFETY: environment and database are opened with `DB_THREAD`, so several threads may use them at
// once.
#[allow(unsafe_code)]
unsafe impl Send for Handle {}
// SAFETY: likewise.
#[allow(unsafe_code)]
unsafe impl Sync for Handle {}

struct BerkeleyDb {
    handle: Handle,
    meaning: Meaning,
    stop: Arc<AtomicBool>,
    checkpoints: Option<JoinHandle<()>>,
}

#[allow(unsafe_code)]
fn open(setup: &Setup) -> Result<Box<dyn Rival>> {
    let dir = CString::new(setup.dir.as_os_str().as_bytes())?;
    let (mut store, syncs, appends) =
        (null_mut(), setup.durability == Durability::Sync, setup.meaning == Meaning::Append);
    // SAFETY: the path ends with a zero and outlives the call, which gives a store that `close`
    // frees.
    done(unsafe {
        ffi::bdb_open(
            dir.as_ptr(),
            cache_bytes(setup.memory_bytes),
            c_int::from(syncs),
            c_int::from(appends),
            LOG_FILE_BYTES,
            &raw mut store,
        )
    })?;
    let (handle, stop) = (Handle(store), Arc::new(AtomicBool::new(false)));
    let stop_seen = Arc::clone(&stop);
    let checkpoints = std::thread::spawn(move || checkpoint_until(handle, &stop_seen));
    Ok(Box::new(BerkeleyDb { handle, meaning: setup.meaning, stop, checkpoints: Some(checkpoints) }))
}

/// The cache size to configure, so that the cache takes this much memory.
fn cache_bytes(memory_bytes: u64) -> u64 {
    if memory_bytes < 500_000_000 { memory_bytes / 5 * 4 } else { memory_bytes }
}

/// Makes a checkpoint whenever enough log was written.
#[allow(unsafe_code)]
fn checkpoint_until(handle: Handle, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        // SAFETY: the store is open until this thread has ended. A checkpoint that fails is made by
        // the next call.
        let _ = unsafe { ffi::bdb_checkpoint(handle.0, CHECKPOINT_KIB) };
        std::thread::park_timeout(LOOK_EVERY);
    }
}

impl Rival for BerkeleyDb {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(TreeWriter { of: self, txn: null_mut() }))
    }

    #[allow(unsafe_code)]
    fn reader(&self, _: Sight) -> Result<Box<dyn Reader + '_>> {
        let mut reader = null_mut();
        // SAFETY: the store is open, and outlives the reader that it gives, which `drop` frees.
        done(unsafe { ffi::bdb_reader(self.handle.0, &raw mut reader) })?;
        Ok(Box::new(TreeReader { of: self, reader, value: Vec::new() }))
    }

    #[allow(unsafe_code)]
    fn settle(&self) -> Result<()> {
        // SAFETY: the store is open.
        done(unsafe { ffi::bdb_checkpoint(self.handle.0, 0) })
    }

    /// Fills pages and puts them in order.
    #[allow(unsafe_code)]
    fn optimize(&self) -> Result<bool> {
        // SAFETY: the store is open.
        done(unsafe { ffi::bdb_compact(self.handle.0) })?;
        self.settle()?;
        Ok(true)
    }

    #[allow(unsafe_code)]
    fn close(mut self: Box<Self>) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(checkpoints) = self.checkpoints.take() {
            checkpoints.thread().unpark();
            checkpoints.join().map_err(|_| anyhow!("the thread of checkpoints panicked"))?;
        }
        // SAFETY: nobody else has the store any more: readers and writers borrow this box, and the
        // thread has ended.
        done(unsafe { ffi::bdb_close(self.handle.0) })
    }
}

struct TreeWriter<'a> {
    of: &'a BerkeleyDb,
    /// The transaction of a batch, or null.
    txn: *mut c_void,
}

impl TreeWriter<'_> {
    /// Writes in a transaction; if it is null, as one transaction.
    #[allow(unsafe_code)]
    fn write(&self, txn: *mut c_void, op: Op<'_>) -> c_int {
        let store = self.of.handle.0;
        // SAFETY: the store is open, the transaction is null or has begun, and the library copies
        // keys and values within the calls.
        unsafe {
            match op {
                Op::Delete { key } => ffi::bdb_delete(store, txn, start(key), len(key)),
                Op::Fold { key, operand } if self.of.meaning == Meaning::Sum => {
                    let (mut before, mut found) = ([0u8; 8], 0);
                    let room = before.as_mut_ptr().cast();
                    match ffi::bdb_get_to_change(store, txn, start(key), len(key), room, 8, &raw mut found) {
                        0 => {
                            let sum = number(&before).wrapping_add(number(operand)).to_le_bytes();
                            ffi::bdb_put(store, txn, start(key), len(key), start(&sum), len(&sum))
                        }
                        error => error,
                    }
                }
                Op::Put { key, value: bytes } | Op::Fold { key, operand: bytes } => {
                    ffi::bdb_put(store, txn, start(key), len(key), start(bytes), len(bytes))
                }
            }
        }
    }

    /// Reads, modifies and writes in a transaction of its own.
    #[allow(unsafe_code)]
    fn fold_alone(&self, op: Op<'_>) -> c_int {
        let mut txn = null_mut();
        // SAFETY: the store is open; the transaction that begins is ended here, either way.
        unsafe {
            match ffi::bdb_begin(self.of.handle.0, &raw mut txn) {
                0 => {}
                error => return error,
            }
            match self.write(txn, op) {
                0 => ffi::bdb_commit(txn),
                error => {
                    ffi::bdb_abort(txn);
                    error
                }
            }
        }
    }
}

fn start(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

fn len(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX) // no workload has a value of 4 GiB
}

impl Writer for TreeWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        match (op, self.of.meaning) {
            (Op::Fold { .. }, Meaning::Sum) => patiently(|| self.fold_alone(op)),
            _ => patiently(|| self.write(null_mut(), op)),
        }
    }

    #[allow(unsafe_code)]
    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        if self.txn.is_null() {
            // SAFETY: the store is open; the transaction is ended by `commit` or `drop`.
            done(unsafe { ffi::bdb_begin(self.of.handle.0, &raw mut self.txn) })?;
        }
        // In a deadlock with a reader, the side without writes loses: never a batch.
        done(self.write(self.txn, op))
    }

    #[allow(unsafe_code)]
    fn commit(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.txn, null_mut()) {
            txn if txn.is_null() => Ok(()),
            // SAFETY: it has begun, and is ended only here.
            txn => done(unsafe { ffi::bdb_commit(txn) }),
        }
    }
}

impl Drop for TreeWriter<'_> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !self.txn.is_null() {
            // SAFETY: it has begun, and was not ended.
            unsafe { ffi::bdb_abort(self.txn) };
        }
    }
}

struct TreeReader<'a> {
    of: &'a BerkeleyDb,
    reader: *mut c_void,
    value: Vec<u8>,
}

/// What a call of the reader has found: places and lengths of key and value.
struct Row {
    key: *const c_void,
    key_len: u32,
    value: *const c_void,
    len: u32,
}

impl Row {
    const NONE: Row = Row { key: null(), key_len: 0, value: null(), len: 0 };
}

/// Bytes that the reader has, until its next call.
///
/// # Safety
///
/// There are `len` bytes at `place`, and the reader is not called while they are in use.
#[allow(unsafe_code)]
unsafe fn bytes<'a>(place: *const c_void, len: u32) -> &'a [u8] {
    // SAFETY: the caller guarantees that; a null pointer is no place.
    if place.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(place.cast(), len as usize) } }
}

impl TreeReader<'_> {
    /// Joins the duplicates of a key; false if it has none.
    #[allow(unsafe_code)]
    fn collect_appends(&mut self, key: &[u8]) -> Result<bool> {
        self.value.clear();
        let mut row = Row::NONE;
        // SAFETY: the reader lives; what it finds is copied before its next call.
        unsafe {
            done(ffi::bdb_first_append(
                self.reader,
                start(key),
                len(key),
                &raw mut row.value,
                &raw mut row.len,
            ))?;
            let found = !row.value.is_null();
            while !row.value.is_null() {
                self.value.extend_from_slice(bytes(row.value, row.len));
                done(ffi::bdb_next_append(self.reader, &raw mut row.value, &raw mut row.len))?;
            }
            done(ffi::bdb_end_scan(self.reader))?;
            Ok(found)
        }
    }

    /// The first row from a key on, for a new scan. Tries again if the call was chosen to break a
    /// deadlock.
    #[allow(unsafe_code)]
    fn first(&mut self, from: Option<&[u8]>) -> Result<Row> {
        let (from, from_len) = from.map_or((null(), 0), |from| (start(from), len(from)));
        let mut row = Row::NONE;
        patiently(|| {
            // SAFETY: the reader lives, and the key outlives the call. A cursor of an attempt that
            // failed is closed first.
            unsafe {
                ffi::bdb_end_scan(self.reader);
                ffi::bdb_first(
                    self.reader,
                    from,
                    from_len,
                    &raw mut row.key,
                    &raw mut row.key_len,
                    &raw mut row.value,
                    &raw mut row.len,
                )
            }
        })?;
        Ok(row)
    }

    /// A scan that joins the duplicates of each key.
    #[allow(unsafe_code)]
    fn scan_appends(
        &mut self,
        from: Option<&[u8]>,
        rows_max: u64,
        take: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        let (mut row, mut rows, mut key) = (self.first(from)?, 0, Vec::new());
        while !row.value.is_null() && rows < rows_max {
            self.value.clear();
            key.clear();
            // SAFETY: the reader lives; what it finds is copied before its next call.
            unsafe {
                key.extend_from_slice(bytes(row.key, row.key_len));
                while !row.value.is_null() && bytes(row.key, row.key_len) == key {
                    self.value.extend_from_slice(bytes(row.value, row.len));
                    done(ffi::bdb_next(
                        self.reader,
                        &raw mut row.key,
                        &raw mut row.key_len,
                        &raw mut row.value,
                        &raw mut row.len,
                    ))?;
                }
            }
            take(&key, &self.value);
            rows += 1;
        }
        // SAFETY: the reader lives.
        done(unsafe { ffi::bdb_end_scan(self.reader) })
    }

    /// The row after the one of a key. A scan that was chosen to break a deadlock resumes there by
    /// a new cursor.
    #[allow(unsafe_code)]
    fn next(&mut self, after: &[u8]) -> Result<Row> {
        let mut row = Row::NONE;
        // SAFETY: the reader lives and its scan has begun; `after` is a copy.
        let error = unsafe {
            ffi::bdb_next(
                self.reader,
                &raw mut row.key,
                &raw mut row.key_len,
                &raw mut row.value,
                &raw mut row.len,
            )
        };
        // SAFETY: it compares numbers.
        if unsafe { ffi::bdb_is_deadlock(error) } == 0 {
            done(error)?;
            return Ok(row);
        }
        let behind = [after, &[0]].concat();
        self.first(Some(&behind))
    }
}

impl Reader for TreeReader<'_> {
    #[allow(unsafe_code)]
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        if self.of.meaning == Meaning::Append {
            let found = self.collect_appends(key)?;
            take(found.then_some(self.value.as_slice()));
            return Ok(());
        }
        let mut row = Row::NONE;
        // SAFETY: the reader lives, and the key outlives the call.
        patiently(|| unsafe {
            ffi::bdb_get(self.reader, start(key), len(key), &raw mut row.value, &raw mut row.len)
        })?;
        // SAFETY: the reader is not called while `take` has the bytes.
        take((!row.value.is_null()).then(|| unsafe { bytes(row.value, row.len) }));
        Ok(())
    }

    #[allow(unsafe_code)]
    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        if self.of.meaning == Meaning::Append {
            return self.scan_appends(from, rows_max, take);
        }
        let (mut row, mut rows) = (self.first(from)?, 0);
        while !row.value.is_null() {
            // SAFETY: the reader is not called while `take` has the bytes; the key is copied for
            // its next call.
            unsafe {
                take(bytes(row.key, row.key_len), bytes(row.value, row.len));
                self.value.clear();
                self.value.extend_from_slice(bytes(row.key, row.key_len));
            }
            rows += 1;
            if rows == rows_max {
                break;
            }
            let after = std::mem::take(&mut self.value);
            row = self.next(&after)?;
            self.value = after;
        }
        // SAFETY: the reader lives.
        done(unsafe { ffi::bdb_end_scan(self.reader) })
    }
}

impl Drop for TreeReader<'_> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: made by `reader`, freed only here.
        unsafe { ffi::bdb_reader_free(self.reader) }
    }
}
