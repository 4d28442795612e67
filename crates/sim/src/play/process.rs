//! A process ends, and the next one opens the store, perhaps after several failed attempts, and its
//! findings are compared with the promises.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use folddb::time::unix_ms;
use folddb::{Error, ErrorKind, Store, WriteOp};
use folddb_base::checksum::hash64;
use folddb_layout::file_name::FileName;

use crate::chance::Seeded;
use crate::compare::{Outcome, same};
use crate::known::{Contents, Fitting, Known};
use crate::play::contents::contents;
use crate::play::player::{Player, said};
use crate::play::wreck::{Prints, Wreck};
use crate::program::Crash;
use crate::world::SimDisk;

impl Player {
    pub(super) fn wreck(&mut self) -> Wreck {
        self.let_go();
        self.secondary = None;
        self.store = None;
        Wreck {
            settings: self.settings,
            dir: self.dir.clone(),
            disk: self.disk.clone().unwrap_or_else(|| SimDisk::new(0)),
            known: self.known.clone(),
            consumer: self.consumer.clone(),
            epoch_ms: self.epoch_ms,
            is_created: self.is_created,
            pending: self.pending.take(),
            prints: Prints::default(),
        }
    }

    /// The process has died: the next one takes over.
    pub(super) fn perish(&mut self) -> Outcome {
        let wreck = self.wreck();
        let crash =
            wreck.pending.clone().unwrap_or(Crash { after: 0, power: false, seed: 0, openings: Vec::new() });
        self.rise(&wreck, &crash)
    }

    /// Becomes the process that comes after a wreck.
    fn rise(&mut self, wreck: &Wreck, crash: &Crash) -> Outcome {
        let chance = &mut Seeded::new(u64::from(crash.seed));
        self.take_over(wreck);
        self.go_on_in_next_world(&wreck.disk, crash.power, chance);
        for &(after, power) in &crash.openings {
            let Some(disk) = self.disk.clone() else { break };
            disk.die_after(u64::from(after));
            self.open_and_die(&disk)?;
            self.go_on_in_next_world(&disk, power, chance);
        }
        self.open_soundly()
    }

    pub(super) fn take_over(&mut self, wreck: &Wreck) {
        self.known = wreck.known.clone();
        self.consumer = wreck.consumer.clone();
        self.epoch_ms = wreck.epoch_ms;
        self.is_created = wreck.is_created;
    }

    fn go_on_in_next_world(&mut self, disk: &SimDisk, power: bool, chance: &mut Seeded) {
        // Another write may take the seq of a lost one, which a cursor does not notice: see
        // `Resume::Strict`.
        self.left.retain(|left| self.known.keeps(left.seq, power));
        self.disk = Some(next_world(disk, power, &mut self.known, chance));
        self.secondary = None;
        self.consumer.secondary = None;
        self.was_full = false;
    }

    /// Opens the store, which a process may have frozen before it died.
    pub(super) fn open_store(&mut self) -> folddb::Result<Store> {
        if Store::is_frozen(&self.dir, &self.options()) {
            Store::thaw(&self.dir, self.options())?;
        }
        let options = self.reporting();
        Store::open(&self.dir, options)
    }

    /// An opening in the middle of which the process dies, or right after it.
    fn open_and_die(&mut self, disk: &SimDisk) -> Outcome {
        match self.open_store() {
            Ok(store) if !disk.is_dead() => {
                let adopted = self.adopt(store);
                disk.die();
                self.store = None;
                adopted
            }
            Ok(_) => Ok(()),
            Err(_) if disk.is_dead() => Ok(()),
            Err(error) if error.kind() == ErrorKind::StoreNotFound && !self.is_created => Ok(()),
            Err(error) => Err(said("open the store after a crash")(error)),
        }
    }

    /// An opening in a world that works: it must succeed.
    pub(super) fn open_soundly(&mut self) -> Outcome {
        if let Some(disk) = &self.disk {
            disk.forget_failures();
        }
        match self.open_store() {
            Ok(store) => {
                self.adopt(store)?;
                self.check_files()
            }
            Err(error) => self.not_opened(error),
        }
    }

    /// If its creation was cut short, it is no store yet, and another place is used.
    pub(super) fn not_opened(&mut self, error: Error) -> Outcome {
        if error.kind() == ErrorKind::StoreNotFound && !self.is_created {
            self.dir.set_extension("again");
            return self.create_store();
        }
        Err(said("open the store after a crash")(error))
    }

    /// Opens the store once more in a process that continues, whose calls may still fail.
    pub(super) fn next_process(&mut self) -> Outcome {
        let Some(disk) = self.disk.clone() else { return Ok(()) };
        if !disk.failed().is_empty() {
            // A store that accepts no more writes does not write its buffered batches.
            self.left.retain(|left| self.known.keeps(left.seq, false));
        }
        disk.forget_failures();
        match self.open_store() {
            Ok(_) if disk.is_dead() => Ok(()),
            Ok(store) => self.adopt(store),
            Err(_) if disk.is_dead() => Ok(()),
            Err(error) => {
                self.refused("open the store", error)?;
                // The faults end, and a new process starts.
                disk.die();
                self.go_on_in_next_world(&disk, false, &mut Seeded::new(disk.changes()));
                self.open_soundly()
            }
        }
    }

    /// Accepts an opened store, if it holds what it must.
    fn adopt(&mut self, store: Store) -> Outcome {
        let contents = self.contents_of(&store)?;
        self.adopt_with(store, &contents)
    }

    pub(super) fn contents_of(&self, store: &Store) -> Result<Contents, String> {
        let Some(disk) = &self.disk else { return Ok(Contents::new()) };
        disk.aside(|| contents(store)).map_err(said("read the store after a crash"))
    }

    /// The state of an opened store as a number: the world after the opening, and the contents of
    /// the store. Some time passes before it continues, so that the number of calls of the opening
    /// does not matter.
    pub(super) fn print_of(&self, store: &Store, contents: &Contents) -> u64 {
        let mut print = DefaultHasher::new();
        if let Some(disk) = &self.disk {
            disk.pause_alike();
            disk.print().hash(&mut print);
        }
        store.last_seq().hash(&mut print);
        for (table, rows) in contents {
            (table, rows.len()).hash(&mut print);
            for row in rows {
                let row = row.as_ref().map(|(key, value)| (hash64(0, key), hash64(1, value)));
                row.hash(&mut print);
            }
        }
        print.finish()
    }

    /// As [`Player::adopt`], with known contents.
    pub(super) fn adopt_with(&mut self, store: Store, contents: &Contents) -> Outcome {
        let Some(disk) = self.disk.clone() else { return Ok(()) };
        if self.epoch_ms == 0 {
            self.epoch_ms = unix_ms(store.now());
        }
        self.known.model.set_time(unix_ms(store.now()));
        let fitting = self.known.fitting(contents, u64::from(store.last_seq()))?;
        self.is_created = true;
        self.store = Some(store.clone());
        let mut outcome = Ok(());
        for (at, Fitting { end, known }) in fitting.into_iter().enumerate() {
            self.known = known;
            self.stood = (at == 0).then_some((u64::from(store.last_seq()), end));
            outcome = self
                .settle_rules(&store)
                .and_then(|()| self.settle_indexes(&store))
                .and_then(|()| disk.aside(|| self.compare()));
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// No file is left over and none is missing: after opening, and once more after closing, in
    /// another world.
    pub(super) fn check_files(&self) -> Outcome {
        let Some(disk) = &self.disk else { return Ok(()) };
        let open = disk.fork();
        let (wanted, logs, is_held) = files_wanted(&open, &self.dir)?;
        let mut found = names(&open, &self.dir);
        found.retain(|name| !logs.contains(name));
        same("the directory after opening", &found, &wanted)?;
        if !is_held {
            same("the number of segments after opening", &logs.len(), &1)?;
        }

        let next = Player { disk: Some(disk.after_death()), ..Player::new(self.settings, &self.dir, None) };
        let store = Store::open(&self.dir, next.options()).map_err(said("open the store again"))?;
        store.close().map_err(said("close the store that was opened again"))?;
        let Some(disk) = &next.disk else { return Ok(()) };
        let (wanted, logs, is_held) = files_wanted(disk, &self.dir)?;
        let mut found = names(disk, &self.dir);
        found.retain(|name| !is_held || !logs.contains(name));
        same("the directory after closing", &found, &wanted)
    }

    /// Opens the store for reading in another world, where nothing may change.
    pub(super) fn look_only_aside(&self) -> Outcome {
        let Some(disk) = &self.disk else { return Ok(()) };
        let next = Player { disk: Some(disk.after_death()), ..Player::new(self.settings, &self.dir, None) };
        let Some(disk) = &next.disk else { return Ok(()) };
        let before = disk.names(&self.dir);
        let opened = Store::open_read_only(&self.dir, next.options());
        let store = opened.map_err(said("open for reading only"))?;
        let contents = contents(&store).map_err(said("read a store that is open for reading"))?;
        let mut known = self.known.clone();
        known.model.set_time(unix_ms(store.now()));
        known.settle(&contents, u64::from(store.last_seq()))?;
        drop(store);
        same("the directory after looking", &disk.names(&self.dir), &before)
    }
}

/// The world that the next process finds. Sets the promises in it.
pub(super) fn next_world(disk: &SimDisk, power: bool, known: &mut Known, chance: &mut Seeded) -> SimDisk {
    let next = if power { disk.after_power_cut(chance) } else { disk.after_death() };
    if power {
        known.power_is_gone();
    } else if next.has_lost() && chance.one_in(2) {
        next.evict();
        next.note("what failed syncs have lost is evicted");
        known.power_is_gone();
    }
    next
}

pub(super) fn names(disk: &SimDisk, dir: &Path) -> BTreeSet<String> {
    disk.names(dir).into_iter().map(|(name, _)| name).collect()
}

/// The files that must exist according to the manifest, the existing segments, and whether a feed
/// holds some.
fn files_wanted(disk: &SimDisk, dir: &Path) -> Result<(BTreeSet<String>, Vec<String>, bool), String> {
    let loaded = folddb_manifest::load(&disk.host(), dir).map_err(said("load the manifest"))?;
    let mut wanted: BTreeSet<String> =
        loaded.state.part_files().map(|number| FileName::Part(number).to_string()).collect();
    wanted.extend(loaded.state.index_files().map(|number| FileName::Index(number).to_string()));
    wanted.extend(loaded.state.values.keys().map(|&number| loaded.state.values_name(number).to_string()));
    wanted.extend(loaded.state.relocated_files.keys().map(|&number| FileName::Relocated(number).to_string()));
    let kept = loaded.state.feeds.archived().iter().map(|kept| FileName::ArchivedLog(kept.file).to_string());
    wanted.extend(kept);
    wanted
        .extend([FileName::Format, FileName::Lock, FileName::Manifest(loaded.number)].map(|f| f.to_string()));
    let logs = names(disk, dir).into_iter().filter(|name| name.ends_with(".log")).collect();
    Ok((wanted, logs, loaded.state.feeds.from_lsn().is_some()))
}

impl Player {
    pub(super) fn create_store(&mut self) -> Outcome {
        let options = self.reporting();
        match Store::create(&self.dir, options) {
            Ok(store) => {
                self.epoch_ms = unix_ms(store.now());
                self.store = Some(store);
                self.is_created = true;
                Ok(())
            }
            Err(error) => {
                self.refused("create the store", error)?;
                // It opens if it is whole; otherwise it is created elsewhere.
                if self.disk.as_ref().is_some_and(SimDisk::is_dead) { Ok(()) } else { self.open_soundly() }
            }
        }
    }

    /// Closes the store in one way or another, both of which make all that was committed durable.
    pub(super) fn close(&mut self, close: impl FnOnce(Store) -> folddb::Result<()>) -> Outcome {
        self.let_go();
        let store = self.store.take().ok_or("the store is not open")?;
        let stats = store.stats();
        let closed = close(store);
        self.heard.has_all_of(&stats)?;
        self.makes_durable("close", closed)?;
        self.reopen()
    }

    /// Dropping a store flushes no memtable, but writes and syncs the log, unless calls fail.
    pub(super) fn abandon(&mut self) -> Outcome {
        let was_sound = self.store()?.stats().poisoned_by.is_none();
        self.let_go();
        self.store = None;
        let is_whole = self.disk.as_ref().is_none_or(|disk| disk.failed().is_empty() && !disk.is_dead());
        if was_sound && is_whole {
            self.known.survives_power();
        }
        self.reopen()
    }

    pub(super) fn reopen(&mut self) -> Outcome {
        if self.disk.is_some() {
            return self.next_process();
        }
        let options = self.reporting();
        self.store = Some(Store::open(&self.dir, options).map_err(said("open the store"))?);
        Ok(())
    }

    pub(super) fn look_only(&mut self) -> Outcome {
        if self.disk.is_some() {
            return self.look_only_aside();
        }
        self.let_go();
        self.store = None;
        let options = self.options();
        self.store = Some(Store::open_read_only(&self.dir, options).map_err(said("open for reading only"))?);
        self.tell_time(); // the clock may have gone back over a time that no write has
        self.compare()?;
        if let Some((table, shape)) = self.table(0)? {
            let refused = table.write(WriteOp::Delete, &shape.key(0), &[]).map_err(|error| error.kind());
            same("writing to a store that is open for reading", &refused, &Err(ErrorKind::ReadOnly))?;
        }
        self.store = None;
        self.reopen()
    }
}
