//! The writes of the threads, and what must hold for them at every moment.
//!
//! Writer `w` commits steps 1, 2, 3, ... Step `n` is one batch over most of these tables, so that
//! any one moment of the store shows, for each writer, exactly the steps up to some `n`:
//!
//! ```text
//!   left, right   amounts by account; a step moves one from left to right     the total never changes
//!   marks         (w, slot) -> n, padded                                      all slots of w say n
//!   sums          w -> the sum of all n                                       n (n + 1) / 2
//!   firsts        (w, n / 64) -> n, by insert; groups grow old and are deleted   the first of the group won
//!   history       (w, n % 512) -> n, padded                                   the last 512 steps of w
//!   windows       (w, i) -> n, every eighth step cleared and refilled          all of them of one step
//!   singles       w -> n, by single writes                                    alone, so checked alone
//!   hits          0 -> how many single folds, by all threads
//! ```
//!
//! [`Books`] are the tables, [`Cut`] is what a reader found in them at one moment, [`Cut::steps`]
//! judges it.

use std::collections::BTreeMap;

use folddb::codec::{AsKey, Key, Value};
use folddb::{Batch, Result, Rules, Snapshot, Store, Table};

use crate::chance::Seeded;

/// The total of all accounts.
pub const TOTAL: i64 = 1_000_000;
/// Accounts on each side.
pub const ACCOUNTS: u64 = 16;
/// Keys of `marks` that a step sets.
pub const SLOTS: u64 = 4;
const GROUP: u64 = 64;
const GROUPS_KEPT: u64 = 8;
const HISTORY: u64 = 512;
const WINDOW_EVERY: u64 = 8;
const WINDOW_ROWS: u64 = 5;
/// The number read from a padded value that does not fit its number.
const WRONG: u64 = u64::MAX;

/// The tables.
#[derive(Clone)]
pub struct Books {
    /// Accounts that amounts are taken from.
    pub left: Table<u64, i64>,
    /// Accounts that amounts are given to.
    pub right: Table<u64, i64>,
    /// The last step of each writer, in several places.
    pub marks: Table<(u64, u64), Vec<u8>>,
    /// The sum of all steps of each writer.
    pub sums: Table<u64, u64>,
    /// The first step of each group of steps.
    pub firsts: Table<(u64, u64), u64>,
    /// The last steps of each writer.
    pub history: Table<(u64, u64), Vec<u8>>,
    /// Rows that live from one range delete to the next.
    pub windows: Table<(u64, u64), u64>,
    /// The last single write of each writer.
    pub singles: Table<u64, u64>,
    /// One counter for all.
    pub hits: Table<u64, u64>,
}

impl Books {
    /// Opens the tables, or creates them and opens the accounts.
    ///
    /// # Errors
    /// As [`Store::table`].
    pub fn open(store: &Store) -> Result<Books> {
        let sums = || Rules::sorted::<u64, u64>().fold("sum:u64");
        let accounts = || Rules::sorted::<u64, i64>().fold("sum:i64");
        let books = Books {
            left: store.table("left", accounts())?,
            right: store.table("right", accounts())?,
            marks: store.table("marks", Rules::sorted::<(u64, u64), Vec<u8>>())?,
            sums: store.table("sums", sums())?,
            firsts: store.table("firsts", Rules::sorted::<(u64, u64), u64>())?,
            history: store.table("history", Rules::sorted::<(u64, u64), Vec<u8>>().lz4())?,
            windows: store.table("windows", Rules::sorted::<(u64, u64), u64>())?,
            singles: store.table("singles", Rules::sorted::<u64, u64>())?,
            hits: store.table("hits", sums())?,
        };
        books.left.put_if_absent(&ACCOUNTS, &TOTAL)?;
        Ok(books)
    }

    /// Puts step `n` of writer `w` into a batch. Which amounts move, and in which order the tables
    /// come, is left to chance; `clear` says how windows are cleared.
    pub fn fill(&self, batch: &mut Batch, w: u64, n: u64, clear: Clear, chance: &mut Seeded) {
        let first = chance.below(6);
        for part in (first..6).chain(0..first) {
            match part {
                0 => self.fill_accounts(batch, chance),
                1 => self.fill_marks(batch, w, n),
                2 => _ = batch.fold(&self.sums, &w, &n),
                3 => self.fill_firsts(batch, w, n),
                4 => _ = batch.put(&self.history, &(w, n % HISTORY), &padded(w, n, 900)),
                _ => self.fill_window(batch, w, n, clear),
            }
        }
    }

    fn fill_accounts(&self, batch: &mut Batch, chance: &mut Seeded) {
        let amount = chance.below(1000) as i64;
        let (from, to) = (chance.below(ACCOUNTS), chance.below(ACCOUNTS));
        batch.fold(&self.left, &from, &-amount).fold(&self.right, &to, &amount);
    }

    fn fill_marks(&self, batch: &mut Batch, w: u64, n: u64) {
        for slot in 0..SLOTS {
            batch.put(&self.marks, &(w, slot), &padded(w, n, 100));
        }
    }

    fn fill_firsts(&self, batch: &mut Batch, w: u64, n: u64) {
        let group = n / GROUP;
        batch.put_if_absent(&self.firsts, &(w, group), &n);
        if let Some(old) = group.checked_sub(GROUPS_KEPT) {
            batch.delete(&self.firsts, &(w, old));
        }
    }

    fn fill_window(&self, batch: &mut Batch, w: u64, n: u64, clear: Clear) {
        if !n.is_multiple_of(WINDOW_EVERY) {
            return;
        }
        match clear {
            Clear::ByRange => {
                let (from, to) = (key_bytes(&(w, 0)), key_bytes(&(w + 1, 0)));
                batch.delete_range(self.windows.as_bytes(), &from, &to);
            }
            Clear::ByKey => {
                for key in window_keys(w, n - WINDOW_EVERY) {
                    batch.delete(&self.windows, &key);
                }
            }
        }
        for key in window_keys(w, n) {
            batch.put(&self.windows, &key, &n);
        }
    }

    /// Everything at a snapshot.
    ///
    /// # Errors
    /// The first failed read.
    pub fn cut(&self, at: &Snapshot, reversed: bool) -> Result<Cut> {
        fn rows<K: Key + Ord, V: Value, W>(
            at: &Snapshot,
            table: &Table<K, V>,
            reversed: bool,
            decode: impl Fn(&K, V) -> W,
        ) -> Result<BTreeMap<K, W>> {
            let scan = if reversed { at.scan(table).reverse() } else { at.scan(table) };
            scan.into_iter()
                .map(|row| {
                    row.map(|(key, value)| {
                        let value = decode(&key, value);
                        (key, value)
                    })
                })
                .collect()
        }
        Ok(Cut {
            left: rows(at, &self.left, reversed, |_, amount| amount)?,
            right: rows(at, &self.right, reversed, |_, amount| amount)?,
            marks: rows(at, &self.marks, reversed, |key, value| number(key.0, &value, 100))?,
            sums: rows(at, &self.sums, reversed, |_, sum| sum)?,
            firsts: rows(at, &self.firsts, reversed, |_, n| n)?,
            history: rows(at, &self.history, reversed, |key, value| number(key.0, &value, 900))?,
            windows: rows(at, &self.windows, reversed, |_, n| n)?,
            singles: rows(at, &self.singles, reversed, |_, n| n)?,
            hits: at.get(&self.hits, &0)?.unwrap_or(0),
        })
    }
}

/// How the rows of a window are deleted. A table takes a bounded number of range deletes before it
/// must be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clear {
    /// All at once.
    ByRange,
    /// One by one.
    ByKey,
}

/// The keys of the window that step `n` fills.
fn window_keys(w: u64, n: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..WINDOW_ROWS).map(move |i| (w, (n + i) % 1000))
}

/// The key as the store orders it.
pub fn key_bytes<K: Key, Q: AsKey<K>>(key: &Q) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode_key(&mut bytes);
    bytes
}

/// The bytes that mean step `n` of writer `w`: the number, and fewer than `more` bytes that follow
/// from both.
pub fn padded(w: u64, n: u64, more: u64) -> Vec<u8> {
    let mut chance = Seeded::new(n ^ (w << 48));
    let mut value = n.to_le_bytes().to_vec();
    value.resize(8 + chance.below(more) as usize, chance.next_u64() as u8);
    value
}

/// The step that a padded value means; one that no writer reaches when it is not whole.
pub fn number(w: u64, value: &[u8], more: u64) -> u64 {
    let n = value.get(..8).and_then(|head| head.try_into().ok()).map_or(WRONG, u64::from_le_bytes);
    if padded(w, n, more) == value { n } else { WRONG }
}

/// What a reader found at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// `left`.
    pub left: BTreeMap<u64, i64>,
    /// `right`.
    pub right: BTreeMap<u64, i64>,
    /// `marks`, as numbers.
    pub marks: BTreeMap<(u64, u64), u64>,
    /// `sums`.
    pub sums: BTreeMap<u64, u64>,
    /// `firsts`.
    pub firsts: BTreeMap<(u64, u64), u64>,
    /// `history`, as numbers.
    pub history: BTreeMap<(u64, u64), u64>,
    /// `windows`.
    pub windows: BTreeMap<(u64, u64), u64>,
    /// `singles`.
    pub singles: BTreeMap<u64, u64>,
    /// The counter.
    pub hits: u64,
}

impl Cut {
    /// The last step of each of the writers 0 to `writers`, given that the cut shows whole steps
    /// and nothing else.
    ///
    /// # Errors
    /// Says what it shows instead.
    pub fn steps(&self, writers: u64) -> Result<Vec<u64>, String> {
        let total: i64 = self.left.values().chain(self.right.values()).sum();
        if total != TOTAL {
            return Err(format!("the accounts hold {total} together and not {TOTAL}"));
        }
        let steps: Vec<u64> = (0..writers).map(|w| self.marks.get(&(w, 0)).copied().unwrap_or(0)).collect();
        let wanted = Cut::after(&steps);
        compare("marks", &self.marks, &wanted.marks)?;
        compare("sums", &self.sums, &wanted.sums)?;
        compare("firsts", &self.firsts, &wanted.firsts)?;
        compare("history", &self.history, &wanted.history)?;
        compare("windows", &self.windows, &wanted.windows)?;
        Ok(steps)
    }

    /// The cut once each writer has done these steps, except for unknown parts: accounts and single
    /// writes.
    fn after(steps: &[u64]) -> Cut {
        let mut cut = Cut::default();
        for (w, &n) in (0..).zip(steps).filter(|(_, n)| **n > 0) {
            cut.marks.extend((0..SLOTS).map(|slot| ((w, slot), n)));
            cut.sums.insert(w, n * (n + 1) / 2);
            let groups = (n / GROUP).saturating_sub(GROUPS_KEPT - 1)..=n / GROUP;
            cut.firsts.extend(groups.map(|group| ((w, group), (group * GROUP).max(1))));
            let history = n.saturating_sub(HISTORY - 1).max(1)..=n;
            cut.history.extend(history.map(|n| ((w, n % HISTORY), n)));
            let turned = n / WINDOW_EVERY * WINDOW_EVERY;
            if turned > 0 {
                cut.windows.extend(window_keys(w, turned).map(|key| (key, turned)));
            }
        }
        cut
    }
}

/// Finds the first key at which two maps differ.
fn compare<K: Ord + std::fmt::Debug>(
    table: &str,
    found: &BTreeMap<K, u64>,
    wanted: &BTreeMap<K, u64>,
) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    let differs = |key: &&K| found.get(*key) != wanted.get(*key);
    let Some(key) = wanted.keys().chain(found.keys()).find(differs) else { return Ok(()) };
    Err(format!(
        "table `{table}` has {:?} at {key:?} where the other tables say {:?}",
        found.get(key),
        wanted.get(key)
    ))
}

#[cfg(test)]
#[path = "books/tests.rs"]
mod tests;
