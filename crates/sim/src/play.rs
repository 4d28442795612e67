//! Plays a program on a store and on the model, and compares them after every action: every key by `get`, a
//! scan of every table, counts, at the present and at every live snapshot.
//!
//! A program is played on real files ([`play`]), or in a simulated world ([`play_in`]), where it may also crash, in the
//! middle of anything, and where calls may fail. What a store must hold after that is told by what was acknowledged
//! before: `known.rs`. `play/crash.rs` has what happens at a crash.

mod ages;
mod crash;
mod follow;
mod index;

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use folddb::{
    AsOf, BytesTable, Durability, Error, ErrorKind, Expire, Keep, Lifetime, Options, Seq, Snapshot, Store,
    Upkeep, Work, WriteOp,
};
use folddb_base::Stamp;

use crate::compare::{
    Outcome, chosen, compare_aggregate, compare_rows, compare_table, in_chunks, inside, narrow, range, same,
    scan_hashed, scan_prefix,
};
use crate::faulty_files::{Call, Fault};
use crate::known::{Known, Ops};
use crate::model::{Model, ModelOp, ModelRow, Present};
use crate::program::{Action, Breakage, Broken, Crash, Program, ScanShape, Settings, TableOp, What};
use crate::tables::{KEYS, Kind, Order, Shape, with_customs};
use crate::world::SimDisk;
use follow::Consumer;

pub use crash::{Wreck, play_until_death};

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
    let mut player = Player::new(program.settings, dir, None);
    player.create_store().map_err(|message| Disagreement { at: 0, message })?;
    player.play(&program.actions)
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
    /// Absent for moments only.
    store: Option<Store>,
    snapshots: Vec<Snapshot>,
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
            store: None,
            snapshots: Vec::new(),
            consumer: Consumer::default(),
            known: Known::default(),
            pending: None,
            was_full: false,
            compares: true,
            is_created: false,
            epoch_ms: 0,
        }
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
            let done = self.act(action).and_then(|()| self.after_action());
            done.map_err(|message| Disagreement { at, message: format!("{action:?}: {message}") })?;
        }
        Ok(())
    }

    /// Looks at what an action has left: a dead process, or a store to compare.
    fn after_action(&mut self) -> Outcome {
        if self.disk.as_ref().is_some_and(SimDisk::is_dead) {
            return self.perish();
        }
        self.tell_time();
        self.let_go_of_ended()?;
        if !self.compares {
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
            .upkeep(self.settings.upkeep);
        let options = match &self.disk {
            Some(disk) => options.host(disk.host()),
            None => options,
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
            Action::Write(op) => self.write(op),
            Action::Commit(ops, durability) => self.commit(ops, *durability),
            Action::Snapshot => {
                let snapshot = self.store()?.snapshot();
                let seq_wanted =
                    |model: &Model| same("the seq of the snapshot", &snapshot.seq(), &model.last_seq());
                self.with_models(&seq_wanted)?;
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
            Action::Optimize(slot, stop_after) => self.optimize(*slot, *stop_after),
            Action::AddIndex(slot, stop_after) => self.add_index(*slot, *stop_after),
            Action::DropIndex(slot) => self.drop_index(*slot),
            Action::Scan(slot, at, scan) => self.scan(*slot, *at, scan),
            Action::Sync => {
                let synced = self.store()?.sync();
                self.makes_durable("sync", synced)
            }
            Action::Close => self.close(),
            Action::Abandon => self.abandon(),
            Action::LookOnly => self.look_only(),
            Action::Upkeep(work) => self.upkeep(*work),
            Action::Follow(follow) => self.follow(follow),
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

    /// What happens in a simulated world only.
    fn strike(&mut self, disk: &SimDisk, action: &Action) -> Outcome {
        match action {
            Action::Clock(millis, wall_s) => {
                disk.advance(Duration::from_millis(u64::from(*millis)));
                disk.jump_wall(i64::from(*wall_s));
                Ok(())
            }
            Action::Crash(crash) => {
                self.pending = Some(crash.clone());
                match crash.after {
                    0 => disk.die(),
                    changes => disk.die_after(u64::from(changes)),
                }
                Ok(())
            }
            Action::Break(breakage) => {
                self.break_something(disk, breakage);
                Ok(())
            }
            Action::Heal => self.heal(disk),
            Action::Rot(file, place, bits) => self.rot(disk, *file, *place, *bits),
            _ => Ok(()),
        }
    }

    fn break_something(&mut self, disk: &SimDisk, breakage: &Breakage) {
        let Breakage { what, skip, times } = *breakage;
        let on =
            |calls: &[Call]| Fault { skip: u64::from(skip), times: u64::from(times), ..Fault::on(calls) };
        const WRITES: [Call; 2] = [Call::Write, Call::Append];
        const NAMES: [Call; 5] =
            [Call::Create, Call::CreateAppend, Call::Remove, Call::SyncDir, Call::Rename];
        let fault = match what {
            Broken::AnyCall => on(&[]),
            Broken::Write => on(&WRITES),
            Broken::TornWrite => Fault { half: true, ..on(&WRITES) },
            Broken::Sync => on(&[Call::WriteSync, Call::AppendSync]),
            Broken::Name => on(&NAMES),
            Broken::Read => on(&[Call::Read, Call::Open, Call::List, Call::Len]),
            Broken::NoSpace => {
                (self.was_full, self.consumer.may_be_lost) = (true, true);
                Fault { os_error: 28, ..on(&[Call::Write, Call::Create, Call::CreateAppend]) }
            }
            Broken::FullDisk => {
                (self.was_full, self.consumer.may_be_lost) = (true, true);
                return disk.leave_free(Some(u64::from(skip) * (16 << 10)));
            }
            Broken::Slow => return disk.slow_down(4, Duration::from_millis(10 * u64::from(times))),
        };
        disk.break_on(fault);
    }

    /// Mends all, and reopens a store that does not write any more.
    fn heal(&mut self, disk: &SimDisk) -> Outcome {
        disk.heal();
        if self.store()?.stats().poisoned_by.is_some() { self.abandon() } else { Ok(()) }
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

    fn close(&mut self) -> Outcome {
        self.snapshots.clear();
        self.consumer.feed = None;
        let store = self.store.take().ok_or("the store is not open")?;
        let closed = store.close();
        self.makes_durable("close", closed)?;
        self.reopen()
    }

    /// Dropping a store flushes nothing, but hands the log on and syncs it, unless calls fail.
    fn abandon(&mut self) -> Outcome {
        let was_sound = self.store()?.stats().poisoned_by.is_none();
        self.snapshots.clear();
        self.consumer.feed = None;
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
        let created = self.store()?.create_table(&name, shape.rules());
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
            return same("dropping what is not there", &refused, &Err(ErrorKind::UnknownTable));
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

    fn write(&mut self, op: &TableOp) -> Outcome {
        let Some((table, shape)) = self.table(op.table)? else { return Ok(()) };
        let key = shape.key(op.key);
        let value = shape.value(op.value, op.len_bytes);
        if let Some(streamed) = streamed(op, &table, &shape) {
            return self.stream(op, &table, &shape, (streamed, &value));
        }
        let (lifetime, _) = shape.lifetime(op.value, self.store()?.unix_millis(), self.epoch_ms);
        let written = match op.what {
            What::DeleteRange if shape.order == Order::Hashed => return self.rangeless(&table, &shape, op),
            What::DeleteRange => {
                let Some((from, to)) = range(&shape, op) else { return self.upside_down(&table, &shape, op) };
                table.delete_range(&from, &to)
            }
            What::Delete => table.write(WriteOp::Delete, &key, b"ignored"),
            What::Set | What::Insert | What::Fold if lifetime == Lifetime::Default => {
                table.write(write_op(op.what), &key, &value)
            }
            What::Set | What::Insert | What::Fold => {
                table.write_expiring(write_op(op.what), &key, &value, lifetime)
            }
        };
        self.committed(self.op_of(op, &shape)?.into_iter().collect(), Durability::Process, written)
    }

    /// Writes an op as a stream, with upkeep halfway; or drops the writer there.
    fn stream(
        &mut self,
        op: &TableOp,
        table: &BytesTable,
        shape: &Shape,
        (how, value): (WriteOp, &[u8]),
    ) -> Outcome {
        let mut writer = match table.writer(how, &shape.key(op.key)) {
            Ok(writer) => writer,
            Err(error) => return self.refused("begin a stream", error),
        };
        let (mut first, mut second) = value.split_at(value.len() / 2);
        let begun = writer.write_from(&mut first);
        self.steps(3)?;
        if op.value.is_multiple_of(16) {
            return begun.or_else(|error| self.refused("write to a stream", error));
        }
        let written = begun.and_then(|()| writer.write_from(&mut second)).and_then(|()| writer.finish());
        self.committed(self.op_of(op, shape)?.into_iter().collect(), Durability::Process, written)
    }

    fn upside_down(&self, table: &BytesTable, shape: &Shape, op: &TableOp) -> Outcome {
        let refused =
            table.delete_range(&shape.key(op.key), &shape.key(op.key)).map_err(|error| error.kind());
        same("an empty range", &refused, &Err(ErrorKind::InvalidInput))
    }

    fn rangeless(&self, table: &BytesTable, shape: &Shape, op: &TableOp) -> Outcome {
        let refused =
            table.delete_range(&shape.key(op.key), &shape.key(op.value % KEYS)).map_err(|error| error.kind());
        same("a range of a hashed table", &refused, &Err(ErrorKind::InvalidInput))
    }

    fn commit(&mut self, ops: &[TableOp], durability: Durability) -> Outcome {
        let mut batch = self.store()?.batch();
        let mut taken = Ops::new();
        for op in ops {
            let Some((table, shape)) = self.table(op.table)? else { continue };
            let (key, value) = (shape.key(op.key), shape.value(op.value, op.len_bytes));
            let (lifetime, _) = shape.lifetime(op.value, self.store()?.unix_millis(), self.epoch_ms);
            match op.what {
                What::Set | What::Insert | What::Fold if lifetime == Lifetime::Default => {
                    batch.write(&table, write_op(op.what), &key, &value)
                }
                What::Set | What::Insert | What::Fold => {
                    batch.write_expiring(&table, write_op(op.what), &key, &value, lifetime)
                }
                What::Delete => batch.write(&table, WriteOp::Delete, &key, &[]),
                What::DeleteRange if shape.order == Order::Hashed => continue,
                What::DeleteRange => match range(&shape, op) {
                    Some((from, to)) => batch.delete_range(&table, &from, &to),
                    None => continue,
                },
            };
            taken.extend(self.op_of(op, &shape)?);
        }
        same("the length of a batch", &batch.len(), &taken.len())?;
        // What is done to hashed tables is found out last, and has the last seqs of the batch.
        let is_hashed =
            |name: &str| self.known.model.shape(name).is_some_and(|shape| shape.order == Order::Hashed);
        taken.sort_by_key(|(table, ..)| is_hashed(table));
        let committed = batch.commit(durability);
        self.committed(taken, durability, committed)
    }

    /// Takes note of what came of a batch.
    fn committed(&mut self, ops: Ops, durability: Durability, outcome: folddb::Result<Seq>) -> Outcome {
        match outcome {
            Ok(_) if !ops.is_empty() && self.has_lost_a_sync() => {
                Err("a commit is acknowledged after a sync of the log or the manifest has failed".to_owned())
            }
            // A batch that is empty is never in the way of anything.
            Ok(_) if ops.is_empty() => Ok(()),
            Ok(seq) => {
                self.known.written(ops, durability);
                same("the seq of a batch", &seq, &self.known.model.last_seq())
            }
            // Hashed tables fold when they are written to.
            Err(error) if error.kind() == ErrorKind::FoldFailed => self.fails_to_fold(&ops),
            Err(error) => {
                // For lack of space a batch is refused before anything has happened.
                if error.kind() != ErrorKind::NoSpace {
                    self.known.doubt_batch(ops);
                }
                self.refused("commit", error)
            }
        }
    }

    /// Nothing of a batch is written whose fold fails on a key of a hashed table: by the model it must.
    fn fails_to_fold(&self, ops: &Ops) -> Outcome {
        self.with_models(&|model| {
            let mut model = model.clone();
            let fails = ops.iter().any(|(table, op, stamp)| {
                model.apply_at(table, op.clone(), *stamp);
                let is_hashed = model.shape(table).is_some_and(|shape| shape.order == Order::Hashed);
                // Also where what it would have given is over already: it is folded when it is written.
                let rows = model.rows_seen(table, Seq::MAX, 0);
                is_hashed && rows.iter().any(|(_, now)| *now == Present::Failed)
            });
            same("whether the fold fails", &fails, &true)
        })
    }

    /// Whether a sync has failed in this process of which nobody knows what it has left. (One that fails for lack of space
    /// is told apart by nobody here; no fault does that.)
    fn has_lost_a_sync(&self) -> bool {
        let Some(disk) = &self.disk else { return false };
        disk.failed().iter().any(|(call, path)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            *call == Call::AppendSync || (*call == Call::WriteSync && name.starts_with("MANIFEST"))
        })
    }

    fn steps(&mut self, steps: u8) -> Outcome {
        // Where threads do the upkeep they are left alone.
        if self.settings.upkeep == Upkeep::Threads {
            return Ok(());
        }
        for _ in 0..steps {
            match self.store()?.upkeep_step() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return self.refused("take a step of upkeep", error),
            }
        }
        Ok(())
    }

    fn upkeep(&mut self, work: Work) -> Outcome {
        if self.settings.upkeep == Upkeep::Threads {
            return Ok(());
        }
        match self.store()?.upkeep_step_of(work) {
            Ok(_) => {
                if work == Work::Journal && self.store()?.stats().poisoned_by.is_none() {
                    self.known.survives_death();
                }
                Ok(())
            }
            Err(error) => self.refused("take a step of upkeep", error),
        }
    }

    fn optimize(&mut self, slot: u8, stop_after: Option<u8>) -> Outcome {
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
        if let Err(error) = store.optimize(table.name(), &mut progress) {
            return self.refused("optimize", error);
        }
        if broke_off {
            return Ok(());
        }
        let runs = store.table_stats(table.name()).map_err(said("look at the runs"))?.runs.len();
        if runs > 1 { Err(format!("{runs} runs are left by optimize")) } else { Ok(()) }
    }

    fn look_only(&mut self) -> Outcome {
        if self.disk.is_some() {
            return self.look_only_aside();
        }
        self.snapshots.clear();
        self.consumer.feed = None;
        self.store = None;
        let options = self.options().read_only(true);
        self.store = Some(Store::open(&self.dir, options).map_err(said("open for reading only"))?);
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
        if let Some(store) = &self.store {
            self.known.model.set_time(store.unix_millis());
        }
    }

    /// An op as the model takes it; none where it does nothing.
    fn op_of(&self, op: &TableOp, shape: &Shape) -> Result<Option<(String, ModelOp, Stamp)>, String> {
        let write_ms = self.store()?.unix_millis();
        let (_, deadline_ms) = shape.lifetime(op.value, write_ms, self.epoch_ms);
        Ok(op_of(op, shape).map(|(table, model_op)| (table, model_op, Stamp { write_ms, deadline_ms })))
    }

    /// What keys have been, in a table that promises to know.
    fn compare_past(&self, model: &Model, table: &BytesTable, shape: &Shape) -> Outcome {
        let count = match shape.keep {
            Keep::Versions(count) => count as usize,
            Keep::Forever => usize::MAX,
            Keep::Latest | Keep::Window(_) => return Ok(()),
        };
        for number in 0..KEYS {
            let key = shape.key(number);
            let expected = model.history(table.name(), &key, count);
            let fails = expected.iter().any(|(_, present)| *present == Some(Present::Failed));
            let found = match table.history(&key, usize::MAX) {
                Err(error) if fails && error.kind() == ErrorKind::FoldFailed => continue,
                found => found.map_err(said("tell the history of a key"))?,
            };
            let found: Vec<_> =
                found.into_iter().map(|version| (version.seq, version.value.map(Present::Value))).collect();
            if shape.order == Order::Hashed {
                // It knows versions by their times, and of seqs only about which.
                let values = |versions: Vec<(Seq, Option<Present>)>| -> Vec<Option<Present>> {
                    versions.into_iter().map(|(_, present)| present).collect()
                };
                let what = format!("the states of {}", key.escape_ascii());
                same(&what, &values(found), &values(expected))?;
                continue;
            }
            same(&format!("the history of {}", key.escape_ascii()), &found, &expected)?;
        }
        if shape.keep == Keep::Forever && shape.expire == Expire::Never {
            for seq in [model.last_seq() / 3, model.last_seq() / 3 * 2] {
                let rows = model.rows_at(table.name(), seq);
                compare_rows(&rows, table.scan_at(AsOf::Seq(seq)))
                    .map_err(|why| format!("as of {seq}: {why}"))?;
            }
        }
        Ok(())
    }

    /// Compares everything, at the present and at every snapshot.
    fn compare(&self) -> Outcome {
        self.with_models(&|model| self.compare_with(model))
    }

    /// Checks something against the model; while it is in doubt whether a batch is there, against the model with it too.
    fn with_models(&self, check: &dyn Fn(&Model) -> Outcome) -> Outcome {
        let outcome = check(&self.known.model);
        match self.known.with_doubt() {
            Some(model) if outcome.is_err() => check(&model).or(outcome),
            _ => outcome,
        }
    }

    fn compare_with(&self, model: &Model) -> Outcome {
        let store = self.store()?;
        same("the tables", &store.tables(), &model.tables())?;
        same("the last seq", &store.last_seq(), &model.last_seq())?;
        for name in model.tables() {
            let Some(shape) = model.shape(&name) else { continue };
            let table = store.bytes_table(&name).map_err(said("open the table"))?;
            let now = model.rows_at(&name, Seq::MAX);
            let in_table = |message| format!("table {name} ({shape:?}): {message}");
            compare_table(&now, &shape, &|key| get(&table, key), &|| table.scan()).map_err(in_table)?;
            self.compare_past(model, &table, &shape).map_err(in_table)?;
            self.compare_index(model, &table, &shape).map_err(in_table)?;
            for snapshot in &self.snapshots {
                let past = model.rows_seen(&name, snapshot.seq(), snapshot.unix_millis());
                let get = |key: &[u8]| snapshot.get_bytes(&table, key);
                compare_table(&past, &shape, &get, &|| snapshot.scan_bytes(&table))
                    .map_err(|message| in_table(format!("at snapshot {}: {message}", snapshot.seq())))?;
            }
        }
        Ok(())
    }

    fn scan(&self, slot: u8, at: Option<u8>, scan: &ScanShape) -> Outcome {
        match self.disk.clone() {
            Some(disk) => disk.aside(|| self.scan_now(slot, at, scan)),
            None => self.scan_now(slot, at, scan),
        }
    }

    fn scan_now(&self, slot: u8, at: Option<u8>, scan: &ScanShape) -> Outcome {
        let Some((table, shape)) = self.table(slot)? else { return Ok(()) };
        let snapshot = at.and_then(|at| self.snapshot(at));
        let seq = snapshot.map_or(Seq::MAX, Snapshot::seq);
        self.with_models(&|model| {
            let rows = match snapshot {
                Some(snapshot) => model.rows_seen(table.name(), seq, snapshot.unix_millis()),
                None => model.rows_at(table.name(), seq),
            };
            scan_table(&table, &shape, snapshot, rows, scan).map_err(|why| format!("at {seq}: {why}"))
        })
    }
}

/// How an op is written that is written as a stream: one in four, where the table takes them.
fn streamed(op: &TableOp, table: &BytesTable, shape: &Shape) -> Option<WriteOp> {
    let how = match op.what {
        What::Set => WriteOp::Set,
        What::Insert => WriteOp::Insert,
        What::Fold if shape.kind == Kind::Append => WriteOp::Fold,
        _ => return None,
    };
    (op.value.is_multiple_of(4) && table.takes_streams()).then_some(how)
}

/// The value of a key; of every second one as a stream.
fn get(table: &BytesTable, key: &[u8]) -> folddb::Result<Option<Vec<u8>>> {
    if key.last().is_none_or(|byte| byte.is_multiple_of(2)) {
        return table.get(key);
    }
    let Some(mut reader) = table.read(key)? else { return Ok(None) };
    let mut value = Vec::new();
    match reader.read_to_end(&mut value) {
        Ok(_) => Ok(Some(value)),
        Err(error) => {
            let message = error.to_string();
            let own = error.into_inner().and_then(|inner| inner.downcast::<Error>().ok());
            Err(own.map_or_else(|| Error::new(ErrorKind::Io, message), |own| *own))
        }
    }
}

fn scan_table(
    table: &BytesTable,
    shape: &Shape,
    snapshot: Option<&Snapshot>,
    rows: Vec<ModelRow>,
    scan: &ScanShape,
) -> Outcome {
    let start = || match snapshot {
        Some(snapshot) => snapshot.scan_bytes(table),
        None => table.scan(),
    };
    if shape.order == Order::Hashed {
        return scan_hashed(&rows, shape, scan, start());
    }
    if let Some((number, len)) = scan.prefix {
        return scan_prefix(&rows, shape, &shape.key(number), len, scan, start());
    }
    let expected = chosen(rows, scan, |key| inside(shape, scan, key));
    let narrowed = narrow(start(), shape, scan);
    if scan.limit.is_none() && !scan.reverse {
        compare_aggregate(&expected, shape, &narrowed)?;
    }
    match scan.chunk {
        None => compare_rows(&expected, narrowed),
        Some(chunk) => in_chunks(&expected, shape, scan, usize::from(chunk), &start),
    }
}

fn write_op(what: What) -> WriteOp {
    match what {
        What::Set => WriteOp::Set,
        What::Insert => WriteOp::Insert,
        What::Fold => WriteOp::Fold,
        What::Delete | What::DeleteRange => WriteOp::Delete,
    }
}

/// An op as the model takes it; none where it does nothing.
fn op_of(op: &TableOp, shape: &Shape) -> Option<(String, ModelOp)> {
    let (key, value) = (shape.key(op.key), shape.value(op.value, op.len_bytes));
    let model_op = match op.what {
        What::Set => ModelOp::Set(key, value),
        What::Insert => ModelOp::Insert(key, value),
        What::Fold => ModelOp::Fold(key, value),
        What::Delete => ModelOp::Delete(key),
        What::DeleteRange => {
            let (from, to) = range(shape, op)?;
            ModelOp::DeleteRange(from, to)
        }
    };
    Some((name_of(op.table), model_op))
}
