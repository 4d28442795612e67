//! How `hugedb` reads: gets and a scan, warm and cold, and gets while another thread writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use folddb::{Durability, Error, Result, Store, Table};
use serde_json::{Value, json};

use crate::check::{Ascending, RowSum};
use crate::generate::{Chance, RandomRows};
use crate::measure::{Latencies, Phase, per_second};
use crate::options::Progress;

/// Gets of a phase; a tenth of the rows if that is fewer.
const GETS: u64 = 100_000;
/// The first index of keys that are never written.
const ABSENT_FROM: u64 = 1 << 40;
/// Rows of a batch of the concurrent writer.
const BATCH: u64 = 1000;
/// How long that writer writes. It also stops when it has doubled the number of rows, so that the
/// phases that follow have about the requested size even with a slow reader.
const BESIDE: Duration = Duration::from_secs(5);

/// Reads rows that a source has written, and checks each answer.
pub(crate) struct Reading {
    pub(crate) source: RandomRows,
    pub(crate) rows: u64,
    pub(crate) seed: u64,
    /// What the table holds.
    pub(crate) expected: RowSum,
}

impl Reading {
    /// What must be in the table, from the generator alone.
    pub(crate) fn new(source: RandomRows, rows: u64, seed: u64) -> Reading {
        let mut reading = Reading { source, rows: 0, seed, expected: RowSum::default() };
        reading.expect(rows);
        reading
    }

    /// Expects this many rows more.
    pub(crate) fn expect(&mut self, more: u64) {
        for index in self.rows..self.rows + more {
            let key = self.source.key(index);
            self.expected.add(key, self.source.value(key));
        }
        self.rows += more;
    }

    /// Gets that hit and gets that miss, in turn. True when each answer is right.
    pub(crate) fn gets(&self, table: &Table<u64, u64>) -> Result<(Value, bool)> {
        let count = GETS.min(self.rows / 10).max(100);
        let mut chance = Chance::new(self.seed ^ 0x6e75_6d62_6572_7321);
        let (mut hits, mut misses) = (Latencies::new(), Latencies::new());
        let (started, mut right) = (Instant::now(), true);
        for index in 0..count {
            let is_hit = index % 2 == 0;
            let key = self.source.key(chance.below(self.rows) + if is_hit { 0 } else { ABSENT_FROM });
            let before = Instant::now();
            let value = table.get(&key)?;
            let latencies = if is_hit { &mut hits } else { &mut misses };
            latencies.note(before.elapsed());
            right &= value == is_hit.then(|| self.source.value(key));
        }
        let gets_per_s = per_second(count, started.elapsed());
        Ok((json!({ "gets_per_s": gets_per_s, "hits": hits.to_json(), "misses": misses.to_json() }), right))
    }

    /// The same gets twice; the figures are of the second time.
    pub(crate) fn warm_gets(&self, table: &Table<u64, u64>) -> Result<(Value, bool)> {
        let (_, first_right) = self.gets(table)?;
        let (figures, right) = self.gets(table)?;
        Ok((figures, first_right && right))
    }

    /// Scans all rows. True when they are what must be there, in order.
    pub(crate) fn scan(&self, table: &Table<u64, u64>) -> Result<(Value, bool)> {
        let phase = Phase::start(self.rows);
        let (mut found, mut ascending) = (RowSum::default(), Ascending::default());
        let mut scan = table.as_bytes().scan().rows()?;
        while let Some((key, value)) = scan.next_row()? {
            let (Ok(key), Ok(value)) = (key.try_into(), value.try_into()) else {
                return Err(Error::invalid("a row of the bench is not a pair of 8-byte numbers"));
            };
            let key = u64::from_be_bytes(key);
            ascending.next(key);
            found.add(key, u64::from_le_bytes(value));
        }
        let mut figures = phase.end();
        figures["rows_found"] = json!(found.rows);
        figures["checksum"] = json!(format!("{:016x}", found.sum));
        Ok((figures, found == self.expected && ascending.holds()))
    }

    /// Gets of existing rows while another thread writes new rows at full speed, for some seconds,
    /// or until there are twice as many rows. The new rows are expected from then on.
    pub(crate) fn gets_while_writing(
        &mut self,
        store: &Store,
        table: &Table<u64, u64>,
        durability: Durability,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Value, bool)> {
        progress(Progress { phase: "reading while writing", done: 0, total: 0 });
        let (stop, started, this) = (AtomicBool::new(false), Instant::now(), &*self);
        let (written, read) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| this.hits_until(table, &stop));
            let written = this.write_more(store, table, durability);
            stop.store(true, Ordering::Relaxed);
            (written, reader.join())
        });
        let (more, took) = (written?, started.elapsed());
        let panicked = |_| Err(Error::invalid("the reader of the bench panicked"));
        let (hits, right) = read.unwrap_or_else(panicked)?;
        let figures =
            json!({ "rows_written": more, "writes_per_s": per_second(more, took), "hits": hits.to_json() });
        self.expect(more);
        Ok((figures, right))
    }

    /// Writes rows after the existing ones; returns how many.
    fn write_more(&self, store: &Store, table: &Table<u64, u64>, durability: Durability) -> Result<u64> {
        let (mut batch, mut more, started) = (store.batch(), 0, Instant::now());
        while more < self.rows && started.elapsed() < BESIDE {
            for index in self.rows + more..self.rows + more + BATCH {
                let key = self.source.key(index);
                batch.put(table, &key, &self.source.value(key));
            }
            batch.commit(durability)?;
            more += BATCH;
        }
        Ok(more)
    }

    /// Gets existing rows until `stop` is set. True when each answer is right.
    fn hits_until(&self, table: &Table<u64, u64>, stop: &AtomicBool) -> Result<(Latencies, bool)> {
        let mut chance = Chance::new(self.seed ^ 0x6265_7369_6465);
        let (mut hits, mut right) = (Latencies::new(), true);
        while !stop.load(Ordering::Relaxed) {
            let key = self.source.key(chance.below(self.rows));
            let before = Instant::now();
            let value = table.get(&key)?;
            hits.note(before.elapsed());
            right &= value == Some(self.source.value(key));
        }
        Ok((hits, right))
    }
}
