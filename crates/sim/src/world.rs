//! A simulated world to run a store in: files, a clock and chance, all in memory and all from one
//! seed.
//!
//! A [`SimDisk`] is the view of one process. It implements the traits of `folddb_host`, counts the
//! calls and keeps a diary of them, fails those that a [`Fault`] names, and lets the process die
//! before any change. The next process finds another `SimDisk`: [`SimDisk::after_death`] where only
//! the process died and the kernel lives, [`SimDisk::after_power_cut`] where unsynced data is lost,
//! kept or torn (`world/power.rs` says how). Handles of the old process continue to write to the
//! old disk, and so change nothing.
//!
//! ```text
//!   a write, a sync that fails, a name          the process dies        the power goes
//!   page cache   new, readable                  as it was               gone
//!   disk         old until synced               as it was               old, new, torn or garbage, each sector
//! ```
//!
//! A sync that a fault makes fail does what Linux does: the sectors are marked clean, readers
//! continue to see them until they are evicted, a later sync succeeds, and the data is gone.

mod image;
mod diary;
mod machine;
mod power;
mod print;
mod files;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb_host::Host;
use parking_lot::Mutex;

use crate::chance::Seeded;
use crate::faulty_files::{Call, EDQUOT, ENOSPC, Fault, Faults};
use diary::{Diary, Entry};
use machine::{Dir, Machine, Node, ROOT};

/// A simulated disk, clock and source of random numbers, as one process sees them. Clones are the
/// same world; [`SimDisk::fork`] makes another one.
#[derive(Clone)]
pub struct SimDisk {
    machine: Arc<Mutex<Machine>>,
}

/// A call that a store made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// What it does.
    pub call: Call,
    /// The name of the file, without its directory.
    pub name: Arc<str>,
    /// Where bytes were read or written.
    pub offset: u64,
    /// How many bytes.
    pub len_bytes: u64,
}

impl SimDisk {
    /// An empty world. Everything in it follows from `seed` and from the calls.
    pub fn new(seed: u64) -> SimDisk {
        let machine = Machine {
            files: BTreeMap::new(),
            dirs: BTreeMap::from([(ROOT, Dir::default())]),
            next_id: ROOT,
            locks: BTreeMap::new(),
            faults: Faults::default(),
            are_faults_asleep: false,
            capacity_bytes: None,
            calls: 0,
            changes: 0,
            bytes_written: 0,
            dies_before: None,
            is_dead: false,
            has_lost: false,
            has_met_fault: false,
            clock_ns: 0,
            wall_s: 1_700_000_000,
            slow: None,
            begins_alike: false,
            before_changes: None,
            chance: Seeded::new(seed),
            luck: Seeded::new(seed ^ 0x5eed),
            diary: Diary::default(),
        };
        SimDisk::of(machine)
    }

    fn of(machine: Machine) -> SimDisk {
        SimDisk { machine: Arc::new(Mutex::new(machine)) }
    }

    /// A path for a store: its parent directory exists, and is durable.
    pub fn store_dir() -> PathBuf {
        PathBuf::from("/store")
    }

    /// This world as a store takes it.
    pub fn host(&self) -> Host {
        Host { files: Arc::new(self.clone()), clock: Arc::new(self.clone()), chance: Arc::new(self.clone()) }
    }

    /// A copy of this world: the two do not affect each other.
    pub fn fork(&self) -> SimDisk {
        let mut machine = self.machine.lock();
        let diary = machine.diary.fork();
        let mut other = machine.clone();
        other.diary = diary;
        SimDisk::of(other)
    }

    /// The world as the next process finds it when this one has died and the kernel lives on:
    /// nothing that was handed to the kernel is lost, no lock is held, and nothing fails any more.
    pub fn after_death(&self) -> SimDisk {
        let next = self.fork();
        next.note("the process has died");
        next.begin_anew();
        next
    }

    /// The world as the next process finds it when the power has gone.
    pub fn after_power_cut(&self, chance: &mut Seeded) -> SimDisk {
        let next = self.fork();
        next.note("the power has gone");
        power::cut_power(&mut next.machine.lock(), chance);
        next.machine.lock().has_lost = false;
        next.begin_anew();
        next
    }

    fn begin_anew(&self) {
        let mut machine = self.machine.lock();
        machine.locks.clear();
        machine.faults = Faults::default();
        machine.capacity_bytes = None;
        machine.slow = None;
        machine.dies_before = None;
        machine.is_dead = false;
        machine.before_changes = None;
        if machine.begins_alike {
            machine.begin_alike();
        }
        power::drop_nameless(&mut machine);
    }

    /// From now on each process gets the same random numbers and begins at a whole minute, as if it
    /// had taken some time to start. So only the disk shows it when the last one died.
    pub fn begin_processes_alike(&self) {
        self.machine.lock().begins_alike = true;
    }

    /// Some time passes, up to a whole tenth of a second.
    pub fn pause_alike(&self) {
        self.machine.lock().pause_alike();
    }

    /// All that decides what the next process finds, as a number.
    pub fn print(&self) -> u64 {
        print::of_machine(&self.machine.lock())
    }

    /// Does something in a copy of this world, and gives the worlds in which the process had died
    /// before each of the changes that this made.
    pub fn before_changes(&self, work: impl FnOnce(&SimDisk)) -> Vec<SimDisk> {
        let disk = self.fork();
        disk.machine.lock().before_changes = Some(Vec::new());
        work(&disk);
        let kept = disk.machine.lock().before_changes.take();
        kept.unwrap_or_default().into_iter().map(SimDisk::of).collect()
    }

    /// Cuts the power here `cuts` times, by seed, and shows each resulting disk.
    pub fn after_power_cuts(&self, cuts: u64, mut judge: impl FnMut(&SimDisk)) {
        for seed in 0..cuts {
            let left = self.after_power_cut(&mut Seeded::new(seed));
            left.note(format!("cut {seed}"));
            judge(&left);
        }
    }

    /// Lets the process die before it changes anything after `changes` more changes. Calls of a
    /// dead process fail and do nothing.
    pub fn die_after(&self, changes: u64) {
        let mut machine = self.machine.lock();
        machine.dies_before = Some(machine.changes + changes);
    }

    /// Lets the process die now.
    pub fn die(&self) {
        let mut machine = self.machine.lock();
        machine.is_dead = true;
    }

    /// True once the process has died.
    pub fn is_dead(&self) -> bool {
        self.machine.lock().is_dead
    }

    /// How many calls were made.
    pub fn calls(&self) -> u64 {
        self.machine.lock().calls
    }

    /// How many of them may have changed the result of a crash: all but reads. A crash after a read
    /// is the crash before it.
    pub fn changes(&self) -> u64 {
        self.machine.lock().changes
    }

    /// How many bytes were given to be written.
    pub fn bytes_written(&self) -> u64 {
        self.machine.lock().bytes_written
    }

    /// Forgets what happened so far: a world that lasts long would remember too much.
    pub fn forget_diary(&self) {
        self.machine.lock().diary = Diary::default();
    }

    /// Adds a fault.
    pub fn break_on(&self, fault: Fault) {
        self.machine.lock().faults.list.push(fault);
    }

    /// Whether one of the faults says that there is no space: then a store may drop what it holds
    /// for feeds.
    pub fn will_be_full(&self) -> bool {
        self.machine.lock().faults.list.iter().any(|fault| matches!(fault.os_error, ENOSPC | EDQUOT))
    }

    /// Removes all faults, also slowness, and any limit of space.
    pub fn heal(&self) {
        let mut machine = self.machine.lock();
        machine.faults.list.clear();
        machine.capacity_bytes = None;
        machine.slow = None;
    }

    /// The calls that faults have hit, in this process.
    pub fn failed(&self) -> Vec<(Call, PathBuf)> {
        self.machine.lock().faults.failed.clone()
    }

    /// Whether a fault has ever hit a call in this process, also before what
    /// [`SimDisk::forget_failures`] forgot.
    pub fn has_met_fault(&self) -> bool {
        self.machine.lock().has_met_fault
    }

    /// Forgets the calls that faults have hit so far, as a restarted process does.
    pub fn forget_failures(&self) {
        self.machine.lock().faults.failed.clear();
    }

    /// Inspects something: reads have no faults, and are not in the diary.
    pub fn aside<T>(&self, look: impl FnOnce() -> T) -> T {
        self.machine.lock().are_faults_asleep = true;
        let seen = look();
        self.machine.lock().are_faults_asleep = false;
        seen
    }

    /// Leaves this many bytes free from now on; `None` is without limit.
    pub fn leave_free(&self, bytes: Option<u64>) {
        let mut machine = self.machine.lock();
        machine.capacity_bytes = bytes.map(|bytes| machine.used_bytes() + bytes);
    }

    /// One call in `one_in` takes this long, from now on.
    pub fn slow_down(&self, one_in: u64, takes: Duration) {
        self.machine.lock().slow = Some((one_in.max(1), takes.as_nanos() as u64));
    }

    /// True when a sync has failed since the last power cut, so that the kernel may have lost data.
    pub fn has_lost(&self) -> bool {
        self.machine.lock().has_lost
    }

    /// The page cache drops everything that it considers to be on the disk: data lost by a failed
    /// sync shows its old bytes.
    pub fn evict(&self) {
        let mut machine = self.machine.lock();
        machine.files.values_mut().for_each(machine::File::evict);
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.machine.lock().clock_ns += by.as_nanos() as u64;
    }

    /// Moves the wall clock, forward or back.
    pub fn jump_wall(&self, by_s: i64) {
        let mut machine = self.machine.lock();
        machine.wall_s = machine.wall_s.saturating_add_signed(by_s);
    }

    /// Flips bits of one byte of a file, in the cache and on the disk. False when there is no such
    /// byte.
    pub fn rot(&self, path: &Path, offset: u64, bits: u8) -> bool {
        let mut machine = self.machine.lock();
        let Ok(file) = machine.file_id(path).and_then(|id| machine.file_mut(id)) else { return false };
        for image in [&mut file.now, &mut file.durable] {
            if offset >= image.len_bytes() {
                return false;
            }
            let mut byte = [0];
            image.read(offset, &mut byte);
            image.write(offset, &[byte[0] ^ bits]);
        }
        true
    }

    /// The names in a directory, in order, and the lengths of the files; no call of the store.
    pub fn names(&self, dir: &Path) -> Vec<(String, u64)> {
        let machine = self.machine.lock();
        let Ok(found) = machine.dir(dir) else { return Vec::new() };
        let len = |node: &Node| match node {
            Node::File(id) => machine.file(*id).map_or(0, |file| file.now.len_bytes()),
            Node::Dir(_) => 0,
        };
        found.now.iter().map(|(name, node)| (name.clone(), len(node))).collect()
    }

    /// The bytes of a file; no call of the store.
    ///
    /// # Errors
    /// There is no such file.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let machine = self.machine.lock();
        machine.file_id(path).and_then(|id| machine.file(id)).map(|file| file.now.to_vec())
    }

    /// Writes a line into the diary.
    pub fn note(&self, text: impl Into<String>) {
        self.machine.lock().diary.push(Entry::Note(text.into()));
    }

    /// The calls that went well since the diary begins, in order.
    pub fn made(&self) -> Vec<Made> {
        let machine = self.machine.lock();
        let entries = machine.diary.all().into_iter();
        entries
            .filter_map(|entry| match entry {
                Entry::Call { call, name, offset, len_bytes, error: None, .. } => {
                    Some(Made { call: *call, name: name.clone(), offset: *offset, len_bytes: *len_bytes })
                }
                _ => None,
            })
            .collect()
    }

    /// The last lines of the diary: every call, its outcome, and every crash.
    pub fn diary(&self, lines: usize) -> String {
        self.machine.lock().diary.tail(lines)
    }
}

#[cfg(test)]
#[path = "world/tests.rs"]
mod tests;
