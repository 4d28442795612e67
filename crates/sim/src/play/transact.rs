//! What a player does with transactions. Everything else continues between their steps; the model
//! says of each commit whether it must succeed, and a committed transaction is a batch like any
//! other, whole or absent after a crash.

use std::collections::{BTreeMap, BTreeSet};

use folddb::time::unix_ms;
use folddb::{BytesTable, Durability, ErrorKind};
use folddb_base::stamp::NEVER;
use folddb_base::{Seq, Stamp};

use crate::compare::{
    Outcome, chosen, compare_rows, inside, narrow, prefix_of, prefix_ops, prefix_range, range, read_key,
    same, scan_hashed, scan_prefix,
};
use crate::known::Ops;
use crate::model::{Model, ModelRow, Present, Written};
use crate::play::parts::{Found, Running};
use crate::play::player::{Player, name_of};
use crate::play::write::{ops_of, write_op};
use crate::program::{Edge, ScanShape, TableOp, Transact, What};
use crate::tables::{KEYS, Order, Shape};

/// The number of a value with the lifetime of its table.
const DEFAULT_LIFETIME: u8 = 0;

/// The most that are open at once.
const RUNNING_MAX: usize = 3;

/// Keys, scanned tables, and hits of indexes.
type HasRead<'a> = (&'a BTreeSet<(String, Vec<u8>)>, &'a BTreeSet<String>, &'a BTreeMap<String, Found>);

/// The required outcome of a commit, as far as reads decide that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Commits,
    /// A key read was absent and is absent; the store may have forgotten writes to it in between.
    Either,
    Conflicts,
}

impl Player {
    pub(super) fn transact(&mut self, step: &Transact) -> Outcome {
        match step {
            Transact::Begin => self.begin_transaction(),
            Transact::Get(which, slot, key) => self.in_transaction(*which, |player, running| {
                let Some((table, shape)) = player.meet(running, *slot)? else { return Ok(()) };
                player.get_in(running, &table, &shape.key(*key))
            }),
            Transact::Scan(which, slot, scan) => self.in_transaction(*which, |player, running| {
                let Some((table, shape)) = player.meet(running, *slot)? else { return Ok(()) };
                let mut scans = || player.scan_in(running, (&table, &shape), scan);
                match player.disk.clone() {
                    Some(disk) => disk.aside(scans),
                    None => scans(),
                }
            }),
            Transact::Find(which, slot) => self.in_transaction(*which, |player, running| {
                let Some((table, shape)) = player.meet(running, *slot)? else { return Ok(()) };
                let mut finds = || player.find_in(running, (&table, &shape));
                match player.disk.clone() {
                    Some(disk) => disk.aside(finds),
                    None => finds(),
                }
            }),
            Transact::Write(which, op) => {
                self.in_transaction(*which, |player, running| player.write_in(running, op).map(drop))
            }
            Transact::FoldAndGet(which, op) => self.in_transaction(*which, |player, running| {
                let op = TableOp { what: What::Fold, ..*op };
                let Some((table, shape)) = player.write_in(running, &op)? else { return Ok(()) };
                player.get_in(running, &table, &shape.key(op.key))
            }),
            Transact::Take(which, op) => self.in_transaction(*which, |player, running| {
                let Some((table, shape)) = player.meet(running, op.table)? else { return Ok(()) };
                player.take_in(running, (&table, shape), op)
            }),
            Transact::Commit(which, durability) => {
                let at = usize::from(*which) % self.transactions.len().max(1);
                match self.transactions.get(at) {
                    Some(running) if !running.met.is_empty() => {
                        let running = self.transactions.remove(at);
                        self.commit_transaction(running, *durability)
                    }
                    _ => Ok(()), // it has done nothing yet
                }
            }
            Transact::Forget(which) => {
                if !self.transactions.is_empty() {
                    self.transactions.remove(usize::from(*which) % self.transactions.len());
                }
                Ok(())
            }
        }
    }

    fn begin_transaction(&mut self) -> Outcome {
        if self.transactions.len() == RUNNING_MAX {
            return Ok(());
        }
        let transaction = self.store()?.transaction();
        let last_seq = self.known.model.last_seq();
        same("the seq of a transaction", &u64::from(transaction.snapshot().seq()), &last_seq)?;
        let running = Running {
            transaction,
            reads: BTreeSet::new(),
            scanned: BTreeSet::new(),
            found: BTreeMap::new(),
            ops: Vec::new(),
            met: BTreeMap::new(),
        };
        self.transactions.push(running);
        Ok(())
    }

    /// Does something in one of the open transactions.
    fn in_transaction(&mut self, which: u8, step: impl FnOnce(&Player, &mut Running) -> Outcome) -> Outcome {
        let mut running = std::mem::take(&mut self.transactions);
        let at = usize::from(which) % running.len().max(1);
        let done = running.get_mut(at).map_or(Ok(()), |running| step(self, running));
        self.transactions = running;
        done
    }

    /// A table, which the transaction uses now. None where it is missing, or not the one that it
    /// has used by this name.
    fn meet(&self, running: &mut Running, slot: u8) -> Result<Option<(BytesTable, Shape)>, String> {
        let Some((table, shape)) = self.table(slot)? else { return Ok(None) };
        let born = self.known.model.born(table.name());
        let is_same = *running.met.entry(table.name().to_owned()).or_insert(born) == born;
        Ok(is_same.then_some((table, shape)))
    }

    fn write_in(&self, running: &mut Running, op: &TableOp) -> Result<Option<(BytesTable, Shape)>, String> {
        let Some((table, shape)) = self.meet(running, op.table)? else { return Ok(None) };
        let (key, value) = (shape.key(op.key), shape.value(op.value, op.len_bytes));
        match op.what {
            What::DeleteRange if shape.order == Order::Hashed => return Ok(None), // the commit would refuse it
            What::DeleteRange => match range(&shape, op) {
                None => return Ok(None),
                Some((from, to)) => running.transaction.delete_range(&table, &from, &to),
            },
            What::DeletePrefix if prefix_ops(&shape, op).is_none() => return Ok(None),
            What::DeletePrefix => running.transaction.delete_prefix(&table, &prefix_of(&shape, op)),
            What::Delete => running.transaction.delete(&table, &key),
            what => running.transaction.write(&table, write_op(what), &key, &value),
        };
        running.ops.push((*op, shape));
        Ok(Some((table, shape)))
    }

    /// It reads what its snapshot has, with its own writes since.
    fn get_in(&self, running: &mut Running, table: &BytesTable, key: &[u8]) -> Outcome {
        let found = read_key(&running.transaction.table(table), key);
        self.has_read(running, (table.name(), key), found).map(drop)
    }

    /// It takes what it would read.
    fn take_in(&self, running: &mut Running, (table, shape): (&BytesTable, Shape), op: &TableOp) -> Outcome {
        let key = shape.key(op.key);
        let found = running.transaction.take(table, &key);
        if self.has_read(running, (table.name(), &key), found)? {
            running.ops.push((TableOp { what: What::Delete, ..*op }, shape));
        }
        Ok(())
    }

    /// Notes and compares what was read of a key. Returns whether it has a value.
    fn has_read(
        &self,
        running: &mut Running,
        (table, key): (&str, &[u8]),
        found: folddb::Result<Option<Vec<u8>>>,
    ) -> Result<bool, String> {
        let found = match found {
            Ok(value) => value.map(Present::Value),
            Err(error) if error.kind() == ErrorKind::FoldFailed => Some(Present::Failed),
            Err(error)
                if error.kind() == ErrorKind::SnapshotTooOld
                    && running.transaction.snapshot().has_ended() =>
            {
                return Ok(false);
            }
            Err(error) => return self.refused("read in a transaction", error).map(|()| false),
        };
        running.reads.insert((table.to_owned(), key.to_vec()));
        let what = format!("{} of {table} in a transaction", key.escape_ascii());
        same(&what, &found, &running.sees(&self.known.model, table, key))?;
        Ok(matches!(found, Some(Present::Value(_))))
    }

    /// It scans the same; all keys in the range that the scan has passed count as read.
    fn scan_in(
        &self,
        running: &mut Running,
        (table, shape): (&BytesTable, &Shape),
        scan: &ScanShape,
    ) -> Outcome {
        let scanned = running.transaction.scan(table);
        if running.transaction.snapshot().has_ended() {
            let shown = scanned.into_iter().any(|row| row.is_ok());
            return same("whether a transaction shows rows whose snapshot has ended", &shown, &false);
        }
        let rows = running.rows(&self.known.model, table.name());
        let outcome = match (shape.order, scan.prefix) {
            (Order::Hashed, _) => scan_hashed(&rows, shape, scan, scanned),
            (_, Some(prefix)) => scan_prefix(&rows, shape, prefix, scan, scanned),
            _ => {
                let expected = chosen(rows.clone(), scan, |key| inside(shape, scan, key));
                compare_rows(&expected, narrow(scanned, shape, scan))
            }
        };
        outcome.map_err(|why| format!("a scan of {} in a transaction: {why}", table.name()))?;
        if let Some(keys) = read_keys(rows, shape, scan) {
            running.scanned.insert(table.name().to_owned());
            running.reads.extend(keys.into_iter().map(|key| (table.name().to_owned(), key)));
        }
        Ok(())
    }

    fn commit_transaction(&mut self, running: Running, durability: Durability) -> Outcome {
        let is_gone = |name: &str, born: u64| self.known.model.born(name) != born;
        let is_over = running.met.iter().any(|(name, born)| is_gone(name, *born) && running.uses(name));
        let has_ended = running.transaction.snapshot().has_ended();
        let mut ops = Ops::new();
        for (op, shape) in running.ops.iter().filter(|_| !is_over) {
            let write_ms = unix_ms(self.store()?.now());
            let (_, deadline_ms) = shape.lifetime(DEFAULT_LIFETIME, write_ms, self.epoch_ms);
            let stamp = Stamp { write_ms, deadline_ms };
            ops.extend(ops_of(op, shape).into_iter().map(|model_op| (name_of(op.table), model_op, stamp)));
        }
        let Running { transaction, reads, scanned, found, ops: written, .. } = running;
        let lacks_index = found.iter().any(|(name, found)| found.is_gone(&self.known.model, name));
        let reads = (&reads, &scanned, &found);
        let at = (u64::from(transaction.snapshot().seq()), unix_ms(transaction.snapshot().time()));
        let outcome = transaction.commit(durability);
        if written.is_empty() {
            return outcome.map(drop).or_else(|error| self.refused("commit nothing", error));
        }
        match outcome {
            Ok(_) if is_over => Err("a transaction on a table that was dropped is committed".to_owned()),
            Ok(_) if verdict(&self.known.model, reads, at) == Verdict::Conflicts => {
                Err(format!("a transaction at seq {} is committed, whose reads were overtaken", at.0))
            }
            Err(error) if lacks_index && error.kind() == ErrorKind::Closed => Ok(()),
            // Hashed tables fold before the commit checks whether the others exist.
            Err(error) if is_over && matches!(error.kind(), ErrorKind::Closed | ErrorKind::FoldFailed) => {
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::SnapshotTooOld && has_ended => Ok(()),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                match verdict(&self.known.model, reads, at) {
                    Verdict::Commits if !is_over => {
                        Err(format!("a transaction that nobody has overtaken fails: {error}"))
                    }
                    _ => Ok(()),
                }
            }
            outcome => self.committed(self.in_order(ops), durability, outcome),
        }
    }
}

impl Running {
    /// Whether it has read or written in a table. One that it used only after its snapshot had
    /// ended does not count.
    fn uses(&self, name: &str) -> bool {
        let writes = || self.ops.iter().any(|(op, _)| name_of(op.table) == name);
        self.reads.iter().any(|(read, _)| read == name)
            || self.scanned.contains(name)
            || self.found.contains_key(name)
            || writes()
    }

    /// What the transaction must see of a key.
    fn sees(&self, model: &Model, table: &str, key: &[u8]) -> Option<Present> {
        self.rows(model, table).into_iter().find(|(at, _)| at == key).map(|(_, present)| present)
    }

    /// What it must see of a table.
    pub(super) fn rows(&self, model: &Model, table: &str) -> Vec<ModelRow> {
        let past = self.transaction.snapshot();
        let mut model = model.until(u64::from(past.seq()));
        model.set_time(unix_ms(past.time()));
        for (op, shape) in &self.ops {
            for model_op in ops_of(op, shape) {
                // Their times and deadlines show after the commit.
                model.apply_at(
                    &name_of(op.table),
                    model_op,
                    Stamp { write_ms: unix_ms(past.time()), deadline_ms: NEVER },
                );
            }
        }
        model.rows_at(table, Seq::MAX)
    }
}

/// The keys, present or not, that a scan has passed which shows these rows. None where it is
/// refused.
fn read_keys(rows: Vec<ModelRow>, shape: &Shape, scan: &ScanShape) -> Option<Vec<Vec<u8>>> {
    let all = (0..KEYS).map(|number| shape.key(number));
    if shape.order == Order::Hashed {
        let is_all = match scan.prefix {
            Some((number, len)) => len == 0 || shape.key(number).is_empty(), // no bound
            None => scan.low == Edge::Open && scan.high == Edge::Open,
        };
        return (is_all && !scan.reverse).then(|| all.collect());
    }
    if shape.order == Order::ByLength && scan.prefix.is_some() {
        return None;
    }
    let is_inside = |key: &[u8]| match scan.prefix {
        None => inside(shape, scan, key),
        Some(prefix) => prefix_range(shape, prefix).contains(key),
    };
    let seen = chosen(rows, scan, is_inside);
    let is_cut_short = scan.limit.is_some_and(|limit| seen.len() == usize::from(limit));
    let last = seen.last().filter(|_| is_cut_short).map(|(key, _)| key.clone());
    let is_passed = |key: &Vec<u8>| match (&last, scan.reverse) {
        (None, _) => !is_cut_short,
        (Some(last), false) => shape.compare(key, last).is_le(),
        (Some(last), true) => shape.compare(key, last).is_ge(),
    };
    Some(all.filter(|key| is_inside(key)).filter(is_passed).collect())
}

/// The verdict of the reads at a seq and a time on a commit now.
fn verdict(model: &Model, (reads, scanned, found): HasRead<'_>, (seq, time_ms): (Seq, u64)) -> Verdict {
    let is_there = |rows: Vec<ModelRow>, key: &[u8]| rows.iter().any(|(at, _)| at == key);
    let of = |(table, key): &(String, Vec<u8>)| {
        let was = is_there(model.rows_seen(table, seq, time_ms), key);
        let had_value = |(at, present): &ModelRow| at == key && matches!(present, Present::Value(_));
        let lasts_at = |ms: u64| model.rows_seen(table, seq, ms).iter().any(had_value);
        if lasts_at(time_ms) && !lasts_at(model.now_ms()) {
            return Verdict::Conflicts; // it has expired
        }
        let is = is_there(model.rows_at(table, Seq::MAX), key);
        match model.was_written_since(table, key, seq) {
            Written::Not => Verdict::Commits,
            Written::Unless if was => Verdict::Either,
            _ if was || is => Verdict::Conflicts,
            _ => Verdict::Either,
        }
    };
    let cut = scanned.iter().any(|table| model.was_cut_since(table, seq)).then_some(Verdict::Either);
    let of_found = |(name, found): (&String, &Found)| match found.lacks_some(model, name) {
        true => Verdict::Conflicts,
        false => Verdict::Either,
    };
    reads.iter().map(of).chain(cut).chain(found.iter().map(of_found)).max().unwrap_or(Verdict::Commits)
}
