//! A small store in a simulated world, for tests that cut the power at one moment: its options, and
//! the possible results of a crash.
//!
//! Called by the tests `power_*`, `reclaim_power` and `backup_power`, each with additions for its
//! moments.

use folddb::{BackgroundWork, Options, Store};

use crate::chance::Seeded;
use crate::world::SimDisk;

/// Options under which little data fills memtables and segments, without background work.
pub fn options(disk: &SimDisk) -> Options {
    Options::default()
        .host(disk.host())
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

/// A new store.
///
/// # Panics
/// It cannot be made.
pub fn create(disk: &SimDisk, options: Options) -> Store {
    Store::create(SimDisk::store_dir(), options).unwrap_or_else(|error| panic!("{error}\n{}", disk.diary(40)))
}

/// The existing store.
///
/// # Panics
/// It does not open; the last calls of the disk are in the message.
pub fn open(disk: &SimDisk, options: Options) -> Store {
    Store::open(SimDisk::store_dir(), options).unwrap_or_else(|error| panic!("{error}\n{}", disk.diary(40)))
}

/// The worlds that a crash before this change may leave, each with what happened: the process died,
/// or the power went, in `cuts` ways.
pub fn crashed(disk: &SimDisk, seed: u64, change: u64, cuts: u64) -> Vec<(String, SimDisk)> {
    let died = (format!("died before change {change}"), disk.after_death());
    let cut = |cut: u64| {
        let mut chance = Seeded::new(seed ^ change << 8 ^ cut);
        (format!("the power went before change {change}, cut {cut}"), disk.after_power_cut(&mut chance))
    };
    std::iter::once(died).chain((0..cuts).map(cut)).collect()
}
