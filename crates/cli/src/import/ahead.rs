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

use folddb::table_rules::PredicateRule;
use folddb::{DynamicRules, Expire, Fold, Keep, Outcome};
use twox_hash::XxHash3_64;

/// A folded value that is longer than this is left as it is, and another one begins.
const FOLDED_BYTES_MAX: usize = 1 << 16;

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
    scratch: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Operand {
    hash: u64,
    key: (usize, usize),
    value: (usize, usize),
    /// How much room the value has.
    room: usize,
}

impl Folded {
    /// How many operands there are.
    pub(crate) fn len(&self) -> usize {
        self.operands.len()
    }

    /// How much memory the keys and values take.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets all of it; the buffers are kept.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.operands.clear();
        self.slots.fill(0);
        self.keys = 0;
    }

    /// The keys and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
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

    /// Adds all of another one, which is later.
    pub(crate) fn add(&mut self, fold: Option<&dyn Fold>, later: &Folded) {
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
        self.operands.push(Operand { hash, key: (begin, middle), value, room: value.1 - value.0 });
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
