//! What a player knows about the past: earlier states of keys and tables, and snapshots of past
//! moments.
//!
//! ```text
//!   -- may be gone --|------ kept: shown, and shown right ------|
//!                    boundary: the time that it is, less the window
//! ```
//!
//! Every answer is right, on both sides of the boundary. Beyond it, a whole table is refused, and a
//! key shows no more than its state at the boundary. Clocks jump by whole hours, so the boundary
//! need not be known to the millisecond. A crash may forget a time that no write has; the past
//! folded by that time is gone all the same.

use folddb::time::{moment, unix_ms};
use folddb::{AsOf, BytesTable, ErrorKind, Expire, Keep, Snapshot};
use folddb_base::Seq;

use crate::compare::{Outcome, compare_rows, compare_table, same};
use crate::model::{LoadTime, Model, ModelState, Present};
use crate::play::parts::Past;
use crate::play::player::{Player, said};
use crate::tables::{HOUR_MS, KEYS, Order, Shape};

/// The most at once.
const PASTS_MAX: usize = 4;

/// How far back a table with a window looks.
#[derive(Clone, Copy)]
struct Boundary {
    /// Writes up to then are beyond it.
    gone_ms: u64,
    /// Writes since then are surely kept.
    kept_ms: u64,
}

impl Boundary {
    pub(super) fn of(model: &Model, window_ms: u64) -> Boundary {
        let before = |ms: u64| ms.saturating_sub(window_ms);
        Boundary { gone_ms: before(model.now_ms()), kept_ms: before(model.latest_ms()) }
    }
}

impl Player {
    /// Compares the past of keys, in a table that promises to keep it.
    pub(super) fn compare_past(&self, model: &Model, table: &BytesTable, shape: &Shape) -> Outcome {
        let count = match shape.keep {
            Keep::Versions(count) => count as usize,
            Keep::Forever => usize::MAX,
            Keep::Window(window) => {
                return self.compare_window(model, table, shape, window.as_millis() as u64);
            }
            Keep::Latest => return Ok(()),
            unknown => return Err(format!("nobody knows the past of a table that keeps {unknown}")),
        };
        for number in 0..KEYS {
            let key = shape.key(number);
            let expected = model.history(table.name(), &key, count);
            let fails = expected.iter().any(|(_, present)| *present == Some(Present::Failed));
            let found = match table.history(&key, usize::MAX) {
                Err(error) if fails && error.kind() == ErrorKind::FoldFailed => continue,
                found => found.map_err(said("tell the history of a key"))?,
            };
            let found: Vec<_> = found
                .into_iter()
                .map(|version| (version.seq.map(u64::from), version.value.map(Present::Value)))
                .collect();
            let is_hashed = shape.order == Order::Hashed; // its versions go by their times
            let expected: Vec<_> =
                expected.into_iter().map(|(seq, present)| ((!is_hashed).then_some(seq), present)).collect();
            same(&format!("the history of {}", key.escape_ascii()), &found, &expected)?;
        }
        if shape.keep == Keep::Forever && shape.expire == Expire::Never {
            for seq in [model.last_seq() / 3, model.last_seq() / 3 * 2] {
                let rows = model.rows_at(table.name(), seq);
                compare_rows(&rows, table.scan_at(AsOf::Seq(seq.into())))
                    .map_err(|why| format!("as of {seq}: {why}"))?;
                let names = [table.name().to_owned()];
                let dumped = self.store()?.dump_at(&names, AsOf::Seq(seq.into()), &mut std::io::sink());
                let dumped = dumped.map_err(said("dump a moment of the past"))?;
                let what = format!("the records of a dump as of {seq}");
                same(&what, &dumped.records, &(rows.len() as u64))?;
            }
        }
        Ok(())
    }

    // ---- windows --------------------------------------------------------------------------------

    fn compare_window(&self, model: &Model, table: &BytesTable, shape: &Shape, window_ms: u64) -> Outcome {
        let boundary = Boundary::of(model, window_ms);
        for number in 0..KEYS {
            compare_key(
                &model.states(table.name(), &shape.key(number)),
                table,
                &shape.key(number),
                boundary,
            )?;
        }
        // One moment at a time: the next look is at another.
        let writes = model.writes(table.name());
        let at = writes.len() * (writes.len() % 4) / 4;
        if let Some(&(next, write_ms)) = writes.get(at) {
            // Just before a write; the moment has the time of that write.
            let is_gone = write_ms <= boundary.gone_ms;
            let moment =
                Moment { as_of: AsOf::Seq((next - 1).into()), seq: next - 1, time_ms: write_ms, is_gone };
            moment.compare(model, table, shape, boundary)?;
        }
        let hours_ago = 1 + model.last_seq() % 4;
        self.compare_time(model, table, shape, boundary, hours_ago)
    }

    /// The table as it was at a quarter past some hour, when there were no writes and no deadlines.
    fn compare_time(
        &self,
        model: &Model,
        table: &BytesTable,
        shape: &Shape,
        boundary: Boundary,
        hours_ago: u64,
    ) -> Outcome {
        let now_hours = model.now_ms().saturating_sub(self.epoch_ms) / HOUR_MS;
        let Some(hours) = now_hours.checked_sub(hours_ago) else { return Ok(()) };
        let time_ms = self.epoch_ms + hours * HOUR_MS + HOUR_MS / 4;
        let writes = model.writes(table.name());
        let LoadTime { after_ms, by_ms } = model.loaded(table.name());
        if after_ms <= time_ms && time_ms < by_ms {
            return Ok(());
        }
        let loaded = (model.loaded_at(table.name()), by_ms);
        let by_then = |write: &&(Seq, u64)| write.1 <= time_ms;
        let seq = std::iter::once(&loaded).chain(&writes).rfind(by_then).map_or(0, |write| write.0);
        let is_gone = writes.iter().any(|(_, at_ms)| time_ms < *at_ms && *at_ms <= boundary.gone_ms);
        Moment { as_of: AsOf::Time(moment(time_ms)), seq, time_ms, is_gone }
            .compare(model, table, shape, boundary)
    }

    // ---- snapshots of the past ------------------------------------------------------------------

    /// Takes a snapshot of a moment before one of the writes to a table.
    pub(super) fn take_past(&mut self, slot: u8, back: u8) -> Outcome {
        let Some((table, _)) = self.table(slot)? else { return Ok(()) };
        let model = &self.known.model;
        let writes = model.writes(table.name());
        let at = writes.len() * usize::from(255 - back) / 256;
        let Some(&(next, _)) = writes.get(at) else { return Ok(()) };
        let snapshot = self.store()?.snapshot_at(AsOf::Seq((next - 1).into()));
        let snapshot = snapshot.map_err(said("take a snapshot of the past"))?;
        same("the seq of a snapshot of the past", &u64::from(snapshot.seq()), &(next - 1))?;
        let names = model.tables().into_iter().filter(|name| is_kept(model, name, &snapshot));
        let kept = names.map(|name| model.born(&name)).collect();
        if self.pasts.len() == PASTS_MAX {
            self.pasts.remove(0);
        }
        self.pasts.push(Past { snapshot, kept });
        Ok(())
    }

    /// The snapshots of the past that surely see a table.
    pub(super) fn pasts_of(&self, model: &Model, table: &BytesTable) -> impl Iterator<Item = &Snapshot> {
        let born = model.born(table.name());
        let sees = move |past: &&Past| past.kept.contains(&born);
        self.pasts.iter().filter(sees).map(|past| &past.snapshot)
    }

    /// A table as the snapshots of the past see it: if it was kept when they were taken, they see
    /// it as long as they live.
    pub(super) fn compare_pasts(&self, model: &Model, table: &BytesTable, shape: &Shape) -> Outcome {
        for Past { snapshot, kept } in &self.pasts {
            if shape.order == Order::Hashed {
                continue; // it keeps no past of all its keys
            }
            let scan = || snapshot.scan(table);
            let is_kept = kept.contains(&model.born(table.name()));
            if !is_kept && is_refused(scan().limit(1).count().map(drop))? {
                continue;
            }
            let rows = model.rows_seen(table.name(), u64::from(snapshot.seq()), unix_ms(snapshot.time()));
            compare_table(&rows, shape, &|key| snapshot.get(table, key), &scan)
                .map_err(|why| format!("at a snapshot of the past, {}: {why}", u64::from(snapshot.seq())))?;
        }
        Ok(())
    }
}

/// A moment of the past of a table.
struct Moment {
    as_of: AsOf,
    /// The last write to the table by then.
    seq: Seq,
    time_ms: u64,
    /// Whether it must be refused.
    is_gone: bool,
}

impl Moment {
    pub(super) fn compare(
        &self,
        model: &Model,
        table: &BytesTable,
        shape: &Shape,
        boundary: Boundary,
    ) -> Outcome {
        let scan = || table.scan_at(self.as_of);
        let is_refused = self.time_ms <= boundary.kept_ms && is_refused(scan().limit(1).count().map(drop))?;
        let compared = match is_refused {
            true => Ok(()),
            false if self.is_gone => Err("it is beyond the window, and told".to_owned()),
            false => {
                let rows = model.rows_seen(table.name(), self.seq, self.time_ms);
                compare_table(&rows, shape, &|key| table.get_at(key, self.as_of), &scan)
            }
        };
        compared.map_err(|why| format!("as of {:?}: {why}", self.as_of))
    }
}

/// Compares the past of a key, in a table with a window.
fn compare_key(states: &[ModelState], table: &BytesTable, key: &[u8], boundary: Boundary) -> Outcome {
    let newer = |ms: u64| states.iter().take_while(|state| state.write_ms > ms).count();
    // The state at the boundary, too, unless it had expired by then.
    let most = states.len().min(newer(boundary.gone_ms) + 1);
    let sure = newer(boundary.kept_ms);
    let least =
        sure + usize::from(states.get(sure).is_some_and(|state| state.deadline_ms > boundary.kept_ms));
    // A value with a deadline before the window was never alive in it, and may be dropped as
    // expired: shown or not, it counts as absent here.
    let was_dead = |state: &ModelState| state.deadline_ms <= boundary.kept_ms;
    let seen_as = |seq: Option<Seq>, present: Option<Present>| {
        let is_dead = states.iter().any(|state| Some(state.seq) == seq && was_dead(state));
        (seq, present.filter(|_| !is_dead))
    };
    let found = match table.history(key, usize::MAX) {
        Err(error) if error.kind() == ErrorKind::FoldFailed => {
            let fails = |state: &ModelState| state.present == Some(Present::Failed);
            return same("whether the fold fails", &states[..most].iter().any(fails), &true);
        }
        found => found.map_err(said("tell the history of a key"))?,
    };
    let trimmed = |mut told: Vec<(Option<Seq>, Option<Present>)>| {
        told.truncate(told.iter().rposition(|(_, present)| present.is_some()).map_or(0, |last| last + 1));
        told
    };
    let found = found
        .into_iter()
        .map(|version| seen_as(version.seq.map(u64::from), version.value.map(Present::Value)));
    let found = trimmed(found.collect());
    let told = |count: usize| {
        let told = states[..count].iter().map(|state| seen_as(Some(state.seq), state.present.clone()));
        trimmed(told.collect())
    };
    match (least..=most).any(|count| told(count) == found) {
        true => Ok(()),
        false => same(
            &format!("the history of {} (its newest {least} to {most} states)", key.escape_ascii()),
            &found,
            &told(most),
        ),
    }
}

/// Whether a table keeps the state that a snapshot of the past sees.
fn is_kept(model: &Model, table: &str, snapshot: &Snapshot) -> bool {
    match model.shape(table).map(|shape| shape.keep) {
        Some(Keep::Forever) => true,
        Some(Keep::Window(window)) => {
            unix_ms(snapshot.time()) > Boundary::of(model, window.as_millis() as u64).kept_ms
        }
        _ => false,
    }
}

/// Whether a read is refused because its moment is not kept. A failed fold is no refusal.
fn is_refused(read: folddb::Result<()>) -> Result<bool, String> {
    match read {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(true),
        Err(error) if error.kind() != ErrorKind::FoldFailed => {
            Err(format!("cannot read the past: {error:?}"))
        }
        _ => Ok(false),
    }
}
