//! The state of a table as the manifest has it, and how changes apply to it. Pure.

use std::cmp::Reverse;
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::ids::RunId;
use folddb_base::{FileNumber, Seq, SharedMap, TableId};
use folddb_layout::manifest_edit::{Change, IndexBuild, IndexState, PartState};

/// The state of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableState {
    /// Its number.
    pub id: TableId,
    /// Its name.
    pub name: String,
    /// Its rules, as text.
    pub rules_text: String,
    /// Parts with lower numbers were written before a rule about parts was altered; 0 if none was.
    pub outdated_before: FileNumber,
    /// States before this seq may have been folded, whatever the rules say that is kept.
    pub kept_since: Seq,
    /// All its records up to this seq are in runs.
    pub flushed_seq: Seq,
    /// Its runs, newest first: by age, then by number.
    pub runs: Vec<RunState>,
    /// Its range deletes, by seq: the order in which they came.
    pub range_deletes: SharedMap<Seq, Arc<RangeDelete>>,
    /// The checkpoint of its index, if it is hashed and has one.
    pub index: Option<IndexState>,
    /// The changes after its checkpoint.
    pub changes: Option<IndexState>,
    /// If it is an index of another table: how far it has been built.
    pub build: IndexBuild,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    /// Its number.
    pub id: RunId,
    /// Its tier.
    pub tier: u8,
    /// Its rank among the runs of the table: all its records are newer than those of runs with a
    /// lower age.
    pub age: Seq,
    /// Its parts, in key order.
    pub parts: Vec<PartState>,
}

/// A delete of all keys from `from`, included, to `to`, excluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeDelete {
    /// The first key deleted.
    pub from: Vec<u8>,
    /// The first key after `from` that is not deleted.
    pub to: Vec<u8>,
    /// Its place in the history.
    pub seq: Seq,
}

impl TableState {
    /// A table that holds nothing yet.
    pub(crate) fn new(id: TableId, name: &str, rules_text: &str) -> TableState {
        TableState {
            id,
            name: name.to_owned(),
            rules_text: rules_text.to_owned(),
            outdated_before: FileNumber(0),
            kept_since: 0,
            flushed_seq: 0,
            runs: Vec::new(),
            range_deletes: SharedMap::default(),
            index: None,
            changes: None,
            build: IndexBuild::default(),
        }
    }

    /// No record in its runs, or in the files of its index, has a higher seq than this.
    pub fn last_seq(&self) -> Seq {
        self.saved_index().map(|saved| saved.max_seq).fold(self.flushed_seq, Seq::max)
    }

    /// The files of its index: the checkpoint, and the changes after it.
    pub fn saved_index(&self) -> impl Iterator<Item = &IndexState> {
        self.index.iter().chain(&self.changes)
    }

    /// The run with this number.
    pub fn run(&self, run: RunId) -> Option<&RunState> {
        self.runs.iter().find(|state| state.id == run)
    }

    fn run_index(&self, run: RunId) -> Result<usize, Malformed> {
        self.runs.iter().position(|state| state.id == run).ok_or(Malformed::Bounds)
    }

    pub(crate) fn part_mut(&mut self, run: RunId, file: FileNumber) -> Result<&mut PartState, Malformed> {
        let index = self.run_index(run)?;
        self.runs[index].parts.iter_mut().find(|part| part.file == file).ok_or(Malformed::Bounds)
    }

    /// Gives it other rules. Neither number ever falls.
    pub(crate) fn alter(
        &mut self,
        rules_text: &str,
        outdated_before: FileNumber,
        kept_since: Seq,
    ) -> Result<(), Malformed> {
        if outdated_before < self.outdated_before || kept_since < self.kept_since {
            return Err(Malformed::Order);
        }
        rules_text.clone_into(&mut self.rules_text);
        (self.outdated_before, self.kept_since) = (outdated_before, kept_since);
        Ok(())
    }

    pub(crate) fn flushed(&mut self, seq: Seq) -> Result<(), Malformed> {
        if seq < self.flushed_seq {
            return Err(Malformed::Order);
        }
        self.flushed_seq = seq;
        Ok(())
    }

    pub(crate) fn add_part(
        &mut self,
        run: RunId,
        tier: u8,
        age: Seq,
        part: &PartState,
    ) -> Result<(), Malformed> {
        if let Ok(index) = self.run_index(run) {
            let parts = &mut self.runs[index].parts;
            if parts.iter().any(|other| other.file == part.file) {
                return Err(Malformed::Order);
            }
            parts.push(part.clone());
        } else {
            self.insert_run(RunState { id: run, tier, age, parts: vec![part.clone()] });
        }
        Ok(())
    }

    fn insert_run(&mut self, run: RunState) {
        let place = |run: &RunState| (Reverse(run.age), Reverse(run.id));
        let index = self.runs.partition_point(|other| place(other) < place(&run));
        self.runs.insert(index, run);
    }

    pub(crate) fn remove_part(&mut self, run: RunId, file: FileNumber) -> Result<(), Malformed> {
        let index = self.run_index(run)?;
        let parts = &mut self.runs[index].parts;
        let part = parts.iter().position(|part| part.file == file).ok_or(Malformed::Bounds)?;
        parts.remove(part);
        if parts.is_empty() {
            self.runs.remove(index);
        }
        Ok(())
    }

    pub(crate) fn move_run(&mut self, run: RunId, tier: u8, age: Seq) -> Result<(), Malformed> {
        let index = self.run_index(run)?;
        let run = self.runs.remove(index);
        self.insert_run(RunState { tier, age, ..run });
        Ok(())
    }

    pub(crate) fn add_range_delete(&mut self, from: &[u8], to: &[u8], seq: Seq) -> Result<(), Malformed> {
        if self.range_deletes.contains_key(&seq) {
            return Err(Malformed::Order);
        }
        let range = RangeDelete { from: from.to_vec(), to: to.to_vec(), seq };
        self.range_deletes.insert(seq, Arc::new(range));
        Ok(())
    }

    pub(crate) fn retire_range_delete(&mut self, seq: Seq) -> Result<(), Malformed> {
        self.range_deletes.remove(&seq).map(drop).ok_or(Malformed::Bounds)
    }

    pub(crate) fn put_snapshot(&self, changes: &mut Vec<Change>) {
        let table = self.id;
        let (name, rules_text) = (self.name.clone(), self.rules_text.clone());
        if (self.outdated_before, self.kept_since) == (FileNumber(0), 0) {
            changes.push(Change::CreateTable { table, name, rules_text });
        } else {
            let (outdated_before, kept_since) = (self.outdated_before, self.kept_since);
            let altered =
                Change::AlterTable { table, rules_text: rules_text.clone(), outdated_before, kept_since };
            changes.extend([Change::CreateTable { table, name, rules_text }, altered]);
        }
        changes.push(Change::Flushed { table, seq: self.flushed_seq });
        for run in &self.runs {
            for part in &run.parts {
                let (run, tier, age, part) = (run.id, run.tier, run.age, part.clone());
                changes.push(Change::AddPart { table, run, tier, age, part });
            }
        }
        for range in self.range_deletes.values() {
            let (from, to, seq) = (range.from.clone(), range.to.clone(), range.seq);
            changes.push(Change::AddRangeDelete { table, from, to, seq });
        }
        changes.extend(self.index.iter().map(|index| Change::SaveIndex { table, index: index.clone() }));
        let later = self.changes.iter();
        changes.extend(later.map(|later| Change::SaveChanges { table, changes: later.clone() }));
        if self.build != IndexBuild::default() {
            changes.push(Change::BuildIndex { table, build: self.build.clone() });
        }
    }
}
