//! What a player does when a process ends: it lets the next one open the store, perhaps several times in vain, and holds
//! what that finds against what was promised.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb::table_rules::TableKind;
use folddb::{Error, ErrorKind, Seq, Store};
use folddb_base::checksum::hash64;
use folddb_layout::file_name::FileName;
use parking_lot::Mutex;

use super::follow::Consumer;
use super::{Player, said};
use crate::chance::Seeded;
use crate::compare::{Outcome, dump, same};
use crate::known::{Contents, Fitting, Known, Stood};
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
    prints: Prints,
}

/// The prints of what is known up to some seqs, as far as anybody has asked. Wrecks share them that differ in their
/// worlds and promises alone.
type Prints = Arc<Mutex<BTreeMap<Seq, u64>>>;

/// A world that a process finds, and what is known of the store in it.
pub struct Found(Wreck);

/// The worlds that were judged so far, and what came of it.
///
/// What a process finds decides what it does: the files with their names, what of them is durable, the clocks, and
/// chance. To another one that finds the same, with the same history up to the last seq that is in the store, the same
/// happens; all that may differ is what had been promised by then, so that alone is compared. The same holds of what the
/// opening has made of it, as far as that can be seen: the disk, and all rows that the open store gives. So each world is
/// opened once, and each that openings lead to is gone on with once.
///
/// Of those that are passed over for that, one in so many is played all the same, and must end in the same world.
#[derive(Debug)]
pub struct Judged {
    found: HashMap<u64, Ending>,
    opened: HashMap<u64, Ending>,
    counts: Counts,
    again_each: u64,
}

/// How many crashes were judged, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// All of them.
    pub crashes: u64,
    /// A process found what another had found before.
    pub found_alike: u64,
    /// It opened the store, and then had what another had had.
    pub opened_alike: u64,
    /// How many of both were played once more.
    pub again: u64,
}

/// Where a store stood when it was opened, and the world that it ended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ending {
    stood: Stood,
    world: u64,
}

impl Judged {
    /// None so far. Of those that are alike one in so many is played once more.
    pub fn again_each(again_each: u64) -> Judged {
        Judged {
            found: HashMap::new(),
            opened: HashMap::new(),
            counts: Counts::default(),
            again_each: again_each.max(1),
        }
    }

    /// How many there were.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether this one is to be played although it is alike.
    fn plays_again(&mut self) -> bool {
        let alike = self.counts.found_alike + self.counts.opened_alike;
        let plays = alike.is_multiple_of(self.again_each);
        self.counts.again += u64::from(plays);
        plays
    }
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
    /// What the next process finds, where the power goes or where it does not.
    pub fn next(&self, power: bool, chance: &mut Seeded) -> Found {
        let mut known = self.known.clone();
        let disk = next_world(&self.disk, power, &mut known, chance);
        Found(Wreck { disk, known, ..self.clone() })
    }

    /// All that decides what comes of a store with this last seq, but for the world and what was promised.
    fn print(&self, last_seq: Seq) -> u64 {
        let of_wreck = || {
            let mut print = DefaultHasher::new();
            (self.known.print(last_seq), self.consumer.print()).hash(&mut print);
            (&self.dir, self.epoch_ms, self.is_created).hash(&mut print);
            print.finish()
        };
        *self.prints.lock().entry(last_seq).or_insert_with(of_wreck)
    }
}

impl Found {
    /// The wrecks that are left where the process dies before each of the changes that it makes while it opens the store.
    pub fn dying_in_opening(&self) -> Vec<Wreck> {
        let worlds = self.0.disk.before_changes(|disk| {
            let opened = self.player(disk).open_store();
            disk.die();
            drop(opened);
        });
        worlds.into_iter().map(|disk| Wreck { disk, ..self.0.clone() }).collect()
    }

    /// The process opens the store, and then `aftermath` is played; unless it is known from another what would come of it.
    ///
    /// # Errors
    /// What it finds is not what it must be, or the aftermath goes wrong, or it goes another way than with the other.
    pub fn judge(&self, aftermath: &Program, judged: &mut Judged) -> Result<(), Disagreement> {
        judged.counts.crashes += 1;
        let world = self.0.disk.print();
        let ending = judged.found.get(&world).copied().filter(|ending| self.stands_like(ending));
        judged.counts.found_alike += u64::from(ending.is_some());
        if ending.is_some() && !judged.plays_again() {
            return Ok(());
        }
        let mut player = self.player(&self.0.disk.fork());
        let ended = self.play(&mut player, aftermath, ending, judged).map_err(|why| {
            let diary = player.disk.as_ref().map(|disk| disk.diary(80)).unwrap_or_default();
            Disagreement { message: format!("{}\nthe calls before it:\n{diary}", why.message), ..why }
        })?;
        judged.found.extend(ended.map(|ended| (world, ended)));
        Ok(())
    }

    /// Whether a process that stood there knew the same, and what was promised here is kept there.
    fn stands_like(&self, Ending { stood, .. }: &Ending) -> bool {
        self.0.known.is_kept_by(stood) && self.0.print(stood.last_seq) == stood.print
    }

    fn player(&self, disk: &SimDisk) -> Player {
        let mut player = Player::new(self.0.settings, &self.0.dir, Some(disk.clone()));
        player.take_over(&self.0);
        player
    }

    /// Where the store stood, and where that ends; none where it was made anew, or stood where it might have stood otherwise.
    /// `known` is what came of it before, if anything did.
    fn play(
        &self,
        player: &mut Player,
        aftermath: &Program,
        known: Option<Ending>,
        judged: &mut Judged,
    ) -> Result<Option<Ending>, Disagreement> {
        let at_first = |message| Disagreement { at: 0, message };
        let store = match player.open_store() {
            Ok(store) => store,
            Err(error) => {
                player.not_opened(error).map_err(at_first)?;
                player.compares = false;
                return player.play(&aftermath.actions).map(|()| None);
            }
        };
        let contents = player.contents_of(&store).map_err(at_first)?;
        let opened = player.print_of(&store, &contents);
        let mut ending = known;
        if ending.is_none() {
            ending = judged.opened.get(&opened).copied().filter(|ending| self.stands_like(ending));
            judged.counts.opened_alike += u64::from(ending.is_some());
            if ending.is_some() && !judged.plays_again() {
                player.disk.iter().for_each(SimDisk::die);
                return Ok(ending);
            }
        }
        player.adopt_with(store, &contents).and_then(|()| player.check_files()).map_err(at_first)?;
        let stood = player.stood.take();
        player.compares = false;
        player.play(&aftermath.actions)?;
        player.disk.iter().for_each(SimDisk::pause_alike); // reads may have been spared by what a cache had
        let world = player.disk.as_ref().map_or(0, SimDisk::print);
        let played = stood.map(|(last_seq, end)| {
            let stood = Stood { last_seq, end, print: self.0.print(last_seq) };
            Ending { stood, world }
        });
        if ending.is_some() && ending != played {
            return Err(at_first(format!("what began alike ends as {played:?} and not as {ending:?}")));
        }
        judged.opened.extend(played.map(|played| (opened, played)));
        Ok(played)
    }
}

/// The world that the next process finds. Sets what is promised in it.
fn next_world(disk: &SimDisk, power: bool, known: &mut Known, chance: &mut Seeded) -> SimDisk {
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

    fn take_over(&mut self, wreck: &Wreck) {
        self.known = wreck.known.clone();
        self.consumer = wreck.consumer.clone();
        self.epoch_ms = wreck.epoch_ms;
        self.is_created = wreck.is_created;
    }

    fn go_on_in_next_world(&mut self, disk: &SimDisk, power: bool, chance: &mut Seeded) {
        if power {
            // What is lost may have its seq taken by another write, of which a cursor knows nothing: see `Resume::Strict`.
            self.left.retain(|left| self.known.keeps_through_power(left.seq));
        }
        self.disk = Some(next_world(disk, power, &mut self.known, chance));
        self.beside = None;
        self.consumer.beside = None;
        self.was_full = false;
    }

    /// Opens the store, which a process may have frozen before it died.
    fn open_store(&self) -> folddb::Result<Store> {
        if Store::is_frozen(&self.dir, &self.options()) {
            Store::thaw(&self.dir, self.options())?;
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
            Err(error) if error.kind() == ErrorKind::StoreNotFound && !self.is_created => Ok(()),
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
            Err(error) => self.not_opened(error),
        }
    }

    /// Its making was cut short: then it is no store yet, and another place will do.
    fn not_opened(&mut self, error: Error) -> Outcome {
        if error.kind() == ErrorKind::StoreNotFound && !self.is_created {
            self.dir.set_extension("again");
            return self.create_store();
        }
        Err(said("open the store after a crash")(error))
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
        let contents = self.contents_of(&store)?;
        self.adopt_with(store, &contents)
    }

    fn contents_of(&self, store: &Store) -> Result<Contents, String> {
        let Some(disk) = &self.disk else { return Ok(Contents::new()) };
        disk.aside(|| contents(store)).map_err(said("read the store after a crash"))
    }

    /// What an opened store has come to, as a number: the world that the opening has left, and what the store shows. Some
    /// time passes before it goes on, so that it does not matter how many calls the opening took.
    fn print_of(&self, store: &Store, contents: &Contents) -> u64 {
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

    /// As [`Player::adopt`], where it is known what is in it.
    fn adopt_with(&mut self, store: Store, contents: &Contents) -> Outcome {
        let Some(disk) = self.disk.clone() else { return Ok(()) };
        if self.epoch_ms == 0 {
            self.epoch_ms = store.unix_millis();
        }
        self.known.model.set_time(store.unix_millis());
        let fitting = self.known.fitting(contents, store.last_seq())?;
        self.is_created = true;
        self.store = Some(store.clone());
        let mut outcome = Ok(());
        for (at, Fitting { end, known }) in fitting.into_iter().enumerate() {
            self.known = known;
            self.stood = (at == 0).then_some((store.last_seq(), end));
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
        let opened = Store::open_read_only(&self.dir, next.options());
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
    wanted.extend(loaded.state.relocated_files.keys().map(|&number| FileName::Relocated(number).to_string()));
    let kept = loaded.state.feeds.kept().iter().map(|kept| FileName::Kept(kept.file).to_string());
    wanted.extend(kept);
    wanted
        .extend([FileName::Format, FileName::Lock, FileName::Manifest(loaded.number)].map(|f| f.to_string()));
    let logs = names(disk, dir).into_iter().filter(|name| name.ends_with(".log")).collect();
    Ok((wanted, logs, loaded.state.feeds.from_lsn().is_some()))
}
