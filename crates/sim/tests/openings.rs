//! A store that is opened for every write stays small and quick. A year of minutes:
//! `cargo run -p folddb-sim --release --example openings -- --openings 500000`.

use std::collections::BTreeSet;

use folddb::{Durability, Error, ErrorKind, Result, Rules, Store, Table};
use folddb_base::FileNumber;
use folddb_layout::file_name::FileName;
use folddb_layout::segment::SegmentHeader;
use folddb_sim::openings::{History, open_for_each_write};
use folddb_sim::small_store;
use folddb_sim::world::SimDisk;

#[test]
fn a_store_that_is_opened_for_every_write_stays_small_and_loses_nothing() {
    let seen = open_for_each_write(5_000, History::Released, &mut |_| {});
    assert_eq!(seen.unwrap_or_else(|why| panic!("{why}")).openings, 5_000);
}

#[test]
fn a_store_whose_feed_nobody_reads_stays_small_however_often_it_is_opened() {
    let seen = open_for_each_write(2_000, History::Retained, &mut |_| {});
    assert_eq!(seen.unwrap_or_else(|why| panic!("{why}")).openings, 2_000);
}

/// The largest number of a file of the store.
fn largest_number(disk: &SimDisk) -> u64 {
    let names = disk.names(&SimDisk::store_dir()).into_iter();
    let digits = |name: String| name.chars().filter(char::is_ascii_digit).collect::<String>();
    names.filter_map(|(name, _)| digits(name).parse().ok()).max().unwrap_or(0)
}

#[test]
fn numbers_that_an_opening_has_set_aside_and_not_used_are_given_back_when_it_closes() -> Result<()> {
    const OPENINGS: u64 = 50;
    let disk = SimDisk::new(2);
    small_store::create(&disk, small_store::options(&disk)).close()?;
    let before = largest_number(&disk);
    for opening in 0..OPENINGS {
        let store = Store::open(SimDisk::store_dir(), small_store::options(&disk))?;
        let rows: Table<u64, u64> = store.table("rows", Rules::sorted())?;
        rows.put(&opening, &opening)?;
        drop(rows);
        store.close()?;
    }
    let each = (largest_number(&disk) - before) / OPENINGS;
    assert!(each <= 16, "{each} numbers for an opening");
    Ok(())
}

/// Openings that are closed, dropped, and whose processes die: numbers of files are given back, and
/// no place in a file is used twice.
#[test]
fn each_write_has_a_version_that_its_key_never_had_however_often_the_store_is_opened() -> Result<()> {
    const OPENINGS: u64 = 1_500;
    let mut disk = SimDisk::new(3);
    small_store::create(&disk, small_store::options(&disk)).close()?;
    let (mut seen, value) = (BTreeSet::new(), vec![7; 300]);
    for opening in 0..OPENINGS {
        let store = Store::open(SimDisk::store_dir(), small_store::options(&disk))?;
        let separated: Table<u64, Vec<u8>> = store.table("separated", Rules::sorted().separate(64))?;
        let hashed: Table<u64, Vec<u8>> = store.table("hashed", Rules::hashed())?;
        for (name, table) in [("separated", separated), ("hashed", hashed)] {
            table.put(&1, &value)?;
            let version = table.head(&1)?.and_then(|head| head.version);
            let version = version.ok_or_else(|| Error::invalid(format!("{name}: no version")))?;
            assert!(seen.insert((name, version)), "{name}: {version} once more, in opening {opening}");
        }
        match opening % 3 {
            0 => store.close()?,
            1 => drop(store),
            _ => {
                disk = disk.after_death();
                drop(store);
            }
        }
        disk.forget_diary();
    }
    Ok(())
}

/// The newest segment of the log with the place up to which the manifest says that the log is
/// durable, cut there: as the end of a copy of the log. None where no segment has that place, or
/// where it already ends there.
fn cut_where_it_is_durable(disk: &SimDisk) -> Option<()> {
    let (dir, host) = (SimDisk::store_dir(), disk.host());
    let state = folddb_manifest::load(&host, &dir).ok()?.state;
    for (name, len) in disk.names(&dir) {
        let Some(FileName::Log(FileNumber(number))) = FileName::parse(&name) else { continue };
        let Ok(header) = SegmentHeader::decode(&disk.bytes(&dir.join(&name)).ok()?, FileNumber(number))
        else {
            continue;
        };
        let offset = header.offset_of(state.durable_lsn.max(header.first_lsn));
        if (header.first_lsn..header.next_lsn()).contains(&state.durable_lsn) && offset < len {
            host.files.cut(&dir.join(&name), offset).ok()?;
            return Some(());
        }
    }
    None
}

#[test]
fn an_opening_that_was_cut_short_leaves_no_log_that_passes_for_a_copy() -> Result<()> {
    let (disk, dir) = (SimDisk::new(4), SimDisk::store_dir());
    let store = small_store::create(&disk, small_store::options(&disk));
    let rows: Table<u64, u64> = store.table("rows", Rules::sorted())?;
    let write = |keys: std::ops::Range<u64>| {
        let mut batch = store.batch();
        keys.into_iter().try_for_each(|key| {
            batch.put(&rows, &key, &key);
            batch.commit(Durability::Sync).map(drop)
        })
    };
    write(0..20)?;
    store.table::<u64, u64>("other", Rules::sorted())?; // an edit, which records how far the log is durable
    write(20..40)?;
    let killed = disk.after_death();
    let whole = killed.fork();
    drop(Store::open(&dir, small_store::options(&whole))?);
    let (mut cut, mut refused) = (0, 0);
    for moment in 0..whole.changes() - killed.changes() {
        let dying = killed.fork();
        dying.die_after(moment);
        let _ = Store::open(&dir, small_store::options(&dying));
        let left = dying.after_death();
        if cut_where_it_is_durable(&left).is_none() {
            continue;
        }
        cut += 1;
        match Store::open(&dir, small_store::options(&left)) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "moment {moment}: {error}");
                refused += 1;
            }
            Ok(store) => {
                let rows: Table<u64, u64> = store.table("rows", Rules::sorted())?;
                assert_eq!(
                    rows.scan().count()?,
                    40,
                    "moment {moment}: what was acknowledged is there, or missed"
                );
            }
        }
    }
    assert!(cut > 5 && refused > 2, "{cut} logs were cut, {refused} refused");
    Ok(())
}
