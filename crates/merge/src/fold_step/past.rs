//! What a merge keeps of the past of a key: see the head of `fold_step.rs`, 6.

use std::collections::BTreeSet;

use folddb_base::Seq;

use super::rules::Times;

/// What has been read of the past of a key.
pub(super) struct Past {
    pub(super) times: Times,
    /// The number of the current key.
    pub(super) key: u64,
    /// How many events it has so far, and the seq of the last one.
    pub(super) events: u32,
    pub(super) last: Seq,
    /// The seq of its newest event that is not kept unchanged; 0 until that has been read.
    pub(super) rest_from: Seq,
    /// The seqs of range deletes over kept records.
    pub(super) sheltering: BTreeSet<Seq>,
}

impl Past {
    /// No key has been read yet.
    pub(super) fn new(times: Times) -> Past {
        Past { times, key: 0, events: 0, last: Seq::MAX, rest_from: 0, sheltering: BTreeSet::new() }
    }

    /// The key with this number begins.
    pub(super) fn begin(&mut self, key: u64) {
        if self.key != key {
            (self.key, self.events, self.last, self.rest_from) = (key, 0, Seq::MAX, 0);
        }
    }

    /// Notes an event. True when it is kept unchanged.
    pub(super) fn note(&mut self, seq: Seq) -> bool {
        self.events = self.events.saturating_add(1);
        self.last = seq;
        let is_kept = self.events < self.times.newest || seq > self.times.since;
        if !is_kept && self.rest_from == 0 {
            self.rest_from = seq;
        }
        is_kept
    }
}
