//! The programs of seeds.

use folddb::{BackgroundJob, BackgroundWork, Durability};
use folddb_host::AppendMode;

use super::strewn::strewn;
use super::{
    Action, Breakage, Broken, Crash, FeedShape, Follow, FollowSecondary, Program, Settings, TABLES, TableOp,
    What,
};
use crate::chance::Seeded;
use crate::program::draws::{Temper, op, scan, shape, slot};
use crate::tables::{Kind, Shape};

impl Program {
    /// The program of a seed.
    pub fn random(seed: u64, actions: usize) -> Program {
        let chance = &mut Seeded::new(seed);
        let settings = Settings {
            background: if chance.one_in(4) { BackgroundWork::Threads } else { BackgroundWork::Manual },
            append_mode: if chance.one_in(3) { AppendMode::Written } else { AppendMode::Mapped },
            merge_factor: 2 + chance.below(3) as usize,
            feed: FeedShape::default(),
        };
        // Programs differ in style: some have large values, and so several parts a run; some hardly
        // any snapshot.
        let temper =
            Temper { large_values: chance.one_in(3), snapshots: chance.below(4), ranges: chance.below(3) };
        let mut all: Vec<Action> = (0..TABLES).map(|slot| Action::Create(slot, shape(chance))).collect();
        all.extend((0..actions).map(|_| action(chance, &temper)));
        Program { settings, actions: with_many_tables(strewn(all, seed, &temper), seed) }
    }
}

/// One program in this many has many tables for a while.
const MANY_EVERY: u64 = 20;

fn with_many_tables(mut actions: Vec<Action>, seed: u64) -> Vec<Action> {
    if !seed.is_multiple_of(MANY_EVERY) {
        return actions;
    }
    // Few actions see all of them, since each action compares all tables at all snapshots.
    let chance = &mut Seeded::new(seed ^ 0x3a3a);
    let at = chance.below(actions.len() as u64 + 1) as usize;
    let then = (at + 1 + chance.below(6) as usize).min(actions.len());
    let (most, few) = (200 + chance.below(50) as u8, chance.below(12) as u8);
    actions.insert(then, Action::Many(few));
    actions.insert(at, Action::Many(most));
    actions
}

impl Program {
    /// The same program, with a consumer that follows from time to time, and at the end to the last
    /// event.
    pub fn followed(self, seed: u64) -> Program {
        let chance = &mut Seeded::new(seed ^ 0x0f0f);
        let every = *chance.pick(&[2, 5, 12]);
        // Chances of its own: the rest of a seed's program stays the same.
        let beside = &mut Seeded::new(seed ^ 0xbe51de);
        let renewing = &mut Seeded::new(seed ^ 0x7e4e3);
        let mut actions = Vec::new();
        for action in self.actions {
            actions.push(action);
            if chance.one_in(every) {
                let events = (!chance.one_in(2)).then(|| chance.below(60) as u8);
                let (acknowledges, renews) = (!chance.one_in(3), renewing.one_in(6));
                actions.push(Action::Follow(Follow { events, acknowledges, renews }));
            }
            if beside.one_in(every) {
                let events = beside.one_in(3).then(|| beside.below(20) as u8);
                actions.push(Action::FollowSecondary(FollowSecondary { events, synced: beside.one_in(2) }));
            }
        }
        actions.push(Action::Follow(Follow { events: None, acknowledges: true, renews: false }));
        Program { actions, settings: Settings { feed: feed(seed), ..self.settings } }
    }

    /// The same program on a store whose threads do the background work.
    pub fn in_threads(self) -> Program {
        Program { settings: Settings { background: BackgroundWork::Threads, ..self.settings }, ..self }
    }

    /// The same program; in one of three there is such a consumer.
    pub fn followed_in_some(self, seed: u64) -> Program {
        if seed.is_multiple_of(3) { self.followed(seed) } else { self }
    }
}

/// The scope of a feed: in every third program everything, with the default budget.
fn feed(seed: u64) -> FeedShape {
    const PREFIXES: [&[u8]; 12] =
        [b"", b"", b"", b"", b"", b"", b"\0", b"\0\0\0\0\x0b", b"a", b"key/", b"key/1", b"\xff\xff"];
    const BUDGETS: [u64; 5] = [0, 20 << 10, 200 << 10, 1 << 20, u64::MAX];
    let chance = &mut Seeded::new(seed ^ 0xfeed);
    if chance.one_in(3) {
        return FeedShape::default();
    }
    FeedShape {
        table: chance.one_in(2).then(|| slot(chance)),
        prefix: chance.pick::<&[u8]>(&PREFIXES),
        bytes_max: chance.one_in(2).then(|| *chance.pick(&BUDGETS)),
    }
}

/// How likely the kinds of disaster are in a program, of 100 actions.
const DISASTERS: u64 = 30;

impl Program {
    /// The program of a seed in a simulated world, where processes die, the power goes, calls fail
    /// and clocks jump.
    pub fn disastrous(seed: u64, actions: usize) -> Program {
        let chance = &mut Seeded::new(seed);
        let settings = Settings {
            background: BackgroundWork::Manual,
            append_mode: if chance.one_in(3) { AppendMode::Written } else { AppendMode::Mapped },
            merge_factor: 2 + chance.below(2) as usize,
            feed: FeedShape::default(),
        };
        let temper =
            Temper { large_values: chance.one_in(3), snapshots: chance.below(3), ranges: chance.below(3) };
        let mut all: Vec<Action> = (0..TABLES).map(|slot| Action::Create(slot, any_shape(chance))).collect();
        all.extend((0..actions).map(|_| match chance.below(100) {
            drawn if drawn < DISASTERS => disaster(chance),
            drawn if drawn < 2 * DISASTERS => Action::Background(*chance.pick(&[
                BackgroundJob::Log,
                BackgroundJob::Seal,
                BackgroundJob::Flush,
                BackgroundJob::Flush,
                BackgroundJob::Merge,
                BackgroundJob::Merge,
                BackgroundJob::Reclaim,
                BackgroundJob::Reclaim,
            ])),
            _ => action(chance, &temper),
        }));
        Program { settings, actions: strewn(all, seed, &temper) }
    }
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

fn action(chance: &mut Seeded, temper: &Temper) -> Action {
    match chance.below(100) {
        0..=29 => Action::Write(op(chance, temper)),
        30..=49 => {
            let durability = *chance.pick(&[Durability::Buffered, Durability::Process, Durability::Sync]);
            let longest = if temper.large_values || chance.one_in(10) { 60 } else { 12 };
            let len = chance.below(longest);
            let mut ops: Vec<TableOp> = (0..len).map(|_| op(chance, temper)).collect();
            if temper.ranges > 0 && len % 8 == 7 {
                ops.iter_mut().for_each(|op| op.what = What::DeleteRange); // enough for merges planned by their number
            }
            Action::Commit(ops, durability)
        }
        50..=56 if temper.snapshots > 0 => Action::Snapshot,
        57..=60 => Action::Release(chance.below(8) as u8),
        50..=69 => Action::Flush,
        70..=77 => Action::Step(1 + chance.below(4) as u8),
        78 => Action::Settle,
        79 => Action::Reclaim,
        80..=83 => Action::Compact(slot(chance), (!chance.one_in(3)).then(|| chance.below(6) as u8)),
        84..=91 => {
            let at = chance.one_in(2).then(|| chance.below(8) as u8);
            Action::Scan(slot(chance), at, scan(chance))
        }
        92 => Action::Sync,
        93..=94 => Action::Close,
        95 => Action::Abandon,
        96 => Action::CloseWithoutFlush,
        97 => Action::LookOnly,
        98 => Action::Drop(slot(chance)),
        _ => Action::Create(slot(chance), shape(chance)),
    }
}
