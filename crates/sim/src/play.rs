//! Plays a program on a store and on the model, and compares them after every action: every key by `get`, a
//! scan of every table, counts, at the present and at every live snapshot.
//!
//! A program is played on real files ([`play`]), or in a simulated world ([`play_in`]), where it may also crash, in the
//! middle of anything, and where calls may fail. What a store must hold after that is told by what was acknowledged
//! before: `known.rs`.
//!
//! ```text
//!   play     the player, and what opens, closes and tends its store
//!   write    single ops, streams, batches; what is noted of them        look     comparing everything, scans
//!   strike   time, faults                                               crash    the process ends, and the next one opens
//!   transact transactions    load    bulk loads    cursors    scans that are left
//!   others   a second store, readers beside, a frozen store, tables made anew from their logs
//!   past     what tables keep of their past, and snapshots of it
//!   index    indexes      follow    the change feed, read in the store and beside it      ages    how old snapshots become
//!   clock    the time between actions
//! ```

mod ages;
mod ask;
mod clock;
mod crash;
mod cursors;
mod follow;
mod index;
mod load;
mod look;
mod others;
mod past;
mod strike;
mod transact;
mod write;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb::{
    BackgroundJob, BackgroundWork, BytesTable, Durability, Error, ErrorKind, Options, Seq, Snapshot, Store,
    WriteOp,
};
use folddb_host::Host;

use crate::compare::{Outcome, same};
use crate::known::{Contents, Known};
use crate::program::{Action, Crash, MANY_TABLES, Program, Settings, TABLES, TableOp, What};
use crate::tables::{Kind, Order, Shape, with_customs};
use crate::world::SimDisk;
use clock::HeldClock;
use cursors::Left;
use follow::Consumer;
use load::Loading;
use past::Past;
use transact::Running;

pub use crash::{Counts, Found, Judged, Wreck, play_until_death};

/// Where a program and its store part ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The index of the action after which they do.
    pub at: usize,
    /// What differs.
    pub message: String,
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "after action {}: {}", self.at, self.message)
    }
}

/// Plays a program in a directory that does not exist yet. What it says of crashes and faults is passed over.
///
/// # Errors
/// The first disagreement of store and model.
pub fn play(program: &Program, dir: &Path) -> Result<(), Disagreement> {
    Player::new(program.settings, dir, None).play_on_files(program)
}

/// As [`play`], with a clock that is read between the actions only: for a machine whose clock jumps.
///
/// # Errors
/// The first disagreement of store and model.
pub fn play_by_held_clock(program: &Program, dir: &Path) -> Result<(), Disagreement> {
    let clock = Some(Arc::new(HeldClock::new()));
    Player { clock, ..Player::new(program.settings, dir, None) }.play_on_files(program)
}

/// Plays a program in a simulated world. The diary of `disk` goes on in the world that it ends in, which is returned.
///
/// # Errors
/// The first disagreement of store and model, with the end of the diary.
pub fn play_in(program: &Program, disk: &SimDisk) -> Result<SimDisk, Disagreement> {
    let mut player = Player::new(program.settings, &SimDisk::store_dir(), Some(disk.clone()));
    let played = player
        .create_store()
        .map_err(|message| Disagreement { at: 0, message })
        .and_then(|()| player.play(&program.actions));
    let disk = player.disk.clone().unwrap_or_else(|| disk.clone());
    match played {
        Ok(()) => Ok(disk),
        Err(Disagreement { at, message }) => {
            Err(Disagreement { at, message: format!("{message}\nthe calls before it:\n{}", disk.diary(60)) })
        }
    }
}

fn name_of(slot: u8) -> String {
    format!("t{slot}")
}

struct Player {
    dir: PathBuf,
    settings: Settings,
    /// The world, where it is a simulated one.
    disk: Option<SimDisk>,
    /// The clock, where it is not the world's own.
    clock: Option<Arc<HeldClock>>,
    /// Absent for moments only.
    store: Option<Store>,
    snapshots: Vec<Snapshot>,
    /// Snapshots of moments that were over when they were taken.
    pasts: Vec<Past>,
    /// Transactions under way.
    transactions: Vec<Running>,
    /// Scans that were left: they outlive processes.
    left: Vec<Left>,
    /// The store as it was opened beside this one the last time, and all that was in it.
    beside: Option<(Store, Contents)>,
    /// A bulk load under way.
    loading: Option<Loading>,
    /// Who follows the store's feed.
    consumer: Consumer,
    known: Known,
    /// How the process that is about to die will.
    pending: Option<Crash>,
    /// True once the disk of this process was full.
    was_full: bool,
    /// Whether store and model are compared after every action, or only after crashes.
    compares: bool,
    /// True once the store was made and its making acknowledged.
    is_created: bool,
    /// When the store was made.
    epoch_ms: u64,
    /// The last seq of the store when it was opened last, and the end of the history that it held; none where it might
    /// have been another.
    stood: Option<(Seq, Seq)>,
}

fn said(doing: &str) -> impl Fn(Error) -> String + '_ {
    move |error| format!("cannot {doing}: {error:?}")
}

impl Player {
    fn new(settings: Settings, dir: &Path, disk: Option<SimDisk>) -> Player {
        Player {
            dir: dir.to_owned(),
            settings,
            disk,
            clock: None,
            store: None,
            snapshots: Vec::new(),
            pasts: Vec::new(),
            transactions: Vec::new(),
            left: Vec::new(),
            beside: None,
            loading: None,
            consumer: Consumer::default(),
            known: Known::default(),
            pending: None,
            was_full: false,
            compares: true,
            is_created: false,
            epoch_ms: 0,
            stood: None,
        }
    }

    fn play_on_files(mut self, program: &Program) -> Result<(), Disagreement> {
        self.create_store().map_err(|message| Disagreement { at: 0, message })?;
        self.play(&program.actions)
    }

    fn create_store(&mut self) -> Outcome {
        match Store::create(&self.dir, self.options()) {
            Ok(store) => {
                self.epoch_ms = store.unix_millis();
                self.store = Some(store);
                self.is_created = true;
                Ok(())
            }
            Err(error) => {
                self.refused("create the store", error)?;
                // Where it is whole all the same it opens; else it is made elsewhere.
                if self.disk.as_ref().is_some_and(SimDisk::is_dead) { Ok(()) } else { self.open_soundly() }
            }
        }
    }

    fn play(&mut self, actions: &[Action]) -> Result<(), Disagreement> {
        for (at, action) in actions.iter().enumerate() {
            if let Some(disk) = &self.disk {
                disk.note(format!("action {at}: {action:?}"));
            }
            let done = self.act(action).and_then(|()| self.after_action(action));
            done.map_err(|message| Disagreement { at, message: format!("{action:?}: {message}") })?;
        }
        Ok(())
    }

    /// Looks at what an action has left: a dead process, or a store to compare.
    fn after_action(&mut self, action: &Action) -> Outcome {
        if self.disk.as_ref().is_some_and(SimDisk::is_dead) {
            return self.perish();
        }
        self.tell_time();
        self.let_go_of_ended()?;
        if !self.compares || action.is_look() {
            return Ok(());
        }
        match self.disk.clone() {
            Some(disk) => disk.aside(|| self.compare()),
            None => self.compare(),
        }
    }

    fn options(&self) -> Options {
        let options = Options::default()
            .memory_bytes(4 << 20)
            .merge_factor(self.settings.merge_factor)
            .part_bytes(64 << 10)
            .segment_bytes(1 << 20)
            .value_segment_bytes(32 << 10)
            .stream_piece_bytes(4 << 10)
            .disk_reserve_bytes(0)
            .append_mode(self.settings.append_mode)
            .background(self.settings.background);
        let options = match (&self.disk, &self.clock) {
            (Some(disk), _) => options.host(disk.host()),
            (None, Some(clock)) => options.host(Host { clock: clock.clone(), ..Host::real() }),
            (None, None) => options,
        };
        with_customs(self.with_ages(options))
    }

    /// What an error means: where the process is dead or calls have failed, that is what they do; else it is a
    /// disagreement.
    fn refused(&self, doing: &str, error: Error) -> Outcome {
        let excused = self.disk.as_ref().is_some_and(|disk| {
            let lacks_space = self.was_full && error.kind() == ErrorKind::NoSpace;
            disk.is_dead() || lacks_space || !disk.failed().is_empty()
        });
        if excused { Ok(()) } else { Err(said(doing)(error)) }
    }

    fn store(&self) -> Result<&Store, String> {
        self.store.as_ref().ok_or_else(|| "the store is not open".to_owned())
    }

    fn table(&self, slot: u8) -> Result<Option<(BytesTable, Shape)>, String> {
        let name = name_of(slot);
        let Some(shape) = self.known.model.shape(&name) else { return Ok(None) };
        let table = self.store()?.bytes_table(&name).map_err(said("open the table"))?;
        Ok(Some((table, shape)))
    }

    fn snapshot(&self, index: u8) -> Option<&Snapshot> {
        self.snapshots.get(usize::from(index) % self.snapshots.len().max(1))
    }

    fn act(&mut self, action: &Action) -> Outcome {
        self.tell_time();
        match action {
            Action::Create(slot, shape) => self.create(*slot, shape),
            Action::Drop(slot) => self.drop_table(*slot),
            Action::Many(count) => self.many(*count),
            Action::Write(op) => self.write(op),
            Action::Commit(ops, durability) => self.commit(ops, *durability),
            Action::Snapshot => {
                let snapshot = self.store()?.snapshot();
                same("the seq of the snapshot", &snapshot.seq(), &self.known.model.last_seq())?;
                self.snapshots.push(snapshot);
                Ok(())
            }
            Action::Release(index) => {
                if !self.snapshots.is_empty() {
                    self.snapshots.swap_remove(usize::from(*index) % self.snapshots.len());
                }
                Ok(())
            }
            Action::Flush => {
                let flushed = self.store()?.flush();
                self.makes_durable("flush", flushed)
            }
            Action::Step(steps) => self.steps(*steps),
            Action::Settle => {
                let settled = self.store()?.settle();
                self.makes_durable("settle", settled)
            }
            Action::Reclaim => {
                let reclaimed = self.store()?.reclaim(|_| {}).map(drop);
                self.makes_durable("reclaim", reclaimed)
            }
            Action::Compact(slot, stop_after) => self.compact(*slot, *stop_after),
            Action::AddIndex(slot, stop_after) => self.add_index(*slot, *stop_after),
            Action::DropIndex(slot) => self.drop_index(*slot),
            Action::Past(slot, back) => self.take_past(*slot, *back),
            Action::Scan(slot, at, scan) => self.scan(*slot, *at, scan),
            Action::Sync => {
                let synced = self.store()?.sync();
                self.makes_durable("sync", synced)
            }
            Action::Close => self.close(),
            Action::Abandon => self.abandon(),
            Action::LookOnly => self.look_only(),
            Action::Background(work) => self.background(*work),
            Action::Follow(follow) => self.follow(follow),
            Action::FollowSecondary(follow) => self.follow_secondary(follow),
            Action::Transact(step) => self.transact(step),
            Action::Load(step) => self.load(step),
            Action::Cursor(step) => match self.disk.clone() {
                Some(disk) => disk.aside(|| self.cursor(step)),
                None => self.cursor(step),
            },
            Action::Other(other) => self.other(*other),
            Action::Clock(_, _)
            | Action::Crash(_)
            | Action::Break(_)
            | Action::Heal
            | Action::Rot(_, _, _) => match self.disk.clone() {
                Some(disk) => self.strike(&disk, action),
                None => Ok(()),
            },
        }
    }

    fn makes_durable(&mut self, doing: &str, done: folddb::Result<()>) -> Outcome {
        match done {
            Ok(()) => {
                self.known.survives_power();
                Ok(())
            }
            Err(error) => self.refused(doing, error),
        }
    }

    /// Lets go of all that is of a store that is open.
    fn let_go(&mut self) {
        self.snapshots.clear();
        self.pasts.clear();
        self.transactions.clear();
        self.loading = None;
        self.consumer.feed = None;
    }

    fn close(&mut self) -> Outcome {
        self.let_go();
        let store = self.store.take().ok_or("the store is not open")?;
        let closed = store.close();
        self.makes_durable("close", closed)?;
        self.reopen()
    }

    /// Dropping a store flushes nothing, but hands the log on and syncs it, unless calls fail.
    fn abandon(&mut self) -> Outcome {
        let was_sound = self.store()?.stats().poisoned_by.is_none();
        self.let_go();
        self.store = None;
        let is_whole = self.disk.as_ref().is_none_or(|disk| disk.failed().is_empty() && !disk.is_dead());
        if was_sound && is_whole {
            self.known.survives_power();
        }
        self.reopen()
    }

    fn reopen(&mut self) -> Outcome {
        if self.disk.is_some() {
            return self.next_process();
        }
        self.store = Some(Store::open(&self.dir, self.options()).map_err(said("open the store"))?);
        Ok(())
    }

    fn create(&mut self, slot: u8, shape: &Shape) -> Outcome {
        let name = name_of(slot);
        self.consumer.know(shape);
        let created = self.store()?.create_bytes_table(&name, shape.rules());
        match (created, self.known.model.shape(&name)) {
            (Ok(_), None) => {
                self.known.model.create_table(&name, *shape);
                Ok(())
            }
            (Err(error), Some(_)) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            (Ok(_), Some(_)) => Err("a table was created twice".to_owned()),
            (Err(error), None) => {
                if error.kind() != ErrorKind::NoSpace {
                    self.known.doubt_created(&name, *shape);
                }
                self.refused("create a table", error)
            }
            (Err(error), Some(_)) => self.refused("create a table", error),
        }
    }

    fn drop_table(&mut self, slot: u8) -> Outcome {
        let name = name_of(slot);
        let Some((table, _)) = self.table(slot)? else {
            let refused = self.store()?.drop_table(&name).map_err(|error| error.kind());
            return same("dropping what is not there", &refused, &Err(ErrorKind::TableNotFound));
        };
        if let Err(error) = self.store()?.drop_table(&name) {
            if error.kind() != ErrorKind::NoSpace {
                self.known.doubt_dropped(&name);
            }
            return self.refused("drop a table", error);
        }
        self.known.model.drop_table(&name);
        let refused = table.get(b"").map_err(|error| error.kind());
        same("reading a dropped table", &refused, &Err(ErrorKind::Closed))
    }

    /// Makes or drops tables until there are so many besides those that programs name.
    fn many(&mut self, count: u8) -> Outcome {
        let mut rows = Vec::new();
        for slot in TABLES..TABLES + MANY_TABLES {
            if self.disk.as_ref().is_some_and(SimDisk::is_dead) {
                return Ok(());
            }
            let is_there = self.known.model.shape(&name_of(slot)).is_some();
            match (slot < TABLES + count.min(MANY_TABLES), is_there) {
                (true, false) => {
                    let kind = if slot % 2 == 0 { Kind::Replace } else { Kind::SumU64 };
                    let order = if slot % 10 == 0 { Order::Hashed } else { Order::Bytewise };
                    self.create(slot, &Shape::small(kind, order))?;
                    rows.extend((slot % 7 == 0).then_some(TableOp {
                        table: slot,
                        what: What::Put,
                        key: slot % 5,
                        value: slot,
                        len_bytes: 40,
                    }));
                }
                (false, true) => self.drop_table(slot)?,
                _ => {}
            }
        }
        self.commit(&rows, Durability::Process)
    }

    fn steps(&mut self, steps: u8) -> Outcome {
        // Where threads do the background work they are left alone.
        if self.settings.background == BackgroundWork::Threads {
            return Ok(());
        }
        for _ in 0..steps {
            match self.store()?.background_step() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return self.refused("take a step of background work", error),
            }
        }
        Ok(())
    }

    fn background(&mut self, work: BackgroundJob) -> Outcome {
        if self.settings.background == BackgroundWork::Threads {
            return Ok(());
        }
        match self.store()?.background_step_of(work) {
            Ok(_) => {
                if work == BackgroundJob::Journal && self.store()?.stats().poisoned_by.is_none() {
                    self.known.survives_death();
                }
                Ok(())
            }
            Err(error) => self.refused("take a step of background work", error),
        }
    }

    fn compact(&mut self, slot: u8, stop_after: Option<u8>) -> Outcome {
        let Some((table, _)) = self.table(slot)? else { return Ok(()) };
        let store = self.store()?;
        let (mut looks, mut broke_off) = (0, false);
        let mut progress = |_| {
            looks += 1;
            match stop_after {
                Some(stop) if looks > u32::from(stop) => {
                    broke_off = true;
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        };
        if let Err(error) = store.compact(table.name(), &mut progress) {
            return self.refused("compact", error);
        }
        if broke_off {
            return Ok(());
        }
        let runs = store.table_stats(table.name()).map_err(said("look at the runs"))?.runs.len();
        if runs > 1 { Err(format!("{runs} runs are left by compact")) } else { Ok(()) }
    }

    fn look_only(&mut self) -> Outcome {
        if self.disk.is_some() {
            return self.look_only_aside();
        }
        self.let_go();
        self.store = None;
        let options = self.options();
        self.store = Some(Store::open_read_only(&self.dir, options).map_err(said("open for reading only"))?);
        self.tell_time(); // the clock may have gone back over what nothing was written with
        self.compare()?;
        if let Some((table, shape)) = self.table(0)? {
            let refused = table.write(WriteOp::Delete, &shape.key(0), &[]).map_err(|error| error.kind());
            same("writing to a store that is open for reading", &refused, &Err(ErrorKind::ReadOnly))?;
        }
        self.store = None;
        self.reopen()
    }

    /// The time that the store says it is, for the model.
    fn tell_time(&mut self) {
        self.clock.iter().for_each(|clock| clock.read());
        if let Some(store) = &self.store {
            self.known.model.set_time(store.unix_millis());
        }
    }
}
