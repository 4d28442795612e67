//! Other stores next to that of a player: its tables are compared with those of a second one, which
//! is brought up to them; the store is read next to its writer; it is sealed and read by several;
//! and tables that archive their logs are rebuilt from them.

use std::ops::ControlFlow;

use folddb::codec::KeyCodec;
use folddb::maintenance::{
    BackupOptions, DiffReport, LoadOptions, RepairOptions, RestoreOptions, SyncOptions,
};
use folddb::time::{moment, unix_ms};
use folddb::{BytesScan, BytesTable, Digest, Durability, ErrorKind, Lifetime, Options, Store, WriteOp};
use folddb_base::stamp::NEVER;
use folddb_base::{Seq, Stamp};

use crate::compare::{Dumped, Outcome, dump, is_dump_of, same};
use crate::known::{Contents, Ops};
use crate::model::{ModelOp, Present};
use crate::play::contents::contents;
use crate::play::player::{Player, said};
use crate::program::Other;
use crate::tables::{Order, Shape};
use crate::world::SimDisk;

/// The depth of the digests that are compared.
const DEPTH: u8 = 2;

/// A deadline that no random program reaches, in milliseconds since 1970.
const FAR_OFF_MS: u64 = 1 << 42;

/// Another store with a table like one of the player's.
struct Second {
    store: Store,
    table: BytesTable,
    _temp: tempfile::TempDir,
}

impl Player {
    pub(super) fn other(&mut self, other: Other) -> Outcome {
        match other {
            Other::Compare(slot, of) => match self.disk.clone() {
                Some(disk) => disk.aside(|| self.compare_with_other(slot, of)),
                None => self.compare_with_other(slot, of),
            },
            Other::BringUp(slot, of) => self.synchronize(slot, of),
            Other::Secondary => self.secondary(),
            Other::Freeze => self.freeze(),
            Other::Rebuild => self.rebuild(),
            Other::Dump => match self.disk.clone() {
                Some(disk) => disk.aside(|| self.dump_and_load()),
                None => self.dump_and_load(),
            },
            Other::BackUp => self.back_up_secondary(),
        }
    }

    // ---- comparing ------------------------------------------------------------------------------

    /// A second store, with the contents of a table at an earlier time.
    fn second_store(&self, table: &BytesTable, shape: &Shape, of: u8) -> Result<Second, String> {
        let temp = tempfile::tempdir_in(crate::memory_dir()).map_err(|error| error.to_string())?;
        let options = match &self.disk {
            Some(disk) => self.options().host(disk.after_death().host()),
            None => self.options(),
        };
        let dir =
            if self.disk.is_some() { self.dir.with_extension("other") } else { temp.path().join("other") };
        let other = Store::create(dir, options).map_err(said("create another store"))?;
        let theirs =
            other.create_bytes_table(table.name(), shape.rules()).map_err(said("create another table"))?;
        let seq = self.known.model.last_seq() * u64::from(of) / 255;
        for (key, present) in self.known.model.rows_at(table.name(), seq) {
            if let Present::Value(value) = present {
                theirs.write(WriteOp::Put, &key, &value).map_err(said("write to another store"))?;
            }
        }
        Ok(Second { store: other, table: theirs, _temp: temp })
    }

    /// It is compared and brought up to date, and is then the same.
    fn compare_with_other(&self, slot: u8, of: u8) -> Outcome {
        let Some((table, shape)) = self.table(slot)? else { return Ok(()) };
        let Second { store: other, table: theirs, _temp } = self.second_store(&table, &shape, of)?;
        let compare =
            |first: BytesScan, second: BytesScan| first.compare(second, |_| ControlFlow::Continue(()));
        if shape.order == Order::Hashed {
            let refused = compare(table.scan(), theirs.scan()).map(drop).map_err(|error| error.kind());
            return same("comparing a hashed table", &refused, &Err(ErrorKind::InvalidInput));
        }
        let past = self.store()?.snapshot();
        let ours = past.scan(&table);
        let before = compare(ours.clone(), theirs.scan()).map_err(said("compare"))?;
        let brought = other.synchronize(theirs.scan(), ours.clone(), &SyncOptions::default());
        let brought = brought.map_err(said("bring up"))?;
        same("what is put", &brought.put, &(before.only_first + before.differing))?;
        same("what is deleted", &brought.deleted, &before.only_second)?;
        let after = compare(ours.clone(), theirs.scan()).map_err(said("compare"))?;
        let alike = |report: &DiffReport| (report.only_first, report.only_second, report.differing);
        same("what differs after bringing up", &alike(&after), &(0, 0, 0))?;
        let (mine, yours) = (dump(ours.clone()), dump(theirs.scan()));
        let (mine, yours) = (mine.map_err(said("scan"))?, yours.map_err(said("scan another table"))?);
        let whole: Vec<_> = mine.iter().filter(|row| row.is_some()).collect();
        if after.failing == 0 {
            same("the rows after bringing up", &yours.iter().collect::<Vec<_>>(), &whole)?;
            self.compare_digests(&shape, ours, (&other, &theirs))?;
        }
        Ok(())
    }

    /// A table of the store itself is brought up to the second one, while calls may fail and the
    /// process may die: in one batch, since the table is small.
    fn synchronize(&mut self, slot: u8, of: u8) -> Outcome {
        let Some((table, shape)) = self.table(slot)? else { return Ok(()) };
        if shape.order == Order::Hashed {
            return Ok(()); // as in `compare_with_other`
        }
        let disk = self.disk.clone();
        let aside = |work: &dyn Fn() -> Result<(Second, Ops), String>| match &disk {
            Some(disk) => disk.aside(work),
            None => work(),
        };
        let (second, ops) = aside(&|| {
            let second = self.second_store(&table, &shape, of)?;
            let ops = self.what_differs(&table, &second.table)?;
            Ok((second, ops))
        })?;
        let brought = self.store()?.synchronize(table.scan(), second.table.scan(), &SyncOptions::default());
        if let Ok(report) = &brought {
            same("what is brought over", &(report.put + report.deleted), &(ops.len() as u64))?;
        }
        let last_seq = u64::from(self.store()?.last_seq());
        match brought {
            // Its batch is committed, and a later step has failed.
            Err(error) if last_seq > self.known.model.last_seq() => {
                self.known.written(ops, Durability::Process);
                self.refused("bring up", error)
            }
            brought => self.committed(ops, Durability::Sync, brought.map(|_| last_seq.into())),
        }
    }

    /// The ops that make a table equal to another.
    fn what_differs(&self, table: &BytesTable, theirs: &BytesTable) -> Result<Ops, String> {
        let write_ms = unix_ms(self.store()?.now());
        let (mut ops, mut failure) = (Ops::new(), Ok(()));
        let compared = table.scan().compare(theirs.scan(), |difference| {
            let deadline_ms =
                difference.second.as_ref().and_then(|head| head.deadline).map_or(NEVER, unix_ms);
            let op = match theirs.get(&difference.key) {
                Ok(Some(value)) => ModelOp::Set(difference.key, value),
                Ok(None) => ModelOp::Delete(difference.key),
                Err(error) => {
                    failure = Err(said("read another store")(error));
                    return ControlFlow::Break(());
                }
            };
            ops.push((table.name().to_owned(), op, Stamp { write_ms, deadline_ms }));
            ControlFlow::Continue(())
        });
        compared.map_err(said("compare"))?;
        failure.map(|()| ops)
    }

    /// Digests of the same rows are the same, however values are split into pieces. Those of rows
    /// with another deadline differ, and those of rows with another meaning do not compare.
    fn compare_digests(
        &self,
        shape: &Shape,
        ours: BytesScan,
        (store, theirs): (&Store, &BytesTable),
    ) -> Outcome {
        let ours = ours.digest(DEPTH, 1).map_err(said("make a digest"))?;
        let other_rules = shape.rules().key(KeyCodec::Utf8);
        let other = store.create_bytes_table("means other things", other_rules);
        let other = other.map_err(said("create a table with other rules"))?;
        let other = other.scan().digest(DEPTH, 1).map_err(said("make a digest of other rules"))?;
        same("whether digests of other rules compare", &ours.differing(&other).is_ok(), &false)?;
        let digest = || theirs.scan().digest(DEPTH, 2).map_err(said("make another digest"));
        let differing = |other: &Digest| ours.differing(other).map_err(|error| error.to_string());
        let alike = digest()?;
        same("the leaves that differ", &differing(&alike)?, &Vec::new())?;
        same("whether the digests are the same", &(ours.root() == alike.root()), &true)?;
        let Some(key) = give_another_deadline(shape, theirs)? else { return Ok(()) };
        let leaf = ours.leaf_of(&key);
        same("the leaves that differ by a deadline", &differing(&digest()?)?, &vec![leaf])
    }

    /// Closes the store and freezes it; then several readers open it, and no writer may.
    fn freeze(&mut self) -> Outcome {
        self.let_go();
        let store = self.store.take().ok_or("the store is not open")?;
        let closed = store.close();
        let is_closed = closed.is_ok();
        self.makes_durable("close", closed)?;
        match Store::freeze(&self.dir, self.options()) {
            Ok(()) if is_closed => {
                match self.disk.clone() {
                    Some(disk) => {
                        let read = disk.aside(|| self.read_sealed());
                        if !disk.is_dead() {
                            read?; // a process that dies meanwhile reads nothing
                        }
                    }
                    None => self.read_sealed()?,
                }
                if let Err(error) = Store::thaw(&self.dir, self.options()) {
                    self.refused("thaw the store", error)?;
                }
            }
            Ok(()) => {}
            Err(error) => self.refused("freeze the store", error)?,
        }
        if self.disk.as_ref().is_some_and(SimDisk::is_dead) {
            return Ok(());
        }
        self.reopen()
    }

    fn read_sealed(&self) -> Outcome {
        let refused = Store::open(&self.dir, self.options()).map(drop).map_err(|error| error.kind());
        same("opening a frozen store for writing", &refused, &Err(ErrorKind::ReadOnly))?;
        let open = || Store::open_read_only(&self.dir, self.options()).map_err(said("open a frozen store"));
        let stores = [open()?, open()?];
        for store in &stores {
            self.is_all_there(store, "a frozen store")?;
        }
        Ok(())
    }

    /// This store has all that the model has now.
    fn is_all_there(&self, store: &Store, what: &str) -> Outcome {
        let contents = contents(store).map_err(said("read all of it"))?;
        let mut model = self.known.model.clone();
        model.set_time(unix_ms(store.now()));
        let names: Vec<String> = contents.iter().map(|(name, _)| name.clone()).collect();
        same(&format!("the tables of {what}"), &names, &model.tables())?;
        contents.iter().try_for_each(|(name, rows)| {
            let is_whole = is_dump_of(rows, &model.rows_at(name, Seq::MAX));
            let asked = format!("whether {name} ({:?}) in {what} is as it was", model.shape(name));
            same(&asked, &is_whole, &true)
        })
    }

    // ---- copies ---------------------------------------------------------------------------------

    /// The store as text, loaded by another one, is the same, for all forms of values in JSON.
    fn dump_and_load(&self) -> Outcome {
        let store = self.store()?;
        let before = contents(store).map_err(said("read what is to be dumped"))?;
        let mut text = Vec::new();
        store.dump(&[], &mut text).map_err(said("dump the store"))?;
        let temp = tempfile::tempdir_in(crate::memory_dir()).map_err(|error| error.to_string())?;
        let (dir, options) = match &self.disk {
            Some(disk) => (self.dir.with_extension("loaded"), self.options().host(disk.after_death().host())),
            None => (temp.path().join("loaded"), self.options()),
        };
        let other = Store::create(dir, options).map_err(said("create a store to load into"))?;
        other.load(&mut &text[..], &LoadOptions::default()).map_err(said("load a dump"))?;
        let found = contents(&other).map_err(said("read what was loaded"))?;
        let after = contents(store).map_err(said("read what was dumped"))?;
        // Deadlines may pass meanwhile: then rows expire, and none is added.
        for (((name, rows), (_, first)), (_, last)) in found.iter().zip(&before).zip(&after) {
            let what = format!("whether {name} ({:?}) is the same, loaded", self.known.model.shape(name));
            same(&what, &(is_left_of(rows, first) && is_left_of(last, rows)), &true)?;
        }
        same("the number of tables, loaded", &found.len(), &after.len())
    }

    /// A backup made next to the writer, of a reader that was opened some time ago. It holds what
    /// the reader saw, or the present contents where the writer has removed values since that it
    /// needs. On real files, where it may link and the writer may continue meanwhile.
    fn back_up_secondary(&mut self) -> Outcome {
        if self.disk.is_some() {
            return Ok(());
        }
        let secondary = match self.secondary.take() {
            Some(secondary) => secondary,
            None => {
                self.look_secondary()?;
                self.secondary.take().ok_or("no secondary was opened")?
            }
        };
        let temp = tempfile::tempdir_in(crate::memory_dir()).map_err(|error| error.to_string())?;
        let (place, to) = (temp.path().join("backups"), temp.path().join("restored"));
        secondary.store.backup(&place, &BackupOptions::default()).map_err(said("back up a secondary"))?;
        let restored = Store::restore(&place, &to, &RestoreOptions::default(), &self.options());
        restored.map_err(said("restore a backup of a secondary"))?;
        let copy = Store::open(&to, self.options()).map_err(said("open what was restored"))?;
        let found = contents(&copy).map_err(said("read what was restored"))?;
        let of = |contents: &Contents| secondary.of(contents, Shape::lasts);
        if of(&found) != of(&secondary.contents) {
            let mut known = self.known.clone();
            known.model.set_time(unix_ms(copy.now()));
            known.settle(&found, u64::from(copy.last_seq())).map_err(|why| {
                format!("a backup of a secondary is neither its state nor the present one: {why}")
            })?;
        }
        self.secondary = Some(secondary);
        Ok(())
    }

    // ---- archived logs --------------------------------------------------------------------------

    /// Rebuilds tables from the logs that they keep, in a new store elsewhere: it holds what this
    /// one does.
    fn rebuild(&mut self) -> Outcome {
        let names = self.known.model.tables();
        let keeps = |name: &String| self.known.model.shape(name).is_some_and(|shape| shape.archives_log);
        let names: Vec<String> = names.into_iter().filter(keeps).collect();
        if names.is_empty() {
            return Ok(());
        }
        let how = names.iter().fold(RepairOptions::default(), |how, name| how.rebuild_index(name));
        // A file system in memory has no directory to remove here, and the next place is another.
        let to = self.dir.with_extension(format!("rebuilt{}", self.rebuilt));
        self.rebuilt += 1;
        if let Some(disk) = self.disk.clone() {
            return self.rebuild_aside(&disk, &how, &to);
        }
        self.let_go();
        let store = self.store.take().ok_or("the store is not open")?;
        let closed = store.close();
        self.makes_durable("close", closed)?;
        let rebuilt = self.rebuilt_at(&self.options(), &how, &to)?;
        self.is_all_there(&rebuilt, "a store made anew from logs")?;
        drop(rebuilt);
        if self.is_on_files() {
            std::fs::remove_dir_all(&to).map_err(|error| error.to_string())?;
        }
        self.reopen()
    }

    /// The same for the result of a crash now, in another world.
    fn rebuild_aside(&self, disk: &SimDisk, how: &RepairOptions, to: &std::path::Path) -> Outcome {
        let world = || self.options().host(disk.after_death().host());
        let opened = Store::open(&self.dir, world()).map_err(said("open the store elsewhere"))?;
        let expected = contents(&opened).map_err(said("read the store elsewhere"))?;
        let rebuilt = self.rebuilt_at(&world(), how, to)?;
        let found = contents(&rebuilt).map_err(said("read a store made anew from logs"))?;
        for ((name, rows), (_, wanted)) in found.iter().zip(&expected) {
            let what = format!("whether {name} ({:?}) is the same, made anew", self.known.model.shape(name));
            same(&what, &(rows == wanted), &true)?;
        }
        same("the number of tables, made anew", &found.len(), &expected.len())
    }

    fn rebuilt_at(
        &self,
        options: &Options,
        how: &RepairOptions,
        to: &std::path::Path,
    ) -> Result<Store, String> {
        let report = Store::repair(&self.dir, to, how, options).map_err(said("rebuild tables"))?;
        let lost: Vec<_> = report.lost().collect();
        same("what rebuilding has lost", &lost.len(), &0).map_err(|why| format!("{why}: {lost:?}"))?;
        Store::open(to, options.clone()).map_err(said("open what was rebuilt"))
    }
}

/// Whether these rows are some of those, in their order.
fn is_left_of(rows: &[Dumped], of: &[Dumped]) -> bool {
    let mut of = of.iter();
    rows.iter().all(|row| of.any(|one| one == row))
}

/// Lets the first value of a table last until another time, where it may, and returns its key.
fn give_another_deadline(shape: &Shape, table: &BytesTable) -> Result<Option<Vec<u8>>, String> {
    if !shape.expire.has_stamps() {
        return Ok(None);
    }
    let Some(row) = table.scan().heads().next() else { return Ok(None) };
    let (key, head) = row.map_err(said("read the first head"))?;
    let value = table.get(&key).map_err(said("read the first value"))?.unwrap_or_default();
    let lifetime = match head.deadline {
        Some(_) => Lifetime::Forever,
        None => Lifetime::Until(moment(FAR_OFF_MS)),
    };
    let written = table.with_lifetime(lifetime).write(WriteOp::Put, &key, &value);
    written.map_err(said("let a value last until another time"))?;
    Ok(Some(key))
}
