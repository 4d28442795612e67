//! The state of a simulated machine: its disk, its page cache, and its locks.
//!
//! ```text
//!   a file        now      what every reader sees (the page cache)
//!                 durable  what the disk has
//!                 dirty    sectors of `now` that the disk may not have
//!                 lost     sectors whose sync failed: marked clean, still shown, never written again
//!   a directory   now      the names that every reader sees
//!                 durable  the names that the disk has
//!                 pending  the changes between the two, each of which may get there on its own
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};

use super::diary::{Diary, Entry};
use super::image::{Image, PAGE_BYTES};
use crate::chance::Seeded;
use crate::faulty_files::{Call, ENOSPC, Failure, Faults};

/// The unit that a disk writes whole or not at all, but for garbage.
pub(crate) const SECTOR_BYTES: u64 = 512;

pub(crate) type FileId = u64;
pub(crate) type DirId = u64;

/// The directory that all others are in.
pub(crate) const ROOT: DirId = 0;

#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) files: BTreeMap<FileId, File>,
    pub(crate) dirs: BTreeMap<DirId, Dir>,
    pub(crate) next_id: u64,
    pub(crate) locks: BTreeMap<FileId, Lock>,
    pub(crate) faults: Faults,
    /// During inspections, reads have no faults.
    pub(crate) are_faults_asleep: bool,
    pub(crate) capacity_bytes: Option<u64>,
    pub(crate) calls: u64,
    /// Calls that may have changed something.
    pub(crate) changes: u64,
    /// Bytes that were given to be written.
    pub(crate) bytes_written: u64,
    /// The process dies before it makes this change, counted from the first of all.
    pub(crate) dies_before: Option<u64>,
    pub(crate) is_dead: bool,
    /// True once a sync has failed and its sectors are lost.
    pub(crate) has_lost: bool,
    /// True once a fault has hit a call.
    pub(crate) has_met_fault: bool,
    pub(crate) clock_ns: u64,
    pub(crate) wall_s: u64,
    /// One call in this many takes this long.
    pub(crate) slow: Option<(u64, u64)>,
    /// Every process begins the same way: see [`super::SimDisk::begin_processes_alike`].
    pub(crate) begins_alike: bool,
    /// The worlds before each change, where they are recorded.
    pub(crate) before_changes: Option<Vec<Machine>>,
    /// The random numbers of the process.
    pub(crate) chance: Seeded,
    /// The random numbers of the world.
    pub(crate) luck: Seeded,
    pub(crate) diary: Diary,
}

#[derive(Clone, Default)]
pub(crate) struct File {
    pub(crate) now: Image,
    pub(crate) durable: Image,
    pub(crate) dirty: BTreeSet<u64>,
    pub(crate) lost: BTreeSet<u64>,
    /// Written to through a memory map: pages reach the disk at any time.
    pub(crate) is_mapped: bool,
    /// Bytes reserved for it, which need no more space.
    pub(crate) reserved_bytes: u64,
    /// The length that a process has cut it to, where later processes ask for no more than that.
    pub(crate) given_up: Option<u64>,
}

#[derive(Clone, Default, Hash)]
pub(crate) struct Dir {
    pub(crate) now: BTreeMap<String, Node>,
    pub(crate) durable: BTreeMap<String, Node>,
    pub(crate) pending: Vec<NameChange>,
}

/// The node of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    File(FileId),
    Dir(DirId),
}

/// One change of a directory.
#[derive(Clone, Debug, Hash)]
pub(crate) enum NameChange {
    Put(String, Node),
    Remove(String),
    /// Both names at once: a rename within a directory is one change.
    Rename(String, String, Node),
}

impl NameChange {
    pub(crate) fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            NameChange::Put(name, node) => {
                names.insert(name.clone(), *node);
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
            NameChange::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

impl Dir {
    pub(crate) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    pub(crate) fn sync(&mut self) {
        self.durable = self.now.clone();
        self.pending.clear();
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) is_exclusive: bool,
    pub(crate) sharers: u32,
}

impl File {
    /// Reads from the page cache; the file must be long enough.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.now.len_bytes()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.now.read(offset, buf);
        Ok(())
    }

    /// Puts bytes into the page cache.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.now.write(offset, bytes);
        let end = offset + bytes.len() as u64;
        self.dirty.extend(offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES));
        // A page that is dirty again is written whole, with what had been given up in it.
        let pages = offset / PAGE_BYTES * PAGE_BYTES..end.div_ceil(PAGE_BYTES) * PAGE_BYTES;
        let again: Vec<u64> =
            self.lost.range(pages.start / SECTOR_BYTES..pages.end / SECTOR_BYTES).copied().collect();
        for sector in again {
            self.lost.remove(&sector);
            self.dirty.insert(sector);
        }
    }

    /// Makes it shorter; the disk may still have the old length.
    pub(crate) fn cut(&mut self, len_bytes: u64) {
        self.now.set_len(len_bytes.min(self.now.len_bytes()));
        self.reserved_bytes = self.reserved_bytes.min(len_bytes);
        let beyond = len_bytes.div_ceil(SECTOR_BYTES);
        self.dirty.retain(|&sector| sector < beyond);
        self.lost.retain(|&sector| sector < beyond);
    }

    /// Writes a sector from the page cache to the disk.
    fn put_on_disk(&mut self, sector: u64) {
        let mut bytes = [0; SECTOR_BYTES as usize];
        self.now.read(sector * SECTOR_BYTES, &mut bytes);
        self.durable.write(sector * SECTOR_BYTES, &bytes);
    }

    pub(crate) fn sync(&mut self) {
        for sector in std::mem::take(&mut self.dirty) {
            self.put_on_disk(sector);
        }
        self.durable.set_len(self.now.len_bytes());
    }

    /// A failed sync: some sectors reached the disk, the others are marked clean as well.
    pub(crate) fn sync_badly(&mut self, luck: &mut Seeded) {
        let durable_bytes = self.durable.len_bytes();
        for sector in std::mem::take(&mut self.dirty) {
            if luck.one_in(4) {
                self.put_on_disk(sector);
            } else {
                self.lost.insert(sector);
            }
        }
        self.durable.set_len(durable_bytes);
    }

    /// The page cache drops everything that it considers to be on the disk.
    pub(crate) fn evict(&mut self) {
        for sector in std::mem::take(&mut self.lost) {
            let mut bytes = [0; SECTOR_BYTES as usize];
            self.durable.read(sector * SECTOR_BYTES, &mut bytes);
            let at = sector * SECTOR_BYTES;
            let inside = self.now.len_bytes().saturating_sub(at).min(SECTOR_BYTES);
            self.now.write(at, &bytes[..inside as usize]);
        }
    }

    pub(crate) fn space_bytes(&self) -> u64 {
        self.now.len_bytes().max(self.reserved_bytes)
    }
}

fn gone() -> io::Error {
    io::Error::other("the process that calls is dead")
}

impl Machine {
    /// A call begins: it counts, it takes time, and it may be the one that never happens or that
    /// fails.
    pub(crate) fn begin(&mut self, call: Call, path: &Path) -> Result<(), Failure> {
        let dead = || Failure { error: gone(), half: false };
        if self.is_dead {
            return Err(dead());
        }
        if may_change(call) {
            if self.dies_before.is_some_and(|last| self.changes >= last) {
                self.is_dead = true;
                self.diary.push(Entry::Note(format!("dead before {call:?} {}", name_of(path))));
                return Err(dead());
            }
            self.keep_before_change(call, path);
            self.changes += 1;
        }
        self.calls += 1;
        self.clock_ns += 2_000 + self.luck.below(20_000);
        if let Some((one_in, nanos)) = self.slow
            && self.luck.one_in(one_in)
        {
            self.clock_ns += nanos;
        }
        if self.are_faults_asleep && !may_change(call) {
            return Ok(());
        }
        self.faults.judge(call, path).inspect_err(|_| self.has_met_fault = true)
    }

    /// Keeps the world as it is before a change, where worlds are recorded.
    fn keep_before_change(&mut self, call: Call, path: &Path) {
        let Some(mut kept) = self.before_changes.take() else { return };
        let diary = self.diary.fork();
        let mut before = Machine { diary, ..self.clone() };
        before.is_dead = true;
        before.diary.push(Entry::Note(format!("dead before {call:?} {}", name_of(path))));
        kept.push(before);
        self.before_changes = Some(kept);
    }

    /// The next process is given the same random numbers as any other, and begins at a whole
    /// minute. Its nodes are distinct from those of others, and in the same order, however many
    /// there were.
    pub(crate) fn begin_alike(&mut self) {
        (self.chance, self.luck) = (Seeded::new(1), Seeded::new(2));
        self.wall_s = (self.wall_s + self.clock_ns.div_ceil(1_000_000_000)).next_multiple_of(60);
        self.clock_ns = 0;
        self.next_id = (self.next_id + 1).next_multiple_of(10_000);
    }

    /// Time passes up to a whole tenth of a second, and the random numbers begin again, as when the
    /// process began.
    pub(crate) fn pause_alike(&mut self) {
        self.luck = Seeded::new(2);
        self.clock_ns = self.clock_ns.next_multiple_of(100_000_000);
    }

    /// Writes the outcome of a call into the diary.
    pub(crate) fn note_call<T>(
        &mut self,
        call: Call,
        path: &Path,
        extent: (u64, &[u8]),
        outcome: &io::Result<T>,
    ) {
        if self.is_dead || (self.are_faults_asleep && !may_change(call)) {
            return;
        }
        let (offset, bytes) = extent;
        let is_written = may_change(call);
        self.bytes_written += if is_written { bytes.len() as u64 } else { 0 };
        let is_hashed = is_written && !bytes.is_empty();
        let hash = if is_hashed { folddb_base::checksum::hash32(offset, bytes) } else { 0 };
        self.diary.push(Entry::Call {
            call,
            name: name_of(path).into(),
            offset,
            len_bytes: bytes.len() as u64,
            hash,
            error: outcome.as_ref().err().map(ToString::to_string),
        });
    }

    fn dir_of(&self, path: &Path) -> io::Result<DirId> {
        let mut at = ROOT;
        for component in path.components() {
            let Component::Normal(name) = component else { continue };
            let dir = self.dirs.get(&at).ok_or(io::ErrorKind::NotFound)?;
            at = match dir.now.get(&*name.to_string_lossy()) {
                Some(Node::Dir(id)) => *id,
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => return Err(io::ErrorKind::NotFound.into()),
            };
        }
        Ok(at)
    }

    pub(crate) fn dir(&self, path: &Path) -> io::Result<&Dir> {
        self.dirs.get(&self.dir_of(path)?).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn dir_mut(&mut self, path: &Path) -> io::Result<&mut Dir> {
        let id = self.dir_of(path)?;
        self.dirs.get_mut(&id).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The directory that a path's last name is in.
    pub(crate) fn parent_mut(&mut self, path: &Path) -> io::Result<&mut Dir> {
        self.dir_mut(path.parent().ok_or(io::ErrorKind::InvalidInput)?)
    }

    pub(crate) fn node(&self, path: &Path) -> io::Result<Node> {
        let parent = self.dir(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
        parent.now.get(&name_of(path)).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn file_id(&self, path: &Path) -> io::Result<FileId> {
        match self.node(path)? {
            Node::File(id) => Ok(id),
            Node::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(crate) fn file(&self, id: FileId) -> io::Result<&File> {
        self.files.get(&id).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn file_mut(&mut self, id: FileId) -> io::Result<&mut File> {
        self.files.get_mut(&id).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Gives a new node a name that nothing has yet.
    pub(crate) fn put_new(&mut self, path: &Path, node: Node) -> io::Result<()> {
        let name = name_of(path);
        let dir = self.parent_mut(path)?;
        if dir.now.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        dir.change(NameChange::Put(name, node));
        Ok(())
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Creates a file, which must not exist.
    pub(crate) fn create_file(&mut self, path: &Path, file: File) -> io::Result<FileId> {
        let id = self.next_id();
        self.put_new(path, Node::File(id))?;
        self.files.insert(id, file);
        Ok(id)
    }

    /// Bytes that can still be written; a file that has two names takes its space once.
    pub(crate) fn free_bytes(&self) -> u64 {
        let Some(capacity_bytes) = self.capacity_bytes else { return u64::MAX / 2 };
        capacity_bytes.saturating_sub(self.used_bytes())
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        let named: BTreeSet<FileId> = self
            .dirs
            .values()
            .flat_map(|dir| dir.now.values())
            .filter_map(|node| if let Node::File(id) = node { Some(*id) } else { None })
            .collect();
        named.iter().filter_map(|id| self.files.get(id)).map(File::space_bytes).sum()
    }

    /// How many of `len_bytes` bytes at `offset` of a file fit on the disk: those within its length
    /// always do.
    pub(crate) fn fitting_bytes(&self, id: FileId, offset: u64, len_bytes: u64) -> u64 {
        let inside = self.files.get(&id).map_or(0, File::space_bytes).saturating_sub(offset);
        if len_bytes <= inside || self.capacity_bytes.is_none() {
            return len_bytes;
        }
        len_bytes.min(inside + self.free_bytes())
    }
}

pub(crate) fn no_space() -> io::Error {
    io::Error::from_raw_os_error(ENOSPC)
}

pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether a call may change the result of a crash. (`Lock` creates the file that it locks.)
pub(crate) fn may_change(call: Call) -> bool {
    (call.changes() && call != Call::Prepare) || call == Call::Lock
}
