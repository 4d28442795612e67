//! The knowledge of a player: the writes, the promises for them, and the doubts after a failed
//! call.
//!
//! ```text
//!   history    |--- promised if the power goes ---|--- promised if the process dies ---|--- written ---|-- in doubt --|
//! ```
//!
//! After a crash a store must hold the history up to the end of some batch, and not less than was
//! promised. A batch is never in doubt: it is in the history where its commit succeeds or fails
//! with `NotDurable`, and nowhere where it fails otherwise.

use std::hash::{DefaultHasher, Hash, Hasher};

use folddb::Durability;
use folddb_base::{Seq, Stamp};

use crate::compare::{Dumped, Outcome, is_dump_of, same};
use crate::model::{Index, Model, ModelOp};
use crate::tables::Shape;

/// The ops of a batch, with their tables and times.
pub(crate) type Ops = Vec<(String, ModelOp, Stamp)>;

/// What is in a store: its tables with all their rows.
pub(crate) type Contents = Vec<(String, Vec<Dumped>)>;

#[derive(Clone, Default)]
pub(crate) struct Known {
    pub(crate) model: Model,
    /// Where batches end, ascending; the history may be cut there and nowhere else.
    ends: Vec<Seq>,
    promised_to_power: Seq,
    promised_to_death: Seq,
    /// The possible effects of a failed call.
    doubt: Doubt,
}

/// The initial contents of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loaded {
    /// The seq of its rows.
    pub(crate) seq: Seq,
    /// When the load began.
    pub(crate) begun_ms: u64,
    /// The rows.
    pub(crate) rows: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A state that an opened store may be in.
pub(crate) struct Fitting {
    /// The end of the history that it holds.
    pub(crate) end: Seq,
    /// What is known in this state.
    pub(crate) known: Known,
}

/// The state of an opened store, and all other inputs of its judgment but promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stood {
    /// Its last seq.
    pub(crate) last_seq: Seq,
    /// The end of the history that it held.
    pub(crate) end: Seq,
    /// What was known of the history up to its last seq.
    pub(crate) print: u64,
}

#[derive(Clone, Debug, Default)]
struct Doubt {
    created: Vec<(String, Shape, Loaded)>,
    dropped: Vec<String>,
    /// Tables with rules that they may have instead of theirs.
    altered: Vec<(String, Shape)>,
    /// Tables whose indexes may have come, gone, or been built.
    indexed: Vec<String>,
}

impl Known {
    /// A batch is there and acknowledged.
    pub(crate) fn written(&mut self, ops: Ops, durability: Durability) {
        self.apply(ops);
        match durability {
            Durability::Buffered => {}
            Durability::Process => self.survives_death(),
            Durability::Sync => self.survives_power(),
            unknown => unreachable!("nobody commits with {unknown:?}"),
        }
    }

    fn apply(&mut self, ops: Ops) {
        let entries = self.model.entries_of(ops.iter().map(|(table, op, _)| (table, op)));
        for (table, op, stamp) in ops {
            self.model.apply_at(&table, op, stamp);
        }
        self.model.pass_to(self.model.last_seq() + entries);
        self.model.end_batch();
        self.ends.push(self.model.last_seq());
    }

    /// A table's creation failed, and it may be there or not.
    pub(crate) fn doubt_created(&mut self, name: &str, shape: Shape) {
        self.doubt_loaded(name, shape, Loaded::default());
    }

    /// The same of a table that was to come into being with rows.
    pub(crate) fn doubt_loaded(&mut self, name: &str, shape: Shape, loaded: Loaded) {
        self.doubt.created.push((name.to_owned(), shape, loaded));
    }

    /// A table has come into being with these rows.
    pub(crate) fn loaded(&mut self, name: &str, shape: Shape, loaded: Loaded) {
        self.model.create_table(name, shape);
        for (key, value) in loaded.rows {
            self.model.load(name, loaded.seq, loaded.begun_ms, ModelOp::Set(key, value));
        }
    }

    /// Entries of an index have been written up to this seq, which is not promised yet.
    pub(crate) fn entries_written(&mut self, last_seq: Seq) {
        self.model.pass_to(last_seq);
        self.ends.push(last_seq);
    }

    /// A change of an index of a table failed, and may have happened or not.
    pub(crate) fn doubt_index(&mut self, name: &str) {
        self.doubt.indexed.push(name.to_owned());
    }

    /// Takes over whether a table of an opened store has its index, which must be so unless it is
    /// in doubt.
    pub(crate) fn settle_index(&mut self, name: &str, found: Index, last_seq: Seq) -> Outcome {
        let is_in_doubt = self.doubt.indexed.iter().any(|doubted| doubted == name);
        if !is_in_doubt {
            same(&format!("the index of table {name}"), &found, &self.model.index(name))?;
        }
        self.model.set_index(name, found, last_seq);
        Ok(())
    }

    /// The alteration of a table failed, and it may have these rules.
    pub(crate) fn doubt_altered(&mut self, name: &str, shape: Shape) {
        self.doubt.altered.push((name.to_owned(), shape));
    }

    /// Takes over the rules of a table of an opened store: all of them as they were, or all as an
    /// alteration that is in doubt would have made them.
    pub(crate) fn settle_rules(&mut self, name: &str, found: &str) -> Outcome {
        let doubted = self.doubt.altered.iter().filter(|(doubted, _)| doubted == name);
        let possible = self.model.shape(name).into_iter().chain(doubted.map(|(_, shape)| *shape));
        match possible.into_iter().find(|shape| shape.rules().to_string() == found) {
            Some(shape) => {
                self.model.alter_table(name, shape);
                Ok(())
            }
            None => Err(format!("nobody gave table {name} these rules: {found}")),
        }
    }

    /// No rules are in doubt any more.
    pub(crate) fn rules_are_settled(&mut self) {
        self.doubt.altered.clear();
    }

    /// No index is in doubt any more.
    pub(crate) fn indexes_are_settled(&mut self) {
        self.doubt.indexed.clear();
    }

    /// A table's removal failed, and it may be there or not.
    pub(crate) fn doubt_dropped(&mut self, name: &str) {
        self.doubt.dropped.push(name.to_owned());
    }

    /// All that was written so far is promised to survive the death of the process.
    pub(crate) fn survives_death(&mut self) {
        self.promised_to_death = self.model.last_seq();
    }

    /// All that was written so far is promised to survive a power cut.
    pub(crate) fn survives_power(&mut self) {
        self.promised_to_death = self.model.last_seq();
        self.promised_to_power = self.model.last_seq();
    }

    /// Whether everything up to this seq is promised to survive the death of the process, or with
    /// `power` a power cut.
    pub(crate) fn keeps(&self, seq: Seq, power: bool) -> bool {
        seq <= if power { self.promised_to_power } else { self.promised_to_death }
    }

    /// From now on only what survives a power cut is promised.
    pub(crate) fn power_is_gone(&mut self) {
        self.promised_to_death = self.promised_to_power;
    }

    /// From now on only what was written up to this seq is promised.
    pub(crate) fn promises_up_to(&mut self, seq: Seq) {
        self.promised_to_power = self.promised_to_power.min(seq);
        self.promised_to_death = self.promised_to_death.min(seq);
    }

    /// Takes over what an opened store holds, which must be the history up to the end of some
    /// batch, and at least what was promised. All of it is durable, since opening rewrites what it
    /// replays.
    pub(crate) fn settle(&mut self, contents: &Contents, last_seq: Seq) -> Outcome {
        let mut fitting = self.fitting(contents, last_seq)?;
        *self = fitting.swap_remove(0).known; // there is one at least
        Ok(())
    }

    /// The possible states of an opened store, the newest first. There are several where they have
    /// the same rows, as when the last write to a key changed nothing; the past of the keys may
    /// distinguish them.
    pub(crate) fn fitting(&self, contents: &Contents, last_seq: Seq) -> Result<Vec<Fitting>, String> {
        let mut known = self.clone();
        known.settle_tables(contents)?;
        let mut floor = known.promised_to_death;
        if last_seq < floor && !known.model.has_ops_between(last_seq, floor) {
            floor = last_seq; // what was promised above it was of tables that have been dropped since
        }
        if last_seq < floor {
            return Err(format!("promised is all up to seq {floor}, but the last seq is {last_seq}"));
        }
        let later = known.ends.iter().copied().filter(|end| *end > floor && *end <= last_seq);
        let mut ends: Vec<Seq> = std::iter::once(floor).chain(later).collect();
        ends.dedup();
        ends.retain(|end| known.is_at(contents, *end));
        if ends.is_empty() {
            return Err(known.what_is_there(contents, floor));
        }
        Ok(ends.iter().rev().map(|&end| Fitting { end, known: known.cut(end, last_seq) }).collect())
    }

    /// A number that is equal where [`Known::fitting`] and all that follows from it are equal, for
    /// a store with this last seq, apart from promises.
    pub(crate) fn print(&self, last_seq: Seq) -> u64 {
        let mut print = DefaultHasher::new();
        (self.model.print(last_seq), format!("{:?}", self.doubt)).hash(&mut print);
        self.ends.iter().filter(|end| **end <= last_seq).for_each(|end| end.hash(&mut print));
        print.finish()
    }

    /// Whether a store in this state holds everything promised. It was in the newest state
    /// possible, and still is if no promise goes beyond it.
    pub(crate) fn is_kept_by(&self, stood: &Stood) -> bool {
        let floor = self.promised_to_death;
        stood.end == floor || (stood.end > floor && self.ends.contains(&stood.end))
    }

    fn cut(&self, end: Seq, last_seq: Seq) -> Known {
        let mut cut = self.clone();
        cut.model.cut(end, last_seq);
        cut.ends.retain(|known| *known <= end);
        cut.ends.push(last_seq);
        cut.survives_power();
        cut
    }

    fn settle_tables(&mut self, contents: &Contents) -> Outcome {
        let doubt = std::mem::take(&mut self.doubt);
        let is_there = |name: &str| contents.iter().any(|(found, _)| found == name);
        for name in doubt.dropped.iter().filter(|name| !is_there(name)) {
            self.model.drop_table(name);
        }
        for (name, shape, loaded) in doubt.created {
            if is_there(&name) && self.model.shape(&name).is_none() {
                self.loaded(&name, shape, loaded);
            }
        }
        (self.doubt.indexed, self.doubt.altered) = (doubt.indexed, doubt.altered);
        let found: Vec<String> = contents.iter().map(|(name, _)| name.clone()).collect();
        same("the tables", &found, &self.model.tables())
    }

    fn is_at(&self, contents: &Contents, seq: Seq) -> bool {
        contents.iter().all(|(name, rows)| is_dump_of(rows, &self.model.rows_at(name, seq)))
    }

    /// Describes a store that is wrong: for each table, its place in the history.
    fn what_is_there(&self, contents: &Contents, floor: Seq) -> String {
        let mut text = format!(
            "no state that it may be in: promised is all up to seq {floor}, written all up to {}",
            self.model.last_seq()
        );
        for (name, rows) in contents {
            let ends = std::iter::once(0).chain(self.ends.iter().copied());
            let fitting: Vec<Seq> =
                ends.filter(|end| is_dump_of(rows, &self.model.rows_at(name, *end))).collect();
            text += &format!("; table {name} has {} rows and is as at the seqs {fitting:?}", rows.len());
        }
        text + &format!("; batches end at {:?}", self.ends)
    }
}

#[cfg(test)]
#[path = "known/tests.rs"]
mod tests;
