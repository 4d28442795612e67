//! Tokyo Cabinet's B+ tree (`TCBDB`), as its experts would set it for this work. Its hash database
//! is faster at single gets, but has no order, so no scan from a key: not the same work.
//!
//! - half of the memory for cached leaves and nodes, which it holds decoded, with a block of the
//!   heap for each row; half for the mapped window of its file (`xmsiz`). Everything else that it
//!   reads and writes is in the page cache.
//! - a million buckets for pages, which is enough for some hundred million small rows; leaves of
//!   128 rows, as by default.
//! - mode `process`: it has no such mode, only a weaker and a stronger one. Without a transaction
//!   it has no log, and a change stays in the cached leaf, in the process, until the leaf is
//!   evicted: what a killed process leaves must be repaired. This is how its users get its speed.
//!   Mention this with its figures.
//! - mode `sync`: a transaction for each commit, synced (`BDBOTSYNC`). It has one transaction at a
//!   time; writers wait.
//! - sums by its way of changing a value in place (`tcbdbputproc`), appends by `tcbdbputcat`.
//! - its own lock is on (`tcbdbsetmutex`): one for readers or a writer. Values are copied out under
//!   it. Each call is whole, a sequence of calls is not: a cursor loses its place when others write
//!   (a row comes twice), so with a concurrent writer a scan seeks after each row, and checks that
//!   the copied row is at or after the requested key.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;

use anyhow::{Result, anyhow};

use super::entries::Entry;
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer, number};

pub(crate) const ENTRY: Entry = Entry {
    name: "tokyocabinet",
    version,
    settings: |setup| {
        match setup.durability {
        Durability::Process => {
            "half of the memory for cached leaves, half as mapped window, the rest in the page cache; much weaker than the \
             others: no log, changes stay in the process until a leaf is pushed out; putproc and putcat for folds"
                .to_owned()
        }
        Durability::Sync => {
            "half of the memory for cached leaves, half as mapped window, the rest in the page cache; a synced transaction \
             for each commit; putproc and putcat for folds"
                .to_owned()
        }
    }
    },
    open,
};

const LEAF_ROWS: i32 = 128;
/// Bytes of a cached leaf: rows of two small words with their headers, in blocks of the heap, and
/// the array of them; three quarters full.
const CACHED_LEAF_BYTES: u64 = 8 << 10;
const BUCKETS: i64 = 1 << 20;
const LARGE: u8 = 1 << 0;
const WRITER: c_int = 1 << 1;
const CREATE: c_int = 1 << 2;
const SYNC_TRANSACTIONS: c_int = 1 << 6;
const NO_RECORD: c_int = 22;

/// The functions that are used, as `tcbdb.h` and `tcutil.h` declare them. All handles are made and
/// freed by the library.
#[allow(unsafe_code)]
mod ffi {
    use super::{c_char, c_int, c_void};

    /// Returns the value that replaces another one, in memory of `malloc`; null leaves the old
    /// value.
    pub(super) type Change = extern "C" fn(*const c_void, c_int, *mut c_int, *mut c_void) -> *mut c_void;

    #[link(name = "tokyocabinet")]
    unsafe extern "C" {
        pub(super) static tcversion: *const c_char;
        pub(super) fn tcbdbnew() -> *mut c_void;
        pub(super) fn tcbdbdel(tree: *mut c_void);
        pub(super) fn tcbdbecode(tree: *mut c_void) -> c_int;
        pub(super) fn tcbdberrmsg(code: c_int) -> *const c_char;
        pub(super) fn tcbdbsetmutex(tree: *mut c_void) -> bool;
        pub(super) fn tcbdbtune(
            tree: *mut c_void,
            leaf: i32,
            node: i32,
            buckets: i64,
            align: i8,
            pool: i8,
            options: u8,
        ) -> bool;
        pub(super) fn tcbdbsetcache(tree: *mut c_void, leaves: i32, nodes: i32) -> bool;
        pub(super) fn tcbdbsetxmsiz(tree: *mut c_void, bytes: i64) -> bool;
        pub(super) fn tcbdbopen(tree: *mut c_void, path: *const c_char, mode: c_int) -> bool;
        pub(super) fn tcbdbclose(tree: *mut c_void) -> bool;
        pub(super) fn tcbdbput(
            tree: *mut c_void,
            key: *const c_void,
            key_len: c_int,
            value: *const c_void,
            len: c_int,
        ) -> bool;
        pub(super) fn tcbdbputcat(
            tree: *mut c_void,
            key: *const c_void,
            key_len: c_int,
            value: *const c_void,
            len: c_int,
        ) -> bool;
        pub(super) fn tcbdbputproc(
            tree: *mut c_void,
            key: *const c_void,
            key_len: c_int,
            value: *const c_void,
            len: c_int,
            change: Change,
            with: *mut c_void,
        ) -> bool;
        pub(super) fn tcbdbout(tree: *mut c_void, key: *const c_void, key_len: c_int) -> bool;
        pub(super) fn tcbdbget(
            tree: *mut c_void,
            key: *const c_void,
            key_len: c_int,
            len: *mut c_int,
        ) -> *mut c_void;
        pub(super) fn tcbdbsync(tree: *mut c_void) -> bool;
        pub(super) fn tcbdboptimize(
            tree: *mut c_void,
            leaf: i32,
            node: i32,
            buckets: i64,
            align: i8,
            pool: i8,
            options: u8,
        ) -> bool;
        pub(super) fn tcbdbtranbegin(tree: *mut c_void) -> bool;
        pub(super) fn tcbdbtrancommit(tree: *mut c_void) -> bool;
        pub(super) fn tcbdbcurnew(tree: *mut c_void) -> *mut c_void;
        pub(super) fn tcbdbcurdel(cursor: *mut c_void);
        pub(super) fn tcbdbcurjump(cursor: *mut c_void, key: *const c_void, key_len: c_int) -> bool;
        pub(super) fn tcbdbcurnext(cursor: *mut c_void) -> bool;
        pub(super) fn tcbdbcurrec(cursor: *mut c_void, key: *mut c_void, value: *mut c_void) -> bool;
        pub(super) fn tcxstrnew() -> *mut c_void;
        pub(super) fn tcxstrdel(text: *mut c_void);
        pub(super) fn tcxstrptr(text: *const c_void) -> *const c_void;
        pub(super) fn tcxstrsize(text: *const c_void) -> c_int;
        pub(super) fn malloc(bytes: usize) -> *mut c_void;
        pub(super) fn free(pointer: *mut c_void);
    }
}

#[allow(unsafe_code)]
fn version() -> String {
    // SAFETY: a constant text of the library, which ends with a zero.
    unsafe { CStr::from_ptr(ffi::tcversion) }.to_string_lossy().into_owned()
}

struct TokyoCabinet {
    tree: *mut c_void,
    meaning: Meaning,
    syncs: bool,
}

// SAFETY: `tcbdbsetmutex` was called, so the library lets its handle be used by several threads at
// once.
#[allow(unsafe_code)]
unsafe impl Send for TokyoCabinet {}
// SAFETY: likewise.
#[allow(unsafe_code)]
unsafe impl Sync for TokyoCabinet {}

#[allow(unsafe_code)]
fn open(setup: &Setup) -> Result<Box<dyn Rival>> {
    let path = CString::new(setup.dir.join("store.tcb").as_os_str().as_bytes())?;
    let syncs = setup.durability == Durability::Sync;
    let leaves = (setup.memory_bytes / 2 / CACHED_LEAF_BYTES).clamp(64, i32::MAX as u64) as i32;
    // SAFETY: a handle of its own; it is freed once, by `drop`.
    let store = TokyoCabinet { tree: unsafe { ffi::tcbdbnew() }, meaning: setup.meaning, syncs };
    let mode = WRITER | CREATE | if syncs { SYNC_TRANSACTIONS } else { 0 };
    // SAFETY: the handle is fresh, and the path ends with a zero and outlives the call.
    let opened = unsafe {
        ffi::tcbdbsetmutex(store.tree)
            && ffi::tcbdbtune(store.tree, LEAF_ROWS, -1, BUCKETS, -1, -1, LARGE)
            && ffi::tcbdbsetcache(store.tree, leaves, (leaves / 16).max(64))
            && ffi::tcbdbsetxmsiz(store.tree, (setup.memory_bytes / 2) as i64)
            && ffi::tcbdbopen(store.tree, path.as_ptr(), mode)
    };
    store.done(opened)?;
    Ok(Box::new(store))
}

impl TokyoCabinet {
    /// Turns the outcome of the last call of this thread into a result.
    fn done(&self, worked: bool) -> Result<()> {
        if worked { Ok(()) } else { Err(self.error()) }
    }

    #[allow(unsafe_code)]
    fn error(&self) -> anyhow::Error {
        // SAFETY: the handle lives as long as `self`; messages are constant texts that end with a
        // zero.
        let text = unsafe { CStr::from_ptr(ffi::tcbdberrmsg(ffi::tcbdbecode(self.tree))) };
        anyhow!("Tokyo Cabinet: {}", text.to_string_lossy())
    }

    #[allow(unsafe_code)]
    fn write(&self, op: Op<'_>) -> Result<()> {
        // SAFETY: the handle is open, and the library copies keys and values within the call; so
        // for all calls below.
        let worked = match op {
            Op::Put { key, value } => unsafe {
                ffi::tcbdbput(self.tree, start(key), len(key), start(value), len(value))
            },
            Op::Delete { key } => unsafe {
                ffi::tcbdbout(self.tree, start(key), len(key)) || ffi::tcbdbecode(self.tree) == NO_RECORD
            },
            Op::Fold { key, operand } if self.meaning == Meaning::Append => unsafe {
                ffi::tcbdbputcat(self.tree, start(key), len(key), start(operand), len(operand))
            },
            Op::Fold { key, operand } => {
                let mut adding = number(operand);
                let with = (&raw mut adding).cast();
                // SAFETY: as above; `with` outlives the call, in which alone `add` is called, with
                // it.
                unsafe {
                    ffi::tcbdbputproc(
                        self.tree,
                        start(key),
                        len(key),
                        start(operand),
                        len(operand),
                        add,
                        with,
                    )
                }
            }
        };
        self.done(worked)
    }
}

/// Adds the number `with` to a value that is a number. Anything else counts as 0, and the checksum
/// will show it.
#[allow(unsafe_code)]
extern "C" fn add(
    value: *const c_void,
    value_len: c_int,
    new_len: *mut c_int,
    with: *mut c_void,
) -> *mut c_void {
    // SAFETY: the library gives a value and its length, and a place for the new length; `with` is
    // the number of `write`. `malloc` gives null or the requested bytes; the library frees them.
    unsafe {
        let value = std::slice::from_raw_parts(value.cast::<u8>(), value_len.max(0) as usize);
        let sum = number(value).wrapping_add(*with.cast::<u64>()).to_le_bytes();
        let new = ffi::malloc(sum.len()).cast::<u8>();
        if !new.is_null() {
            new.copy_from_nonoverlapping(sum.as_ptr(), sum.len());
            *new_len = len(&sum);
        }
        new.cast()
    }
}

fn start(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

fn len(bytes: &[u8]) -> c_int {
    c_int::try_from(bytes.len()).unwrap_or(c_int::MAX) // no workload has a value of 2 GiB
}

impl Rival for TokyoCabinet {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(TreeWriter { of: self, is_begun: false }))
    }

    #[allow(unsafe_code)]
    fn reader(&self, sight: Sight) -> Result<Box<dyn Reader + '_>> {
        // SAFETY: the handle is open and outlives the reader, which frees the cursor and the
        // buffers.
        unsafe {
            let (cursor, key, value) = (ffi::tcbdbcurnew(self.tree), ffi::tcxstrnew(), ffi::tcxstrnew());
            Ok(Box::new(TreeReader { of: self, sight, cursor, key, value, behind: Vec::new() }))
        }
    }

    #[allow(unsafe_code)]
    fn settle(&self) -> Result<()> {
        // SAFETY: the handle is open.
        self.done(unsafe { ffi::tcbdbsync(self.tree) })
    }

    /// Rewrites the tree in the order of keys.
    #[allow(unsafe_code)]
    fn optimize(&self) -> Result<bool> {
        // SAFETY: the handle is open, and there is no reader with a cursor that would lose its
        // place.
        self.done(unsafe { ffi::tcbdboptimize(self.tree, LEAF_ROWS, -1, BUCKETS, -1, -1, LARGE) })?;
        Ok(true)
    }

    #[allow(unsafe_code)]
    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: the handle is open, and nobody has it but this box.
        self.done(unsafe { ffi::tcbdbclose(self.tree) })
    }
}

impl Drop for TokyoCabinet {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: made by `tcbdbnew`, freed only here; it closes what is still open.
        unsafe { ffi::tcbdbdel(self.tree) }
    }
}

struct TreeWriter<'a> {
    of: &'a TokyoCabinet,
    is_begun: bool,
}

impl Writer for TreeWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        self.collect(op)?;
        self.commit()
    }

    #[allow(unsafe_code)]
    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        if self.of.syncs && !self.is_begun {
            // SAFETY: the handle is open. It waits for the transaction of another thread.
            self.of.done(unsafe { ffi::tcbdbtranbegin(self.of.tree) })?;
            self.is_begun = true;
        }
        self.of.write(op)
    }

    #[allow(unsafe_code)]
    fn commit(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_begun) {
            return Ok(());
        }
        // SAFETY: the handle is open, and the transaction is this thread's.
        self.of.done(unsafe { ffi::tcbdbtrancommit(self.of.tree) })
    }
}

struct TreeReader<'a> {
    of: &'a TokyoCabinet,
    sight: Sight,
    cursor: *mut c_void,
    /// Buffers of the library for a row.
    key: *mut c_void,
    value: *mut c_void,
    /// The smallest key after the row at the cursor.
    behind: Vec<u8>,
}

impl TreeReader<'_> {
    /// Copies the first row from `behind` on into the buffers; false if there is none. With a
    /// concurrent writer, rows may move between the seek and the copy: then it seeks again.
    #[allow(unsafe_code)]
    fn seek(&mut self) -> bool {
        loop {
            // SAFETY: the cursor is this reader's, and the key outlives the call.
            if !unsafe { ffi::tcbdbcurjump(self.cursor, start(&self.behind), len(&self.behind)) }
                || !self.row()
            {
                return false;
            }
            // SAFETY: the buffer is not changed while it is looked at.
            if unsafe { bytes(self.key) } >= self.behind.as_slice() {
                return true;
            }
        }
    }

    /// Copies the next row into the buffers; false after the last.
    #[allow(unsafe_code)]
    fn next(&mut self) -> bool {
        if self.sight == Sight::Still {
            // SAFETY: the cursor is this reader's.
            return unsafe { ffi::tcbdbcurnext(self.cursor) } && self.row();
        }
        self.behind.clear();
        // SAFETY: the buffer is copied at once.
        self.behind.extend_from_slice(unsafe { bytes(self.key) });
        self.behind.push(0);
        self.seek()
    }

    /// Copies the row at the cursor into the buffers; false after the last.
    #[allow(unsafe_code)]
    fn row(&mut self) -> bool {
        // SAFETY: cursor and buffers are this reader's.
        unsafe { ffi::tcbdbcurrec(self.cursor, self.key, self.value) }
    }
}

impl Reader for TreeReader<'_> {
    #[allow(unsafe_code)]
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let mut value_len = 0;
        // SAFETY: the handle is open; what comes is null or a copy of this many bytes, which is
        // freed here once.
        unsafe {
            let value = ffi::tcbdbget(self.of.tree, start(key), len(key), &raw mut value_len);
            if !value.is_null() {
                take(Some(std::slice::from_raw_parts(value.cast::<u8>(), value_len as usize)));
                ffi::free(value);
                return Ok(());
            }
            self.of.done(ffi::tcbdbecode(self.of.tree) == NO_RECORD)?;
        }
        take(None);
        Ok(())
    }

    #[allow(unsafe_code)]
    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.behind.clear();
        self.behind.extend_from_slice(from.unwrap_or_default());
        let mut more = self.seek();
        let mut rows = 0;
        while more && rows < rows_max {
            // SAFETY: the buffers hold this many bytes until the next call for them.
            unsafe { take(bytes(self.key), bytes(self.value)) };
            rows += 1;
            more = self.next();
        }
        // SAFETY: the handle is open. A scan that stops before the end has no error to check for.
        self.of.done(rows == rows_max || unsafe { ffi::tcbdbecode(self.of.tree) } == NO_RECORD)
    }
}

/// What a buffer of the library holds.
///
/// # Safety
///
/// The buffer is not changed while the bytes are in use.
#[allow(unsafe_code)]
unsafe fn bytes<'a>(buffer: *mut c_void) -> &'a [u8] {
    // SAFETY: a buffer gives the start and the number of its bytes.
    unsafe {
        std::slice::from_raw_parts(ffi::tcxstrptr(buffer).cast::<u8>(), ffi::tcxstrsize(buffer) as usize)
    }
}

impl Drop for TreeReader<'_> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: made by this reader, freed only here.
        unsafe {
            ffi::tcbdbcurdel(self.cursor);
            ffi::tcxstrdel(self.key);
            ffi::tcxstrdel(self.value);
        }
    }
}
