//! Stores as this version writes them, kept in `fixtures/` for all later versions to open, and how they are looked at.
//!
//! ```text
//!   fixtures/v1/closed/          a store that was closed: every fold, every codec, both encodings of blocks, several runs
//!               closed.dump      its content
//!               unclosed/        a store whose process died: some in runs, the rest in the log
//!               unclosed.dump
//!               backup/          a place for backups with two of them
//!               backup.dump      the content of the newest
//!               backup-at-130.dump    of the newest, restored at seq 130
//! ```
//!
//! What is there is never written again: another way in which a version writes is another directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb::{
    AppendMode, BackupOptions, Durability, Error, Host, Options, RestoreOptions, Result, Store, Upkeep,
};
use folddb_host::{Chance, Clock};
use parking_lot::Mutex;

use crate::chance::Seeded;
use crate::everything::{fill, fill_wide};
use crate::numbered::Numbered;

/// The seq, in the middle of the newest backup, whose state is kept too.
pub const RESTORED_SEQ: u64 = 130;

/// The settings that fixtures are written and read with: small segments, so that they take little room.
pub fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .segment_bytes(1 << 20)
        .part_bytes(64 << 10)
        .append_mode(AppendMode::Written)
        .disk_reserve_bytes(0)
        .upkeep(Upkeep::Manual)
}

/// A world whose clock stands still and whose chance is from a seed, so that fixtures come out alike.
struct Still(Mutex<Seeded>);

impl Chance for Still {
    fn next_u64(&self) -> u64 {
        self.0.lock().next_u64()
    }
}

impl Clock for Still {
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
    fn unix_seconds(&self) -> u64 {
        1_763_683_200
    }
}

fn still(seed: u64) -> Options {
    let still = Arc::new(Still(Mutex::new(Seeded::new(seed))));
    let (clock, chance): (Arc<dyn Clock>, Arc<dyn Chance>) = (Arc::clone(&still) as _, still);
    options().host(Host { clock, chance, ..Host::real() })
}

/// Writes all fixtures into a directory that is there and empty.
///
/// # Errors
/// A failed write.
pub fn write_all(dir: &Path) -> Result<()> {
    closed(dir)?;
    unclosed(dir)?;
    backup(dir)
}

fn closed(dir: &Path) -> Result<()> {
    let mut store = Store::create(dir.join("closed"), still(1))?;
    let mut chance = Seeded::new(1);
    fill(&mut store, &mut chance, 2, &mut |_| Ok(()))?;
    for round in 2..5 {
        store.flush()?;
        fill_wide(&store, &mut chance, round)?;
    }
    dump(&store, &dir.join("closed.dump"))?;
    store.close()
}

fn unclosed(dir: &Path) -> Result<()> {
    let mut store = Store::create(dir.join("unclosed"), still(2))?;
    write(&store, 1..=100)?;
    store.flush()?;
    fill(&mut store, &mut Seeded::new(2), 1, &mut |_| Ok(()))?;
    write(&store, 101..=150)?;
    store.sync()?;
    dump(&store, &dir.join("unclosed.dump"))?;
    std::mem::forget(store); // as a process that dies leaves it
    Ok(())
}

fn backup(dir: &Path) -> Result<()> {
    let source = tempfile::tempdir().map_err(|error| Error::io("create a directory in", dir, error))?;
    let store = Store::create(source.path().join("store"), still(3))?;
    let to = dir.join("backup");
    let copy = BackupOptions::default().copy(true);
    write(&store, 1..=40)?;
    store.flush()?;
    write(&store, 41..=50)?;
    store.backup(&to, &copy)?;
    write(&store, 51..=60)?;
    store.flush()?;
    write(&store, 61..=70)?;
    store.backup(&to, &copy)?;
    dump(&store, &dir.join("backup.dump"))?;
    let (earlier, what) =
        (source.path().join("earlier"), RestoreOptions::default().at_seq(Some(RESTORED_SEQ)));
    Store::restore(&to, &earlier, &what, &still(4))?;
    dump(&Store::open(&earlier, still(5))?, &dir.join(format!("backup-at-{RESTORED_SEQ}.dump")))
}

fn write(store: &Store, range: std::ops::RangeInclusive<u64>) -> Result<()> {
    let numbered = Numbered::open(store)?;
    for i in range {
        let mut batch = store.batch();
        numbered.fill(&mut batch, i);
        batch.commit(Durability::Process)?;
    }
    Ok(())
}

fn dump(store: &Store, to: &Path) -> Result<()> {
    let mut text = Vec::new();
    store.dump(&[], &mut text)?;
    std::fs::write(to, text).map_err(|error| Error::io("write", to, error))
}

/// The directories of fixtures in the project, one for each way of writing, oldest first.
///
/// # Errors
/// They cannot be listed.
pub fn kept() -> std::io::Result<Vec<PathBuf>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut kept = std::fs::read_dir(dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    kept.retain(|path| path.is_dir());
    kept.sort();
    Ok(kept)
}
