//! The log that the tree leaves to its program: records of commits in segments, one for each
//! memtable. A record has a length, a checksum, the sequence number of its first write, and the
//! writes; the next write has the next number. What follows the last whole record is no record.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use lsm_tree::hash::hash64;
use lsm_tree::{AbstractTree, AnyTree, SeqNo, SequenceNumberGenerator};

use crate::rival::{Durability, Op};

/// Zeros written ahead of records that will be synced: then a sync need not also write the new size
/// of the file.
const AHEAD_BYTES: u64 = 1 << 20;

/// A lock's value, also where a thread panicked: its error is reported elsewhere.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sequence numbers. A commit takes as many in a row as it has writes.
#[derive(Debug, Default)]
pub(super) struct Numbers(AtomicU64);

impl Numbers {
    pub(super) fn take(&self, count: u64) -> SeqNo {
        self.0.fetch_add(count, Ordering::AcqRel)
    }
}

impl SequenceNumberGenerator for Numbers {
    fn next(&self) -> SeqNo {
        self.take(1)
    }

    fn get(&self) -> SeqNo {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, value: SeqNo) {
        self.0.store(value, Ordering::Release);
    }

    fn fetch_max(&self, value: SeqNo) {
        self.0.fetch_max(value, Ordering::AcqRel);
    }
}

const PUT: u8 = 0;
const FOLD: u8 = 1;
const DELETE: u8 = 2;

/// The length of the writes (4 bytes), a checksum (8) and the first sequence number (8).
const HEADER_BYTES: usize = 20;
/// The kind of a write, and the lengths of its key and value, before both.
const WRITE_HEADER_BYTES: usize = 9;

/// The writes of a commit.
pub(super) struct Record {
    bytes: Vec<u8>,
    writes: u64,
}

impl Default for Record {
    fn default() -> Record {
        Record { bytes: vec![0; HEADER_BYTES], writes: 0 }
    }
}

impl Record {
    pub(super) fn push(&mut self, op: Op<'_>) {
        let (kind, key, value) = match op {
            Op::Put { key, value } => (PUT, key, value),
            Op::Fold { key, operand } => (FOLD, key, operand),
            Op::Delete { key } => (DELETE, key, [].as_slice()),
        };
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.writes += 1;
    }

    pub(super) fn writes(&self) -> u64 {
        self.writes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
        self.writes = 0;
    }

    /// Its bytes for the log.
    fn sealed(&mut self, first: SeqNo) -> &[u8] {
        let (header, body) = self.bytes.split_at_mut(HEADER_BYTES);
        header[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
        header[4..12].copy_from_slice(&(hash64(body) ^ first).to_le_bytes());
        header[12..].copy_from_slice(&first.to_le_bytes());
        &self.bytes
    }

    /// Puts its writes into the memtable, and returns the size of that.
    pub(super) fn apply(&self, tree: &AnyTree, first: SeqNo) -> u64 {
        apply(tree, &self.bytes[HEADER_BYTES..], first).1
    }
}

/// Puts writes into the memtable. Returns the next sequence number, and the size of the memtable.
fn apply(tree: &AnyTree, mut writes: &[u8], first: SeqNo) -> (SeqNo, u64) {
    let (mut seqno, mut memtable_bytes) = (first, 0);
    while let Some((op, rest)) = split_write(writes) {
        memtable_bytes = match op {
            Op::Put { key, value } => tree.insert(key, value, seqno).1,
            Op::Fold { key, operand } => tree.merge(key, operand, seqno).1,
            Op::Delete { key } => tree.remove(key, seqno).1,
        };
        (seqno, writes) = (seqno + 1, rest);
    }
    (seqno, memtable_bytes)
}

/// The first write, and what follows.
fn split_write(bytes: &[u8]) -> Option<(Op<'_>, &[u8])> {
    let (header, rest) = bytes.split_at_checked(WRITE_HEADER_BYTES)?;
    let key_bytes = u32::from_le_bytes(header[1..5].try_into().ok()?) as usize;
    let value_bytes = u32::from_le_bytes(header[5..].try_into().ok()?) as usize;
    let (key, rest) = rest.split_at_checked(key_bytes)?;
    let (value, rest) = rest.split_at_checked(value_bytes)?;
    let op = match header[0] {
        PUT => Op::Put { key, value },
        FOLD => Op::Fold { key, operand: value },
        _ => Op::Delete { key },
    };
    Some((op, rest))
}

/// The first record, if it is whole: its sequence number and writes, and what follows.
fn split_record(bytes: &[u8]) -> Option<(SeqNo, &[u8], &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let writes_bytes = u32::from_le_bytes(header[..4].try_into().ok()?) as usize;
    let checksum = u64::from_le_bytes(header[4..12].try_into().ok()?);
    let first = u64::from_le_bytes(header[12..].try_into().ok()?);
    let (writes, rest) = rest.split_at_checked(writes_bytes)?;
    (writes_bytes > 0 && hash64(writes) ^ first == checksum).then_some((first, writes, rest))
}

/// The segment that is written.
pub(super) struct Segment {
    file: Arc<File>,
    /// The bytes that records take in it, and those that are written ahead.
    end: u64,
    ahead: u64,
    /// All bytes of records since the log was opened.
    appended: u64,
}

/// How far the log is synced, in bytes since it was opened, and whether a thread syncs it.
#[derive(Default)]
struct Synced {
    bytes: u64,
    is_busy: bool,
}

pub(super) struct Log {
    dir: PathBuf,
    durability: Durability,
    /// The number of the segment that is written: memtables of those below are sealed.
    active: AtomicU64,
    segment: Mutex<Segment>,
    synced: Mutex<Synced>,
    changed: Condvar,
}

impl Log {
    /// Opens or creates it, and puts its records into the tree. What was flushed is not put there
    /// again: a fold would be done twice.
    pub(super) fn open(
        dir: &Path,
        durability: Durability,
        tree: &AnyTree,
        numbers: &Numbers,
        memtable_bytes: u64,
    ) -> Result<Log> {
        std::fs::create_dir_all(dir)?;
        let persisted = tree.get_highest_persisted_seqno();
        numbers.fetch_max(persisted.unwrap_or(0).max(tree.retention_floor()) + 1);
        let segments = segments(dir)?;
        for (_, path) in &segments {
            let bytes = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
            let mut rest = bytes.as_slice();
            while let Some((first, writes, after)) = split_record(rest) {
                rest = after;
                if persisted.is_none_or(|persisted| first > persisted) {
                    let (next, size) = apply(tree, writes, first);
                    numbers.fetch_max(next);
                    if size >= memtable_bytes {
                        tree.flush_active_memtable(0)?;
                    }
                }
            }
        }
        let active = segments.last().map_or(0, |(id, _)| id + 1);
        Ok(Log {
            dir: dir.to_path_buf(),
            durability,
            active: AtomicU64::new(active),
            segment: Mutex::new(Segment { file: create(dir, active)?, end: 0, ahead: 0, appended: 0 }),
            synced: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Keeps others from appending.
    pub(super) fn lock(&self) -> MutexGuard<'_, Segment> {
        locked(&self.segment)
    }

    /// Appends a record, and returns where it ends.
    pub(super) fn append(&self, segment: &mut Segment, record: &mut Record, first: SeqNo) -> Result<u64> {
        let bytes = record.sealed(first);
        let end = segment.end + bytes.len() as u64;
        if self.durability == Durability::Sync && end > segment.ahead {
            let zeros = vec![0; (end - segment.end + AHEAD_BYTES) as usize];
            segment.file.write_all_at(&zeros, segment.end)?;
            segment.ahead = segment.end + zeros.len() as u64;
        }
        segment.file.write_all_at(bytes, segment.end)?;
        segment.appended += end - segment.end;
        segment.end = end;
        Ok(segment.appended)
    }

    /// Returns when the log is as safe as a commit promises, up to a place in it. One thread syncs
    /// for all that wait.
    pub(super) fn promise(&self, place: u64) -> Result<()> {
        if self.durability == Durability::Process {
            return Ok(());
        }
        let mut synced = locked(&self.synced);
        while synced.bytes < place {
            if synced.is_busy {
                synced = self.changed.wait(synced).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            synced.is_busy = true;
            drop(synced);
            let (file, appended) = {
                let segment = self.lock();
                (Arc::clone(&segment.file), segment.appended)
            };
            let done = file.sync_data();
            synced = locked(&self.synced);
            synced.is_busy = false;
            if done.is_ok() {
                synced.bytes = synced.bytes.max(appended);
            }
            self.changed.notify_all();
            done.context("sync the log")?;
        }
        Ok(())
    }

    /// Begins a segment, for the next memtable, and seals this one.
    pub(super) fn rotate(&self, segment: &mut Segment, tree: &AnyTree) -> Result<()> {
        if self.durability == Durability::Sync {
            segment.file.sync_data()?;
        }
        let next = self.active.load(Ordering::Acquire) + 1;
        segment.file = create(&self.dir, next)?;
        (segment.end, segment.ahead) = (0, 0);
        tree.rotate_memtable();
        self.active.store(next, Ordering::Release);
        Ok(())
    }

    /// The number of the segment that is written.
    pub(super) fn active(&self) -> u64 {
        self.active.load(Ordering::Acquire)
    }

    /// Removes the segments below one: their memtables are flushed.
    pub(super) fn remove_below(&self, active: u64) -> Result<()> {
        for (id, path) in segments(&self.dir)? {
            if id < active {
                std::fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
            }
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<()> {
        Ok(self.lock().file.sync_data()?)
    }
}

/// Creates a segment, with its name on the disk.
fn create(dir: &Path, id: u64) -> Result<Arc<File>> {
    let path = dir.join(format!("{id:08}.log"));
    let file = File::create_new(&path).with_context(|| format!("create {}", path.display()))?;
    File::open(dir)?.sync_all()?;
    Ok(Arc::new(file))
}

/// All segments, the oldest first.
fn segments(dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let id = path.file_stem().and_then(|name| name.to_str()?.parse().ok());
        segments.extend(id.map(|id| (id, path)));
    }
    segments.sort();
    Ok(segments)
}
