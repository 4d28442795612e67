//! Random programs over the whole public interface of a store, as values that print and shrink.
//!
//! Every action makes sense in every state, or does nothing: a table that is not there is passed over, an
//! index runs round. So any subsequence of a program is a program, and a failing one shrinks by leaving out.

use std::fmt;

use folddb::{AppendMode, Durability, Expire, Keep, Upkeep, Work};

use crate::chance::Seeded;
use crate::tables::{HOUR_MS, KEYS, Kind, Order, Shape};

/// How many tables a program may have at once.
pub const TABLES: u8 = 3;

/// Values of so many bytes lie apart in the tables that separate: few of the short lengths, and all of the long ones.
pub const SEPARATE_FROM: u32 = 32;

/// A program: how the store is opened, and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// How the store is opened.
    pub settings: Settings,
    /// What is done, in order.
    pub actions: Vec<Action>,
}

/// How the store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who does the upkeep.
    pub upkeep: Upkeep,
    /// How the journal appends.
    pub append_mode: AppendMode,
    /// Runs of a tier.
    pub merge_factor: usize,
}

/// One thing that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Creates a table, unless it is there.
    Create(u8, Shape),
    /// Drops a table.
    Drop(u8),
    /// Writes one op.
    Write(TableOp),
    /// Commits a batch.
    Commit(Vec<TableOp>, Durability),
    /// Takes a snapshot.
    Snapshot,
    /// Lets a snapshot go.
    Release(u8),
    /// Flushes.
    Flush,
    /// Takes so many steps of upkeep.
    Step(u8),
    /// Waits until upkeep has nothing to do.
    Settle,
    /// Merges a table into one run; or breaks off after so many looks at the progress.
    Optimize(u8, Option<u8>),
    /// Gives back the space of dead values.
    Reclaim,
    /// Adds an index to a table, or goes on with that, or breaks it off after so many looks at the progress.
    AddIndex(u8, Option<u8>),
    /// Drops it.
    DropIndex(u8),
    /// Scans a table, at the present or at a snapshot, and compares.
    Scan(u8, Option<u8>, ScanShape),
    /// Makes everything durable.
    Sync,
    /// Closes the store and opens it again.
    Close,
    /// Drops the store without closing it, and opens it again.
    Abandon,
    /// Opens the store for reading only, looks, and opens it for writing again.
    LookOnly,
    /// Takes one step of one kind of upkeep.
    Upkeep(Work),
    /// A consumer follows the change feed of the store.
    Follow(Follow),
    /// Lets so many milliseconds pass, and the wall clock jump by so many seconds besides. From here on: in a simulated
    /// world only.
    Clock(u16, i32),
    /// Lets the process die, with or without the power.
    Crash(Crash),
    /// Breaks something.
    Break(Breakage),
    /// Mends all that is broken, and reopens a store that is poisoned.
    Heal,
    /// Flips bits of a byte of a file, in another world that is a copy of this one.
    Rot(u8, u16, u8),
}

/// How far a consumer follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follow {
    /// It takes at most so many events; all that there are where it does not say.
    pub events: Option<u8>,
    /// And then acknowledges.
    pub acknowledges: bool,
}

/// How a process ends, and what happens while the next one opens the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// It dies before the change after so many changes; at once where there are none.
    pub after: u8,
    /// Whether the power goes too.
    pub power: bool,
    /// Decides what is left.
    pub seed: u8,
    /// Openings that die after so many changes, one after the other, and whether the power goes.
    pub openings: Vec<(u8, bool)>,
}

/// Something that breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakage {
    /// What.
    pub what: Broken,
    /// So many such calls go through first.
    pub skip: u8,
    /// So many fail then.
    pub times: u8,
}

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Any call.
    AnyCall,
    /// Writes and appends.
    Write,
    /// Writes and appends, and half of their bytes gets there.
    TornWrite,
    /// Syncs of files, whose pages are marked clean and lost.
    Sync,
    /// Making, removing and syncing names.
    Name,
    /// Reads.
    Read,
    /// Any call that takes space finds none.
    NoSpace,
    /// The disk has so many times 16 KiB left as `skip` says.
    FullDisk,
    /// One call in four takes as many times 10 ms as `times` says.
    Slow,
}

/// One op on a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOp {
    /// The table.
    pub table: u8,
    /// What is done.
    pub what: What,
    /// The key.
    pub key: u8,
    /// The value or operand.
    pub value: u8,
    /// Its length, where that is free.
    pub len_bytes: u16,
}

/// What an op does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Makes the value this one.
    Set,
    /// Gives an absent key this value.
    Insert,
    /// Folds this operand on.
    Fold,
    /// Makes the key absent.
    Delete,
    /// Makes the keys from this one to the one with the number `value` absent.
    DeleteRange,
}

/// What part of a table a scan goes over, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanShape {
    /// Where it begins.
    pub low: Edge,
    /// Where it ends.
    pub high: Edge,
    /// Only keys that begin as this one does, for so many bytes; the edges do not count then.
    pub prefix: Option<(u8, u8)>,
    /// From the highest key down.
    pub reverse: bool,
    /// At most so many rows.
    pub limit: Option<u8>,
    /// In pieces of so many rows, each beginning behind the one before.
    pub chunk: Option<u8>,
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Open.
    Open,
    /// This key, included.
    At(u8),
    /// This key, excluded.
    Beyond(u8),
}

/// One action a line.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.settings)?;
        self.actions.iter().enumerate().try_for_each(|(at, action)| writeln!(f, "{at:3}  {action:?}"))
    }
}

impl Program {
    /// The program of a seed.
    pub fn random(seed: u64, actions: usize) -> Program {
        let chance = &mut Seeded::new(seed);
        let settings = Settings {
            upkeep: if chance.one_in(4) { Upkeep::Threads } else { Upkeep::Manual },
            append_mode: if chance.one_in(3) { AppendMode::Written } else { AppendMode::Mapped },
            merge_factor: 2 + chance.below(3) as usize,
        };
        // Programs differ in temper: some have large values, and so several parts a run; some hardly any snapshot.
        let temper =
            Temper { large_values: chance.one_in(3), snapshots: chance.below(4), ranges: chance.below(3) };
        let mut all: Vec<Action> = (0..TABLES).map(|slot| Action::Create(slot, shape(chance))).collect();
        all.extend((0..actions).map(|_| action(chance, &temper)));
        Program { settings, actions: with_indexes(all, seed) }
    }
}

impl Program {
    /// The same program, with a consumer that follows from time to time, and at the end to the end.
    pub fn followed(self, seed: u64) -> Program {
        let chance = &mut Seeded::new(seed ^ 0x0f0f);
        let every = *chance.pick(&[2, 5, 12]);
        let mut actions = Vec::new();
        for action in self.actions {
            actions.push(action);
            if chance.one_in(every) {
                let events = (!chance.one_in(2)).then(|| chance.below(60) as u8);
                actions.push(Action::Follow(Follow { events, acknowledges: !chance.one_in(3) }));
            }
        }
        actions.push(Action::Follow(Follow { events: None, acknowledges: true }));
        Program { actions, ..self }
    }
}

/// How likely the kinds of disaster are in a program, of 100 actions.
const DISASTERS: u64 = 30;

impl Program {
    /// The program of a seed in a simulated world, where processes die, the power goes, calls fail and clocks jump.
    pub fn disastrous(seed: u64, actions: usize) -> Program {
        let chance = &mut Seeded::new(seed);
        let settings = Settings {
            upkeep: Upkeep::Manual,
            append_mode: if chance.one_in(3) { AppendMode::Written } else { AppendMode::Mapped },
            merge_factor: 2 + chance.below(2) as usize,
        };
        let temper =
            Temper { large_values: chance.one_in(3), snapshots: chance.below(3), ranges: chance.below(3) };
        let mut all: Vec<Action> = (0..TABLES).map(|slot| Action::Create(slot, any_shape(chance))).collect();
        all.extend((0..actions).map(|_| match chance.below(100) {
            drawn if drawn < DISASTERS => disaster(chance),
            drawn if drawn < 2 * DISASTERS => Action::Upkeep(*chance.pick(&[
                Work::Journal,
                Work::Seal,
                Work::Flush,
                Work::Flush,
                Work::Merge,
                Work::Merge,
                Work::Reclaim,
                Work::Reclaim,
            ])),
            _ => action(chance, &temper),
        }));
        Program { settings, actions: with_indexes(all, seed) }
    }
}

/// Strews what is done to indexes among the actions of a program, by chances of its own: the rest of it stays the same.
fn with_indexes(actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(!seed);
    let mut all = Vec::with_capacity(actions.len());
    for action in actions {
        all.push(action);
        match chance.below(60) {
            0..=1 => all.push(Action::AddIndex(slot(chance), None)),
            2 => all.push(Action::AddIndex(slot(chance), Some(chance.below(2) as u8))),
            3 if chance.one_in(3) => all.push(Action::DropIndex(slot(chance))),
            _ => {}
        }
    }
    all
}

fn any_shape(chance: &mut Seeded) -> Shape {
    let shape = shape(chance);
    if chance.one_in(6) { Shape { kind: Kind::Tomb, ..shape } } else { shape }
}

fn disaster(chance: &mut Seeded) -> Action {
    match chance.below(12) {
        0..=4 => Action::Crash(crash(chance)),
        5..=6 => Action::Break(breakage(chance)),
        7..=8 => Action::Heal,
        9..=10 => Action::Clock(*chance.pick(&[1, 5, 30, 2000]), *chance.pick(&[0, 0, 3600, 7200, -86_400])),
        _ => Action::Rot(chance.next_u64() as u8, chance.next_u64() as u16, 1 << chance.below(8)),
    }
}

fn crash(chance: &mut Seeded) -> Crash {
    let power = !chance.one_in(3);
    let times = if chance.one_in(2) { 0 } else { 1 + chance.below(2) };
    Crash {
        after: if chance.one_in(4) { 0 } else { chance.below(40) as u8 },
        power,
        seed: chance.next_u64() as u8,
        openings: (0..times).map(|_| (chance.below(40) as u8, !chance.one_in(3))).collect(),
    }
}

fn breakage(chance: &mut Seeded) -> Breakage {
    let what = *chance.pick(&[
        Broken::AnyCall,
        Broken::Write,
        Broken::TornWrite,
        Broken::Sync,
        Broken::Sync,
        Broken::Name,
        Broken::Read,
        Broken::NoSpace,
        Broken::FullDisk,
        Broken::Slow,
    ]);
    Breakage { what, skip: chance.below(30) as u8, times: 1 + chance.below(3) as u8 }
}

struct Temper {
    large_values: bool,
    snapshots: u64,
    ranges: u64,
}

fn slot(chance: &mut Seeded) -> u8 {
    chance.below(u64::from(TABLES)) as u8
}

fn key(chance: &mut Seeded) -> u8 {
    chance.below(u64::from(KEYS)) as u8
}

fn shape(chance: &mut Seeded) -> Shape {
    const KINDS: [Kind; 8] = [
        Kind::Replace,
        Kind::First,
        Kind::SumU64,
        Kind::Balance,
        Kind::MaxU64,
        Kind::MinBytes,
        Kind::Append,
        Kind::Brittle,
    ];
    const ORDERS: [Order; 4] = [Order::Bytewise, Order::Hashed, Order::Reversed, Order::ByLength];
    let drawn = Shape {
        kind: *chance.pick(&KINDS),
        order: *chance.pick(&ORDERS),
        lz4: chance.one_in(3),
        block_bytes: *chance.pick(&[512, 8192]),
        filter_bits: *chance.pick(&[0, 10]),
        separate: chance.one_in(2).then_some(SEPARATE_FROM),
        in_files: false,
        keep: *chance.pick(&[
            Keep::Latest,
            Keep::Latest,
            Keep::Latest,
            Keep::Versions(2),
            Keep::Versions(4),
            Keep::Window(3 * HOUR_MS),
            Keep::Forever,
        ]),
        expire: *chance.pick(&[
            Expire::Never,
            Expire::Never,
            Expire::ByWrite,
            Expire::After(HOUR_MS + HOUR_MS / 2),
        ]),
    };
    let drawn = Shape { in_files: drawn.filter_bits == 0, ..drawn };
    match drawn.order {
        Order::Hashed if !matches!(drawn.keep, Keep::Versions(_)) => Shape { keep: Keep::Latest, ..drawn },
        _ => drawn,
    }
}

fn action(chance: &mut Seeded, temper: &Temper) -> Action {
    match chance.below(100) {
        0..=29 => Action::Write(op(chance, temper)),
        30..=49 => {
            let durability = *chance.pick(&[Durability::Buffered, Durability::Process, Durability::Sync]);
            let longest = if temper.large_values || chance.one_in(10) { 60 } else { 12 };
            let len = chance.below(longest);
            Action::Commit((0..len).map(|_| op(chance, temper)).collect(), durability)
        }
        50..=56 if temper.snapshots > 0 => Action::Snapshot,
        57..=60 => Action::Release(chance.below(8) as u8),
        50..=69 => Action::Flush,
        70..=77 => Action::Step(1 + chance.below(4) as u8),
        78 => Action::Settle,
        79 => Action::Reclaim,
        80..=83 => Action::Optimize(slot(chance), (!chance.one_in(3)).then(|| chance.below(6) as u8)),
        84..=91 => {
            let at = chance.one_in(2).then(|| chance.below(8) as u8);
            Action::Scan(slot(chance), at, scan(chance))
        }
        92 => Action::Sync,
        93..=94 => Action::Close,
        95..=96 => Action::Abandon,
        97 => Action::LookOnly,
        98 => Action::Drop(slot(chance)),
        _ => Action::Create(slot(chance), shape(chance)),
    }
}

fn op(chance: &mut Seeded, temper: &Temper) -> TableOp {
    let what = match chance.below(20) {
        0..=3 => What::Set,
        4..=7 => What::Insert,
        8..=14 => What::Fold,
        15 if temper.ranges > 0 => What::DeleteRange,
        _ => What::Delete,
    };
    let lengths: &[u16] = if temper.large_values { &[3, 9000, 20_000, 20_000] } else { &[0, 1, 3, 40] };
    TableOp {
        table: slot(chance),
        what,
        key: key(chance),
        value: chance.next_u64() as u8,
        len_bytes: *chance.pick(lengths),
    }
}

fn scan(chance: &mut Seeded) -> ScanShape {
    ScanShape {
        low: edge(chance),
        high: edge(chance),
        prefix: chance.one_in(4).then(|| (key(chance), chance.below(6) as u8)),
        reverse: chance.one_in(2),
        limit: chance.one_in(3).then(|| chance.below(10) as u8),
        chunk: chance.one_in(3).then(|| 1 + chance.below(5) as u8),
    }
}

fn edge(chance: &mut Seeded) -> Edge {
    match chance.below(3) {
        0 => Edge::Open,
        1 => Edge::At(key(chance)),
        _ => Edge::Beyond(key(chance)),
    }
}

/// The shortest program that still fails, as far as leaving out actions and ops finds it: halves first, then
/// smaller pieces, down to single ones (delta debugging, Zeller and Hildebrandt 2002).
pub fn shrink(program: &Program, fails: &mut dyn FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut piece = best.actions.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        let mut shorter = false;
        while at < best.actions.len() {
            let mut candidate = best.clone();
            candidate.actions.drain(at..(at + piece).min(best.actions.len()));
            if fails(&candidate) {
                (best, shorter) = (candidate, true);
            } else {
                at += piece;
            }
        }
        piece = if piece == 1 && shorter { 1 } else { piece / 2 };
    }
    shrink_batches(&mut best, fails);
    best
}

fn shrink_batches(best: &mut Program, fails: &mut dyn FnMut(&Program) -> bool) {
    for at in 0..best.actions.len() {
        let mut index = 0;
        while let Action::Commit(ops, _) = &best.actions[at] {
            if index >= ops.len() {
                break;
            }
            let mut candidate = best.clone();
            if let Action::Commit(ops, _) = &mut candidate.actions[at] {
                ops.remove(index);
            }
            if fails(&candidate) {
                *best = candidate;
            } else {
                index += 1;
            }
        }
    }
}

#[cfg(test)]
#[path = "program/tests.rs"]
mod tests;
