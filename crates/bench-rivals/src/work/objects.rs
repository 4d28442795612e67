//! Objects under keys that look random. How often an object was written determines its value.
//! `more-than-ram`, `leveled` and `elliptics` put and get them.

use anyhow::Result;
use folddb_bench::check::RowSum;
use folddb_bench::generate::{Chance, Objects, RandomRows, mix};

use super::load::Source;
use super::reads::{self, Questions};
use crate::rival::{Op, Rival, Sight};

/// The longest key.
const ID_BYTES: usize = 64;

/// Where the objects of a run come from.
pub(super) struct Shelf {
    rows: RandomRows,
    pub(super) objects: Objects,
    key_bytes: usize,
}

/// A key, without an allocation.
pub(super) struct Id {
    bytes: [u8; ID_BYTES],
    len_bytes: usize,
}

impl Id {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len_bytes]
    }
}

impl Shelf {
    /// Objects of these sizes under keys of 8 to 64 bytes.
    pub(super) fn new(seed: u64, key_bytes: usize, bytes_min: usize, bytes_max: usize) -> Shelf {
        let key_bytes = key_bytes.clamp(8, ID_BYTES);
        Shelf { rows: RandomRows::new(seed), objects: Objects::new(seed, bytes_min, bytes_max), key_bytes }
    }

    /// The number at the beginning of the key of an index. The rest of the key follows from it.
    pub(super) fn number(&self, index: u64) -> u64 {
        self.rows.key(index)
    }

    /// The key of an index.
    pub(super) fn id(&self, index: u64) -> Id {
        let mut word = self.number(index);
        let mut bytes = [0; ID_BYTES];
        for part in bytes[..self.key_bytes].chunks_mut(8) {
            part.copy_from_slice(&word.to_be_bytes()[..part.len()]);
            word = mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15));
        }
        Id { bytes, len_bytes: self.key_bytes }
    }

    /// The bytes of a key and a version of its object.
    pub(super) fn row_bytes(&self, index: u64, version: u64) -> u64 {
        (self.key_bytes + self.objects.len_bytes(self.number(index), version)) as u64
    }
}

/// Puts of all objects in rounds, the objects of a round in one order.
pub(super) struct Puts<'a> {
    shelf: &'a Shelf,
    keys: u64,
    next: u64,
    id: Id,
    value: Vec<u8>,
    /// Bytes of keys and values up to now.
    pub(super) bytes: u64,
}

impl Puts<'_> {
    /// Puts of this many keys, from the first on.
    pub(super) fn new(shelf: &Shelf, keys: u64) -> Puts<'_> {
        Puts { shelf, keys, next: 0, id: shelf.id(0), value: Vec::new(), bytes: 0 }
    }
}

impl Source for Puts<'_> {
    fn next(&mut self) -> Op<'_> {
        let (index, version) = (self.next % self.keys, self.next / self.keys);
        self.next += 1;
        self.id = self.shelf.id(index);
        self.shelf.objects.fill(self.shelf.number(index), version, &mut self.value);
        self.bytes += (self.id.len_bytes + self.value.len()) as u64;
        Op::Put { key: self.id.bytes(), value: &self.value }
    }
}

/// What is in the store: for each index, the version that was written last.
pub(super) struct Versions<'a> {
    pub(super) shelf: &'a Shelf,
    pub(super) last: Vec<u64>,
}

impl Versions<'_> {
    /// The versions after this many puts, in rounds over all keys. There are at least as many puts
    /// as keys.
    pub(super) fn after(shelf: &Shelf, puts: u64, keys: u64) -> Versions<'_> {
        let (rounds, rest) = (puts / keys, puts % keys);
        let last = (0..keys).map(|index| rounds + u64::from(index < rest) - 1).collect();
        Versions { shelf, last }
    }

    /// The bytes of all keys and values.
    pub(super) fn live_bytes(&self) -> u64 {
        self.rows().map(|(index, version)| self.shelf.row_bytes(index, version)).sum()
    }

    /// What must be in the store.
    pub(super) fn sum(&self) -> RowSum {
        let mut sum = RowSum::default();
        self.rows().for_each(|(index, version)| sum.add(self.shelf.number(index), version));
        sum
    }

    /// What is in the store, by a scan; `None` if something is wrong.
    pub(super) fn found(&self, store: &dyn Rival) -> Result<Option<RowSum>> {
        Ok(reads::scan(&mut *store.reader(Sight::Still)?, self, store.is_ordered())?.1)
    }

    fn rows(&self) -> impl Iterator<Item = (u64, u64)> {
        (0u64..).zip(self.last.iter().copied())
    }
}

impl Questions for Versions<'_> {
    fn hit(&self, chance: &mut Chance, key: &mut Vec<u8>, value: &mut Vec<u8>) {
        let index = chance.below(self.last.len() as u64);
        key.clear();
        key.extend_from_slice(self.shelf.id(index).bytes());
        self.shelf.objects.fill(self.shelf.number(index), self.last[index as usize], value);
    }

    fn miss(&self, chance: &mut Chance, key: &mut Vec<u8>) {
        let keys = self.last.len() as u64;
        key.clear();
        key.extend_from_slice(self.shelf.id(keys + chance.below(keys)).bytes());
    }

    fn numbers(&self, key: &[u8], value: &[u8]) -> Option<(u64, u64)> {
        let number = u64::from_be_bytes(*key.first_chunk()?);
        let (of, version) = self.shelf.objects.read(value)?;
        (of == number && key.len() == self.shelf.key_bytes).then_some((number, version))
    }
}

#[cfg(test)]
#[path = "objects/tests.rs"]
mod tests;
