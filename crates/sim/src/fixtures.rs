//! Stores as this version writes them, kept in `fixtures/` for all later versions to open, and how
//! they are checked.
//!
//! ```text
//!   fixtures/v1/closed/          a store that was closed: every fold, every codec, both encodings of blocks, several runs
//!               closed.dump      its content
//!               unclosed/        a store whose process died: some in runs, the rest in the log
//!               unclosed.dump
//!               backup/          a place for backups with two of them
//!               backup.dump      the content of the newest
//!               backup-at-130.dump    of the newest, restored at seq 130
//!   fixtures/v2/settled/         a store that was closed, with every kind of table and every kind of file: see `fixtures/varied.rs`
//!               settled.told     what its dump leaves out: heads, pasts, indexes, feeds (`fixtures/told.rs`)
//!               settled.tokens   cursors and digests of it, as bytes
//!               died/            one whose process died twice, in the middle of a merge and of the building of an index
//!               sealed/          a frozen store
//!               copied/          backups of such a store
//!               LENGTHS          how long files are that end in zeros: those are left out (`fixtures/lengths.rs`)
//!   fixtures/v3/sealed/          the same again, with digests of version 2 among its tokens
//!   fixtures/v4/lasting/         a store with values in pieces that have deadlines, or are versions
//!   fixtures/v5/restored/        a store that was restored from a backup and not opened since: its log is a copy
//!   fixtures/v6/settled/         as in v2, with the rule `archive_log=on`, which said `log=forever` before
//!   fixtures/v7/closed/          as in v1, with filters that know leading elements of tuples
//!   fixtures/v8/altered/         tables whose rules were altered, in a snapshot of the manifest and in edits after it
//!   fixtures/v9/compressed/      blocks compressed by zstd and LZ4, at the bottom, above it, and before an alteration
//!               undone/          blocks compressed by zstd and by LZ4, in tables that say so no longer
//!   fixtures/v10/altered/        as in v8, with parts that the manifest knows by their fingerprints
//! ```
//!
//! Files there are never written again: a version with another format gets another directory.
//! Written by the example `write_fixtures`, checked by the tests `fixtures` and `format_doc`.

mod lengths;
mod still;
pub mod told;
mod varied;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb::maintenance::{BackupOptions, RestoreOptions};
use folddb::table_rules::Compression;
use folddb::{Durability, Error, Keep, Options, Result, Rules, Store};
use folddb_host::Host;

use crate::chance::Seeded;
use crate::everything::{fill, fill_wide};
use crate::fixtures::still::{LOOKED_AT_MS, Still, dump, small, still};
use crate::numbered::Numbered;

pub use lengths::{copy, cut};

/// The seq, in the middle of the newest backup, whose state is kept too.
pub const RESTORED_SEQ: u64 = 130;

/// The settings that fixtures are read with: it is always the same moment.
pub fn options() -> Options {
    let still = Arc::new(Still::new(0, LOOKED_AT_MS));
    small().host(Host { clock: still, ..Host::real() })
}

/// The fixtures by name: each is a store or a place for backups, with its known contents.
pub const NAMES: [&str; 12] = [
    "closed",
    "unclosed",
    "backup",
    "settled",
    "died",
    "sealed",
    "copied",
    "lasting",
    "restored",
    "altered",
    "compressed",
    "undone",
];

/// Writes one of the fixtures into an existing directory that does not have it.
///
/// # Errors
/// A failed write; a name that is none of [`NAMES`].
pub fn write(dir: &Path, name: &str) -> Result<()> {
    match name {
        "closed" => closed(dir),
        "unclosed" => unclosed(dir),
        "backup" => backup(dir),
        "settled" => varied::settled(dir),
        "died" => varied::died(dir),
        "sealed" => varied::sealed(dir),
        "copied" => varied::copied(dir),
        "lasting" => varied::lasting(dir),
        "restored" => restored(dir),
        "altered" => altered(dir),
        "compressed" => compressed(dir),
        "undone" => undone(dir),
        _ => Err(Error::invalid(format!("there is no fixture {name}: {NAMES:?}"))),
    }
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
    write_numbered(&store, 1..=100)?;
    store.flush()?;
    fill(&mut store, &mut Seeded::new(2), 1, &mut |_| Ok(()))?;
    write_numbered(&store, 101..=150)?;
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
    write_numbered(&store, 1..=40)?;
    store.flush()?;
    write_numbered(&store, 41..=50)?;
    store.backup(&to, &copy)?;
    write_numbered(&store, 51..=60)?;
    store.flush()?;
    write_numbered(&store, 61..=70)?;
    store.backup(&to, &copy)?;
    dump(&store, &dir.join("backup.dump"))?;
    let (earlier, what) =
        (source.path().join("earlier"), RestoreOptions::default().at_seq(Some(RESTORED_SEQ.into())));
    Store::restore(&to, &earlier, &what, &still(4))?;
    dump(&Store::open(&earlier, still(5))?, &dir.join(format!("backup-at-{RESTORED_SEQ}.dump")))
}

fn restored(dir: &Path) -> Result<()> {
    let source = tempfile::tempdir().map_err(|error| Error::io("create a directory in", dir, error))?;
    let store = Store::create(source.path().join("store"), still(6))?;
    write_numbered(&store, 1..=40)?;
    store.flush()?;
    write_numbered(&store, 41..=60)?; // in the log
    let (backups, to) = (source.path().join("backups"), dir.join("restored"));
    store.backup(&backups, &BackupOptions::default().copy(true))?;
    Store::restore(&backups, &to, &RestoreOptions::default(), &still(7))?;
    dump(&Store::open_read_only(&to, still(8))?, &dir.join("restored.dump"))
}

fn altered(dir: &Path) -> Result<()> {
    let to = dir.join("altered");
    let keep = |seconds| Keep::Window(Duration::from_secs(seconds));
    let past = |store: &Store| {
        let past = store.table("past", Rules::sorted::<u64, u64>().fold("sum:u64").keep(keep(60)))?;
        (0..40).try_for_each(|key| past.fold(&(key % 3), &key).map(drop))?;
        Ok::<_, Error>(past)
    };
    let store = Store::create(&to, still(9))?;
    write_numbered(&store, 1..=40)?;
    let windowed = past(&store)?;
    store.flush()?;
    store.bytes_table("log")?.alter(|rules| rules.block_bytes(1024).filter_bits(14))?;
    windowed.alter(|rules| rules.keep(keep(3600)))?;
    store.close()?;
    let store = Store::open(&to, still(10))?;
    store.bytes_table("sums")?.alter(|rules| rules.lz4().summaries(true))?;
    store.bytes_table("log")?.alter(|rules| rules.separate(64))?;
    write_numbered(&store, 41..=60)?;
    store.sync()?;
    dump(&store, &dir.join("altered.dump"))?;
    std::mem::forget(store); // as a process that dies leaves it
    Ok(())
}

fn compressed(dir: &Path) -> Result<()> {
    let store = Store::create(dir.join("compressed"), still(11))?;
    write_numbered(&store, 1..=20)?;
    let text = |compression, below| {
        Rules::sorted::<String, String>().compression(compression).bottom_compression(below).block_bytes(1024)
    };
    let tables = [
        store.table("zstd", text(Compression::Zstd, None).summaries(true))?,
        store.table("zstd below", text(Compression::None, Some(Compression::Zstd)))?,
        store.table("none below", text(Compression::Lz4, Some(Compression::None)))?,
        store.table("no longer", text(Compression::Zstd, None))?,
    ];
    for round in 0..3u64 {
        for table in &tables {
            for i in 0..60 {
                let value = format!("the value of {i} in round {round}, and some more, and more");
                table.put(&format!("key {:03}", (i + round * 20) % 80), &value)?;
            }
        }
        store.flush()?;
        if round == 1 {
            tables.iter().try_for_each(|table| table.compact().map(drop))?;
        }
    }
    tables[3].alter(|rules| rules.compression(Compression::None))?;
    dump(&store, &dir.join("compressed.dump"))?;
    store.close()
}

fn undone(dir: &Path) -> Result<()> {
    let store = Store::create(dir.join("undone"), still(12))?;
    write_numbered(&store, 1..=20)?;
    for compression in [Compression::Lz4, Compression::Zstd] {
        let rules = Rules::sorted::<String, String>().compression(compression).block_bytes(1024);
        let table = store.table(compression.name(), rules)?;
        for i in 0..60 {
            table.put(&format!("key {i:03}"), &format!("the value of {i}, and some more, and more"))?;
        }
        store.flush()?;
        table.alter(|rules| rules.compression(Compression::None))?;
    }
    dump(&store, &dir.join("undone.dump"))?;
    store.close()
}

fn write_numbered(store: &Store, range: std::ops::RangeInclusive<u64>) -> Result<()> {
    let numbered = Numbered::open(store)?;
    for i in range {
        let mut batch = store.batch();
        numbered.fill(&mut batch, i);
        batch.commit(Durability::Process)?;
    }
    Ok(())
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
    kept.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(kept)
}
