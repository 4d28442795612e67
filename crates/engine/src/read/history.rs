//! The history of a key: its states one after the other, as far as the table keeps them.
//!
//! The records of the key are gathered from memtables and runs, together with the range deletes
//! over it, and folded from the oldest to the newest; each of them leaves the key in a state. The
//! rules decide which of these count, not the progress of merges, so the answer is the same before
//! and after a merge. Absent states at the old end are left out: once they are merged away, nobody
//! knows whether they were deletes.
//!
//! Called by `table`.

use std::ops::ControlFlow;
use std::time::SystemTime;

use folddb_base::checksum::key_hash;
use folddb_base::stamp::NEVER;
use folddb_base::{Error, OpKind, Result, Seq as RawSeq};
use folddb_rules::resolve::Resolver;
use folddb_rules::time::{self, Kept, moment, utc};
use folddb_rules::{Keep, State};

use crate::read::get::damaged_record;
use crate::read::hashed::As;
use crate::read::{get, hashed};
use crate::seq::Seq;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::clock::{AsOf, how_to_keep};
use crate::state::engine::Engine;
use crate::state::hash_index::Hashed;
use crate::state::snapshots::At;
use crate::state::view::TableView;
use crate::values::hashed_record::{Found, Reading};
use crate::values::load;

/// The state of a key from one write on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryEntry<V> {
    /// The seq of the record that caused it; in tables that keep only the present, possibly a later
    /// one. None in hashed tables, which identify versions by their times.
    pub seq: Option<Seq>,
    /// When that was written, to about a second; none if unknown.
    pub written: Option<SystemTime>,
    /// The deadline of the value; none if it lasts forever.
    pub deadline: Option<SystemTime>,
    /// The value; none if the key was absent.
    pub value: V,
}

/// The same state of a key, with its value in another form.
///
/// # Errors
/// Those of `change`.
pub fn try_map<V, W>(entry: HistoryEntry<V>, change: impl FnOnce(V) -> Result<W>) -> Result<HistoryEntry<W>> {
    let HistoryEntry { seq, written, deadline, value } = entry;
    Ok(HistoryEntry { seq, written, deadline, value: change(value)? })
}

/// States of a key, newest first.
type Past = Vec<HistoryEntry<Option<Vec<u8>>>>;

/// An event of a key: a record, or a range delete over it.
struct Event {
    seq: RawSeq,
    record: Option<(OpKind, Vec<u8>)>,
}

/// The states of `key`, newest first, at most `limit` of those that the table keeps.
pub fn history(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    limit: usize,
) -> Result<Vec<HistoryEntry<Option<Vec<u8>>>>> {
    let now = At::new(engine.published(), clock::now_ms(engine));
    if let Some(hashed) = table.hashed.as_ref().filter(|_| table.is_timed) {
        let mut versions = hashed_versions(engine, (table, hashed), key, now)?;
        versions.truncate(table.versions());
        without_old_absence(&mut versions);
        versions.truncate(limit);
        return Ok(versions);
    }
    if table.hashed.is_some() {
        let only = |value: Option<&[u8]>| {
            Ok(value.map(|value| HistoryEntry {
                seq: None,
                written: None,
                deadline: None,
                value: Some(value.to_vec()),
            }))
        };
        return Ok(get::get(engine, table, key, None, only)?.into_iter().take(limit).collect());
    }
    let (mut versions, has_older) = versions(engine, table, key, limit, now)?;
    if !has_older {
        without_old_absence(&mut versions);
    }
    Ok(versions)
}

/// The value of `key` at a past moment.
pub fn get_at(engine: &Engine, table: &TableCore, key: &[u8], as_of: AsOf) -> Result<Option<Vec<u8>>> {
    engine.check_here()?;
    clock::check_written(engine, as_of)?;
    let (at, now) = {
        let _committer = engine.commit.lock(); // no batch of that moment is still being applied
        let now = At::new(engine.published(), clock::now_ms(engine));
        (clock::moment_of(engine, as_of, now), now)
    };
    if at.seq < now.seq && matches!(table.keep(), Keep::Versions(_)) {
        if let (AsOf::Seq(seq), true) = (as_of, table.hashed.is_some()) {
            return Err(Error::invalid(format!(
                "table `{}` is hashed, and has the versions of a key by time: name a time, not seq {seq}",
                table.name
            )));
        }
        return version_at(engine, table, key, at, now);
    }
    // While this is held, no merge folds away what the window keeps of the key.
    let _held = matches!(table.keep(), Keep::Window(_)).then(|| clock::hold_at(engine, as_of));
    clock::check_kept(engine, table, at, now).map_err(|error| error.advise(how_to_keep(table, true)))?;
    let at = (at.seq < now.seq || at.time_ms < now.time_ms).then_some(at);
    get::get(engine, table, key, at, |value| Ok(value.map(<[u8]>::to_vec)))
}

/// The value of `key` at a moment, from its versions.
fn version_at(engine: &Engine, table: &TableCore, key: &[u8], at: At, now: At) -> Result<Option<Vec<u8>>> {
    if let Some(hashed) = &table.hashed {
        return hashed_version_at(engine, (table, hashed), key, at, now);
    }
    let (versions, _) = versions(engine, table, key, usize::MAX, now)?;
    match versions.iter().find(|version| version.seq.is_some_and(|seq| u64::from(seq) <= at.seq)) {
        Some(version) if version.deadline.is_some_and(|deadline| deadline <= moment(at.time_ms)) => Ok(None),
        Some(version) => Ok(version.value.clone()),
        None => Err(no_version(engine, table, key, at, versions.last())),
    }
}

/// The error for a moment before the oldest version of `key`, which is this.
#[cold]
fn no_version(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    at: At,
    oldest: Option<&HistoryEntry<Option<Vec<u8>>>>,
) -> Error {
    let key = table.rules.rules.key_codec().show_line(key);
    let since = match oldest {
        Some(HistoryEntry { seq: Some(seq), written: Some(written), .. }) => {
            format!("seq {seq}, of {}", utc(*written))
        }
        Some(HistoryEntry { seq: Some(seq), .. }) => format!("seq {seq}"),
        Some(HistoryEntry { written: Some(written), .. }) => utc(*written),
        _ => "none".to_owned(),
    };
    let asked = match table.hashed {
        Some(_) => utc(moment(at.time_ms)),
        None => format!(
            "seq {}, of {}",
            at.seq,
            utc(moment(clock::time_of(engine, at.seq).unwrap_or(at.time_ms)))
        ),
    };
    Error::invalid(format!(
            "table `{}` keeps {}: of key {key} the oldest state that is kept is the one at {since}, and you asked for {asked}",
            table.name, table.keep()
        ))
        .advise(how_to_keep(table, true))
}

/// The states of `key` that count, newest first, including absent ones at the old end; and whether
/// it had a value in one beyond `limit`.
fn versions(engine: &Engine, table: &TableCore, key: &[u8], limit: usize, now: At) -> Result<(Past, bool)> {
    loop {
        let round = engine.values.files.round();
        let view = table.view();
        engine.check_readable(table)?;
        let events = events_of(table, &view, key, now.seq)?;
        let Some(of) = engine.values.files.segment_map_of(round) else { continue };
        let counted = counted(engine, table, &events, now);
        let (mut versions, mut has_older) = (Vec::new(), false);
        let mut resolver = Resolver::new();
        for (index, event) in events.iter().enumerate().rev() {
            match &event.record {
                None => resolver.clear(),
                Some((kind, payload)) => resolver
                    .feed_newer(&table.rules.fold, key, *kind, payload)
                    .map_err(|cause| damaged_record(table, cause))?,
            }
            if index >= limit {
                let mut had = || matches!(resolver.state(&table.rules.fold, key), Ok(Some(_)));
                has_older = has_older || index < counted && had();
            } else if index < counted {
                get::load_waiting(engine, Some(&of), table, key, &mut resolver)?;
                let mut record = Vec::new();
                let value = match resolver.state(&table.rules.fold, key) {
                    Err(cause) => return Err(get::fold_failed(engine, table, key, &cause)),
                    Ok(None) => None,
                    Ok(Some(State::Value(value))) => Some(value.to_vec()),
                    Ok(Some(State::Separated(pointer))) => {
                        Some(load::load_value(engine, Some(&of), table, key, pointer, &mut record)?.to_vec())
                    }
                };
                let deadline_ms = if value.is_some() { resolver.deadline_ms() } else { None };
                versions.push(HistoryEntry {
                    seq: Some(event.seq.into()),
                    written: clock::time_of(engine, event.seq).map(moment),
                    deadline: deadline_ms.map(moment),
                    value,
                });
            }
        }
        versions.reverse();
        return Ok((versions, has_older));
    }
}

/// The versions of `key` in a hashed table, newest first, identified by their times.
fn hashed_versions(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    now: At,
) -> Result<Vec<HistoryEntry<Option<Vec<u8>>>>> {
    let mut versions = Vec::new();
    let mut take = |found: Found, record: &[u8]| {
        let Some(front) = found.front else { return };
        let (is_deleted, stamp) = (front.is_deleted, front.stamp);
        versions.push(HistoryEntry {
            seq: None,
            written: Some(moment(stamp.write_ms)),
            deadline: (!is_deleted && stamp.deadline_ms < NEVER).then(|| moment(stamp.deadline_ms)),
            value: (!is_deleted).then(|| found.value(record).to_vec()),
        });
    };
    hashed::each_version(engine, of, key, As::Snapshot(now), Reading::Whole, &mut take)?;
    Ok(versions)
}

/// As [`version_at`], for a hashed table.
fn hashed_version_at(
    engine: &Engine,
    of: (&TableCore, &Hashed),
    key: &[u8],
    at: At,
    now: At,
) -> Result<Option<Vec<u8>>> {
    let versions = hashed_versions(engine, of, key, now)?;
    let kept = versions.len() >= of.0.versions();
    let oldest = versions.last().cloned();
    match versions
        .into_iter()
        .find(|version| version.written.is_some_and(|written| written <= moment(at.time_ms)))
    {
        Some(version) if version.deadline.is_some_and(|deadline| deadline <= moment(at.time_ms)) => Ok(None),
        Some(version) => Ok(version.value),
        None if kept => Err(no_version(engine, of.0, key, at, oldest.as_ref())),
        None => Ok(None), // everything is later
    }
}

/// How many of the events of a key, newest first, the table promises to keep.
fn counted(engine: &Engine, table: &TableCore, events: &[Event], now: At) -> usize {
    match time::kept(table.keep()) {
        Kept::Latest => 1,
        Kept::Versions(count) => count as usize,
        Kept::Forever => usize::MAX,
        Kept::Window(_) => {
            let since = clock::kept_since(engine, table, now.time_ms);
            events.iter().take_while(|event| event.seq > since).count() + 1
        }
    }
}

/// Removes the absent states at the old end.
fn without_old_absence(versions: &mut Past) {
    let present = versions.iter().rposition(|version| version.value.is_some()).map_or(0, |last| last + 1);
    versions.truncate(present);
}

/// The events of `key` up to `limit`, newest first.
fn events_of(table: &TableCore, view: &TableView, key: &[u8], limit: RawSeq) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    let mut take = |seq: RawSeq, kind: OpKind, payload: &[u8]| {
        if seq <= limit {
            events.push(Event { seq, record: Some((kind, payload.to_vec())) });
        }
    };
    let memtables = std::iter::once(&view.active).chain(view.sealed.iter().map(|sealed| &sealed.memtable));
    for memtable in memtables {
        memtable.explain(key, |_, record| take(record.seq, record.kind, record.payload));
    }
    let (order, hash) = (&table.rules.order, key_hash(key));
    for part in view.runs.iter().flat_map(|run| &run.parts) {
        if order.compare(key, &part.low).is_ge() && order.compare(key, &part.high).is_le() {
            let _all = part.file.part.get(key, hash, RawSeq::MAX, &mut |record| {
                take(record.seq, record.kind, record.payload);
                Ok(ControlFlow::Continue(()))
            })?;
        }
    }
    let ranges = view.range_deletes.all_over(order, key).into_iter().filter(|&seq| seq <= limit);
    events.extend(ranges.map(|seq| Event { seq, record: None }));
    events.sort_by_key(|event| std::cmp::Reverse(event.seq));
    Ok(events)
}
