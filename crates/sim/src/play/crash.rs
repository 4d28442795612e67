//! What a player does when a process ends: it lets the next one open the store, perhaps several times in vain, and holds
//! what that finds against what was promised.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use folddb::table_rules::TableKind;
use folddb::{Error, ErrorKind, Store};
use folddb_layout::file_name::FileName;

use super::follow::Consumer;
use super::{Player, said};
use crate::chance::Seeded;
use crate::compare::{Outcome, dump, same};
use crate::known::{Contents, Known};
use crate::program::{Crash, Program, Settings};
use crate::world::SimDisk;

use super::Disagreement;

/// What a dead process leaves: the world, and what is known of the store in it. Any number of next processes may be
/// tried on one.
#[derive(Clone)]
pub struct Wreck {
    settings: Settings,
    dir: PathBuf,
    disk: SimDisk,
    known: Known,
    consumer: Consumer,
    epoch_ms: u64,
    is_created: bool,
    /// How the program wanted the process to end, where it did.
    pending: Option<Crash>,
}

/// Plays a program up to where the process dies in `disk`, or to its end, and returns what is left.
///
/// # Errors
/// A disagreement before that.
pub fn play_until_death(program: &Program, disk: &SimDisk) -> Result<Wreck, Disagreement> {
    let mut player = Player::new(program.settings, &SimDisk::store_dir(), Some(disk.clone()));
    player.consumer.may_be_lost = disk.will_be_full();
    player.compares = false;
    let with_diary = |Disagreement { at, message }| Disagreement {
        at,
        message: format!("{message}\nthe calls before it:\n{}", disk.diary(60)),
    };
    player.create_store().map_err(|message| with_diary(Disagreement { at: 0, message }))?;
    for (at, action) in program.actions.iter().enumerate() {
        if disk.is_dead() {
            break;
        }
        disk.note(format!("action {at}: {action:?}"));
        let done = player.act(action);
        done.map_err(|message| with_diary(Disagreement { at, message: format!("{action:?}: {message}") }))?;
    }
    disk.die();
    Ok(player.wreck())
}

impl Wreck {
    /// Lets the process end as `crash` says, the next one recover, and then `aftermath` be played.
    ///
    /// # Errors
    /// What the next process finds is not what it must, or the aftermath goes wrong.
    pub fn try_crash(&self, crash: &Crash, aftermath: &Program) -> Result<(), Disagreement> {
        let mut player = Player::new(self.settings, &self.dir, Some(self.disk.clone()));
        let played =
            player.rise(self, crash).map_err(|message| Disagreement { at: 0, message }).and_then(|()| {
                player.compares = false;
                player.play(&aftermath.actions)
            });
        played.map_err(|Disagreement { at, message }| {
            let diary = player.disk.as_ref().map(|disk| disk.diary(80)).unwrap_or_default();
            Disagreement { at, message: format!("{message}\nthe calls before it:\n{diary}") }
        })
    }

    /// How many changes the next process makes while it opens the store, if this is how the last one ends.
    pub fn changes_of_opening(&self, crash: &Crash) -> u64 {
        let mut player = Player::new(self.settings, &self.dir, Some(self.disk.clone()));
        player.known = self.known.clone();
        player.go_on_in_next_world(&self.disk, crash.power, &mut Seeded::new(u64::from(crash.seed)));
        let Some(disk) = player.disk.clone() else { return 0 };
        let before = disk.changes();
        let opened = Store::open(&player.dir, player.options());
        let changes = disk.changes() - before;
        disk.die();
        drop(opened);
        changes
    }
}

impl Player {
    fn wreck(&mut self) -> Wreck {
        self.let_go();
        self.beside = None;
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
        self.known = wreck.known.clone();
        self.consumer = wreck.consumer.clone();
        self.epoch_ms = wreck.epoch_ms;
        self.is_created = wreck.is_created;
        self.go_on_in_next_world(&wreck.disk, crash.power, chance);
        for &(after, power) in &crash.openings {
            let Some(disk) = self.disk.clone() else { break };
            disk.die_after(u64::from(after));
            self.open_and_die(&disk)?;
            self.go_on_in_next_world(&disk, power, chance);
        }
        self.open_soundly()
    }

    fn go_on_in_next_world(&mut self, disk: &SimDisk, power: bool, chance: &mut Seeded) {
        let next = if power { disk.after_power_cut(chance) } else { disk.after_death() };
        if power {
            // What is lost may have its seq taken by another write, of which a cursor knows nothing: see `Resume::Strict`.
            self.left.retain(|left| self.known.keeps_through_power(left.seq));
            self.known.power_is_gone();
        } else if next.has_lost() && chance.one_in(2) {
            next.evict();
            next.note("what failed syncs have lost is evicted");
            self.known.power_is_gone();
        }
        self.disk = Some(next);
        self.beside = None;
        self.consumer.beside = None;
        self.was_full = false;
    }

    /// Opens the store, which a process may have sealed before it died.
    fn open_store(&self) -> folddb::Result<Store> {
        if Store::is_sealed(&self.dir, &self.options()) {
            Store::unseal(&self.dir, self.options())?;
        }
        Store::open(&self.dir, self.options())
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
            Err(error) if error.kind() == ErrorKind::NoStore && !self.is_created => Ok(()),
            Err(error) => Err(said("open the store after a crash")(error)),
        }
    }

    /// An opening in a world that works: it must go well.
    pub(super) fn open_soundly(&mut self) -> Outcome {
        if let Some(disk) = &self.disk {
            disk.forget_failures();
        }
        match self.open_store() {
            Ok(store) => {
                self.adopt(store)?;
                self.check_files()
            }
            // Its making was cut short: it is no store yet, and another place will do.
            Err(error) if error.kind() == ErrorKind::NoStore && !self.is_created => {
                self.dir.set_extension("again");
                self.create_store()
            }
            Err(error) => Err(said("open the store after a crash")(error)),
        }
    }

    /// Opens the store once more in a process that goes on, whose calls may fail still.
    pub(super) fn next_process(&mut self) -> Outcome {
        let Some(disk) = self.disk.clone() else { return Ok(()) };
        disk.forget_failures();
        match self.open_store() {
            Ok(_) if disk.is_dead() => Ok(()),
            Ok(store) => self.adopt(store),
            Err(_) if disk.is_dead() => Ok(()),
            Err(error) => {
                self.refused("open the store", error)?;
                // What failed goes away, and a new process comes.
                disk.die();
                self.go_on_in_next_world(&disk, false, &mut Seeded::new(disk.changes()));
                self.open_soundly()
            }
        }
    }

    /// Takes a store that has been opened, if it holds what it must.
    fn adopt(&mut self, store: Store) -> Outcome {
        let Some(disk) = self.disk.clone() else { return Ok(()) };
        let contents = disk.aside(|| contents(&store)).map_err(said("read the store after a crash"))?;
        if self.epoch_ms == 0 {
            self.epoch_ms = store.unix_millis();
        }
        self.known.model.set_time(store.unix_millis());
        let fitting = self.known.fitting(&contents, store.last_seq())?;
        self.is_created = true;
        self.store = Some(store.clone());
        let mut outcome = Ok(());
        for known in fitting {
            self.known = known;
            outcome = self.settle_indexes(&store).and_then(|()| disk.aside(|| self.compare()));
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// No file is left over and none is missing: after opening, and once more after closing, in another world.
    fn check_files(&self) -> Outcome {
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
        let opened = Store::open(&self.dir, next.options().read_only(true));
        let store = opened.map_err(said("open for reading only"))?;
        let contents = contents(&store).map_err(said("read a store that is open for reading"))?;
        let mut known = self.known.clone();
        known.model.set_time(store.unix_millis());
        known.settle(&contents, store.last_seq())?;
        drop(store);
        same("the directory after looking", &disk.names(&self.dir), &before)
    }

    /// Flips bits of a byte of a part or segment in another world: what is read is right, or an error that names the file.
    pub(super) fn rot(&self, disk: &SimDisk, file: u8, place: u16, bits: u8) -> Outcome {
        let next = Player { disk: Some(disk.after_death()), ..Player::new(self.settings, &self.dir, None) };
        let Some(disk) = &next.disk else { return Ok(()) };
        let is_data = |name: &str| [".part", ".log", ".index"].iter().any(|kind| name.ends_with(kind));
        let files: Vec<_> = disk.names(&self.dir).into_iter().filter(|(name, _)| is_data(name)).collect();
        let Some((name, len_bytes)) = files.get(usize::from(file) % files.len().max(1)) else {
            return Ok(());
        };
        // Segments are mostly empty: their beginning is where it hurts.
        let span = if name.ends_with(".log") { (*len_bytes).min(40_000) } else { *len_bytes };
        if !disk.rot(&self.dir.join(name), (u64::from(place) * span) >> 16, bits) {
            return Ok(());
        }
        // A version number that has rotted cannot be told from a newer one.
        let is_named = |error: &Error| match error.kind() {
            ErrorKind::Corruption => error.to_string().contains(name) || error.to_string().contains("LSN"),
            ErrorKind::NewerFormat => error.to_string().contains(name),
            _ => false,
        };
        let rotten = |error: Error| match is_named(&error) {
            true => Ok(()),
            false => Err(format!("{name} has rotted, and that is told as {error:?}")),
        };
        let store = match Store::open(&self.dir, next.options()) {
            Ok(store) => store,
            Err(error) => return rotten(error),
        };
        let mut known = self.known.clone();
        known.model.set_time(store.unix_millis());
        if name.ends_with(".log") {
            known.nothing_is_promised(); // nothing vouches for the last group of the log yet
        }
        match contents(&store) {
            Ok(contents) => known.settle(&contents, store.last_seq()),
            Err(error) => rotten(error),
        }
    }
}

/// All that is in a store.
pub(super) fn contents(store: &Store) -> folddb::Result<Contents> {
    store
        .tables()
        .into_iter()
        .map(|name| {
            let table = store.bytes_table(&name)?;
            let mut rows = dump(table.scan())?;
            if table.rules().rules.kind == TableKind::Hashed {
                rows.sort(); // as the model has them
            }
            Ok((name, rows))
        })
        .collect()
}

fn names(disk: &SimDisk, dir: &Path) -> BTreeSet<String> {
    disk.names(dir).into_iter().map(|(name, _)| name).collect()
}

/// The files that there must be, by the manifest, and the segments that there are, and whether a feed holds some.
fn files_wanted(disk: &SimDisk, dir: &Path) -> Result<(BTreeSet<String>, Vec<String>, bool), String> {
    let loaded = folddb_manifest::load(&disk.host(), dir).map_err(said("load the manifest"))?;
    let mut wanted: BTreeSet<String> =
        loaded.state.part_files().map(|number| FileName::Part(number).to_string()).collect();
    wanted.extend(loaded.state.index_files().map(|number| FileName::Index(number).to_string()));
    wanted.extend(loaded.state.values.keys().map(|&number| loaded.state.values_name(number).to_string()));
    wanted.extend(loaded.state.moved_files.keys().map(|&number| FileName::Moved(number).to_string()));
    let kept = loaded.state.feeds.kept().iter().map(|kept| FileName::Kept(kept.file).to_string());
    wanted.extend(kept);
    wanted
        .extend([FileName::Format, FileName::Lock, FileName::Manifest(loaded.number)].map(|f| f.to_string()));
    let logs = names(disk, dir).into_iter().filter(|name| name.ends_with(".log")).collect();
    Ok((wanted, logs, loaded.state.feeds.from_lsn().is_some()))
}
