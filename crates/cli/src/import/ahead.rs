//! Rows that are folded before they are written: those of a key become one operand.
//!
//! Folding is associative, byte for byte, so it does not matter to the value of a key whether its
//! rows are folded by the store, or in groups before. [`folds`] says where it is done: not where
//! the rows themselves are kept, or decide when the key is absent.
//!
//! ```text
//!   rows in order     (a,1) (b,2) (a,3) (a,4)         a ─> 1 ─> 3 ─> 4     b ─> 2
//!   settled           (a, 1·3·4) (b, 2)
//! ```
//!
//! Operands are gathered by key, and those of a key are folded at once when all is settled: at the
//! end, and as often as what was gathered has doubled. Operands that do not fold, and those that
//! are long together, stay apart: then a key has several, in order.
//!
//! Where hardly a key of a piece repeats in it, its rows are a list, and keys are looked for once,
//! in what is gathered of all pieces.
//!
//! Keys are in parts, by their hashes. What later pieces of a file bring is folded in part by part,
//! of several pieces at once: a part of many keys is still small enough for a cache of the
//! processor, where finding each key in all of them waits for memory.

mod by_key;

use folddb::table_rules::PredicateRule;
use folddb::{DynamicRules, Expire, Fold, Keep};
use twox_hash::XxHash3_64;

use by_key::ByKey;

/// By so many parts of all keys, which are told apart by their hashes.
const PARTS: usize = 16;
/// What was added is gathered by key when it takes this much memory.
const LATER_BYTES: usize = 6 << 20;
/// Less than this is not worth a thread.
const OF_THREAD_BYTES: usize = 1 << 20;

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

/// Operands, those of a key folded.
#[derive(Default)]
pub(crate) struct Folded {
    parts: [ByKey; PARTS],
    /// How many rows it is of.
    rows: u64,
    /// What was added, and is not folded in.
    later: Vec<Folded>,
    later_bytes: usize,
}

impl Folded {
    /// How much memory it took when all was settled last.
    pub(crate) fn settled_bytes(&self) -> usize {
        self.parts.iter().map(ByKey::settled_bytes).sum()
    }

    /// How much memory it takes, without what is later.
    pub(crate) fn held_bytes(&self) -> usize {
        self.parts.iter().map(ByKey::held_bytes).sum()
    }

    /// An empty one with as much room as this one takes, for rows like these.
    pub(crate) fn empty_like(&self) -> Folded {
        Folded { parts: std::array::from_fn(|part| self.parts[part].empty_like()), ..Folded::default() }
    }

    /// Forgets all of it; the buffers are kept.
    pub(crate) fn clear(&mut self) {
        self.parts.iter_mut().for_each(ByKey::clear);
        self.later.clear();
        (self.rows, self.later_bytes) = (0, 0);
    }

    /// The keys and operands, once all is settled: keys in the order of their first rows, and the
    /// operands of a key in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        debug_assert!(self.later.is_empty(), "all is settled");
        let parts = self.parts.iter().enumerate();
        let mut keys: Vec<(u64, usize, usize)> = parts
            .flat_map(|(part, by_key)| by_key.keys().map(move |(before, number)| (before, part, number)))
            .collect();
        keys.sort_unstable();
        keys.into_iter().flat_map(|(_, part, number)| self.parts[part].rows_of(number))
    }

    /// Adds a row of a piece. Keys are told apart where that makes it smaller.
    pub(crate) fn push(&mut self, fold: Option<&dyn Fold>, key: &[u8], value: &[u8]) {
        let before = self.rows;
        self.rows += 1;
        let Some(fold) = fold else { return self.parts[0].add_key(0, before, key, value) };
        let hash = XxHash3_64::oneshot(key);
        let part = &mut self.parts[(hash >> 32) as usize % PARTS];
        part.add_in_piece(hash as u32, before, key, value);
        part.settle_if_grown(fold);
    }

    /// Adds all of another one, which is later, and to which nothing was added; with so many
    /// threads.
    pub(crate) fn add(&mut self, fold: Option<&dyn Fold>, later: Folded, threads: usize) {
        debug_assert!(later.later.is_empty(), "nothing was added to it");
        self.later_bytes += later.held_bytes();
        self.later.push(later);
        if self.later_bytes >= LATER_BYTES {
            self.add_later(fold, threads, |_| {});
        }
    }

    /// Folds the operands of keys, in parts where most have several; before it is added to another.
    pub(crate) fn settle_if_many(&mut self, fold: Option<&dyn Fold>) {
        debug_assert!(self.later.is_empty(), "nothing was added");
        if let Some(fold) = fold {
            self.parts.iter_mut().for_each(|part| part.settle_if_many(fold));
        }
    }

    /// Folds the operands of each key, so that it has one, if they fold; with so many threads.
    pub(crate) fn settle(&mut self, fold: Option<&dyn Fold>, threads: usize) {
        self.add_later(fold, threads, |part| {
            if let Some(fold) = fold {
                part.settle(fold);
            }
        });
    }

    /// Adds what is later to the operands of the keys, part by part, and does something with each
    /// part.
    fn add_later(&mut self, fold: Option<&dyn Fold>, threads: usize, then: impl Fn(&mut ByKey) + Sync) {
        let mut later = Vec::new();
        for more in self.later.drain(..) {
            let before = self.rows;
            self.rows += more.rows;
            later.push((before, more));
        }
        let bytes = std::mem::take(&mut self.later_bytes);
        let add_to = |numbered: (usize, &mut ByKey)| {
            let (number, part) = numbered;
            for (before, later) in &later {
                match fold {
                    Some(fold) => part.add(fold, *before, &later.parts[number]),
                    None => part.add_keys(&later.parts[number]),
                }
            }
            then(part);
        };
        let threads = threads.min(bytes / OF_THREAD_BYTES).clamp(1, PARTS);
        let mut parts: Vec<(usize, &mut ByKey)> = self.parts.iter_mut().enumerate().collect();
        std::thread::scope(|scope| {
            while parts.len() > PARTS / threads {
                let some = parts.split_off(parts.len() - PARTS / threads);
                scope.spawn(|| some.into_iter().for_each(add_to));
            }
            parts.into_iter().for_each(add_to);
        });
    }
}

#[cfg(test)]
#[path = "ahead/tests.rs"]
mod tests;
