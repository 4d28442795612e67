//! The feeds of a store, and what is kept for them: their positions, archived parts of the log,
//! notes of tables.
//!
//! What only lost feeds need is removed automatically. Called by `state`.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::{FileNumber, Lsn, SharedMap};
use folddb_layout::manifest_edit::{Change, FeedPhase, FeedState, LossCause, TableNote};

/// A part of the log in its own file: the end that a crash left, or small files that were joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedLog {
    /// Its file.
    pub file: FileNumber,
    /// Where it begins.
    pub first_lsn: Lsn,
    /// Where the history continues after it.
    pub next_lsn: Lsn,
}

/// See the top of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feeds {
    feeds: BTreeMap<String, FeedState>,
    archived: Vec<ArchivedLog>,
    /// By number. States share them, since there may be one for each table.
    notes: SharedMap<u64, Arc<TableNote>>,
    /// The highest number that a note or a feed has had, even if that was removed: so a secondary
    /// that reads a dropped feed cannot mistake a later feed for it.
    last_note: u64,
}

impl Feeds {
    /// All feeds, by name.
    pub fn all(&self) -> impl Iterator<Item = &FeedState> {
        self.feeds.values()
    }

    /// The feed of this name.
    pub fn get(&self, name: &str) -> Option<&FeedState> {
        self.feeds.get(name)
    }

    /// The feeds that hold history which they have not given yet.
    pub fn holding(&self) -> impl Iterator<Item = &FeedState> {
        self.all().filter(|feed| feed.holds())
    }

    /// The LSN from which on feeds need history; none if no feed holds any.
    pub fn from_lsn(&self) -> Option<Lsn> {
        self.holding().map(|feed| feed.lsn).min()
    }

    /// The number from which on feeds need value segments; none if no feed holds any.
    pub fn values_from(&self) -> Option<FileNumber> {
        self.holding().map(|feed| feed.values_from).min()
    }

    /// The archived parts of the log, oldest first.
    pub fn archived(&self) -> &[ArchivedLog] {
        &self.archived
    }

    /// What has happened to tables, oldest first.
    pub fn notes(&self) -> impl Iterator<Item = &TableNote> {
        self.notes.values().map(|note| &**note)
    }

    /// The notes after the one with this number, oldest first.
    pub fn notes_after(&self, note: u64) -> impl Iterator<Item = &TableNote> {
        self.notes.iter_above(&note).map(|(_, note)| &**note)
    }

    /// The highest number that a note or a feed has had; 0 before the first.
    pub fn last_note(&self) -> u64 {
        self.last_note
    }

    pub(crate) fn set(&mut self, feed: &FeedState) {
        self.last_note = self.last_note.max(feed.note);
        self.feeds.insert(feed.name.clone(), feed.clone());
        self.forget_unneeded();
    }

    pub(crate) fn remove(&mut self, name: &str) -> Result<(), Malformed> {
        self.feeds.remove(name).ok_or(Malformed::Bounds)?;
        self.forget_unneeded();
        Ok(())
    }

    /// Adds a part of the log. It replaces parts that are within it.
    pub(crate) fn keep(&mut self, kept: ArchivedLog) -> Result<(), Malformed> {
        let is_within = |one: &ArchivedLog| kept.first_lsn <= one.first_lsn && one.next_lsn <= kept.next_lsn;
        let meets = |one: &ArchivedLog| one.first_lsn < kept.next_lsn && kept.first_lsn < one.next_lsn;
        let is_another = |one: &ArchivedLog| one.file != kept.file && (is_within(one) || !meets(one));
        if kept.next_lsn < kept.first_lsn || !self.archived.iter().all(is_another) {
            return Err(Malformed::Order);
        }
        self.archived.retain(|one| !is_within(one));
        let at = self.archived.partition_point(|one| one.first_lsn < kept.first_lsn);
        self.archived.insert(at, kept);
        Ok(())
    }

    pub(crate) fn note(&mut self, note: &TableNote) -> Result<(), Malformed> {
        if self.notes.last().is_some_and(|(&last, _)| last >= note.note) {
            return Err(Malformed::Order);
        }
        self.last_note = self.last_note.max(note.note);
        self.notes.insert(note.note, Arc::new(note.clone()));
        Ok(())
    }

    fn forget_unneeded(&mut self) {
        let from_lsn = self.from_lsn().unwrap_or(Lsn::MAX);
        self.archived.retain(|kept| kept.next_lsn > from_lsn);
        let past = self.holding().map(|feed| feed.note).min().unwrap_or(u64::MAX);
        let gone: Vec<u64> = self.notes.keys().copied().take_while(|&note| note <= past).collect();
        gone.iter().for_each(|note| drop(self.notes.remove(note)));
    }

    pub(crate) fn put_snapshot(&self, changes: &mut Vec<Change>) {
        self.put_last_note(changes);
        changes.extend(self.all().map(|feed| Change::SetFeed { feed: feed.clone() }));
        changes.extend(self.archived.iter().map(|kept| {
            let ArchivedLog { file, first_lsn, next_lsn } = *kept;
            Change::ArchiveLog { file, first_lsn, next_lsn }
        }));
        changes.extend(self.notes().map(|note| Change::NoteTable { note: note.clone() }));
    }

    /// Puts the last number, if no feed or note has it: creates a feed without a name that has it,
    /// and drops that feed.
    fn put_last_note(&self, changes: &mut Vec<Change>) {
        let of_feeds = self.all().map(|feed| feed.note);
        let said = of_feeds.chain(self.notes.last().map(|(&note, _)| note)).max().unwrap_or(0);
        if said < self.last_note {
            let feed = FeedState {
                name: String::new(),
                table: String::new(),
                prefix: Vec::new(),
                bytes_max: 0,
                phase: FeedPhase::Lost(LossCause::Gone),
                seq: 0,
                lsn: 0,
                note: self.last_note,
                values_from: FileNumber(0),
            };
            changes.extend([Change::SetFeed { feed }, Change::DropFeed { name: String::new() }]);
        }
    }
}

#[cfg(test)]
#[path = "feeds/tests.rs"]
mod tests;
