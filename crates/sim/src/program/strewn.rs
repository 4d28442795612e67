//! Actions strewn among those of a program, each kind by chances of its own: the rest of a seed's
//! program stays the same.

use folddb::{Durability, Expire, Resume};

use super::draws::{Temper, key, op, scan, shape, slot};
use super::{Action, CursorStep, Load, Other, TableOp, Transact};
use crate::chance::Seeded;
use crate::tables::{Kind, Order, Shape};

/// The same actions, with others among them.
pub(super) fn strewn(actions: Vec<Action>, seed: u64, temper: &Temper) -> Vec<Action> {
    let actions = with_indexes(actions, seed);
    let actions = with_transactions(actions, seed, temper);
    let actions = with_loads(actions, seed, temper);
    let actions = with_cursors(actions, seed);
    let actions = with_others(actions, seed);
    let actions = with_pasts(actions, seed);
    let actions = with_copies(actions, seed);
    let actions = with_documents(actions, seed);
    let actions = with_finds(actions, seed);
    let actions = with_ranges(actions, seed);
    let actions = with_handles(actions, seed);
    with_alterations(actions, seed)
}

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

/// In every second program.
fn with_transactions(actions: Vec<Action>, seed: u64, temper: &Temper) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0x7a7a);
    if chance.one_in(2) {
        return actions;
    }
    let mut all = Vec::with_capacity(2 * actions.len());
    for action in actions {
        all.push(action);
        if let Some(step) = step(chance, temper) {
            all.push(Action::Transact(step));
        }
    }
    all
}

fn step(chance: &mut Seeded, temper: &Temper) -> Option<Transact> {
    let which = chance.below(4) as u8;
    // Few keys, so that others write to them now and then.
    let near = |key: u8, chance: &mut Seeded| if chance.one_in(3) { key } else { key % 8 };
    Some(match chance.below(14) {
        0..=1 => Transact::Begin,
        2..=4 => {
            let key = key(chance);
            Transact::Get(which, slot(chance), near(key, chance))
        }
        5..=6 => Transact::Write(which, op(chance, temper)),
        7 => {
            let op = op(chance, temper);
            Transact::FoldAndGet(which, TableOp { key: near(op.key, chance), ..op })
        }
        8 => {
            let durability = [Durability::Buffered, Durability::Process, Durability::Sync];
            Transact::Commit(which, *chance.pick(&durability))
        }
        9 if chance.one_in(8) => Transact::Forget(which),
        10 => Transact::Scan(which, slot(chance), scan(chance)),
        11 => {
            let op = op(chance, temper);
            Transact::Take(which, TableOp { key: near(op.key, chance), ..op })
        }
        _ => return None,
    })
}

/// In one program of three: tables are dropped, and loaded instead.
fn with_loads(actions: Vec<Action>, seed: u64, temper: &Temper) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0x10ad);
    if !chance.one_in(3) {
        return actions;
    }
    let mut all = Vec::with_capacity(2 * actions.len());
    let mut loads = false;
    for action in actions {
        all.push(action);
        match chance.below(if loads { 8 } else { 40 }) {
            0 if !loads => {
                let slot = slot(chance);
                let begins = [Action::Drop(slot), Action::Load(Load::Begin(slot, loadable(chance)))];
                let is_taken = chance.one_in(8); // then it is refused
                all.extend(begins.into_iter().skip(usize::from(is_taken)));
                loads = true;
            }
            0 => {
                all.push(Action::Load(if chance.one_in(5) { Load::GiveUp } else { Load::Finish }));
                loads = false;
            }
            1..=3 if loads => {
                let mut rows: Vec<TableOp> = (0..1 + chance.below(30)).map(|_| op(chance, temper)).collect();
                // A part of the keys each time, so that the next rows come after these.
                rows.iter_mut().for_each(|row| row.key = row.key / 3 + chance.below(10) as u8);
                all.push(Action::Load(Load::Rows(rows)));
            }
            _ => {}
        }
    }
    all
}

/// Mostly of a kind that can be loaded.
fn loadable(chance: &mut Seeded) -> Shape {
    let drawn = shape(chance);
    if chance.one_in(8) {
        return drawn;
    }
    let order = if drawn.order == Order::Hashed { Order::Bytewise } else { drawn.order };
    Shape { order, separate: None, expire: Expire::Never, archives_log: false, ..drawn }
}

/// In one program of three.
fn with_cursors(actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0xc0c0);
    if !chance.one_in(3) {
        return actions;
    }
    let mut all = Vec::with_capacity(2 * actions.len());
    for action in actions {
        all.push(action);
        match chance.below(10) {
            0..=1 => {
                let at = chance.one_in(2).then(|| chance.below(8) as u8);
                let (slot, rows) = (slot(chance), chance.below(12) as u8);
                all.push(Action::Cursor(CursorStep::Leave { slot, at, scan: scan(chance), rows }));
            }
            2..=3 => {
                let how = *chance.pick(&[Resume::Strict, Resume::Strict, Resume::Relaxed]);
                all.push(Action::Cursor(CursorStep::GoOn(chance.below(6) as u8, how)));
            }
            _ => {}
        }
    }
    all
}

/// Seldom: each takes a store of its own, or several.
fn with_others(actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0x0be5);
    let mut all = Vec::with_capacity(actions.len() + 4);
    for action in actions {
        all.push(action);
        let other = match chance.below(100) {
            0 if chance.one_in(2) => Other::Compare(slot(chance), chance.next_u64() as u8),
            0 => Other::BringUp(slot(chance), chance.next_u64() as u8),
            1 => Other::Secondary,
            2 if chance.one_in(2) => Other::Freeze,
            2 => Other::Rebuild,
            _ => continue,
        };
        all.push(Action::Other(other));
    }
    all
}

/// In every second program; in one of four, hours pass, too, where there is a clock to move.
fn with_pasts(actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0x9a57);
    let (has_pasts, has_hours) = (chance.one_in(2), chance.one_in(4));
    let mut all = Vec::with_capacity(2 * actions.len());
    for action in actions {
        all.push(action);
        match chance.below(24) {
            0..=1 if has_pasts => all.push(Action::Past(slot(chance), chance.next_u64() as u8)),
            2..=3 if has_hours => all.push(Action::Clock(1, *chance.pick(&[3600, 3600, 7200]))),
            _ => {}
        }
    }
    all
}

/// In every second program, and seldom there: each makes two stores. Backups are made of what a
/// reader has seen some time ago, so there are more readers.
fn with_copies(actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0xc0b7);
    if chance.one_in(2) {
        return actions;
    }
    let mut all = Vec::with_capacity(actions.len() + 4);
    for action in actions {
        all.push(action);
        match chance.below(120) {
            0 => all.push(Action::Other(Other::Dump)),
            1..=2 => all.push(Action::Other(Other::BackUp)),
            3..=4 => all.push(Action::Other(Other::Secondary)),
            _ => {}
        }
    }
    all
}

/// In one program of three, documents take the place of values that replace, or are joined.
fn with_documents(mut actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0x150d);
    if !chance.one_in(3) {
        return actions;
    }
    for action in &mut actions {
        if let Action::Create(_, shape) | Action::Load(Load::Begin(_, shape)) = action
            && matches!(shape.kind, Kind::Replace | Kind::First | Kind::Append | Kind::MaxU64)
        {
            shape.kind = Kind::Json;
        }
    }
    actions
}

/// In every second program with transactions: they ask indexes, also for their own writes.
fn with_finds(actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0xf1d5);
    let is_transacting = actions.iter().any(|action| matches!(action, Action::Transact(_)));
    if !is_transacting || chance.one_in(2) {
        return actions;
    }
    let mut all = Vec::with_capacity(2 * actions.len());
    for action in actions {
        let written = match &action {
            Action::Transact(Transact::Write(which, op) | Transact::FoldAndGet(which, op)) => {
                Some((*which, op.table))
            }
            _ => None,
        };
        all.push(action);
        match written {
            Some((which, table)) if chance.one_in(3) => {
                all.extend([Action::AddIndex(table, None), Action::Transact(Transact::Find(which, table))]);
            }
            _ => {}
        }
    }
    all
}

/// In every second program ranges are merged, most of them to their end.
fn with_ranges(actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0x4a46);
    if chance.one_in(2) {
        return actions;
    }
    let mut all = Vec::with_capacity(actions.len() + 8);
    for action in actions {
        all.push(action);
        if chance.one_in(12) {
            let stop_after = chance.one_in(4).then(|| chance.below(4) as u8);
            all.push(Action::CompactRange(slot(chance), scan(chance), stop_after));
        }
    }
    all
}

/// In every second program: syncs that a handle asks for.
fn with_handles(actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0x5a1c);
    if chance.one_in(2) {
        return actions;
    }
    let mut all = Vec::with_capacity(actions.len() + 8);
    for action in actions {
        all.push(action);
        if chance.one_in(16) {
            all.push(Action::SyncLater(chance.one_in(2)));
        }
    }
    all
}

/// In every second program: rules of tables are altered, and some tables compacted after that.
fn with_alterations(actions: Vec<Action>, seed: u64) -> Vec<Action> {
    let chance = &mut Seeded::new(seed ^ 0xa17e4);
    if chance.one_in(2) {
        return actions;
    }
    let mut all = Vec::with_capacity(actions.len() + 8);
    for action in actions {
        all.push(action);
        if chance.one_in(12) {
            let slot = slot(chance);
            all.push(Action::Alter(slot, chance.next_u64() as u8));
            all.extend(chance.one_in(4).then_some(Action::Compact(slot, None)));
        }
    }
    all
}
