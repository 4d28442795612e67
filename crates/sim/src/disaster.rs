//! Every disaster at every moment: a small program that goes through everything a store does,
//! crashed before each change that it makes, and with each of its calls failing once.
//!
//! A crash is tried in several ways. The process dies and the kernel lives on. Or the power goes,
//! and several seeds decide what is left of unsynced data. Either happens again in the middle of
//! the recovery. Then the store must open, hold a prefix of the history that reaches as far as was
//! promised, in whole batches, with no file too many or too few; and it must accept more writes and
//! survive another crash.
//!
//! Many crashes leave the same disk. Each such world is judged once; promises of other moments are
//! compared with the state that the store had there: see [`Judged`].

use folddb::{BackgroundJob, BackgroundWork, Durability, Expire, Keep};
use folddb_host::AppendMode;
use parking_lot::Mutex;

use crate::chance::Seeded;
use crate::faulty_files::{Call, EDQUOT, ENOSPC, Fault};
use crate::play::{Counts, Disagreement, Found, Judged, Wreck, play_until_death};
use crate::program::{Action, Crash, FeedShape, Program, Settings, TableOp, What};
use crate::tables::{HOUR_MS, KEYS, Kind, Order, Shape};
use crate::world::SimDisk;

/// The seed of the world that the program runs in.
const WORLD: u64 = 7;

/// How thoroughly each moment is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Power cuts at each moment, each of another seed.
    pub cuts: u8,
    /// Crashes before every `opening_step`-th change of the recovery; before none where it is 0.
    pub opening_step: u64,
}

/// Of the crashes that leave a world which was judged before, one in this many is judged again.
const AGAIN_EACH: u64 = 500;

/// A program whose moments are tried one after the other.
pub struct EveryCall {
    judged: Mutex<Judged>,
    program: Program,
    aftermath: Program,
    changes: u64,
    calls: u64,
}

impl EveryCall {
    /// The small program, in one of the two ways in which the log appends.
    ///
    /// # Errors
    /// It goes wrong without any disaster.
    pub fn new(append_mode: AppendMode) -> Result<EveryCall, Disagreement> {
        let program = workload(append_mode);
        let aftermath = aftermath(program.settings);
        EveryCall::of(program, aftermath)
    }

    /// The same program with a follower of its feed, which must have what the store has afterwards.
    ///
    /// # Errors
    /// It goes wrong without any disaster.
    pub fn followed(append_mode: AppendMode) -> Result<EveryCall, Disagreement> {
        let program = workload(append_mode).followed(1);
        let aftermath = aftermath(program.settings).followed(2);
        EveryCall::of(program, aftermath)
    }

    /// The other small program, of the kinds of tables that the first lacks, with a follower of its
    /// feed.
    ///
    /// # Errors
    /// It goes wrong without any disaster.
    pub fn varied(append_mode: AppendMode) -> Result<EveryCall, Disagreement> {
        let program = varied_workload(append_mode).followed(1);
        let aftermath = aftermath(program.settings).followed(2);
        EveryCall::of(program, aftermath)
    }

    fn of(program: Program, aftermath: Program) -> Result<EveryCall, Disagreement> {
        let disk = world();
        play_until_death(&program, &disk)?;
        let judged = Mutex::new(Judged::again_each(AGAIN_EACH));
        Ok(EveryCall { judged, changes: disk.changes(), calls: disk.calls(), program, aftermath })
    }

    /// Every world is judged each time that a crash leaves it.
    #[must_use]
    pub fn trusting_nothing(self) -> EveryCall {
        EveryCall { judged: Mutex::new(Judged::again_each(1)), ..self }
    }

    /// The number of crashes judged so far, by outcome.
    pub fn counts(&self) -> Counts {
        self.judged.lock().counts()
    }

    /// How many changes the program makes: the number of moments to crash at.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// How many calls it makes.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Crashes the program before its `n`-th change, counted from 0; at its end, where it has fewer
    /// changes. Returns the number of crashes that were tried.
    ///
    /// # Errors
    /// What is wrong after one of them, and which.
    pub fn crash_before(&self, n: u64, effort: Effort) -> Result<u64, Disagreement> {
        let disk = world();
        disk.die_after(n);
        let wreck = play_until_death(&self.program, &disk)?;
        self.crash_all_ways(&wreck, n, effort)
    }

    /// Lets the n-th call of the program that matches the fault fail, then crashes it. Returns
    /// false where there was no such call.
    ///
    /// # Errors
    /// What is wrong during the program, or after it, and where.
    pub fn fail(&self, fault: &Fault) -> Result<bool, Disagreement> {
        let disk = world();
        disk.break_on(fault.clone());
        let in_fault =
            |why: Disagreement| Disagreement { message: format!("{fault:?}: {}", why.message), ..why };
        let wreck = play_until_death(&self.program, &disk).map_err(in_fault)?;
        let was_hit = disk.has_met_fault();
        if was_hit {
            self.crash_all_ways(&wreck, fault.skip, Effort { cuts: 1, opening_step: 0 }).map_err(in_fault)?;
        }
        Ok(was_hit)
    }

    fn crash_all_ways(&self, wreck: &Wreck, n: u64, effort: Effort) -> Result<u64, Disagreement> {
        let before = self.counts().crashes;
        for cut in 0..=effort.cuts {
            let (power, seed) = (cut > 0, cut.wrapping_add(n as u8));
            let chance = &mut Seeded::new(u64::from(seed));
            let found = wreck.next(power, chance);
            let crash = Crash { after: 0, power, seed, openings: Vec::new() };
            self.judge(&found, n, &crash)?;
            if effort.opening_step == 0 {
                continue;
            }
            let all = found.dying_in_opening().into_iter().enumerate();
            let step = effort.opening_step;
            for (change, dead) in all.skip((n % step) as usize).step_by(step as usize) {
                let power = !(n + change as u64).is_multiple_of(3);
                let crash = Crash { openings: vec![(change as u8, power)], ..crash.clone() };
                self.judge(&dead.next(power, &mut chance.clone()), n, &crash)?;
            }
        }
        Ok(self.counts().crashes - before)
    }

    fn judge(&self, found: &Found, n: u64, crash: &Crash) -> Result<(), Disagreement> {
        found.judge(&self.aftermath, &mut self.judged.lock()).map_err(|why| Disagreement {
            message: format!("before change {n} of {}, {crash:?}: {}", self.changes, why.message),
            ..why
        })
    }
}

/// The world that a program runs in.
fn world() -> SimDisk {
    let disk = SimDisk::new(WORLD);
    disk.begin_processes_alike();
    disk
}

/// Writes like the program's, and a power cut after them that keeps what was synced and little
/// else.
fn aftermath(settings: Settings) -> Program {
    let chance = &mut Seeded::new(3);
    let crash = Crash { after: 0, power: true, seed: 2, openings: Vec::new() };
    let actions = vec![
        Action::Commit(ops(chance, 6, 40), Durability::Sync),
        Action::Commit(ops(chance, 6, 40), Durability::Process),
        Action::Background(BackgroundJob::Seal),
        Action::Background(BackgroundJob::Flush),
        Action::Crash(crash),
        Action::Commit(ops(chance, 6, 40), Durability::Process),
        Action::Close,
    ];
    Program { settings, actions }
}

/// A small program that goes through everything.
pub fn workload(append_mode: AppendMode) -> Program {
    let settings = Settings {
        background: BackgroundWork::Manual,
        append_mode,
        merge_factor: 2,
        feed: FeedShape::default(),
    };
    let chance = &mut Seeded::new(1);
    let mut all = vec![
        Action::Create(0, Shape::small(Kind::Replace, Order::Bytewise)),
        Action::Create(1, Shape::small(Kind::SumU64, Order::Reversed)),
        Action::Create(2, Shape::small(Kind::Append, Order::ByLength)),
    ];
    all.extend(
        [Durability::Buffered, Durability::Process, Durability::Sync]
            .map(|durability| batch(chance, durability)),
    );
    // Runs of several parts, with batches of all modes between the flushes of single tables.
    for round in 0..4 {
        all.push(Action::Commit(large_ops(chance), Durability::Process));
        all.push(Action::Snapshot);
        all.extend([batch(chance, Durability::Buffered), Action::Background(BackgroundJob::Log)]);
        all.extend([Action::Write(range_delete(chance, 0)), Action::Background(BackgroundJob::Seal)]);
        for _ in 0..3 {
            all.push(Action::Background(BackgroundJob::Flush));
            all.push(batch(chance, Durability::Process));
            all.push(batch(chance, if round % 2 == 0 { Durability::Sync } else { Durability::Buffered }));
            all.push(Action::Background(BackgroundJob::Merge));
        }
        all.extend((0..3).map(|_| Action::Background(BackgroundJob::Merge)));
        all.extend((0..2).map(|_| Action::Background(BackgroundJob::Reclaim)));
        all.push(Action::Alter(round % 3, 19 + 7 * round));
        all.extend([Action::Release(0), Action::Clock(50, 0), Action::Background(BackgroundJob::Log)]);
        all.push(if round == 1 { Action::Abandon } else { Action::Step(4) });
    }
    all.extend([Action::Sync, batch(chance, Durability::Process), Action::Compact(0, None)]);
    all.extend([Action::Reclaim, batch(chance, Durability::Process)]);
    all.extend([Action::Drop(2), batch(chance, Durability::Process)]);
    all.push(Action::Create(2, Shape::small(Kind::Tomb, Order::Bytewise)));
    all.extend([batch(chance, Durability::Sync), Action::Flush, batch(chance, Durability::Buffered)]);
    all.extend([Action::Close, batch(chance, Durability::Process), batch(chance, Durability::Buffered)]);
    all.extend([Action::Settle, batch(chance, Durability::Process), Action::Close]);
    Program { settings, actions: all }
}

/// A small program over hashed tables, with versions, with deadlines, with files of their own for
/// their values; over values in files, joined values, and indexes whose building is broken off and
/// continued. Checkpoints of the hashed tables, and changes after them, are saved; values move,
/// dead files are removed.
pub fn varied_workload(append_mode: AppendMode) -> Program {
    let settings = Settings {
        background: BackgroundWork::Manual,
        append_mode,
        merge_factor: 2,
        feed: FeedShape::default(),
    };
    let chance = &mut Seeded::new(4);
    let hashed = |kind| Shape::small(kind, Order::Hashed);
    let in_files = Shape { in_files: true, ..Shape::small(Kind::Replace, Order::Bytewise) };
    let mut all = vec![
        Action::Create(0, Shape { keep: Keep::Versions(2), ..hashed(Kind::Append) }),
        Action::Create(1, Shape { expire: Expire::ByWrite, ..in_files }),
        Action::Create(2, Shape::small(Kind::Append, Order::Reversed)),
        Action::AddIndex(1, None),
    ];
    for round in 0..4 {
        all.extend([varied_batch(chance, Durability::Process), Action::Snapshot]);
        all.extend([varied_batch(chance, Durability::Buffered), Action::Background(BackgroundJob::Log)]);
        all.push(Action::AddIndex(2, (round == 0).then_some(0)));
        all.extend([Action::Background(BackgroundJob::Seal), varied_batch(chance, Durability::Sync)]);
        for _ in 0..4 {
            all.extend([Action::Background(BackgroundJob::Flush), varied_batch(chance, Durability::Process)]);
            all.push(Action::Background(BackgroundJob::Merge));
        }
        all.push(Action::Alter((round + 1) % 3, 20 + 9 * round));
        all.extend([Action::Release(0), Action::Clock(50, if round == 1 { HOUR_S } else { 0 })]);
        all.extend([Action::Compact(1, None), Action::Compact(2, None), Action::Reclaim]);
        all.extend(match round {
            // An unsynced end of the log is kept for the consumer, unless it followed in between.
            0 => (0..4).flat_map(|_| [varied_batch(chance, Durability::Process), Action::Abandon]).collect(),
            1 => vec![Action::Settle, varied_batch(chance, Durability::Sync)],
            2 => vec![Action::Drop(0), Action::Create(0, Shape { in_files: true, ..hashed(Kind::Replace) })],
            _ => vec![Action::DropIndex(1), varied_batch(chance, Durability::Buffered)],
        });
    }
    all.extend([Action::Close, varied_batch(chance, Durability::Process), Action::Settle, Action::Close]);
    Program { settings, actions: all }
}

/// An hour, by which the wall clock jumps: deadlines come.
const HOUR_S: i32 = (HOUR_MS / 1000) as i32;

/// Some short and some separated values, over few keys: most of them are dead soon.
fn varied_batch(chance: &mut Seeded, durability: Durability) -> Action {
    let mut all = ops(chance, 9, 700);
    for op in &mut all {
        op.key %= 7;
        op.len_bytes = if op.value.is_multiple_of(4) { 9 } else { op.len_bytes };
    }
    Action::Commit(all, durability)
}

fn batch(chance: &mut Seeded, durability: Durability) -> Action {
    Action::Commit(ops(chance, 8, 300), durability)
}

/// Ops of all kinds over all tables.
fn ops(chance: &mut Seeded, count: u64, len_bytes: u16) -> Vec<TableOp> {
    let one = |at: u64, chance: &mut Seeded| {
        let what = *chance.pick(&[What::Put, What::Fold, What::Fold, What::PutIfAbsent, What::Delete]);
        let (key, value) = (chance.below(u64::from(KEYS)) as u8, chance.next_u64() as u8);
        TableOp { table: (at % 3) as u8, what, key, value, len_bytes }
    };
    (0..count).map(|at| one(at, chance)).collect()
}

/// Every key of the first table, long enough for several parts.
fn large_ops(chance: &mut Seeded) -> Vec<TableOp> {
    let set =
        |key| TableOp { table: 0, what: What::Put, key, value: chance.next_u64() as u8, len_bytes: 11_000 };
    (0..KEYS).map(set).collect()
}

fn range_delete(chance: &mut Seeded, table: u8) -> TableOp {
    let from = chance.below(u64::from(KEYS) / 2) as u8;
    TableOp { table, what: What::DeleteRange, key: from, value: from + 5, len_bytes: 0 }
}

/// The faults that each call of a program may have: it fails, half of what it writes gets there,
/// there is no space, a sync fails, for lack of space or otherwise, and loses what it did not
/// write.
pub fn faults() -> Vec<(&'static str, Fault)> {
    const WRITES: [Call; 2] = [Call::Write, Call::Append];
    let takes_space = [Call::Write, Call::Append, Call::Create, Call::CreateAppend, Call::CreateDir];
    const SYNCS: [Call; 3] = [Call::WriteSync, Call::AppendSync, Call::SyncDir];
    vec![
        ("EIO", Fault { times: 1, ..Fault::on(&[]) }),
        ("a torn write", Fault { half: true, times: 1, ..Fault::on(&WRITES) }),
        ("ENOSPC", Fault { os_error: ENOSPC, times: 1, ..Fault::on(&takes_space) }),
        ("a half write and EDQUOT", Fault { os_error: EDQUOT, half: true, times: 1, ..Fault::on(&WRITES) }),
        ("a failed sync", Fault { times: 1, ..Fault::on(&SYNCS) }),
        ("a sync that finds no space", Fault { os_error: ENOSPC, times: 1, ..Fault::on(&SYNCS) }),
    ]
}
