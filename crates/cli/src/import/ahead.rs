//! Rows that are folded before they are written: those of a key become one operand.
//!
//! Folding is associative, byte for byte, so it does not matter to the value of a key whether its
//! rows are folded by the store, or in groups before. [`folds`] says where it is done: not where
//! the rows themselves are kept, or decide when the key is absent.
//!
//! ```text
//!   rows in order     (a,1) (b,2) (a,3) (a,4)    ->    (a, 1·3·4) (b, 2)
//! ```
//!
//! Operands that do not fold, and values that become long, stay apart: then a key has several
//! operands, in order.
//!
//! Folding a row onto a long value (a sketch, a set) would copy that value for each row. So rows
//! that come after a long value are folded with one another first, and onto it when they are many:
//!
//! ```text
//!   long value   rows after it               rows after it, 64 of them     ->    long value
//!   a·b·c···     d·e                   ...   d·e·f···                            a·b·c···d·e·f···
//! ```

use folddb::table_rules::PredicateRule;
use folddb::{DynamicRules, Expire, Fold, Keep, Outcome};
use twox_hash::XxHash3_64;

/// A folded value that is longer than this is left as it is, and another one begins.
const FOLDED_BYTES_MAX: usize = 1 << 16;
/// Rows are folded with one another first if they come after a value that is at least this long.
const LONG_BYTES: usize = 256;
/// So many of them at most.
const RECENT_ROWS_MAX: u32 = 64;

/// Whether rows of a table may be folded before they are written.
pub(crate) fn folds(rules: &DynamicRules) -> bool {
    let Some(fold) = rules.fold() else { return false };
    let table = rules.as_table_rules();
    let is_plain = table.keep == Keep::Latest
        && table.expire == Expire::Never
        && table.delete == PredicateRule::Never
        && table.short_circuit == PredicateRule::Never
        && table.indexes.is_empty();
    is_plain
        && table.fold.spec() != "replace"
        && !fold.has_delete()
        && !fold.is_approximate()
        && fold.joins_with().is_none()
}

/// Operands, those of a key folded into one.
#[derive(Default)]
pub(crate) struct Folded {
    /// The keys and values, one after the other; some bytes are of no operand any more.
    bytes: Vec<u8>,
    operands: Vec<Operand>,
    /// The last operand of each key, by the hash of it: numbers from 1, and 0 where there is none.
    slots: Vec<u32>,
    /// How many keys have a slot.
    keys: usize,
    /// What comes after long values.
    recent: Vec<Recent>,
    scratch: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Operand {
    hash: u64,
    key: (usize, usize),
    value: (usize, usize),
    /// How much room the value has.
    room: usize,
    /// What comes after it, by its number from 1; 0 if there was nothing.
    recent: u32,
}

/// Rows after a long value, folded.
#[derive(Default)]
struct Recent {
    value: Vec<u8>,
    /// How many they are.
    rows: u32,
}

impl Folded {
    /// How many operands there are.
    pub(crate) fn len(&self) -> usize {
        self.operands.len()
    }

    /// How much memory the keys and values take.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len() + self.recent.len() * LONG_BYTES
    }

    /// Forgets all of it; the buffers are kept.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.operands.clear();
        self.slots.fill(0);
        self.keys = 0;
        self.recent.clear();
    }

    /// The keys and values, once all are settled.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        debug_assert!(self.recent.iter().all(|recent| recent.rows == 0), "all are settled");
        self.operands.iter().map(|operand| (self.key(operand), self.value(operand)))
    }

    /// Adds a row: its value is folded onto that of its key, if there is a fold.
    pub(crate) fn push(&mut self, fold: Option<&dyn Fold>, key: &[u8], value: &[u8]) {
        match fold {
            Some(fold) => self.fold(fold, XxHash3_64::oneshot(key), key, value),
            None => {
                self.append(0, key, value);
            }
        }
    }

    /// Adds all of another one, which is later and settled.
    pub(crate) fn add(&mut self, fold: Option<&dyn Fold>, later: &Folded) {
        debug_assert!(later.recent.iter().all(|recent| recent.rows == 0), "all are settled");
        for operand in &later.operands {
            let (key, value) = (later.key(operand), later.value(operand));
            match fold {
                Some(fold) => self.fold(fold, operand.hash, key, value),
                None => {
                    self.append(0, key, value);
                }
            }
        }
    }

    fn key(&self, operand: &Operand) -> &[u8] {
        &self.bytes[operand.key.0..operand.key.1]
    }

    fn value(&self, operand: &Operand) -> &[u8] {
        &self.bytes[operand.value.0..operand.value.1]
    }

    fn fold(&mut self, fold: &dyn Fold, hash: u64, key: &[u8], value: &[u8]) {
        if self.keys * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(hash, key);
        let Some(at) = (self.slots[slot] as usize).checked_sub(1) else {
            self.keys += 1;
            self.slots[slot] = self.append(hash, key, value);
            return;
        };
        let Operand { value: (begin, end), recent, .. } = self.operands[at];
        if end - begin >= LONG_BYTES && value.len() * 4 <= end - begin {
            return self.fold_recent(fold, slot, at, value);
        }
        if recent > 0 && self.settle_recent(fold, slot, at) {
            return self.fold(fold, hash, key, value); // onto what was settled
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let earlier = self.value(&self.operands[at]);
        match fold.fold(key, earlier, value, &mut scratch) {
            Ok(Outcome::KeepEarlier) => {}
            Ok(Outcome::KeepLater) => self.replace(at, value),
            Ok(Outcome::Value) if scratch.len() <= FOLDED_BYTES_MAX => self.replace(at, &scratch),
            Ok(Outcome::Value | Outcome::Delete) | Err(_) => self.slots[slot] = self.append(hash, key, value),
        }
        self.scratch = scratch;
    }

    /// Folds a short value onto the rows after a long one.
    fn fold_recent(&mut self, fold: &dyn Fold, slot: usize, at: usize, value: &[u8]) {
        if self.operands[at].recent == 0 {
            self.recent.push(Recent::default());
            self.operands[at].recent = self.recent.len() as u32;
        }
        let Operand { hash, key: (begin, end), recent, .. } = self.operands[at];
        let Recent { value: earlier, rows } = &mut self.recent[recent as usize - 1];
        *rows += 1;
        self.scratch.clear();
        let outcome = match *rows {
            1 => Ok(Outcome::KeepLater),
            _ => fold.fold(&self.bytes[begin..end], earlier, value, &mut self.scratch),
        };
        match outcome {
            Ok(Outcome::KeepEarlier) => {}
            Ok(Outcome::KeepLater) => {
                earlier.clear();
                earlier.extend_from_slice(value);
            }
            Ok(Outcome::Value) => std::mem::swap(earlier, &mut self.scratch),
            Ok(Outcome::Delete) | Err(_) => {
                *rows -= 1;
                let key = self.bytes[begin..end].to_vec();
                self.settle_recent(fold, slot, at);
                self.slots[slot] = self.append(hash, &key, value);
                return;
            }
        }
        if *rows >= RECENT_ROWS_MAX || earlier.len() >= 4 * LONG_BYTES {
            self.settle_recent(fold, slot, at);
        }
    }

    /// Folds the rows after a long value onto it. True if they are an operand of their own now.
    fn settle_recent(&mut self, fold: &dyn Fold, slot: usize, at: usize) -> bool {
        let Operand { hash, key: (begin, end), recent, .. } = self.operands[at];
        let Some(recent) = (recent as usize).checked_sub(1) else { return false };
        if std::mem::take(&mut self.recent[recent].rows) == 0 {
            return false;
        }
        let later = std::mem::take(&mut self.recent[recent].value);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let earlier = self.value(&self.operands[at]);
        let mut is_apart = false;
        match fold.fold(&self.bytes[begin..end], earlier, &later, &mut scratch) {
            Ok(Outcome::KeepEarlier) => {}
            Ok(Outcome::KeepLater) => self.replace(at, &later),
            Ok(Outcome::Value) if scratch.len() <= FOLDED_BYTES_MAX => self.replace(at, &scratch),
            Ok(Outcome::Value | Outcome::Delete) | Err(_) => {
                let key = self.bytes[begin..end].to_vec();
                self.slots[slot] = self.append(hash, &key, &later);
                is_apart = true;
            }
        }
        self.scratch = scratch;
        self.recent[recent].value = later;
        is_apart
    }

    /// Folds what comes after long values onto them, so that each key has one operand, if its
    /// operands fold.
    pub(crate) fn settle(&mut self, fold: Option<&dyn Fold>) {
        let Some(fold) = fold else { return };
        for at in 0..self.operands.len() {
            let Operand { hash, key, recent, .. } = self.operands[at];
            if recent > 0 {
                let slot = self.slot(hash, &self.bytes[key.0..key.1]);
                self.settle_recent(fold, slot, at);
            }
        }
    }

    /// The slot of a key, or the one where it may be put.
    fn slot(&self, hash: u64, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let Some(at) = (self.slots[slot] as usize).checked_sub(1) {
            let operand = &self.operands[at];
            if operand.hash == hash && self.key(operand) == key {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let last: Vec<u32> = self.slots.iter().copied().filter(|number| *number > 0).collect();
        let len = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(len, 0);
        for number in last {
            let mut slot = self.operands[number as usize - 1].hash as usize & (len - 1);
            while self.slots[slot] > 0 {
                slot = (slot + 1) & (len - 1);
            }
            self.slots[slot] = number;
        }
    }

    /// Adds an operand, and returns its number.
    fn append(&mut self, hash: u64, key: &[u8], value: &[u8]) -> u32 {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let middle = begin + key.len();
        let value = (middle, middle + value.len());
        self.operands.push(Operand { hash, key: (begin, middle), value, room: value.1 - value.0, recent: 0 });
        self.operands.len() as u32
    }

    /// Sets the value of an operand, where it is or, with room to grow, at the end.
    fn replace(&mut self, at: usize, value: &[u8]) {
        let operand = &mut self.operands[at];
        let begin = operand.value.0;
        if value.len() > operand.room {
            operand.room = value.len() * 2;
            operand.value.0 = self.bytes.len();
            self.bytes.extend_from_slice(value);
            self.bytes.resize(operand.value.0 + operand.room, 0);
        } else {
            self.bytes[begin..begin + value.len()].copy_from_slice(value);
        }
        operand.value.1 = operand.value.0 + value.len();
    }
}

#[cfg(test)]
#[path = "ahead/tests.rs"]
mod tests;
