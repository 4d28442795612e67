//! Operands, gathered by key and folded at once.
//!
//! ```text
//!   slots, by hash      keys                       operands                  bytes
//!   [hash, number] ─>   [name, first, last] ─────> [place, next] ─> ...      name·operand·operand·...
//! ```
//!
//! Settling writes the bytes anew, key after key, with one operand for each if they fold.

use folddb::limits::VALUE_BYTES_MAX;
use folddb::{Fold, Outcome};

/// Operands of a key that are longer than this together are not folded at once.
pub(super) const FOLDED_BYTES_MAX: usize = 1 << 20;
/// After so many keys of a piece it is known whether they repeat in it.
const KEYS_TO_TELL: usize = 128;
/// What is gathered is settled when it takes this much memory, and then when it has doubled.
pub(super) const SETTLE_BYTES: usize = 512 << 10;

/// Operands, by key.
#[derive(Default)]
pub(super) struct ByKey {
    /// The bytes of keys and operands, in the order in which they came.
    bytes: Vec<u8>,
    keys: Vec<Key>,
    operands: Vec<Operand>,
    /// The keys by their hashes, as an open table.
    slots: Vec<Slot>,
    /// Keys may be there several times: no more are looked for.
    is_list: bool,
    /// How much memory was taken when all was settled last.
    settled_bytes: usize,
}

/// A key, and its operands from the first to the last one.
#[derive(Clone, Copy)]
struct Key {
    hash: u32,
    place: Place,
    /// How many rows came before its first one.
    rows_before: u64,
    first: u32,
    last: u32,
}

#[derive(Clone, Copy)]
struct Operand {
    place: Place,
    /// The next one of its key, by its number; [`NONE`] if it is the last.
    next: u32,
}

const NONE: u32 = u32::MAX;

/// Where bytes are.
#[derive(Clone, Copy)]
struct Place {
    at: u32,
    len: u32,
}

impl Place {
    /// Of so many bytes. All together are far below 4 GiB, since what was gathered is settled, and
    /// committed, at a few MiB.
    fn of(at: usize, len: usize) -> Place {
        assert!(at <= u32::MAX as usize && len <= u32::MAX as usize, "{at} and {len} bytes");
        Place { at: at as u32, len: len as u32 }
    }
}

/// The number of a key from 1, and its hash; 0 if there is none.
#[derive(Clone, Copy, Default)]
struct Slot {
    hash: u32,
    number: u32,
}

impl ByKey {
    /// How much memory it takes, with room to grow.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.operands.capacity() * size_of::<Operand>()
            + self.keys.capacity() * size_of::<Key>()
            + self.slots.capacity() * size_of::<Slot>()
    }

    /// Whether keys may be there several times.
    #[cfg(test)]
    pub(super) fn is_list(&self) -> bool {
        self.is_list
    }

    /// How much of it is in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.operands) + size_of_val(&*self.keys) + size_of_val(&*self.slots)
    }

    /// How much memory it took when all was settled last.
    pub(super) fn settled_bytes(&self) -> usize {
        self.settled_bytes
    }

    /// An empty one with room for as much, and a bit more.
    pub(super) fn empty_like(&self) -> ByKey {
        let more = |len: usize| len + len / 8;
        ByKey {
            bytes: Vec::with_capacity(more(self.bytes.len())),
            keys: Vec::with_capacity(more(self.keys.len())),
            operands: Vec::with_capacity(more(self.operands.len())),
            slots: vec![Slot::default(); self.slots.len()],
            ..ByKey::default()
        }
    }

    /// Forgets all of it; the buffers are kept.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
        self.operands.clear();
        self.slots.fill(Slot::default());
        (self.is_list, self.settled_bytes) = (false, 0);
    }

    /// The keys: of each, how many rows came before it, and its number here.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u64, usize)> {
        self.keys.iter().enumerate().map(|(number, key)| (key.rows_before, number))
    }

    /// A key by its number, with its operands in their order.
    pub(super) fn rows_of(&self, number: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        let key = &self.keys[number];
        let name = bytes_at(&self.bytes, key.place);
        self.operands_of(key).map(move |operand| (name, operand))
    }

    /// Adds the operands of another one, which come after so many rows.
    pub(super) fn add(&mut self, fold: &dyn Fold, rows_before: u64, later: &ByKey) {
        for key in &later.keys {
            let (name, before) = (bytes_at(&later.bytes, key.place), rows_before + key.rows_before);
            later.operands_of(key).for_each(|operand| self.add_operand(key.hash, before, name, operand));
        }
        self.settle_if_grown(fold);
    }

    /// The same, where each row is a key of its own.
    pub(super) fn add_keys(&mut self, later: &ByKey) {
        later.keys.iter().for_each(|key| {
            let (name, before) = (bytes_at(&later.bytes, key.place), self.keys.len() as u64);
            later.operands_of(key).for_each(|operand| self.add_key(0, before, name, operand));
        });
    }

    /// Folds them where most keys have several. Otherwise little is gained by writing all anew.
    pub(super) fn settle_if_many(&mut self, fold: &dyn Fold) {
        if self.operands.len() >= 2 * self.keys.len() {
            self.settle(fold);
        }
    }

    /// Folds the operands of each key, so that it has one, if they fold.
    pub(super) fn settle(&mut self, fold: &dyn Fold) {
        if self.operands.len() > self.keys.len() {
            self.fold_all(fold);
        }
        self.settled_bytes = self.memory_bytes();
    }

    pub(super) fn settle_if_grown(&mut self, fold: &dyn Fold) {
        let bytes = self.memory_bytes();
        if bytes >= SETTLE_BYTES && bytes >= 2 * self.settled_bytes {
            self.settle(fold);
        }
    }

    /// Makes the bytes anew, with what the operands of each key fold to.
    fn fold_all(&mut self, fold: &dyn Fold) {
        let (mut out, mut operands) = (Vec::new(), Vec::with_capacity(self.keys.len()));
        let mut values = Vec::new();
        for key in &mut self.keys {
            let name = bytes_at(&self.bytes, key.place);
            values.clear();
            values.extend(operands_from(&self.bytes, &self.operands, key.first));
            key.place = put(&mut out, name);
            key.first = operands.len() as u32;
            let mut rest = &values[..];
            while !rest.is_empty() {
                let (some, after) = rest.split_at(foldable(rest));
                put_folded(fold, name, some, (&mut out, &mut operands));
                rest = after;
            }
            key.last = operands.len() as u32 - 1;
            operands[key.last as usize].next = NONE;
        }
        (self.bytes, self.operands) = (out, operands);
    }

    fn operands_of(&self, key: &Key) -> impl Iterator<Item = &[u8]> {
        operands_from(&self.bytes, &self.operands, key.first)
    }

    /// Adds an operand of a piece to its key. Where keys hardly repeat, looking for them is left to
    /// those who add the piece to others: then a key may be there several times, in order.
    pub(super) fn add_in_piece(&mut self, hash: u32, rows_before: u64, key: &[u8], value: &[u8]) {
        if self.keys.len() == KEYS_TO_TELL && self.operands.len() * 4 < KEYS_TO_TELL * 5 {
            self.is_list = true;
        }
        match self.is_list {
            true => self.add_key(hash, rows_before, key, value),
            false => self.add_operand(hash, rows_before, key, value),
        }
    }

    /// Adds an operand to its key.
    fn add_operand(&mut self, hash: u32, rows_before: u64, key: &[u8], value: &[u8]) {
        if self.keys.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(hash, key);
        let Some(at) = (self.slots[slot].number as usize).checked_sub(1) else {
            self.add_key(hash, rows_before, key, value);
            self.slots[slot] = Slot { hash, number: self.keys.len() as u32 };
            return;
        };
        let number = self.operands.len() as u32;
        let last = std::mem::replace(&mut self.keys[at].last, number);
        self.operands[last as usize].next = number;
        self.operands.push(Operand { place: put(&mut self.bytes, value), next: NONE });
    }

    /// Adds a key with its first operand.
    pub(super) fn add_key(&mut self, hash: u32, rows_before: u64, key: &[u8], value: &[u8]) {
        let number = self.operands.len() as u32;
        let place = put(&mut self.bytes, key);
        self.keys.push(Key { hash, place, rows_before, first: number, last: number });
        self.operands.push(Operand { place: put(&mut self.bytes, value), next: NONE });
    }

    /// The slot of a key, or the one where it may be put.
    fn slot(&self, hash: u32, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let Some(number) = (slot.number as usize).checked_sub(1) else { return at };
            if slot.hash == hash && bytes_at(&self.bytes, self.keys[number].place) == key {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(len, Slot::default());
        for (number, key) in (1..).zip(&self.keys) {
            let mut at = key.hash as usize & (len - 1);
            while self.slots[at].number > 0 {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = Slot { hash: key.hash, number };
        }
    }
}

fn put(bytes: &mut Vec<u8>, more: &[u8]) -> Place {
    let place = Place::of(bytes.len(), more.len());
    bytes.extend_from_slice(more);
    place
}

fn bytes_at(bytes: &[u8], place: Place) -> &[u8] {
    &bytes[place.at as usize..][..place.len as usize]
}

/// The operands of a key, of which this is the first.
fn operands_from<'a>(bytes: &'a [u8], operands: &'a [Operand], first: u32) -> impl Iterator<Item = &'a [u8]> {
    let at = move |number: u32| operands.get(number as usize);
    std::iter::successors(at(first), move |operand| at(operand.next))
        .map(|operand| bytes_at(bytes, operand.place))
}

/// How many of the values are folded at once: they are not long together.
fn foldable(values: &[&[u8]]) -> usize {
    let mut bytes = 0;
    let is_short = |value: &&&[u8]| {
        bytes += value.len();
        bytes <= FOLDED_BYTES_MAX
    };
    values.iter().take_while(is_short).count().max(1)
}

/// Appends what these values of a key fold to: one operand, or several.
fn put_folded(
    fold: &dyn Fold,
    key: &[u8],
    values: &[&[u8]],
    (out, operands): (&mut Vec<u8>, &mut Vec<Operand>),
) {
    let at = out.len();
    let mut put_operand = |out: &mut Vec<u8>, at: usize| {
        let (place, next) = (Place::of(at, out.len() - at), operands.len() as u32 + 1);
        operands.push(Operand { place, next });
    };
    if let [one] = values {
        out.extend_from_slice(one);
        return put_operand(out, at);
    }
    if fold.fold_all(key, values, out).is_ok() && out.len() - at <= VALUE_BYTES_MAX {
        return put_operand(out, at);
    }
    out.truncate(at);
    // One of them does not fold: it stays apart from those before it and after it.
    let (mut total, mut scratch) = (values[0].to_vec(), Vec::new());
    for later in &values[1..] {
        scratch.clear();
        match fold.fold(key, &total, later, &mut scratch) {
            Ok(Outcome::KeepEarlier) => {}
            Ok(Outcome::Value) if scratch.len() <= FOLDED_BYTES_MAX => {
                std::mem::swap(&mut total, &mut scratch)
            }
            outcome => {
                if outcome != Ok(Outcome::KeepLater) {
                    let at = out.len();
                    out.extend_from_slice(&total);
                    put_operand(out, at);
                }
                total.clear();
                total.extend_from_slice(later);
            }
        }
    }
    let at = out.len();
    out.extend_from_slice(&total);
    put_operand(out, at);
}
