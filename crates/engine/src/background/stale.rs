//! Which entries of an index are stale: those whose record does not have their term.
//!
//! ```text
//!   order   the entries by their keys        so that each key is examined once
//!   walk    along the table and the keys     if it has few records for each key: blocks are read once, in their order
//!   look    at each key by itself            else, and where a walk would read separated values
//! ```
//!
//! An entry counts as stale only if its record could be examined. Called by `clean`.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use folddb_base::{ErrorKind, OpKind, Record, RecordSink, Result, Seq};
use folddb_rules::terms::split_entry;
use folddb_rules::{Extractor, Terms};

use crate::read::lookup;
use crate::read::lookup::Want;
use crate::read::scan::{Rows, ScanPlan, Wanted};
use crate::read::terms::{Taken, take_terms};
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::snapshots::At;

/// A lookup of one key costs as much as a walk past this many records: 1.5 us to 5 us if everything
/// is in memory, against 0.1.
const WALK_PAST: u64 = 16;

/// Records of an index, in one piece of memory.
#[derive(Default)]
pub struct Entries {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// One of the records: its key, followed by its payload. The key ends with that of the indexed
/// record.
struct Place {
    begin: usize,
    key_len: u32,
    term_len: u32,
    led_to_len: u32,
    payload_len: u32,
    seq: Seq,
    kind: OpKind,
}

impl Entries {
    pub fn count(&self) -> usize {
        self.places.len()
    }

    pub fn record(&self, at: usize) -> Record<'_> {
        let Place { begin, key_len, payload_len, seq, kind, .. } = self.places[at];
        let (key, rest) = self.bytes[begin..].split_at(key_len as usize);
        Record { key, seq, kind, payload: &rest[..payload_len as usize] }
    }

    /// The same memory, empty, for other records.
    pub fn emptied(mut self) -> Entries {
        self.bytes.clear();
        self.places.clear();
        self
    }

    /// The term of an entry.
    pub fn term(&self, at: usize) -> &[u8] {
        &self.record(at).key[..self.places[at].term_len as usize]
    }

    /// The key of its record.
    #[inline]
    pub fn key(&self, at: usize) -> &[u8] {
        let Place { begin, key_len, led_to_len, .. } = self.places[at];
        let end = begin + key_len as usize;
        &self.bytes[end - led_to_len as usize..end]
    }
}

impl RecordSink for Entries {
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        let (key_len, payload_len) = (record.key.len() as u32, record.payload.len() as u32); // both bounded by limits
        let (term, led_to) = split_entry(record.key).unwrap_or_default();
        let (term_len, led_to_len) = (term.len() as u32, led_to.len() as u32);
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(record.key);
        self.bytes.extend_from_slice(record.payload);
        let (seq, kind) = (record.seq, record.kind);
        self.places.push(Place { begin, key_len, term_len, led_to_len, payload_len, seq, kind });
        Ok(())
    }
}

/// Whether a walk along a table is cheaper than a lookup for each of this many keys.
pub fn is_walk_cheaper(table: &TableCore, extractor: &Extractor, keys: usize) -> bool {
    let is_in_rows = table.separate_from() == usize::MAX || extractor.is_of_key() || extractor.is_of_head();
    is_in_rows && table.view().records() <= keys as u64 * WALK_PAST
}

/// A callback that gets the entries of a key, and the terms of its record or none.
pub type Tell<'a> = &'a mut dyn FnMut(&[usize], Option<&Terms>);

/// The parameters of looking up the records of a table.
pub struct Looks<'a> {
    pub engine: &'a Arc<Engine>,
    pub table: &'a Arc<TableCore>,
    pub extractor: &'a Extractor,
    /// Held by the caller.
    pub at: At,
}

impl Looks<'_> {
    /// For each entry, whether its record lacks its term for all readers at this moment or later.
    pub fn stale(&self, entries: &Entries) -> Vec<bool> {
        let may_go = |&at: &usize| {
            let entry = entries.record(at);
            entry.kind == OpKind::Set && entry.seq <= self.at.seq
        };
        let mut order: Vec<usize> = (0..entries.count()).filter(may_go).collect();
        let compare = |a, b| self.table.rules.order.compare(entries.key(a), entries.key(b));
        order.sort_unstable_by(|&a, &b| compare(a, b));
        let of_keys: Vec<&[usize]> = order.chunk_by(|&a, &b| compare(a, b).is_eq()).collect();
        let mut stale = vec![false; entries.count()];
        let mut tell = |same_key: &[usize], terms: Option<&Terms>| {
            for &at in same_key {
                stale[at] = !terms.is_some_and(|terms| terms.has(entries.term(at)));
            }
        };
        match is_walk_cheaper(self.table, self.extractor, of_keys.len()) {
            true => self.walk(entries, &of_keys, &mut tell),
            false => self.look_at_each(entries, &of_keys, &mut tell),
        }
        stale
    }

    /// Passes the terms of each key that can be examined to `tell`.
    pub fn look_at_each(&self, entries: &Entries, of_keys: &[&[usize]], tell: Tell<'_>) {
        for same_key in of_keys {
            if self.engine.health.is_closed() {
                return;
            }
            let key = entries.key(same_key[0]);
            if let Ok(looked) =
                lookup::look(self.engine, (self.table, self.extractor), key, self.at, Want::Key, &|_| false)
            {
                tell(same_key, looked.as_ref().map(|looked| &looked.terms));
            }
        }
    }

    /// The same by a walk along the table. If that cannot continue, the remaining keys are left
    /// out.
    pub fn walk(&self, entries: &Entries, of_keys: &[&[usize]], tell: Tell<'_>) {
        let key_of = |same_key: &[usize]| entries.key(same_key[0]);
        let Some(mut rows) = self.rows(of_keys.first().map(|first| key_of(first))) else { return };
        let mut left = of_keys.iter().peekable();
        let mut terms = Terms::default();
        while left.peek().is_some() {
            let is_whole = match rows.next_row() {
                Ok(None) => return left.for_each(|same_key| tell(same_key, None)),
                Ok(Some(_)) => true,
                Err(error) if error.kind() == ErrorKind::FoldFailed => false,
                Err(_) => return,
            };
            let compare = |same_key: &[usize]| self.table.rules.order.compare(key_of(same_key), rows.key());
            while let Some(absent) = left.next_if(|next| compare(next) == Ordering::Less) {
                tell(absent, None);
            }
            let Some(same_key) = left.next_if(|next| compare(next) == Ordering::Equal) else { continue };
            if is_whole {
                self.take(&mut rows, &mut terms);
                tell(same_key, Some(&terms));
            }
        }
    }

    /// The rows of the table from a key on.
    fn rows(&self, low: Option<&[u8]>) -> Option<Rows> {
        let wanted = match (self.extractor.is_of_key(), self.extractor.is_of_head()) {
            (true, _) => Wanted::Nothing,
            (_, true) => Wanted::Head,
            _ => Wanted::Short,
        };
        let low = Bound::Included(low?.to_vec());
        Rows::start(self.engine, self.table, ScanPlan { low, wanted, ..ScanPlan::everything(Some(self.at)) })
            .ok()
    }

    /// The terms of the present row of a walk.
    fn take(&self, rows: &mut Rows, terms: &mut Terms) {
        let head = rows.take_head();
        let (key, value) = rows.row();
        let taken = head.as_ref().map_or(Taken::Value(value), |head| Taken::Head(&head.bytes));
        terms.clear();
        take_terms(self.extractor, self.table, key, taken, terms);
    }
}
